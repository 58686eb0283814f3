"""Sums in PyTorch are those of the kernels, and their gradients those of finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import torch
from strategies import entity_relation, random_problem

import hasten
import hasten.torch as ht
from hasten.errors import NoAnswerError, ProblemError, TooWide
from hasten.padded.search import Request
from hasten.sums import marginals, min_marginals
from hasten.torch.calls import engine_of
from hasten.torch.executor import Executor
from hasten.torch.operators import ask, operator
from hasten.torch.sums import on_device


def tagger(n_labels: int, table: np.ndarray | None = None, few: bool = False, **settings: object) -> ht.Layer:
    """Returns the layer of a chain, whose transitions are trained; at most two of its tags may be the first."""
    schema = hasten.Schema()
    tag = schema.variable("tag", [f"tag{i}" for i in range(n_labels)])
    follow = schema.factor("follow", one=tag, next=tag)
    if table is not None:
        follow.set_table(table)
    if few:
        schema.rule("few", at_most=2, tag="tag0")

    def shape(n: int) -> hasten.Structure:
        structure = schema.structure([tag] * n)
        for i in range(n - 1):
            structure.connect(follow, one=i, next=i + 1)
        return structure

    layer = ht.Layer(schema, shape, {"tag": "n"}, tables=["follow"], **settings)
    with torch.no_grad():
        layer.tables["follow"].parts[0].copy_(
            torch.randn(n_labels, n_labels, generator=torch.Generator().manual_seed(0))
        )
    return layer


def scores_of(n_labels: int, n: int = 6, room: int = 7, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(n, room, n_labels, generator=torch.Generator().manual_seed(1), dtype=dtype)


LENGTHS = torch.tensor([7, 3, 1, 0, 5, 7])


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_the_executor_has_the_sums_of_the_kernels(rounds: bool, exact: bool) -> None:
    rng = np.random.default_rng(3)
    n_done = 0
    while n_done < 60:
        problem = random_problem(rng, max_variables=5, max_labels=4)
        try:
            wanted = marginals(problem)
        except TooWide:
            continue
        n_done += 1
        score = torch.from_numpy(-problem.cost[None]).requires_grad_()
        table = torch.from_numpy(-problem.table).requires_grad_()
        found = Executor(problem.structure.compiled, rounds)(score, table, exact)
        assert found.item() == pytest.approx(wanted.log_partition[0], abs=1e-9)
        if found.requires_grad and math.isfinite(found.item()):
            of_score, of_table = torch.autograd.grad(found.sum(), [score, table], allow_unused=True)
            if of_score is not None:
                assert of_score[0, : problem.structure.n_labels].numpy() == pytest.approx(wanted.label, abs=1e-9)
            if of_table is not None:
                assert of_table.numpy() == pytest.approx(wanted.table, abs=1e-9)


def test_the_executor_does_not_lose_what_products_lose() -> None:
    table = np.full((9, 9), 3000.0)
    np.fill_diagonal(table, np.inf)
    table[0, 1] = 0.0
    costs = np.zeros((3, 9))
    costs[0, 1:], costs[2, 2:] = 2000.0, 5000.0
    layer = tagger(9, table)
    structure = layer.inference.layout.shape(3)
    wanted = marginals(structure.problem(costs.ravel()))
    for rounds in (False, True):
        score = torch.from_numpy(-costs.reshape(1, -1)).requires_grad_()
        found = Executor(structure.compiled, rounds)(score, torch.from_numpy(-structure.graph.table))
        assert found.item() == pytest.approx(wanted.log_partition[0])
        assert torch.autograd.grad(found.sum(), score)[0][0].numpy() == pytest.approx(wanted.label, abs=1e-9)


def test_exact_sums_are_differentiable_twice() -> None:
    shape = entity_relation(2)
    score = torch.randn(2, shape.n_labels, dtype=torch.float64, requires_grad=True)
    table, run = torch.from_numpy(-shape.graph.table), Executor(shape.compiled)
    assert torch.autograd.gradgradcheck(lambda s: run(s, table, True).sum(), score)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("n_labels", [3, 9])
def test_the_gradient_of_the_likelihood_is_that_of_finite_differences(n_labels: int, few: bool) -> None:
    layer = tagger(n_labels, few=few)
    scores = scores_of(n_labels).requires_grad_()
    table = torch.randn(n_labels, n_labels, dtype=torch.float64, requires_grad=True)
    gold = torch.randint(1, n_labels, scores.shape[:2], generator=torch.Generator().manual_seed(2))
    gold[1, 1] = gold[4] = -100  # partly known, and not at all
    weight = torch.linspace(0.1, 2.0, len(gold), dtype=torch.float64)

    def loss(s: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        each = ht.NegativeLogLikelihood(layer, reduction="none")
        return (weight * each(s, gold, lengths=LENGTHS, tables={"follow": t})).sum()

    assert torch.autograd.gradcheck(loss, (scores, table))
    each = ht.NegativeLogLikelihood(layer, reduction="none")(scores, gold, lengths=LENGTHS)
    assert each[3] == 0.0
    assert each[4].item() == pytest.approx(0.0, abs=1e-9)
    assert (each > -1e-9).all()


def test_a_gold_that_breaks_a_rule_is_refused_or_skipped() -> None:
    layer = tagger(3, few=True)
    scores = scores_of(3).requires_grad_()
    gold = torch.zeros(scores.shape[:2], dtype=torch.int64)
    with pytest.raises(ProblemError, match="few"):
        ht.NegativeLogLikelihood(layer)(scores, gold, lengths=LENGTHS)
    loss = ht.NegativeLogLikelihood(layer, reduction="none", invalid="skip")(scores, gold, lengths=LENGTHS)
    assert (loss > 0.0).tolist() == [False, False, True, False, False, False]
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    assert gradient[2].any()
    assert not gradient[[0, 1, 3, 4, 5]].any()


@pytest.mark.parametrize("flat", [False, True])
def test_what_stays_on_the_device_is_what_goes_to_the_cpu(flat: bool) -> None:
    layer = tagger(4, np.where(np.eye(4) > 0, np.inf, 0.5), few=True)
    if flat:
        layer = ht.Layer(layer.inference.layout.shape(5), tables=["follow"])
    scores = scores_of(4, room=5).requires_grad_()
    given = scores.reshape(6, -1) if flat else scores
    gold = torch.randint(1, 4, (6, 5), generator=torch.Generator().manual_seed(0))
    gold[:, 2] = -100
    table = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    call = layer.call("sums", given, {"follow": table}, gold, asked=Request(sharing=1.0))
    engine = engine_of(call.layer)
    here, there = ask(call)[0], on_device(engine, call.placed(engine, []), call)
    assert torch.allclose(here, there)
    assert 0 < torch.isfinite(here).sum() < 6  # of the others, gold is forbidden
    totals = [torch.where(torch.isfinite(value), value, 0.0).sum() for value in (here, there)]
    slopes = [torch.autograd.grad(total, [scores, table], retain_graph=True) for total in totals]
    for one, other in zip(*slopes, strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def test_operators_keep_the_rules_of_pytorch() -> None:
    layer = tagger(3)
    scores = scores_of(3).requires_grad_()
    given, gold = {"lengths": LENGTHS, "asked": Request(sharing=1.0)}, torch.ones(6, 7, dtype=torch.int64)
    slope = layer.call("sums slopes", scores.detach(), {"follow": torch.zeros(3, 3)}, gold, **given)
    for call in (
        layer.call("sums", scores, gold=gold, **given),
        layer.call("sums", scores, gold=gold, lengths=LENGTHS),
        slope._replace(last=[torch.ones(6, dtype=torch.float64)]),
    ):
        told = call.told
        torch.library.opcheck(operator, (*told[:3], call.tensors, *told[3:]))


def test_a_compiled_step_has_the_same_gradient() -> None:
    layer = tagger(5)
    loss, gold = ht.NegativeLogLikelihood(layer), torch.ones(6, 7, dtype=torch.int64)
    found = []
    for step in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        scores = scores_of(5, dtype=torch.float32).requires_grad_()
        value = step(scores, gold, lengths=LENGTHS)
        value.backward()
        found.append((value.detach(), scores.grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_marginals_are_those_of_numpy(dtype: torch.dtype) -> None:
    layer = tagger(4)
    scores = scores_of(4, dtype=dtype)
    found = layer.marginals(scores, lengths=LENGTHS)
    assert found.dtype == dtype
    structure = layer.inference.layout.shape(3)
    tables = {"follow": -layer.tables["follow"]().detach().double().numpy()}
    problem = structure.problem(-scores[1, :3].double().flatten().numpy(), tables=tables)
    wanted = marginals(problem)
    tolerance = 4 * torch.finfo(dtype).eps
    assert found[1, :3].double().flatten().numpy() == pytest.approx(wanted.label, abs=tolerance)
    assert not found[1, 3:].any()
    assert layer.log_partition(scores, lengths=LENGTHS)[1].item() == pytest.approx(wanted.log_partition[0])
    assert layer.entropy(scores, lengths=LENGTHS)[1].item() == pytest.approx(wanted.entropy[0])
    excess = layer.margins(scores, lengths=LENGTHS)
    assert excess[1, :3].flatten().numpy() == pytest.approx(min_marginals(problem).excess)
    assert excess[1, 3:].isnan().all()
    costs = ht.Layer(layer.inference.layout.schema, layer.inference.layout.shape, {"tag": "n"}, maximize=False)
    minus = {"follow": -layer.tables["follow"]().detach()}
    assert torch.equal(costs.marginals(-scores, lengths=LENGTHS, tables=minus), found)


def test_one_example_needs_no_axis() -> None:
    layer = tagger(4)
    scores = scores_of(4)
    assert torch.equal(layer.marginals(scores[0]), layer.marginals(scores)[0])
    assert layer.log_partition(scores[0]) == layer.log_partition(scores)[0]
    assert layer.sample(scores[0], 3).shape == (3, 7)


def test_samples_are_valid_and_padded() -> None:
    layer = tagger(3, few=True)
    drawn = layer.sample(scores_of(3), 50, seed=1, lengths=LENGTHS)
    assert drawn.shape == (50, 6, 7)
    assert ((drawn == -100).sum(-1) == 7 - LENGTHS).all()
    assert ((drawn == 0).sum(-1) <= 2).all()
    with pytest.raises(NoAnswerError, match="Problem 0"):
        layer.sample(torch.full((1, 2, 3), -torch.inf))


@pytest.mark.filterwarnings("ignore:where received")
def test_the_likelihood_is_that_of_pytorch_crf() -> None:
    torchcrf = pytest.importorskip("torchcrf")
    layer, scores = tagger(5), scores_of(5, dtype=torch.float32)
    crf = torchcrf.CRF(5, batch_first=True)
    with torch.no_grad():
        crf.transitions.copy_(layer.tables["follow"]())
        crf.start_transitions.zero_()
        crf.end_transitions.zero_()
    gold = torch.randint(0, 5, (6, 7), generator=torch.Generator().manual_seed(0))
    ours = ht.NegativeLogLikelihood(layer, reduction="none")(scores, gold)
    assert torch.allclose(ours, -crf(scores, gold, reduction="none"), rtol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("n_labels", [3, 17])
def test_captured_graphs_have_the_sums_of_the_kernels(n_labels: int) -> None:
    layer = tagger(n_labels, few=n_labels == 3)
    gold = torch.randint(1, n_labels, (6, 7), generator=torch.Generator().manual_seed(0))
    wanted = scores_of(n_labels).requires_grad_()
    ht.NegativeLogLikelihood(layer)(wanted, gold).backward()
    layer.cuda()
    for turn in range(4):  # eager, captured, replayed
        scores = scores_of(n_labels).cuda().requires_grad_()
        ht.NegativeLogLikelihood(layer)(scores, gold.cuda()).backward()
        assert torch.allclose(scores.grad.cpu(), wanted.grad, atol=1e-9), turn


def test_mapped_sums_are_those_of_each() -> None:
    layer, scores = tagger(3), scores_of(3)
    with torch.no_grad():
        assert torch.equal(torch.vmap(layer.log_partition)(scores), layer.log_partition(scores))
        assert torch.equal(torch.vmap(layer.marginals)(scores), layer.marginals(scores))
