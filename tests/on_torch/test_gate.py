"""Gates over expensive modules: what they ask for, what they answer, and what they refuse."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import torch

import hasten
import hasten.torch as ht
from hasten.errors import NotFittedError, ProblemError
from hasten.torch import gate as gating

SCHEMA = hasten.Schema()
ENTITY = SCHEMA.variable("entity", ["person", "location", "none"])
RELATION = SCHEMA.variable("relation", ["LiveIn", "NoRel"])
ARGS = SCHEMA.factor("args", source=ENTITY, relation=RELATION, target=ENTITY)
ARGS.allow(relation="LiveIn", source="person", target="location").allow(relation="NoRel")
FIELDS = {"entity": "n", "relation": "n n -diagonal"}


def build(n: int) -> hasten.Structure:
    shape = SCHEMA.structure()
    entities = [shape.add(ENTITY) for _ in range(n)]
    for i, source in enumerate(entities):
        for j, target in enumerate(entities):
            if i != j:
                shape.connect(ARGS, source=source, relation=shape.add(RELATION), target=target)
    return shape


LAYER = ht.Layer(SCHEMA, build, FIELDS)


class Pairs(torch.nn.Module):
    """Looks the scores of pairs up, and notes who was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))
        self.calls: list[Any] = []

    def forward(self, inputs: Any, index: Any) -> Any:
        assert index.device == self.weight.device
        self.calls.append(index)
        example, source, target = index.T
        return self.weight * inputs["pairs"][example, source, target]


def distance(inputs: Any, index: Any) -> Any:
    example, source, target = index.T
    return inputs["near"][example, source, target].long()[:, None]


def made_up(n: int, seed: int, size: int = 64) -> list[Any]:
    random = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(n):
        entity, pairs = torch.randn(size, 4, 3, generator=random) * 3, torch.randn(size, 4, 4, 2, generator=random)
        near = torch.rand(size, 4, 4, generator=random) < 0.3
        pairs[..., 0] += torch.where(near, 1.0, -9.0)
        lengths = torch.randint(0, 5, (size,), generator=random)
        batches.append(({"pairs": pairs, "near": near}, {"entity": entity}, lengths))
    return batches


def exact(batch: Any) -> Any:
    inputs, scores, lengths = batch
    return LAYER.decode({**scores, "relation": inputs["pairs"]}, lengths=lengths).labels


@pytest.fixture
def module() -> Pairs:
    return Pairs()


@pytest.fixture
def gate(module: Pairs, monkeypatch: pytest.MonkeyPatch) -> ht.Gate:
    monkeypatch.setattr(gating.Gate, "_skips", lambda self, n: True)
    return ht.Gate(LAYER, {"relation": module}, {"relation": distance}, n_rows=256).fit(made_up(12, seed=0))


def test_a_gate_that_takes_no_guess_answers_as_the_layer_does(gate: ht.Gate, module: Pairs) -> None:
    gate.calibrate(made_up(2, seed=1), risk=0.5)
    gate.max_doubt = 0.0
    (batch,) = made_up(1, seed=2)
    module.calls.clear()
    found, labels = gate(*batch), exact(batch)
    assert len(module.calls) == 1
    assert len(module.calls[0]) == int((batch[2] * (batch[2] - 1)).sum()) == int(found.computed.sum())
    assert all(torch.equal(found.labels[name], labels[name]) for name in FIELDS)
    assert found.valid.all()


def test_a_gate_keeps_its_risk_and_asks_for_few_pairs_in_one_or_two_calls(gate: ht.Gate, module: Pairs) -> None:
    chosen = gate.calibrate(made_up(16, seed=1), risk=0.05)
    assert chosen.met
    assert gate.max_doubt > 0
    n_changed = n_asked = n_pairs = n = 0
    for batch in made_up(8, seed=2):
        module.calls.clear()
        found, labels = gate(*batch), exact(batch)
        assert 1 <= len(module.calls) <= 2
        same = [(found.labels[name] == labels[name]).flatten(1).all(dim=1) for name in FIELDS]
        n_changed += int((~(same[0] & same[1])).sum())
        n_asked += sum(map(len, module.calls))
        assert int(found.computed.sum()) == sum(map(len, module.calls))
        n_pairs += int((batch[2] * (batch[2] - 1)).sum())
        n += len(batch[2])
    assert n_changed / n <= 0.05
    assert n_asked < 0.6 * n_pairs


