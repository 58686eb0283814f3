"""Scores of an expensive module, computed only where they matter (paper §4.1; `docs/skipping.md` has the method).

The scores of some fields come from a module that is expensive for each cell, such as a cross-encoder for each pair of
spans. A gate learns from its exact answers to unlabeled inputs which label each cell will have, given cheap features
of the input and the scores of the other fields, and how much to doubt that. Cells that are doubted little keep their
guess; the scores of all others, of all examples of a batch, are asked for in one call. Guesses that contradict each
other are dropped, and asked for in a second call.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from hasten.errors import NotFittedError, ProblemError
from hasten.learning import gate as guessing
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch
from hasten.speedup.skipping import Calibration, Calibrator, GatedSearch
from hasten.support.arrays import FloatArray, IntArray, ranges
from hasten.support.checks import brief, check_whole
from hasten.torch.calls import as_tensors
from hasten.torch.layer import Layer, Sizes

Module: TypeAlias = Callable[[Any, Tensor], Tensor]
"""Gives the scores (requests, labels) of cells `index[r] = (example, *cell)` of some inputs."""
Cheap: TypeAlias = Callable[[Any, Tensor], Any]
"""Gives cheap features (requests, features) of cells: whole numbers as ids, -1 for none; floats as values; or both."""
Example: TypeAlias = tuple[Any, Mapping[str, Tensor], Sizes]
"""A batch of inputs, the scores of the fields that are not expensive, and lengths."""

TRIALS = 5  # of either way of answering, for each size of batch, before the faster one is taken


class Gated(NamedTuple):
    """The answers to a batch."""

    labels: dict[str, Tensor]  # by field, padded with -100
    valid: Tensor  # (examples,)
    computed: Tensor  # (examples,) of how many cells the module was asked for


class Gate(nn.Module):
    """Answers batches, and asks expensive modules for few of their scores.

    layer
        Whose inference it is.
    expensive
        For each expensive field, a module `(inputs, index) -> scores`: `index` has a row for each request, the example
        and the cell, on the module's device. Scores of the layer's sign, a row for each request.
    cheap
        For each expensive field, a function `(inputs, index) -> features`, or None to see nothing of the input. In
        place of the whole mapping, None skips by the paper's theta alone: a beam search asks for scores step by step.
    width
        Of that beam.
    settings
        Those of `hasten.Gate`: n_rows, seed.
    """

    def __init__(
        self,
        layer: Layer,
        expensive: Mapping[str, Module],
        cheap: Mapping[str, Cheap | None] | None,
        *,
        width: int = 2,
        **settings: Any,
    ) -> None:
        super().__init__()
        check_whole("width", width, least=1)
        unknown = [name for name in expensive if name not in layer.names]
        if unknown or not expensive:
            raise ProblemError(
                f"Say which fields are expensive, each with its module; got {', '.join(expensive) or 'none'}. "
                f"The layer has the fields {', '.join(layer.names)}."
            )
        if cheap is not None and {*cheap} != {*expensive}:
            raise ProblemError(
                f"Give cheap features, or None, for each expensive field ({', '.join(expensive)}) and for no other; "
                f"got {', '.join(cheap) or 'none'}."
            )
        self.layer, self.expensive, self.cheap = layer, dict(expensive), cheap
        self.modules_ = nn.ModuleDict({name: each for name, each in expensive.items() if isinstance(each, nn.Module)})
        self.search = BeamSearch(width)
        self.gate = guessing.Gate(dict.fromkeys(expensive), **settings)
        self.max_doubt = 0.0
        self.chosen: Calibration | None = None
        self._seconds: dict[tuple[int, bool], list[float]] = defaultdict(list)

    def fit(self, batches: Iterable[Example]) -> Gate:
        """Learns from batches `(inputs, scores, lengths)` without labels; computes all of their expensive scores."""
        if self.cheap is not None:
            batch, cheap = self._gathered(batches)
            fitted = self.gate.seeing(cheap).fit(batch, self.layer.inference.answer(batch))
            self.gate = fitted.seeing(dict.fromkeys(self.expensive))  # without these inputs
        self.chosen, self.max_doubt = None, 0.0
        return self

    def calibrate(self, batches: Iterable[Example], risk: float = 0.01) -> Calibration:
        """Chooses how much doubt to allow, on inputs that `fit` has not seen: at most a share `risk` of answers change.

        Exact binomial limits (`hasten.speedup.skipping`); the answers are compared with those of all scores.
        """
        batch, cheap = self._gathered(batches)
        if self.cheap is None:
            self.chosen = Calibrator(risk).theta(self.search, batch, black_box=self.layer.inference.answer)
            self.search = replace(self.search, theta=self.chosen.theta)
        else:
            search = GatedSearch(self.gate.seeing(cheap))
            self.chosen = Calibrator(risk).max_doubt(search, batch, self.layer.inference.answer(batch))
            self.max_doubt = self.chosen.max_doubt
        self._seconds.clear()
        return self.chosen

    def forward(self, inputs: Any, scores: Mapping[str, Tensor], lengths: Sizes | None = None) -> Gated:
        """Answers a batch, given the scores of the fields that are not expensive.

        The first few batches of each size are timed with all scores and without; then the faster way is taken, so
        that a gate is not slower than none, where a call costs more than what is asked for in it.
        """
        if self.chosen is None:
            raise NotFittedError("This gate skips nothing yet. Call fit, then calibrate, with unlabeled inputs.")
        asked = Asked(self, inputs, scores, lengths)
        skips = self._skips(len(asked.batch))
        begin = time.perf_counter()
        found = self._answered(asked) if skips else self.layer.inference.answer(asked.batch.resolved())
        times = self._seconds[len(asked.batch).bit_length(), skips]
        if len(times) < TRIALS:
            times.append(time.perf_counter() - begin)
        return asked.padded(found)

    def _skips(self, n: int) -> bool:
        """Tells whether to skip, for batches of about this size."""
        size = n.bit_length()
        whole, gated = self._seconds[size, False], self._seconds[size, True]
        if len(gated) < TRIALS or len(whole) < TRIALS:
            return len(gated) <= len(whole)
        return median(gated) <= median(whole)

    def _answered(self, asked: Asked) -> Solutions:
        if self.cheap is None:
            return self.search(asked.batch)
        return GatedSearch(self.gate.seeing(asked.cheap), self.max_doubt)(asked.batch)

    def _gathered(self, batches: Iterable[Example]) -> tuple[Batch, dict[str, guessing.Cheap | None]]:
        """Returns many batches as one, with all scores, and the cheap features of its variables."""
        problems, found = [], defaultdict[str, list[Any]](list)
        for inputs, scores, lengths in batches:
            asked = Asked(self, inputs, scores, lengths)
            whole = asked.batch.resolved()
            problems += [whole[p] for p in range(len(whole))]
            for name, cheap in asked.cheap.items():
                if cheap is not None:
                    at = np.flatnonzero(asked.field == self.layer.names.index(name))
                    found[name].append(cheap(*asked.owners(at)))
        if not problems:
            raise ProblemError("Got no inputs. Give batches of inputs, their scores and lengths.")
        batch = replace(Batch.of(problems), ids=None)
        return batch, {name: _looked_up(batch, name, found.get(name)) for name in self.expensive}


class Asked:
    """One batch of inputs as problems whose expensive costs are asked for on demand."""

    def __init__(self, gate: Gate, inputs: Any, scores: Mapping[str, Tensor], lengths: Sizes | None) -> None:
        layer, self.gate, self.inputs = gate.layer, gate, inputs
        wrong = {*scores} ^ ({*layer.names} - {*gate.expensive})
        if wrong:
            raise ProblemError(
                f"Give the scores of every field that is not expensive, and of no other; {', '.join(sorted(wrong))} is "
                "missing or too much."
            )
        whole = {name: scores[name] if name in scores else _room(layer, name, scores, lengths) for name in layer.names}
        call = layer.call("decode", whole, lengths=lengths)
        engine, given = call.opened()
        self.device = next((each.device for each in scores.values()), torch.device("cpu"))
        self.placed, self.known = given.placed, engine.problems(given)  # with the costs so far
        self.batch = replace(self.known, scorer=self.score)
        self.field, self.index = self._cells()
        self.n_computed = np.zeros(len(self.batch), dtype=np.int64)

    def _cells(self) -> tuple[IntArray, list[IntArray]]:
        """Returns the number of the field of each variable, flat, and the example and cell of those of each field."""
        n = int(self.placed.variable_at[-1])
        field, index = np.full(n, -1), []
        for f, padded in enumerate(self.gate.layer.inference.write(self.placed, np.arange(n)[None])):
            cells = np.argwhere(padded[0] >= 0)
            variable = padded[0][tuple(cells.T)]
            rows = np.zeros((n, cells.shape[1]), dtype=np.int64)
            field[variable], rows[variable] = f, cells
            index.append(rows)
        return field, index

    def owners(self, at: IntArray) -> tuple[IntArray, IntArray]:
        """Returns the problems and the variables at some places of a flat labelling."""
        problems = np.searchsorted(self.batch.variable_at, at, side="right") - 1
        return problems, at - self.batch.variable_at[problems]

    def score(self, problems: IntArray, variables: IntArray) -> FloatArray:
        """Returns the costs of variables: those that were given, and those of one call of each module."""
        at, cost = self.known.variable_at[problems] + variables, self.known.cost
        starts, sizes = self.known.label_ranges(problems, variables)
        starts = starts + self.known.cost_at[problems]
        for name, module in self.gate.expensive.items():
            f = self.gate.layer.names.index(name)
            mine = self.field[at] == f
            if mine.any():
                scores = self._call(name, module, self.index[f][at[mine]])
                cost[ranges(starts[mine], sizes[mine])] = self.gate.layer.inference.sign * scores.ravel()
                np.add.at(self.n_computed, problems[mine], 1)
        return cost[ranges(starts, sizes)]

    def _call(self, name: str, module: Module, index: IntArray) -> FloatArray:
        first = next(module.parameters(), None) if isinstance(module, nn.Module) else None
        with torch.inference_mode():
            scores = module(self.inputs, torch.from_numpy(index).to("cpu" if first is None else first.device))
        kind, sign = self.gate.layer.inference.layout.fields[name].kind, self.gate.layer.inference.sign
        if not isinstance(scores, Tensor) or scores.shape != (len(index), len(kind)):
            got = f"shape {tuple(scores.shape)}" if isinstance(scores, Tensor) else brief(scores)
            raise ProblemError(
                f"The module of {name} returned {got} for {len(index)} requests. Return a tensor "
                f"({len(index)}, {len(kind)}): a score for each label."
            )
        found: FloatArray = scores.detach().double().cpu().numpy()
        for r, label in np.argwhere(~(sign * found > -np.inf))[:1].tolist():
            b, *cell = index[r].tolist()
            raise ProblemError(
                f"Example {b}, {name}{cell}: the module returned the score {found[r, label]} for {kind.labels[label]}. "
                f"Scores are finite, or {-sign * -np.inf} to forbid a label."
            )
        return found

    @property
    def cheap(self) -> dict[str, guessing.Cheap | None]:
        """The cheap features of this batch's variables, as a gate asks for them."""
        every = self.gate.cheap or dict.fromkeys(self.gate.expensive)
        return {name: None if each is None else self._seen(name, each) for name, each in every.items()}

    def _seen(self, name: str, given: Cheap) -> guessing.Cheap:
        index = self.index[self.gate.layer.names.index(name)]

        def cheap(problems: IntArray, variables: IntArray) -> Any:
            at = self.batch.variable_at[problems] + variables
            found = _features(given(self.inputs, torch.from_numpy(index[at])))
            if len(found[0] if isinstance(found, tuple) else found) != len(at):
                raise ProblemError(f"The cheap features of {name} need a row for each of {len(at)} requests.")
            return found

        return cheap

    def padded(self, found: Solutions) -> Gated:
        """Returns answers as the layer does."""
        labels = self.gate.layer.inference.write(self.placed, found.values[None])
        tensors = as_tensors([each[0] for each in labels], self.device)
        named = dict(zip(self.gate.layer.names, tensors, strict=True))
        return Gated(named, torch.from_numpy(found.valid).to(self.device), torch.from_numpy(self.n_computed))


