"""Augmentation: known values, naive references, and the drawn distributions."""

import math

import numpy as np
import pytest
import torch

from stct.train import augment
from stct.train.config import Augment

B = 4000


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def batch(generator):
    return torch.randint(0, 256, (6, 12, 10, 3), generator=generator, dtype=torch.uint8)


def still(b):
    """A warp that changes nothing."""
    eye = torch.eye(3)[:2].expand(b, 2, 3)
    one = torch.ones(b)
    return augment.Warp(eye, one, one, one, torch.zeros(b), 2 * one, torch.zeros(b, 3))


def as_float(batch):
    return batch.numpy().transpose(0, 3, 1, 2) / 255.0


def test_to_float_is_exact(batch):
    np.testing.assert_allclose(
        augment.to_float(batch).numpy(), as_float(batch), rtol=1e-6
    )


def test_weak_against_reflect_padding(batch):
    draw = augment.Weak(
        torch.tensor([0.2, -0.2, 0.0, 0.1, -0.1, 0.0]),  # 10 columns: 2, -2, 0, 1, ...
        torch.tensor([0.0, 0.25, -0.25, 0.0, 1 / 12, 0.0]),
        torch.tensor([False, True, False, True, False, True]),
    )
    got = augment.weak(batch, draw).numpy()
    for i, image in enumerate(as_float(batch)):
        image = image[:, :, ::-1] if draw.flip[i] else image
        padded = np.pad(image, [(0, 0), (4, 4), (4, 4)], mode="reflect")
        sign = -1 if draw.flip[i] else 1  # the shift is of the image as it was
        x = 4 + sign * round(draw.shift_x[i].item() * 10)
        y = 4 + round(draw.shift_y[i].item() * 12)
        np.testing.assert_allclose(got[i], padded[:, y : y + 12, x : x + 10], rtol=1e-6)


def test_a_warp_of_nothing_changes_nothing(batch):
    got = augment.warp(batch, still(6)).numpy()
    np.testing.assert_allclose(got, as_float(batch), atol=1e-5)


