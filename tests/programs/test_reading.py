"""Files state what their formats say; bad ones are refused with the line and the reason, and nothing crashes."""

from __future__ import annotations

import gzip
import json
import math
import operator
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import random_programs
from front_ends import as_gurobi, as_highs

import hasten
from hasten.errors import ProgramError
from hasten.programs.reading import state_file
from hasten.programs.statement import Builder, Statement

MPS = """* a comment
NAME small
OBJSENSE
    MAX
ROWS
 N value
 L limit
 G least
 E same
 N unused
COLUMNS
 M 'MARKER' 'INTORG'
 x value 3 limit 2
 x unused 9
 y value 2 limit 1
 y least 1 same 1
 z value -1 same -1
 M 'MARKER' 'INTEND'
RHS
 rhs limit 4 least 1
 rhs value -10
RANGES
 rng limit 3
BOUNDS
 UP bnd x 2
 BV bnd y
 LO bnd z -1
 UP bnd z 5
ENDATA
"""
WCSP = "tiny 3 3 4 10\n2 3 2\n1 0 0 1\n1 4\n2 0 1 0 2\n0 0 10\n1 2 3\n2 1 2 5 2\n0 0 0\n2 1 1\n0 1 0\n"
CFN = """{"problem": {"name": "tiny", "mustbe": "<10"}, "variables": {"a": 2, "b": ["p", "q", "r"]},
"functions": {"f": {"scope": ["a", "b"], "costs": [1, 2, 10, 0.5, 3, 4]},
"g": {"scope": ["b"], "defaultcost": 1, "costs": ["q", 0]}}}"""
UAI = "MARKOV\n2\n2 3\n2\n1 0\n2 0 1\n2\n 0.25 0.75\n6\n 0.5 0.5 0\n 0.1 0.2 0.7\n"
LP = """\\ a comment
Maximize
  value: 3 x[1,a] + 2 y[-1] - z
  + [ 2 x[1,a] ^2 + 8 x[1,a] * y[-1] ] / 2 + 10
Subject To
  limit: 1 <= 2 x[1,a] + y[-1] <= 4
  y[-1] - z = 0
  least: y[-1] = 0 -> y[-1] >= 1
Bounds
  x[1,a] <= 2
  -1 <= z <= 5
Generals
  x[1,a] z
Binaries
  y[-1]
End
"""
FILES = {"small.mps": MPS, "small.lp": LP, "tiny.wcsp": WCSP, "tiny.cfn": CFN, "tiny.uai": UAI}


def written(place: Path, name: str, text: str) -> Path:
    path = place / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_an_mps_file_states_what_its_sections_say(tmp_path: Path, packed: str) -> None:
    program = hasten.read(written(tmp_path, f"small.mps{packed}", MPS))
    statement = program.statement
    assert (statement.name, statement.columns, statement.rows) == ("small", ("x", "y", "z"), ("limit", "least", "same"))
    assert (statement.maximize, statement.constant) == (True, 10.0)
    assert (statement.row_low.tolist(), statement.row_high.tolist()) == ([1, 1, 0], [4, math.inf, 0])
    assert (statement.low.tolist(), statement.high.tolist()) == ([0, 0, -1], [2, 1, 5])
    answer = program.solve()
    assert (answer.objective, dict(answer)) == (14.0, {"x": 1, "y": 1, "z": 1})


