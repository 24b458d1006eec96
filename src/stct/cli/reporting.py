"""Commands that show what a correction did, or hand it over: report and export."""

from pathlib import Path

from stct.cli.extras import TRAINING, require
from stct.cli.options import reporting as options
from stct.cli.options import shared


def report(
    folder: options.ReportFolder,
    map_kind: options.MapChoice = options.Map.PCA,
    images: options.ImagesFolder = None,
    quiet: shared.Quiet = False,
) -> None:
    """Make report.html in DIR again, from the files there.

    stct report stct-output --map tsne
    """
    from stct.console import progress, say
    from stct.report import rebuild_report

    with progress("Writing the report", quiet=quiet):
        notes = rebuild_report(folder, map_kind=map_kind.value, images=images)
    if not quiet:
        say(f"{folder / 'report.html'}: open it in a browser")
        for note in notes:
            say(f"note: {note}")


def export(
    folder: options.ReportFolder,
    to: options.ToolChoice,
    output: options.ExportFolder = None,
    images: options.ExportImages = None,
    top: options.Top = None,
    quiet: shared.Quiet = False,
) -> None:
    """Hand the correction in DIR over to another tool, or its trained model.

    stct export stct-output --to label-studio --top 100
    """
    from stct.console import progress
    from stct.export import export_folder

    if to.value == "onnx":
        require(*TRAINING, extra="train")
        from stct.train.onnx_file import write_onnx

        target = output or Path("model.onnx")
        with progress(f"Writing {target}", quiet=quiet):
            write_onnx(folder, target)
        if not quiet:
            print(f"{target}: images, uint8 (n, h, w, c), to probabilities (n, C)")
        return
    target = output or Path(f"stct-{to.value}")
    with progress(f"Writing {target}", quiet=quiet):
        hint = export_folder(folder, to.value, target, images=images, top=top)
    if not quiet:
        print(f"{target}: written\n{hint}")


def import_(
    annotations: options.AnnotationsFile,
    folder: options.ExportedFolder = None,
    output: options.DecisionsFile = Path("decisions.csv"),
    overwrite: shared.OverwriteFile = False,
    quiet: shared.Quiet = False,
) -> None:
    """Make decisions of what people annotated in another tool.

    stct import annotations.json stct-output

    Rows are decided by the majority of their annotators. Give the decisions to
    'stct correct --locked'.
    """
    from stct.data.annotation_files import read_annotations
    from stct.data.corrected import read_corrected
    from stct.data.outputs import check_file, whole_file
    from stct.data.tables import write_table

    if output.suffix.lower() != ".csv":
        raise ValueError(f"{output}: decisions are a .csv file")
    check_file(output, overwrite=overwrite)
    ids = classes = None
    if folder is not None:
        corrected = read_corrected(folder)
        ids = corrected.ids
        classes = [corrected.encoded(label) for label in corrected.classes]
    found = read_annotations(annotations, ids=ids, classes=classes)
    with whole_file(output, overwrite=overwrite) as path:
        write_table(path, found.decisions)
    if quiet:
        return
    count = found.decisions.num_rows
    print(f"{output}: {count:,} rows decided, {found.changed:,} get another label")
    if found.open:
        print(f"{found.open:,} rows have no annotation")
    if found.disputed:
        names = ", ".join(found.disputed[:5])
        print(
            f"{len(found.disputed):,} rows have no majority and are left out: {names}"
        )
    print(f"next: stct correct ... --locked {output}")
