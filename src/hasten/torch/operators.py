"""The operators that PyTorch knows: `search` answers, `spread` is its gradient, `sample` averages perturbed answers.

Each names the layer that it belongs to, so that compiled and exported programs can hold it, and returns new tensors.
The score of an answer is differentiable: its gradient is an indicator of the answer's labels and label tuples.
What they share:

layer
    The name of the layer, which must live in this process.
scores, tables, kinds
    A tensor for each field, or one with all scores of a structure in a row; tables of label tuples, and their kinds.
where
    Lengths or a mask for each size, masks for each field, the numbers of structures; empty where not given.
asked
    `Asked`, as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from hasten.errors import ProblemError
from hasten.padded.kernels import spread as spread_labels
from hasten.padded.search import Found, Inference, Request
from hasten.padded.shapes import Placed

ENGINES: WeakValueDictionary[str, Inference] = WeakValueDictionary()  # by the name of their layer
HALF = torch.float16, torch.bfloat16
PLAIN = torch.Tensor, torch.nn.Parameter


class Asked(NamedTuple):
    """What is asked: how many perturbed answers, with how much noise; which margin, or step of `sample`."""

    samples: float = 0.0
    sigma: float = 0.0
    margin: float = 0.0
    flat: float = 0.0  # 1 if all scores of an example are in a row
    strict: float = 0.0  # 1 if gold must be valid


def engine_of(layer: str) -> Inference:
    """Returns what answers for a layer of this process."""
    engine = ENGINES.get(layer)
    if engine is None:
        raise ProblemError(
            f"There is no layer named {layer!r} in this process. Make it before a loaded program runs: Layer(..., "
            f"name={layer!r})."
        )
    return engine


def as_arrays(tensors: Sequence[Tensor]) -> list[Any]:
    """Returns tensors as arrays: without a copy from the CPU, if NumPy knows their type, else in one transfer."""
    given = [each.detach() if each.requires_grad else each for each in tensors]
    if any(each.device.type != "cpu" for each in given):
        device = next(each.device for each in given if each.device.type != "cpu")
        order = sorted(range(len(given)), key=lambda n: -given[n].element_size())  # so that each is aligned
        parts = [given[n].to(device).contiguous().reshape(-1).view(torch.uint8) for n in order]
        sent = torch.cat(parts).cpu().split([len(part) for part in parts])
        for n, part in zip(order, sent, strict=True):
            given[n] = part.view(given[n].dtype).reshape(given[n].shape)
    return [(each.float() if each.dtype in HALF else each).contiguous().numpy() for each in given]


def as_tensors(arrays: Sequence[Any], device: torch.device) -> list[Tensor]:
    """Returns arrays of ours as tensors, on the CPU without a copy, else in one transfer."""
    if device.type == "cpu":
        return [torch.from_numpy(each) for each in arrays]
    order = sorted(range(len(arrays)), key=lambda n: -arrays[n].itemsize)
    sent = torch.cat([torch.from_numpy(arrays[n].reshape(-1).view(np.uint8)) for n in order]).to(device)
    found: list[Any] = list(arrays)
    for n, part in zip(order, sent.split([arrays[n].nbytes for n in order]), strict=True):
        like = torch.from_numpy(arrays[n])
        found[n] = part.view(like.dtype).reshape(like.shape).clone()  # outputs share no memory
    return found


def place(engine: Inference, shapes: Sequence[Any], where: Sequence[Any], kinds: str, flat: float) -> Placed:
    """Returns where the variables of padded scores are, given arrays; those that are not given are empty."""
    layout = engine.layout
    n = len(layout.sizes)
    sizes = {name: each for name, each in zip(layout.sizes, where, strict=False) if each.size}
    masks = {name: each for name, each in zip(layout.fields, where[n:], strict=False) if each.size}
    number = where[-1] if len(where) > n and where[-1].size else None
    return layout.place(shapes, sizes, masks, number, tuple(kinds.split()), bool(flat))


def find(
    layer: str,
    scores: Sequence[Tensor],
    tables: Sequence[Tensor],
    kinds: str,
    where: Sequence[Tensor],
    gold: Sequence[Tensor],
    seed: Tensor | None,
    asked: Sequence[float],
) -> Found:
    """Returns the answers of `search` as arrays."""
    engine, asked = engine_of(layer), Asked(*asked)
    arrays = iter(as_arrays([*scores, *tables, *where, *gold, *([] if seed is None else [seed])]))
    own, brought, given, known = ([next(arrays) for _ in each] for each in (scores, tables, where, gold))
    placed = place(engine, [each.shape for each in own], given, kinds, asked.flat)
    drawn = 0 if seed is None else int(next(arrays))
    request = Request(int(asked.samples), asked.sigma, drawn, asked.margin, bool(asked.strict))
    return engine.search(placed, own, dict(zip(placed.shapes.kinds, brought, strict=True)), known, request)


@torch.library.custom_op("hasten::search", mutates_args=())
def search(
    layer: str,
    scores: Sequence[Tensor],
    tables: Sequence[Tensor],
    kinds: str,
    where: Sequence[Tensor],
    gold: Sequence[Tensor],
    seed: Tensor | None,
    asked: Sequence[float],
) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Returns the scores of answers, (rows, examples), their gaps, whether they are proved, and their labels."""
    found = find(layer, scores, tables, kinds, where, gold, seed, asked)
    score, gap, proved, *labels = as_tensors([*found[:3], *found.labels], scores[0].device)
    return score, gap, proved, labels