def test_a_cfn_file_is_minimised_or_maximised_and_beats_its_bound(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for must in (">-inf", ">-50.5", ">-8", ">6", "<inf", "<50.5", "<4", "<-3", "<-12") * 4:
        best, beats = (max, operator.gt) if must[0] == ">" else (min, operator.lt)
        one, two = rng.integers(-9, 9, 3).astype(float), rng.integers(-9, 9, (3, 2)).astype(float)
        functions = {
            "one": {"scope": ["a"], "costs": one.tolist()},
            "two": {"scope": ["a", "b"], "costs": two.ravel().tolist()},
        }
        text = {"problem": {"mustbe": must}, "variables": {"a": 3, "b": 2}, "functions": functions}
        scores = {}
        for a, b in np.ndindex(3, 2):
            if beats(one[a] + two[a, b], float(must[1:])):  # whatever its terms are
                scores[a, b] = one[a] + two[a, b]
        program = hasten.read(written(tmp_path, "max.cfn", json.dumps(text)))
        answers = [program.solve(), program.solve_all(np.zeros((2, 2)))[1]]
        for answer in answers:
            assert answer.optimal
            if scores:
                assert answer.objective == best(scores.values())
                assert answer.bound == pytest.approx(answer.objective)
                assert scores[int(answer["a"]), int(answer["b"])] == answer.objective
            else:
                assert answer.values_found is None
        if scores:
            assert abs(hasten.Certifier()(program.problem()).cost) == abs(best(scores.values()))
    endless = {
        "problem": {"mustbe": ">0"},
        "variables": {"a": 2},
        "functions": {"f": {"scope": ["a"], "costs": [1, "inf"]}},
    }
    with pytest.raises(ProgramError, match="infinitely good"):
        hasten.read(written(tmp_path, "max.cfn", json.dumps(endless)))


def test_a_wcsp_file_forbids_what_reaches_its_upper_bound(tmp_path: Path) -> None:
    answer = hasten.read(written(tmp_path, "tiny.wcsp", WCSP)).solve()
    costs = {}
    for a, b, c in np.ndindex(2, 3, 2):
        first = 5 if a == 1 else 1  # a function of no variables costs 1
        second = {(0, 0): 10, (1, 2): 3}.get((a, b), 0)
        third = {(0, 0): 0, (2, 1): 1}.get((b, c), 5)
        if second < 10:
            costs[a, b, c] = first + second + third
    assert answer.objective == min(cost for cost in costs.values() if cost < 10)
    none = hasten.read(written(tmp_path, "none.wcsp", WCSP.replace("4 10", "4 1", 1))).solve()
    assert none.status is hasten.Status.INFEASIBLE
    assert none.values_found is None


def test_global_cost_functions_of_small_scopes_are_tables(tmp_path: Path) -> None:
    text = "apart 3 3 2 100\n3 3 3\n3 0 1 2 -1 salldiff var 7\n3 0 1 2 -1 sgcc var 5 1\n0 1 2\n"
    program = hasten.read(written(tmp_path, "apart.wcsp", text))
    for x in np.ndindex(3, 3, 3):
        twice, zeros = 3 - len(set(x)), x.count(0)
        expected = 7 * twice + 5 * max(max(0, 1 - zeros), max(0, zeros - 2))
        assert program.statement.value(np.array(x, dtype=float)) == expected
    with pytest.raises(hasten.ProgramError, match="line 3: The global cost function 'sregular' is not read"):
        hasten.read(written(tmp_path, "bad.wcsp", text.replace("salldiff", "sregular")))


def test_a_wcsp_file_is_read_as_toulbar2_does_where_it_contradicts_itself(tmp_path: Path) -> None:
    text = (
        WCSP.replace("tiny 3 3 4", "tiny 3 1 4")
        .replace("0 0 10\n", "0 0 10\n0 0 4\n")
        .replace("2 0 1 0 2", "2 0 1 0 3")
    )
    program = hasten.read(written(tmp_path, "twice.wcsp", text))
    assert program.statement.tables[1].costs.tolist() == [[4, 0, 0], [0, 0, 3]]


def test_a_cfn_file_has_names_and_decimals(tmp_path: Path) -> None:
    answer = hasten.read(written(tmp_path, "tiny.cfn.gz", CFN)).solve()
    assert (answer.objective, dict(answer)) == (1.5, {"a": 1, "b": 0})


def test_a_uai_file_asks_for_the_most_probable(tmp_path: Path) -> None:
    answer = hasten.read(written(tmp_path, "tiny.uai", UAI)).solve()
    assert dict(answer) == {"x0": 1, "x1": 2}
    assert answer.objective == pytest.approx(-math.log(0.75 * 0.7))


def test_what_solvers_write_is_read_as_they_meant_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for n in range(12):
        program = random_programs.make(rng, 6, products=False)
        truth = random_programs.best(program)
        paths = [tmp_path / f"{n}.mps", tmp_path / f"{n}.gurobi.mps"]
        as_highs(program).writeModel(str(paths[0]))
        paths.append(tmp_path / f"{n}.highs.lp")
        as_highs(program).writeModel(str(paths[-1]))
        model = as_gurobi(program)
        model.write(str(paths[1]))
        paths.append(tmp_path / f"{n}.gurobi.lp")
        model.write(str(paths[-1]))
        for path in paths:
            assert hasten.read(path).solve().objective == pytest.approx(truth, abs=1e-6)


def test_an_mps_file_may_have_indicators_and_products(tmp_path: Path) -> None:
    text = MPS.replace("ENDATA", "QUADOBJ\n x x 2\n x y 4\nINDICATORS\n IF least y 0\nENDATA")
    program = hasten.read(written(tmp_path, "more.mps", text))
    assert program.solve().objective == pytest.approx(random_programs.best(quadratic_and_indicator()))


def test_an_mps_file_may_say_a_lower_bound_last_products_both_ways_and_exponents_with_a_d(tmp_path: Path) -> None:
    text = MPS.replace(" LO bnd z -1\n UP bnd z 5", " UP bnd z -1\n LO bnd z -1.5D1").replace("value 3", "value .3d+1")
    text = text.replace("ENDATA", "QMATRIX\n x x 2\n x y 4\n y x 4\nENDATA")
    statement = hasten.read(written(tmp_path, "more.mps", text)).statement
    assert (statement.low[2], statement.high[2], statement.objective[0]) == (-15.0, -1.0, 3.0)
    assert statement.value(np.array([1.0, 1.0, 0.0])) == 3.0 + 2.0 + 5.0 + 10.0


def quadratic_and_indicator() -> Statement:
    """Returns what the LP file states."""
    build = Builder(maximize=True, constant=10.0)
    for name, low, high, cost in (("x", 0, 2, 3), ("y", 0, 1, 2), ("z", -1, 5, -1)):
        build.column(name, low, high, True, cost)
    build.product(0, 0, 1.0)
    build.product(0, 1, 4.0)
    build.row([0, 1], [2.0, 1.0], 1, 4)
    build.row([1, 2], [1.0, -1.0], 0, 0)
    build.indicator([(1, 0)], [1], [1.0], 1, math.inf, "least")
    return build.statement()


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("small.mps", " x value 3 limit 2", " x value 3 limit", r"line 13: .*pairs of a row and a number"),
        ("small.mps", " x value 3 limit 2", " x value three", r"line 13: The number for 'value' must be a number"),
        ("small.mps", " y least 1 same 1", " y lest 1", r"line 16: There is no row 'lest'"),
        ("small.mps", " L limit", " L limit\n L limit", r"line 8: There is a row 'limit' already"),
        ("small.mps", " L limit", " X limit", r"line 7: A row is a letter"),
        ("small.mps", " UP bnd x 2", " SC bnd x 2", r"line 25: Semicontinuous"),
        ("small.mps", " UP bnd x 2", " UP bnd w 2", r"line 25: There is no column 'w'"),
        ("small.mps", " rhs value", " other value", r"line 21: RHS has several sets, 'rhs' and 'other'. Keep one set"),
        (
            "small.mps",
            " rhs value -10",
            " rhs limit -10",
            r"line 21: RHS has two numbers for the row 'limit'. Keep one",
        ),
        ("small.mps", " rng limit 3", " rng limit 3\n other least 1", r"line 24: RANGES has several sets"),
        ("small.mps", " BV bnd y", " BV other y", r"line 26: BOUNDS has several sets, 'bnd' and 'other'"),
        ("small.mps", " UP bnd z 5", " LO bnd z 0", r"line 28: The column 'z' has two lower bounds. Keep one"),
        ("small.mps", " BV bnd y", " BV bnd y\n UP bnd y 3", r"line 27: The column 'y' has two upper bounds"),
        (
            "small.mps",
            " UP bnd x 2",
            " UP bnd x -2",
            r"line 25: The column 'x' has a negative upper bound and no lower",
        ),
        ("small.mps", " z value -1", " x least 1\n z value -1", r"line 17: The column 'x' comes back after others"),
        ("small.mps", " x unused 9", " x limit 9", r"line 14: The column 'x' has two coefficients in the row 'limit'"),
        ("small.mps", " x unused 9", " x value 9", r"line 14: The column 'x' has two coefficients in the row 'value'"),
        (
            "small.mps",
            "ENDATA",
            "QMATRIX\n x y 4\nENDATA",
            r"line 30: QMATRIX has 4 for 'x' and 'y', but not the other",
        ),
        (
            "small.mps",
            "ENDATA",
            "QUADOBJ\n x y 4\n y x 4\nENDATA",
            r"line 31: The product of 'y' and 'x' is given twice",
        ),
        ("small.mps", " L limit", " L the limit", r"line 7: A row .* may not have spaces"),
        ("small.mps", "ENDATA", "SOS1", r"line 29: It has a section SOS1, which is not read"),
        ("small.mps", "ENDATA", "", r"without ENDATA"),
        ("small.mps", " x value 3 limit 2", " x value 1e300 limit 2", r"must be finite|Give a finite one"),
        ("small.mps", " x value 3 limit 2", " x value nan limit 2", r"must be a number, not 'nan'"),
        ("tiny.wcsp", "3 3 4 10", "3 3 400 10", r"the file ends where|The file ends where"),
        ("tiny.wcsp", "3 3 4 10", "99999999999 3 4 10", r"line 1: the number of variables must be from 0"),
        ("tiny.wcsp", "2 0 1 0 2", "2 0 7 0 2", r"line 5: a variable must be from 0 to 2"),
        ("tiny.wcsp", "2 0 1 0 2", "2 0 0 0 2", r"line 5: A cost function names a variable twice"),
        ("tiny.wcsp", "0 0 10", "0 9 10", r"line 6: a value must be from 0 to 2"),
        ("tiny.uai", "MARKOV", "MARCOV", r"line 1: A .uai file begins with MARKOV or BAYES"),
        ("tiny.uai", "0.25 0.75", "0.25 -1", r"A probability must be 0 or more"),
        ("tiny.uai", "6\n", "7\n", r"the number of entries of a factor must be from 6 to 6"),
        ("tiny.cfn", '"costs": [1, 2, 10, 0.5, 3, 4]', '"costs": [1, 2]', r"needs 6 costs, not 2"),
        ("tiny.cfn", '"a": 2,', '"a": 2, "a": 3,', r"The name 'a' is given twice. Keep one"),
        ("tiny.cfn", '["p", "q", "r"]', '["p", "q", "q"]', r"The variable 'b' has a value twice"),
        ("tiny.cfn", '"q", 0', '"t", 0', r"names a value that is not there"),
        ("tiny.cfn", '"variables"', '"variables', r"line 1: It is not JSON"),
        ("small.lp", "<= 4", "<= four", r"line 6: Expected a number, not 'four'"),
        ("small.lp", "y[-1] - z = 0", "y[-1] - z 0", r"line 7: Expected"),
        (
            "small.mps",
            "ENDATA",
            "INDICATORS\n IF least y 0\n IF least y 1\nENDATA",
            r"line 31: .*an indicator already",
        ),
        ("small.mps", " rhs limit 4 least 1", "RHS limit 4", r"line 20: RHS begins a section, but 'limit' follows"),
        ("small.mps", " UP bnd x 2", " UP bnd x 1_0", r"line 25: A bound must be a number, not '1_0'"),
        ("small.mps", " UP bnd x 2", " UP bnd x \u0663", r"line 25: A bound must be a number"),
        ("small.mps", "ENDATA", "QSECTION limit\n x y 4\nENDATA", r"line 29: 'limit' is not the objective"),
        ("small.mps", "BOUNDS", "RHS\n rhs least 2\nBOUNDS", r"line 24: There is a section RHS already"),
        ("small.mps", "ENDATA", "INDICATORS\n IF unused y 0\nENDATA", r"line 30: The row 'unused' is free"),
        ("small.lp", "1 <= 2 x[1,a]", "1 + inf <= 2 x[1,a]", r"line 6: Infinity stands in a sum"),
        ("small.lp", "x[1,a] <= 2\n", "2 x[1,a] <= 2\n", r"line 10: A bound has a variable without a coefficient"),
        ("small.lp", "\\ a comment\nMaximize", "Bounds\n z <= 3\nMaximize", r"line 1: An LP file begins with Minimize"),
        ("small.mps", " UP bnd x 2", " UP bnd x 2 3", r"line 25: A bound is a kind"),
        ("small.mps", " BV bnd y", " BV bnd y 7", r"line 26: A bound is a kind"),
        ("small.mps", "    MAX", "    MAX MIN", r"line 4: The sense of the objective is MIN or MAX, not 'MAX MIN'"),
        ("small.mps", "'INTORG'", "'INTORG' more", r"line 12: "),
        ("small.mps", "ROWS", "ROWS more", r"line 5: ROWS begins a section, but 'more' follows"),
        ("small.mps", "ENDATA\n", "ENDATA\n x limit 3\n", r"line 30: Nothing should come after ENDATA"),
        ("tiny.wcsp", "3 3 4 10", "3 3 4 1_0", r"line 1: the upper bound must be a whole number, not '1_0'"),
        ("tiny.wcsp", "3 3 4 10", "3 3 4 1\u0660", r"line 1: the upper bound must be a whole number"),
        ("tiny.uai", "0.25", "0.2_5", r"line 8: a probability must be a number, not '0.2_5'"),
        ("tiny.uai", "0.25", "0.2\u0665", r"line 8: a probability must be a number"),
        ("tiny.cfn", "<10", "<1_0", r"must be a number, not '1_0'"),
        ("small.lp", "<= 4", "+ 1 <= 4", "line 6: A row has a number among its terms"),
        ("small.lp", "<= 4", "<= 0 + 5", r"line 6: Nothing should follow a right-hand side, but there is '\+'"),
        ("small.lp", "<= 4", "<= 4 z", r"line 6: Nothing should follow a right-hand side, but there is 'z'"),
        ("small.lp", "<= 4", ">= 4", r"line 6: A row between two numbers has <= twice, or >= twice"),
        ("small.lp", "<= 4", "<= 1_0", r"line 6: '1_0' is neither a number nor a name"),
        ("small.lp", "<= 4", "<= \u0663", r"line 6: '\u0663' is neither a number nor a name"),
        ("small.lp", "End\n", "End\n z >= 1\n", r"line 17: Nothing should come after End, but there is 'z'"),
        ("small.lp", "Subject To", "Minimize\n z\nSubject To", r"line 5: There are two objectives. Keep one"),
        ("small.lp", "2 y[-1] - z", "2 y[-1] z", r"line 3: Expected \+ or - or a comparison, not 'z'"),
        ("small.lp", "+ 2 y[-1] - z", "+ 2 3 y[-1] - z", r"line 3: Expected \+ or - or a comparison, not '3'"),
        ("small.lp", "-1 <= z <= 5", "-1 <= z >= 5", r"line 11: A variable between two numbers has <= twice"),
        ("small.lp", "x[1,a] <= 2", "x[1,a] <= 2 + 1", r"line 10: Nothing should follow a bound in its line"),
        ("small.lp", "Maximize", "Maximise it", r"line 3"),
        ("small.lp", "Binaries", "Semi-continuous", r"line 15: It has a section 'Semi-continuous'"),
        ("small.lp", "^2", "^3", r"line 4: A power other than 2"),
        ("small.lp", "End", "", r"without End"),
        ("small.lp", "Generals", "Generals\n  3", r"line 13: Expected names"),
        ("tiny.cfn", "<10", "10", r"'mustbe' is < or > and a number"),
    ],
)
def test_a_bad_file_is_refused_with_its_line_and_reason(
    tmp_path: Path, name: str, old: str, new: str, reason: str
) -> None:
    assert old in FILES[name]
    path = written(tmp_path, name, FILES[name].replace(old, new, 1))
    with pytest.raises(hasten.ProgramError, match=reason) as raised:
        hasten.read(path)
    assert str(raised.value).startswith(str(path))


