"""One step: its optimiser, its threshold, its losses, and what it asks of a device."""

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from test_train_losses import softmax

from stct.train import losses, optimizers
from stct.train.meter import Meter
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
    torch.manual_seed(0)
    first, second = Toy(), Toy()
    x = torch.randn(3, 2)

    def step(network, optimizer):
        h = network.encoder.layer[0](network.encoder.embed(x))
        network.classifier(h).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    before = make(kind, first)
    step(first, before)
    second.load_state_dict(first.state_dict())
    after = make(kind, second)
    kept = {name: value.clone() for name, value in optimizers.memory(before).items()}
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