@search.register_fake
def _(layer, scores, tables, kinds, where, gold, seed, asked):  # type: ignore[no-untyped-def]
    asked, first = Asked(*asked), scores[0]
    of_each = max(1, int(asked.samples)) + bool(gold), first.shape[0]
    axes = [(engine_of(layer).layout.structure.n_variables,)] if asked.flat else [each.shape[1:-1] for each in scores]
    score, gap = (first.new_empty(of_each, dtype=torch.float64) for _ in range(2))
    labels = [first.new_empty((*of_each, *shape), dtype=torch.int64) for shape in axes]
    return score, gap, first.new_empty(of_each, dtype=torch.bool), labels


def spread_now(
    layer: str,
    labels: Sequence[Tensor],
    weight: Tensor,
    kinds: str,
    where: Sequence[Tensor],
    widths: Sequence[int],
    flat: bool,
    dtype: torch.dtype,
) -> list[Tensor]:
    """Returns an indicator of labels, (rows, examples, ...), weighted by answer and summed over rows, for each field.

    A field has `widths` labels. Label tuples of some kinds of factors come behind, summed over examples as well.
    """
    engine, device = engine_of(layer), weight.device
    chosen, given, weights = list[Any](), list[Any](), np.zeros(0)
    if device.type == "cpu" or kinds:
        *chosen, weights = as_arrays([*labels, *where, weight.double()])
        chosen, given = chosen[: len(labels)], chosen[len(labels) :]
    found = []
    for f, (each, n) in enumerate(zip(labels, widths, strict=True)):
        n_rows, n_examples, *axes = each.shape
        cells = prod(axes)
        start = engine.layout.structure.graph.first[:cells] if flat else np.arange(cells) * n
        total = torch.zeros((n_examples, n if flat else cells * n), dtype=dtype, device=device)
        if device.type == "cpu":
            spread_labels(chosen[f].reshape(n_rows, n_examples, cells), weights, start, total.numpy())
        else:
            mine = each.reshape(n_rows, n_examples, cells).movedim(0, 1)
            at = mine.clamp(min=0) + torch.from_numpy(np.array(start)).to(device)
            part = torch.where(mine >= 0, weight.T[:, :, None], 0.0).to(dtype)
            total.scatter_add_(1, at.flatten(1), part.flatten(1))
        found.append(total if flat else total.reshape(n_examples, *axes, n))
    if kinds:
        shapes = [(*(each.shape[1:2] if flat else each.shape[1:]), n) for each, n in zip(chosen, widths, strict=True)]
        placed = place(engine, shapes, given, kinds, flat)
        counted = engine.tuples(placed, chosen, weights)
        found += [each.to(dtype) for each in as_tensors([counted[name] for name in placed.shapes.kinds], device)]
    return found


spread = torch.library.custom_op("hasten::spread", spread_now, mutates_args=())