def test_an_lp_file_says_the_same_as_an_mps_file(tmp_path: Path) -> None:
    program = hasten.read(written(tmp_path, "small.lp.gz", LP))
    assert program.columns == ("x[1,a]", "y[-1]", "z")
    assert program.solve().objective == pytest.approx(random_programs.best(quadratic_and_indicator()))


def test_a_negative_upper_bound_leaves_the_lower_one_of_an_lp_file_at_0(tmp_path: Path) -> None:
    text = "Minimize\n x\nSubject To\n x >= -5\nBounds\n {}\nGenerals\n x\nEnd\n"
    read = [hasten.read(written(tmp_path, "negative.lp", text.format(each))) for each in ("x <= -1", "-3 <= x <= -1")]
    assert [program.statement.low.tolist() for program in read] == [[0.0], [-3.0]]
    assert read[0].solve().status is hasten.Status.INFEASIBLE
    assert read[1].solve().objective == -3


@pytest.mark.parametrize("ending", ["mps", "lp"])
def test_a_binary_variable_keeps_the_bounds_that_it_is_given(tmp_path: Path, ending: str) -> None:
    gurobipy = pytest.importorskip("gurobipy")
    model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0}))
    for low, high in ((1, 1), (0, 0), (0, 1), (-2, 3)):
        model.addVar(low, high, vtype="B", name=f"x[{low},{high}]", obj=1.0 if low == 1 else -1.0)
    model.write(str(tmp_path / f"fixed.{ending}"))
    program = hasten.read(tmp_path / f"fixed.{ending}")
    assert (program.statement.low.tolist(), program.statement.high.tolist()) == ([1, 0, 0, 0], [1, 0, 1, 1])
    assert program.solve().objective == hasten.adopt(model).solve().objective == -1


