"""Settings: the paper's values, overrides, and what is refused."""

import json
from dataclasses import asdict

import pytest
import torch
from safetensors.torch import save

from stct.train.checkpoint import settings_hash
from stct.train.config import Config
from stct.train.config_text import from_dict, override, read_toml, settings, to_toml
from stct.train.files import read_tensors
from stct.train.presets import PRESETS, preset


def test_the_papers_settings():
    for name in ("cifar10", "cifar100", "clothing1m"):
        config = preset(f"paper-{name}")
        assert config.correct.val_ratio == 0.5  # r
        assert config.correct.agreement == 0.998  # delta
        assert config.correct.step_size == 0.2  # eta
        assert config.correct.coverage == 0.9999  # beta
        assert config.srl.temperature == 0.1  # tau
        assert config.srl.learning_rate == 0.002
        assert config.srl.momentum == 0.9
        assert config.srl.target_temperature == 0.1  # one tau on both sides of (14)
        assert config.correct.method == "split"
        assert not config.srl.soft_labels
        assert config.srl.unlabeled == "unselected"
        assert config.srl.threshold == "fixed"
        assert config.noisy_validation == 0.0
    ten, hundred, clothing = (
        preset(f"paper-{name}") for name in ("cifar10", "cifar100", "clothing1m")
    )
    k = [config.select.num_neighbors for config in (ten, hundred, clothing)]
    assert k == [2000, 300, 2000]
    assert (ten.srl.confidence, clothing.srl.confidence) == (0.95, 0.7)
    assert ten.encoder.depth == hundred.encoder.depth == 28
    assert (ten.encoder.width, hundred.encoder.width) == (2, 8)
    assert "resnet-50" in clothing.encoder.name
    assert clothing.pretrain.epochs == 0


@pytest.mark.parametrize("name", [n for n in PRESETS if not n.startswith("paper-")])
def test_presets_do_not_teach_that_all_similarities_are_equal(name):
    """With one tau on both sides of Eq. (14) they become so."""
    srl = preset(name).srl
    assert srl.target_temperature < srl.temperature
    assert srl.unlabeled == "all"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_json(name):
    config = preset(name)
    assert from_dict(json.loads(json.dumps(asdict(config)))) == config


def test_overrides_are_typed_by_the_setting():
    config = override(
        preset("tiny"),
        ["srl.steps=7", "srl.learning_rate=1", "correct.enabled=false", "num_rounds=2"],
    )
    assert config.srl.steps == 7
    assert config.srl.learning_rate == 1.0
    assert isinstance(config.srl.learning_rate, float)
    assert config.correct.enabled is False
    assert config.num_rounds == 2
    changed = {
        name
        for name, value in settings(config).items()
        if value != settings(preset("tiny"))[name]
    }
    assert changed == {
        *("srl.steps", "srl.learning_rate", "correct.enabled", "num_rounds")
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("srl.steps", "name=value"),
        ("srl.stepps=3", "near names: srl.steps"),
        ("srl=3", "no such setting"),
        ("num_rounds.x=3", "no such setting"),
        ("srl.steps=many", "a whole number"),
        ("srl.steps=1.5", "a whole number"),
        ("srl.steps=true", "a whole number"),
        ("srl.learning_rate=fast", "a number"),
        ("augment.flip=1", "true or false"),
        ("srl.steps=0", "1 or more"),
        ("srl.confidence=1.5", "from 0.0 to 1.0"),
        ("srl.temperature=0", "above 0"),
        ("srl.learning_rate=nan", "a number"),
        ("encoder.depth=11", "10, 16, 22, 28"),
        ("encoder.name=vgg", "'efficientnet-lite0' or 'hf:"),
        ("correct.method=best", "loo, split or paper"),
        ("correct.val_ratio=5", "correct.val_ratio must be above 0.0 and below 1.0"),
        ("correct.val_ratio=1", "above 0.0 and below 1.0"),
        ("correct.coverage=0", "above 0.0 and below 1.0"),
        ("correct.step_size=-3", "correct.step_size must be above 0"),
        ("correct.agreement=2", "from 0.0 to 1.0"),
        ("srl.learning_rate=1e999", r"srl.learning_rate must be from 0.0 to 1e\+30"),
        ("srl.learning_rate=1e39", "from 0.0 to"),
        ("pretrain.learning_rate=1e39", "from 0.0 to"),
        ("pretrain.weight_decay=1e39", "from 0.0 to"),
        ("srl.unlabeled_weight=1e999", "0 or more, and finite"),
        ("srl.temperature=1e999", "above 0, and finite"),
    ],
)
def test_wrong_settings_say_what_is_allowed(text, message):
    with pytest.raises(ValueError, match=message):
        override(preset("tiny"), [text])


def test_unknown_preset_lists_the_known():
    with pytest.raises(ValueError, match="tiny, cpu, photos, cifar10"):
        preset("huge")


def test_settings_of_another_version_are_refused():
    values = asdict(preset("tiny"))
    values["srl"]["new_one"] = 3
    with pytest.raises(ValueError, match="new_one"):
        from_dict(values)


def test_a_run_of_an_older_version_goes_on_as_it_began():
    """Its settings lack what came later, and its checkpoint knows them by a hash."""
    config = override(Config(), ["srl.unlabeled=unselected"])
    written = asdict(config)
    for name in ("unlabeled", "threshold", "optimizer", "layer_decay"):
        del written["srl"][name]
    del written["precision"]
    old = from_dict(written)
    assert old == config  # D_U as it was
    digest = settings_hash(old, 3)
    assert digest == "1689f359945baf09942fd4e1dd137b4bf497afedd035f1e5f1d8ca17c57fbb20"
    assert settings_hash(Config(), 3) != digest


def test_a_runs_settings_start_another_run(tmp_path):
    """Written as TOML and read again, on top of any preset."""
    config = override(
        preset("photos"), ["srl.steps=7", 'encoder.name=hf:a "b"', "precision=bf16"]
    )
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config, "photos"))
    assert read_toml(path, preset("tiny")) == config
    path.write_text('num_rounds = 5\n[srl]\nsteps = 9\nthreshold = "adaptive"\n')
    changed = read_toml(path, preset("tiny"))
    assert (changed.num_rounds, changed.srl.steps) == (5, 9)
    assert changed.srl.threshold == "adaptive"
    assert changed.pretrain == preset("tiny").pretrain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("srl = ", "config.toml: not a TOML file"),
        ("[srl]\nstepps = 3", "config.toml: srl.stepps=3: there is no such setting"),
        ("[srl]\nsteps = 1.5", "config.toml: srl.steps=1.5: must be a whole number"),
        ("num_rounds = 1979-05-27", "must be a whole number"),
        ("num_rounds = 0", "config.toml: num_rounds must be 1 or more"),
    ],
)
def test_wrong_settings_of_a_file_name_it(tmp_path, text, message):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_toml(tmp_path / "config.toml", preset("tiny"))


def test_a_file_of_an_older_version_has_no_checksum_and_is_read(tmp_path):
    path = tmp_path / "old.safetensors"
    path.write_bytes(save({"x": torch.ones(2)}, metadata={"phase": "srl"}))
    tensors, texts = read_tensors(path)
    assert (tensors["x"].tolist(), texts) == ([1.0, 1.0], {"phase": "srl"})
