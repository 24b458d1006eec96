"""Options that several commands of ``stct`` take, each with its help text."""

from pathlib import Path
from typing import Annotated

import typer

EmbeddingsFile = Annotated[
    Path | None,
    typer.Option(
        "--embeddings",
        metavar="FILE",
        help="One row of numbers per row of TABLE. .npy: a 2-d array. .npz: the array "
        "'embeddings' (or its only 2-d array) and optional 'ids'. .parquet: one list "
        "column or numeric columns, and optional ids. .csv, .tsv, .jsonl: the same. A "
        "folder: .npy or .parquet shards in the order of their names, read as needed, "
        "so they may be larger than memory, as may one large file. Joined to TABLE by "
        "id when both have ids (compared as text), otherwise row by row.",
    ),
]
EmbeddingsColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Without --embeddings: the column of TABLE that holds lists of numbers. "
        "With it: which array or list column of FILE to take.",
    ),
]
LabelColumn = Annotated[
    str, typer.Option(metavar="NAME", help="Column of TABLE with the labels.")
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default="'id' if there is one, else rows are numbered from 0",
        help="Column with a different id in each row.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="CHAR",
        show_default="guessed from the first line, and said",
        help="What is between the columns of a .csv or .tsv TABLE: ; or tab or |.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        show_default="utf-8; else guessed, and said",
        help="Of the text in TABLE, such as cp1252, latin-1, utf-16 or shift_jis.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same result.")]
OverwriteFolder = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace DIR if it is empty or an earlier output of stct; never a folder "
        "with other files in it.",
    ),
]
OverwriteFile = Annotated[
    bool, typer.Option("--overwrite", help="Replace OUT if it exists.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing on success.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON and nothing else.")
]
OutFolder = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to make.")
]
Version = Annotated[
    bool, typer.Option("--version", is_eager=True, help="Print the version.")
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad",
        help="Leave out images that cannot be read and rows without text; they are "
        "listed in the summary.",
    ),
]
