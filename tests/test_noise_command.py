"""Noise of every kind, and the command that puts it into a table."""

import numpy as np
import pytest
from command import assert_error, stct

from stct.data.noising import KINDS, add_noise, class_order
from stct.data.tables import read_table

pytestmark = pytest.mark.slow  # starts real processes


def test_noise_through_the_command(tmp_path):
    rows = "".join(f"{i},{i % 10}\n" for i in range(1000))
    (tmp_path / "t.csv").write_text(f"id,label\n{rows}1000,\n")
    command = ["noise", "t.csv", "--kind", "asymmetric", "--map", "cifar10"]
    command += ["--rate", "0.4", "--keep-clean", "clean_label", "-o", "out.csv"]
    done = stct(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nominal rate 40.00%, actual rate 20.00%" in done.stdout
    table = read_table(tmp_path / "out.csv")
    assert list(table.columns) == ["id", "label", "clean_label"]
    assert table.values("clean_label") == [str(i % 10) for i in range(1000)] + [""]
    moves = set(zip(table.values("clean_label"), table.values("label"), strict=True))
    changed = {(a, b) for a, b in moves if a != b}
    assert changed == {("9", "1"), ("2", "0"), ("4", "7"), ("3", "5"), ("5", "3")}
    assert table.values("label")[-1] == ""
    assert_error(stct(*command, cwd=tmp_path), "out.csv: the output file exists")


@pytest.mark.parametrize("kind", KINDS)
def test_noise_of_every_kind(tmp_path, kind):
    labels = [["cat", "dog", "eel"][i % 3] for i in range(900)] + [None]
    (tmp_path / "map.json").write_text('{"cat": "dog", "dog": "eel", "eel": "cat"}')
    np.savetxt(tmp_path / "T.csv", np.full((3, 3), 0.15) + 0.55 * np.eye(3), "%g", ",")
    options = {
        "flips": str(tmp_path / "map.json"),
        "matrix": tmp_path / "T.csv",
        "embeddings": np.random.default_rng(0).normal(size=(901, 4)),
    }
    noisy, again = (add_noise(labels, kind, rate=0.3, seed=1, **options) for _ in "ab")
    assert noisy == again
    assert noisy.labels[-1] is None
    assert noisy.nominal_rate == pytest.approx(0.3)
    assert noisy.actual_rate == pytest.approx(
        0.2 if kind == "symmetric" else 0.3, abs=0.05
    )
    changed = sum([a != b for a, b in zip(labels, noisy.labels, strict=True)])
    assert noisy.actual_rate == pytest.approx(changed / 900)


def test_classes_are_numbered_by_number_or_by_text():
    assert class_order(["10", "9", "2", "9"]) == ["2", "9", "10"]
    assert class_order([10, 9, 2]) == [2, 9, 10]
    assert class_order(["b", "10", "a"]) == ["10", "a", "b"]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("asymmetric", {}, "needs --map"),
        ("asymmetric", {"flips": "cifar10"}, "class '9', which the table lacks"),
        ("matrix", {}, "needs --matrix"),
        ("instance", {}, "needs --embeddings"),
        ("symmetric", {"rate": 1.5}, "between 0 and 1"),
    ],
)
def test_noise_that_cannot_be_made(kind, options, message):
    with pytest.raises(ValueError, match=message):
        add_noise(["a", "b"], kind, **{"rate": 0.5, "seed": 0, **options})


@pytest.mark.parametrize(
    ("options", "owner"),
    [
        (["--map", "cifar10"], "asymmetric"),
        (["--matrix", "T.csv"], "matrix"),
        (["--embeddings", "e.npy", "--kind", "pair"], "instance"),
    ],
)
def test_noise_refuses_options_of_other_kinds(tmp_path, options, owner):
    (tmp_path / "t.csv").write_text("label\na\nb\n")
    done = stct("noise", "t.csv", *options, "-o", "out.csv", cwd=tmp_path)
    assert_error(done, f"goes with --kind {owner}")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (["--kind", "matrix", "--matrix", "T.csv", "--rate", "0.5"], ["no --rate"]),
        (["--kind", "matrix", "--matrix", "T.csv"], ["T.csv: the matrix", "sum to 1"]),
        (["--label-column", "same"], ["t.csv: column 'same' has one class only (x)"]),
        (["--label-column", "none"], ["t.csv: column 'none' has no labels"]),
        (["--kind", "instance"], ["--embeddings FILE", "--embeddings-column NAME"]),
    ],
)
def test_errors_name_the_place_and_what_is_allowed(tmp_path, options, fragments):
    (tmp_path / "t.csv").write_text("label,same,none\na,x,\nb,x,\n")
    (tmp_path / "T.csv").write_text("0.9,0.2\n0.1,0.9\n")
    done = stct("noise", "t.csv", *options, "-o", "out.csv", cwd=tmp_path)
    assert_error(done, *fragments)
    assert "--pred-probs" not in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_rows_without_a_label_stay_in_a_table_of_one_column(tmp_path):
    rows = ["" if i % 10 == 3 else "ab"[i % 2] for i in range(300)]
    (tmp_path / "t.csv").write_text("\n".join(["label", *rows, ""]))
    assert stct("noise", "t.csv", "-o", "out.csv", cwd=tmp_path).returncode == 0
    labels = read_table(tmp_path / "out.csv").values("label")
    assert [i for i, label in enumerate(labels) if not label] == [*range(3, 300, 10)]
