"""A campaign of random programs: adopted, answered, and compared with HiGHS and with trying everything.

    python tests/campaign/programs.py [--count 1000] [--seed 0] [--libraries 200]

So many programs over every kind of row are stated as arrays, and so many more are adopted through each library that is
installed. The optimum must be HiGHS', and the values must satisfy every row as it was stated.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path.insert(0, str(TESTS))

import random_programs  # noqa: E402
from front_ends import LIBRARIES, as_arrays, vector  # noqa: E402

import hasten  # noqa: E402
from hasten.programs.native import NativeHighs  # noqa: E402
from hasten.programs.program import Program  # noqa: E402
from hasten.programs.statement import Statement  # noqa: E402


def highs_optimum(statement: Statement) -> float:
    """Returns the optimum that HiGHS finds, as costs; inf if there is no answer."""
    sign = -1.0 if statement.maximize else 1.0
    said = NativeHighs(statement).solve(sign * statement.objective, math.inf)
    return math.inf if said.x is None else sign * statement.value(said.x)


def is_right(statement: Statement, program: Program) -> bool:
    """Whether an adopted program has HiGHS' optimum, and values that satisfy what was stated."""
    answer, sign = program.solve(), -1.0 if program.statement.maximize else 1.0
    if len(statement.products.left) or statement.tables:  # which HiGHS does not take
        truth = (-1.0 if statement.maximize else 1.0) * random_programs.best(statement)
    else:
        truth = highs_optimum(statement)
    cost = sign * answer.objective
    if not answer.optimal or not (cost == truth or abs(cost - truth) <= 1e-5):
        return False
    if math.isfinite(truth):
        random_programs.check(statement, vector(statement, answer))
    return True


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--libraries", type=int, default=0, help="programs adopted through each library")
    asked = parser.parse_args()
    rng, wrong, feasible = np.random.default_rng(asked.seed), 0, 0
    for n in range(asked.count):
        statement = random_programs.make(rng, 12 if n % 4 == 0 else 8)
        program = Program(statement)
        if not is_right(statement, program):
            wrong += 1
            print(f"Program {n}: {program.solve()}\n{program.describe()}")
        feasible += program.solve().values_found is not None
    print(f"{asked.count} programs with seed {asked.seed}, {feasible} with answers: {wrong} wrong.")
    for library, make in {**LIBRARIES, "scipy": as_arrays}.items():
        if not asked.libraries or importlib.util.find_spec(library) is None:
            continue
        rng, bad = np.random.default_rng(asked.seed + 1), 0
        for _ in range(asked.libraries):
            statement = random_programs.make(rng, 7, products=False)
            while library in ("pyomo", "linopy") and not np.diff(statement.row_first).all():  # no rows without terms
                statement = random_programs.make(rng, 7, products=False)
            if library in ("linopy", "scipy"):  # which know no constant
                statement = replace(statement, constant=0.0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make(statement)
                adopted = hasten.adopt(**model) if library == "scipy" else hasten.adopt(model)
            bad += not is_right(statement, adopted)
        print(f"{asked.libraries} adopted through {library}: {bad} wrong.")
        wrong += bad
    if asked.libraries and importlib.util.find_spec("ortools") is not None:
        script = [sys.executable, str(TESTS / "ortools_models.py"), str(asked.libraries), str(asked.seed)]
        done = subprocess.run(script, capture_output=True, text=True, check=False)
        print(f"OR-Tools: {done.stdout.strip() or done.stderr}")
        wrong += done.returncode != 0
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
