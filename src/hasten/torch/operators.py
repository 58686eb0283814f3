"""The operator that PyTorch knows, `hasten.call`, and what it is asked: each is a line of `OPERATIONS`.

A call names the layer that it belongs to, so that compiled and exported programs can hold it, and returns new tensors.
Where nothing has to know of an operator, PyTorch's dispatcher is passed by, which takes longer than small batches do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hasten.errors import ProblemError
from hasten.padded.kernels import spread
from hasten.padded.search import Inference, Request, above
from hasten.padded.shapes import Placed
from hasten.torch.arrays import as_arrays, as_tensors

ENGINES: WeakValueDictionary[str, Inference] = WeakValueDictionary()  # by the name of their layer
PLAIN = {torch.Tensor, torch.nn.Parameter}
ROWS_FIRST = "loss", "spread"  # their labels have an axis of rows before the examples


class Asked(NamedTuple):
    """What is asked, as numbers."""

    samples: float = 0.0  # of perturbed answers
    sigma: float = 0.0  # the standard deviation of their noise
    margin: float = 0.0  # of a hinge; of `sample`, the step of its gradient
    flat: float = 0.0  # 1 if all scores of an example are in a row
    strict: float = 0.0  # 1 if gold must be valid
    sharing: float = 0.0  # 1 if sums come with their gradients


class Call(NamedTuple):
    """A call of an operation."""

    what: str
    layer: str  # its name; it must live in this process
    kinds: str  # of the tables
    asked: Asked
    scores: Sequence[Tensor]  # for each field, or one with all scores of a structure in a row
    tables: Sequence[Tensor] = ()
    where: Sequence[Tensor] = ()  # lengths or a mask of each size, masks of each field, structures; empty: not given
    gold: Sequence[Tensor] = ()
    kept: Sequence[Tensor] = ()  # of the call whose gradient this is: labels, or gradients for weights of 1
    last: Sequence[Tensor] = ()  # the seed, or the weight of each example

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors."""
        return [*self.scores, *self.tables, *self.where, *self.gold, *self.kept, *self.last]

    @property
    def told(self) -> tuple[Any, ...]:
        """All else: what `of` needs."""
        return (*self[:3], [len(each) for each in self[4:]], list(self.asked))

    @classmethod
    def of(cls, told: tuple[Any, ...], tensors: Sequence[Tensor]) -> Call:
        """Returns a call, given what `told` and `tensors` are."""
        what, layer, kinds, counts, asked = told
        each = iter(tensors)
        return cls(what, layer, kinds, Asked(*asked), *([next(each) for _ in range(n)] for n in counts))

    def opened(self) -> tuple[Inference, Placed, list[Any], dict[str, Any], list[Any], list[Any]]:
        """Returns what answers, where variables are, and arrays: scores, tables by kind, gold, and the last ones."""
        engine = engine_of(self.layer)
        given = [*self.scores, *self.tables, *self.where, *self.gold, *self.last]
        arrays = iter(as_arrays(given))
        groups = self.scores, self.tables, self.where, self.gold, self.last
        own, tables, where, gold, last = ([next(arrays) for _ in each] for each in groups)
        placed = self.placed(engine, where)
        return engine, placed, own, dict(zip(placed.shapes.kinds, tables, strict=True)), gold, last

    def placed(self, engine: Inference, where: Sequence[Any]) -> Placed:
        """Returns where the variables of padded scores are, given arrays; those that are not given are empty."""
        layout = engine.layout
        named = zip((*layout.sizes, *layout.fields), where, strict=False)
        number = where[-1] if len(where) and where[-1].size else None
        given = {name: each for name, each in named if each.size}
        return layout.place(
            [each.shape for each in self.scores], given, number, tuple(self.kinds.split()), bool(self.asked.flat)
        )


def engine_of(layer: str) -> Inference:
    """Returns what answers for a layer of this process."""
    engine = ENGINES.get(layer)
    if engine is None:
        raise ProblemError(
            f"There is no layer named {layer!r} in this process. Make it before a loaded program runs: Layer(..., "
            f"name={layer!r})."
        )
    return engine


def decode(call: Call) -> list[Tensor]:
    """Returns the score of the best labelling of each example, its gap, whether it is proved, and its labels."""
    engine, placed, own, tables, _, _ = call.opened()
    found = engine.search(placed, own, tables)
    return as_tensors([each[0] for each in (*found[:3], *found.labels)], call.scores[0].device)


