"""Models of PuLP, SciPy, Pyomo, linopy and CVXPY, solved by naming hasten as the solver, and by naming CBC or HiGHS.

    python benchmarks/hosts.py [--out results/hosts.json] [--count 20] [--only pulp]

Every line is a family of models in one host. `one-off` is the first solve of a model, with everything that is ours in
it: reading, recognition, planning; kernels are compiled before. `again` is a solve of the same model with another
objective, the median. Both take turns with the peer's, on the same models, by the wall clock; objectives are compared.
`handed over` are models that are not ours: the ratio says what it costs to ask us first.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import hasten
from hasten.programs import solving
from hasten.support.files import write_whole
from hasten.support.threads import Cache

warnings.simplefilter("ignore")
Solve = Callable[[np.ndarray], float]  # solves under an objective, and returns its value


def rows_of(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns a matrix over binaries, and the limits of its rows."""
    if kind == "knapsack":
        weights = rng.integers(5, 50, (1, 40)).astype(float)
        return weights, np.array([-np.inf]), weights.sum(axis=1) // 3
    if kind == "assignment":
        n = 12
        one = np.concatenate([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))])
        return one, np.ones(2 * n), np.ones(2 * n)
    if kind == "timetable":
        courses, slots = 20, 6
        one = np.kron(np.eye(courses), np.ones(slots))
        pairs = [(c, d) for c in range(courses) for d in range(c) if rng.random() < 0.15]
        apart = np.zeros((len(pairs) * slots, courses * slots))
        for r, (c, d) in enumerate(pairs):
            for s in range(slots):
                apart[r * slots + s, [c * slots + s, d * slots + s]] = 1
        low = np.concatenate([np.ones(courses), np.full(len(apart), -np.inf)])
        return np.concatenate([one, apart]), low, np.ones(courses + len(apart))
    cover = np.zeros((30, 40))
    for r in range(30):
        cover[r, rng.choice(40, 4, replace=False)] = 1
    return cover, np.ones(30), np.full(30, np.inf)


KINDS = {"knapsack": -1.0, "assignment": 1.0, "timetable": 1.0, "cover": 1.0}  # and the sign of objectives


def with_pulp(matrix: np.ndarray, low: np.ndarray, high: np.ndarray, solver: Any, cat: str = "Binary") -> Solve:
    import pulp

    model = pulp.LpProblem("model", pulp.LpMinimize)
    x = [pulp.LpVariable(f"x{j:03d}", 0, 1, cat) for j in range(matrix.shape[1])]
    model += pulp.lpSum(x)
    for row, least, most in zip(matrix, low, high, strict=True):
        total = pulp.lpSum(row[j] * x[j] for j in np.flatnonzero(row))
        if least == most:
            model += total == least
            continue
        if least > -np.inf:
            model += total >= least
        if most < np.inf:
            model += total <= most

    def solve(c: np.ndarray) -> float:
        model.setObjective(pulp.LpAffineExpression(list(zip(x, c.tolist(), strict=True))))
        model.solve(solver())
        return float(pulp.value(model.objective))

    return solve


def with_milp(matrix: np.ndarray, low: np.ndarray, high: np.ndarray, milp: Any) -> Solve:
    rows = {"integrality": 1, "bounds": (0, 1), "constraints": (matrix, low, high)}
    return lambda c: float(milp(c, **rows).fun)


def with_pyomo(matrix: np.ndarray, low: np.ndarray, high: np.ndarray, name: str) -> Solve:
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(matrix.shape[1]), domain=pyo.Binary)
    model.c = pyo.Param(range(matrix.shape[1]), mutable=True, initialize=0.0)
    model.rows = pyo.ConstraintList()
    for row, least, most in zip(matrix, low, high, strict=True):
        total = sum(row[j] * model.x[j] for j in np.flatnonzero(row).tolist())
        model.rows.add((least if least > -np.inf else None, total, most if most < np.inf else None))
    model.cost = pyo.Objective(expr=sum(model.c[j] * model.x[j] for j in range(matrix.shape[1])))
    solver = pyo.SolverFactory(name)

    def solve(c: np.ndarray) -> float:
        for j, weight in enumerate(c.tolist()):
            model.c[j] = weight
        solver.solve(model)
        return float(pyo.value(model.cost))

    return solve


def with_linopy(matrix: np.ndarray, low: np.ndarray, high: np.ndarray, name: str) -> Solve:
    import linopy
    import xarray

    model, n, m = linopy.Model(), matrix.shape[1], len(matrix)
    x = model.add_variables(binary=True, coords=[range(n)], dims=["j"], name="x")
    weights = xarray.DataArray(matrix, dims=["r", "j"], coords={"r": range(m), "j": range(n)})
    total = (weights * x).sum("j")
    for limit, sense in ((low, ">="), (high, "<=")):
        if np.isfinite(limit).any():
            bound = xarray.DataArray(np.where(np.isfinite(limit), limit, 0), dims=["r"], coords={"r": range(m)})
            model.add_constraints(total, sense, bound, mask=xarray.DataArray(np.isfinite(limit), dims=["r"]))
    options = {"io_api": "direct", "log_to_console": False}

    def solve(c: np.ndarray) -> float:
        cost = xarray.DataArray(c, dims=["j"], coords={"j": range(n)})
        model.add_objective((cost * x).sum(), overwrite=True)
        model.solve(name, **options)
        return float(model.objective.value)

    return solve


