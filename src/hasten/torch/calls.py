"""Calls: what is asked of a layer, as tensors and numbers; the operations that answer, each a line of `OPERATIONS`.

A call names the layer that it belongs to, so that compiled and exported programs can hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from math import prod
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from hasten.errors import ProblemError
from hasten.model.batch import Batch
from hasten.padded.kernels import spread
from hasten.padded.search import Inference, Request, above, put_back
from hasten.padded.shapes import Placed
from hasten.sums import marginals, min_marginals
from hasten.sums import sample as draw_labels
from hasten.support.arrays import ints, ranges, sizes_of
from hasten.torch.arrays import as_arrays, as_tensors

ENGINES: WeakValueDictionary[str, Inference] = WeakValueDictionary()  # by the name of their layer
_NUMBERS = count()


class Call(NamedTuple):
    """A call of an operation."""

    what: str
    layer: str  # its name; it must live in this process
    kinds: str  # of the tables
    asked: Request
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
        return (*self[:3], [len(each) for each in self[4:]], list(map(float, self.asked)))

    @classmethod
    def of(cls, told: tuple[Any, ...], tensors: Sequence[Tensor]) -> Call:
        """Returns a call, given what `told` and `tensors` are."""
        what, layer, kinds, counts, asked = told
        each = iter(tensors)
        return cls(what, layer, kinds, Request(*asked), *([next(each) for _ in range(n)] for n in counts))

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


def registered(engine: Inference, name: str | None = None) -> str:
    """Returns the name by which calls find what answers for a layer: by default a number that none had before."""
    if name in ENGINES:
        raise ProblemError(f"There is a layer named {name!r} already. Delete it, or give this one another name.")
    chosen = next(free for n in _NUMBERS if (free := f"layer{n}") not in ENGINES) if name is None else name
    ENGINES[chosen] = engine
    return chosen


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
    found = engine.search(placed, own, tables, gold, _seeded(call, last))
    *rows, of_gold = found.score
    value = above(rows[0] if len(rows) == 1 else np.mean(rows, axis=0), of_gold)
    return as_tensors([value, *found.labels], call.scores[0].device)


def spread_out(call: Call) -> list[Tensor]:
    """Returns indicators of the mean answer, less that of gold, weighted by example."""
    n = len(call.kept[0]) - 1
    return _indicate(call, call.kept, [*[1.0 / n] * n, -1.0], -engine_of(call.layer).sign * call.last[0])


def sample(call: Call) -> list[Tensor]:
    """Returns the mean indicator of perturbed answers, for each field; its gradient is that of implicit MLE."""
    engine, placed, own, tables, _, last = call.opened()
    found = as_tensors(engine.search(placed, own, tables, (), _seeded(call, last)).labels, call.scores[0].device)
    n_rows, n_examples = found[0].shape[:2]
    return _indicate(call._replace(kinds=""), found, [1.0 / n_rows] * n_rows, call.scores[0].new_ones(n_examples))


def moved(call: Call) -> list[Tensor]:
    """Returns the gradient of `sample`: how far answers move as scores take a step against a loss's (Niepert 2021)."""
    step, sign, n = call.asked.margin, -engine_of(call.layer).sign, len(call.scores)
    scores = [each - sign * step * slope for each, slope in zip(call.scores, call.kept[n:], strict=True)]
    found = zip(call.kept, sample(call._replace(scores=scores)), strict=False)
    return [sign * (mine - other) / step for mine, other in found]


def sums(call: Call) -> list[Tensor]:
    """Returns the log-partition of each example, with gold less that of what agrees with it; and its gradients."""
    engine, placed, own, tables, gold, _ = call.opened()
    found = engine.sums(placed, own, tables, gold, asked=call.asked)
    return as_tensors([found.value], call.scores[0].device) + _shared(call, engine, found)


def shares(call: Call) -> list[Tensor]:
    """Returns the gradient of `sums`, weighted by example; those of tables are found again if weights differ."""
    weight = call.last[0]
    first = weight[:1].sum()
    if call.kept and (not call.tables or bool((weight == first).all())):
        shaped = [weight.reshape(-1, *[1] * (each.ndim - 1)) for each in call.scores] + [first] * len(call.tables)
        return [scale.to(each.dtype) * each for scale, each in zip(shaped, call.kept, strict=True)]
    engine, placed, own, tables, gold, last = call._replace(kept=[], last=[weight.double()]).opened()
    return _shared(call, engine, engine.sums(placed, own, tables, gold, last[0]))


