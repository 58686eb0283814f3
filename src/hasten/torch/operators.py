"""The operators that PyTorch knows: `search`, which answers, and `count`, which counts label tuples for gradients.

Both name the layer that they belong to, so that compiled and exported programs can hold them. Scores are a list of
tensors, one for each field in the layer's order; outputs are new tensors. The score of an answer is differentiable: its
gradient is an indicator of the answer's labels (and of its label tuples, for tables).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from hasten.errors import ProblemError
from hasten.padded.search import Inference, Request
from hasten.padded.shapes import Placed

ENGINES: WeakValueDictionary[str, Inference] = WeakValueDictionary()  # by the name of their layer
HALF = torch.float16, torch.bfloat16
PLAIN = torch.Tensor, torch.nn.Parameter


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
    """Returns tensors as arrays, those on the CPU without a copy if NumPy knows their type."""
    plain = [each.detach().float() if each.dtype in HALF else each.detach() for each in tensors]
    return [each.cpu().contiguous().numpy() for each in plain]


def place(
    engine: Inference,
    shapes: Sequence[Any],
    sizes: Sequence[Tensor],
    masks: Sequence[Tensor],
    number: Tensor | None,
    kinds: str,
    flat: bool,
) -> Placed:
    """Returns where the variables of padded scores are; what is not given is empty."""
    layout = engine.layout
    lengths = dict(zip(layout.sizes, as_arrays(sizes), strict=False))
    masked = dict(zip(layout.fields, as_arrays(masks), strict=False))
    lengths, masked = ({name: each for name, each in given.items() if each.size} for given in (lengths, masked))
    of_each = None if number is None else as_arrays([number])[0]
    return layout.place(shapes, lengths, masked, of_each, tuple(kinds.split()), flat)


def answer(
    layer: str,
    scores: Sequence[Tensor],
    tables: Sequence[Tensor],
    kinds: str,
    sizes: Sequence[Tensor],
    masks: Sequence[Tensor],
    number: Tensor | None,
    gold: Sequence[Tensor],
    seed: Tensor | None,
    samples: int,
    sigma: float,
    margin: float,
    flat: bool,
) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Returns the scores of answers, (rows, examples), their gaps, whether they are proved, and their labels."""
    engine = engine_of(layer)
    placed = place(engine, [each.shape for each in scores], sizes, masks, number, kinds, flat)
    brought = dict(zip(placed.shapes.kinds, as_arrays(tables), strict=True))
    asked = Request(samples, sigma, 0 if seed is None else int(seed), margin)
    found = engine.search(placed, as_arrays(scores), brought, as_arrays(gold), asked)
    score, gap, proved, *labels = (torch.from_numpy(each).to(scores[0].device) for each in (*found[:3], *found.labels))
    return score, gap, proved, labels


search = torch.library.custom_op("hasten::search", answer, mutates_args=())


def is_plain(tensors: Sequence[Tensor]) -> bool:
    """Whether nothing has to know of an operator: no gradient, no compiler, no transform. Then it is called at once."""
    if torch.compiler.is_compiling() or (torch.is_grad_enabled() and any(each.requires_grad for each in tensors)):
        return False
    transforms = torch._C._functorch.peek_interpreter_stack() is not None or torch._C._len_torch_dispatch_stack()
    return not transforms and all(type(each) in PLAIN for each in tensors)


@search.register_fake
def _(layer, scores, tables, kinds, sizes, masks, number, gold, seed, samples, sigma, margin, flat):  # type: ignore[no-untyped-def]
    rows, first = max(1, samples) + bool(gold), scores[0]
    of_each = (rows, first.shape[0])
    axes = [(engine_of(layer).layout.structure.n_variables,)] if flat else [each.shape[1:-1] for each in scores]
    return (
        first.new_empty(of_each, dtype=torch.float64),
        first.new_empty(of_each, dtype=torch.float64),
        first.new_empty(of_each, dtype=torch.bool),
        [first.new_empty((*of_each, *shape), dtype=torch.int64) for shape in axes],
    )


