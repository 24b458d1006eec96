"""One step: its optimiser, its threshold, its losses, and what it asks of a device."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from test_train_losses import softmax
from torch.utils._python_dispatch import TorchDispatchMode

from stct.train import augment, losses, networks, optimizers, srl, threads
from stct.train import cost as cost_of
from stct.train import images as image_sets
from stct.train.config import SRL, Config, Encoder, Pretrain
from stct.train.device import fabric_precision
from stct.train.images import Images
from stct.train.inference import embed, predict
from stct.train.meter import Meter
from stct.train.state import State
from stct.train.threshold import MOMENTUM, Threshold


def test_the_adaptive_threshold_is_freematchs():
    """Against loops over rows and classes, three steps in a row."""
    fabric = Fabric(accelerator="cpu", devices=1)
    threshold = Threshold.start(3, fabric.device)
    tau, mean = 1 / 3, [1 / 3] * 3
    rng = np.random.default_rng(0)
    for _ in range(3):
        logits = rng.normal(scale=3.0, size=(5, 3)).astype(np.float32)
        p = [softmax(row) for row in logits]
        seen = sum(max(row) for row in p) / 5
        tau = MOMENTUM * tau + (1 - MOMENTUM) * seen
        for c in range(3):
            share = sum(row[c] for row in p) / 5
            mean[c] = MOMENTUM * mean[c] + (1 - MOMENTUM) * share
        bars = threshold.follow(torch.from_numpy(logits), fabric)
        expected = [tau * m / max(mean) for m in mean]
        np.testing.assert_allclose(bars.numpy(), expected, rtol=1e-5)
        sure = losses.confident(torch.tensor(np.array(p)), bars)
        assert sure.tolist() == [max(r) > expected[np.argmax(r)] for r in p]


class Toy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Module()
        self.encoder.embed = torch.nn.Linear(2, 2)
        self.encoder.layer = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
            for _ in range(3)
        )
        self.encoder.norm = torch.nn.LayerNorm(2)
        self.classifier = torch.nn.Linear(2, 2)


def make(kind, network, **more):
    settings = {"rate": 1.0, "momentum": 0.9, "weight_decay": 0.1, **more}
    weights = list(network.named_parameters())
    return optimizers.make_optimizer(kind, weights, **settings)


def test_layers_learn_the_slower_the_lower_they_are():
    network = Toy()
    optimizer = make("adamw", network, layer_decay=0.5)
    optimizers.set_rate(optimizer, 8.0)
    rates = {
        id(p): (group["lr"], group["weight_decay"])
        for group in optimizer.param_groups
        for p in group["params"]
    }
    found = {name: rates[id(p)] for name, p in network.named_parameters()}
    assert len(found) == len(rates)
    assert found["classifier.weight"] == (8.0, 0.1)
    assert found["encoder.norm.weight"] == found["encoder.layer.2.0.bias"] == (4.0, 0.0)
    assert found["encoder.layer.2.0.weight"] == (4.0, 0.1)
    assert found["encoder.layer.0.0.weight"] == (1.0, 0.1)
    assert found["encoder.embed.weight"] == (0.5, 0.1)


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_an_optimiser_goes_on_with_what_it_remembered(kind):
    """Also where weights lie in memory channels last, and the checkpoint does not."""
    torch.manual_seed(0)
    first, second = (
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).to(
            memory_format=torch.channels_last
        )
        for _ in range(2)
    )
    x = torch.randn(3, 3, 5, 5)

    def step(network, optimizer):
        network(x).pow(3).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    before = make(kind, first)
    step(first, before)
    second.load_state_dict(first.state_dict())
    after = make(kind, second)
    kept = {
        name: value.contiguous().clone()
        for name, value in optimizers.memory(before).items()
    }
    optimizers.remind(after, optimizers.only_memory({"network.x.1": x, **kept}))
    step(first, before)
    step(second, after)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_first_loss_that_is_no_number_is_named_whenever_it_is_read():
    meter = Meter("srl", 2, torch.device("cpu"))
    reads = [
        meter.note({"total": torch.tensor(value), "part": torch.tensor(1.0)}, i, 100)
        for i, value in enumerate([1.0, 2.0, float("nan"), float("inf")], start=1)
    ]
    with pytest.raises(ValueError, match="step 3 of srl, round 2: total nan, part 1.0"):
        reads[-1]()
    meter = Meter("pretrain", 0, torch.device("cpu"))
    first = meter.note({"contrast": torch.tensor(0.5)}, 1, 100)
    assert first() == {"contrast": 0.5}
    meter.note({"contrast": torch.tensor(float("inf"))}, 2, 100)
    with pytest.raises(ValueError, match="step 2 of pretrain: contrast inf"):
        meter.note({"contrast": torch.tensor(1.0)}, 10, 100)  # read by itself


class Meta:
    """Stands for one process whose device has shapes and no numbers."""

    device = torch.device("meta")
    world_size, global_rank = 1, 0


@pytest.mark.parametrize("threshold", ["fixed", "adaptive"])
def test_a_step_never_waits_for_the_device_and_has_no_float64(threshold):
    """On the meta device whatever asks for a number raises, and so does a mask."""
    config = Config(srl=SRL(batch_size=4, unlabeled_batch_size=4, num_anchors=4))
    images = Images(np.zeros((20, 16, 16, 3), np.uint8), torch.device("cpu"))
    mean, std = images.mean_and_std()
    network = networks.build(
        Encoder(depth=10, width=1),
        num_classes=3,
        mean=mean,
        std=std,
        generator=torch.Generator().manual_seed(0),
        image_shape=images.chw,
    ).to("meta")
    state = State(network, network, round=1)
    state.labels, state.clean = np.zeros(20, np.intp), np.ones(20, bool)
    state.soft = np.ones((20, 3), np.float32) / 3
    if threshold == "adaptive":
        state.threshold = Threshold.start(3, Meta.device)
    images.device, images._rows = Meta.device, images._rows.to("meta")
    optimizer = make("sgd", network)
    meter = Meter("srl", 1, Meta.device)
    doubles = Doubles()
    with doubles:
        draws = torch.Generator().manual_seed(0)
        rows = srl.Rows.of(state, "all")
        batch = srl.draw_batch(images, rows, config.srl, config.augment, draws, Meta)
        loss = srl.forward(state, batch, config.srl, Meta)
        loss.total.backward()
        optimizer.step()
        read = meter.note(loss._asdict(), 1, 100)
        view = augment.draw_view(4, config.augment, draws)
        own = augment.own_part(view, slice(4), Meta.device)
        views = augment.warp(images.batch(torch.arange(4)), own, size=(12, 12))
        z = network(views, project=True).projection
        losses.nt_xent(z[:2], z[2:], 0.5, others=z).backward()
    assert loss.total.device.type == "meta"
    assert not doubles.names
    with pytest.raises(RuntimeError, match="meta"):
        read()


class Doubles(TorchDispatchMode):
    """Notes every operation that gives 64-bit floats: some devices have none."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for part in out if isinstance(out, tuple | list) else [out]:
            if isinstance(part, torch.Tensor) and part.dtype == torch.float64:
                self.names.add(str(function))
        return out