def loss(call: Call) -> list[Tensor]:
    """Returns how much more the answers to each example score, in the mean, than the best with gold; and all labels."""
    engine, placed, own, tables, gold, last = call.opened()
    found = engine.search(placed, own, tables, gold, _request(call.asked, last))
    *rows, of_gold = found.score
    value = above(rows[0] if len(rows) == 1 else np.mean(rows, axis=0), of_gold)
    return as_tensors([value, *found.labels], call.scores[0].device)


def loss_backward(call: Call, outputs: Sequence[Tensor], slopes: Sequence[Tensor]) -> list[Tensor]:
    """Returns the gradient of `loss`."""
    return ask(call._replace(what="spread", gold=[], kept=outputs[1:], last=[slopes[0]]))


def spread_out(call: Call) -> list[Tensor]:
    """Returns indicators of the mean answer, less that of gold, weighted by example."""
    n = len(call.kept[0]) - 1
    return _indicate(call, call.kept, [*[1.0 / n] * n, -1.0], -engine_of(call.layer).sign * call.last[0])


def sample(call: Call) -> list[Tensor]:
    """Returns the mean indicator of perturbed answers, for each field; its gradient is that of implicit MLE."""
    engine, placed, own, tables, _, last = call.opened()
    found = as_tensors(engine.search(placed, own, tables, (), _request(call.asked, last)).labels, call.scores[0].device)
    n_rows, n_examples = found[0].shape[:2]
    return _indicate(call._replace(kinds=""), found, [1.0 / n_rows] * n_rows, call.scores[0].new_ones(n_examples))


def sample_backward(call: Call, outputs: Sequence[Tensor], slopes: Sequence[Tensor]) -> list[Tensor]:
    """Returns how far the answers move as their scores take a step against the gradient (Niepert et al. 2021)."""
    step, sign = call.asked.margin, -engine_of(call.layer).sign
    moved = [each - sign * step * slope for each, slope in zip(call.scores, slopes, strict=True)]
    found = zip(outputs, ask(call._replace(scores=moved)), strict=True)
    return [*(sign * (mine - other) / step for mine, other in found), *(None for _ in call.tables)]


def sums(call: Call) -> list[Tensor]:
    """Returns the log-partition of each example, with gold less that of what agrees with it; and its gradients."""
    engine, placed, own, tables, gold, _ = call.opened()
    found = engine.sums(placed, own, tables, gold, None, bool(call.asked.sharing), bool(call.asked.strict))
    return as_tensors([found.value], call.scores[0].device) + _shared(call, engine, found)


def sums_backward(call: Call, outputs: Sequence[Tensor], slopes: Sequence[Tensor]) -> list[Tensor]:
    """Returns the gradient of `sums`: marginals."""
    return ask(call._replace(what="shares", kept=outputs[1:], last=[slopes[0]]))


def shares(call: Call) -> list[Tensor]:
    """Returns the gradient of `sums`, weighted by example; those of tables are found again if weights differ."""
    weight = call.last[0]
    first = weight[:1].sum()
    if call.kept and (not call.tables or bool((weight == first).all())):
        shaped = [weight.reshape(-1, *[1] * (each.ndim - 1)) for each in call.scores] + [first] * len(call.tables)
        return [scale.to(each.dtype) * each for scale, each in zip(shaped, call.kept, strict=True)]
    engine, placed, own, tables, gold, last = call._replace(kept=[], last=[weight.double()]).opened()
    return _shared(call, engine, engine.sums(placed, own, tables, gold, last[0]))


def _request(asked: Asked, last: Sequence[Any]) -> Request:
    seed = int(last[0]) if last else 0
    return Request(int(asked.samples), asked.sigma, seed, 0.0 if asked.samples else asked.margin, bool(asked.strict))


def _shared(call: Call, engine: Inference, found: Any) -> list[Tensor]:
    """Returns the gradients of sums as tensors like scores and tables."""
    given = [-engine.sign * each for each in (*found.fields, *found.tables)]
    tensors = as_tensors(given, call.scores[0].device)
    return [each.to(like.dtype) for each, like in zip(tensors, (*call.scores, *call.tables), strict=False)]


