"""hasten for people with a JAX model: the decoding and the losses of `hasten.torch`, through `jax.pure_callback`.

    layer = Layer(schema, shape=build, fields={"tag": "n"})
    answer = layer.decode({"tag": scores}, lengths=lengths)
    loss = hinge(layer, {"tag": scores}, {"tag": gold}, lengths=lengths).mean()

All of it works under `jit`, `grad` and `vmap`, which makes more examples of its axis. Imports JAX, which is to be
installed beside hasten, and `hasten.padded`, which knows NumPy alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hasten.errors import MissingExtra, ProblemError
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.padded.layout import Layout, Shape
from hasten.padded.search import Found, Inference, Request, answerer

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    raise MissingExtra("JAX is not installed: pip install jax") from None

Arrays: TypeAlias = Mapping[str, Any]  # by field, or by size
Words: TypeAlias = Any  # lengths=..., mask=..., tables=...


class Answer(NamedTuple):
    """The answers to a batch: label numbers by field, padded with -100."""

    labels: dict[str, Any]
    proved: Any  # (examples,) whether it is the optimum, or none is valid
    cost: Any  # (examples,) minus the score of the answer; inf without one
    gap: Any  # (examples,) how far the cost may be above the optimum


class Layer:
    """Exact inference under constraints, for batches of padded scores: see `hasten.torch.Layer` for its settings."""

    def __init__(
        self,
        given: Schema | Structure,
        shape: Shape | None = None,
        fields: Mapping[str, str] | None = None,
        *,
        maximize: bool = True,
        solver: Any = None,
    ) -> None:
        layout = Layout(given, shape, fields)
        self.inference = Inference(layout, answerer(layout.schema, solver), -1.0 if maximize else 1.0)

    def decode(self, scores: Arrays, **words: Words) -> Answer:
        """Returns the best valid labelling of each example, given scores (examples, *axes, labels) by field.

        `lengths` and `mask` are by size, or of the only one; `tables` have scores of label tuples by kind of factor.
        """
        given = jax.lax.stop_gradient((_in_order(self, scores), _told(self, **words), ()))
        score, gap, proved, labels = _call(self, Request(), *given)
        named = dict(zip(self.inference.layout.fields, (each[0] for each in labels), strict=True))
        return Answer(named, proved[0], -score[0], gap[0])


def perceptron(layer: Layer, scores: Arrays, gold: Arrays, **words: Words) -> Any:
    """Returns the structured perceptron's loss of each example; gold is -100 where it is not known."""
    return _loss(layer, Request(strict=True), scores, gold, words)


def hinge(layer: Layer, scores: Arrays, gold: Arrays, margin: float = 1.0, **words: Words) -> Any:
    """Returns the structured hinge loss of each example, with a margin for each wrong label."""
    return _loss(layer, Request(margin=float(margin), strict=True), scores, gold, words)


def fenchel_young(
    layer: Layer, scores: Arrays, gold: Arrays, samples: int = 8, sigma: float = 1.0, seed: int = 0, **words: Words
) -> Any:
    """Returns the perturbed Fenchel-Young loss of each example, with noise that the seed fixes."""
    return _loss(layer, Request(samples, float(sigma), strict=True, seed=seed), scores, gold, words)


def spo_plus(layer: Layer, scores: Arrays, true: Arrays, **words: Words) -> Any:
    """Returns the SPO+ loss of each example, given the true scores."""
    moved = {name: 2 * each - true[name] for name, each in scores.items()}
    return perceptron(layer, moved, layer.decode(true, **words).labels, **words)


def _loss(layer: Layer, asked: Request, scores: Arrays, gold: Arrays, words: Arrays) -> Any:
    """Returns the mean score of the answers that are asked, less that of the best one with gold, of each example."""
    score = _search(layer, asked, _in_order(layer, scores), _told(layer, **words), _in_order(layer, gold))
    return score[:-1].mean(axis=0) - score[-1]


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _search(layer: Layer, asked: Request, scores: Any, told: Any, gold: Any) -> Any:
    """Returns the scores of answers, (rows, examples)."""
    return _call(layer, asked, scores, told, gold)[0]


def _forward(layer: Layer, asked: Request, scores: Any, told: Any, gold: Any) -> Any:
    score, _, _, labels = _call(layer, asked, scores, told, gold)
    return score, (scores, told, gold, labels)