def test_images_stay_where_they_are_when_the_device_is_too_small(monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 255, (6, 8, 8, 3)).astype(np.uint8)
    free = {"bytes": 1e9}
    monkeypatch.setattr(image_sets, "free_memory", lambda device: free["bytes"])
    assert Images(pixels, Meta.device)._rows.device.type == "meta"
    free["bytes"] = pixels.nbytes  # all of it would leave nothing to train with
    images = Images(pixels, Meta.device)
    assert images._rows.device.type == "cpu"
    assert images.batch(torch.tensor([3, 1])).device.type == "meta"
    mean, std = images_mean(pixels)
    found = Images(pixels, torch.device("cpu")).mean_and_std()
    torch.testing.assert_close(found, (mean, std))


def images_mean(pixels):
    values = torch.from_numpy(pixels).double().div(255).reshape(-1, 3)
    std, mean = torch.std_mean(values, dim=0)
    return mean.float(), std.float()


def test_features_for_the_correction_have_all_their_bits():
    pixels = np.random.default_rng(0).integers(0, 255, (9, 8, 8, 3)).astype(np.uint8)
    found = {}
    for precision in ("32-true", "bf16-mixed"):
        fabric = Fabric(accelerator="cpu", devices=1, precision=precision)
        network = networks.build(
            Encoder(depth=10, width=1),
            num_classes=3,
            mean=torch.zeros(3),
            std=torch.ones(3),
            generator=torch.Generator().manual_seed(0),
            image_shape=(3, 8, 8),
        )
        images = Images(pixels, fabric.device)
        found[precision] = [embed(network, images, fabric)]
        found[precision].append(predict(network, images, fabric))
    (H, P), (H16, P16) = found.values()
    np.testing.assert_array_equal(H, H16)
    assert not np.array_equal(P, P16)


