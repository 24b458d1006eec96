"""What each part of Algorithm 1 is given, and where gradients go."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from test_train_algorithm import CONFIG, pictures, run, start

from stct.train import algorithm, augment, losses, srl
from stct.train.config import SRL
from stct.train.presets import PRESETS, preset
from stct.train.state import State, generator_at

FABRIC = Fabric(accelerator="cpu", devices=1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    images, truth = pictures(240, rng)
    given = np.where(rng.random(240) < 0.3, rng.integers(0, 4, 240), truth)
    return images, given.astype(np.intp)


def method(name):
    return replace(CONFIG, correct=replace(CONFIG.correct, method=name))


def recorded(monkeypatch, owner, name):
    """Let a function do its work and give the list of what it was called with."""
    calls, original = [], getattr(owner, name)

    def record(*arguments, **keywords):
        calls.append((arguments, keywords))
        return original(*arguments, **keywords)

    monkeypatch.setattr(owner, name, record)
    return calls


@pytest.mark.parametrize(
    ("name", "from_given"), [("loo", True), ("split", False), ("paper", False)]
)
def test_which_labels_start_a_round(data, monkeypatch, name, from_given):
    images, given = data
    calls = recorded(monkeypatch, algorithm, "fit_corrector")
    _, finished, *_ = run(images, given, method(name))
    first, second = (np.array(arguments[1]) for arguments, _ in calls)
    np.testing.assert_array_equal(first, given)
    expected = given if from_given else finished[0].labels
    np.testing.assert_array_equal(second, expected)
    if name == "split":  # else the two would be the same
        assert (finished[0].labels != given).any()
    state = State(None, None, labels=given[::-1])
    start = algorithm.starting_labels(given, state, method(name))
    assert start is (given if from_given else state.labels)


def test_the_transition_matrix_of_a_round_is_told_to_the_next(data, monkeypatch):
    images, given = data
    calls = recorded(monkeypatch, algorithm.LabelCorrector, "fit")
    config = replace(CONFIG, num_rounds=3)
    run(images, given, config)
    told = [keywords.get("transition_matrix") for _, keywords in calls]
    taught = [keywords.get("features_fitted_to_labels") for _, keywords in calls]
    assert taught == [None, True, True]
    fitted = [arguments[0].transition_matrix_ for arguments, _ in calls]
    assert told[0] is None
    np.testing.assert_array_equal(told[1], fitted[0])
    np.testing.assert_array_equal(told[2], fitted[1])


def test_mu_of_each_class_is_added_in_each_round(data):
    images, given = data
    config = replace(
        CONFIG,
        num_rounds=3,
        noisy_validation=0.0,
        select=replace(CONFIG.select, keep_per_round=0.25),
    )
    _, finished, *_ = run(images, given, config)
    for done in finished:
        for label in range(4):
            rows = done.labels == label
            expected = round(0.25 * done.number * rows.sum())
            assert done.clean[rows].sum() == expected


def batch_of(data, settings=CONFIG.srl, change=CONFIG.augment):
    images, given = data
    state, pixels = start(images, CONFIG, FABRIC)
    state.labels, state.clean = given, np.arange(240) < 100
    rows = srl.Rows.of(state, "all")
    draws = generator_at(0, "srl", 1, 0)
    return state, srl.draw_batch(pixels, rows, settings, change, draws, FABRIC)


def test_gradients_flow_through_what_is_taught_and_not_through_targets(data):
    state, batch = batch_of(data)
    settings = replace(CONFIG.srl, confidence=0.0)
    seen = batch._replace(
        **{
            name: getattr(batch, name).clone().requires_grad_()
            for name in ("labeled", "strong", "weak", "anchors")
        }
    )
    srl.forward(state, seen, settings, FABRIC).total.backward()
    assert seen.labeled.grad.abs().sum() > 0
    assert seen.strong.grad.abs().sum() > 0
    assert seen.weak.grad is None
    assert seen.anchors.grad is None


def test_the_strong_view_is_the_same_images_strongly_changed(data):
    change = replace(CONFIG.augment, shift=0.0, num_ops=0, cutout=0.5)
    _, batch = batch_of(data, change=change)
    cut = batch.strong == 0.5
    assert cut.flatten(1).any(dim=1).all()  # in every image
    assert not (batch.weak == 0.5).any()
    torch.testing.assert_close(
        batch.strong[~cut], batch.weak[~cut], rtol=0.0, atol=1e-5
    )
    _, batch = batch_of(data, change=replace(change, num_ops=2, cutout=0.0))
    moved = (batch.strong - batch.weak).abs().flatten(1).amax(dim=1) > 0.01
    assert moved.float().mean() > 0.7


def test_weights_scale_their_loss(data):
    state, batch = batch_of(data)
    state.module.eval()
    weights = {"labeled_weight": 0.5, "unlabeled_weight": 3, "consistency_weight": 0.2}
    settings = replace(CONFIG.srl, confidence=0.0, **weights)
    loss = srl.forward(state, batch, settings, FABRIC)
    expected = 0.5 * loss.labeled + 3 * loss.unlabeled + 0.2 * loss.consistency
    torch.testing.assert_close(loss.total, expected)
    assert min(loss.labeled, loss.unlabeled, loss.consistency) > 0
    # Also where nothing but labels is learnt from.
    alone = replace(settings, unlabeled_weight=0.0, consistency_weight=0.0)
    _, batch = batch_of(data, settings=alone)
    loss = srl.forward(state, batch, alone, FABRIC)
    torch.testing.assert_close(loss.total, 0.5 * loss.labeled)


def test_weights_decay_and_biases_and_norms_do_not():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Linear(2, 2)
    )
    network[2].weight.requires_grad_(False)
    optimizer = State(network, network).optimizer_for(
        "sgd", FABRIC, rate=0.1, momentum=0.9, weight_decay=5e-4
    )
    decayed, free = optimizer.param_groups
    assert [p.shape for p in decayed["params"]] == [network[0].weight.shape]
    assert decayed["weight_decay"] == 5e-4
    assert len(free["params"]) == 4  # two of the norm, two biases
    assert all(p.ndim == 1 for p in free["params"])
    assert free["weight_decay"] == 0.0
    for group in optimizer.param_groups:
        assert (group["momentum"], group["nesterov"]) == (0.9, True)


def test_every_step_of_simclr_draws_its_own_views(data, monkeypatch):
    images, given = data
    drawn, original = [], augment.draw_view

    def record(*arguments):
        drawn.append(original(*arguments))
        return drawn[-1]

    monkeypatch.setattr(augment, "draw_view", record)
    config = replace(CONFIG, num_rounds=1, srl=replace(CONFIG.srl, steps=1))
    run(images, given, config)
    assert len(drawn) == 2 * 2 * 3  # two views in each of 3 steps of 2 epochs
    crops = {tuple(view.matrix.flatten().tolist()) for view in drawn}
    assert len(crops) == len(drawn)
    assert all(len(set(view.matrix[:, 0, 0].tolist())) > 40 for view in drawn)


def test_digits_are_not_flipped():
    assert not preset("tiny").augment.flip
    assert all(preset(name).augment.flip for name in PRESETS if name != "tiny")


def test_gradient_of_nt_xent_against_finite_differences():
    generator = torch.Generator().manual_seed(0)
    z1, z2, more = (
        torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(3)
    )

    def loss(z1, z2, more):
        return losses.nt_xent(z1, z2, 0.5, others=torch.cat([z1, z2, more]))

    assert torch.autograd.gradcheck(loss, (z1, z2, more))


def test_labels_alone_have_their_weight():
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 0])
    loss = losses.labeled_only(logits, labels, SRL(labeled_weight=0.25))
    torch.testing.assert_close(loss.total, 0.25 * loss.labeled)
