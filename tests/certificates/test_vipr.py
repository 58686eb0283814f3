"""Certificates in VIPR's format hold, say what ours say, and are refused as soon as they claim too much."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import vipr_checker
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import random_problem, small_problems

import hasten
from hasten import Certifier, Problem, ProblemError, Schema

WITHOUT_ELIMINATION = Certifier(max_join=0)


def chain(n: int, n_labels: int) -> Problem:
    rng, schema = np.random.default_rng(0), Schema()
    kind = schema.variable("kind", [str(label) for label in range(n_labels)])
    pair = schema.factor("pair", learned=True, one=kind, other=kind).set_table(rng.normal(size=(n_labels, n_labels)))
    shape = schema.structure()
    for v in range(n):
        shape.add(kind)
        if v:
            shape.connect(pair, one=v - 1, other=v)
    return shape.problem(rng.normal(size=n * n_labels))


@settings(max_examples=60)
@given(small_problems())
def test_it_shows_what_ours_shows(problem: Problem) -> None:
    found = WITHOUT_ELIMINATION.certificate(problem)
    said = vipr_checker.check(found.vipr())
    if found.lower == math.inf:
        assert said == "infeasible"
    else:
        assert said == f"{Fraction(found.lower)} {Fraction(found.upper)}"


def test_a_label_that_no_entry_has_any_more_is_left_out() -> None:
    problem = random_problem(np.random.default_rng(2802))  # under splits, tables leave some labels no entry
    found = WITHOUT_ELIMINATION.certificate(problem)
    assert vipr_checker.check(found.vipr()) == f"{Fraction(found.lower)} {Fraction(found.upper)}"


def test_a_chain_is_one_combination(tmp_path: Path) -> None:
    file = tmp_path / "chain.vipr"
    found = WITHOUT_ELIMINATION.certificate(chain(9, 5))
    found.save(file, format="vipr")
    text = file.read_text()
    assert text.splitlines()[1] == "VER 1.0"
    assert "DER 1\n" in text
    low, high = map(Fraction, vipr_checker.check(text).split())
    assert 0 <= high - low < Fraction(1, 10**9)


@pytest.mark.parametrize("seed", range(12))
def test_the_integer_program_beside_it_is_the_problem(tmp_path: Path, seed: int) -> None:
    found = WITHOUT_ELIMINATION.certificate(random_problem(np.random.default_rng(seed)))
    found.save(tmp_path / "it.vipr", format="vipr")
    answer = hasten.read(tmp_path / "it.lp").solve()
    assert answer.objective == pytest.approx(found.upper, rel=1e-6, abs=1e-6)


def test_too_much_is_refused() -> None:
    text = WITHOUT_ELIMINATION.certificate(chain(4, 3)).vipr()
    low, high = re.findall(r"RTP range (\S+) (\S+)", text)[0]
    for forged in (f"RTP range {Fraction(low) + Fraction(1, 10**12)} {high}", f"RTP range {low} {Fraction(high) - 1}"):
        with pytest.raises(vipr_checker.WrongError):
            vipr_checker.check(text.replace(f"RTP range {low} {high}", forged))
    bound = text.replace(f" G {low} OBJ", f" G {Fraction(low) + 1} OBJ")
    with pytest.raises(vipr_checker.WrongError, match="shows less"):
        vipr_checker.check(bound)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.data())
def test_a_changed_multiplier_never_proves_more(seed: int, data: st.DataObject) -> None:
    """Any number of a derivation may change: what still holds claims no more than before."""
    text = WITHOUT_ELIMINATION.certificate(random_problem(np.random.default_rng(seed))).vipr()
    head, proof = text.split("\nDER ", 1)
    words = proof.split(" ")
    at = data.draw(st.integers(1, len(words) - 1))
    words[at] = data.draw(st.sampled_from(["0", "1", "-1", "1/2", "{", "G", "lin", "asm"]))
    try:
        said = vipr_checker.check(head + "\nDER " + " ".join(words))
    except (vipr_checker.WrongError, ValueError, KeyError, IndexError, StopIteration, ZeroDivisionError):
        return
    assert said == vipr_checker.check(text)


def test_eliminations_have_no_counterpart() -> None:
    found = Certifier().certificate(chain(4, 3))
    with pytest.raises(ProblemError, match=r"VIPR cannot express .* eliminate .* Certifier\(max_join=0\)"):
        found.vipr()
    with pytest.raises(ProblemError, match="'hasten' and 'vipr'"):
        found.save("nowhere", format="drat")


@pytest.mark.skipif(shutil.which("viprchk") is None, reason="viprchk is not on the path (github.com/scipopt/vipr)")
def test_the_checker_of_exact_mip_solvers_agrees(tmp_path: Path) -> None:
    file = tmp_path / "it.vipr"

    def accepts(text: str) -> bool:
        file.write_text(text)
        return subprocess.run(["viprchk", file], capture_output=True).returncode == 0

    for seed in range(40):
        text = WITHOUT_ELIMINATION.certificate(random_problem(np.random.default_rng(seed))).vipr()
        assert accepts(text), seed
        for low, high in re.findall(r"RTP range (\S+) (\S+)", text):
            more, forged = Fraction(low) + Fraction(1, 10**9), text.replace(f"RTP range {low} {high}", "RTP infeas")
            assert not accepts(forged), seed
            forged = text.replace(f"RTP range {low} {high}", f"RTP range {more} inf")
            assert not accepts(forged), seed
            assert not accepts(forged.replace(f" G {low} OBJ", f" G {more} OBJ")), seed