def test_bf16_is_taken_where_there_is_any(monkeypatch):
    assert fabric_precision("auto", "cpu") == "32-true"
    assert fabric_precision("bf16", "cpu") == "bf16-mixed"
    assert fabric_precision("auto", "mps") == "32-true"
    with pytest.raises(ValueError, match="precision=bf16: this GPU has no"):
        fabric_precision("bf16", "mps")
    for has in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: has)  # noqa: B023
        expected = "bf16-mixed" if has else "32-true"
        assert fabric_precision("auto", "cuda") == expected


def test_the_memory_of_a_step_is_what_waits_for_the_backward_pass():
    """Against the tensors that a real step keeps."""
    network = networks.build(
        Encoder(depth=10, width=1, projection=8),
        num_classes=3,
        mean=torch.zeros(3),
        std=torch.ones(3),
        generator=torch.Generator().manual_seed(0),
        image_shape=(3, 16, 16),
    )
    learn = SRL(batch_size=4, unlabeled_batch_size=4, num_anchors=4)
    config = Config(pretrain=Pretrain(epochs=0), srl=learn)
    (cost,) = cost_of.step_costs(network, config, (3, 16, 16), num_images=9)
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    x = torch.rand(8, 3, 16, 16)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = network(x, classify=True, project=True)
        out.logits.square().sum() + out.projection.square().sum()
    weights = sum(p.nbytes for p in network.parameters())
    own = {p.untyped_storage().data_ptr() for p in network.parameters()}
    waiting = sum(s.nbytes() for place, s in kept.items() if place not in own)
    expected = 1.25 * (3 * weights + 3 * x.nbytes + waiting)
    assert cost.memory == pytest.approx(expected, rel=0.05)
    assert (cost.phase, cost.images, cost.side) == ("srl", 8, (16, 16))
    assert cost.flops > 6 * 8 * 9 * 16 * 16 * 3 * 16  # the first layer, three passes
    with pytest.raises(ValueError, match="srl with 8 images of 16 x 16 needs"):
        cost_of.check_memory([cost], 1e3, flexible=True)
    cost_of.check_memory([cost], 1e9, flexible=True)


def test_a_small_network_has_one_thread_and_a_busy_machine_few(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    free = {"processors": 8.0}
    monkeypatch.setattr(threads, "free_processors", lambda: free["processors"])
    assert threads.choose_threads(1e9) == 1
    assert threads.choose_threads(1e12) == 8
    free["processors"] = 2.6
    assert threads.choose_threads(1e12) == 3
    free["processors"] = 0.1
    assert threads.choose_threads(1e12) == 1


def test_threads_that_wait_sleep():
    """Asked for before torch is loaded, or it would not hear of it."""
    code = "import os, sys, stct.train; print(os.environ['OMP_WAIT_POLICY'])"
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout == "PASSIVE\n"
