"""Annotations that people made in another tool, as decisions about rows.

Read are Label Studio's JSON export and Argilla's records, of projects that
``stct export`` has made: tasks and records have the id of the row and the label that
was given. Labels are text as `stct.data.columns.encode_label` writes it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stct.data.columns import name_a_few
from stct.data.files import parse_json, read_text
from stct.data.tables import Table


class Annotated(NamedTuple):
    """One row, and the labels that people chose for it: none, one or more."""

    id: str
    given: str
    labels: list[str]


class Imported(NamedTuple):
    """Decisions about rows, and how many others there are."""

    decisions: Table  # id, label
    changed: int  # decisions that are not the given label
    open: int  # rows that nobody has looked at, or that were skipped
    disputed: list[str]  # ids of rows without a majority


def read_annotations(
    path: Path,
    *,
    ids: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
) -> Imported:
    """Read an export and decide each row by majority.

    Parameters
    ----------
    path : Path
        A .json file.
    ids, classes : sequence of str, optional
        Rows and labels of the correction that was exported: others are refused.

    Raises
    ------
    ValueError
        If it is no such export, or that of another project.
    """
    rows = list(_rows(path))
    names = [row.id for row in rows]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{path}: ids that come more than once: {name_a_few(twice)}")
    if ids is not None:
        known = set(ids)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(
                f"{path}: ids that the correction lacks: {name_a_few(unknown)}; this "
                "is an export of another project"
            )
    if classes is not None:
        wrong = {label for row in rows for label in row.labels} - set(classes)
        if wrong:
            raise ValueError(
                f"{path}: labels that the correction lacks: "
                f"{name_a_few(sorted(wrong))}; this is an export of another project"
            )
    decided: dict[str, str] = {}
    disputed, changed = [], 0
    for row in rows:
        votes = Counter(row.labels).most_common(2)
        if not votes:
            continue
        if len(votes) == 2 and votes[0][1] == votes[1][1]:
            disputed.append(row.id)
            continue
        decided[row.id] = votes[0][0]
        changed += votes[0][0] != row.given
    if not decided:
        raise ValueError(
            f"{path}: {len(rows)} rows, and none with a label that people agree on; "
            "nothing to import yet"
        )
    table = Table(
        "csv", {"id": list(decided), "label": list(decided.values())}, len(decided)
    )
    untouched = len(rows) - len(decided) - len(disputed)
    return Imported(table, changed, untouched, disputed)


def _rows(path: Path) -> Iterator[Annotated]:
    """Read the rows of either format."""
    items = parse_json(read_text(path).removeprefix("\ufeff"), path)
    if not isinstance(items, list) or not items:
        raise ValueError(f"{path}: not an export: it must be a list of tasks")
    for number, item in enumerate(items):
        where = f"{path}: task {number} (counting from 0)"
        if not isinstance(item, dict):
            raise ValueError(f"{where} is not an object")
        if "annotations" in item or "predictions" in item:
            yield _task(item, where)
        elif "responses" in item:
            yield _record(item, where)
        else:
            raise ValueError(
                f"{where} has no annotations; in Label Studio choose Export, JSON "
                "(not JSON-MIN or CSV)"
            )


def _task(item: dict[str, Any], where: str) -> Annotated:
    """Read a task of Label Studio."""
    data = item.get("data")
    row, given = _row_of(data, where)
    labels = []
    for annotation in item.get("annotations") or []:
        if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
            continue
        results = annotation.get("result")
        for result in results if isinstance(results, list) else []:
            if not isinstance(result, dict) or result.get("from_name") != "label":
                continue
            value = result.get("value")
            chosen = value.get("choices") if isinstance(value, dict) else None
            labels.append(_one(chosen, where))
    return Annotated(row, given, labels)


def _record(item: dict[str, Any], where: str) -> Annotated:
    """Read a record of Argilla."""
    metadata = item.get("metadata")
    data = {**metadata, "id": item.get("id")} if isinstance(metadata, dict) else None
    row, given = _row_of(data, where)
    responses = item["responses"]
    answers = responses.get("label") if isinstance(responses, dict) else None
    values = [a.get("value") for a in answers or [] if isinstance(a, dict)]
    return Annotated(row, given, [_one([value], where) for value in values])


def _row_of(data: Any, where: str) -> tuple[str, str]:
    """Give id and given label, which every row of ours has."""
    if not isinstance(data, dict) or not {"id", "given"} <= set(data):
        raise ValueError(
            f"{where} has no id and given label; this is an export of another project, "
            "not of one that 'stct export' made"
        )
    return str(data["id"]), str(data["given"])


def _one(chosen: Any, where: str) -> str:
    """Give the single label that was chosen."""
    if (
        not isinstance(chosen, list)
        or len(chosen) != 1
        or not isinstance(chosen[0], str)
        or not chosen[0]
    ):
        raise ValueError(f"{where}: one label was expected, got {chosen!r}")
    return chosen[0]
