"""The file summary.json: written with a checksum, checked when it is read."""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

from stct.console import escape_json
from stct.data.files import parse_json, read_text
from stct.data.outputs import WRITTEN_BY
from stct.data.schema import (
    Field,
    check_fields,
    is_count,
    is_number,
    is_share,
    is_text,
    list_of,
    maybe,
    object_of,
)

ACTIONS = ("keep", "relabel", "abstain", "fill")
_CHECKSUM = "checksum"


def as_json(summary: dict[str, Any]) -> str:
    """Write a summary as JSON: a line for each entry, the last a checksum of them."""
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    lines = [
        escape_json(f"  {write(name)}: {write(value)}")
        for name, value in summary.items()
        if name != _CHECKSUM  # of the summary as it was before
    ]
    body = "{\n" + ",\n".join(lines)
    return f'{body},\n  "{_CHECKSUM}": "{_sha256(body)}"\n}}\n'


def read_summary(path: Path) -> dict[str, Any]:
    """Read a file of `as_json`, which nobody has changed since.

    Before version 0.2 there was no checksum: then only what it says is checked.

    Raises
    ------
    ValueError
        If it is no such file, or damaged.
    """
    text = read_text(path)
    body, _, checksum = text.rpartition(f',\n  "{_CHECKSUM}": "')
    if body and checksum != f'{_sha256(body)}"\n}}\n':
        raise ValueError(f"{path}: damaged or changed, its checksum does not fit")
    summary = parse_json(body + "\n}" if body else text, path)
    if not isinstance(summary, dict) or summary.get("written_by") != WRITTEN_BY:
        raise ValueError(f"{path}: not a summary of stct")
    return summary


def check_correction(summary: dict[str, Any], path: Path) -> None:
    """Raise when a summary is not what a correction writes."""
    if "class_names" not in summary:
        raise ValueError(f"{path}: not the summary of a correction")
    check_fields(summary, _CORRECTION, path)
    count = len(summary["class_names"])
    per_class = {
        "learnable": Field("true or false for each class", list_of(_is_bool, count)),
        "transition_matrix": Field(
            "a row of shares for each class",
            list_of(list_of(maybe(is_share), count), count),
        ),
    }
    check_fields(summary, per_class, path)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_label(value: Any) -> bool:
    return type(value) in (str, bool) or is_number(value)


def _is_accuracy(value: Any) -> bool:
    interval = list_of(maybe(is_share), 2)
    return object_of(maybe(is_share), "before", "after")(value) and object_of(
        interval, "before_interval", "after_interval"
    )(value)


_CORRECTION = {
    "class_names": Field("a list of labels", list_of(_is_label)),
    "rows": Field("a whole number", is_count),
    "noise_rate": Field("null or a share", maybe(is_share), required=False),
    "estimated_accuracy": Field("shares and their intervals", _is_accuracy),
    "actions": Field("a count of rows for each", object_of(is_count, *ACTIONS)),
    "termination_condition": Field("text", is_text, required=False),
    "method": Field("text", is_text, required=False),
    "label_column": Field("text", is_text, required=False),
    "id_column": Field("null or text", maybe(is_text), required=False),
    "embedding_columns": Field("a whole number", is_count, required=False),
    "parameters": Field(
        "an object with min_odds from 1", lambda v: _has_odds(v), required=False
    ),
    "inputs": Field(
        "a file for each input", object_of(object_of(is_text, "file")), required=False
    ),
    "versions": Field("an object of texts", object_of(is_text), required=False),
    "notes": Field("a list of texts", list_of(is_text)),
    "files": Field("a list of texts", list_of(is_text)),
    "sha256": Field("a digest for each file", object_of(is_text), required=False),
}


def _has_odds(value: Any) -> bool:
    odds: Any = value.get("min_odds", 1.0) if isinstance(value, dict) else None
    return is_number(odds) and bool(odds >= 1.0)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
