"""Log-partitions on the device of the scores, where all examples have one structure (`hasten.torch.executor`)."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from hasten.padded.kernels import IGNORED
from hasten.padded.search import Inference
from hasten.padded.shapes import Placed
from hasten.torch.arrays import as_arrays
from hasten.torch.calls import Call, engine_of
from hasten.torch.executor import Executor, executor_for, run_graphed
from hasten.torch.operators import ask

_PLACES: WeakKeyDictionary[Inference, dict[Any, Any]] = WeakKeyDictionary()  # of structures on devices


def log_partitions(call: Call) -> Tensor:
    """Returns what `sums` does, without gradients, on the device of the scores if they can be summed there."""
    if not call.scores[0].is_cpu and not torch.compiler.is_compiling():
        engine = engine_of(call.layer)
        placed = call.placed(engine, as_arrays(call.where))
        alike = len(placed.number) and (placed.number == placed.number[0]).all()
        masked = any(each.ndim > 1 for each in call.where) or (call.where and call.where[-1].numel())
        if alike and not masked:
            found = on_device(engine, placed, call)
            if call.asked.strict and bool(torch.isposinf(found).any()):
                ask(call)  # says which, and why
            return found
    return ask(call)[0]


class OnDevice(NamedTuple):
    """A structure on a device: what does not change."""

    executor: Executor
    index: Tensor  # where the scores of its labels are among all of an example
    price: Tensor  # the scores of the indicators of soft rules
    table: Tensor  # scores of tables
    starts: dict[str, int]  # where tables that are given start


def on_device(engine: Inference, placed: Placed, call: Call) -> Tensor:
    """Returns the sums of examples of one structure, on the device of their scores."""
    scores, n = list(call.scores), len(placed.number)
    found = _structure_on(engine, placed, call, (1 + bool(call.gold)) * n)
    sign = -engine.sign
    rows = [torch.cat([each.flatten(1) for each in scores], 1)]
    if call.gold:
        known = (_known(*pair, placed.flat, engine) for pair in zip(scores, call.gold, strict=True))
        rows.append(torch.cat([each.flatten(1) for each in known], 1))
    flat = sign * torch.cat(rows)[:, found.index].double()
    flat = torch.cat([flat, found.price.expand(len(flat), -1)], 1)
    table = found.table
    for name, given in zip(placed.shapes.kinds, call.tables, strict=True):
        if name in found.starts:
            at, own = found.starts[name], sign * given.flatten().double()
            table = table + pad(own, (at, len(table) - at - len(own)))
    total, *of_gold = run_graphed(found.executor, flat, table).reshape(-1, n)
    return torch.where(of_gold[0] > -torch.inf, total - of_gold[0], torch.inf) if of_gold else total


def _known(scores: Tensor, gold: Tensor, flat: bool, engine: Inference) -> Tensor:
    """Returns scores in which only the known labels are allowed."""
    worst = engine.sign * torch.inf
    if flat:
        first = engine.layout.structure.graph.first[: gold.shape[-1] + 1]
        sizes = torch.from_numpy(np.diff(first)).to(gold.device)
        label = torch.from_numpy(np.arange(first[-1]) - np.repeat(first[:-1], np.diff(first))).to(gold.device)
        wanted = gold.repeat_interleave(sizes, dim=-1)
    else:
        label, wanted = torch.arange(scores.shape[-1], device=gold.device), gold[..., None]
    return torch.where((wanted == IGNORED) | (wanted == label), scores, worst)


def _structure_on(engine: Inference, placed: Placed, call: Call, n_problems: int) -> OnDevice:
    """Returns what does not change of a structure on a device; made once."""
    s, device = int(placed.number[0]), call.scores[0].device
    known = _PLACES.setdefault(engine, {})
    key = s, call.kinds, placed.flat, device, tuple(shape[1:] for shape in placed.room)
    structure = placed.shapes.structures[s]
    if key not in known:
        sizes = [int(np.prod(shape[1:])) for shape in placed.room]
        ends = np.cumsum(sizes)
        one = [(1, *shape[1:]) for shape in placed.room]
        runs = [each._replace(number=each.number[:1]) for each in placed.runs]
        alone = Placed(placed.shapes, placed.number[:1], one, runs, placed.flat)
        places = [np.arange(end - size, end, dtype=np.float64) for end, size in zip(ends, sizes, strict=True)]
        numbers = [each.reshape(shape) for each, shape in zip(places, one, strict=True)]
        index = np.abs(engine.costs(alone, numbers))[: structure.n_labels].astype(np.int64)
        kinds = {name: structure.schema.factors[name] for name in placed.shapes.kinds}
        where = structure._table_starts
        starts = {name: where[kind.index] for name, kind in kinds.items() if kind.index in where}
        table = -structure.graph.table.copy()
        for name, at in starts.items():
            own = kinds[name].table
            table[at : at + kinds[name].size] = 0.0 if own is None else -own.ravel()
        tensors = (torch.from_numpy(each).to(device) for each in (index, -placed.shapes.prices[s], table))
        known[key] = (*tensors, starts)
    return OnDevice(executor_for(structure.compiled, n_problems), *known[key])