@torch.library.custom_op("hasten::count", mutates_args=())
def count(
    layer: str,
    labels: Sequence[Tensor],
    weight: Tensor,
    kinds: str,
    sizes: Sequence[Tensor],
    masks: Sequence[Tensor],
    number: Tensor | None,
    flat: bool,
) -> list[Tensor]:
    """Returns how often answers have each label tuple of some kinds of factors, weighted by answer."""
    engine = engine_of(layer)
    widths = [engine.layout.structure.n_labels] if flat else [len(field.kind) for field in engine.layout.fields.values()]
    shapes = [
        (each.shape[1], width) if flat else (*each.shape[1:], width) for each, width in zip(labels, widths, strict=True)
    ]
    placed = place(engine, shapes, sizes, masks, number, kinds, flat)
    weights = weight.detach().to("cpu", torch.float64).contiguous().numpy()
    counted = engine.tuples(placed, as_arrays(labels), weights)
    return [torch.from_numpy(counted[name]).to(weight.device) for name in placed.shapes.kinds]


@count.register_fake
def _(layer, labels, weight, kinds, sizes, masks, number, flat):  # type: ignore[no-untyped-def]
    factors = engine_of(layer).layout.schema.factors
    return [weight.new_empty(factors[name].shape, dtype=torch.float64) for name in kinds.split()]


def indicate(labels: Tensor, weight: Tensor, n_labels: int) -> Tensor:
    """Returns an indicator of labels, (rows, examples, ...), summed over rows with a weight for each answer."""
    at = labels.movedim(0, -1)
    weights = weight.T.reshape(weight.shape[1], *[1] * (labels.ndim - 2), -1)
    source = torch.where(at >= 0, weights, 0.0)
    return weight.new_zeros((*at.shape[:-1], n_labels)).scatter_add(-1, at.clamp(min=0), source)


def gradients(layer: str, labels: Sequence[Tensor], weight: Tensor, widths: Sequence[int], flat: bool) -> list[Tensor]:
    """Returns the gradient of weighted scores of answers, with respect to the scores of each field."""
    if not flat:
        return [indicate(each, weight, width) for each, width in zip(labels, widths, strict=True)]
    first = torch.tensor(engine_of(layer).layout.structure.graph.first[: labels[0].shape[-1]], device=weight.device)
    at = (labels[0] + first).permute(1, 2, 0).flatten(1)
    weights = torch.where(labels[0] >= 0, weight[:, :, None], 0.0).permute(1, 2, 0).flatten(1)
    return [weight.new_zeros((len(at), widths[0])).scatter_add(1, at.clamp(min=0), weights)]


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    """Keeps what the gradient of `search` needs: the labels, and where variables are."""
    layer, scores, tables, kinds, sizes, masks, number, gold, _, _, _, _, flat = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.about = layer, kinds, flat, [each.shape[-1] for each in scores], [each.dtype for each in (*scores, *tables)]
    ctx.counts = len(output[3]), len(sizes), len(masks), len(gold)
    ctx.save_for_backward(*output[3], *sizes, *masks, *([] if number is None else [number]))


def _backward(ctx: Any, weight: Tensor, *_: Any) -> Any:
    """Returns the gradient of `search`, of which only the scores of answers are differentiable."""
    (layer, kinds, flat, widths, dtypes), (n, s, m, g) = ctx.about, ctx.counts
    saved = ctx.saved_tensors
    labels, sizes, masks, number = saved[:n], saved[n : n + s], saved[n + s : n + s + m], saved[n + s + m :]
    weight = -engine_of(layer).sign * weight
    found = gradients(layer, labels, weight, widths, flat)
    if kinds:
        found += count(
            layer, list(labels), weight, kinds, list(sizes), list(masks), number[0] if number else None, flat
        )
    found = [each.to(dtype) for each, dtype in zip(found, dtypes, strict=True)]
    nothing = [None] * s, [None] * m, None, [None] * g
    return None, found[: len(widths)], found[len(widths) :], None, *nothing, *[None] * 5


search.register_autograd(_backward, setup_context=_keep)
