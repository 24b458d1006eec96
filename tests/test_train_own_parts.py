"""A network of the caller's own on the command line."""

import json

import pytest
import torch
from command import stct
from train_runs import FAST

from stct.train import STCT
from stct.train.own_parts import own_network

MODULE = """
import torch
from torch import nn

def small():
    return nn.Sequential(nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Flatten())

def wrong():
    return 3

def broken():
    raise RuntimeError("no weights")
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "my_networks.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_a_network_of_ones_own_trains_and_goes_on(here, data, refuse):
    command = ["train", data / "train.npz", *FAST, "--set", "num_rounds=1", "--quiet"]
    done = stct(*command, "--encoder", "my_networks:small", "-o", "run", cwd=here)
    assert done.returncode == 0, done.stderr
    facts = json.loads((here / "run" / "config.json").read_text())
    assert facts["encoder"] == "my_networks:small"
    (here / "run" / "summary.json").unlink()
    # Its code is imported because the caller names it, not because the folder does.
    says = "name it again: --encoder my_networks:small"
    refuse("train", "--resume", "run", says=says)
    refuse("train", "--resume", "run", "--encoder", "os:abort", says=says)
    done = stct(
        *("train", "--resume", "run", "--encoder", "my_networks:small", "--quiet"),
        cwd=here,
    )
    assert done.returncode == 0, done.stderr
    network = own_network("my_networks:small", "my_networks:small")
    model = STCT.load(here / "run" / "model.safetensors", encoder=network)
    assert model.network_.encoder[0].weight.shape == (4, 1, 3, 3)
    # Another run takes the settings of this one.
    command = ["train", data / "train.npz", "--config", "run/config.toml", "--quiet"]
    done = stct(*command, "-o", "again", "--set", "srl.steps=5", cwd=here)
    assert done.returncode == 0, done.stderr
    settings, first = (
        json.loads((here / name / "config.json").read_text())["config"]
        for name in ("again", "run")
    )
    assert settings.pop("srl") == {**first.pop("srl"), "steps": 5}
    assert settings == first


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("my_networks", "write it as MODULE:FACTORY"),
        ("my_networks:nothing", "AttributeError"),
        ("nowhere_at_all:small", "ModuleNotFoundError"),
        ("my_networks:wrong", "gives a int, not a torch module"),
        ("my_networks:broken", "RuntimeError: no weights"),
    ],
)
def test_a_factory_that_gives_no_network_is_one_line(here, name, says):
    with pytest.raises(ValueError, match=says):
        own_network(name, name)


def test_no_network_of_ones_own_is_none(here):
    assert own_network(None, None) is None
    assert isinstance(
        own_network("my_networks:small", "my_networks:small"), torch.nn.Module
    )
