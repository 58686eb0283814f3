"""Losses are those of their definitions, by enumeration; their gradients those of finite differences."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import scenes
import torch

import hasten.torch as ht
from hasten.errors import ProblemError

LENGTHS = [3, 1, 0, 2]


def tagging(**settings: object) -> tuple:
    """Returns a layer, scores, valid gold, and the structures of its examples."""
    schema, shape = scenes.tagger(rule=True)
    layer = ht.Layer(schema, shape, {"tag": "n"}, **settings)
    torch.manual_seed(0)
    scores = torch.randn(len(LENGTHS), 3, 3, dtype=torch.float64, requires_grad=True)
    gold = layer.decode(torch.randn(len(LENGTHS), 3, 3), lengths=torch.tensor(LENGTHS)).labels
    return layer, scores, gold, [shape(n) for n in LENGTHS]


def each_loss(layer: ht.Layer) -> list:
    return [
        ht.StructuredPerceptron(layer, reduction="none"),
        ht.StructuredHinge(layer, margin=0.7, reduction="none"),
        ht.StructuredHinge(layer, cost=torch.rand(3, 3), reduction="none"),
        ht.FenchelYoung(layer, samples=3, sigma=0.5, seed=1, reduction="none"),
    ]


@pytest.mark.parametrize("partly", [False, True])
def test_the_perceptron_and_the_hinge_are_their_definitions(partly: bool) -> None:
    layer, scores, gold, structures = tagging()
    if partly:
        gold[0, 1] = gold[3, 0] = gold[1, 0] = -100
    cost = torch.rand(3, 3, dtype=torch.float64)
    lengths = torch.tensor(LENGTHS)
    perceptron, hinge, own = (
        loss(scores, gold, lengths=lengths)
        for loss in (
            ht.StructuredPerceptron(layer, reduction="none"),
            ht.StructuredHinge(layer, margin=0.7, reduction="none"),
            ht.StructuredHinge(layer, margin=2.0, cost=cost, reduction="none"),
        )
    )
    for b, structure in enumerate(structures):
        mine, known = [each.detach() for each in scores[b, : LENGTHS[b]]], gold[b, : LENGTHS[b]].tolist()
        kept = scenes.best(structure, mine, keep=known)

        def raised(costs: object, mine: list = mine, known: list = known) -> list:
            wrong = [torch.arange(3) != g for g in known]
            return [s + (w * costs(g) if g >= 0 else 0) for s, g, w in zip(mine, known, wrong, strict=True)]

        assert perceptron[b].item() == pytest.approx(scenes.best(structure, mine) - kept)
        assert hinge[b].item() == pytest.approx(scenes.best(structure, raised(lambda g: 0.7)) - kept)
        assert own[b].item() == pytest.approx(scenes.best(structure, raised(lambda g: 2 * cost[g])) - kept)


def test_gradients_are_those_of_finite_differences() -> None:
    layer, scores, gold, _ = tagging(tables={"step": None, "start": None})
    gold[0, 1] = -100
    lengths = torch.tensor(LENGTHS)
    for loss in each_loss(layer):
        tables = {"step": torch.randn(3, 3), "start": torch.randn(3)}
        tables = {name: each.double().requires_grad_() for name, each in tables.items()}

        def run(s: object, step: object, start: object, loss: object = loss) -> object:
            return loss(s, gold, lengths=lengths, tables={"step": step, "start": start})

        assert torch.autograd.gradcheck(run, (scores, *tables.values()))


def test_the_gradient_of_fenchel_young_is_the_mean_of_perturbed_answers_less_gold() -> None:
    layer, scores, gold, _ = tagging()
    loss = ht.FenchelYoung(layer, samples=5, sigma=1.0, seed=3, reduction="sum")
    loss(scores, gold, lengths=torch.tensor(LENGTHS)).backward()
    noise = torch.randn(5, 3 * sum(LENGTHS), generator=torch.Generator().manual_seed(3)).double()
    expected = torch.zeros_like(scores)
    for row in noise:
        moved = scores.detach().clone()
        for b, each in enumerate(row.split([3 * n for n in LENGTHS])):
            moved[b, : LENGTHS[b]] += each.reshape(-1, 3)
        labels = layer.decode(moved, lengths=torch.tensor(LENGTHS)).labels
        for b, n in enumerate(LENGTHS):
            expected[b, range(n), labels[b, :n]] += 1 / 5
    for b, n in enumerate(LENGTHS):
        expected[b, range(n), gold[b, :n]] -= 1
    assert torch.allclose(scores.grad, expected)


def test_noise_is_common_by_seed_and_drawn_without() -> None:
    layer, scores, gold, _ = tagging()
    fixed, free = ht.FenchelYoung(layer, 4, seed=7), ht.FenchelYoung(layer, 4)
    assert fixed(scores, gold) == fixed(scores, gold)
    wide = torch.nn.functional.pad(scores, (0, 0, 0, 2))
    lengths = torch.tensor(LENGTHS)
    kept = torch.nn.functional.pad(gold, (0, 2), value=-100)
    assert fixed(scores, gold, lengths=lengths) == fixed(wide, kept, lengths=lengths)  # whatever the padding
    torch.manual_seed(5)
    first = free(scores, gold)
    assert free(scores, gold) != first
    torch.manual_seed(5)
    assert free(scores, gold) == first


def test_spo_plus_is_its_definition_and_bounds_the_regret() -> None:
    layer, scores, _, structures = tagging()
    true, lengths = torch.randn(scores.shape, dtype=torch.float64), torch.tensor(LENGTHS)
    loss = ht.SPOPlus(layer, reduction="none")(scores, true, lengths=lengths)
    optimum = layer.decode(true, lengths=lengths)
    assert torch.equal(ht.SPOPlus(layer, reduction="none")(scores, true, optimum=optimum.labels, lengths=lengths), loss)
    decided = layer.decode(scores, lengths=lengths).labels
    loss.sum().backward()
    best = layer.decode(2 * scores.detach() - true, lengths=lengths).labels
    for b, structure in enumerate(structures):
        n = LENGTHS[b]
        mine = list((2 * scores - true)[b, :n].detach())
        y = optimum.labels[b, :n]
        at_optimum = scenes.best(structure, mine, keep=y.tolist())
        assert loss[b].item() == pytest.approx(scenes.best(structure, mine) - at_optimum)
        regret = -optimum.cost[b].item() - scenes.best(structure, list(true[b, :n]), keep=decided[b, :n].tolist())
        assert loss[b].item() >= regret - 1e-9
        expected = torch.zeros(n, 3, dtype=torch.float64)
        expected[range(n), best[b, :n]] += 2  # PyEPO's rule: 2 (y*(2s - c) - y*(c))
        expected[range(n), y] -= 2
        assert torch.equal(scores.grad[b, :n], expected)


def test_implicit_mle_is_the_difference_of_two_answers() -> None:
    layer, scores, _, _ = tagging()
    lengths = torch.tensor(LENGTHS)
    imle = ht.ImplicitMLE(layer, samples=4, sigma=0.5, step=2.0, seed=0)
    found = imle(scores, lengths=lengths)
    assert torch.allclose(found.sum(-1), (torch.arange(3) < lengths[:, None]).double())
    weight = torch.randn(scores.shape, dtype=torch.float64)
    (found * weight).sum().backward()
    moved = imle(scores.detach() - 2.0 * weight, lengths=lengths)
    assert torch.allclose(scores.grad, (found.detach() - moved) / 2.0)


def test_costs_and_scores_give_the_same_losses() -> None:
    schema, shape = scenes.tagger()
    up, down = (ht.Layer(schema, shape, {"tag": "n"}, maximize=maximize) for maximize in (True, False))
    scores = torch.randn(3, 4, 3, dtype=torch.float64, requires_grad=True)
    gold = up.decode(torch.randn(3, 4, 3)).labels
    for mine, theirs in zip(each_loss(up)[:2], each_loss(down)[:2], strict=True):
        (ours,) = torch.autograd.grad(mine(scores, gold).sum(), scores)
        (other,) = torch.autograd.grad(theirs(-scores, gold).sum(), scores)
        assert torch.equal(ours, other)
        assert torch.allclose(mine(scores, gold), theirs(-scores, gold))


def test_reductions_and_weights() -> None:
    layer, scores, gold, _ = tagging()
    lengths, weight = torch.tensor(LENGTHS), torch.tensor([1.0, 0.0, 2.0, 1.0])
    each = ht.StructuredHinge(layer, reduction="none")(scores, gold, lengths=lengths)
    assert each.shape == (4,)
    assert ht.StructuredHinge(layer, reduction="sum")(scores, gold, lengths=lengths) == each.sum()
    assert ht.StructuredHinge(layer)(scores, gold, lengths=lengths) == each.mean()
    weighted = ht.StructuredHinge(layer)(scores, gold, lengths=lengths, weight=weight)
    assert weighted == (each * weight).sum() / 4
    one = ht.StructuredHinge(layer)(scores[0], gold[0])
    assert one.shape == ()
    with pytest.raises(ProblemError, match="There is no reduction 'max'"):
        ht.StructuredHinge(layer, reduction="max")


def test_a_matrix_of_one_structure_has_losses() -> None:
    _, shape = scenes.entity_relation(price=0.5)
    layer = ht.Layer(shape(3))
    scores = torch.randn(4, layer.inference.layout.structure.n_labels, dtype=torch.float64, requires_grad=True)
    gold = layer.decode(torch.randn(scores.shape)).labels
    for loss in (ht.StructuredHinge(layer, reduction="none"), ht.FenchelYoung(layer, seed=1, reduction="none")):
        assert torch.autograd.gradcheck(lambda s, loss=loss: loss(s, gold), (scores,))


def test_gold_that_cannot_be_is_named() -> None:
    layer, scores, gold, _ = tagging()
    wrong = gold.clone()
    wrong[0, 1] = 7
    with pytest.raises(ProblemError, match=r"Example 0, tag\[1\] has no label number 7"):
        ht.StructuredHinge(layer)(scores, wrong)
    wrong[0] = torch.tensor([2, 1, 1])  # I behind O
    with pytest.raises(ProblemError, match="Example 0: gold breaks a constraint"):
        ht.StructuredHinge(layer)(scores, wrong)
    loss = ht.StructuredHinge(layer, invalid="skip", reduction="none")(scores, wrong, lengths=torch.tensor(LENGTHS))
    assert loss[0] == 0
    loss.sum().backward()
    assert (scores.grad[0] == 0).all()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("rank", [None, 2])
def test_transitions_are_trained_with_the_scores(rank: int | None) -> None:
    torch.manual_seed(0)
    schema, shape = scenes.tagger()
    layer = ht.Layer(schema, shape, {"tag": "n"}, tables={"step": rank})
    truth = torch.tensor([[2.0, 3.0, -4.0], [-2.0, -2.0, 4.0], [1.0, 0.0, -1.0]])
    noise = torch.randn(64, 6, 3)
    gold = layer.decode(noise, tables={"step": truth}).labels
    loss, optimizer = ht.StructuredHinge(layer), torch.optim.Adam(layer.parameters(), lr=0.1)
    before, untrained = loss(noise, gold).item(), (layer.decode(noise).labels == gold).double().mean().item()
    for _ in range(150):
        optimizer.zero_grad()
        loss(noise, gold).backward()
        optimizer.step()
    assert loss(noise, gold).item() < 0.5 * before
    assert (layer.decode(noise).labels == gold).double().mean().item() > untrained + 0.2


@pytest.mark.parametrize("loss", [ht.StructuredHinge, ht.FenchelYoung, ht.NegativeLogLikelihood])
def test_a_loss_of_no_examples_is_nothing(loss: type) -> None:
    layer, scores, gold, _ = tagging(tables=["step"])
    none = scores[:0].detach().requires_grad_()
    value = loss(layer)(none, gold[:0])
    value.backward()
    assert value == 0
    assert none.grad.shape == none.shape


def test_costs_of_labels_that_do_not_fit_are_refused() -> None:
    layer, scores, gold, _ = tagging()
    for cost in (torch.ones(2, 2), {"other": torch.ones(3, 3)}, {"tag": 1.0}):
        with pytest.raises(ProblemError, match=r"what the labels of tag cost .* a tensor \(3, 3\)"):
            ht.StructuredHinge(layer, cost=cost)
    cost, lengths = torch.rand(3, 3), torch.tensor(LENGTHS)
    ways = (cost, scores, gold), ({"tag": cost}, scores, gold), (cost, {"tag": scores}, {"tag": gold})
    found = [ht.StructuredHinge(layer, cost=cost)(s, g, lengths=lengths) for cost, s, g in ways]
    assert found[0] == found[1] == found[2]