@pytest.mark.parametrize("bounds", ["Binaries\n x\nBounds\n {}\n", "Bounds\n {}\nBinaries\n x\n"])
def test_bounds_of_binaries_count_wherever_an_lp_file_has_them(tmp_path: Path, bounds: str) -> None:
    for given, limits in (("x = 1", (1, 1)), ("x <= 3", (0, 1)), ("x free", (0, 1)), ("x <= -1", (0, -1))):
        text = f"Minimize\n x\nSubject To\n x >= -5\n{bounds.format(given)}End\n"
        statement = state_file(written(tmp_path, "binary.lp", text))
        assert (statement.low[0], statement.high[0]) == limits


def test_files_that_are_not_there_or_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.mps").mkdir()
    (tmp_path / "image.mps").write_bytes(b"\x89PNG\0\0\0")
    (tmp_path / "cut.mps.gz").write_bytes(gzip.compress(MPS.encode())[:-20])
    for name, reason in (
        ("none.mps", "No such file"),
        ("folder.mps", "This is a directory"),
        ("image.mps", "not text"),
        ("cut.mps.gz", "damaged"),
        ("model.txt", "told by the name's ending"),
        ("a\0b.mps", "null (character|byte)"),
    ):
        with pytest.raises(hasten.ProgramError, match=reason):
            hasten.read(tmp_path / name)


