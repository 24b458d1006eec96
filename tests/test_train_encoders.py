"""Pretrained encoders in training, and trained models as encoders."""

import csv

import numpy as np
import pytest
import torch
from command import assert_error, stct
from hf_models import MEAN, STD
from hf_models import save_model as save_hf_model
from PIL import Image

from stct.encoders import embed
from stct.train import networks
from stct.train.as_encoder import own_encoder
from stct.train.config import Encoder
from stct.train.model_file import About, load_model, save_model


def build(name, shape, **keywords):
    settings = Encoder(name=name) if name else Encoder(depth=10, width=1)
    return settings, networks.build(
        settings,
        num_classes=3,
        mean=torch.full((shape[0],), 0.5),
        std=torch.full((shape[0],), 0.25),
        generator=torch.Generator().manual_seed(0),
        image_shape=shape,
        **keywords,
    )


def test_hugging_face_backbone_is_trained_and_saved(tmp_path):
    model = save_hf_model(tmp_path / "hf", "resnet")
    settings, network = build(f"hf:{tmp_path / 'hf'}", (3, 32, 32))
    # Its own normalisation, not that of the images.
    assert network.mean.flatten().tolist() == pytest.approx(MEAN)
    assert network.std.flatten().tolist() == pytest.approx(STD)
    x = torch.rand(4, 3, 32, 32)
    expected = model((x - network.mean) / network.std).pooler_output.flatten(1)
    network.eval()
    torch.testing.assert_close(network(x).features, expected, rtol=1e-4, atol=1e-5)
    network.train()(x, classify=True).logits.sum().backward()
    assert all(p.grad is not None for p in network.encoder.parameters())

    with torch.no_grad():  # as if trained
        for parameter in network.encoder.parameters():
            parameter += 0.01
    network.eval()
    about = About(settings, False, ["a", "b", "c"], (3, 32, 32))
    save_model(tmp_path / "m.safetensors", network, about)
    (tmp_path / "hf").rename(tmp_path / "gone")  # the file is enough
    again, _ = load_model(tmp_path / "m.safetensors")
    torch.testing.assert_close(again(x).features, network(x).features)


@pytest.mark.parametrize("kind", ["vit-classifier", "vit", "clip", "dinov2"])
def test_a_model_gives_the_features_it_was_trained_with(tmp_path, kind):
    """A classifier's file has no pooler: the class token counts, also after loading."""
    save_hf_model(tmp_path / "hf", kind)
    settings, network = build(f"hf:{tmp_path / 'hf'}", (3, 16, 16))
    about = About(settings, False, ["a", "b", "c"], (3, 16, 16))
    save_model(tmp_path / "m.safetensors", network.eval(), about)
    again, _ = load_model(tmp_path / "m.safetensors")
    x = torch.rand(4, 3, 16, 16)
    torch.testing.assert_close(again(x).features, network(x).features)


@pytest.mark.slow
def test_a_run_with_a_relative_encoder_is_used_from_anywhere(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    save_hf_model(here / "hf", "resnet")
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = rng.integers(0, 90, (40, 16, 16, 3)) + 150 * labels[:, None, None, None]
    np.savez(here / "train.npz", images=images.astype(np.uint8), labels=labels)
    short = ["encoder.name=hf:hf", "pretrain.epochs=1", "srl.steps=1", "num_rounds=1"]
    options = [text for setting in short for text in ("--set", setting)]
    train = ["train", "train.npz", "--preset", "tiny", *options, "-o", "run"]
    done = stct(*train, cwd=here)
    assert done.returncode == 0, done.stderr
    (here / "run" / "summary.json").unlink()  # as if it was killed
    done = stct("train", "--resume", here / "run", "--quiet", cwd=there)
    assert done.returncode == 0, done.stderr
    (here / "hf").rename(here / "gone")
    predict = ["predict", here / "run", here / "train.npz", "-o", "p.csv"]
    done = stct(*predict, cwd=there)
    assert done.returncode == 0, done.stderr


def test_hugging_face_backbone_needs_colour(tmp_path):
    save_hf_model(tmp_path, "resnet")
    with pytest.raises(ValueError, match="needs colour images"):
        build(f"hf:{tmp_path}", (1, 32, 32))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_trained_model_is_an_encoder(tmp_path, channels):
    settings, network = build(None, (channels, 16, 16))
    about = About(settings, False, ["a", "b", "c"], (channels, 16, 16))
    save_model(tmp_path / "model.safetensors", network.eval(), about)
    images = np.random.default_rng(0).integers(0, 256, (5, 16, 16, channels), np.uint8)
    got = embed(images, own_encoder(tmp_path / "model.safetensors"))
    x = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        expected = network(x).features.numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_correct_with_a_trained_model(tmp_path):
    settings, network = build(None, (3, 16, 16))
    about = About(settings, False, ["a", "b", "c"], (3, 16, 16))
    (tmp_path / "run").mkdir()
    save_model(tmp_path / "run" / "model.safetensors", network.eval(), about)
    generator = np.random.default_rng(0)
    for i in range(120):
        folder = tmp_path / "photos" / ("dark" if i % 2 else "light")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 90, (20, 16, 3)) + 150 * (1 - i % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    (tmp_path / "photos" / "dark" / "1.png").rename(tmp_path / "photos/light/1.png")
    command = ["correct", "photos", "--no-cache", "--encoder"]
    done = stct(*command, "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "stct-output" / "patch.csv").open() as file:
        changes = [(row["id"], row["new"]) for row in csv.DictReader(file)]
    assert changes == [("light/1.png", "dark")]
    done = stct(*command, "photos", "-o", "other", cwd=tmp_path)
    assert_error(done, "photos", "model")