def with_cvxpy(matrix: np.ndarray, low: np.ndarray, high: np.ndarray, solver: Any) -> Solve:
    import cvxpy

    x, c = cvxpy.Variable(matrix.shape[1], boolean=True), cvxpy.Parameter(matrix.shape[1])
    rows = [matrix[np.isfinite(low)] @ x >= low[np.isfinite(low)]] if np.isfinite(low).any() else []
    rows += [matrix[np.isfinite(high)] @ x <= high[np.isfinite(high)]] if np.isfinite(high).any() else []
    problem = cvxpy.Problem(cvxpy.Minimize(c @ x), rows)

    def solve(costs: np.ndarray) -> float:
        c.value = costs
        return float(problem.solve(solver=solver))

    return solve


def ways(only: str) -> Iterator[tuple[str, str, Callable[..., Solve], Any, Any]]:
    """Yields hosts and peers: how to build a model, and what names our solver and theirs."""
    if only in ("", "pulp"):
        import pulp

        ours = lambda: hasten.pulp.HASTEN(msg=False)  # noqa: E731
        yield "pulp", "cbc", with_pulp, ours, lambda: pulp.PULP_CBC_CMD(msg=False, gapRel=0)
        yield "pulp", "highs", with_pulp, ours, lambda: pulp.HiGHS(msg=False, gapRel=0)
    if only in ("", "scipy"):
        from scipy.optimize import milp

        exact = lambda c, **rows: milp(c, options={"mip_rel_gap": 0}, **rows)  # noqa: E731
        yield "scipy", "highs", with_milp, hasten.milp, exact
    if only in ("", "pyomo"):
        assert hasten.pyomo
        yield "pyomo", "highs", with_pyomo, "hasten", "highs"
    if only in ("", "linopy"):
        assert hasten.linopy
        yield "linopy", "highs", with_linopy, "hasten", "highs"
    if only in ("", "cvxpy"):
        try:
            yield "cvxpy", "highs", with_cvxpy, hasten.cvxpy.HASTEN(), "HIGHS"
        except ImportError:
            print("cvxpy is not installed")


def timed(solve: Solve, c: np.ndarray) -> tuple[float, float]:
    began = time.perf_counter()
    with redirect_stdout(StringIO()):
        value = solve(c)
    return time.perf_counter() - began, value


def compare(make: tuple[Solve, Solve], objectives: np.ndarray) -> dict[str, Any]:
    """Times both under each objective, in turns."""
    seconds: tuple[list[float], list[float]] = ([], [])
    worst = 0.0
    for n, c in enumerate(objectives):
        values = [0.0, 0.0]
        for k in (0, 1) if n % 2 else (1, 0):
            spent, values[k] = timed(make[k], c)
            seconds[k].append(spent)
        worst = max(worst, abs(values[0] - values[1]) / max(1.0, abs(values[1])))
    return {"ours": seconds[0], "theirs": seconds[1], "worst": worst}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--count", type=int, default=20, help="objectives of each model, and models of each family")
    parser.add_argument("--only", default="", help="one host")
    args = parser.parse_args()
    lines: list[dict[str, Any]] = []
    print(f"{'host':8s} {'peer':6s} {'family':12s} {'one-off':>9s} {'again':>9s} {'ms again':>9s}  same")
    for host, peer, build, ours, theirs in ways(args.only):
        for kind, sign in KINDS.items():
            rng = np.random.default_rng(1)
            first, again = [], []
            for model in range(max(3, args.count // 4)):
                rows = rows_of(kind, np.random.default_rng(100 + model))
                solving.KNOWN = Cache(solving.KNOWN.limit)  # nothing is known already
                objectives = sign * rng.uniform(1, 10, (args.count, rows[0].shape[1])).round(3)
                found = compare((build(*rows, ours), build(*rows, theirs)), objectives)
                first.append((found["ours"][0], found["theirs"][0]))
                again += list(zip(found["ours"][1:], found["theirs"][1:], strict=True))
                assert found["worst"] < 1e-4, (host, peer, kind, found["worst"])
            one_off = sum(t for _, t in first[1:]) / sum(o for o, _ in first[1:])  # the first one compiles kernels
            ratio = median(t for _, t in again) / median(o for o, _ in again)
            line = {"host": host, "peer": peer, "family": kind, "one_off": one_off, "again": ratio}
            lines.append(line | {"ms": 1e3 * median(o for o, _ in again)})
            print(
                f"{host:8s} {peer:6s} {kind:12s} {one_off:8.2f}x {ratio:8.2f}x {lines[-1]['ms']:9.3f}  yes", flush=True
            )
    if args.only in ("", "pulp"):
        lines.append(handed_over(args.count))
    if args.out:
        write_whole(args.out, (json.dumps(lines, indent=1) + "\n").encode())


def handed_over(count: int) -> dict[str, Any]:
    """Times linear programs in PuLP, which are handed to PuLP's own interface to HiGHS."""
    import pulp

    rng = np.random.default_rng(5)
    rows = rows_of("assignment", rng)
    both = tuple(
        with_pulp(*rows, solver, "Continuous")
        for solver in (lambda: hasten.pulp.HASTEN(msg=False), lambda: pulp.HiGHS(msg=False))
    )
    found = compare(both, rng.uniform(1, 10, (count, rows[0].shape[1])))  # type: ignore[arg-type]
    ratio = median(found["theirs"]) / median(found["ours"])
    print(f"pulp     highs  handed over  {'':9s} {ratio:8.2f}x {1e3 * median(found['ours']):9.3f}  yes")
    return {"host": "pulp", "peer": "highs", "family": "handed over", "again": ratio}


if __name__ == "__main__":
    main()
