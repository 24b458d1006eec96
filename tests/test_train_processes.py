"""Several real processes, started by torchrun: one model, one set of files."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from train_runs import FAST, metrics, torchrun

from stct.train import losses, srl
from stct.train.config import SRL
from stct.train.state import shared_batch

pytestmark = pytest.mark.slow


def test_two_processes_train_one_model_as_good_as_one(data, whole, tmp_path):
    folder = tmp_path / "pair"
    command = ["-m", "stct", "train", data / "train.npz", *FAST]
    result = torchrun(2, *command, "--test", data / "test.npz", "-o", folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Trained on") == 1
    one, two = (
        json.loads((path / "summary.json").read_text()) for path in (whole, folder)
    )
    assert two["training"]["test_accuracy"] > one["training"]["test_accuracy"] - 0.15
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    weights = load_file(folder / "model.safetensors")
    assert weights.keys() == load_file(whole / "model.safetensors").keys()
    assert all(np.isfinite(value).all() for value in weights.values())
    # A finished run is said once too.
    again = torchrun(2, "-m", "stct", "train", "--resume", folder)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("Trained on") == 1


def test_batches_that_do_not_divide_evenly(data, tmp_path):
    """121 images in batches of 256 for two processes; 3 processes and batches of 64."""
    arrays = np.load(data / "train.npz")
    odd = tmp_path / "odd.npz"
    np.savez(odd, images=arrays["images"][:121], labels=arrays["labels"][:121])
    short = ["--set", "srl.steps=2", "--set", "num_rounds=1", "--quiet"]
    whole = ["--set", "pretrain.batch_size=256"]
    train = ["-m", "stct", "train"]
    result = torchrun(2, *train, odd, *FAST, *short, *whole, "-o", tmp_path / "two")
    assert result.returncode == 0, result.stderr
    result = torchrun(3, *train, odd, *FAST, *short, "-o", tmp_path / "three")
    assert result.returncode == 0, result.stderr
    assert metrics(tmp_path / "three")[-1]["phase"] == "round"


def test_an_error_ends_all_processes_in_good_order(data, tmp_path):
    wild = ["--set", "pretrain.learning_rate=1e30", "--quiet"]
    command = ["-m", "stct", "train", data / "train.npz", *FAST, *wild]
    result = torchrun(2, *command, "-o", tmp_path / "wild")
    assert result.returncode != 0
    assert "stct: error: the loss is not a number at step" in result.stderr
    assert "terminate called" not in result.stderr


class Process:
    def __init__(self, world_size):
        self.world_size = world_size


def test_a_batch_that_processes_cannot_share_is_refused():
    assert shared_batch(Process(1), 121, "x") == 121
    assert shared_batch(Process(3), 64, "x") == 63
    with pytest.raises(ValueError, match="srl.batch_size: a batch of 2 is too small"):
        srl.what_to_learn(SRL(batch_size=2), Process(3))
    shared = srl.what_to_learn(SRL(), Process(3))
    sizes = (shared.batch_size, shared.unlabeled_batch_size, shared.num_anchors)
    assert sizes == (63, 447, 255)


SCRIPT = """
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, {tests!r})
from test_train_algorithm import CONFIG, pictures, start
from test_train_processes import views

from stct.train import algorithm, losses, pretrain
from stct.train.state import own_slice
from stct.train.training import make_fabric

fabric = make_fabric()
rank = fabric.global_rank
z1, z2 = (z[own_slice(fabric, 8)].requires_grad_() for z in views())
loss = losses.nt_xent(z1, z2, 0.5, others=pretrain._all_views(z1, z2, fabric))
loss.backward()
torch.save((loss.detach(), z1.grad, z2.grad), Path({out!r}) / f"loss-{{rank}}.pt")

images, labels = pictures(96, np.random.default_rng(0))
labels[::5] = (labels[::5] + 1) % 4
state, pixels = start(images, CONFIG, fabric)
embedded = algorithm.embedded


def remember(network, *rest):
    name = f"buffers-{{state.round}}-{{rank}}.pt"
    torch.save(list(network.buffers()), Path({out!r}) / name)
    return embedded(network, *rest)


algorithm.embedded = remember
for done in algorithm.rounds(
    state, pixels, labels, CONFIG, seed=0, fabric=fabric, watch=lambda step: None
):
    name = f"end-{{done.number}}-{{rank}}.pt"
    torch.save(list(state.network.buffers()), Path({out!r}) / name)
fabric.barrier()
torch.distributed.destroy_process_group()
"""


def views():
    generator = torch.Generator().manual_seed(0)
    pair = torch.randn(2, 8, 5, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(pair, dim=2)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two processes saw: buffers before each embedding, losses of SimCLR."""
    out = tmp_path_factory.mktemp("two")
    script = out / "run.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), out=str(out)))
    result = torchrun(2, script)
    assert result.returncode == 0, result.stderr
    return out


def test_all_processes_embed_with_the_same_network(two):
    for name in ("buffers-1", "buffers-2", "end-1", "end-2"):
        first, second = (torch.load(two / f"{name}-{rank}.pt") for rank in (0, 1))
        assert len(first) > 4
        for a, b in zip(first, second, strict=True):
            assert torch.equal(a, b), name


def test_negatives_come_from_all_processes(two):
    """Loss and gradients of two halves are those of one process with all views."""
    z1, z2 = (z.requires_grad_() for z in views())
    whole = losses.nt_xent(z1, z2, 0.5, others=torch.cat([z1, z2]))
    whole.backward()
    halves = [torch.load(two / f"loss-{rank}.pt") for rank in (0, 1)]
    torch.testing.assert_close(sum(half[0] for half in halves) / 2, whole.detach())
    for place, z in ((1, z1), (2, z2)):
        joined = torch.cat([half[place] for half in halves])
        torch.testing.assert_close(joined / 2, z.grad)  # DDP takes the mean