@spread.register_fake
def _(layer, labels, weight, kinds, where, widths, flat, dtype):  # type: ignore[no-untyped-def]
    shapes = [each.shape[1:2] if flat else each.shape[1:] for each in labels]
    found = [weight.new_empty((*shape, n), dtype=dtype) for shape, n in zip(shapes, widths, strict=True)]
    factors = engine_of(layer).layout.schema.factors
    return found + [weight.new_empty(factors[name].shape, dtype=dtype) for name in kinds.split()]


def keep_for_search(ctx: Any, inputs: Any, output: Any) -> None:
    """Keeps what the gradient of `search` needs: the labels, and where variables are."""
    layer, scores, tables, kinds, where, gold, _, asked = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.about = layer, kinds, [each.shape[-1] for each in scores], bool(Asked(*asked).flat)
    ctx.dtypes, ctx.counts = [each.dtype for each in (*scores, *tables)], (len(where), len(gold))
    ctx.save_for_backward(*output[3], *where)


def search_backward(ctx: Any, weight: Tensor, *_: Any) -> Any:
    """Returns the gradient of `search`, of which only the scores of answers are differentiable."""
    (layer, kinds, widths, flat), (n_where, n_gold) = ctx.about, ctx.counts
    n, saved = len(widths), ctx.saved_tensors
    dtype = torch.float64 if torch.float64 in ctx.dtypes else torch.float32
    weight = -engine_of(layer).sign * weight
    found = spread(layer, list(saved[:n]), weight, kinds, list(saved[n:]), widths, flat, dtype)
    found = [each.to(dtype) for each, dtype in zip(found, ctx.dtypes, strict=True)]
    return None, found[:n], found[n:], None, [None] * n_where, [None] * n_gold, None, None


search.register_autograd(search_backward, setup_context=keep_for_search)


@torch.library.custom_op("hasten::sample", mutates_args=())
def sample(
    layer: str,
    scores: Sequence[Tensor],
    tables: Sequence[Tensor],
    kinds: str,
    where: Sequence[Tensor],
    seed: Tensor,
    asked: Sequence[float],
) -> list[Tensor]:
    """Returns the mean indicator of perturbed answers, for each field; its gradient is that of implicit MLE."""
    _, _, _, labels = search(layer, scores, tables, kinds, where, [], seed, asked)
    n = labels[0].shape[0]
    weight = torch.full(labels[0].shape[:2], 1.0 / n, dtype=torch.float64, device=scores[0].device)
    widths, flat = [each.shape[-1] for each in scores], bool(Asked(*asked).flat)
    found = spread(layer, labels, weight, "", where, widths, flat, torch.float32)
    return [each.to(like.dtype) for each, like in zip(found, scores, strict=True)]


@sample.register_fake
def _(layer, scores, tables, kinds, where, seed, asked):  # type: ignore[no-untyped-def]
    return [torch.empty_like(each, memory_format=torch.contiguous_format) for each in scores]


def keep_for_sample(ctx: Any, inputs: Any, output: Any) -> None:
    """Keeps what the gradient of `sample` needs: its inputs, and the answers."""
    layer, scores, tables, kinds, where, seed, asked = inputs
    ctx.about, ctx.counts = (layer, kinds, asked), (len(scores), len(tables), len(where))
    ctx.save_for_backward(*scores, *output, *tables, *where, seed)


def sample_backward(ctx: Any, gradient: Sequence[Tensor]) -> Any:
    """Returns how far the answers move as their scores take a step against the gradient (Niepert et al. 2021)."""
    (layer, kinds, asked), (n, n_tables, n_where) = ctx.about, ctx.counts
    *saved, seed = ctx.saved_tensors
    scores, found, tables, where = (
        saved[:n],
        saved[n : 2 * n],
        saved[2 * n : 2 * n + n_tables],
        saved[2 * n + n_tables :],
    )
    step, sign = Asked(*asked).margin, -engine_of(layer).sign
    moved = [each - sign * step * slope for each, slope in zip(scores, gradient, strict=True)]
    others = sample(layer, moved, list(tables), kinds, list(where), seed, asked)
    back = [sign * (mine - other) / step for mine, other in zip(found, others, strict=True)]
    return None, back, [None] * n_tables, None, [None] * n_where, None, None


