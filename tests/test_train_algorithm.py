"""Algorithm 1 on small pictures that a small network can learn."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

from stct.train import networks, srl
from stct.train.algorithm import fit_corrector, rounds, validation_rows
from stct.train.config import SRL, Augment, Config, Encoder, Pretrain, Select
from stct.train.images import Images
from stct.train.inference import embed, predict
from stct.train.state import State, generator_at

CONFIG = Config(
    num_rounds=2,
    encoder=Encoder(depth=10, width=1, projection=16),
    augment=Augment(flip=False, cutout=0.25, min_crop=0.5),
    pretrain=Pretrain(epochs=2, batch_size=64, learning_rate=0.1),
    select=Select(num_neighbors=15, keep_per_round=0.4),
    srl=SRL(
        steps=12,
        batch_size=32,
        unlabeled_batch_size=32,
        num_anchors=32,
        learning_rate=0.05,
    ),
)


def pictures(n, rng):
    """A bright bar at one of four places, on noise: (n, 8, 8, 1) and labels (n,)."""
    labels = rng.integers(0, 4, n)
    images = rng.integers(0, 90, (n, 8, 8, 1))
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 2] += 140
    return images.astype(np.uint8), labels.astype(np.intp)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    images, truth = pictures(240, rng)
    given = np.where(rng.random(240) < 0.3, rng.integers(0, 4, 240), truth)
    return images, truth, given.astype(np.intp)


def start(images, config, fabric, seed=0):
    pixels = Images(images, fabric.device)
    mean, std = pixels.mean_and_std()
    network = networks.build(
        config.encoder,
        num_classes=4,
        mean=mean,
        std=std,
        generator=generator_at(seed, "weights"),
        image_shape=pixels.chw,
    )
    return State(network, fabric.setup_module(network)), pixels


def run(images, given, config, seed=0):
    fabric = Fabric(accelerator="cpu", devices=1)
    state, pixels = start(images, config, fabric, seed)
    steps = []
    finished = list(
        rounds(
            state, pixels, given, config, seed=seed, fabric=fabric, watch=steps.append
        )
    )
    return state, finished, steps, pixels, fabric


def test_labels_and_predictions_get_better_than_the_given_labels(data):
    images, truth, given = data
    state, finished, steps, pixels, fabric = run(images, given, CONFIG)
    assert [r.number for r in finished] == [1, 2]
    assert np.mean(finished[-1].labels == truth) > np.mean(given == truth) + 0.1
    predicted = predict(state.network, pixels, fabric).argmax(axis=1)
    assert np.mean(predicted == truth) > np.mean(given == truth) + 0.1
    assert state.phase == "done"
    assert finished[1].clean.sum() > finished[0].clean.sum()
    assert {step.phase for step in steps} == {"pretrain", "srl"}
    assert sum(step.phase == "srl" for step in steps) == 24


def test_same_seed_same_bits_and_another_seed_another(data):
    images, _, given = data
    config = replace(CONFIG, num_rounds=1)
    first, second, other = (run(images, given, config, seed)[0] for seed in (0, 0, 1))
    pairs = zip(first.network.parameters(), second.network.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    pairs = zip(first.network.parameters(), other.network.parameters(), strict=True)
    assert not all(torch.equal(a, b) for a, b in pairs)


def test_validation_rows_are_never_taught(data):
    images, _, given = data
    hidden = validation_rows(given, CONFIG, 0)
    assert len(hidden) == 12
    _, finished, *_ = run(images, given, CONFIG)
    for done in finished:
        assert not done.clean[hidden].any()


def test_what_is_taught_is_what_nmc_believes(data):
    images, _, given = data
    state, finished, *_ = run(images, given, CONFIG)
    assert state.soft.shape == (len(given), 4)
    np.testing.assert_allclose(state.soft.sum(axis=1), 1.0, atol=1e-5)
    assert np.mean(state.soft.argmax(axis=1) == finished[-1].labels) > 0.95
    assert srl.Rows.of(state, "all").labels.shape == (len(given), 4)
    hard = replace(CONFIG, srl=replace(CONFIG.srl, soft_labels=False))
    state, finished, *_ = run(images, given, hard)
    assert state.soft is None
    np.testing.assert_array_equal(srl.Rows.of(state, "all").labels, finished[-1].labels)


def test_scores_that_are_no_probabilities_are_not_taught(data):
    images, _, given = data
    split = replace(CONFIG, correct=replace(CONFIG.correct, method="split"))
    state, finished, *_ = run(images, given, split)
    assert state.soft is None
    np.testing.assert_array_equal(srl.Rows.of(state, "all").labels, finished[-1].labels)


def test_where_nothing_is_learnt_the_labels_are_taught(data):
    images, _, given = data
    rng = np.random.default_rng(0)
    static = rng.integers(0, 255, images.shape).astype(np.uint8)
    state, finished, *_ = run(static, given, replace(CONFIG, num_rounds=1))
    np.testing.assert_array_equal(finished[0].labels, given)
    assert state.soft is None


def test_without_nmc_the_given_labels_stay(data):
    images, _, given = data
    config = replace(
        CONFIG, num_rounds=1, correct=replace(CONFIG.correct, enabled=False)
    )
    _, finished, *_ = run(images, given, config)
    np.testing.assert_array_equal(finished[0].labels, given)


def test_without_srl_all_corrected_labels_are_learnt_by_cross_entropy(data):
    images, truth, given = data
    config = replace(CONFIG, srl=replace(CONFIG.srl, enabled=False))
    state, finished, steps, pixels, fabric = run(images, given, config)
    assert finished[0].clean.sum() == 240 - 12
    np.testing.assert_array_equal(finished[0].labels, finished[1].labels)
    assert np.mean(finished[0].labels == truth) > np.mean(given == truth)
    last = [step for step in steps if step.phase == "srl"][-1]
    assert last.losses["unlabeled"] == last.losses["consistency"] == 0.0
    assert last.images == 64  # as many as SRL sees with gradients
    # NMC goes on seeing the encoder of SimCLR, not the one that has learnt labels.
    before = embed(state.frozen, pixels, fabric)
    assert not np.allclose(before, embed(state.network, pixels, fabric))
    last_look = fit_corrector(before, list(map(int, given)), state, config, seed=0)
    np.testing.assert_array_equal(last_look.labels_, finished[0].labels)


def test_missing_labels_are_filled(data):
    images, truth, given = data
    some = given.copy()
    some[:20] = -1
    _, finished, *_ = run(images, some, CONFIG)
    assert (finished[-1].labels >= 0).all()
    assert np.mean(finished[-1].labels[:20] == truth[:20]) > 0.5


def test_all_selected_or_one_per_class_is_no_crash(data):
    images, _, given = data
    for keep in (1.0, 1e-6):
        config = replace(
            CONFIG, num_rounds=1, select=replace(CONFIG.select, keep_per_round=keep)
        )
        _, finished, *_ = run(images, given, config)
        assert finished[0].clean.any()


def test_rows_are_left_to_teach_where_the_best_are_hidden(data):
    """Half of the rows are hidden, and one row of each class is to be trusted."""
    images, _, given = data
    config = replace(
        CONFIG,
        num_rounds=1,
        noisy_validation=0.5,
        select=replace(CONFIG.select, keep_per_round=1e-6),
        srl=replace(CONFIG.srl, steps=1),
        pretrain=replace(CONFIG.pretrain, epochs=0),
    )
    for seed in range(6):  # in some of these all four would be hidden
        _, (done,), *_ = run(images, given, config, seed)
        assert set(done.labels[done.clean]) == set(done.labels)
        assert not done.clean[validation_rows(given, config, seed)].any()


def test_a_loss_that_is_no_number_stops_and_says_where(data):
    images, _, given = data
    config = replace(CONFIG, pretrain=replace(CONFIG.pretrain, learning_rate=1e30))
    with pytest.raises(ValueError, match=r"not a number at step \d+ of pretrain"):
        run(images, given, config)


def test_a_batch_is_the_same_for_any_number_of_processes(data):
    images, _, given = data
    fabric = Fabric(accelerator="cpu", devices=1)
    state, pixels = start(images, CONFIG, fabric)
    state.labels, state.clean = given, np.arange(240) < 100
    rows = srl.Rows.of(state, "all")

    class Process:
        device = fabric.device
        world_size = 2

        def __init__(self, rank):
            self.global_rank = rank

    def draw(who):
        return srl.draw_batch(
            pixels, rows, CONFIG.srl, CONFIG.augment, generator_at(0, "x"), who
        )

    whole, halves = draw(fabric), [draw(Process(rank)) for rank in (0, 1)]
    for name in whole._fields:
        joined = torch.cat([getattr(half, name) for half in halves])
        assert torch.equal(joined, getattr(whole, name)), name


def test_cosine_rate_falls_to_zero_over_all_rounds(data):
    images, *_ = data
    fabric = Fabric(accelerator="cpu", devices=1)
    state, _ = start(images, CONFIG, fabric)
    rates = []
    for number in (1, 2):
        for step in range(CONFIG.srl.steps):
            state.round, state.step = number, step
            rates.append(srl._rate(CONFIG, state))
    assert rates[0] == CONFIG.srl.learning_rate
    assert all(a > b for a, b in zip(rates, rates[1:], strict=False))
    assert rates[-1] < 0.01 * rates[0]


def test_a_sharper_target_alone_changes_the_consistency_loss(data):
    images, _, given = data
    fabric = Fabric(accelerator="cpu", devices=1)
    losses = {}
    for sharp in (0.1, 0.05):
        settings = replace(CONFIG.srl, target_temperature=sharp)
        state, pixels = start(images, CONFIG, fabric)
        state.labels, state.clean = given, np.ones(len(given), dtype=bool)
        batch = srl.draw_batch(
            pixels,
            srl.Rows.of(state, "all"),
            settings,
            CONFIG.augment,
            generator_at(0, "srl", 1, 0),
            fabric,
        )
        state.module.eval()
        losses[sharp] = srl.forward(state, batch, settings, fabric)
    assert losses[0.05].labeled == losses[0.1].labeled
    assert losses[0.05].unlabeled == losses[0.1].unlabeled
    assert losses[0.05].consistency != losses[0.1].consistency


def test_unlabelled_data_are_all_rows_in_every_round(data, monkeypatch):
    """FixMatch practice; as printed the rows that were not selected, if there are any.

    With all labels trusted only the hidden twentieth would be left.
    """
    images, _, given = data
    drawn = {}
    of = srl.Rows.of

    def spy(state, unlabeled):
        rows = of(state, unlabeled)
        drawn[state.round] = rows.unlabeled
        return rows

    monkeypatch.setattr(srl.Rows, "of", spy)
    config = replace(CONFIG, select=replace(CONFIG.select, keep_per_round=0.5))
    _, finished, steps, *_ = run(images, given, config)
    assert [len(drawn[number]) for number in (1, 2)] == [240, 240]
    assert [done.num_unlabeled for done in finished] == [240, 240]
    assert all(0.0 <= s.losses["confident"] <= 1.0 for s in steps if s.phase == "srl")

    printed = replace(config, srl=replace(config.srl, unlabeled="unselected"))
    _, finished, *_ = run(images, given, printed)
    hidden = validation_rows(given, config, 0)
    for done in finished:
        left = np.flatnonzero(~done.clean)
        np.testing.assert_array_equal(drawn[done.number], left)
        assert done.num_unlabeled == len(left)
    np.testing.assert_array_equal(left, hidden)  # all that the last round has


def test_an_adaptive_threshold_lets_more_views_through(data):
    """With soft targets hardly a view passes 0.95."""
    images, _, given = data
    shares = {}
    for kind in ("fixed", "adaptive"):
        config = replace(CONFIG, srl=replace(CONFIG.srl, threshold=kind))
        state, _, steps, *_ = run(images, given, config)
        taken = [s.losses["confident"] for s in steps if s.phase == "srl"]
        shares[kind] = np.mean(taken)
        assert (state.threshold is None) == (kind == "fixed")
    assert shares["adaptive"] > shares["fixed"] + 0.2


def test_no_hidden_rows_no_accuracy(data):
    images, _, given = data
    config = replace(CONFIG, num_rounds=1, noisy_validation=0.0)
    _, (done,), *_ = run(images, given, config)
    assert done.noisy_accuracy is None
