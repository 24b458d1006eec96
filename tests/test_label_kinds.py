"""Labels that are no classes: refused or warned of, in Python and in the command."""

import json
import warnings

import numpy as np
import pytest
from command import run_here

from stct import LabelCorrector
from stct.label_kinds import check_kind

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
PRICES = RNG.normal(size=200).round(3)
SETS = ["a|b", "a", "b|c", "c", "a|c"] * 40
REFUSED = {
    "continuous": (PRICES.tolist(), "NumericLabelChecker"),
    "continuous text": ([str(v) for v in PRICES], "continuous"),
    "ids": ([f"row {i}" for i in range(200)], "ids or free text"),
    "separator": (SETS, r"--multi-label '\|'"),
    "semicolon": ([text.replace("|", "; ") for text in SETS], "--multi-label ';'"),
    "lists": ([["a", "b"], ["a"]] * 100, "several"),
}
WARNED = {
    "stars": ([1, 2, 3, 4, 5] * 40, "order"),
    "half stars": ([1.0, 1.5, 2.0, 2.5, 3.0] * 40, "order"),
    "ages": (list(range(18, 58)) * 5, "40 distinct numbers"),
    "commas": ([text.replace("|", ", ") for text in SETS], "each combination"),
}


def write(path, labels):
    rows = [json.dumps({"label": label}) for label in labels]
    path.write_text("\n".join(rows), encoding="utf-8")
    np.save(path.with_suffix(".npy"), X)


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_alike_before_anything_is_written(tmp_path, kind):
    labels, message = REFUSED[kind]
    with pytest.raises(ValueError, match=message):
        LabelCorrector().fit(X, labels)
    table, out = tmp_path / "t.jsonl", tmp_path / "out"
    write(table, labels)
    with pytest.raises(ValueError, match=message) as error:
        run_here("correct", table, "--embeddings", table.with_suffix(".npy"), "-o", out)
    assert "t.jsonl: column 'label'" in str(error.value)
    assert not out.exists()


@pytest.mark.parametrize("kind", WARNED)
def test_warned_of_alike(tmp_path, kind):
    labels, message = WARNED[kind]
    with pytest.warns(UserWarning, match=message):
        LabelCorrector().fit(X, labels)
    if kind == "stars":  # the command says it in the same words
        table, out = tmp_path / "t.jsonl", tmp_path / "out"
        write(table, labels)
        embeddings = table.with_suffix(".npy")
        run_here("correct", table, "--embeddings", embeddings, "-o", out, "--quiet")
        notes = json.loads((out / "summary.json").read_text())["notes"]
        assert sum(message in note for note in notes) == 1


@pytest.mark.parametrize(
    "classes",
    [
        range(10),
        range(1000),
        [1, 2],
        [1, 2, 3],
        ["0", "1", "2", "3", "4"],
        [0.5, 1.0],
        [False, True],
        ["Sports, Outdoors", "Toys", "Books, Films"],
        ["b|w", "colour"],
        ["AC/DC", "Abba"],
        [("a", 1), ("b", 2)],
    ],
)
def test_classes_are_not_suspected(classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_kind(list(classes), 10_000) is None


def test_an_indicator_matrix_is_not_taken_for_annotators_in_silence():
    Y = (RNG.random((200, 5)) < 0.3).astype(int)
    with pytest.warns(UserWarning, match="MultiLabelCorrector"):
        LabelCorrector().fit(X, Y)
    truth = X[:, 0] > 0.0
    votes = truth[:, None] ^ (RNG.random((200, 5)) < 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelCorrector().fit(X, votes.astype(int))
