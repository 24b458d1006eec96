"""Rows that a person verified: estimates, calibration, files and commands."""

import csv
import json

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import beta, hypergeom

from stct import LabelCorrector, cli
from stct.correction.audit import (
    AuditCalibration,
    Verified,
    fit_calibration,
    negative_log_posterior,
)
from stct.correction.design_based import (
    ShareEstimate,
    clopper_pearson,
    estimate_share,
    stratified_variance,
)
from stct.correction.settings import DEFAULT
from stct.data.audit_sample import LEAST, allocate
from stct.report.checking import rows_to_check


def noisy_problem(n=1500, rate=0.3, seed=0):
    """Rows of three classes; annotators err where classes overlap."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 12)).astype(np.float32)
    X[np.arange(n), truth] += 2.0
    second = np.argsort(-X[:, :3], axis=1)
    guess = np.where(second[:, 0] == truth, second[:, 1], second[:, 0])
    given = np.where(rng.random(n) < rate, guess, truth)
    return X, given, truth


def test_interval_is_that_of_clopper_and_pearson():
    for right, n in [(0, 10), (3, 10), (97, 100), (10, 10)]:
        low, high = clopper_pearson(right / n, n)
        assert low == pytest.approx(
            beta.ppf(0.025, right, n - right + 1) if right else 0
        )
        wanted = beta.ppf(0.975, right + 1, n - right) if right < n else 1
        assert high == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("population", "n", "share"), [(1000, 300, 0.8), (5000, 100, 0.7)]
)
def test_interval_holds_the_truth_as_often_as_it_says(population, n, share):
    """Exactly, over all samples without replacement."""
    right = round(population * share)
    held = 0.0
    for k in range(n + 1):
        estimate = estimate_share(np.arange(n) < k, np.ones(n), population)
        low, high = estimate.interval
        if low <= right / population <= high:
            held += hypergeom.pmf(k, population, right, n)
    assert 0.95 <= held <= 0.97


def test_stratified_estimate_against_a_simulation():
    rng = np.random.default_rng(0)
    sizes, shares, drawn = [800, 150, 50], [0.97, 0.6, 0.3], [40, 40, 20]
    strata = [np.arange(s) < round(s * p) for s, p in zip(sizes, shares, strict=True)]
    truth = np.concatenate(strata).mean()
    values, variances, held = [], [], 0
    for _ in range(500):
        right, weight = [], []
        for rows, m in zip(strata, drawn, strict=True):
            right.append(rng.choice(rows, m, replace=False))
            weight.append(np.full(m, len(rows) / m))
        right, weight = np.concatenate(right), np.concatenate(weight)
        estimate = estimate_share(right, weight, 1000)
        values.append(estimate.value)
        variances.append(stratified_variance(right, weight, 1000))
        held += estimate.interval[0] <= truth <= estimate.interval[1]
    assert np.mean(values) == pytest.approx(truth, abs=3e-3)
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.15)
    assert 0.93 <= held / 500 <= 0.99


def test_more_rows_halve_the_interval():
    now = ShareEstimate(0.8, (0.7, 0.9), 100, 100_000)
    assert now.more_rows == pytest.approx(300, abs=2)
    more = 100 + now.more_rows
    low, high = estimate_share(np.arange(100) < 80, np.ones(100), 100_000).interval
    right = np.arange(more) < 0.8 * more
    low4, high4 = estimate_share(right, np.ones(more), 100_000).interval
    assert (high4 - low4) / (high - low) == pytest.approx(0.5, abs=0.03)
    assert ShareEstimate(0.8, (0.8, 0.8), 50, 50).more_rows == 0


def test_gradient_of_the_calibration():
    rng = np.random.default_rng(0)
    z = np.log(rng.dirichlet(np.ones(4), 30))
    given, clean = rng.integers(-1, 4, 30), rng.integers(0, 4, 30)
    weight = rng.random(30)
    theta = np.array([0.3, -0.7])

    def value(theta):
        return negative_log_posterior(theta, z, given, clean, weight, DEFAULT.audit)[0]

    slope = negative_log_posterior(theta, z, given, clean, weight, DEFAULT.audit)[1]
    np.testing.assert_allclose(slope, approx_fprime(theta, value, 1e-7), rtol=1e-4)


def test_calibration_against_rows_in_a_loop():
    rng = np.random.default_rng(0)
    Q, given = rng.dirichlet(np.ones(3), 20), rng.integers(-1, 3, 20)
    ours = AuditCalibration(0.7, 1.1).apply(Q, given)
    for row, g in enumerate(given):
        odds = Q[row].copy()
        if g >= 0:
            odds[g] *= np.exp(-1.1)
        wanted = odds**0.7 / (odds**0.7).sum()
        np.testing.assert_allclose(ours[row], wanted, rtol=1e-6)
    assert AuditCalibration().apply(Q, given) is Q


def test_threshold_follows_the_evidence_only():
    """Rows that are right as often as they claim move nothing much."""
    rng = np.random.default_rng(0)
    claimed = rng.random(4000)
    Q = np.stack([claimed, 1 - claimed], axis=1)
    given = np.zeros(4000, dtype=int)
    honest = (rng.random(4000) > claimed).astype(int)
    fit = fit_calibration(Q, given, honest, DEFAULT.audit)
    assert abs(fit.threshold) < 0.15
    assert fit.sharpness == pytest.approx(1.0, abs=0.1)
    odds = np.log(claimed / (1 - claimed)) - 2.0  # the given label is worth less
    wrong = (rng.random(4000) > 1 / (1 + np.exp(-odds))).astype(int)
    assert fit_calibration(Q, given, wrong, DEFAULT.audit).threshold == pytest.approx(
        2.0, abs=0.3
    )
    few = fit_calibration(Q[:12], given[:12], wrong[:12], DEFAULT.audit)
    assert few.threshold < 1.9  # twelve rows prove less


def test_verified_rows_are_locked_and_give_the_estimate():
    X, given, truth = noisy_problem()
    rng = np.random.default_rng(1)
    rows = rng.choice(len(X), 200, replace=False)
    verified = np.full(len(X), None, dtype=object)
    verified[rows] = truth[rows]
    fit = LabelCorrector().fit(X, given, verified=verified)
    np.testing.assert_array_equal(fit.labels_[rows], truth[rows])
    assert (fit.confidence_[rows] == 1.0).all()
    moved = given[rows] != truth[rows]
    assert set(fit.action_[rows][moved]) == {"relabel"}
    assert set(fit.action_[rows][~moved]) == {"keep"}
    accuracy, audit = fit.estimated_accuracy_, fit.audit_
    assert accuracy.before == pytest.approx((given == truth)[rows].mean())
    assert audit.before.interval == accuracy.before_interval
    low, high = accuracy.after_interval
    assert low <= (fit.labels_ == truth).mean() <= high
    assert audit.more_rows > 200
    # The order of rows does not matter.
    order = rng.permutation(len(X))
    again = LabelCorrector().fit(X[order], given[order], verified=verified[order])
    np.testing.assert_array_equal(again.labels_, fit.labels_[order])


def test_audit_of_errors_that_follow_the_features_helps():
    X, given, truth = noisy_problem()
    rng = np.random.default_rng(0)
    without = LabelCorrector().fit(X, given).labels_ == truth
    gains = []
    for _ in range(3):
        rows = rng.choice(len(X), 150, replace=False)
        verified = np.full(len(X), None, dtype=object)
        verified[rows] = truth[rows]
        right = LabelCorrector().fit(X, given, verified=verified).labels_ == truth
        others = np.setdiff1d(np.arange(len(X)), rows)
        gains.append(right[others].mean() - without[others].mean())
    assert np.mean(gains) > 0.0


def test_missing_labels_weights_and_probabilities_take_part():
    X, given, truth = noisy_problem(600)
    labels = given.astype(object)
    labels[:50] = None
    verified = np.full(600, None, dtype=object)
    verified[::5] = truth[::5]
    weight = np.where(np.arange(600) < 300, 2.0, 1.0)
    fit = LabelCorrector().fit(X, labels, verified=verified, verified_weight=weight)
    assert set(fit.action_[:50:5]) == {"fill"}
    rows = np.arange(50, 600, 5)
    hit = (given == truth)[rows]
    wanted = (weight[rows] @ hit) / weight[rows].sum()
    assert fit.estimated_accuracy_.before == pytest.approx(wanted)
    P = np.full((600, 3), 0.1)
    P[np.arange(600), truth] = 0.8
    fit = LabelCorrector().fit(y=given, pred_probs=P, verified=verified)
    assert fit.audit_.num_rows == 120


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"verified": [0, 1]}, "one label per row"),
        ({"verified": [7] + [None] * 59}, "verified labels that no row of y has: 7"),
        ({"verified": [None] * 60}, "nobody looked"),
        ({"verified_weight": np.ones(60)}, "goes with verified"),
        ({"verified": [0] * 60, "verified_weight": np.zeros(60)}, "must be positive"),
        ({"verified": [0] * 60, "verified_weight": [1.0]}, "one number per row"),
    ],
)
def test_bad_verified_labels(more, says):
    X, given, _ = noisy_problem(60)
    with pytest.raises(ValueError, match=says):
        LabelCorrector().fit(X, given, **more)


def test_pairs_are_counted_by_clean_and_given_class():
    rows = np.arange(4)
    verified = Verified(
        rows, np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1]), np.ones(4)
    )
    np.testing.assert_array_equal(verified.pairs(2), [[1, 1], [0, 1]])


def test_allocation_keeps_rows_and_is_proportional():
    sizes, share = np.array([900, 90, 10, 1]), np.array([900.0, 90.0, 10.0, 1.0])
    before = np.zeros(4, dtype=int)
    for n in range(8, 300):
        counts = allocate(n, sizes, share)
        assert counts.sum() == n
        assert (counts >= before).all()  # a larger draw contains the smaller one
        assert (counts >= np.minimum(sizes, LEAST)).all()
        before = counts
    assert counts[0] == pytest.approx(0.9 * 299, abs=4)


def test_rows_to_check_are_spread_and_without_near_duplicates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    X[100:200] = X[0] + 1e-3 * rng.normal(size=(100, 10))
    label = np.arange(400) % 10
    label[:60] = label[100:200] = 0
    wrong = np.linspace(0.9, 0.1, 400)
    wrong[0] = 0.99
    checked = np.zeros(400, dtype=bool)
    checked[5] = True
    order = np.argsort(np.where(checked, 1.0, -wrong), kind="stable")
    rows = rows_to_check(order, checked, label, X, 120)
    assert rows[0] == 0
    assert 5 not in rows
    assert not set(range(100, 200)) & set(rows.tolist())
    assert len(set(rows.tolist())) == len(rows) == 120
    assert (label[rows[:20]] == 0).sum() <= 3 * (20 / 10 + 1)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A table and its first correction; gives a function that runs commands there."""
    X, given, truth = noisy_problem(400)
    np.save(tmp_path / "e.npy", X)
    names = np.array(["ant", "bee", "cow"])
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "label", "text"])
        rows = zip(range(400), names[given], strict=True)
        writer.writerows((f"r{i}", label, f"what row {i} says") for i, label in rows)
    monkeypatch.chdir(tmp_path)

    def stct(line):
        monkeypatch.setattr("sys.argv", ["stct", *line.split()])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return stopped.value.code

    assert stct("correct t.csv --embeddings e.npy -o run --quiet") == 0
    return stct, tmp_path, {f"r{i}": names[c] for i, c in enumerate(truth)}


