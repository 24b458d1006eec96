"""Presets for a GPU, each trained for two steps in bf16 on the processor."""

import numpy as np
import pytest
import torch
from hf_models import save_model as save_hf_model

from stct.train import STCT, networks, preset
from stct.train.config_text import override
from stct.train.cost import step_costs
from stct.train.presets import PRESETS

GPU = [name for name in PRESETS if name.endswith(("cifar10", "cifar100", "clothing1m"))]
SMALL = [
    *("precision=bf16", "num_rounds=1", "pretrain.batch_size=8", "srl.steps=2"),
    *("srl.batch_size=8", "srl.unlabeled_batch_size=8", "srl.num_anchors=8"),
]


def settings(name, folder):
    """The preset with two steps of eight images, its backbone with random weights."""
    assignments = list(SMALL)
    if preset(name).pretrain.epochs:
        assignments.append("pretrain.epochs=1")
    if preset(name).encoder.name.startswith("hf:"):
        save_hf_model(folder, "resnet")
        assignments.append(f"encoder.name=hf:{folder}")
    return override(preset(name), assignments)


@pytest.mark.slow
@pytest.mark.parametrize("name", GPU)
def test_a_gpu_preset_takes_two_steps_in_bf16(name, tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (16, 16, 16, 3)).astype(np.uint8)
    config = settings(name, tmp_path)
    seen = []
    model = STCT(config=config).fit(
        images, np.arange(16) % 2, progress=lambda now: seen.append(now.step)
    )
    phases = [step.phase for step in seen if step is not None]
    assert phases == ["pretrain"] * (2 if config.pretrain.epochs else 0) + ["srl"] * 2
    assert all(torch.isfinite(p).all() for p in model.network_.parameters())
    assert {p.dtype for p in model.network_.parameters()} == {torch.float32}


@pytest.mark.parametrize("name", ["cifar10", "paper-cifar100", "clothing1m"])
def test_the_cost_of_a_gpu_preset_is_known_without_a_gpu(name, tmp_path):
    config = settings(name, tmp_path)
    network = networks.build(
        config.encoder,
        num_classes=10,
        mean=torch.zeros(3),
        std=torch.ones(3),
        generator=torch.Generator().manual_seed(0),
        image_shape=(3, 32, 32),
    )
    costs = step_costs(network, config, (3, 32, 32), num_images=1000)
    expected = ["pretrain", "srl"] if config.pretrain.epochs else ["srl"]
    assert [cost.phase for cost in costs] == expected
    assert all(cost.flops > 1e6 and cost.memory > 1e5 for cost in costs)
