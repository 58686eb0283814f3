"""Log-partitions on the device of the scores, where all examples have one structure (`hasten.torch.executor`)."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from hasten.kernels.layout import TABLE
from hasten.padded.kernels import IGNORED
from hasten.padded.search import Inference
from hasten.padded.shapes import Placed
from hasten.torch.calls import Call, as_arrays, engine_of
from hasten.torch.executor import executor_for, run_graphed
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

    index: Tensor  # where the scores of its labels are among all of an example
    price: Tensor  # the scores of the indicators of soft rules
    table: Tensor  # scores of tables
    starts: dict[str, int]  # where tables that are given start


def on_device(engine: Inference, placed: Placed, call: Call) -> Tensor:
    """Returns the sums of examples of one structure, on the device of their scores."""
    scores, n, structure = list(call.scores), len(placed.number), placed.shapes.structures[placed.number[0]]
    found = _structure_on(engine, placed, call)
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
    total, *of_gold = run_graphed(executor_for(structure.compiled, len(flat)), flat, table).reshape(-1, n)
    return torch.where(of_gold[0] > -torch.inf, total - of_gold[0], torch.inf) if of_gold else total


def _known(scores: Tensor, gold: Tensor, flat: bool, engine: Inference) -> Tensor:
    """Returns scores in which only the known labels are allowed."""
    wanted, label = gold[..., None], torch.arange(scores.shape[-1], device=gold.device)
    if flat:
        first = torch.from_numpy(engine.layout.structure.graph.first[: gold.shape[-1] + 1].copy()).to(gold.device)
        sizes = first.diff()
        wanted, label = gold.repeat_interleave(sizes, -1), label - first[:-1].repeat_interleave(sizes)
    return torch.where((wanted == IGNORED) | (wanted == label), scores, engine.sign * torch.inf)


def _structure_on(engine: Inference, placed: Placed, call: Call) -> OnDevice:
    """Returns what does not change of a structure on a device; made once."""
    s, device = int(placed.number[0]), call.scores[0].device
    known = _PLACES.setdefault(engine, {})
    key = s, call.kinds, placed.flat, device, tuple(shape[1:] for shape in placed.room)
    if key not in known:
        structure, begin = placed.shapes.structures[s], 0
        index = np.zeros(structure.n_labels, dtype=np.int64)
        for (number, first, runs), shape in zip(placed.runs, placed.room, strict=True):
            for score, _, label, _, width, size in runs[first[number[0]] : first[number[0] + 1]].tolist():
                index[label : label + width * size] = begin + score + np.arange(width * size)
            begin += int(np.prod(shape[1:]))
        nothing = {name: np.zeros(structure.schema.factors[name].size) for name in placed.shapes.kinds}
        at = placed.rows(1)[1][0, TABLE]
        table = -placed.shapes.table(nothing)[at : at + structure.graph.table.size]
        tensors = [torch.from_numpy(each).to(device) for each in (index, -placed.shapes.prices[s], table)]
        known[key] = OnDevice(tensors[0], tensors[1], tensors[2], placed.shapes.starts(s))
    found: OnDevice = known[key]
    return found
