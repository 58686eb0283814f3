"""Sums over all labellings in plain PyTorch: the plan of `hasten.sums`, its steps of one form together, on any device.

Steps that wait for nothing but earlier rounds, and have one form, are one operation over (problems, steps, labels).
A step of one neighbour is a product of vectors and a matrix of exponentials, one of two neighbours whose tables are
pairs a product of matrices; others are sums of all their terms. All is in float64. Products may lose terms that are too
small: then all is computed again, term by term.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from hasten.model.compiled import Compiled
from hasten.proof.elimination.joins import DERIVED, STATIC, Join, Pattern
from hasten.proof.elimination.plan import Step
from hasten.sums.plan import MAX_JOIN, SumPlan, plan_sums
from hasten.support.arrays import FloatArray

TINY = 1e-280  # sums of products below this may have lost terms
LEAST = -1e300  # in place of -inf, where all is forbidden
COST = -1  # the role of the labels of a variable
MAX_GRAPHS = 8  # captured for one structure
FEW = 2**24  # numbers of derived tables, in all problems: with fewer, rounds are faster than products with vectors


class Operand(NamedTuple):
    """A tensor that a group of steps reads: the axes of the form that it is over, and where it is."""

    role: int  # COST, STATIC or DERIVED
    axes: tuple[int, ...]
    shape: tuple[int, ...]  # of its axes in their own order
    at: tuple[int, ...]  # of each step, or of all: where a table starts, the variable, or the step that derived a table


class Group(NamedTuple):
    """Steps of one form that are taken together."""

    join: Join
    operands: list[Operand]
    steps: list[int]


class State(NamedTuple):
    """The values computed so far."""

    scores: tuple[Tensor, ...]  # of each variable
    table: Tensor  # (problems or 1, entries)
    derived: dict[int, Tensor]  # by step
    tables: dict[Operand, Tensor]  # those read
    weights: dict[Operand, tuple[Tensor, Tensor]]  # and their exponentials
    totals: list[Tensor]  # sums of products


class Executor:
    """Computes log-partitions of problems of one structure.

    rounds
        Whether variables go in rounds (`SumPlan`): for small batches, where what counts is how many operations wait for
        each other.
    """

    def __init__(self, compiled: Compiled, rounds: bool = False, max_join: int = MAX_JOIN) -> None:
        plan = plan_sums(compiled, max_join, False, rounds)
        self.feasible, self.sizes, self.n_entries = plan.feasible, list(plan.sizes), plan.n_entries
        self.roots = [n for n, step in enumerate(plan.steps) if not step.around]
        self.silent = list[FloatArray]()  # tables that only forbid, which lie behind the others
        self.groups = _groups(plan, len(compiled.graph.table), self.silent)
        self.graphs: dict[Any, Any] = {}  # captured, by shape
        self.kept: dict[Any, Tensor] = {}  # by what it is, and device

    def __call__(self, score: Tensor, table: Tensor, exact: bool = False) -> Tensor:
        """Returns the log-partition of each problem, given scores (problems, labels) and those of tables (entries,).

        Both are maximised: minus the costs. Tables may differ between problems: (problems, entries). `exact` adds up
        term by term at once, which is differentiable any number of times; products are differentiable once.
        """
        score, table = score.double(), table.double()
        if exact or torch.compiler.is_compiling():
            return self.run(score, table, True)[0]
        found, lost = self.run(score, table, False)
        return self.run(score, table, True)[0] if bool(lost) else found

    def run(self, score: Tensor, table: Tensor, exact: bool) -> tuple[Tensor, Tensor]:
        """Returns log-partitions, and whether products lost something."""
        score = pad(score, (0, sum(self.sizes) - score.shape[1]))  # those of counters are free
        table = table if table.ndim == 2 else table[None]
        silent = self._on(table.device, None, lambda: np.concatenate([np.zeros(0), *self.silent]))
        table = torch.cat([table, silent.expand(len(table), -1)], 1)
        state = State(score.split(self.sizes, 1), table, {}, {}, {}, [])
        for group in self.groups:
            operands = [(each, self._read(each, state)) for each in group.operands]
            found = (_add_up if exact else _contract)(group, operands, state)
            state.derived.update(zip(group.steps, found.unbind(1), strict=True))
        total = score.new_full((len(score),), 0.0 if self.feasible else -math.inf)
        for root in self.roots:
            total = total + state.derived[root]
        small = [each.detach().flatten() for each in state.totals]
        lost = torch.cat([score.new_ones(1), *small]).amin() < TINY
        return torch.where(total > -math.inf, total, -math.inf), lost

    def _read(self, operand: Operand, state: State) -> Tensor:
        """Returns what an operand reads, (problems or 1, steps or 1, its axes in the order of the form)."""
        if operand in state.tables:
            return state.tables[operand]
        if operand.role == STATIC:
            n = np.arange(math.prod(operand.shape))
            places = self._on(state.table.device, operand, lambda: np.add.outer(np.array(operand.at), n))
            found = state.table[:, places].reshape(len(state.table), -1, *operand.shape)
        else:
            source = state.scores if operand.role == COST else state.derived
            found = torch.stack([source[at] for at in operand.at], 1)
        found = found.permute(0, 1, *(2 + n for n in np.argsort(operand.axes).tolist()))
        if operand.role == STATIC:
            state.tables[operand] = found
        return found

    def _on(self, device: torch.device, name: Any, made: Callable[[], Any]) -> Tensor:
        """Returns an array on a device; made once."""
        if (name, device) not in self.kept:
            self.kept[name, device] = torch.from_numpy(made()).to(device)
        return self.kept[name, device]


def executor_for(compiled: Compiled, n_problems: int) -> Executor:
    """Returns the executor for a shape, made once: in rounds for few problems, else one variable after the other."""
    in_rounds = compiled.made(Executor, True)
    return in_rounds if n_problems * in_rounds.n_entries <= FEW else compiled.made(Executor, False)


def run_graphed(executor: Executor, score: Tensor, table: Tensor) -> Tensor:
    """Runs an executor; on CUDA, from the second time on with tensors of some shapes, as a captured graph.

    A graph is one launch, where there would be hundreds. One that cannot be captured runs as before.
    """
    key = score.shape, table.shape, score.device, score.requires_grad, table.requires_grad, torch.is_grad_enabled()
    if not score.is_cuda or torch.cuda.is_current_stream_capturing():
        return executor(score, table)
    graphs = executor.graphs
    if key not in graphs:
        graphs[key] = None  # a shape that comes once is not worth it
        return executor(score, table)
    if graphs[key] is None and sum(each is not None for each in graphs.values()) < MAX_GRAPHS:
        samples = tuple(each.detach().clone().requires_grad_(each.requires_grad) for each in (score, table))
        graphs[key] = torch.cuda.make_graphed_callables(lambda s, t: executor.run(s, t, False), samples)
    run = graphs[key]
    if run is None:
        return executor(score, table)
    found, lost = run(score, table)
    return executor.run(score, table, True)[0] if bool(lost) else found.clone()  # the graph's own is used again


def _groups(plan: SumPlan, n_entries: int, silent: list[FloatArray]) -> list[Group]:
    """Returns the steps of a plan, those of one form that can be taken together in one group.

    Tables that only forbid are added to `silent`, and read behind the `n_entries` of all tables.
    """
    made, level = _derived_by(plan.steps), list[int]()
    for n, step in enumerate(plan.steps):
        level.append(1 + max((level[made[n, i]] for i in range(len(step.tables)) if (n, i) in made), default=0))
    together: dict[tuple[int, Join], list[int]] = {}
    for n in sorted(range(len(level)), key=level.__getitem__):
        together.setdefault((level[n], plan.steps[n].join), []).append(n)
    found, at = [], dict[Pattern, int]()
    for (_, join), steps in together.items():
        operands, n_axes = [], len(join.shape)
        for back in range(join.n_inside):
            axis = n_axes - 1 - back
            variables = tuple(plan.steps[n].group[-1 - back] for n in steps)
            operands.append(Operand(COST, (axis,), (join.shape[axis],), variables))
        for i, (pattern, axes, role) in enumerate(join.parts):
            shape = pattern.allowed.shape
            if role == DERIVED:
                operands.append(Operand(DERIVED, axes, shape, tuple(made[n, i] for n in steps)))
            elif role == STATIC:
                starts = tuple(plan.steps[n].at[join.order.index(i)] for n in steps)
                operands.append(Operand(STATIC, axes, shape, starts[:1] if len({*starts}) == 1 else starts))
            elif not join.allows_all:
                if pattern not in at:
                    at[pattern] = n_entries + sum(map(len, silent))
                    silent.append(np.where(pattern.allowed.ravel(), 0.0, -np.inf))
                operands.append(Operand(STATIC, axes, shape, (at[pattern],)))
        found.append(Group(join, operands, steps))
    return found


def _derived_by(steps: Sequence[Step]) -> dict[tuple[int, int], int]:
    """Returns which step derived a table: by the step that reads it, and its place among the tables of that."""
    by_entry, at = dict[int, int](), 0
    found = dict[tuple[int, int], int]()
    for n, step in enumerate(steps):
        reads = dict(zip(step.join.order, step.at, strict=True))
        found |= {(n, i): by_entry[reads[i]] for i, (_, _, role) in enumerate(step.join.parts) if role == DERIVED}
        by_entry[at] = n
        at += step.join.n_out
    return found


def _contract(group: Group, operands: list[tuple[Operand, Tensor]], state: State) -> Tensor:
    """Returns the logarithm of the sum over what goes, (problems, steps, neighbours), by a product if it is one."""
    inside = len(group.join.shape) - 1
    own = [tensor for operand, tensor in operands if operand.axes == (inside,)]
    other = {
        tuple(sorted(operand.axes)): (operand, tensor) for operand, tensor in operands if operand.axes != (inside,)
    }
    pairs = sorted(other)
    product = pairs == [(0, 1)] or pairs == [(0, 2), (1, 2)]
    if not product or group.join.n_inside > 1 or len(other) + len(own) < len(operands):
        return _add_up(group, operands, state)
    vector = own[0] if len(own) == 1 else sum(own[1:], own[0])
    right = _weights(*other[pairs[-1]], state)
    left = vector[..., None, :] if len(pairs) == 1 else other[pairs[0]][1] + vector[..., None, :]
    found, total = Product.apply(left, *right)
    state.totals.append(total)
    return found[..., 0, :] if len(pairs) == 1 else found


def _weights(operand: Operand, tensor: Tensor, state: State) -> tuple[Tensor, Tensor]:
    """Returns the exponentials of tables (neighbour, label), and what they are relative to; of shared ones once."""
    if operand not in state.weights:
        high = tensor.detach().amax((-1,), keepdim=True).clamp(min=LEAST)
        found = (tensor - high).exp(), high.transpose(-1, -2)
        if operand.role != STATIC:
            return found
        state.weights[operand] = found
    return state.weights[operand]


class Product(torch.autograd.Function):
    """The logarithm of a product of exp(left), (..., m, labels), and the transpose of weights (..., n, labels).

    Returns the product itself as well, relative to the largest of each row.
    """

    @staticmethod
    def forward(ctx: Any, left: Tensor, weights: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Returns both."""
        low = left.amax(-1, keepdim=True).clamp(min=LEAST)
        power = (left - low).exp_()
        total = _matmul(power, weights.transpose(-1, -2))
        ctx.save_for_backward(power, weights, total)
        ctx.mark_non_differentiable(total)
        return total.log().add_(low).add_(high), total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Tensor, Tensor, None]:
        """Returns the gradients of left and of the weights; nothing comes of what is forbidden."""
        power, weights, total = ctx.saved_tensors
        rate = torch.where(total > 0.0, gradient / total, 0.0)
        of_left = _matmul(rate, weights).mul_(power)
        if weights.shape[0] == 1 and weights.shape[1] == 1:  # shared by all
            flat = rate.reshape(-1, rate.shape[-1]), power.expand(*rate.shape[:3], -1).reshape(-1, power.shape[-1])
            return of_left, (flat[0].T @ flat[1])[None, None], None
        return of_left, torch.matmul(rate.transpose(-1, -2), power).sum_to_size(weights.shape), None


def _matmul(left: Tensor, right: Tensor) -> Tensor:
    """Returns a product of (problems, steps, m, k) and a matrix that all share, or one for each."""
    if right.shape[:2] == (1, 1):
        return (left.reshape(-1, left.shape[-1]) @ right[0, 0]).reshape(*left.shape[:-1], right.shape[-1])
    return torch.matmul(left, right)


def _add_up(group: Group, operands: list[tuple[Operand, Tensor]], _: State) -> Tensor:
    """Returns the logarithm of the sum over what goes, term by term."""
    shape = group.join.shape
    total: Any = 0.0
    for operand, tensor in operands:
        lengths = [size if axis in operand.axes else 1 for axis, size in enumerate(shape)]
        total = total + tensor.reshape(*tensor.shape[:2], *lengths)
    axes = tuple(range(-group.join.n_inside, 0))
    high = total.detach().amax(axes, keepdim=True).clamp(min=LEAST)
    found = (total - high).exp().sum(axes)
    high = high.flatten(-group.join.n_inside)[..., 0]
    return torch.where(found > 0.0, high + found.clamp(min=TINY).log(), -math.inf)
