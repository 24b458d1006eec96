"""The arguments and options of ``stct apply``, ``revert`` and ``noise``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Kind(StrEnum):
    """How noise is made."""

    SYMMETRIC = "symmetric"
    SYMMETRIC_STRICT = "symmetric-strict"
    ASYMMETRIC = "asymmetric"
    PAIR = "pair"
    INSTANCE = "instance"
    MATRIX = "matrix"


TableFile = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A .csv, .tsv, .parquet or .jsonl file.")
]
PatchFile = Annotated[
    Path,
    typer.Argument(
        metavar="PATCH",
        help="The patch.csv of 'stct correct', or for 'apply' the check.csv of "
        "'stct review'.",
    ),
]
OutFile = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="OUT", help="File to write, same ending as TABLE."
    ),
]
SkipConflicts = Annotated[
    bool,
    typer.Option(
        "--skip-conflicts",
        help="Leave rows alone whose label is not the one that PATCH expects, and "
        "change the others. Without it nothing is written if there is such a row.",
    ),
]
KindChoice = Annotated[
    Kind,
    typer.Option(
        help="symmetric: a uniform draw from all classes, the true one too. "
        "symmetric-strict: never the true one. asymmetric: along --map. pair: to "
        "the next class. instance: depends on the embedding. matrix: by --matrix."
    ),
]
RATE = 0.5
Rate = Annotated[
    float | None,
    typer.Option(
        show_default=str(RATE), help="Share of labels, from 0 to 1; not for matrix."
    ),
]
FlipMap = Annotated[
    str | None,
    typer.Option(
        "--map",
        metavar="MAP",
        help="For asymmetric: cifar10 or cifar100 (labels 0, 1, ...), or a .json "
        'file such as {"cat": "dog"}.',
    ),
]
MatrixFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="For matrix: a .npy or headerless .csv file; row = clean, column = "
        "given, classes in the order of their numbers or text.",
    ),
]
KeepClean = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Keep the old labels in a new column NAME."),
]
