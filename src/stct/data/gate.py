"""Is the share of wrong labels small enough? The verdict of ``stct check``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from stct.correction.design_based import clopper_pearson, estimate_share
from stct.data.audits import read_audit
from stct.data.columns import (
    encode_label,
    is_missing,
    is_text_column,
    read_ids,
    read_labels,
)
from stct.data.inputs import Inputs
from stct.data.outputs import whole_file
from stct.data.tables import read_table

if TYPE_CHECKING:
    from stct.estimator import LabelCorrector

PASS, FAIL, UNDECIDED = 0, 1, 3  # exit codes; 2 is an error
_MOST_ROWS = 2**20  # of an audit that is proposed


class WrongShare(NamedTuple):
    """Share of wrong labels with an interval of 95%, and where it comes from."""

    value: float | None  # None: the features say nothing of it
    interval: tuple[float, float]
    num_rows: int  # labelled rows of the table
    verified: int | None  # rows that a person looked at; None: estimated
    notes: list[str]


class Verdict(NamedTuple):
    """What a pipeline should do."""

    table: Path
    share: WrongShare
    max_wrong: float
    exit_code: int
    audit_rows: int | None  # verified rows that would decide; None if none would

    @property
    def name(self) -> str:
        """The exit code in a word."""
        return {PASS: "pass", FAIL: "fail", UNDECIDED: "undecided"}[self.exit_code]

    @property
    def limit(self) -> str:
        """What is allowed, in per cent."""
        return f"{100.0 * self.max_wrong:.4g}%"

    @property
    def sentence(self) -> str:
        """One line for people."""
        if self.share.value is None:
            return (
                f"undecided: {self.table}: the features say nothing of the "
                f"{self.share.num_rows:,} labels; an audit of random rows would tell"
            )
        low, high = self.share.interval
        by = "estimated"
        if self.share.verified is not None:
            by = f"from {self.share.verified:,} verified rows"
        found = (
            f"{self.table}: {self.share.value:.1%} of {self.share.num_rows:,} labels "
            f"wrong (between {low:.1%} and {high:.1%}, {by})"
        )
        limit = f"at most {self.limit} is allowed"
        if self.exit_code == PASS:
            return f"pass: {found}; {limit}"
        if self.exit_code == FAIL:
            return f"fail: {found}; {limit}"
        if self.audit_rows is None:
            more = "too close to the limit for any audit"
        else:
            more = f"an audit of about {self.audit_rows:,} random rows would tell"
        return f"undecided: {found}; {limit}; {more}"

    def as_json(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "result": self.name,
            "exit_code": self.exit_code,
            "table": str(self.table),
            "max_wrong": self.max_wrong,
            "wrong": self.share.value,
            "interval": list(self.share.interval),
            "rows": self.share.num_rows,
            "verified_rows": self.share.verified,
            "audit_rows_needed": self.audit_rows,
            "notes": self.share.notes,
        }


def share_of(corrector: "LabelCorrector", inputs: Inputs) -> WrongShare:
    """Take the share of wrong given labels from a fit, or from a judged batch."""
    accuracy = corrector.estimated_accuracy_
    low, high = accuracy.before_interval
    notes = [*inputs.notes, *corrector.notes_]
    count = int(np.sum(~inputs.missing))
    if corrector.termination_condition_ == "nothing_learnt":
        return WrongShare(None, (0.0, 1.0), count, None, notes)
    return WrongShare(
        1.0 - accuracy.before, (1.0 - high, 1.0 - low), count, None, notes
    )


def share_by_audit(
    path: Path,
    audit: Path,
    *,
    label_column: str,
    id_column: str | None,
    sep: str | None = None,
    encoding: str | None = None,
) -> WrongShare:
    """Estimate the share from verified rows alone, with an exact interval."""
    table = read_table(path, sep=sep, encoding=encoding)
    if not table.num_rows:
        raise ValueError(f"{path}: the table has no rows")
    labels = read_labels(table, path, label_column)
    _, ids = read_ids(table, path, id_column)
    found = read_audit(
        audit, table, path, label_column=label_column, ids=ids, labels=labels
    )
    text_only = is_text_column(table, label_column)

    def text(label: Any) -> str:
        return encode_label(label, text_only=text_only)

    labelled = sum(not is_missing(label) for label in labels)
    some = [i for i, row in enumerate(found.rows) if not is_missing(labels[row])]
    if not some:
        raise ValueError(f"{audit}: no verified row has a label in {path}")
    right = [text(labels[found.rows[i]]) == text(found.labels[i]) for i in some]
    share = estimate_share(np.array(right), found.weight[some], labelled)
    low, high = share.interval
    return WrongShare(
        1.0 - share.value, (1.0 - high, 1.0 - low), labelled, len(right), []
    )


def judge_share(table: Path, share: WrongShare, max_wrong: float) -> Verdict:
    """Compare the interval with the largest share that is allowed."""
    low, high = share.interval
    code = UNDECIDED
    if high <= max_wrong:
        code = PASS
    elif low > max_wrong:
        code = FAIL
    rows = None
    if code == UNDECIDED and share.value is not None:
        rows = rows_that_decide(share.value, max_wrong, share.num_rows)
    return Verdict(table, share, max_wrong, code, rows)


def rows_that_decide(value: float, limit: float, population: int) -> int | None:
    """Count verified rows whose exact interval would leave out the limit.

    They are taken to be wrong as often as is known now. None if even all rows of the
    table would not do.
    """

    def decides(count: int) -> bool:
        effective = count / max(1.0 - count / population, 1e-9)
        low, high = clopper_pearson(value, effective)
        return high <= limit or low > limit

    few, many = 0, 1
    most = min(population, _MOST_ROWS)
    while not decides(min(many, most)):
        if many >= most:
            return None
        few, many = many, 2 * many
    many = min(many, most)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if decides(middle) else (middle, many)
    return many


def write_junit(path: Path, verdict: Verdict, *, overwrite: bool) -> None:
    """Write the verdict as JUnit XML: a failure, or an error where nobody can tell."""
    failed = verdict.exit_code == FAIL
    undecided = verdict.exit_code == UNDECIDED
    suite = Element(
        "testsuite",
        name="stct check",
        tests="1",
        failures=str(int(failed)),
        errors=str(int(undecided)),
        skipped="0",
    )
    case = SubElement(
        suite,
        "testcase",
        classname="stct.check",
        name=f"{verdict.table.name}: at most {verdict.limit} of labels wrong",
    )
    if failed or undecided:
        kind = "failure" if failed else "error"
        SubElement(case, kind, message=verdict.sentence, type=verdict.name)
    for note in verdict.share.notes:
        SubElement(case, "system-out").text = note
    indent(suite)
    with whole_file(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(
            b'<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suite, "utf-8")
        )