def _indicate(call: Call, labels: Sequence[Tensor], rows: Sequence[float], examples: Tensor) -> list[Tensor]:
    """Returns an indicator of labels, (rows, examples, ...), weighted by row and example, and summed over rows.

    One for each field; label tuples of the kinds of factors come behind, summed over examples as well.
    """
    engine, found, (weight,) = engine_of(call.layer), [], as_arrays([examples])
    weight = np.multiply.outer(rows, weight.astype(np.float64))
    for each, like in zip(labels, call.scores, strict=True):
        n_rows, n_examples, *axes = each.shape
        cells, n = prod(axes), like.shape[-1]
        start = engine.layout.structure.graph.first[:cells] if call.asked.flat else np.arange(cells) * n
        total = torch.zeros(like.shape, dtype=torch.promote_types(like.dtype, torch.float32), device=each.device)
        mine, row = each.reshape(n_rows, n_examples, cells), total.view(n_examples, prod(like.shape[1:]))
        if each.is_cpu:
            spread(mine.contiguous().numpy(), weight, start, row.numpy())
        else:
            mine, shares = mine.movedim(0, 1), torch.from_numpy(weight.T[:, :, None]).to(each.device)
            at = mine.clamp(min=0) + torch.from_numpy(np.array(start)).to(each.device)
            part = torch.where(mine >= 0, shares, 0.0).to(total.dtype)
            row.scatter_add_(1, at.flatten(1), part.flatten(1))
        found.append(total.to(like.dtype))
    if call.kinds:
        arrays = as_arrays([*labels, *call.where])
        placed = call.placed(engine, arrays[len(labels) :])
        counted = engine.tuples(placed, arrays[: len(labels)], weight)
        tensors = as_tensors([counted[name] for name in placed.shapes.kinds], labels[0].device)
        found += [each.to(like.dtype) for each, like in zip(tensors, call.tables, strict=True)]
    return found


