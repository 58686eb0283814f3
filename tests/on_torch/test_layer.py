"""A layer's answers are those of enumeration, however scores are given; bad input gets a sentence of ours."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from threading import Thread

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import scenes
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import hasten
import hasten.torch as ht
from hasten.errors import ProblemError, SchemaError, SolverError

SCENES = {"tagger": (scenes.tagger, scenes.FIELDS[0]), "pairs": (scenes.entity_relation, scenes.FIELDS[1])}


def layer_of(scene: str, **settings: object) -> ht.Layer:
    make, fields = SCENES[scene]
    schema, shape = make()
    return ht.Layer(schema, shape, fields, **settings)


def draw_scores(layer: ht.Layer, lengths: list[int], seed: int = 0, room: int = 0, **like: object) -> dict:
    """Returns scores with some room beyond the longest example; what lies beyond lengths is nan."""
    rng, n = np.random.default_rng(seed), max(lengths, default=0) + room
    found = {}
    for name, field in layer.inference.layout.fields.items():
        values = rng.normal(size=(len(lengths), *[n] * len(field.axes), len(field.kind)))
        for b, length in enumerate(lengths):
            for axis in range(len(field.axes)):
                np.moveaxis(values[b], axis, 0)[length:] = np.nan
        if field.without:
            values[:, np.arange(n), np.arange(n)] = np.nan
        found[name] = torch.tensor(values, **like)
    return found


@settings(max_examples=30)
@given(
    st.sampled_from(list(SCENES)),
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.integers(0, 2**16),
    st.integers(0, 2),
)
def test_a_layer_finds_the_best_of_all_labellings(scene: str, lengths: list[int], seed: int, room: int) -> None:
    layer = layer_of(scene)
    scores = draw_scores(layer, lengths, seed, room)
    if seed % 3 == 0:  # ties
        scores = {name: each.round() for name, each in scores.items()}
    if seed % 5 == 0:  # forbidden labels
        scores = {name: torch.where(each > 1.2, -torch.inf, each) for name, each in scores.items()}
    answer = layer.decode(scores, lengths=torch.tensor(lengths))
    masked = layer.decode(scores, mask=torch.arange(max(lengths) + room) < torch.tensor(lengths)[:, None])
    assert answer.proved.all()
    assert (answer.gap == 0).all()
    for b, length in enumerate(lengths):
        structure = layer.inference.layout.shape(length)
        mine = scenes.scores_of(structure, scores, b)
        assert -answer.cost[b].item() == pytest.approx(scenes.best(structure, mine))
        labels = [int(each) for each in scenes.scores_of(structure, answer.labels, b)]
        if torch.isfinite(answer.cost[b]):
            assert structure.problem([np.zeros(len(k)) for k in structure.kinds]).check(labels).valid
        assert sum(int((each[b] >= 0).sum()) for each in answer.labels.values()) in (0, len(labels))
    for name, each in answer.labels.items():
        assert torch.equal(each, masked.labels[name])
        assert ((each == -100) | (each >= 0)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_float_type_is_answered_as_its_numbers_are(dtype: object) -> None:
    layer = layer_of("pairs")
    scores = draw_scores(layer, [3, 2], dtype=dtype)
    exact = {name: each.double() for name, each in scores.items()}
    ours, theirs = layer.decode(scores, lengths=torch.tensor([3, 2])), layer.decode(exact, lengths=torch.tensor([3, 2]))
    assert torch.equal(ours.cost, theirs.cost)
    assert all(torch.equal(ours.labels[name], theirs.labels[name]) for name in exact)


def test_strided_scores_one_tensor_and_one_example_are_answered_alike() -> None:
    layer = layer_of("tagger")
    scores = torch.randn(5, 4, 3, dtype=torch.float64)
    answer = layer.decode(scores)
    assert torch.equal(layer.decode({"tag": scores}).labels["tag"], answer.labels)
    assert torch.equal(layer.decode(scores.movedim(1, 0).contiguous().movedim(0, 1)).labels, answer.labels)
    single = layer.decode(scores[2])
    assert torch.equal(single.labels, answer.labels[2])
    assert single.cost == answer.cost[2]


def test_words_that_do_not_count_may_stand_between_others() -> None:
    layer = layer_of("pairs")
    scores, gaps = draw_scores(layer, [3, 3]), torch.tensor([0, 2, 3])
    wide = {"entity": torch.full((2, 5, 3), torch.nan), "relation": torch.full((2, 5, 5, 2), torch.nan)}
    wide["entity"][:, gaps] = scores["entity"].float()
    wide["relation"][:, gaps[:, None], gaps] = scores["relation"].float()
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[:, gaps] = True
    answer, plain = layer.decode(wide, mask=mask), layer.decode(scores)
    assert torch.equal(answer.labels["entity"][:, gaps], plain.labels["entity"])
    assert torch.equal(answer.labels["relation"][:, gaps[:, None], gaps], plain.labels["relation"])
    assert (answer.labels["entity"][:, [1, 4]] == -100).all()


def test_examples_may_bring_structures_of_their_own() -> None:
    schema, shape = scenes.entity_relation()
    layer = ht.Layer(schema, fields=scenes.FIELDS[1])
    few = schema.structure(["entity"] * 3)  # only one pair is asked about
    few.connect(schema.factors["args"], source=0, relation=few.add(schema.variables["relation"]), target=2)
    scores = draw_scores(layer, [3, 2])
    mask = torch.zeros(2, 3, 3, dtype=torch.bool)
    mask[0, 0, 2] = mask[1, 0, 1] = mask[1, 1, 0] = True
    answer = layer.decode(scores, structures=[few, shape(2)], mask={"relation": mask})
    for b, (structure, pairs) in enumerate([(few, [(0, 2)]), (shape(2), [(0, 1), (1, 0)])]):
        mine = [*scores["entity"][b][: structure.n_variables - len(pairs)], *(scores["relation"][b][p] for p in pairs)]
        assert -answer.cost[b].item() == pytest.approx(scenes.best(structure, mine))
    again = layer.decode(scores, structures=layer.number([few, shape(2)]), mask={"relation": mask})
    assert torch.equal(again.cost, answer.cost)
    with pytest.raises(ProblemError, match=r"Example 0: .* cells? of relation count, but its structure has 1 variable"):
        layer.decode(scores, structures=[few, shape(2)], lengths=torch.tensor([3, 2]))
    with pytest.raises(ProblemError, match="Give shape"):
        layer.decode(scores)


def test_one_structure_takes_a_matrix_or_fields() -> None:
    _, shape = scenes.entity_relation(price=0.5)
    structure = shape(3)
    layer = ht.Layer(structure)
    flat = torch.randn(6, structure.n_labels, dtype=torch.float64)
    fields = {"entity": flat[:, :9].reshape(6, 3, 3), "relation": flat[:, 9:].reshape(6, 6, 2)}
    answer, same = layer.decode(flat), layer.decode(fields)
    batch = hasten.Certifier()(structure.batch(flat.numpy(), maximize=True))
    assert np.allclose(answer.cost, batch.cost)
    assert np.array_equal(answer.labels.reshape(-1), batch.labels)
    assert torch.equal(same.cost, answer.cost)
    assert torch.equal(torch.cat([same.labels["entity"], same.labels["relation"]], 1), answer.labels)
    assert torch.equal(layer.decode(flat[1]).labels, answer.labels[1])


def test_costs_are_minimised_where_that_is_said() -> None:
    layer, other = layer_of("tagger"), layer_of("tagger", maximize=False)
    scores = torch.randn(4, 3, 3)
    assert torch.equal(layer.decode(scores).labels, other.decode(-scores).labels)
    assert torch.equal(layer.decode(scores).cost, other.decode(-scores).cost)


def test_tables_add_to_what_the_schema_says() -> None:
    schema, shape = scenes.tagger(rule=True)
    layer = ht.Layer(schema, shape, {"tag": "n"}, tables=["step"])
    with torch.no_grad():
        layer.tables["step"].parts[0].copy_(torch.randn(3, 3))
    scores, lengths = torch.randn(5, 4, 3), torch.tensor([4, 1, 3, 0, 2])
    for tables in (None, {"step": torch.randn(3, 3)}, {"step": torch.randn(3, 3), "start": torch.randn(3)}):
        answer = layer.decode(scores, lengths=lengths, tables=tables)
        used = {name: each.detach().double().numpy() for name, each in layer.table_scores(tables).items()}
        for b, n in enumerate(lengths.tolist()):
            expected = scenes.best(shape(n), list(scores[b, :n]), used)
            assert -answer.cost[b].item() == pytest.approx(expected)


def test_a_solver_answers_what_is_not_proved_and_a_gap_tells() -> None:
    rng = np.random.default_rng(0)
    schema = hasten.Schema()
    kind = schema.variable("x", list("abcd"))
    schema.factor("pair", one=kind, other=kind).set_table(rng.normal(size=(4, 4)))
    pairs = [(i, j) for i in range(12) for j in range(i)]
    structure = schema.structure(["x"] * 12, {"pair": pairs})
    scores = torch.randn(3, 12, 4)
    weak = ht.Layer(structure, solver=hasten.Certifier(max_join=0, max_sweeps=1, max_nodes=0)).decode(scores)
    assert not weak.proved.all()
    assert (weak.gap[~weak.proved] > 0).all()
    strong, fast = ht.Layer(structure, solver="highs").decode(scores), hasten.Speedup(schema, solver="highs")
    assert strong.proved.all()
    assert torch.allclose(ht.Layer(structure, solver=fast).decode(scores).cost, strong.cost)
    assert (weak.cost - weak.gap <= strong.cost + 1e-6).all()
    with pytest.raises(SolverError, match="is not a solver"):
        ht.Layer(structure, solver=3)


def test_a_copy_shares_structures_and_not_parameters() -> None:
    schema, shape = scenes.tagger()
    layer = ht.Layer(schema, shape, {"tag": "n"}, tables={"step": 2})
    other = copy.deepcopy(layer)
    with torch.no_grad():
        for part in other.tables["step"].parts:
            part.add_(1.0)
    assert not torch.equal(layer.tables["step"](), other.tables["step"]())
    assert torch.equal(layer.decode(torch.zeros(1, 3, 3)).labels, layer.decode(torch.zeros(1, 3, 3)).labels)
    assert other.decode(torch.zeros(1, 3, 3)).proved.all()


def test_threads_may_share_a_layer_and_bring_new_sizes() -> None:
    scores = [torch.randn(3, n, 3) for n in range(1, 17)]
    wanted = [layer_of("tagger").decode(each).labels for each in scores]
    layer, wrong = layer_of("tagger"), []

    def answer(start: int) -> None:
        for n in (*range(start, 16), *range(start)):
            try:
                wrong.extend([n] * (not torch.equal(layer.decode(scores[n]).labels, wanted[n])))
            except Exception as error:  # a thread's own would be lost
                wrong.append(error)

    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1e-6)
        threads = [Thread(target=answer, args=(start,)) for start in (0, 5, 9, 12)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


def test_a_layer_can_be_pickled_and_has_a_name_of_its_own() -> None:
    schema, shape = scenes.tagger()
    layer, scores = ht.Layer(shape(3), name="pickled", tables=["step"]), torch.randn(2, 9)
    wanted = layer.decode(scores).labels
    other = pickle.loads(pickle.dumps(layer))
    assert other.name != layer.name
    assert torch.equal(other.decode(scores).labels, wanted)
    del other
    assert torch.equal(layer.decode(scores).labels, wanted)
    with pytest.raises(ProblemError, match="There is a layer named 'pickled' already"):
        ht.Layer(schema, shape, {"tag": "n"}, name="pickled")
    ran = subprocess.run(
        [sys.executable, "-c", FRESH], input=pickle.dumps((layer, scores, wanted)), capture_output=True, check=False
    )
    assert ran.stdout == b"True", ran.stderr.decode()


FRESH = """
import pickle, sys
import hasten.torch as ht
layer, scores, wanted = pickle.loads(sys.stdin.buffer.read())
print((layer.decode(scores).labels == wanted).all().item(), end="")
"""


def test_nothing_to_answer_is_answered() -> None:
    layer = layer_of("tagger")
    assert layer.decode(torch.zeros(0, 4, 3)).labels.shape == (0, 4)
    empty = layer.decode(torch.zeros(2, 0, 3))
    assert empty.labels.shape == (2, 0)
    assert (empty.cost == 0).all()
    none = layer.decode(torch.full((1, 2, 3), -torch.inf))
    assert none.proved.all()
    assert torch.isposinf(none.cost).all()
    assert (none.labels == -100).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda s: s["relation"][1, 0, 2].fill_(torch.nan),
            r"Example 1, relation\[0, 2\]: the score of label lives is nan",
        ),
        (lambda s: s["entity"][0, 1, 2].fill_(torch.inf), r"Example 0, entity\[1\]: the score of label none is inf"),
        (lambda s: s.pop("relation"), "an array for each field: entity, relation; got entity"),
        (lambda s: s.update(entity=s["entity"][..., :2]), r"The scores of entity have shape \(2, 3, 2\)"),
    ],
)
def test_wrong_scores_are_named(change: object, message: str) -> None:
    layer = layer_of("pairs")
    scores = draw_scores(layer, [3, 3])
    for mask in (None, torch.ones(2, 3, dtype=torch.bool)):
        wrong = {name: each.clone() for name, each in scores.items()}
        change(wrong)
        with pytest.raises(ProblemError, match=message):
            layer.decode(wrong, mask=mask)


def test_wrong_words_are_named() -> None:
    schema, shape = scenes.tagger()
    layer = ht.Layer(schema, shape, {"tag": "n"})
    scores = torch.zeros(2, 3, 3)
    for words, message in [
        ({"lengths": torch.tensor([3, 4])}, "Example 1: length n is 4; the scores have room for 3"),
        ({"lengths": torch.tensor([3.0, 1.0])}, "Give a whole number for each of 2 examples"),
        ({"lengths": {"m": torch.tensor([1, 1])}}, "Got lengths of 'm'; this layer has the sizes n"),
        ({"tables": {"step": torch.zeros(2, 2)}}, r"The table of step has shape \(2, 2\); it needs \(3, 3\)"),
        ({"tables": {"step": torch.full((3, 3), torch.nan)}}, "The score of step for B, B is nan"),
    ]:
        with pytest.raises(ProblemError, match=message):
            layer.decode(scores, **words)
    for fields, message in [
        ({"tag": "n n -up"}, "Give the size of each axis"),
        ({"word": "n"}, "There is no variable kind 'word'"),
        ({}, "Say which axes"),
    ]:
        with pytest.raises(SchemaError, match=message):
            ht.Layer(schema, shape, fields)
    with pytest.raises(SchemaError, match=r"n=2 has 3 variables of kind tag, but the field has 2 cells"):
        ht.Layer(schema, lambda n: shape(n + 1), {"tag": "n"}).decode(scores[:, :2])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="There is no CUDA device.")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_tensors_of_a_gpu_are_answered_there(dtype: object) -> None:
    layer = layer_of("pairs")
    scores, lengths = draw_scores(layer, [3, 2], dtype=dtype), torch.tensor([3, 2])
    here, there = layer.decode(scores, lengths=lengths), {name: each.cuda() for name, each in scores.items()}
    answer = layer.decode(there, lengths=lengths.cuda())
    assert answer.cost.is_cuda
    assert torch.equal(answer.cost.cpu(), here.cost)
    assert all(torch.equal(answer.labels[name].cpu(), here.labels[name]) for name in scores)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda layer, s, g: layer.decode(s.numpy()), "Give a tensor, or a dict with one for each field"),
        (lambda layer, s, g: layer.decode(s.long()), "Give scores as dense tensors of floats; got torch.int64"),
        (lambda layer, s, g: layer.decode(s, lengths=[2, 1], mask=torch.ones(2, 3)), "Got lengths and a mask of n"),
        (lambda layer, s, g: ht.StructuredHinge(layer)(s, g.float()), "Give gold as dense tensors of label numbers"),
        (
            lambda layer, s, g: ht.StructuredHinge(layer)(s, g[:1]),
            r"Gold has shape \(1, 3\); these scores need \(2, 3\)",
        ),
        (lambda layer, s, g: ht.StructuredHinge(layer)(s, None), "A loss needs gold"),
        (lambda layer, s, g: layer.decode(s.to_sparse()), "Give scores as dense tensors .*sparse_coo"),
        (lambda layer, s, g: layer.decode(s.to("meta")), "Give scores as dense tensors .*on meta"),
        (lambda layer, s, g: layer.decode(s, lengths="ab"), "Lengths and masks are numbers"),
        (lambda layer, s, g: ht.StructuredHinge(layer)(s, g, weight=torch.ones(2, 1)), r"a tensor of shape \(2,\)"),
        (lambda layer, s, g: ht.StructuredHinge(layer)(s, g, weight=[1, 1]), "Give a weight for each example"),
    ],
)
def test_wrong_tensors_are_named(run: object, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        run(layer_of("tagger"), torch.zeros(2, 3, 3), torch.full((2, 3), 2))


def test_one_example_may_have_one_length_or_mask() -> None:
    layer, pairs = layer_of("tagger"), layer_of("pairs")
    scores, wide = torch.randn(5, 3), {"entity": torch.randn(3, 3), "relation": torch.randn(3, 3, 2)}
    expected = layer.decode(scores[None], lengths=[3]).labels[0]
    for words in (
        {"lengths": 3},
        {"lengths": torch.tensor([3])},
        {"mask": torch.arange(5) < 3},
        {"mask": [1, 1, 1, 0, 0]},
    ):
        assert torch.equal(layer.decode(scores, **words).labels, expected)
    whole = {
        "lengths": 2,
        "mask": {"relation": ~torch.eye(3, dtype=torch.bool) & (torch.arange(3) < 2) & (torch.arange(3) < 2)[:, None]},
    }
    many = {name: each[None] for name, each in wide.items()}
    labels = pairs.decode(many, lengths=[2]).labels
    assert all(torch.equal(each, labels[name][0]) for name, each in pairs.decode(wide, **whole).labels.items())


def test_tables_that_are_no_tensors_are_refused() -> None:
    with pytest.raises(ProblemError, match="Give tables as a dict with a tensor for each kind of factor"):
        layer_of("tagger").decode(torch.randn(2, 4, 3), tables={"step": np.zeros((3, 3))})
