"""Photos: files from a camera, and the preset that fine-tunes for them."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from train_runs import FAST

from stct.train import STCT, networks, preset, training
from stct.train.command import new_request, run_training
from stct.train.config import Encoder
from stct.train.config_text import override
from stct.train.model_file import load_model
from stct.train.request import read_data, with_size


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Twelve photos of a phone held upright, in two classes, and a small one."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for i in range(13):
        place = folder / ("indoors" if i % 2 else "outdoors")
        place.mkdir(exist_ok=True)
        size = (300, 400) if i < 12 else (90, 80)
        low = rng.integers(0, 90, (8, 6, 3)) + 120 * (i % 2)
        image = Image.fromarray(low.astype(np.uint8)).resize(size)
        image.save(place / f"{i:02d}.jpg", quality=80)
    return folder


def request_for(folder, *assignments, name="tiny"):
    return new_request(
        folder, preset_name=name, assignments=assignments, seed=0, test=None, init=None
    )


def quiet(_):
    pass


def test_photos_are_trained_at_224_and_a_resumed_run_knows(photos, tmp_path):
    request = request_for(photos)
    data = read_data(request.data, request, photos_at=224)
    assert data.images.shape == (13, 224, 224, 3)
    assert with_size(request, data).config.image_size == 224
    # A size that is set is taken, small images stay as they are.
    chosen = request_for(photos, "image_size=32")
    assert read_data(chosen.data, chosen, photos_at=224).images.shape[1] == 32
    small = tmp_path / "small"
    for name in ("a", "b"):
        (small / name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (40, 30)).save(small / name / f"{i}.png")
    request = request_for(small)
    data = read_data(request.data, request, photos_at=224)
    assert data.images.shape == (6, 30, 40, 3)
    assert with_size(request, data) == request


def test_what_cannot_fit_is_refused_before_anything_is_written(
    photos, tmp_path, monkeypatch
):
    monkeypatch.setattr(training, "free_memory", lambda device: 2e8)
    folder = tmp_path / "run"
    with pytest.raises(ValueError, match=r"a step of pretrain with 26 images of 224 x"):
        run_training(folder, request_for(photos), show=quiet, save_every=60.0)
    assert not folder.exists()


def test_a_run_says_what_a_step_needs_before_the_first(data, tmp_path):
    said, steps = [], []
    request = request_for(data / "train.npz", *FAST[3::2])
    run_training(
        tmp_path / "run",
        request,
        show=lambda now: steps.append(len(said)),
        save_every=60.0,
        say=said.append,
    )
    (text,) = said
    assert "48 images of 8 x 8 a step, about" in text or "128 images of 8 x 8" in text
    assert set(steps) == {1}
    facts = json.loads((tmp_path / "run" / "config.json").read_text())
    assert facts["threads"] == torch.get_num_threads()
    rounds = json.loads((tmp_path / "run" / "summary.json").read_text())["training"]
    assert [entry["unlabeled"] for entry in rounds["rounds"]] == [240, 240]


@pytest.mark.slow
def test_the_preset_fine_tunes_an_encoder_of_imagenet(photos, tmp_path):
    small = ["image_size=64", "srl.steps=3", "num_rounds=1", "srl.batch_size=4"]
    small += ["srl.unlabeled_batch_size=4", "srl.num_anchors=4"]
    config = override(preset("photos"), small)
    model = STCT(config=config).fit(photos)
    assert len(model.labels_) == 13
    before = networks.build(
        Encoder(name="efficientnet-lite0"),
        num_classes=2,
        mean=torch.zeros(3),
        std=torch.ones(3),
        generator=torch.Generator().manual_seed(0),
        image_shape=(3, 64, 64),
    )
    moved = {
        name: float((p - q).detach().abs().max())
        for (name, p), q in zip(
            model.network_.encoder.named_parameters(),
            before.encoder.parameters(),
            strict=True,
        )
    }
    first, last = moved["model._conv_stem.weight"], moved["model._conv_head.weight"]
    assert 0 < 3 * first < last  # layers near the pixels learn slowly
    model.save(tmp_path / "m.safetensors")
    again, _ = load_model(tmp_path / "m.safetensors")
    x = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(again(x).features, model.network_(x).features)