def _like(call: Call, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [call.scores[0].new_empty(shape, dtype=dtype) for shape in shapes]


def _like_labels(call: Call, *rows: int) -> list[Tensor]:
    n = call.scores[0].shape[0], *([engine_of(call.layer).layout.structure.n_variables] if call.asked.flat else [])
    axes = [(*rows, *n, *(() if call.asked.flat else each.shape[1:-1])) for each in call.scores]
    return _like(call, *axes, dtype=torch.int64)


def _like_given(call: Call) -> list[Tensor]:
    return [torch.empty_like(each, memory_format=torch.contiguous_format) for each in (*call.scores, *call.tables)]


class Operation(NamedTuple):
    """One thing that the operator does."""

    run: Callable[[Call], list[Tensor]]
    fake: Callable[[Call], list[Tensor]]  # what a compiler is told of the outputs
    backward: Callable[..., list[Tensor]] | None = None  # of the first outputs, to scores and tables
    n_smooth: int | None = 0  # how many outputs are differentiable; None: all
    reads: bool = True  # whether the gradient reads scores and tables, not only their shapes


def _fake_decoded(call: Call) -> list[Tensor]:
    n = (call.scores[0].shape[0],)
    return [*_like(call, n, n), *_like(call, n, dtype=torch.bool), *_like_labels(call)]


OPERATIONS = {
    "decode": Operation(decode, _fake_decoded),
    "loss": Operation(
        loss,
        lambda call: _like(call, call.scores[0].shape[:1]) + _like_labels(call, max(1, int(call.asked.samples)) + 1),
        loss_backward,
        1,
        False,
    ),
    "spread": Operation(spread_out, _like_given),
    "sample": Operation(sample, lambda call: _like_given(call._replace(tables=[])), sample_backward, None),
    "sums": Operation(
        sums,
        lambda call: _like(call, call.scores[0].shape[:1]) + (_like_given(call) if call.asked.sharing else []),
        sums_backward,
        1,
    ),
    "shares": Operation(shares, _like_given),
}


def ask(call: Call) -> list[Tensor]:
    """Carries out a call."""
    tensors, operation = call.tensors, OPERATIONS[call.what]
    if operation.backward is None:
        tensors = [each.detach() for each in tensors]
    if (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack()
        or not PLAIN.issuperset(map(type, tensors))
    ):
        found: list[Tensor] = operator(*call.told[:3], tensors, *call.told[3:])
        return found
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return list(Mapped.apply(call.told, *tensors))
    if operation.backward and torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return list(Direct.apply(call.told, *tensors))
    return operation.run(call)


@torch.library.custom_op("hasten::call", mutates_args=())
def operator(
    what: str, layer: str, kinds: str, tensors: Sequence[Tensor], counts: Sequence[int], asked: Sequence[float]
) -> list[Tensor]:
    """Carries out a call, for compilers and transforms."""
    return OPERATIONS[what].run(Call.of((what, layer, kinds, counts, asked), tensors))


@operator.register_fake
def _(what, layer, kinds, tensors, counts, asked):  # type: ignore[no-untyped-def]
    return OPERATIONS[what].fake(Call.of((what, layer, kinds, counts, asked), tensors))


def keep(ctx: Any, told: tuple[Any, ...], tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Keeps what the gradient of a call needs."""
    operation, kept = OPERATIONS[told[0]], list(tensors)
    ctx.told, ctx.n = told, len(tensors)
    for n in () if operation.reads else range(sum(told[3][:2])):  # so that they may be changed in place
        kept[n] = kept[n].new_empty(()).expand(kept[n].shape)
    n_smooth = len(outputs) if operation.n_smooth is None else operation.n_smooth
    ctx.mark_non_differentiable(*outputs[n_smooth:])
    ctx.save_for_backward(*kept, *outputs)


def backward(ctx: Any, slopes: Sequence[Tensor]) -> list[Tensor | None]:
    """Returns the gradient of a call, of which scores and tables have one."""
    saved = ctx.saved_tensors
    call = Call.of(ctx.told, saved[: ctx.n])
    run = OPERATIONS[call.what].backward
    if run is None:
        raise ProblemError("These gradients are not differentiable again.")
    found = run(call, saved[ctx.n :], slopes)
    return [*found, *[None] * (ctx.n - len(found))]


operator.register_autograd(
    lambda ctx, slopes: (None, None, None, backward(ctx, slopes), None, None),
    setup_context=lambda ctx, inputs, output: keep(ctx, (*inputs[:3], *inputs[4:]), inputs[3], output),
)


class Direct(torch.autograd.Function):
    """A call without the dispatcher."""

    @staticmethod
    def forward(ctx: Any, told: tuple[Any, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
        """Returns what the operator does."""
        outputs = OPERATIONS[told[0]].run(Call.of(told, tensors))
        keep(ctx, told, tensors, outputs)
        return tuple(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        """Returns the gradient of the operator."""
        return None, *backward(ctx, slopes)


class Mapped(torch.autograd.Function):
    """A call under the transforms of `torch.func`, which know no operator; it takes longer than `Direct`."""

    @staticmethod
    def forward(told: tuple[Any, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
        """Returns what the operator does."""
        return tuple(OPERATIONS[told[0]].run(Call.of(told, tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keeps what the gradient needs."""
        keep(ctx, inputs[0], inputs[1:], output)

    backward = Direct.backward

    @staticmethod
    def vmap(info: Any, dims: tuple[Any, ...], told: tuple[Any, ...], *tensors: Tensor) -> Any:
        """Runs mapped calls."""
        found, axes = run_mapped(info.batch_size, dims[1:], told, tensors)
        return tuple(found), tuple(axes)


def run_mapped(size: int, dims: Sequence[int | None], told: tuple[Any, ...], tensors: Sequence[Tensor]) -> Any:
    """Runs mapped calls as more examples; where tables or seeds differ, or tables have gradients, call by call."""
    what, counts = told[0], told[3]
    groups = [group for group, n in zip(Call._fields[4:], counts, strict=True) for _ in range(n)]
    whole = [g for g, dim in zip(groups, dims, strict=True) if dim is not None or what in ("spread", "shares", "sums")]
    if "tables" in whole or ("last" in whole and what in ("loss", "sample")):
        given = [[each] * size if dim is None else each.unbind(dim) for each, dim in zip(tensors, dims, strict=True)]
        rows = [ask(Call.of(told, each)) for each in zip(*given, strict=True)]
        found = [torch.stack(each) for each in zip(*rows, strict=True)]
        return found, [0] * len(found)
    folded = []
    for each, group, dim in zip(tensors, groups, dims, strict=True):
        axis = int(group == "kept" and what in ROWS_FIRST)
        if group == "tables" or (dim is None and (not each.ndim or not each.numel())):
            folded.append(each)  # or a seed, or something that is not given
            continue
        wide = each.expand(size, *each.shape).movedim(0, axis) if dim is None else each.movedim(dim, axis)
        folded.append(wide.flatten(axis, axis + 1))
    found = ask(Call.of(told, folded))
    axes = [int(what == "loss" and n > 0) for n in range(len(found))]
    return [each.unflatten(axis, (size, -1)) for each, axis in zip(found, axes, strict=True)], axes


operator.register_vmap(
    lambda info, dims, what, layer, kinds, tensors, *rest: run_mapped(
        info.batch_size, dims[3], (what, layer, kinds, *rest), tensors
    )
)