def test_warp_flips_and_shifts_as_its_matrix_says(batch):
    flip = torch.tensor([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).expand(6, 2, 3)
    got = augment.warp(batch, still(6)._replace(matrix=flip)).numpy()
    np.testing.assert_allclose(got, as_float(batch)[..., ::-1], atol=1e-5)
    shift = torch.tensor([[1.0, 0.0, 0.4], [0.0, 1.0, 0.0]]).expand(6, 2, 3)  # 2 of 10
    got = augment.warp(batch, still(6)._replace(matrix=shift)).numpy()
    np.testing.assert_allclose(got[..., :8], as_float(batch)[..., 2:], atol=1e-5)


def test_a_crop_of_half_the_size_reads_the_middle():
    batch = torch.zeros(1, 8, 8, 1, dtype=torch.uint8)
    batch[:, 2:6, 2:6] = 255
    half = torch.tensor([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])[None]
    got = augment.warp(batch, still(1)._replace(matrix=half), size=(4, 4))
    assert got.shape == (1, 1, 4, 4)
    np.testing.assert_allclose(got.numpy(), 1.0, atol=1e-6)


def naive_colours(image, brightness, contrast, saturation):
    """Brightness, then contrast about the grey mean, then saturation: (3, h, w)."""
    grey = np.array([0.299, 0.587, 0.114])
    image = image * brightness
    mean = np.tensordot(grey, image, 1).mean()
    image = mean + contrast * (image - mean)
    level = np.tensordot(grey, image, 1)[None]
    return np.clip(level + saturation * (image - level), 0, 1)


def test_colours_against_one_operation_after_another(batch):
    draw = still(6)._replace(
        brightness=torch.tensor([1.0, 0.7, 1.2, 0.9, 1.0, 1.1]),
        contrast=torch.tensor([1.0, 1.0, 0.6, 1.3, 0.5, 0.8]),
        saturation=torch.tensor([1.0, 1.0, 1.0, 0.0, 1.7, 0.4]),
    )
    got = augment.warp(batch, draw).numpy()
    for i, image in enumerate(as_float(batch)):
        expected = naive_colours(
            image,
            draw.brightness[i].item(),
            draw.contrast[i].item(),
            draw.saturation[i].item(),
        )
        np.testing.assert_allclose(got[i], expected, atol=1e-5)


def test_hue_turns_about_grey(batch):
    third = torch.full((6,), 2 * math.pi / 3)
    got = augment.warp(batch, still(6)._replace(hue=third)).numpy()
    np.testing.assert_allclose(got, as_float(batch)[:, [2, 0, 1]], atol=1e-5)
    grey = torch.full((1, 4, 4, 3), 100, dtype=torch.uint8)
    turned = augment.warp(grey, still(1)._replace(hue=torch.tensor([1.0])))
    np.testing.assert_allclose(turned.numpy(), 100 / 255, atol=1e-5)


def test_grey_images_have_brightness_and_contrast_only():
    batch = torch.tensor([[[[0], [100]], [[200], [100]]]], dtype=torch.uint8)
    draw = still(1)._replace(
        brightness=torch.tensor([1.2]),
        contrast=torch.tensor([0.5]),
        saturation=torch.tensor([0.0]),
        hue=torch.tensor([1.0]),
    )
    x = np.array([[0, 100], [200, 100]]) / 255 * 1.2
    expected = x.mean() + 0.5 * (x - x.mean())
    np.testing.assert_allclose(
        augment.warp(batch, draw)[0, 0].numpy(), expected, atol=1e-6
    )


def test_solarize_inverts_what_is_bright(batch):
    draw = still(6)._replace(solarize=torch.full((6,), 0.5))
    x = as_float(batch)
    np.testing.assert_allclose(
        augment.warp(batch, draw).numpy(), np.where(x > 0.5, 1 - x, x), atol=1e-4
    )


def test_cutout_greys_a_square(batch):
    place = torch.tensor([[0.0, 0.0, 0.55]]).expand(6, 3)
    got = augment.warp(batch, still(6)._replace(cutout=place)).numpy()
    cut = np.isclose(got, 0.5).all(axis=1)[0]
    expected = np.zeros((12, 10), dtype=bool)
    expected[3:9, 2:8] = True  # half a side each way: pixels whose centre is inside
    np.testing.assert_array_equal(cut & expected, expected)
    np.testing.assert_allclose(
        got[:, :, ~expected], as_float(batch)[:, :, ~expected], atol=1e-5
    )


def test_weak_draws_are_uniform_and_half_are_flipped(generator):
    draw = augment.draw_weak(B, Augment(), generator)
    for shift in (draw.shift_x, draw.shift_y):
        assert shift.abs().max() <= 0.125
        assert shift.mean().abs() < 0.005
        assert shift.std().item() == pytest.approx(0.25 / math.sqrt(12), rel=0.03)
    assert draw.flip.float().mean().item() == pytest.approx(0.5, abs=0.03)
    assert not augment.draw_weak(B, Augment(flip=False), generator).flip.any()


def test_strong_draws_two_operations_from_all(generator):
    draw = augment.draw_strong(B, Augment(), generator)
    for name, change in (("brightness", 0.6), ("contrast", 0.6), ("saturation", 0.9)):
        values = getattr(draw, name) - 1.0
        drawn = (values != 0).float().mean().item()
        assert drawn == pytest.approx(1 - (9 / 10) ** 2, abs=0.03), name
        assert values.abs().max().item() == pytest.approx(change, rel=0.03), name
    solarized = draw.solarize <= 1.0
    assert 0.02 < solarized.float().mean() < 0.19
    assert draw.solarize.min() >= 0.5
    assert (draw.cutout[:, 2] == 0.5).all()
    none = augment.draw_strong(B, Augment(num_ops=0, flip=False, shift=0.0), generator)
    torch.testing.assert_close(none.matrix, torch.eye(3)[:2].expand(B, 2, 3))
    assert (none.brightness == 1).all()


def test_views_crop_a_share_of_the_area(generator):
    settings = Augment(min_crop=0.3)
    draw = augment.draw_view(B, settings, generator)
    wide, high = draw.matrix[:, 0, 0].abs(), draw.matrix[:, 1, 1]
    area, free = wide * high, (wide < 1) & (high < 1)
    assert area.min() >= 0.3 * 0.75
    assert area[free].min() >= 0.3 - 1e-5
    ratio = (wide / high)[free]
    assert ratio.min() >= 3 / 4 - 1e-4
    assert ratio.max() <= 4 / 3 + 1e-4
    corner = draw.matrix[:, 0, 2].abs() + wide
    assert corner.max() <= 1 + 1e-5  # never outside the image
    assert (draw.matrix[:, 0, 0] < 0).float().mean().item() == pytest.approx(
        0.5, abs=0.03
    )
    assert (draw.saturation == 0).float().mean().item() == pytest.approx(0.2, abs=0.03)
    unjittered = (draw.brightness == 1).float().mean().item()
    assert unjittered == pytest.approx(0.2, abs=0.03)
    assert (draw.brightness - 1).abs().max() <= 0.4
    assert draw.hue.abs().max() <= 0.1 * 2 * math.pi


def test_same_generator_same_draws():
    for drawer in (augment.draw_weak, augment.draw_strong, augment.draw_view):
        first, second = (
            drawer(8, Augment(), torch.Generator().manual_seed(3)) for _ in range(2)
        )
        for a, b in zip(first, second, strict=True):
            assert a is b or torch.equal(a, b)  # or both None


def test_results_are_in_range_for_all_kinds(generator):
    for channels in (1, 3):
        batch = torch.randint(
            0, 256, (64, 9, 8, channels), generator=generator, dtype=torch.uint8
        )
        for image in (
            augment.weak(batch, augment.draw_weak(64, Augment(), generator)),
            augment.warp(batch, augment.draw_strong(64, Augment(), generator)),
            augment.warp(batch, augment.draw_view(64, Augment(), generator)),
        ):
            assert image.shape == (64, channels, 9, 8)
            assert image.min() >= 0.0
            assert image.max() <= 1.0