def entropy(call: Call) -> list[Tensor]:
    """Returns the entropy of each example; nan where no labelling is valid."""
    batch, _, _ = _problems(call)
    return as_tensors([marginals(batch).entropy], call.scores[0].device)


def draw(call: Call) -> list[Tensor]:
    """Returns labellings drawn for each example, (samples, examples, *axes), padded."""
    batch, engine, placed = _problems(call)
    drawn = np.zeros((int(call.asked.samples), int(batch.variable_at[-1])), dtype=np.int64)
    mine = ranges(batch.variable_at[:-1], sizes_of(batch.labels_at))
    drawn[:, mine] = draw_labels(batch, len(drawn), seed=int(call.last[0]))
    return as_tensors(engine.write(placed, drawn), call.scores[0].device)


def margins(call: Call) -> list[Tensor]:
    """Returns how much less the best labelling with each label scores than the best of all, padded with nan."""
    batch, _, placed = _problems(call)
    excess, n_labels = np.zeros(batch.cost.size), ints(each.n_labels for each in batch.structures)[batch.structure]
    excess[ranges(batch.cost_at[:-1], n_labels)] = min_marginals(batch).excess
    return as_tensors(put_back(placed, excess, [np.float64] * len(call.scores), np.nan), call.scores[0].device)


def _problems(call: Call) -> tuple[Batch, Inference, Placed]:
    engine, placed, own, tables, _, _ = call._replace(last=()).opened()
    return engine.problems(placed, own, tables), engine, placed


def _seeded(call: Call, last: Sequence[Any]) -> Request:
    return call.asked._replace(seed=int(last[0])) if last else call.asked


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


def _like_values(call: Call) -> list[Tensor]:
    return _like(call, call.scores[0].shape[:1])


def _refuse(*_: Any) -> Call:
    raise ProblemError("These gradients are not differentiable again.")


class Operation(NamedTuple):
    """One thing that is asked."""

    run: Callable[[Call], list[Tensor]]
    fake: Callable[[Call], list[Tensor]]  # what a compiler is told of the outputs
    gradient: Callable[[Call, Sequence[Tensor], Sequence[Tensor]], Call] | None = None
    """The call that returns the gradient, of the first outputs to scores and tables, given all and their slopes."""
    n_smooth: int = 10**6  # how many outputs are differentiable, the first ones
    reads: bool = True  # whether the gradient reads scores and tables, not only their shapes
    rows: int | None = None  # the first output that has an axis of rows before the examples


OPERATIONS = {
    "decode": Operation(
        decode,
        lambda call: [*_like_values(call), *_like_values(call), _like_values(call)[0].bool(), *_like_labels(call)],
    ),
    "loss": Operation(
        loss,
        lambda call: _like_values(call) + _like_labels(call, max(1, int(call.asked.samples)) + 1),
        lambda call, found, slopes: call._replace(what="spread", gold=[], kept=found[1:], last=slopes[:1]),
        n_smooth=1,
        reads=False,
        rows=1,
    ),
    "spread": Operation(spread_out, _like_given, _refuse),
    "sample": Operation(
        sample,
        lambda call: _like_given(call._replace(tables=[])),
        lambda call, found, slopes: call._replace(what="moved", kept=[*found, *slopes]),
    ),
    "moved": Operation(moved, lambda call: _like_given(call._replace(tables=[])), _refuse),
    "sums": Operation(
        sums,
        lambda call: _like_values(call) + (_like_given(call) if call.asked.sharing else []),
        lambda call, found, slopes: call._replace(what="shares", kept=found[1:], last=slopes[:1]),
        n_smooth=1,
    ),
    "shares": Operation(shares, _like_given, _refuse),
    "entropy": Operation(entropy, _like_values),
    "draw": Operation(draw, lambda call: _like_labels(call, int(call.asked.samples)), rows=0),
    "margins": Operation(margins, lambda call: _like(call, *(each.shape for each in call.scores))),
}
