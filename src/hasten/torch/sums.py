"""Sums over all labellings as operators: `log_partition`, whose gradient `shares` gives, the marginals.

On the CPU the kernels of `hasten.sums` do the work. Scores on another device stay there if all examples have one
structure (`hasten.torch.executor`); others go to the CPU and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from hasten.model.batch import Batch
from hasten.padded.kernels import IGNORED
from hasten.padded.search import Inference
from hasten.padded.shapes import Placed
from hasten.padded.sums import Sums, problems_of, put_back, sum_up
from hasten.sums import marginals, min_marginals
from hasten.sums import sample as draw
from hasten.support.arrays import ints, ranges, sizes_of
from hasten.torch.executor import Executor, executor_for, run_graphed
from hasten.torch.operators import as_arrays, as_tensors, engine_of, mapped, place

_PLACES: WeakKeyDictionary[Inference, dict[Any, Any]] = WeakKeyDictionary()  # of structures on devices


class Told(NamedTuple):
    """What all operators are told, as `hasten.torch.operators` says it."""

    layer: str
    scores: Sequence[Tensor]
    tables: Sequence[Tensor]
    kinds: str
    where: Sequence[Tensor]
    gold: Sequence[Tensor]
    flat: bool
    strict: bool = False  # whether gold must be valid

    def placed(self) -> tuple[Any, ...]:
        """Returns what answers, where variables are, and the arrays of scores, tables by kind, and gold."""
        engine = engine_of(self.layer)
        arrays = iter(as_arrays([*self.scores, *self.tables, *self.where, *self.gold]))
        lists = self.scores, self.tables, self.where, self.gold
        own, brought, given, known = ([next(arrays) for _ in each] for each in lists)
        placed = place(engine, self.shapes, given, self.kinds, self.flat)
        return engine, placed, own, dict(zip(placed.shapes.kinds, brought, strict=True)), known

    def problems(self) -> tuple[Inference, Placed, Batch]:
        """Returns what answers, where variables are, and the problems."""
        engine, placed, *given = self.placed()
        return engine, placed, problems_of(engine, placed, *given)

    def sums(self, weight: Any, sharing: bool = True) -> tuple[Inference, Sums]:
        """Returns what answers, and the sums of examples with some weights."""
        engine, placed, own, tables, gold = self.placed()
        return engine, sum_up(engine, placed, own, tables, gold, weight, sharing, self.strict)

    @property
    def shapes(self) -> list[Any]:
        """The shapes of the scores."""
        return [tuple(each.shape) for each in self.scores]


@torch.library.custom_op("hasten::log_partition", mutates_args=())
def log_partition(
    layer: str,
    scores: Sequence[Tensor],
    tables: Sequence[Tensor],
    kinds: str,
    where: Sequence[Tensor],
    gold: Sequence[Tensor],
    flat: bool,
    strict: bool,
    sharing: bool,
) -> tuple[Tensor, list[Tensor]]:
    """Returns the log-partition of each example; with gold, in a second row that of labellings that agree with it.

    With `sharing` also the gradients of the first row, less the second, for each field and table.
    """
    told = Told(layer, scores, tables, kinds, where, gold, flat, strict)
    engine, found = told.sums(None, sharing)
    value, *shared = as_tensors([found.value, *found.fields, *found.tables], scores[0].device)
    return value, [(-engine.sign * each).to(like.dtype) for each, like in zip(shared, (*scores, *tables), strict=False)]


@log_partition.register_fake
def _(layer, scores, tables, kinds, where, gold, flat, strict, sharing):  # type: ignore[no-untyped-def]
    shared = [torch.empty_like(each, memory_format=torch.contiguous_format) for each in (*scores, *tables)]
    return scores[0].new_empty((1 + bool(gold), scores[0].shape[0]), dtype=torch.float64), shared if sharing else []


@torch.library.custom_op("hasten::shares", mutates_args=())
def shares(
    layer: str,
    scores: Sequence[Tensor],
    tables: Sequence[Tensor],
    kinds: str,
    where: Sequence[Tensor],
    gold: Sequence[Tensor],
    flat: bool,
    shared: Sequence[Tensor],
    weight: Tensor,
) -> list[Tensor]:
    """Returns the gradient of weighted log-partitions, for each field and table; `shared` if all weigh 1 and -1."""
    first = weight[:1, :1].sum()
    if shared and bool((weight[0] == first).all()) and bool((weight[1:] == -first).all()):
        return [first.to(each.dtype) * each for each in shared]
    told = Told(layer, scores, tables, kinds, where, gold, flat)
    weights = as_arrays([weight.double()])[0]
    engine, found = told.sums(weights[0])
    total = [*found.fields, *found.tables]
    if gold and (weights[1] != -weights[0]).any():  # rows of other weights: the rest is the second row's alone
        rest = told.sums(weights[0] + weights[1])[1], told._replace(gold=[]).sums(weights[0] + weights[1])[1]
        (mine, both) = ([*each.fields, *each.tables] for each in rest)
        total = [each + other - one for each, one, other in zip(total, mine, both, strict=True)]
    tensors = as_tensors([-engine.sign * each for each in total], weight.device)
    return [each.to(like.dtype) for each, like in zip(tensors, (*scores, *tables), strict=True)]


@shares.register_fake
def _(layer, scores, tables, kinds, where, gold, flat, shared, weight):  # type: ignore[no-untyped-def]
    return [torch.empty_like(each, memory_format=torch.contiguous_format) for each in (*scores, *tables)]


def keep_for_sums(ctx: Any, inputs: Any, output: Any) -> None:
    """Keeps what the gradient needs: all inputs, and the gradients of the first row, less the second."""
    layer, scores, tables, kinds, where, gold, flat, _, _ = inputs
    ctx.about = layer, kinds, flat
    ctx.counts = [len(each) for each in (scores, tables, where, gold, output[1])]
    ctx.mark_non_differentiable(*output[1])
    ctx.save_for_backward(*scores, *tables, *where, *gold, *output[1])


def sums_backward(ctx: Any, weight: Tensor, _: Any) -> Any:
    """Returns the gradient of `log_partition`: marginals."""
    (layer, kinds, flat), saved = ctx.about, iter(ctx.saved_tensors)
    scores, tables, where, gold, shared = ([next(saved) for _ in range(size)] for size in ctx.counts)
    found = shares(layer, scores, tables, kinds, where, gold, flat, shared, weight)
    n = len(scores)
    return None, found[:n], found[n:], None, [None] * len(where), [None] * len(gold), None, None, None


log_partition.register_autograd(sums_backward, setup_context=keep_for_sums)


def one_by_one(operator: Any) -> Any:
    """Returns how `torch.vmap` runs an operator: call by call."""

    def run(info: Any, dims: Any, *args: Any) -> Any:
        calls = [
            operator(*mapped(lambda value, dim, i=i: value if dim is None else value.select(dim, i), args, dims))
            for i in range(info.batch_size)
        ]
        return tree_map(lambda *each: torch.stack(each), *calls), tree_map(lambda _: 0, calls[0])

    return run


log_partition.register_vmap(one_by_one(log_partition))
shares.register_vmap(one_by_one(shares))


def log_partitions(told: Told) -> Tensor:
    """Returns log-partitions as `log_partition` does, on the device of the scores if they can be summed there."""
    if told.scores[0].device.type != "cpu" and not torch.compiler.is_compiling():
        engine = engine_of(told.layer)
        placed = place(engine, told.shapes, as_arrays(told.where), told.kinds, told.flat)
        alike = len(placed.number) and (placed.number == placed.number[0]).all()
        if alike and not any(cells.row.size for cells in placed.cells):
            found = on_device(engine, placed, told)
            if told.strict and bool(torch.isneginf(found[-1]).any()):
                told.sums(None, False)  # says which, and why
            return found
    sharing = torch.is_grad_enabled() and any(each.requires_grad for each in (*told.scores, *told.tables))
    return log_partition(*told, sharing)[0]


class OnDevice(NamedTuple):
    """A structure on a device: what does not change."""

    executor: Executor
    index: Tensor  # where the scores of its labels are among all of an example
    price: Tensor  # the scores of the indicators of soft rules
    table: Tensor  # scores of tables
    starts: dict[str, int]  # where tables that are given start


def on_device(engine: Inference, placed: Placed, told: Told) -> Tensor:
    """Returns the log-partitions of examples of one structure, on the device of their scores."""
    scores, n = list(told.scores), len(placed.number)
    found = _structure_on(engine, placed, told, (1 + bool(told.gold)) * n)
    sign = -engine.sign
    rows = [torch.cat([each.flatten(1) for each in scores], 1)]
    if told.gold:
        rows.append(
            torch.cat([_known(*pair, told.flat, engine).flatten(1) for pair in zip(scores, told.gold, strict=True)], 1)
        )
    flat = sign * torch.cat(rows)[:, found.index].double()
    flat = torch.cat([flat, found.price.expand(len(flat), -1)], 1)
    table = found.table
    for name, given in zip(placed.shapes.kinds, told.tables, strict=True):
        if name in found.starts:
            at = found.starts[name]
            parts = (
                table[:at],
                table[at : at + given.numel()] + sign * given.flatten().double(),
                table[at + given.numel() :],
            )
            table = torch.cat(parts)
    return run_graphed(found.executor, flat, table).reshape(-1, n)


def _known(scores: Tensor, gold: Tensor, flat: bool, engine: Inference) -> Tensor:
    """Returns scores in which only the known labels are allowed."""
    worst = engine.sign * torch.inf
    if flat:
        first = engine.layout.structure.graph.first[: gold.shape[-1] + 1]
        sizes = torch.from_numpy(np.diff(first)).to(gold.device)
        label = torch.arange(int(first[-1]), device=gold.device) - torch.from_numpy(first[:-1].copy()).to(
            gold.device
        ).repeat_interleave(sizes)
        wanted = gold.repeat_interleave(sizes, dim=-1)
    else:
        label, wanted = torch.arange(scores.shape[-1], device=gold.device), gold[..., None]
    return torch.where((wanted == IGNORED) | (wanted == label), scores, worst)


def _structure_on(engine: Inference, placed: Placed, told: Told, n_problems: int) -> OnDevice:
    """Returns what does not change of a structure on a device; made once."""
    s, device = int(placed.number[0]), told.scores[0].device
    known = _PLACES.setdefault(engine, {})
    key = s, told.kinds, told.flat, device, tuple(shape[1:] for shape in told.shapes)
    structure = placed.shapes.structures[s]
    if key not in known:
        sizes = [int(np.prod(shape[1:])) for shape in told.shapes]
        ends = np.cumsum(sizes)
        one = [(1, *shape[1:]) for shape in told.shapes]
        cells = [each._replace(number=each.number[:1]) for each in placed.cells]
        alone = placed._replace(
            number=placed.number[:1],
            cells=cells,
            places=placed.places._replace(cost_at=placed.cost_at[:2]),
            price=placed.price[:0],
        )
        places = [np.arange(end - size, end, dtype=np.float64) for end, size in zip(ends, sizes, strict=True)]
        numbers = [each.reshape(shape) for each, shape in zip(places, one, strict=True)]
        index = np.abs(engine.costs(alone, numbers))[: structure.n_labels].astype(np.int64)
        indices = structure.schema.factors
        starts = {name: structure._table_starts.get(indices[name].index, -1) for name in placed.shapes.kinds}
        table = -structure.graph.table.copy()
        for name, at in starts.items():
            own = indices[name].table
            table[at : at + indices[name].size] = 0.0 if own is None else -own.ravel()
        tensors = (torch.from_numpy(each).to(device) for each in (index, -placed.shapes.prices[s], table))
        known[key] = (*tensors, {name: at for name, at in starts.items() if at >= 0})
    return OnDevice(executor_for(structure.compiled, n_problems), *known[key])


def entropies(told: Told) -> Tensor:
    """Returns the entropy of each example; nan where no labelling is valid."""
    _, _, batch = told.problems()
    return as_tensors([marginals(batch).entropy], told.scores[0].device)[0]


def samples(told: Told, n: int, seed: int) -> list[Tensor]:
    """Returns labellings drawn for each example, (samples, examples, *axes), padded."""
    engine, placed, batch = told.problems()
    drawn = np.zeros((n, int(batch.variable_at[-1])), dtype=np.int64)
    drawn[:, ranges(batch.variable_at[:-1], sizes_of(batch.labels_at))] = draw(batch, n, seed=seed)
    return as_tensors(engine.write(placed, drawn, told.shapes), told.scores[0].device)


def excesses(told: Told) -> list[Tensor]:
    """Returns how much less the best labelling with each label scores than the best of all, padded with nan."""
    _, placed, batch = told.problems()
    excess, n_labels = np.zeros(batch.cost.size), ints(each.n_labels for each in batch.structures)[batch.structure]
    excess[ranges(batch.cost_at[:-1], n_labels)] = min_marginals(batch).excess
    return as_tensors(
        put_back(placed, excess, told.shapes, [np.float64] * len(told.scores), np.nan), told.scores[0].device
    )
