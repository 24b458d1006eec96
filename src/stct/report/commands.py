"""Command lines that the page shows, quoted for a shell.

They run in the folder where the run was started, with what the page has saved there.
The page puts its own folder in place of ``{DIR}``, and the name of the folder of the
next round in place of ``{NEXT}``.
"""

import shlex
from typing import Any

from stct.data.corrected import Corrected


def list_commands(corrected: Corrected) -> list[list[str]]:
    """Give command lines to copy, each after what it does."""
    summary = corrected.summary
    name = table_name(summary)
    table = "TABLE" if name is None else shlex.quote(name)
    if summary.get("command") and name is not None:
        table = shlex.quote(summary["command"][2])
    out = shlex.quote(f"corrected.{corrected.table.format}")
    lines = [
        [
            "Write your table with the patch made",
            f"stct apply patch.csv {table}{_columns(summary)} -o {out}",
        ]
    ]
    if summary.get("label_column_made"):
        lines = []  # the table has no column that the patch could change
    again = _again(corrected, "--locked decisions.csv")
    if again is not None:
        lines.append(["Correct again, your decisions locked", again])
    lines += [
        [
            "Draw rows at random, to know how many labels are right",
            "stct audit {DIR} -n 200 -o audit.csv",
        ],
        ["Hand over to another tool", "stct export {DIR} --to label-studio"],
    ]
    return lines


def with_audit(corrected: Corrected) -> str:
    """Give the command that corrects again with the audit."""
    return (
        _again(corrected, "--audit audit.csv") or "stct correct ... --audit audit.csv"
    )


def table_name(summary: dict[str, Any]) -> str | None:
    """Give the name of the table that was corrected, if there was one."""
    table = (summary.get("inputs") or {}).get("table")
    return str(table["file"]) if table else None


def _again(corrected: Corrected, more: str) -> str | None:
    """Give the command of the next round."""
    summary = corrected.summary
    words = summary.get("command")
    if words:
        start = shlex.join(words)
    elif (name := table_name(summary)) is not None:
        start = f"stct correct {shlex.quote(name)}{_source(summary)}{_columns(summary)}"
    else:
        return None
    return f"{start} {more} --since {{DIR}} -o {{NEXT}}"


def _source(summary: dict[str, Any]) -> str:
    source = ""
    for kind in ("embeddings", "pred_probs", "annotations"):
        if kind in summary["inputs"]:
            file = shlex.quote(summary["inputs"][kind]["file"])
            source += f" --{kind.replace('_', '-')} {file}"
    return source or " ..."


def _columns(summary: dict[str, Any]) -> str:
    more = ""
    if summary.get("label_column", "label") != "label":
        more += f" --label-column {shlex.quote(summary['label_column'])}"
    if summary.get("id_column") not in (None, "id"):
        more += f" --id-column {shlex.quote(summary['id_column'])}"
    return more