def test_only_cells_of_the_example_are_asked_for(gate: ht.Gate, module: Pairs) -> None:
    gate.calibrate(made_up(2, seed=1), risk=0.5)
    gate.max_doubt = 0.0
    inputs, scores, _ = made_up(1, seed=2)[0]
    lengths = torch.full((64,), 3)
    module.calls.clear()
    found = gate(inputs, scores, lengths)
    index = module.calls[0]
    assert (index[:, 1:] < 3).all()
    assert (index[:, 1] != index[:, 2]).all()
    assert len(torch.unique(index, dim=0)) == len(index) == 64 * 6
    assert (found.labels["relation"][:, 3:] == -100).all()


def test_the_paper_s_theta_alone_skips_where_its_calibration_says(module: Pairs) -> None:
    gate = ht.Gate(LAYER, {"relation": module}, None, width=4)
    gate.fit([]).calibrate(made_up(8, seed=1), risk=0.2)
    (batch,) = made_up(1, seed=2)
    found = gate(*batch)
    assert found.labels["relation"].shape == (64, 4, 4)
    assert gate.search.width == 4
    assert int(found.computed.sum()) <= int((batch[2] * (batch[2] - 1)).sum())


def test_floats_and_pairs_are_features_too(module: Pairs) -> None:
    def floats(inputs: Any, index: Any) -> Any:
        return distance(inputs, index).float()

    def both(inputs: Any, index: Any) -> Any:
        return distance(inputs, index), torch.ones(len(index), 1)

    for features in (floats, both, None):
        gate = ht.Gate(LAYER, {"relation": module}, {"relation": features}, n_rows=256).fit(made_up(4, seed=0))
        assert gate.calibrate(made_up(4, seed=1), risk=0.3).n > 0


def test_a_gate_takes_the_faster_way(module: Pairs) -> None:
    gate = ht.Gate(LAYER, {"relation": module}, {"relation": distance})
    for seconds in range(gating.TRIALS):
        gate._seconds[1, True].append(2.0 + seconds)
        gate._seconds[1, False].append(1.0 + seconds)
        gate._seconds[6, True].append(1.0 + seconds)
        gate._seconds[6, False].append(2.0 + seconds)
    assert not gate._skips(1)
    assert gate._skips(63)
    ways = []
    for _ in range(2 * gating.TRIALS):
        skips = gate._skips(2)
        gate._seconds[2, skips].append(1.0)
        ways.append(skips)
    assert ways == [True, False] * gating.TRIALS


def test_a_gate_must_be_calibrated_first(module: Pairs) -> None:
    gate = ht.Gate(LAYER, {"relation": module}, {"relation": distance})
    with pytest.raises(NotFittedError, match="calibrate"):
        gate(*made_up(1, seed=0)[0])


@pytest.mark.parametrize(
    ("expensive", "cheap", "told"),
    [({}, {}, "which fields are expensive"), ({"tag": None}, {}, "entity, relation"),
     ({"relation": None}, {"entity": None}, "for no other")],
)  # fmt: skip
def test_fields_that_do_not_fit_are_refused(expensive: Any, cheap: Any, told: str) -> None:
    with pytest.raises(ProblemError, match=told):
        ht.Gate(LAYER, expensive, cheap)


def test_scores_that_do_not_fit_are_refused(module: Pairs) -> None:
    inputs, scores, lengths = made_up(1, seed=0)[0]
    gate = ht.Gate(LAYER, {"relation": lambda inputs, index: torch.zeros(len(index), 3)}, {"relation": None})
    with pytest.raises(ProblemError, match=r"The module of relation returned .* a score for each label"):
        gate.fit([(inputs, scores, lengths)])
    for module_, told in (
        (lambda inputs, index: torch.zeros(len(index), 2).numpy(), "an array .* Return a tensor"),
        (lambda inputs, index: torch.full((len(index), 2), torch.nan), r"Example \d+, relation\[\d, \d\]: .* nan for"),
    ):
        with pytest.raises(ProblemError, match=told):
            ht.Gate(LAYER, {"relation": module_}, {"relation": None}).fit([(inputs, scores, lengths)])
    with pytest.raises(ProblemError, match=r"cheap features of relation need a row for each of \d+ requests"):
        ht.Gate(LAYER, {"relation": module}, {"relation": lambda i, x: distance(i, x)[1:]}).fit(made_up(1, seed=0))
    with pytest.raises(ProblemError, match="entity is missing"):
        gate.fit([(inputs, {}, lengths)])
    with pytest.raises(ProblemError, match="Got no inputs"):
        gate.fit([])


def test_a_gate_can_be_pickled(gate: ht.Gate) -> None:
    gate.calibrate(made_up(4, seed=1), risk=0.3)
    (batch,) = made_up(1, seed=2)
    gate.layer = None
    other = pickle.loads(pickle.dumps(gate))
    gate.layer = other.layer = LAYER
    labels, again = (each(*batch).labels for each in (gate, other))
    assert all(torch.equal(labels[name], again[name]) for name in FIELDS)