def _backward(layer: Layer, asked: Request, kept: Any, weight: Any) -> Any:
    """Returns the gradient: an indicator of the labels, and of the label tuples of tables, weighted by answer."""
    scores, (sizes, tables), gold, labels = kept
    weight, found = -layer.inference.sign * weight, []
    for each, mine in zip(scores, labels, strict=True):
        chosen = jax.nn.one_hot(mine, each.shape[-1], dtype=weight.dtype)  # no label where there is none
        found.append(jnp.einsum("rb...,rb->b...", chosen, weight).astype(each.dtype))
    slopes = dict(tables)
    if tables:
        shapes = {name: jax.ShapeDtypeStruct(each.shape, weight.dtype) for name, each in tables.items()}
        count = partial(_count, layer, [each.shape for each in scores], tuple(tables))
        slopes = jax.pure_callback(count, shapes, sizes, labels, weight, vmap_method="sequential")
        slopes = {name: each.astype(tables[name].dtype) for name, each in slopes.items()}
    none = partial(jax.tree.map, lambda each: np.zeros(each.shape, dtype=jax.dtypes.float0))
    return tuple(found), (none(sizes), slopes), none(gold)


_search.defvjp(_forward, _backward)


def _call(layer: Layer, asked: Request, scores: Any, told: Any, gold: Any) -> Any:
    """Answers on the host. A mapped axis comes before the others of all arrays, and is folded into the examples."""
    rows, n = max(1, asked.samples) + bool(gold), scores[0].shape[0]
    kind = jnp.result_type(float)
    numbers = jax.ShapeDtypeStruct((rows, n), kind)
    labels = [jax.ShapeDtypeStruct((rows, *each.shape[:-1]), jnp.int32) for each in scores]
    shapes = numbers, numbers, jax.ShapeDtypeStruct((rows, n), bool), labels
    mapped = "sequential" if told[1] else "broadcast_all"  # tables are those of a whole batch
    axes = [len(field.axes) for field in layer.inference.layout.fields.values()]

    def answer(scores: Any, told: Any, gold: Any) -> Any:
        scores, (sizes, tables), gold = jax.tree.map(np.asarray, (scores, told, gold))
        extra = scores[0].shape[: scores[0].ndim - axes[0] - 2]  # mapped axes
        if extra:
            fold = partial(jax.tree.map, lambda each: each.reshape(-1, *each.shape[len(extra) + 1 :]))
            scores, sizes, gold = fold(scores), fold(sizes), fold(gold)
        found = _found(layer, asked, scores, sizes, tables, gold)
        numbers = (_unfold(extra, each, kind) for each in found[:2])
        return *numbers, _unfold(extra, found.proved, bool), [_unfold(extra, each, np.int32) for each in found.labels]

    return jax.pure_callback(answer, shapes, scores, told, gold, vmap_method=mapped)


def _unfold(extra: Sequence[int], array: Any, dtype: Any) -> Any:
    """Returns an array, (rows, examples, ...), whose mapped axes are before all others again."""
    apart = array.reshape(array.shape[0], *extra, -1, *array.shape[2:]) if extra else array
    return np.ascontiguousarray(np.moveaxis(apart, 0, len(extra)), dtype=dtype)


def _found(layer: Layer, asked: Request, scores: Any, sizes: Any, tables: Any, gold: Any) -> Found:
    wide = [each if each.dtype in (np.float32, np.float64) else each.astype(np.float32) for each in scores]
    placed = layer.inference.layout.place([each.shape for each in wide], sizes, kinds=tuple(tables))
    exact = {name: each.astype(np.float64) for name, each in tables.items()}
    known = [np.ascontiguousarray(each, dtype=np.int64) for each in gold]
    return layer.inference.search(placed, [np.ascontiguousarray(each) for each in wide], exact, known, asked)


def _count(layer: Layer, shapes: Any, kinds: tuple[str, ...], sizes: Any, labels: Any, weight: Any) -> dict[str, Any]:
    """Returns how often answers have each label tuple, on the host."""
    sizes, labels, weight = jax.tree.map(np.asarray, (sizes, labels, weight))
    placed = layer.inference.layout.place(shapes, sizes, kinds=kinds)
    found = layer.inference.tuples(placed, [each.astype(np.int64) for each in labels], weight.astype(np.float64))
    return {name: each.astype(weight.dtype) for name, each in found.items()}


def _in_order(layer: Layer, given: Arrays) -> tuple[Any, ...]:
    names = list(layer.inference.layout.fields)
    if not isinstance(given, Mapping) or {*given} != {*names}:
        raise ProblemError(f"Give a dict with an array for each field: {', '.join(names)}.")
    return tuple(jnp.asarray(given[name]) for name in names)


def _told(layer: Layer, lengths: Any = None, mask: Any = None, tables: Arrays | None = None) -> Any:
    """Returns sizes by name, lengths or masks, and the scores of tables."""
    sizes: dict[str, Any] = {}
    known = layer.inference.layout.sizes
    for given in (lengths, mask):
        if given is not None and not isinstance(given, Mapping):
            if len(known) != 1:
                raise ProblemError(f"Give lengths and masks by name: the sizes are {', '.join(known) or 'none'}.")
            given = {known[0]: given}
        sizes |= {name: jnp.asarray(each) for name, each in (given or {}).items()}
    return sizes, {name: jnp.asarray(each) for name, each in (tables or {}).items()}
