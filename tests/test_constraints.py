"""What the continuous integration installs is what the tests were last run with."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def versions(path):
    lines = path.read_text().splitlines()
    found = (re.match(r"([A-Za-z0-9_.-]+)==([^\s;\\]+)", line) for line in lines)
    return {m[1].lower().replace("_", "-"): m[2] for m in found if m}


def test_the_files_with_digests_are_of_the_same_versions():
    wanted, locked = (
        versions(ROOT / "constraints.txt"),
        versions(ROOT / ".ci/requirements.txt"),
    )
    wanted.pop("torch")  # its builds without CUDA have another index
    assert {name: locked.get(name) for name in wanted} == wanted


def test_every_package_has_a_digest():
    text = (ROOT / ".ci/requirements.txt").read_text()
    packages = re.findall(r"^[A-Za-z0-9].*?(?=^[A-Za-z0-9]|\Z)", text, re.M | re.S)
    assert len(packages) > 100
    assert all("--hash=sha256:" in package for package in packages)
    assert "://" not in text
