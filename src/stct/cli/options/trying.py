"""The arguments and options of ``stct bench``, ``demo`` and ``download``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

BenchSource = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE|NPZ",
        help="A table with trusted labels (.csv, .tsv, .parquet, .jsonl), or an .npz "
        "file with arrays 'embeddings' (or 'train') and 'labels' (or 'y_train').",
    ),
]
BenchLabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        metavar="NAME",
        show_default="label",
        help="Column or array with the trusted labels: noise goes into them, and the "
        "methods are scored against them.",
    ),
]
NoiseList = Annotated[
    str,
    typer.Option(
        "--noise",
        metavar="KIND:RATE,...",
        help="symmetric, symmetric-strict, asymmetric, pair or instance, each with a "
        "rate from 0 to 1; none for --noisy-column only.",
    ),
]
BenchFlipMap = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="MAP",
        show_default="each class to the one with the nearest mean",
        help='For asymmetric: cifar10, cifar100, or a .json file as {"cat": "dog"}.',
    ),
]
NoisyColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--noisy-column",
        metavar="NAME",
        show_default="for an .npz file the arrays human_*",
        help="Column or array with labels as somebody gave them; can be repeated.",
    ),
]
Battery = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        show_default="all that are installed",
        help="Some of given, probe, knn, cleanlab, paper, split, loo.",
    ),
]
NumSeeds = Annotated[
    int, typer.Option("--seeds", min=1, help="How often each noise is drawn.")
]
Training = Annotated[
    bool,
    typer.Option(
        "--training/--no-training",
        help="Train a network too, or correct from the pixels alone.",
    ),
]


class DataSet(StrEnum):
    """A data set that can be downloaded."""

    CIFAR10 = "cifar10"
    CIFAR100 = "cifar100"


DataSetName = Annotated[
    DataSet, typer.Argument(metavar="NAME", help="cifar10 or cifar100.")
]
DownloadFolder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="Where the .tar.gz goes; made if needed."),
]
Mirror = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A folder on the network that has the .tar.gz, instead of its authors' "
        "page; the MD5 must be the same.",
    ),
]
