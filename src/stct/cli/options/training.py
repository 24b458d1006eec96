"""The arguments and options of ``stct train`` and ``stct predict``."""

from pathlib import Path
from typing import Annotated

import typer

ImageData = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="A folder of class folders, a table (.csv, .tsv, .parquet, .jsonl) with a "
        "column of image paths, an .npz file with 'images' and 'labels', or the "
        "folder or .tar.gz of CIFAR-10 or CIFAR-100.",
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="tiny: digits and the like. cpu: 32 x 32 colour images on a laptop. "
        "photos: any photos, from a network trained on ImageNet. cifar10, cifar100, "
        "clothing1m: for a GPU. paper-cifar10, paper-cifar100, paper-clothing1m: the "
        "paper's own settings.",
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Change a setting of the preset, e.g. srl.steps=500; may be repeated. "
        "config.json of a run lists them all.",
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="auto|fp32|bf16",
        show_default="the preset's",
        help="Of the passes, as --set precision=NAME. auto: bf16 on a GPU that has it. "
        "bf16 pays on processors with AVX512-BF16 or AMX too.",
    ),
]
TestData = Annotated[
    Path | None,
    typer.Option(
        "--test",
        metavar="DATA",
        help="Images with true labels, to report accuracy on after each round; "
        "nothing is ever chosen by it. For CIFAR the test batch is read.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings in TOML, on top of those of the preset; every run writes its "
        "own as config.toml.",
    ),
]
OwnEncoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="MODULE:FACTORY",
        help="Your own network: a function without arguments that gives a torch "
        "module, images (b, c, h, w) to features (b, d). It is imported from the "
        "current folder or from what is installed; --resume needs it again.",
    ),
]
InitFrom = Annotated[
    Path | None,
    typer.Option(
        "--init",
        metavar="RUN|FILE",
        help="Start from the encoder of another run or model file and leave out "
        "SimCLR, which sees no labels and so is the same for all.",
    ),
]
ResumeFrom = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Go on with this run where it stopped; takes no DATA and no settings.",
    ),
]
RunFolder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        show_default="runs/NAME-001, -002, ...",
        help="Folder to make for the run; never an existing one.",
    ),
]
PathColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default="image, path, file, ...",
        help="Column of the table with the image paths.",
    ),
]
SaveEvery = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", min=0.0, help="Time between checkpoints; 0: every step."
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="The output folder of 'stct correct' (or its corrector.npz), or of 'stct "
        "train' (or its model.safetensors).",
    ),
]
PredictData = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A table, or images as for 'stct train'; labels if any are not looked at.",
    ),
]
PredictFile = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Table to write: .csv, .tsv, .parquet or .jsonl.",
    ),
]
EncoderNow = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME|PATH",
        help="Where the encoder of 'stct correct --encoder' is now, if it has moved; "
        "another one is refused.",
    ),
]
LeaveOut = Annotated[
    bool,
    typer.Option(
        "--skip-bad",
        help="Leave out images that cannot be read; how many and the first of them "
        "are printed.",
    ),
]
ReplaceFile = Annotated[
    bool, typer.Option("--overwrite", help="Replace FILE if it exists.")
]
