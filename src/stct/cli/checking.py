"""``stct check``: a gate for pipelines, by the share of wrong labels."""

import json

import typer

from stct.cli.later import judge_later
from stct.cli.options import checking as options
from stct.cli.options import shared


def check(
    table: options.CheckedTable,
    max_wrong: options.MaxWrong,
    embeddings: shared.EmbeddingsFile = None,
    embeddings_column: shared.EmbeddingsColumn = None,
    audit: options.AuditFile = None,
    earlier: options.CheckedBy = None,
    label_column: shared.LabelColumn = "label",
    id_column: shared.IdColumn = None,
    sep: shared.Separator = None,
    encoding: shared.Encoding = None,
    junit: options.JUnitFile = None,
    overwrite: options.ReplaceJUnit = False,
    quiet: options.QuietCheck = False,
    json_output: shared.AsJson = False,
) -> None:
    """Check that no more than a share of the labels of TABLE is wrong.

    The exit code is 0 where the whole interval of the share is within --max-wrong, 1
    where all of it is above, 3 where the data cannot tell, and 2 after an error. With
    --audit the interval is exact and comes from the verified rows alone; otherwise it
    is the estimate of 'stct correct'.

    [bold]Examples[/bold]

    stct check photos.csv --embeddings photos.npy --max-wrong 0.05

    stct check new.csv --embeddings new.npy --from stct-output --max-wrong 0.05

    stct check photos.csv --audit audit.csv --max-wrong 0.05 --junit check.xml
    """
    from stct.console import progress
    from stct.data.gate import judge_share, share_by_audit, share_of, write_junit
    from stct.data.inputs import fit_inputs, read_inputs
    from stct.data.outputs import check_file

    if not 0.0 < max_wrong < 1.0:
        raise ValueError(f"--max-wrong must be between 0 and 1, got {max_wrong:g}")
    if junit is not None:
        check_file(junit, overwrite=overwrite)
    silent = quiet or json_output
    if audit is not None:
        share = share_by_audit(
            table,
            audit,
            label_column=label_column,
            id_column=id_column,
            sep=sep,
            encoding=encoding,
        )
    elif earlier is not None:
        judged = judge_later(
            earlier,
            table,
            embeddings=embeddings,
            embeddings_column=embeddings_column,
            label_column=label_column,
            id_column=id_column,
            sep=sep,
            encoding=encoding,
            quiet=silent,
        )
        share = share_of(judged.corrector, judged.inputs)
    else:
        from stct import LabelCorrector

        with progress(f"Reading {table}", quiet=silent):
            inputs = read_inputs(
                table,
                embeddings=embeddings,
                embeddings_column=embeddings_column,
                label_column=label_column,
                id_column=id_column,
                sep=sep,
                encoding=encoding,
            )
        corrector = LabelCorrector()
        with progress("Estimating", quiet=silent) as report:
            fit_inputs(corrector, inputs, report)
        share = share_of(corrector, inputs)
    verdict = judge_share(table, share, max_wrong)
    if junit is not None:
        write_junit(junit, verdict, overwrite=overwrite)
    if json_output:
        print(json.dumps(verdict.as_json(), ensure_ascii=False))
    elif not quiet or verdict.exit_code:
        print(verdict.sentence)
    if verdict.exit_code:
        raise typer.Exit(verdict.exit_code)