def _room(layer: Layer, name: str, given: Mapping[str, Tensor], lengths: Sizes | None) -> Tensor:
    """Returns zeros in the shape of the scores of an expensive field, with room for what the other fields have."""
    layout, dims = layer.inference.layout, dict[str | int, int]()
    known = {size: torch.as_tensor(each) for size, each in layout.by_size(lengths).items()}
    n = len(next(iter([*given.values(), *known.values()]), ()))
    for size, each in known.items():
        dims[size] = each.shape[1] if each.ndim == 2 else int(each.max()) if n else 0
    for other, scores in given.items():
        for axis, dim in zip(layout.fields[other].axes, scores.shape[1:], strict=False):
            dims[axis] = max(dim, dims.get(axis, 0))
    field = layout.fields[name]
    missing = [axis for axis in field.axes if isinstance(axis, str) and axis not in dims]
    if missing:
        raise ProblemError(f"Nothing says how large {missing[0]} is. Give its lengths.")
    return torch.zeros(n, *(axis if isinstance(axis, int) else dims[axis] for axis in field.axes), len(field.kind))


def _features(given: Any) -> Any:
    """Returns cheap features as a gate reads them: ids, or ids and values; floats are values of numbered features."""
    if isinstance(given, tuple):
        return tuple(torch.as_tensor(each).detach().cpu().numpy() for each in given)
    features = torch.as_tensor(given).detach().cpu()
    if not features.is_floating_point():
        return features.numpy()
    return np.tile(np.arange(features.shape[1]), (len(features), 1)), features.double().numpy()


def _looked_up(batch: Batch, name: str, found: list[Any] | None) -> guessing.Cheap | None:
    """Returns a function that looks the features of variables up that were computed already."""
    if found is None:
        return None
    masks = [np.array([kind.name == name for kind in each.all_kinds], dtype=bool) for each in batch.structures]
    is_mine = np.concatenate([masks[s] for s in batch.structure.tolist()])
    row = np.cumsum(is_mine) - 1
    pairs = isinstance(found[0], tuple)
    parts = [np.concatenate(each) for each in (zip(*found, strict=True) if pairs else [found])]

    def cheap(problems: IntArray, variables: IntArray) -> Any:
        rows = row[batch.variable_at[problems] + variables]
        return tuple(each[rows] for each in parts) if pairs else parts[0][rows]

    return cheap
