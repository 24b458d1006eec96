"""Commands that ask a person for labels: audit and review."""

from pathlib import Path

from stct.cli.options import auditing as options
from stct.cli.options import reporting, shared


def audit(
    folder: reporting.ReportFolder,
    rows: options.NumRows = 200,
    output: options.AuditOut = Path("audit.csv"),
    images: reporting.ImagesFolder = None,
    seed: shared.Seed = 0,
    overwrite: shared.OverwriteFile = False,
    quiet: shared.Quiet = False,
) -> None:
    """Draw rows of DIR at random, for a person to verify.

    [bold]Examples[/bold]

    stct audit stct-output -n 200 -o audit.csv

    Open report.html in DIR, which now asks for the label of each of these rows without
    showing the given one, and save audit.csv there; or fill in the column 'verified'
    of the file. Then:

    stct correct photos.csv --embeddings photos.npy --audit audit.csv -o audited

    The rows are drawn from strata of action and confidence. The column 'weight' is
    1 / the probability that a row is drawn. The same seed with a larger -n draws the
    same rows and more.
    """
    from stct.console import progress
    from stct.data.audit_sample import audit_table, draw_audit
    from stct.data.corrected import read_corrected
    from stct.data.outputs import check_file, whole_file
    from stct.data.tables import write_table
    from stct.report import ask_for_labels

    _check_csv(output)
    check_file(output, overwrite=overwrite)
    with progress("Drawing rows", quiet=quiet):
        corrected = read_corrected(folder)
        sample = draw_audit(corrected, rows, seed)
        with whole_file(output, overwrite=overwrite) as path:
            write_table(path, audit_table(corrected, sample))
        notes = ask_for_labels(folder, sample.rows, sample.weight, images=images)
    if not quiet:
        print(f"{output}: {rows:,} rows drawn at random; fill in 'verified', or")
        print(f"{folder / 'report.html'}: open it in a browser and start the audit")
        for note in notes:
            print(f"note: {note}")


def review(
    folder: reporting.ReportFolder,
    top: options.Top = 100,
    purpose: options.For = options.Purpose.GAIN,
    output: options.CheckOut = Path("check.csv"),
    seed: shared.Seed = 0,
    overwrite: shared.OverwriteFile = False,
    quiet: shared.Quiet = False,
) -> None:
    """Write the rows of DIR that a person should look at next.

    [bold]Examples[/bold]

    stct review stct-output --top 100 -o check.csv

    Fill in the column 'label', then take the answers as they are, or correct again
    with them:

    stct apply check.csv photos.csv -o photos-checked.csv

    stct correct photos.csv --embeddings photos.npy --locked check.csv -o again

    [bold]Two different questions[/bold]

    --for gain asks which labels to put right: rows are ordered by the probability that
    their label is wrong, changed or not, without near-duplicates, spread over classes.
    They are the worst rows, so the share of wrong labels among them says nothing about
    all rows. --for audit asks how many labels are right: rows are drawn at random and
    few of them are wrong. Such rows estimate the accuracy and calibrate the correction
    (--audit), but put few labels right.
    """
    from stct.console import progress
    from stct.data.audit_sample import audit_table, draw_audit
    from stct.data.check_files import make_checks
    from stct.data.corrected import read_corrected
    from stct.data.outputs import check_file, whole_file
    from stct.data.tables import write_table
    from stct.report import rows_worth_checking

    _check_csv(output)
    check_file(output, overwrite=overwrite)
    with progress("Choosing rows", quiet=quiet):
        corrected = read_corrected(folder)
        expected = None
        if purpose is options.Purpose.AUDIT:
            sample = draw_audit(corrected, top, seed)
            table = audit_table(corrected, sample)
        else:
            rows, worth = rows_worth_checking(corrected, top)
            table = make_checks(corrected, rows.tolist(), worth.tolist())
            expected = float(worth.sum())
        with whole_file(output, overwrite=overwrite) as path:
            write_table(path, table)
    if not quiet:
        column = "verified" if expected is None else "label"
        print(f"{output}: {table.num_rows:,} rows; fill in {column!r}")
        if expected is not None:
            print(f"about {expected:.0f} of them are expected to be wrong as they are")


def _check_csv(output: Path) -> None:
    if output.suffix.lower() != ".csv":
        raise ValueError(f"{output}: must end in .csv")
