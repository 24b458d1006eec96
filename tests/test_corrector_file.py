"""A fitted corrector as a file: the same bytes out of it, and nothing odd into it."""

import json
import pickle

import numpy as np
import pytest
from noisy_rows import blobs

from stct import LabelCorrector
from stct.numeric.array_file import write_array_file

N = 400


def moons(seed=0):
    """Two half circles: the corrector needs Fourier features."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 800)
    angle = np.pi * (rng.random(800) + truth)
    X = np.column_stack([np.cos(angle) + truth - 0.5, np.sin(angle)])
    X += 0.1 * rng.normal(size=X.shape)
    wrong = rng.random(800) < 0.2
    return X, np.where(wrong, 1 - truth, truth), truth


def fitted(kind):
    X, given, _ = moons() if kind == "fourier" else blobs()
    if kind == "nothing":
        X = np.random.default_rng(1).normal(size=X.shape)
    if kind == "text":
        given = np.array(["ant", "Bär", "猫"])[given]
    method = "split" if kind == "split" else "loo"
    return LabelCorrector(method, random_state=0).fit(X[:N], given[:N]), X, given


@pytest.mark.parametrize("kind", ["usual", "fourier", "text", "split", "nothing"])
def test_predictions_are_the_same_to_the_byte(kind, tmp_path):
    corrector, X, given = fitted(kind)
    corrector.save(tmp_path / "one.npz")
    loaded = LabelCorrector.load(tmp_path / "one.npz")
    assert loaded.predict_proba(X).tobytes() == corrector.predict_proba(X).tobytes()
    assert loaded.predict(X).tolist() == corrector.predict(X).tolist()
    assert loaded.classes_.dtype == corrector.classes_.dtype
    assert loaded.get_params() == corrector.get_params()
    with np.load(tmp_path / "one.npz") as file:
        assert ("fourier_frequencies" in file) == (kind == "fourier")
    for name in ("estimated_accuracy_", "noise_rate_", "notes_", "n_iter_"):
        assert getattr(loaded, name) == getattr(corrector, name)
    if kind not in ("split", "nothing"):
        ours, theirs = (c.judge(X[N:], given[N:]) for c in (corrector, loaded))
        same = ours.label_distributions_ == theirs.label_distributions_
        assert same.all()
        assert ours.differences_ == theirs.differences_
    loaded.save(tmp_path / "again.npz")
    one, again = (tmp_path / f"{name}.npz" for name in ("one", "again"))
    assert one.read_bytes() == again.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.npz", "one.npz"]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "good.npz"
    corrector, _, _ = fitted("usual")
    corrector.save(path)
    return path


def parts(path):
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    del arrays["sha256"]
    return arrays, json.loads(arrays.pop("about").tobytes())


def without(name):
    return lambda arrays, about: arrays.pop(name)


def changed(name, value):
    return lambda arrays, about: arrays.update({name: value(arrays[name])})


def fact(value, *names):
    def change(arrays, about):
        for name in names[:-1]:
            about = about[name]
        about[names[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (fact(2, "version"), "version 2 of the format, this stct reads version 1"),
        (fact("other", "format"), "not a stct corrector file"),
        (without("weights"), "lacks the array 'weights'"),
        (changed("weights", lambda W: W[:-1]), r"'weights' has shape \(5, 3\)"),
        (changed("weights", lambda W: W * np.nan), "must be finite floats"),
        (changed("noise_transition", lambda T: 2 * T), "rows of probabilities"),
        (changed("order", np.zeros_like), "must be a permutation"),
        (changed("learnable", lambda v: v + 0), "not bool"),
        (changed("given_counts", lambda v: -v), "must be counts"),
        (changed("column_mean", lambda v: v[:2]), "'column_mean' has shape"),
        (changed("axis_vectors", lambda V: V[:, :2]), "'axis_values' has shape"),
        (fact(["a"], "classes", "values"), "two or more"),
        (fact([1, 1, 2], "classes", "values"), "not all different"),
        (fact("V8", "classes", "dtype"), "texts, numbers or booleans"),
        (fact("-1", "num_features"), "'num_features' must be int"),
        (fact(True, "num_features"), "'num_features' must be int"),
        (fact(9, "num_features"), "'weights' has shape"),
        (fact(2.0, "fit", "errors"), "between 0 and 1"),
        (fact(0.0, "fit", "scale"), "must be positive"),
        (fact([5, 3], "fit", "agreement"), "two counts"),
        (fact("magic", "model", "kind"), "unknown kind of model 'magic'"),
        (fact({"method": "best"}, "parameters"), "'method' parameter"),
        (fact({"unknown": 1}, "parameters"), "unknown"),
        (fact(None, "accuracy"), "'accuracy' must be dict"),
        (lambda arrays, about: about.pop("stop"), "'stop' must be str"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(good, tmp_path, change, says):
    arrays, about = parts(good)
    change(arrays, about)
    path = tmp_path / "bad.npz"
    write_array_file(path, arrays, about)
    with pytest.raises(ValueError, match=says) as refused:
        LabelCorrector.load(path)
    assert str(refused.value).startswith(f"{path}: not a readable corrector: ")


def test_damaged_files_and_other_files_are_refused(good, tmp_path):
    data = bytearray(good.read_bytes())
    path = tmp_path / "bad.npz"
    at = len(data) // 2
    for bad in (
        bytes([*data[:at], data[at] ^ 1, *data[at + 1 :]]),
        bytes(data[:-40]),
        b"",
        pickle.dumps({"weights": [1.0]}),
        b"PK not an archive",
    ):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=r"bad\.npz: not a readable corrector"):
            LabelCorrector.load(path)
    np.savez(path, embeddings=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="not a stct corrector file"):
        LabelCorrector.load(path)
    np.savez(path, about=np.array([{"a": 1}], dtype=object))  # a pickle
    with pytest.raises(ValueError, match="not a readable corrector"):
        LabelCorrector.load(path)
    np.savez_compressed(path, about=np.zeros(10**6))  # small file, large array
    with pytest.raises(ValueError, match="not one of stct"):
        LabelCorrector.load(path)


def test_an_estimate_that_nobody_could_make_is_kept(tmp_path):
    X, given, truth = blobs()
    y = np.where(np.arange(len(given)) < 50, None, given.astype(object))
    verified = np.where(np.arange(len(given)) < 50, truth.astype(object), None)
    corrector = LabelCorrector().fit(X, y, verified=verified)
    assert np.isnan(corrector.estimated_accuracy_.before)
    corrector.save(tmp_path / "c.npz")
    loaded = LabelCorrector.load(tmp_path / "c.npz")
    assert np.isnan(loaded.estimated_accuracy_.before)
    assert loaded.estimated_accuracy_.after == corrector.estimated_accuracy_.after


def test_labels_that_json_cannot_hold_are_refused(tmp_path):
    X, given, _ = blobs()
    pairs = np.empty(len(given), dtype=object)
    pairs[:] = [(int(g), "a") for g in given]
    corrector = LabelCorrector().fit(X, pairs)
    with pytest.raises(ValueError, match="classes are text, numbers or booleans"):
        corrector.save(tmp_path / "c.npz")
    assert not list(tmp_path.iterdir())
