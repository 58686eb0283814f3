"""JAX's decoding and losses are those of enumeration, also compiled, differentiated and mapped; skipped without JAX."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed: pip install jax")

import jax
import jax.numpy as jnp
import scenes
from jax.test_util import check_grads

import hasten.jax as hj
from hasten.errors import ProblemError

LENGTHS = np.array([3, 1, 2])


@pytest.fixture(autouse=True)
def _exact() -> object:
    with jax.enable_x64(True):
        yield


def pairs() -> tuple:
    schema, shape = scenes.entity_relation()
    layer = hj.Layer(schema, shape, scenes.FIELDS[1])
    rng = np.random.default_rng(0)
    draw = lambda: {"entity": rng.normal(size=(3, 3, 3)), "relation": rng.normal(size=(3, 3, 3, 2))}  # noqa: E731
    return layer, shape, draw(), layer.decode(draw(), lengths=LENGTHS).labels


def test_answers_and_losses_are_those_of_enumeration() -> None:
    layer, shape, scores, gold = pairs()
    answer = jax.jit(lambda s: layer.decode(s, lengths=LENGTHS))(scores)
    losses = hj.perceptron(layer, scores, gold, lengths=LENGTHS)
    hinges = jax.jit(lambda s: hj.hinge(layer, s, gold, margin=0.7, lengths=LENGTHS))(scores)
    assert bool(answer.proved.all())
    for b, n in enumerate(LENGTHS):
        mine, known = (scenes.scores_of(shape(n), each, b) for each in (scores, gold))
        kept = scenes.best(shape(n), mine, keep=[int(g) for g in known])
        raised = [s + 0.7 * (np.arange(len(s)) != int(g)) for s, g in zip(mine, known, strict=True)]
        assert -answer.cost[b] == pytest.approx(scenes.best(shape(n), mine))
        assert losses[b] == pytest.approx(scenes.best(shape(n), mine) - kept)
        assert hinges[b] == pytest.approx(scenes.best(shape(n), raised) - kept)


def test_gradients_are_those_of_finite_differences() -> None:
    schema, shape = scenes.tagger()
    layer = hj.Layer(schema, shape, {"tag": "n"})
    rng = np.random.default_rng(1)
    scores, step = rng.normal(size=(4, 3, 3)), rng.normal(size=(3, 3))
    gold = layer.decode({"tag": rng.normal(size=(4, 3, 3))}).labels
    for loss in (hj.hinge, hj.fenchel_young):

        def total(s: object, t: object, loss: object = loss) -> object:
            return loss(layer, {"tag": s}, gold, tables={"step": t}).sum()

        check_grads(total, (scores, step), order=1, modes=["rev"])
        jitted = jax.jit(jax.grad(total, (0, 1)))(scores, step)
        assert all(jnp.allclose(*each) for each in zip(jitted, jax.grad(total, (0, 1))(scores, step), strict=True))
    true = {"tag": rng.normal(size=(4, 3, 3))}
    slope = jax.grad(lambda s: hj.spo_plus(layer, {"tag": s}, true).sum())(scores)
    moved, best = layer.decode({"tag": 2 * scores - true["tag"]}).labels["tag"], layer.decode(true).labels["tag"]
    assert jnp.allclose(slope, 2 * (jax.nn.one_hot(moved, 3) - jax.nn.one_hot(best, 3)))


def test_mapped_calls_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, _, scores, gold = pairs()
    calls = []
    question = hj._question
    monkeypatch.setattr(hj, "_question", lambda *args: calls.append(args) or question(*args))
    add = lambda each: {name: value[None] for name, value in each.items()}  # noqa: E731
    pick = lambda each, b: {name: value[b] for name, value in each.items()}  # noqa: E731
    alone = [hj.hinge(layer, add(pick(scores, b)), add(pick(gold, b))) for b in range(3)]
    assert len(calls) == 3
    mapped = jax.vmap(lambda s, g: hj.hinge(layer, add(s), add(g))[0])(scores, gold)
    assert len(calls) == 4
    assert jnp.allclose(mapped, jnp.concatenate(alone))
    slopes = jax.vmap(jax.grad(lambda s, g: hj.hinge(layer, add(s), add(g))[0]))(scores, gold)
    whole = jax.grad(lambda s: hj.hinge(layer, s, gold).sum())(scores)
    assert all(jnp.allclose(slopes[name], whole[name]) for name in whole)


def test_wrong_input_is_named() -> None:
    layer, _, scores, _ = pairs()
    with pytest.raises(ProblemError, match="Give a dict with an array for each field: entity, relation"):
        layer.decode({"entity": scores["entity"]})
    wrong = scores | {"entity": scores["entity"] * np.nan}
    with pytest.raises(Exception, match=r"Example 0, entity\[0\]: the score of label person is nan"):
        jax.block_until_ready(layer.decode(wrong).cost)
