"""Calls: what is asked of a layer, as tensors and numbers; the operations that answer, each a line of `OPERATIONS`.

A call names the layer that it belongs to, so that compiled and exported programs can hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from hasten.errors import ProblemError
from hasten.padded.search import PLAIN, Inference, Question, Request, put_back
from hasten.padded.shapes import Placed
from hasten.sums import marginals, min_marginals
from hasten.sums import sample as draw_labels
from hasten.support.arrays import ints, ranges, sizes_of

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
    kept: Sequence[Tensor] = ()  # of the call whose gradient this is: its outputs
    last: Sequence[Tensor] = ()  # the seed, and the weight of each example

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

    def opened(self) -> tuple[Inference, Question]:
        """Returns what answers, and the question as arrays."""
        engine, groups = engine_of(self.layer), (self.scores, self.tables, self.where, self.gold)
        arrays = iter(as_arrays([each for group in groups for each in group]))
        own, tables, where, gold = ([next(arrays) for _ in group] for group in groups)
        placed, noise = self.placed(engine, where), None
        if self.asked.samples and self.what != "draw":
            random = torch.Generator().manual_seed(int(self.last[0]))
            n = int(self.asked.samples), int(placed.cost_at[-1])
            noise = torch.randn(n, generator=random, dtype=torch.float32).numpy()
        named = dict(zip(placed.shapes.kinds, tables, strict=True))
        return engine, Question(placed, own, named, gold, self.asked, noise)

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


def as_arrays(tensors: Sequence[Tensor]) -> list[Any]:
    """Returns tensors as arrays: without a copy from the CPU, if NumPy knows their type, else in one transfer."""
    given = [each.detach() if each.requires_grad else each for each in tensors]
    if not all(each.is_cpu for each in given):
        device = next(each.device for each in given if not each.is_cpu)
        order = sorted(range(len(given)), key=lambda n: -given[n].element_size())  # so that each is aligned
        parts = [given[n].to(device).contiguous().reshape(-1).view(torch.uint8) for n in order]
        sent = torch.cat(parts).cpu().split([len(part) for part in parts])
        for n, part in zip(order, sent, strict=True):
            given[n] = part.view(given[n].dtype).reshape(given[n].shape)
    return [
        (each.float() if each.is_floating_point() and each.itemsize < 4 else each).contiguous().numpy()
        for each in given
    ]


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


def decode(call: Call) -> list[Tensor]:
    """Returns the score of the best labelling of each example, its gap, whether it is proved, and its labels."""
    engine, given = call.opened()
    found = engine.decode(given)
    return as_tensors([*found[:3], *found.labels], call.scores[0].device)


def valued(call: Call, weight: Tensor | None = None) -> list[Tensor]:
    """Returns a loss or a log-partition of each example; and its gradients, weighted by example."""
    engine, given = call.opened()
    ask = engine.sums if call.what.startswith("sums") else engine.loss
    found = ask(given, None if weight is None else weight.detach().double().cpu().numpy())
    value, *slopes = as_tensors([found.value, *found.fields, *found.tables], call.scores[0].device)
    return [value, *(each.to(like.dtype) for each, like in zip(slopes, (*call.scores, *call.tables), strict=False))]


def slopes(call: Call) -> list[Tensor]:
    """Returns the gradient of `valued`, weighted by example, from the gradients for weights of 1, which were kept.

    Those of tables are summed over the examples: they are found again if weights differ.
    """
    weight, n = call.last[-1], len(call.kept) - len(call.tables)
    first = weight[:1].sum()
    if not call.kept or (call.tables and not bool((weight == first).all())):
        again = call._replace(kept=[], last=call.last[:-1], asked=call.asked._replace(sharing=True))
        return valued(again, weight)[1:]
    scales = [weight.reshape(-1, *[1] * (each.ndim - 1)) for each in call.kept[:n]] + [first] * len(call.tables)
    return [each * scale.to(each.dtype) for scale, each in zip(scales, call.kept, strict=True)]


def sample(call: Call) -> list[Tensor]:
    """Returns the mean indicator of perturbed answers, for each field; its gradient is that of implicit MLE."""
    engine, given = call.opened()
    tensors = as_tensors(engine.indicators(given), call.scores[0].device)
    return [each.to(like.dtype) for each, like in zip(tensors, call.scores, strict=True)]


def moved(call: Call) -> list[Tensor]:
    """Returns the gradient of `sample`: how far answers move as scores take a step against a loss's (Niepert 2021)."""
    step, sign, n = call.asked.margin, -engine_of(call.layer).sign, len(call.scores)
    scores = [each - sign * step * slope for each, slope in zip(call.scores, call.kept[n:], strict=True)]
    found = zip(call.kept, sample(call._replace(scores=scores)), strict=False)
    return [sign * (mine - other) / step for mine, other in found]


