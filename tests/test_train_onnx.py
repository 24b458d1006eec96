"""The model as an ONNX file, run by another program than torch."""

import json

import numpy as np
import pytest
import torch

from stct.train import networks, onnx_file
from stct.train.config import Encoder
from stct.train.model_file import About, save_model
from stct.train.onnx_file import write_onnx

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture
def model(tmp_path):
    settings = Encoder(depth=10, width=1, projection=8)
    network = networks.build(
        settings,
        num_classes=3,
        mean=torch.full((3,), 0.4),
        std=torch.full((3,), 0.2),
        generator=torch.Generator().manual_seed(0),
        image_shape=(3, 10, 12),
    ).eval()
    path = tmp_path / "model.safetensors"
    save_model(path, network, About(settings, False, ["a", "b", 7], (3, 10, 12)))
    return path, network


@pytest.mark.slow
def test_the_file_predicts_what_the_model_predicts(model, tmp_path):
    path, network = model
    out = tmp_path / "m.onnx"
    write_onnx(path, out)
    session = onnxruntime.InferenceSession(out)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == [
        *("a", "b", 7)
    ]
    rng = np.random.default_rng(0)
    for n in (1, 5):  # any number of images
        images = rng.integers(0, 255, (n, 10, 12, 3)).astype(np.uint8)
        (found,) = session.run(["probabilities"], {"images": images})
        x = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
        with torch.no_grad():
            expected = network(x, classify=True).logits.softmax(dim=1)
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="exists"):
        write_onnx(path, out)


def test_bad_requests_are_one_line(model, tmp_path, monkeypatch):
    path, _ = model
    with pytest.raises(ValueError, match=r"ends in \.onnx"):
        write_onnx(path, tmp_path / "m.bin")
    monkeypatch.setattr(onnx_file, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"stct\[onnx\]"):
        write_onnx(path, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
