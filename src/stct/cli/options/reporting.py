"""The arguments and options of ``stct report`` and ``stct export``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Map(StrEnum):
    """How the map of the report is laid out."""

    PCA = "pca"
    TSNE = "tsne"


class Tool(StrEnum):
    """A tool that a correction can be handed over to."""

    LABEL_STUDIO = "label-studio"
    CLEANLAB = "cleanlab"
    HUGGINGFACE = "huggingface"
    ARGILLA = "argilla"
    ONNX = "onnx"


ReportFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Output folder of 'stct correct', 'train' or 'demo'."
    ),
]
MapChoice = Annotated[
    Map,
    typer.Option(
        "--map",
        help="pca: all rows along two axes. tsne: a sample of 2,000, a few seconds.",
    ),
]
ImagesFolder = Annotated[
    Path | None,
    typer.Option(
        "--images",
        metavar="FOLDER",
        help="Where the images are now, if they have moved: makes new thumbnails.",
    ),
]
ToolChoice = Annotated[
    Tool,
    typer.Option(
        "--to",
        help="label-studio: tasks with predictions. cleanlab: a table of label "
        "issues. huggingface: a dataset on disk. argilla: the same, with suggestions. "
        "onnx: the trained model of a run, as one file.",
    ),
]
ExportFolder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        show_default="stct-label-studio and so on",
        help="Folder to make; a file for onnx.",
    ),
]
ExportImages = Annotated[
    Path | None,
    typer.Option(
        "--images",
        metavar="FOLDER",
        help="Where the paths of the image column are seen from; huggingface: puts "
        "the images into the dataset.",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        show_default="all rows",
        help="The N rows with the most to gain from a look, in that order. Not for "
        "cleanlab and huggingface, which take all rows.",
    ),
]
AnnotationsFile = Annotated[
    Path,
    typer.Argument(
        metavar="ANNOTATIONS",
        help="The .json that Label Studio exports (Export, JSON), or records.json of "
        "Argilla, from a project that 'stct export' made.",
    ),
]
ExportedFolder = Annotated[
    Path | None,
    typer.Argument(
        metavar="DIR",
        help="Output folder of the correction that was exported: ids and labels that "
        "it lacks are refused.",
    ),
]
DecisionsFile = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT", help="File to make, .csv.")
]
