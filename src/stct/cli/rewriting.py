"""Commands that write a table again with other labels: apply, revert and noise."""

import json
import sys
from pathlib import Path
from typing import Any

from stct.cli.options import rewriting as options
from stct.cli.options import shared


def apply(
    patch: options.PatchFile,
    table: options.TableFile,
    output: options.OutFile,
    label_column: shared.LabelColumn = "label",
    id_column: shared.IdColumn = None,
    sep: shared.Separator = None,
    encoding: shared.Encoding = None,
    skip_conflicts: options.SkipConflicts = False,
    overwrite: shared.OverwriteFile = False,
    quiet: shared.Quiet = False,
    json_output: shared.AsJson = False,
) -> None:
    """Write TABLE with the changes of PATCH made.

    A row whose label is not the 'old' one of PATCH is a conflict: it is listed and
    never overwritten.

    stct apply stct-output/patch.csv photos.csv -o photos-corrected.csv

    PATCH may be the check.csv of 'stct review' as well: rows whose label a person has
    filled in get it, from the given label or from the suggested one.

    stct apply check.csv photos-corrected.csv -o photos-checked.csv
    """
    _patch(
        patch,
        table,
        output,
        label_column=label_column,
        id_column=id_column,
        sep=sep,
        encoding=encoding,
        back=False,
        skip_conflicts=skip_conflicts,
        overwrite=overwrite,
        quiet=quiet,
        json_output=json_output,
    )


def revert(
    patch: options.PatchFile,
    table: options.TableFile,
    output: options.OutFile,
    label_column: shared.LabelColumn = "label",
    id_column: shared.IdColumn = None,
    sep: shared.Separator = None,
    encoding: shared.Encoding = None,
    skip_conflicts: options.SkipConflicts = False,
    overwrite: shared.OverwriteFile = False,
    quiet: shared.Quiet = False,
    json_output: shared.AsJson = False,
) -> None:
    """Write TABLE with the changes of PATCH taken back: the inverse of 'apply'.

    A row whose label is not the 'new' one of PATCH is a conflict: it is listed and
    never overwritten.

    stct revert stct-output/patch.csv photos-corrected.csv -o photos-as-before.csv
    """
    _patch(
        patch,
        table,
        output,
        label_column=label_column,
        id_column=id_column,
        sep=sep,
        encoding=encoding,
        back=True,
        skip_conflicts=skip_conflicts,
        overwrite=overwrite,
        quiet=quiet,
        json_output=json_output,
    )


def _patch(
    patch: Path,
    table_path: Path,
    output: Path,
    *,
    label_column: str,
    id_column: str | None,
    sep: str | None,
    encoding: str | None,
    back: bool,
    skip_conflicts: bool,
    overwrite: bool,
    quiet: bool,
    json_output: bool,
) -> None:
    from stct.console import progress, say
    from stct.data.patches import apply_patch, describe, reverse
    from stct.data.tables import read_table

    _check_output(output, table_path, overwrite=overwrite)
    with progress(f"Patching {table_path}", quiet=quiet or json_output):
        changes = _read_changes(patch, back=back)
        patched = apply_patch(
            reverse(changes) if back else changes,
            read_table(table_path, sep=sep, encoding=encoding),
            table_path,
            label_column=label_column,
            id_column=id_column,
        )
    refused = patched.conflicts and not skip_conflicts
    if refused or not json_output:
        for line in describe(patched.conflicts):
            say(line, file=sys.stderr)
    if refused:
        raise ValueError(
            f"{table_path}: {len(patched.conflicts)} of {len(changes)} labels are not "
            "what the patch expects; nothing was written (see --skip-conflicts)"
        )
    with progress(f"Writing {output}", quiet=quiet or json_output):
        _write_table_file(output, patched.table, overwrite=overwrite)
    if json_output:
        conflicts = [conflict._asdict() for conflict in patched.conflicts]
        print(json.dumps({"changed": patched.num_changed, "conflicts": conflicts}))
    elif not quiet:
        say(f"{patched.num_changed:,} labels changed in {output}")


