"""Eqs. (11)-(15) and NT-Xent against naive versions, autograd and descent."""

import math

import pytest
import torch

from stct.train import losses
from stct.train.config import SRL


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def randn(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def softmax(row):
    top = max(row)
    powers = [math.exp(value - top) for value in row]
    return [power / sum(powers) for power in powers]


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def test_eq_11_is_the_mean_cross_entropy(generator):
    logits, labels = randn(generator, 5, 3), torch.tensor([0, 2, 1, 1, 0])
    pairs = zip(logits.tolist(), labels.tolist(), strict=True)
    naive = [-math.log(softmax(row)[label]) for row, label in pairs]
    assert losses.labeled(logits, labels).item() == pytest.approx(sum(naive) / 5)


def test_eq_11_takes_distributions_too(generator):
    logits = torch.randn(6, 4, generator=generator)
    soft = torch.rand(6, 4, generator=generator).softmax(dim=1)
    expected = -(soft * logits.log_softmax(dim=1)).sum(dim=1).mean()
    torch.testing.assert_close(losses.labeled(logits, soft), expected)
    labels = torch.arange(6) % 4
    one_hot = torch.eye(4)[labels]
    torch.testing.assert_close(
        losses.labeled(logits, one_hot), losses.labeled(logits, labels)
    )


def test_eq_12_counts_sure_samples_only_and_divides_by_all(generator):
    weak, strong = 4 * randn(generator, 6, 3), randn(generator, 6, 3)
    total = 0.0
    for w, s in zip(weak.tolist(), strong.tolist(), strict=True):
        target, guess = softmax(w), softmax(s)
        if max(target) > 0.9:
            total -= sum(t * math.log(g) for t, g in zip(target, guess, strict=True))
    assert 0 < (weak.softmax(1).max(1).values > 0.9).sum() < 6
    assert losses.unlabeled(weak, strong, 0.9).item() == pytest.approx(total / 6)


def test_eq_12_is_zero_when_nobody_is_sure():
    flat = torch.zeros(4, 3, requires_grad=True)
    loss = losses.unlabeled(flat.detach(), flat, 0.95)
    loss.backward()
    assert loss.item() == 0.0
    assert not flat.grad.any()


def test_eq_13_is_a_softmax_over_anchors(generator):
    z, anchors = randn(generator, 4, 5), randn(generator, 7, 5)
    got = losses.instance_similarity(z, anchors, 0.1).exp()
    for row, one in zip(got, z.tolist(), strict=True):
        naive = softmax([cosine(one, anchor) / 0.1 for anchor in anchors.tolist()])
        assert row.tolist() == pytest.approx(naive)


def test_eq_14_is_the_cross_entropy_of_the_similarities(generator):
    weak = losses.instance_similarity(randn(generator, 4, 5), randn(generator, 7, 5), 1)
    strong = losses.instance_similarity(
        randn(generator, 4, 5), randn(generator, 7, 5), 1
    )
    naive = -sum(
        math.exp(w) * s
        for w, s in zip(weak.flatten().tolist(), strong.flatten().tolist(), strict=True)
    )
    assert losses.consistency(weak, strong).item() == pytest.approx(naive / 4)


def test_eq_14_is_smallest_where_both_views_agree(generator):
    weak = losses.instance_similarity(randn(generator, 4, 5), randn(generator, 7, 5), 1)
    other = losses.instance_similarity(
        randn(generator, 4, 5), randn(generator, 7, 5), 1
    )
    assert losses.consistency(weak, weak) < losses.consistency(weak, other)


def all_parts(generator):
    return {
        "labeled_logits": randn(generator, 4, 3).requires_grad_(),
        "labels": torch.tensor([0, 1, 2, 0]),
        "weak_logits": (5 * randn(generator, 6, 3)).requires_grad_(),
        "strong_logits": randn(generator, 6, 3).requires_grad_(),
        "weak_similarity": randn(generator, 6, 5).log_softmax(1).requires_grad_(),
        "strong_similarity": randn(generator, 6, 5).log_softmax(1).requires_grad_(),
    }


def test_eq_15_adds_up_and_gradients_reach_what_they_should(generator):
    parts = all_parts(generator)
    loss = losses.srl_loss(**parts, settings=SRL())
    assert loss.total.item() == pytest.approx(
        (loss.labeled + loss.unlabeled + loss.consistency).item()
    )
    loss.total.backward()
    for name in ("labeled_logits", "strong_logits", "strong_similarity"):
        assert parts[name].grad.abs().sum() > 0, name
    for name in ("weak_logits", "weak_similarity"):  # targets only
        assert parts[name].grad is None, name


@pytest.mark.parametrize(
    ("weight", "silent"),
    [
        ("labeled_weight", "labeled_logits"),
        ("unlabeled_weight", "strong_logits"),
        ("consistency_weight", "strong_similarity"),
    ],
)
def test_each_loss_can_be_left_out(generator, weight, silent):
    parts = all_parts(generator)
    losses.srl_loss(**parts, settings=SRL(**{weight: 0.0})).total.backward()
    assert not parts[silent].grad.any()


def test_gradients_against_finite_differences(generator):
    labels = torch.tensor([0, 2, 1])
    weak = (5 * randn(generator, 3, 4)).detach()
    strong = randn(generator, 3, 4).requires_grad_()
    z, anchors = randn(generator, 3, 4).requires_grad_(), randn(generator, 5, 4)
    target = losses.instance_similarity(randn(generator, 3, 4), anchors, 0.5).detach()

    def consistent(z):
        return losses.consistency(target, losses.instance_similarity(z, anchors, 0.5))

    assert torch.autograd.gradcheck(lambda x: losses.labeled(x, labels), strong)
    assert torch.autograd.gradcheck(lambda x: losses.unlabeled(weak, x, 0.5), strong)
    assert torch.autograd.gradcheck(consistent, z)


def test_losses_fall_under_descent(generator):
    parts = all_parts(generator)
    free = [parts["labeled_logits"], parts["strong_logits"]]
    free.append(randn(generator, 6, 5).requires_grad_())
    optimizer = torch.optim.SGD(free, lr=0.5)

    def loss():
        similarity = free[2].log_softmax(1)
        return losses.srl_loss(
            **{**parts, "strong_similarity": similarity}, settings=SRL(confidence=0.5)
        )

    before = loss()
    for _ in range(30):
        optimizer.zero_grad()
        loss().total.backward()
        optimizer.step()
    after = loss()
    for name in ("labeled", "unlabeled", "consistency"):
        assert getattr(after, name) < getattr(before, name), name


def naive_nt_xent(z1, z2, temperature):
    views = [*z1.tolist(), *z2.tolist()]
    b, total = len(z1), 0.0
    for i, view in enumerate(views):
        partner = (i + b) % (2 * b)
        scores = {
            j: math.exp(cosine(view, other) / temperature)
            for j, other in enumerate(views)
            if j != i
        }
        total -= math.log(scores[partner] / sum(scores.values()))
    return total / (2 * b)


def test_nt_xent_against_the_definition(generator):
    z1 = torch.nn.functional.normalize(randn(generator, 5, 4), dim=1)
    z2 = torch.nn.functional.normalize(randn(generator, 5, 4), dim=1)
    got = losses.nt_xent(z1, z2, 0.5, others=torch.cat([z1, z2]))
    assert got.item() == pytest.approx(naive_nt_xent(z1, z2, 0.5))


def test_nt_xent_over_two_processes_is_that_of_the_whole_batch(generator):
    z1, z2 = (
        torch.nn.functional.normalize(randn(generator, 6, 4), dim=1) for _ in range(2)
    )
    parts = []
    for mine, theirs in ((slice(0, 3), slice(3, 6)), (slice(3, 6), slice(0, 3))):
        own = [z1[mine], z2[mine]]
        others = torch.cat([*own, z1[theirs], z2[theirs]])
        parts.append(losses.nt_xent(*own, 0.5, others=others).item())
    assert sum(parts) / 2 == pytest.approx(naive_nt_xent(z1, z2, 0.5))


def test_nt_xent_gradient_reaches_both_views_and_falls(generator):
    z1, z2 = (randn(generator, 6, 4).requires_grad_() for _ in range(2))

    def loss():
        a, b = (torch.nn.functional.normalize(z, dim=1) for z in (z1, z2))
        return losses.nt_xent(a, b, 0.5, others=torch.cat([a, b]))

    before = loss().item()
    optimizer = torch.optim.SGD([z1, z2], lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        loss().backward()
        assert z1.grad.abs().sum() > 0
        assert z2.grad.abs().sum() > 0
        optimizer.step()
    assert loss().item() < before - 0.1
