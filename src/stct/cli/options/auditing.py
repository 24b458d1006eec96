"""The arguments and options of ``stct audit`` and ``stct review``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Purpose(StrEnum):
    """What a person's look is for."""

    GAIN = "gain"
    AUDIT = "audit"


NumRows = Annotated[
    int,
    typer.Option("-n", "--rows", metavar="N", help="Rows to draw; 2 or more."),
]
AuditOut = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The .csv file to write and fill in."
    ),
]
Top = Annotated[
    int,
    typer.Option(metavar="N", min=1, help="Rows to write, the most worthwhile first."),
]
For = Annotated[
    Purpose,
    typer.Option(
        "--for",
        help="gain: rows where a look puts the most labels right. audit: rows at "
        "random, which alone can say how many labels are right.",
    ),
]
CheckOut = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FILE", help="The .csv file to write."),
]