def _read_changes(path: Path, *, back: bool) -> Any:
    """Read a patch, or the answers in a check file."""
    from stct.data.check_files import is_check_file, read_checks
    from stct.data.patches import read_patch
    from stct.data.tables import read_table

    if path.suffix.lower() == ".csv":
        table = read_table(path)
        if is_check_file(table):
            if back:
                raise ValueError(
                    f"{path}: a check file cannot be taken back, only a patch can"
                )
            return read_checks(table, path)
    return read_patch(path)


def noise(
    table: options.TableFile,
    output: options.OutFile,
    kind: options.KindChoice = options.Kind.SYMMETRIC,
    rate: options.Rate = None,
    seed: shared.Seed = 0,
    flips: options.FlipMap = None,
    matrix: options.MatrixFile = None,
    embeddings: shared.EmbeddingsFile = None,
    embeddings_column: shared.EmbeddingsColumn = None,
    label_column: shared.LabelColumn = "label",
    id_column: shared.IdColumn = None,
    keep_clean: options.KeepClean = None,
    overwrite: shared.OverwriteFile = False,
    quiet: shared.Quiet = False,
    json_output: shared.AsJson = False,
) -> None:
    """Write TABLE with noise of a known kind in its labels, for experiments.

    stct noise photos.csv --kind symmetric --rate 0.5 --seed 0 -o noisy.csv
    """
    from stct.console import progress, say
    from stct.data.columns import read_labels
    from stct.data.embeddings import load_embeddings
    from stct.data.noising import add_noise, keep_column
    from stct.data.tables import read_table

    for option, value, owner in (
        ("--map", flips, options.Kind.ASYMMETRIC),
        ("--matrix", matrix, options.Kind.MATRIX),
        ("--embeddings", embeddings, options.Kind.INSTANCE),
        ("--embeddings-column", embeddings_column, options.Kind.INSTANCE),
    ):
        if value is not None and kind is not owner:
            raise ValueError(
                f"{option} goes with --kind {owner.value}, not {kind.value}"
            )
    if rate is not None and kind is options.Kind.MATRIX:
        raise ValueError("--kind matrix takes no --rate: the matrix has the rates")
    _check_output(output, table, overwrite=overwrite)
    silent = quiet or json_output
    with progress(f"Reading {table}", quiet=silent):
        clean = read_table(table)
        labels = read_labels(clean, table, label_column)
        vectors = None
        if kind is options.Kind.INSTANCE:
            vectors, _ = load_embeddings(
                clean,
                table,
                file=embeddings,
                column=embeddings_column,
                id_column=id_column,
            )
    with progress(f"Writing {output}", quiet=silent):
        noisy = add_noise(
            labels,
            kind.value,
            rate=options.RATE if rate is None else rate,
            seed=seed,
            flips=flips,
            matrix=matrix,
            embeddings=vectors,
            where=f"{table}: column {label_column!r}",
        )
        result = clean.with_values(label_column, noisy.labels)
        if keep_clean is not None:
            result = keep_column(result, clean.columns[label_column], keep_clean)
        _write_table_file(output, result, overwrite=overwrite)
    rates = {"nominal_rate": noisy.nominal_rate, "actual_rate": noisy.actual_rate}
    if json_output:
        print(json.dumps({"kind": kind.value, "seed": seed, **rates}))
    elif not quiet:
        say(
            f"{output}: {kind.value} noise, nominal rate {noisy.nominal_rate:.2%}, "
            f"actual rate {noisy.actual_rate:.2%}"
        )


def _check_output(output: Path, table: Path, *, overwrite: bool) -> None:
    from stct.data.outputs import check_file
    from stct.data.tables import table_format

    kind = table_format(table)
    if not output.name.lower().removesuffix(".gz").endswith(f".{kind}"):
        raise ValueError(f"{output}: must end in .{kind} like {table}")
    table_format(output)
    check_file(output, overwrite=overwrite)


def _write_table_file(output: Path, table: Any, *, overwrite: bool) -> None:
    from stct.data.outputs import whole_file
    from stct.data.tables import write_table

    with whole_file(output, overwrite=overwrite) as path:
        write_table(path, table, compressed=output.suffix.lower() == ".gz")
