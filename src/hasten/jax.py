"""hasten for people with a JAX model: the decoding and the losses of `hasten.torch`, through `jax.pure_callback`.

    layer = Layer(schema, shape=build, fields={"tag": "n"})
    answer = layer.decode({"tag": scores}, lengths=lengths)
    loss = hinge(layer, {"tag": scores}, {"tag": gold}, lengths=lengths).mean()

All of it works under `jit`, `grad` and `vmap`, which makes more examples of its axis. Imports JAX, which is to be
installed beside hasten, and `hasten.padded`, which knows NumPy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hasten.errors import MissingExtra
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.padded.layout import Layout, Shape
from hasten.padded.search import Inference, Question, Request, answerer

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
        numbers = jax.ShapeDtypeStruct(given[0][0].shape[:1], jnp.result_type(float))
        labels = tuple(jax.ShapeDtypeStruct(each.shape[:-1], jnp.int32) for each in given[0])
        shapes = numbers, numbers, jax.ShapeDtypeStruct(numbers.shape, bool), *labels
        score, gap, proved, *labels = _call(self, _decode, shapes, *given)
        return Answer(dict(zip(self.inference.layout.fields, labels, strict=True)), proved, -score, gap)


def perceptron(layer: Layer, scores: Arrays, gold: Arrays, **words: Words) -> Any:
    """Returns the structured perceptron's loss of each example; gold is -100 where it is not known."""
    return _lost(layer, Asked(), scores, gold, words)


def hinge(layer: Layer, scores: Arrays, gold: Arrays, margin: float = 1.0, **words: Words) -> Any:
    """Returns the structured hinge loss of each example, with a margin for each wrong label."""
    return _lost(layer, Asked(margin=float(margin)), scores, gold, words)


def fenchel_young(
    layer: Layer, scores: Arrays, gold: Arrays, samples: int = 8, sigma: float = 1.0, seed: int = 0, **words: Words
) -> Any:
    """Returns the perturbed Fenchel-Young loss of each example, with noise that the seed fixes."""
    return _lost(layer, Asked(samples, float(sigma), seed=seed), scores, gold, words)


def spo_plus(layer: Layer, scores: Arrays, true: Arrays, **words: Words) -> Any:
    """Returns the SPO+ loss of each example, given the true scores."""
    moved = {name: 2 * each - true[name] for name, each in scores.items()}
    return perceptron(layer, moved, layer.decode(true, **words).labels, **words)


class Asked(NamedTuple):
    """The request of a loss (`Request`), and the seed of its noise."""

    samples: int = 0
    sigma: float = 0.0
    margin: float = 0.0
    seed: int = 0


def _lost(layer: Layer, asked: Asked, scores: Arrays, gold: Arrays, words: Mapping[str, Any]) -> Any:
    return _loss(layer, asked, _in_order(layer, scores), _told(layer, **words), _in_order(layer, gold))


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _loss(layer: Layer, asked: Asked, scores: Any, told: Any, gold: Any) -> Any:
    """Returns the mean score of the answers that are asked, less that of the best one with gold, of each example."""
    return _forward(layer, asked, scores, told, gold)[0]


def _forward(layer: Layer, asked: Asked, scores: Any, told: Any, gold: Any) -> Any:
    numbers = jax.ShapeDtypeStruct(scores[0].shape[:1], jnp.result_type(float))
    shapes = numbers, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in scores)
    value, *slopes = _call(layer, partial(_valued, asked), shapes, scores, told, gold)
    return value, (slopes, scores, told, gold)


def _backward(layer: Layer, asked: Asked, kept: Any, weight: Any) -> Any:
    """Returns the gradient: those for weights of 1 times the weights; of tables, found again for these."""
    slopes, scores, (sizes, tables), gold = kept
    found = [each * weight.reshape(-1, *[1] * (each.ndim - 1)).astype(each.dtype) for each in slopes]
    of_tables = dict(tables)
    if tables:
        shapes = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in tables.values())
        told = (scores, (sizes, tables), gold)
        again = jax.pure_callback(partial(_of_tables, layer, asked), shapes, weight, *told, vmap_method="sequential")
        of_tables = dict(zip(tables, again, strict=True))
    none = partial(jax.tree.map, lambda each: np.zeros(each.shape, dtype=jax.dtypes.float0))
    return tuple(found), (none(sizes), of_tables), none(gold)