def entropy(call: Call) -> list[Tensor]:
    """Returns the entropy of each example; nan where no labelling is valid."""
    engine, given = call.opened()
    return as_tensors([marginals(engine.problems(given)).entropy], call.scores[0].device)


def draw(call: Call) -> list[Tensor]:
    """Returns labellings drawn for each example, (examples, samples, *axes), padded."""
    engine, given = call.opened()
    batch, n = engine.problems(given._replace(asked=PLAIN)), int(call.asked.samples)
    found = np.zeros((n, int(batch.variable_at[-1])), dtype=np.int64)
    mine = ranges(batch.variable_at[:-1], sizes_of(batch.labels_at))
    found[:, mine] = draw_labels(batch, n, seed=int(call.last[0]))
    labels = [np.ascontiguousarray(each.swapaxes(0, 1)) for each in engine.write(given.placed, found)]
    return as_tensors(labels, call.scores[0].device)


def margins(call: Call) -> list[Tensor]:
    """Returns how much less the best labelling with each label scores than the best of all, padded with nan."""
    engine, given = call.opened()
    batch = engine.problems(given)
    excess, n_labels = np.zeros(batch.cost.size), ints(each.n_labels for each in batch.structures)[batch.structure]
    excess[ranges(batch.cost_at[:-1], n_labels)] = min_marginals(batch).excess
    types = [np.float64] * len(call.scores)
    return as_tensors(put_back(given.placed, excess, types, np.nan), call.scores[0].device)


def _like(call: Call, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [call.scores[0].new_empty(shape, dtype=dtype) for shape in shapes]


def _like_labels(call: Call, *rows: int) -> list[Tensor]:
    n, flat = call.scores[0].shape[0], (engine_of(call.layer).layout.structure.n_variables,) if call.asked.flat else ()
    axes = [(n, *rows, *(flat if call.asked.flat else each.shape[1:-1])) for each in call.scores]
    return _like(call, *axes, dtype=torch.int64)


def _like_given(given: Sequence[Tensor]) -> list[Tensor]:
    return [torch.empty_like(each, memory_format=torch.contiguous_format) for each in given]


def _like_values(call: Call) -> list[Tensor]:
    return _like(call, call.scores[0].shape[:1])


def _like_slopes(call: Call) -> list[Tensor]:
    return _like_given(call.kept or [*call.scores, *call.tables])


def _like_valued(call: Call) -> list[Tensor]:
    return _like_values(call) + (_like_given([*call.scores, *call.tables]) if call.asked.sharing else [])


def _refuse(*_: Any) -> Call:
    raise ProblemError("These gradients are not differentiable again.")


class Operation(NamedTuple):
    """One thing that is asked."""

    run: Callable[[Call], list[Tensor]]
    fake: Callable[[Call], list[Tensor]]  # what a compiler is told of the outputs
    gradient: Callable[[Call, Sequence[Tensor], Sequence[Tensor]], Call] | None = None
    """The call that returns the gradient, of the first outputs to scores and tables, given all and their slopes."""
    n_smooth: int = 10**6  # how many outputs are differentiable, the first ones
    reads: bool = True  # whether the gradient reads scores where no tables are given


def _sloped(call: Call, found: Sequence[Tensor], slopes: Sequence[Tensor]) -> Call:
    return call._replace(what=f"{call.what} slopes", kept=found[1:], last=[*call.last, slopes[0]])


OPERATIONS = {
    "decode": Operation(
        decode,
        lambda call: [*_like_values(call), *_like_values(call), _like_values(call)[0].bool(), *_like_labels(call)],
    ),
    "loss": Operation(valued, _like_valued, _sloped, n_smooth=1, reads=False),
    "loss slopes": Operation(slopes, _like_slopes, _refuse),
    "sums": Operation(valued, _like_valued, _sloped, n_smooth=1),
    "sums slopes": Operation(slopes, _like_slopes, _refuse),
    "sample": Operation(
        sample,
        lambda call: _like_given(call.scores),
        lambda call, found, slopes: call._replace(what="moved", kept=[*found, *slopes]),
    ),
    "moved": Operation(moved, lambda call: _like_given(call.scores), _refuse),
    "entropy": Operation(entropy, _like_values),
    "draw": Operation(draw, lambda call: _like_labels(call, int(call.asked.samples))),
    "margins": Operation(margins, lambda call: _like(call, *(each.shape for each in call.scores))),
}
