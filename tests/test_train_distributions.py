"""What augmentation draws: every parameter against the distribution it should have."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from stct.train import augment
from stct.train.config import Augment

B = 40_000
PLAIN = {"flip": False, "shift": 0.0, "cutout": 0.0}  # nothing but operations


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def assert_uniform(values, low, high):
    """Kolmogorov and Smirnov have nothing against it; the draws are seeded."""
    values = np.asarray(values, dtype=np.float64)
    assert len(values) > 1000
    assert values.min() >= low - 1e-5
    assert values.max() <= high + 1e-5
    assert stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > 1e-3


def assert_unrelated(*parameters):
    drawn = np.stack([np.asarray(values, dtype=np.float64) for values in parameters])
    off = np.corrcoef(drawn) - np.eye(len(drawn))
    assert np.abs(off).max() < 0.05


def cell(row, column):
    return lambda draw: draw.matrix[:, row, column]


# Each operation: where its value is seen, and its range at magnitude 1.
OPERATIONS = {
    "rotate": (
        lambda draw: torch.atan2(draw.matrix[:, 1, 0], draw.matrix[:, 0, 0]),
        math.pi / 6,
    ),
    "shear_x": (cell(0, 1), 0.3),
    "shear_y": (cell(1, 0), 0.3),
    "translate_x": (cell(0, 2), 0.6),  # the side is 2 long
    "translate_y": (cell(1, 2), 0.6),
    "zoom": (lambda draw: draw.matrix[:, 0, 0] - 1.0, 0.3),
    "brightness": (lambda draw: draw.brightness - 1.0, 0.6),
    "contrast": (lambda draw: draw.contrast - 1.0, 0.6),
    "saturation": (lambda draw: draw.saturation - 1.0, 0.9),
}


def draw_only(name, monkeypatch, generator, **settings):
    """Draw one operation for each image, of which only ``name`` does anything."""
    for other in augment.STRONG_RANGES:
        if other != name:
            monkeypatch.setitem(augment.STRONG_RANGES, other, 0.0)
    return augment.draw_strong(B, Augment(num_ops=1, **PLAIN, **settings), generator)


@pytest.mark.parametrize("magnitude", [1.0, 0.5])
@pytest.mark.parametrize("name", OPERATIONS)
def test_one_strong_operation(name, magnitude, monkeypatch, generator):
    value, most = OPERATIONS[name]
    draw = draw_only(name, monkeypatch, generator, magnitude=magnitude)
    values = value(draw)
    drawn = values.abs() > 1e-6
    assert drawn.float().mean().item() == pytest.approx(0.1, abs=0.01)
    assert_uniform(values[drawn], -most * magnitude, most * magnitude)


def test_all_operations_are_known():
    assert set(OPERATIONS) | {"solarize"} == set(augment.STRONG_RANGES)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_changes_nothing_else(name, monkeypatch, generator):
    draw = draw_only(name, monkeypatch, generator)
    zero = torch.zeros(B)
    angle = OPERATIONS[name][0](draw) if name == "rotate" else zero
    scale = draw.matrix[:, 0, 0] if name == "zoom" else angle.cos()
    expected = torch.stack(
        [scale, -angle.sin(), zero, angle.sin(), scale, zero], dim=1
    ).view(B, 2, 3)
    place = {"shear_x": (0, 1), "shear_y": (1, 0)}
    place |= {"translate_x": (0, 2), "translate_y": (1, 2)}
    if name in place:
        row, column = place[name]
        expected[:, row, column] = draw.matrix[:, row, column]
    torch.testing.assert_close(draw.matrix, expected, rtol=0, atol=1e-5)
    for other in ("brightness", "contrast", "saturation"):
        assert other == name or (getattr(draw, other) == 1).all(), other
    assert (draw.solarize == 2).all()
    assert (draw.hue == 0).all()


def test_solarize_falls_from_none_to_half(monkeypatch, generator):
    draw = draw_only("solarize", monkeypatch, generator)
    assert_uniform(draw.solarize[draw.solarize < 2.0], 0.5, 2.0)
    half = draw_only("solarize", monkeypatch, generator, magnitude=0.5)
    assert_uniform(half.solarize[half.solarize < 2.0], 1.25, 2.0)


def test_more_than_full_magnitude_stays_in_the_range(monkeypatch, generator):
    draw = draw_only("brightness", monkeypatch, generator, magnitude=2.0)
    values = (draw.brightness - 1.0).abs()
    full = torch.isclose(values, torch.tensor(0.6), atol=1e-5)
    assert values.max() <= 0.6 + 1e-5
    share = full.sum() / (values > 1e-6).sum()
    assert share.item() == pytest.approx(0.5, abs=0.03)


def test_a_strong_view_is_flipped_and_shifted_too(generator):
    draw = augment.draw_strong(B, Augment(num_ops=0, shift=0.125), generator)
    mirror = draw.matrix[:, 0, 0]
    assert set(mirror.tolist()) == {-1.0, 1.0}
    assert mirror.mean().abs() < 0.02
    assert_uniform(draw.matrix[:, 0, 2], -0.25, 0.25)  # the side is 2 long
    assert_uniform(draw.matrix[:, 1, 2], -0.25, 0.25)
    assert_unrelated(mirror, draw.matrix[:, 0, 2], draw.matrix[:, 1, 2])


def test_a_strong_view_turns_about_its_middle(monkeypatch):
    """First turned, then flipped and shifted: the shift is not turned with it."""
    for name in set(augment.STRONG_RANGES) - {"rotate"}:
        monkeypatch.setitem(augment.STRONG_RANGES, name, 0.0)
    settings = Augment(shift=0.1, cutout=0.0)
    drawn, weak = (
        drawer(500, settings, torch.Generator().manual_seed(0))
        for drawer in (augment.draw_strong, augment.draw_weak)
    )
    shift = torch.stack([2 * weak.shift_x, 2 * weak.shift_y], dim=1)
    torch.testing.assert_close(drawn.matrix[:, :, 2], shift)
    mirror = 1.0 - 2.0 * weak.flip.float()
    torch.testing.assert_close(drawn.matrix[:, 0, 0] * mirror, drawn.matrix[:, 1, 1])
    torch.testing.assert_close(drawn.matrix[:, 0, 1] * mirror, -drawn.matrix[:, 1, 0])


@pytest.mark.parametrize("side", [0.25, 0.5])
def test_cutout_is_of_one_size_and_anywhere(side, generator):
    draw = augment.draw_strong(B, Augment(cutout=side), generator)
    x, y, half = draw.cutout.T
    assert_uniform(x, -1.0, 1.0)
    assert_uniform(y, -1.0, 1.0)
    assert_unrelated(x, y)
    assert (half == side).all()
    # In pixels: a square of this share of the side, where it does not hang over.
    settings = Augment(num_ops=0, flip=False, shift=0.0, cutout=side)
    white = torch.full((400, 16, 16, 1), 255, dtype=torch.uint8)
    cut = augment.warp(white, augment.draw_strong(400, settings, generator)) == 0.5
    assert cut.flatten(1).sum(dim=1).max() == (16 * side) ** 2
    assert cut.any(dim=0).all()


@pytest.mark.parametrize("smallest", [0.2, 0.4])
def test_views_are_crops_of_any_share_and_place(smallest, generator):
    draw = augment.draw_view(B, Augment(min_crop=smallest), generator)
    wide, high = draw.matrix[:, 0, 0].abs(), draw.matrix[:, 1, 1]
    area = wide * high
    free = area < 0.75  # a smaller crop fits into the image whatever its ratio
    share = (0.75 - smallest) / (1.0 - smallest)
    assert free.float().mean().item() == pytest.approx(share, abs=0.01)
    assert_uniform(area[free], smallest, 0.75)
    ratio = (wide / high).log()
    assert_uniform(ratio[free], math.log(3 / 4), math.log(4 / 3))
    x = draw.matrix[:, 0, 2] / (1.0 - wide)
    y = draw.matrix[:, 1, 2] / (1.0 - high)
    assert_uniform(x[free], -1.0, 1.0)
    assert_uniform(y[free], -1.0, 1.0)
    assert_unrelated(area[free], ratio[free], x[free], y[free])
    assert draw.cutout is None
    assert (draw.solarize > 1.0).all()


@pytest.mark.parametrize("strength", [0.5, 0.25])
def test_views_jitter_every_colour_parameter(strength, generator):
    draw = augment.draw_view(B, Augment(jitter=strength), generator)
    jittered = draw.hue != 0
    assert jittered.float().mean().item() == pytest.approx(0.8, abs=0.01)
    grey = draw.saturation == 0
    assert grey.float().mean().item() == pytest.approx(0.2, abs=0.01)
    most = 0.8 * strength
    chosen = jittered & ~grey
    for name in ("brightness", "contrast", "saturation"):
        values = getattr(draw, name)
        assert_uniform(values[chosen] - 1.0, -most, most)
        assert (values[~jittered & ~grey] == 1).all(), name
    turn = 0.2 * strength * 2 * math.pi
    assert_uniform(draw.hue[chosen], -turn, turn)
    colours = [draw.brightness, draw.contrast, draw.saturation, draw.hue]
    assert_unrelated(*(values[chosen] for values in colours))


def test_no_jitter_leaves_the_colours(generator):
    draw = augment.draw_view(B, Augment(jitter=0.0), generator)
    assert (draw.brightness == 1).all()
    assert (draw.contrast == 1).all()
    assert set(draw.saturation.tolist()) == {0.0, 1.0}
    assert (draw.hue == 0).all()


def test_weak_shifts_are_uniform(generator):
    draw = augment.draw_weak(B, Augment(shift=0.2), generator)
    assert_uniform(draw.shift_x, -0.2, 0.2)
    assert_uniform(draw.shift_y, -0.2, 0.2)
    assert_unrelated(draw.shift_x, draw.shift_y, draw.flip)


def test_outside_the_image_is_its_mirror_image(generator):
    batch = torch.randint(0, 256, (2, 8, 10, 3), generator=generator, dtype=torch.uint8)
    one, zero = torch.ones(2), torch.zeros(2)
    shift = torch.tensor([[1.0, 0.0, 0.4], [0.0, 1.0, -0.5]]).expand(2, 2, 3)
    draw = augment.Warp(shift, one, one, one, zero, 2 * one, torch.zeros(2, 3))
    image = batch.numpy().transpose(0, 3, 1, 2) / 255.0
    padded = np.pad(image, [(0, 0), (0, 0), (4, 4), (4, 4)], mode="symmetric")
    expected = padded[:, :, 2:10, 6:16]  # 2 rows up, 2 columns to the right
    np.testing.assert_allclose(augment.warp(batch, draw).numpy(), expected, atol=1e-5)