sample.register_autograd(sample_backward, setup_context=keep_for_sample)


class Direct(torch.autograd.Function):
    """`search` without the dispatcher, which takes longer than the answers to a small batch."""

    @staticmethod
    def forward(ctx: Any, told: tuple[Any, ...], n: int, *given: Tensor) -> tuple[Tensor, ...]:
        """Returns what `search` does; the tensors that have gradients come last, `n` scores, then tables."""
        layer, kinds, where, _, _, asked = told
        found = find(layer, given[:n], given[n:], *told[1:])
        score, *others = as_tensors([*found[:3], *found.labels], given[0].device)
        ctx.mark_non_differentiable(*others)
        ctx.about = layer, kinds, where, [each.shape[-1] for each in given[:n]], bool(Asked(*asked).flat)
        ctx.dtypes = [each.dtype for each in given]
        ctx.save_for_backward(*others[2:])
        return score, *others

    @staticmethod
    def backward(ctx: Any, weight: Tensor, *_: Any) -> Any:
        """Returns the gradient of `search`."""
        layer, kinds, where, widths, flat = ctx.about
        dtype = torch.float64 if torch.float64 in ctx.dtypes else torch.float32
        weight = -engine_of(layer).sign * weight
        found = spread_now(layer, ctx.saved_tensors, weight, kinds, where, widths, flat, dtype)
        return None, None, *(each.to(dtype) for each, dtype in zip(found, ctx.dtypes, strict=True))


def is_plain(tensors: Sequence[Tensor]) -> bool:
    """Whether nothing has to know of an operator: no compiler, no transform. Then none is called."""
    if torch.compiler.is_compiling():
        return False
    transforms = torch._C._functorch.peek_interpreter_stack() is not None or torch._C._len_torch_dispatch_stack()
    return not transforms and all(type(each) in PLAIN for each in tensors)


def batched(operator: Any, axis_in: int, axis_out: int) -> Callable[..., Any]:
    """Returns how `torch.vmap` runs an operator: as more examples, on an axis of inputs and one of outputs.

    Where tables or seeds differ, or each call has tables of its own to count, it runs call by call.
    """
    names = [argument.name for argument in operator._opoverload._schema.arguments]

    def run(info: Any, dims: Any, *args: Any) -> Any:
        n, told = info.batch_size, dict(zip(names, args, strict=True))
        apart = [dim for name, dim in zip(names, dims, strict=True) if name in ("tables", "seed")]
        if any(dim is not None for dim in tree_leaves(apart, is_leaf=is_none)) or ("labels" in told and told["kinds"]):
            calls = [
                operator(*mapped(lambda v, d, i=i: v if d is None else v.select(d, i), args, dims)) for i in range(n)
            ]
            return tree_map(lambda *each: torch.stack(each), *calls), tree_map(lambda _: 0, calls[0])

        def fold(value: Any, dim: int | None) -> Any:
            if dim is None and (not value.ndim or not value.numel()):
                return value  # a seed, or something that is not given
            wide = value.expand(n, *value.shape).movedim(0, axis_in) if dim is None else value.movedim(dim, axis_in)
            return wide.flatten(axis_in, axis_in + 1)

        shared = ("tables", "where") if "labels" in told else ("tables",)
        each = zip(names, args, dims, strict=True)
        found = operator(*(value if name in shared else mapped(fold, value, dim) for name, value, dim in each))
        return tree_map(lambda each: each.unflatten(axis_out, (n, -1)), found), tree_map(lambda _: axis_out, found)

    return run


def mapped(change: Callable[..., Any], value: Any, dim: Any) -> Any:
    """Changes the tensors of an argument, given the mapped axis of each, or None."""
    if isinstance(value, list | tuple):
        dims = dim if isinstance(dim, list | tuple) else [dim] * len(value)
        return [mapped(change, each, d) for each, d in zip(value, dims, strict=True)]
    return change(value, dim) if isinstance(value, Tensor) else value


def is_none(value: Any) -> bool:
    """Whether a value is None, which is a leaf of trees of axes."""
    return value is None


search.register_vmap(batched(search, 0, 1))
spread.register_vmap(batched(spread, 1, 0))
sample.register_vmap(batched(sample, 0, 0))
