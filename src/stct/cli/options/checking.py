"""The arguments and options of ``stct check``."""

from pathlib import Path
from typing import Annotated

import typer

CheckedTable = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="A .csv, .tsv, .parquet or .jsonl file."),
]
MaxWrong = Annotated[
    float,
    typer.Option(
        metavar="SHARE", help="Largest share of wrong labels that passes, e.g. 0.05."
    ),
]
AuditFile = Annotated[
    Path | None,
    typer.Option(
        "--audit",
        metavar="FILE",
        help="An audit.csv (id, given, verified, weight) with rows of TABLE that were "
        "drawn at random and looked at by a person; no embeddings are needed then.",
    ),
]
CheckedBy = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="DIR",
        help="Judge TABLE with the model of an earlier output folder of 'stct "
        "correct', instead of fitting one to TABLE itself.",
    ),
]
JUnitFile = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Also write the result as JUnit XML."),
]
ReplaceJUnit = Annotated[
    bool, typer.Option("--overwrite", help="Replace the file of --junit if it exists.")
]
QuietCheck = Annotated[bool, typer.Option("--quiet", help="Print nothing on exit 0.")]
