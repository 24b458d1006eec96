"""Commands that show what a correction did, or hand it over: report and export."""

from pathlib import Path

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
    from stct.console import progress
    from stct.report import rebuild_report

    with progress("Writing the report", quiet=quiet):
        notes = rebuild_report(folder, map_kind=map_kind.value, images=images)
    if not quiet:
        print(f"{folder / 'report.html'}: open it in a browser")
        for note in notes:
            print(f"note: {note}")


def export(
    folder: options.ReportFolder,
    to: options.ToolChoice,
    output: options.ExportFolder = None,
    images: options.ExportImages = None,
    quiet: shared.Quiet = False,
) -> None:
    """Hand the correction in DIR over to another tool.

    stct export stct-output --to label-studio
    """
    from stct.console import progress
    from stct.export import export_folder

    target = output or Path(f"stct-{to.value}")
    with progress(f"Writing {target}", quiet=quiet):
        hint = export_folder(folder, to.value, target, images=images)
    if not quiet:
        print(f"{target}: written\n{hint}")