_loss.defvjp(_forward, _backward)


def _call(layer: Layer, work: Any, shapes: Any, scores: Any, told: Any, gold: Any) -> Any:
    """Works on the host. A mapped axis comes before the others of all arrays, and is folded into the examples."""
    n_axes = len(next(iter(layer.inference.layout.fields.values())).axes) + 2

    def answer(scores: Any, told: Any, gold: Any) -> Any:
        scores, (sizes, tables), gold = jax.tree.map(np.asarray, (scores, told, gold))
        extra = scores[0].shape[: scores[0].ndim - n_axes + 1]  # the examples, and mapped axes before them
        fold = partial(jax.tree.map, lambda each: each.reshape(-1, *each.shape[len(extra) :]))
        found = work(layer, fold(scores), fold(sizes), tables, fold(gold))
        return tuple(
            np.ascontiguousarray(each.reshape(*extra, *each.shape[1:]), dtype=like.dtype)
            for each, like in zip(found, shapes, strict=True)
        )

    mapped = "sequential" if told[1] else "broadcast_all"  # tables are those of a whole batch
    return jax.pure_callback(answer, shapes, scores, told, gold, vmap_method=mapped)


def _question(layer: Layer, scores: Any, sizes: Any, tables: Any, gold: Any) -> Question:
    """Returns arrays as `Inference` reads them."""
    wide = [each if each.dtype in (np.float32, np.float64) else each.astype(np.float32) for each in scores]
    placed = layer.inference.layout.place([each.shape for each in wide], sizes, kinds=tuple(tables))
    exact = {name: each.astype(np.float64) for name, each in tables.items()}
    known = [np.ascontiguousarray(each, dtype=np.int64) for each in gold]
    return Question(placed, [np.ascontiguousarray(each) for each in wide], exact, known)


def _decode(layer: Layer, *given: Any) -> Any:
    found = layer.inference.decode(_question(layer, *given))
    return *found[:3], *found.labels


def _valued(asked: Asked, layer: Layer, *given: Any, weight: Any = None) -> Any:
    """Returns the loss of each example, and its gradient where scores are and, summed, of tables."""
    question = _question(layer, *given)
    draw = np.random.Generator(np.random.SFC64(asked.seed)).standard_normal
    noise = draw((asked.samples, int(question.placed.cost_at[-1])), dtype=np.float32) if asked.samples else None
    request = Request(asked.samples, asked.sigma, asked.margin, strict=True, sharing=True)
    found = layer.inference.loss(question._replace(asked=request, noise=noise), weight)
    return (found.value, *found.fields) if weight is None else found.tables


def _of_tables(layer: Layer, asked: Asked, weight: Any, scores: Any, told: Any, gold: Any) -> Any:
    """Returns the gradient of tables, weighted by example, on the host."""
    weight, scores, (sizes, tables), gold = jax.tree.map(np.asarray, (weight, scores, told, gold))
    found = _valued(asked, layer, scores, sizes, tables, gold, weight=weight.astype(np.float64))
    return tuple(each.astype(like.dtype) for each, like in zip(found, tables.values(), strict=True))


def _in_order(layer: Layer, given: Arrays) -> tuple[Any, ...]:
    return tuple(map(jnp.asarray, layer.inference.layout.in_order(given)))


def _told(layer: Layer, lengths: Any = None, mask: Any = None, tables: Arrays | None = None) -> Any:
    """Returns sizes by name, lengths or masks, and the scores of tables."""
    return jax.tree.map(jnp.asarray, (layer.inference.layout.by_size(lengths, mask), dict(tables or {})))
