"""`.uai` files: factors of a probability, MARKOV or BAYES. The answer is the most probable assignment (MAP).

A cost is minus the logarithm of a probability; a probability of 0 is forbidden. So an answer's objective is minus the
logarithm of its (unnormalised) probability.
"""

from __future__ import annotations

import math

import numpy as np

from hasten.errors import ProgramError
from hasten.model.kinds import MAX_LABELS, MAX_ROLES
from hasten.programs.reading.text import Text, Words, shown
from hasten.programs.reading.wcsp import MAX_FUNCTIONS, check_table_size
from hasten.programs.statement import MAX_COLUMNS, Builder, Statement


def read_uai(text: Text) -> Statement:
    """Reads a Markov or Bayesian network."""
    words = Words(text)
    kind = words.word("MARKOV or BAYES")
    if kind.upper() not in ("MARKOV", "BAYES"):
        raise ProgramError(f"A .uai file begins with MARKOV or BAYES, not {shown(kind)}.")
    build = Builder(name=text.name)
    n = words.whole("the number of variables", 0, MAX_COLUMNS)
    sizes = [words.whole(f"the number of values of variable {v}", 1, MAX_LABELS) for v in range(n)]
    for v, size in enumerate(sizes):
        build.column(f"x{v}", 0.0, size - 1.0, True)
    scopes = []
    for _ in range(words.whole("the number of factors", 0, MAX_FUNCTIONS)):
        arity = words.whole("the number of variables of a factor", 0, MAX_ROLES)
        scope = tuple(words.whole("a variable", 0, n - 1) for _ in range(arity))
        if len(set(scope)) < len(scope):
            raise ProgramError(f"A factor names a variable twice: {scope}.")
        check_table_size(tuple(sizes[v] for v in scope))
        scopes.append(scope)
    for scope in scopes:
        shape = tuple(sizes[v] for v in scope)
        size = math.prod(shape)
        words.whole("the number of entries of a factor", size, size)
        values = np.array([words.number("a probability") for _ in range(size)])
        if not ((values >= 0) & np.isfinite(values)).all():
            raise ProgramError("A probability must be 0 or more, and finite.")
        with np.errstate(divide="ignore"):
            build.table(scope, -np.log(values).reshape(shape) + 0.0)
    words.end()
    text.number = 0
    return build.statement()
