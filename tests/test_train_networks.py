"""Networks: shapes, sizes, what the heads and their gradients touch, weights."""

import pytest
import torch
from torch import nn

from stct.train import networks
from stct.train.config import Encoder


def make(settings=None, *, shape=(3, 32, 32), seed=0, encoder=None, num_classes=10):
    channels = shape[0]
    return networks.build(
        settings or Encoder(depth=10, width=1),
        num_classes=num_classes,
        mean=torch.full((channels,), 0.5),
        std=torch.full((channels,), 0.25),
        generator=torch.Generator().manual_seed(seed),
        encoder=encoder,
        image_shape=shape,
    )


def count(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 28, 28), (3, 9, 13)])
def test_any_size_from_8_and_one_or_three_channels(shape):
    network = make(shape=shape).eval()
    out = network(torch.rand(4, *shape), classify=True, project=True)
    assert out.features.shape == (4, 64)
    assert out.logits.shape == (4, 10)
    assert out.projection.shape == (4, 128)
    torch.testing.assert_close(out.projection.norm(dim=1), torch.ones(4))


def test_the_papers_networks_have_their_known_sizes():
    # Zagoruyko and Komodakis: WRN-28-2 about 1.5 M, WRN-28-8 23.4 M parameters.
    small = networks.WideResNet(Encoder(depth=28, width=2), channels=3)
    large = networks.WideResNet(Encoder(depth=28, width=8), channels=3)
    assert count(small) == pytest.approx(1.47e6, rel=0.01)
    assert count(large) == pytest.approx(23.35e6, rel=0.01)
    assert (small.width, large.width) == (128, 512)
    convolutions = [m for m in small.modules() if isinstance(m, nn.Conv2d)]
    assert sum(m.kernel_size == (3, 3) for m in convolutions) == 1 + 2 * 12


def test_images_are_normalised_inside():
    network = make().eval()
    plain = network.encoder((torch.full((1, 3, 32, 32), 0.75) - 0.5) / 0.25)
    inside = network(torch.full((1, 3, 32, 32), 0.75)).features
    torch.testing.assert_close(inside, plain)


def test_heads_are_not_run_unless_asked_for():
    network = make()
    out = network(torch.rand(2, 3, 32, 32), project=True)
    assert out.logits is None
    out.projection[:, 0].sum().backward()
    assert all(p.grad is None for p in network.classifier.parameters())
    assert all(p.grad is not None for p in network.projector.parameters())
    assert all(p.grad is not None for p in network.encoder.parameters())


def test_weights_come_from_the_generator_alone():
    first, second, other = make(seed=1), make(seed=1), make(seed=2)
    torch.manual_seed(5)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    weights = [p for p in first.parameters() if p.ndim > 1]
    others = [p for p in other.parameters() if p.ndim > 1]
    assert not any(torch.equal(a, b) for a, b in zip(weights, others, strict=True))


def test_your_own_module_is_taken_as_it_is():
    mine = nn.Sequential(nn.Flatten(), nn.Linear(64, 7))
    before = mine[1].weight.clone()
    network = make(shape=(1, 8, 8), encoder=mine)
    assert torch.equal(network.encoder[1].weight, before)
    out = network(torch.rand(3, 1, 8, 8), classify=True)
    assert out.features.shape == (3, 7)
    assert out.logits.shape == (3, 10)


def test_a_module_that_gives_no_rows_of_features_is_refused():
    with pytest.raises(ValueError, match="one row of features per image"):
        make(encoder=nn.Conv2d(3, 4, 3))
