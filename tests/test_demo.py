"""``stct demo`` and the command that it prints."""

import json
import re
import shlex

import numpy as np
import pytest
from command import assert_error, stct

from stct.data.tables import read_table

pytestmark = pytest.mark.slow  # starts real processes

FILES = ["corrector.npz", "digits.csv", "digits.npy", "labels.csv"]
FILES += ["patch.csv", "report.html", "review.npz", "soft_labels.npz", "summary.json"]


def test_demo_and_its_own_command(tmp_path):
    done = stct("demo", "--no-training", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    folder = tmp_path / "demo-output"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    before, after = re.findall(r"right labels \w+ +([\d.]+)%", done.stdout)
    assert 50 < float(before) < 60
    assert float(after) > 90
    assert re.search(r"row \d+: said \d, we say \d, truth \d", done.stdout)

    labels = read_table(folder / "labels.csv")
    truth, label = labels.values("truth"), labels.values("label")
    share = np.mean([a == b for a, b in zip(truth, label, strict=True)])
    assert f"{share:.1%}" == f"{float(after)}%"

    command = shlex.split(done.stdout.strip().splitlines()[-1])
    assert command[0] == "stct"
    again = stct(*command[1:], cwd=tmp_path)
    assert (again.returncode, again.stderr) == (0, "")
    for name in ("labels.csv", "patch.csv", "soft_labels.npz"):
        assert (tmp_path / "stct-output" / name).read_bytes() == (
            folder / name
        ).read_bytes()

    assert_error(stct("demo", cwd=tmp_path), "demo-output", "--overwrite")
    command = ["demo", "--no-training", "--overwrite"]
    done = stct(*command, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert f"{result['right_after']:.1%}" == f"{float(after)}%"
    assert result["keep"] + result["relabel"] + result["abstain"] == 1797
    assert shlex.split(result["command"])[:2] == ["stct", "correct"]
    done = stct(*command, "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_demo_with_training(tmp_path, capsys):
    from stct.data.outputs import check_folder
    from stct.train.demo import run_training_demo

    short = ["pretrain.epochs=2", "srl.steps=10", "num_rounds=2"]
    folder = tmp_path / "demo"
    demo = run_training_demo(
        folder, overwrite=False, seed=0, show=lambda _: None, assignments=short
    )
    facts, command = demo.facts, demo.command
    before, after = (
        float(facts[f"right labels {w}"].split("%")[0]) for w in ("before", "after")
    )
    assert 50 < before < 60
    assert after > 85
    assert float(facts["test accuracy"].rstrip("%")) > 30
    assert f"{demo.numbers['right_after']:.1%}" in facts["right labels after"]
    assert (folder / "run" / "report.html").is_file()
    assert command.startswith("stct train ")
    for path in shlex.split(command)[2::2]:
        assert path.startswith("--") or path == "tiny" or (tmp_path / path).exists()
    check_folder(folder, overwrite=True)  # it is all ours: may be replaced
