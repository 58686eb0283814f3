"""Cost function networks as words: `.wcsp` files of toulbar2, and `.uai` files, MARKOV or BAYES.

A cost of a `.wcsp` file at or above its upper bound is forbidden, and so is an answer that costs as much. Of the global
cost functions, `salldiff` and `sgcc` with small scopes are read, as tables. As in toulbar2, a tuple that is given twice
costs what is said last, and variables may have more values than the largest number that the first line names.

A cost of a `.uai` file is minus the logarithm of a probability; a probability of 0 is forbidden. So an answer's
objective is minus the logarithm of its (unnormalised) probability.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np

from hasten.errors import ProgramError
from hasten.model.kinds import MAX_LABELS, MAX_ROLES, MAX_TABLE
from hasten.programs.reading.text import Text, Words, shown
from hasten.programs.statement import MAX_COLUMNS, Builder, Statement
from hasten.support.arrays import FloatArray

MAX_FUNCTIONS = 10_000_000
LARGEST = 2**62


def read_wcsp(text: Text) -> Statement:
    """Reads a weighted constraint satisfaction problem."""
    words = Words(text)
    build = Builder(name=words.word("a name"))
    n = words.whole("the number of variables", 0, MAX_COLUMNS)
    words.whole("the largest number of values", 0, MAX_LABELS)
    n_functions = words.whole("the number of cost functions", 0, MAX_FUNCTIONS)
    top = words.whole("the upper bound", 0, LARGEST)
    sizes = _columns(words, build, n)
    shared: list[FloatArray] = []
    for _ in range(n_functions):
        arity = words.whole("the number of variables of a cost function", -MAX_ROLES, MAX_ROLES)
        scope, shape = _scope(words, abs(arity), sizes)
        default = words.whole("the default cost", -1, LARGEST)
        if default == -1:
            costs = _global(words, shape)
        else:
            n_tuples = words.whole("the number of tuples", -len(shared), math.prod(shape))
            costs = shared[-n_tuples - 1] if n_tuples < 0 else _listed(words, shape, default, n_tuples)
            if costs.shape != shape:
                raise ProgramError(f"The shared cost function {-n_tuples} has the shape {costs.shape}, not {shape}.")
        costs = np.where(costs >= top, np.inf, costs)
        if arity < 0:
            shared.append(costs)
        build.table(scope, costs)
    words.end()
    build.cutoff = float(top)
    return build.statement()


def read_uai(text: Text) -> Statement:
    """Reads a Markov or Bayesian network."""
    words, build = Words(text), Builder(name=text.name)
    kind = words.word("MARKOV or BAYES")
    if kind.upper() not in ("MARKOV", "BAYES"):
        raise ProgramError(f"A .uai file begins with MARKOV or BAYES, not {shown(kind)}.")
    sizes = _columns(words, build, words.whole("the number of variables", 0, MAX_COLUMNS))
    scopes = [
        _scope(words, words.whole("the number of variables of a factor", 0, MAX_ROLES), sizes)
        for _ in range(words.whole("the number of factors", 0, MAX_FUNCTIONS))
    ]
    for scope, shape in scopes:
        size = math.prod(shape)
        words.whole("the number of entries of a factor", size, size)
        values = np.array([words.number("a probability") for _ in range(size)])
        if not ((values >= 0) & np.isfinite(values)).all():
            raise ProgramError("A probability must be 0 or more, and finite.")
        with np.errstate(divide="ignore"):
            build.table(scope, -np.log(values).reshape(shape) + 0.0)
    words.end()
    return build.statement()


def _columns(words: Words, build: Builder, n: int) -> list[int]:
    """Reads the numbers of values of variables, each a column."""
    sizes = [words.whole(f"the number of values of variable {v}", 1, MAX_LABELS) for v in range(n)]
    for v, size in enumerate(sizes):
        build.column(f"x{v}", 0.0, size - 1.0, True)
    return sizes


def _scope(words: Words, arity: int, sizes: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Reads the variables of a cost function; returns them with the shape of its table."""
    scope = tuple(words.whole("a variable", 0, len(sizes) - 1) for _ in range(arity))
    if len(set(scope)) < len(scope):
        raise ProgramError(f"A cost function names a variable twice: {scope}.")
    shape = tuple(sizes[v] for v in scope)
    check_table_size(shape)
    return scope, shape


def check_table_size(shape: tuple[int, ...]) -> None:
    """Refuses scopes whose tables are too large to write down."""
    if math.prod(shape) > MAX_TABLE:
        raise ProgramError(
            f"A cost function over {len(shape)} variables would have {math.prod(shape):,} entries; "
            f"the limit is {MAX_TABLE:,}."
        )


def _listed(words: Words, shape: tuple[int, ...], default: int, n_tuples: int) -> FloatArray:
    costs = np.full(shape, float(default))
    for _ in range(n_tuples):
        values = tuple(words.whole("a value", 0, size - 1) for size in shape)
        costs[values] = words.whole("a cost", 0, LARGEST)
    return costs


def _global(words: Words, shape: tuple[int, ...]) -> FloatArray:
    """Reads one of the global cost functions that are known, as a table."""
    name = words.word("the name of a global cost function")
    if name not in ("salldiff", "sgcc"):
        raise ProgramError(f"The global cost function {shown(name)} is not read; salldiff and sgcc are.")
    measure = words.word("how violations are counted")
    if measure not in ("var", "dec"):
        raise ProgramError(f"Violations of {name} are counted by var or dec, not {shown(measure)}.")
    price = words.whole("the cost of a violation", 0, LARGEST)
    limits: dict[int, tuple[int, int]] = {}
    if name == "sgcc":
        for _ in range(words.whole("the number of values", 0, MAX_LABELS)):
            value = words.whole("a value", 0, MAX_LABELS)
            low = words.whole("the least number of times", 0, MAX_ROLES)
            limits[value] = low, words.whole("the largest number of times", low, LARGEST)
    costs = np.zeros(shape)
    for values in product(*map(range, shape)):
        costs[values] = price * _violations(Counter(values), limits, name, measure)
    return costs


def _violations(counts: Counter[int], limits: dict[int, tuple[int, int]], name: str, measure: str) -> int:
    if name == "salldiff":
        pairs = sum(n * (n - 1) // 2 for n in counts.values())
        return sum(n - 1 for n in counts.values()) if measure == "var" else pairs
    short = sum(max(0, low - counts[value]) for value, (low, _) in limits.items())
    over = sum(max(0, counts[value] - high) for value, (_, high) in limits.items())
    return max(short, over) if measure == "var" else short + over
