"""The operators pass PyTorch's own checks, and work under its compilers and transforms."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import scenes
import torch
from torch.utils.checkpoint import checkpoint

import hasten.torch as ht
from hasten.errors import ProblemError
from hasten.padded.search import Request
from hasten.torch.calls import Call
from hasten.torch.operators import operator

pytestmark = pytest.mark.filterwarnings("ignore")  # of PyTorch's own
LENGTHS = torch.tensor([3, 1, 2])


def pairs(**settings: object) -> tuple:
    schema, shape = scenes.entity_relation()
    layer = ht.Layer(schema, shape, scenes.FIELDS[1], **settings)
    torch.manual_seed(0)
    scores = {"entity": torch.randn(3, 3, 3), "relation": torch.randn(3, 3, 3, 2)}
    gold = layer.decode({name: torch.randn_like(each) for name, each in scores.items()}, lengths=LENGTHS).labels
    return layer, scores, gold


def test_pytorch_checks_the_operators() -> None:
    layer, scores, gold = pairs(tables=["args"])
    own = {name: each.requires_grad_() for name, each in scores.items()}
    table = {"args": torch.randn(3, 2, 3, requires_grad=True)}
    noise = {"asked": Request(2.0, 0.5, 1.0, sharing=True), "seed": torch.tensor(3), "lengths": LENGTHS}
    plain = {name: each.detach() for name, each in scores.items()}
    sharing = Request(sharing=True)
    kept = [*plain.values(), table["args"].detach()]
    slope = layer.call("loss slopes", plain, {"args": table["args"].detach()}, gold, asked=sharing, lengths=LENGTHS)
    flat = ht.Layer(scenes.tagger()[1](3))
    for call in (
        layer.call("decode", plain, lengths=LENGTHS),
        layer.call("loss", own, gold=gold, asked=sharing, lengths=LENGTHS),
        layer.call("loss", own, table, gold, asked=Request(margin=1.0, sharing=True), lengths=LENGTHS),
        layer.call("loss", own, gold=gold, **noise),
        layer.call("sample", own, **noise),
        layer.call("moved", plain, {"args": table["args"].detach()}, **noise)._replace(
            kept=[*plain.values(), *plain.values()]
        ),
        layer.call("entropy", plain, lengths=LENGTHS),
        layer.call("draw", plain, **noise),
        flat.call("margins", torch.randn(2, 9)),
        slope._replace(kept=kept, last=[torch.rand(3)]),
        slope._replace(kept=kept, last=[torch.ones(3)]),
        flat.call("loss", torch.randn(2, 9, requires_grad=True), gold=torch.full((2, 3), -100), asked=sharing),
    ):
        told = call.told
        torch.library.opcheck(operator, (*told[:3], call.tensors, *told[3:]))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_graph_is_whole_and_says_the_same(backend: str) -> None:
    layer, scores, gold = pairs(tables=["args"])
    losses = [ht.StructuredHinge(layer), ht.FenchelYoung(layer, 2, seed=1), ht.StructuredPerceptron(layer)]

    def step(entity: object, relation: object, lengths: object) -> object:
        given = {"entity": 2 * entity, "relation": relation.relu()}
        answer = layer.decode(given, lengths=lengths)
        return sum(loss(given, gold, lengths=lengths) for loss in losses), answer.labels["entity"], answer.cost

    compiled = torch.compile(step, fullgraph=True, backend=backend)
    results = []
    for run in (step, compiled):
        own = [each.clone().requires_grad_() for each in scores.values()]
        loss, labels, cost = run(*own, LENGTHS)
        layer.zero_grad()
        loss.backward()
        results.append([loss, labels, cost, layer.tables["args"].parts[0].grad.clone(), *(each.grad for each in own)])
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs)
    wrong = scores["relation"].clone()
    wrong[0, 0, 1] = -torch.nan
    with pytest.raises(ProblemError, match=r"Example 0, relation\[0, 1\]"):
        compiled(scores["entity"], wrong, LENGTHS)


def test_mapped_calls_are_more_examples() -> None:
    layer, scores, gold = pairs()
    hinge = ht.StructuredHinge(layer)
    mapped = torch.vmap(lambda e, r, n: layer.decode({"entity": e, "relation": r}, lengths=n[None]).labels["relation"])
    labels = layer.decode(scores, lengths=LENGTHS).labels["relation"]
    assert torch.equal(mapped(scores["entity"], scores["relation"], LENGTHS), labels)

    def loss(entity: object, relation: object, g: object, n: object) -> object:
        return hinge({"entity": entity, "relation": relation}, g, lengths=n[None])

    own = [each.clone().requires_grad_() for each in scores.values()]
    mine = torch.vmap(loss)(*own, gold, LENGTHS)
    mine.sum().backward()
    for b in range(3):
        other = [each[b].clone().requires_grad_() for each in scores.values()]
        theirs = loss(*other, {name: each[b] for name, each in gold.items()}, LENGTHS[b])
        theirs.backward()
        assert theirs == mine[b]
        assert all(torch.equal(ours.grad[b], each.grad) for ours, each in zip(own, other, strict=True))


@pytest.mark.parametrize("loss", [ht.StructuredHinge, ht.NegativeLogLikelihood])
def test_gradients_can_be_mapped(loss: type) -> None:
    layer, scores, gold = pairs()
    each = loss(layer)

    def of_one(entity: object, relation: object, g: object, n: object) -> object:
        return each({"entity": entity, "relation": relation}, g, lengths=n[None])

    mine = torch.func.vmap(torch.func.grad(of_one, argnums=(0, 1)))(*scores.values(), gold, LENGTHS)
    own = [each.clone().requires_grad_() for each in scores.values()]
    total = loss(layer, reduction="sum")(dict(zip(scores, own, strict=True)), gold, lengths=LENGTHS)
    for ours, theirs in zip(mine, torch.autograd.grad(total, own), strict=True):
        assert torch.allclose(ours, theirs)


def test_scores_may_be_changed_after_a_loss() -> None:
    layer, scores, gold = pairs()
    own = {name: each.clone().requires_grad_() for name, each in scores.items()}
    twice = {name: 2 * each for name, each in own.items()}
    loss = ht.StructuredHinge(layer, reduction="sum")(twice, gold, lengths=LENGTHS)
    for each in twice.values():
        each.zero_()
    loss.backward()
    assert any(each.grad.any() for each in own.values())


def test_mapped_tables_are_answered_one_by_one() -> None:
    schema, shape = scenes.tagger()
    layer = ht.Layer(schema, shape, {"tag": "n"})
    scores, tables, gold = torch.randn(2, 4, 3), torch.randn(5, 3, 3), torch.zeros(2, 4, dtype=torch.int64)
    run = lambda t: layer.decode(scores, tables={"step": t}).cost  # noqa: E731
    assert torch.equal(torch.vmap(run)(tables), torch.stack([run(t) for t in tables]))
    tables.requires_grad_()
    losses = torch.vmap(lambda t: ht.StructuredHinge(layer)(scores, gold, tables={"step": t}))(tables)
    (slopes,) = torch.autograd.grad(losses.sum(), tables)
    for table, slope in zip(tables, slopes, strict=True):
        (own,) = torch.autograd.grad(ht.StructuredHinge(layer)(scores, gold, tables={"step": table}), table)
        assert torch.allclose(own, slope)


@pytest.mark.parametrize("transform", [torch.vmap, lambda f: torch.compile(f, fullgraph=True, backend="aot_eager")])
def test_all_that_a_layer_says_can_be_mapped_and_compiled(transform: object) -> None:
    layer, scores, _ = pairs()
    for ask in (
        lambda s, t: layer.decode({"entity": s, "relation": t}).cost,
        lambda s, t: layer.entropy({"entity": s, "relation": t}),
        lambda s, t: layer.margins({"entity": s, "relation": t})["relation"].nan_to_num(),
        lambda s, t: layer.marginals({"entity": s, "relation": t})["relation"],
    ):
        assert torch.equal(transform(ask)(*scores.values()), ask(*scores.values()))
    drawn = transform(lambda s, t: layer.sample({"entity": s, "relation": t}, 2)["relation"])(*scores.values())
    assert sorted(drawn.shape) == [2, 3, 3, 3]


def test_gradients_of_sums_are_not_differentiated_without_a_word() -> None:
    layer, scores, gold = pairs()
    own = {name: each.requires_grad_() for name, each in scores.items()}
    slopes = torch.autograd.grad(ht.NegativeLogLikelihood(layer)(own, gold), list(own.values()), create_graph=True)
    with pytest.raises(ProblemError, match="not differentiable again"):
        (slopes[0] ** 2).sum().backward()
    square = ht.StructuredHinge(layer)(own, gold) ** 2
    slopes = torch.autograd.grad(square, list(own.values()), create_graph=True)
    with pytest.raises(ProblemError, match="not differentiable again"):
        slopes[0].sum().backward()


def test_autocast_and_checkpointing_change_nothing() -> None:
    layer, scores, gold = pairs()
    hinge, linear = ht.FenchelYoung(layer, 3), torch.nn.Linear(3, 3)

    def loss(entity: object) -> object:
        return hinge({"entity": linear(entity), "relation": scores["relation"]}, gold, lengths=LENGTHS)

    slopes = []
    for run in (
        loss,
        lambda e: checkpoint(loss, e, use_reentrant=False),
        lambda e: checkpoint(loss, e, use_reentrant=True),
    ):
        torch.manual_seed(1)
        own = scores["entity"].clone().requires_grad_()
        run(own).backward()
        slopes.append(own.grad)
    assert torch.equal(slopes[0], slopes[1])
    assert torch.equal(slopes[0], slopes[2])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        own = scores["entity"].clone().requires_grad_()
        half = loss(own)
        assert half.dtype == torch.float32
        half.backward()
    assert torch.isfinite(own.grad).all()


class Model(torch.nn.Module):
    def __init__(self, layer: ht.Layer) -> None:
        super().__init__()
        self.linear, self.layer = torch.nn.Linear(5, 3), layer

    def forward(self, x: object, lengths: object) -> object:
        return self.layer.decode({"tag": self.linear(x)}, lengths=lengths)


def test_an_exported_program_holds_the_layer_by_name() -> None:
    schema, shape = scenes.tagger()
    model = Model(ht.Layer(schema, shape, {"tag": "n"}, name="exported tagger"))
    x, lengths = torch.randn(4, 6, 5), torch.tensor([6, 2, 0, 5])
    dynamic = {"x": {0: torch.export.Dim("batch")}, "lengths": {0: torch.export.Dim("batch")}}
    program = torch.export.export(model, (x, lengths), dynamic_shapes=dynamic)
    assert "hasten.call" in str(program.graph)
    for n in (4, 3):
        ours, theirs = model(x[:n], lengths[:n]), program.module()(x[:n], lengths[:n])
        assert torch.equal(ours.labels["tag"], theirs.labels["tag"])
        assert torch.equal(ours.cost, theirs.cost)
    with pytest.raises(ProblemError, match="There is no layer named 'another' in this process"):
        operator(*Call("decode", "another", "", Request(), [x]).told[:3], [x], [1, 0, 0, 0, 0, 0], list(Request()))


def test_nothing_of_the_core_imports_torch() -> None:
    code = "import sys, hasten, hasten.cli; assert 'torch' not in sys.modules; hasten.torch"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "AttributeError" in ran.stderr


def test_without_pytorch_an_import_says_what_to_install() -> None:
    code = "import sys; sys.modules['torch'] = None\nimport hasten.torch"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "PyTorch is not installed: pip install hasten[torch]" in ran.stderr