def test_what_is_not_a_path_a_limit_or_a_program_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "small.mps", MPS)
    for wrong, reason in (
        (lambda: hasten.read(3), "Give the path of a file, got 3"),
        (lambda: hasten.read(bytes(path)), "Give the path of a file, got b"),
        (lambda: hasten.read(path, max_bytes="a"), "max_bytes must be a whole number, got 'a'"),
        (lambda: hasten.read(path, like=3), "like is a program, .* got 3"),
        (lambda: hasten.read_all(str(path)), "Give a list of paths"),
        (lambda: hasten.read_all(path), "Give a list of paths"),
        (lambda: hasten.read_all(3), "The paths of the files"),
    ):
        with pytest.raises(hasten.HastenError, match=reason):
            wrong()


def test_a_packed_file_cannot_unpack_to_no_end(tmp_path: Path) -> None:
    path = tmp_path / "bomb.mps.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(20):
            file.write(b" " * 1_000_000)
    with pytest.raises(hasten.ProgramError, match=r"more than 5,000,000 bytes, unpacked"):
        hasten.read(path, max_bytes=5_000_000)


def test_small_packed_files_cost_little_memory(tmp_path: Path) -> None:
    comment = "* nothing of use\n" * 100_000
    rows = "Minimize\n x\nSubject To\n" + " x" + " + x" * 200_000 + " >= 1\nEnd\n"
    for name, text in (("comment.mps.gz", comment + MPS), ("sum.lp.gz", rows)):
        tracemalloc.start()
        try:
            state_file(written(tmp_path, name, text))
            used = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert used < 20 * len(text)
    with pytest.raises(hasten.ProgramError, match="unpacks to more than 50 times its size"):
        state_file(written(tmp_path, "comment.mps.gz", comment * 2 + MPS))


def test_tables_that_are_never_written_down_cannot_fill_the_memory(tmp_path: Path) -> None:
    scope = " ".join(map(str, range(19)))
    text = f"bomb 19 2 999 10\n{'2 ' * 19}\n" + f"19 {scope} 0 0\n" * 999
    with pytest.raises(hasten.ProgramError, match=r"line 9\d: The tables have more than 50,000,000 entries together"):
        hasten.read(written(tmp_path, "bomb.wcsp", text))


@pytest.mark.parametrize("name", FILES)
def test_forged_files_are_read_or_refused_and_nothing_else(tmp_path: Path, name: str) -> None:
    dice, path, refused = random.Random(4), tmp_path / name, 0
    for _ in range(250):
        text = list(FILES[name])
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(text))
            kind = dice.random()
            if kind < 0.4:
                text[at] = dice.choice("0123456789-+.eE xyzNLG\n'\"{}[],:<")
            elif kind < 0.7:
                del text[at : at + dice.randint(1, 12)]
            else:
                text[at:at] = text[at : at + dice.randint(1, 40)]
        path.write_text("".join(text))
        try:
            state_file(path)
        except hasten.ProgramError:
            refused += 1
    assert refused > 50