def fill_in(path, column, answers):
    """Answer every row of a file, as a person would."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row[column] = answers[row["id"]]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_audit_from_drawing_to_estimate(run, capsys):
    stct, folder, truth = run
    assert stct("audit run -n 60 -o audit.csv") == 0
    rows = fill_in(folder / "audit.csv", "verified", truth)
    assert list(rows[0])[:5] == ["id", "given", "verified", "weight", "probability"]
    assert len({row["id"] for row in rows}) == 60
    total = sum(float(row["weight"]) for row in rows)
    assert total == pytest.approx(400, abs=1)
    assert stct("audit run -n 90 -o more.csv --quiet") == 0
    with (folder / "more.csv").open(newline="") as file:
        more = {row["id"] for row in csv.DictReader(file)}
    assert {row["id"] for row in rows} <= more
    page = (folder / "run" / "report.html").read_text("utf-8")
    assert '"audit":{"items"' in page
    capsys.readouterr()
    line = "correct t.csv --embeddings e.npy --audit audit.csv --since run -o again"
    assert stct(line) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "from 60 verified rows" in said
    assert "more would halve the intervals" in said
    summary = json.loads((folder / "again" / "summary.json").read_text())
    assert summary["audit"]["rows"] == 60
    with (folder / "again" / "labels.csv").open(newline="") as file:
        label = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert all(label[row["id"]] == truth[row["id"]] for row in rows)
    with (folder / "run" / "labels.csv").open(newline="") as file:
        before = {row["id"]: row["label"] for row in csv.DictReader(file)}
    seen = {row["id"] for row in rows}
    moved = {name for name in label if label[name] != before[name] and name not in seen}
    with (folder / "again" / "changed.csv").open(newline="") as file:
        assert {row["id"] for row in csv.DictReader(file)} == moved
    assert summary["since"]["other_labels_changed"] == len(moved)


def test_review_answers_are_applied_or_locked(run):
    stct, folder, truth = run
    assert stct("review run --top 30 -o check.csv --quiet") == 0
    path = folder / "check.csv"
    rows = fill_in(path, "label", {**truth})
    assert list(rows[0]) == ["id", "given", "suggested", "label", "worth", "text"]
    worth = [float(row["worth"]) for row in rows]
    assert worth[0] > 0.3
    text = path.read_text().splitlines()
    answered = text[:21] + [
        ",".join(line.split(",")[:3] + [""] + line.split(",")[4:]) for line in text[21:]
    ]
    path.write_text("\n".join(answered) + "\n")
    assert stct("apply run/patch.csv t.csv -o corrected.csv --quiet") == 0
    assert stct("apply check.csv corrected.csv -o checked.csv --quiet") == 0
    with (folder / "checked.csv").open(newline="") as file:
        label = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert all(label[row["id"]] == truth[row["id"]] for row in rows[:20])
    assert stct("correct t.csv --embeddings e.npy --locked check.csv -o b --quiet") == 0
    summary = json.loads((folder / "b" / "summary.json").read_text())
    assert "20 rows are locked and were left as they are" in summary["notes"]
    assert stct("review run --for audit --top 25 -o a.csv --quiet") == 0
    assert (folder / "a.csv").read_text().startswith("id,given,verified,weight")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id,given\nr0,ant\n", "no column 'verified'"),
        ("id,given,verified\nzz,ant,bee\n", "about another table"),
        ("id,given,verified\nr0,none,bee\n", "have changed since"),
        ("id,given,verified\nr0,{r0},dog\n", "no row of t.csv has: dog"),
        ("id,given,verified\nr0,{r0},\n", "nobody has verified a row"),
        ("id,given,verified,weight\nr0,{r0},ant,-1\n", "a positive number, not '-1'"),
        ("id,given,verified\nr0,{r0},ant\nr0,{r0},ant\n", "more than once: r0"),
    ],
)
def test_bad_audit_files(run, capsys, text, says):
    stct, folder, _ = run
    with (folder / "t.csv").open(newline="") as file:
        given = next(csv.DictReader(file))["label"]
    (folder / "a.csv").write_text(text.format(r0=given))
    code = stct("correct t.csv --embeddings e.npy --audit a.csv -o bad")
    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1
    assert says in said
    assert not (folder / "bad").exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("audit run -n 401", "-n must be from 2 to 400"),
        ("audit run -n 1", "-n must be from 2 to 400"),
        ("audit run -o a.txt", "must end in .csv"),
        ("audit elsewhere", "there is no such folder"),
        ("review run --top 0", "--top"),
        ("review run -o t.csv", "the output file exists"),
        ("correct t.csv --embeddings e.npy --since t.csv -o x", "no such folder"),
        ("correct t.csv --embeddings e.npy --audit a --method split -o x", "--audit"),
    ],
)
def test_bad_commands(run, capsys, line, says):
    stct, folder, _ = run
    assert stct(line) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert says in said
    assert not (folder / "x").exists()


def test_empty_checks_are_refused(run, capsys):
    stct, _, _ = run
    assert stct("review run --top 5 -o check.csv --quiet") == 0
    assert stct("apply check.csv t.csv -o out.csv") == 2
    assert "fill in the column 'label'" in capsys.readouterr().err
