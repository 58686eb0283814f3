"""The campaigns, in short; each runs for as long as one likes with `--count`. What was found is repeated."""

import importlib.util
import math
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import exact
import naive
import numpy as np
import pytest

HERE = Path(__file__).parent


@pytest.fixture
def campaign(monkeypatch):
    """The campaign of proofs as a module; there is another of its name."""
    monkeypatch.syspath_prepend(HERE)
    spec = importlib.util.spec_from_file_location("campaign_of_proofs", HERE / "proofs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("kills.py", 10),
        ("files.py", 40),
        ("texts.py", 100),
        ("proofs.py", 168),
        ("programs.py", 60),
        ("certificates.py", 240),
        ("sums.py", 200),
    ],
    ids=["kills", "files", "texts", "proofs", "programs", "certificates", "sums"],
)
def test_a_short_campaign_finds_nothing(name, count):
    command = [sys.executable, str(HERE / name), "--count", str(count), "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 1" in done.stdout


@pytest.mark.parametrize("path", sorted((HERE / "cases").glob("*.json")), ids=lambda path: path.stem)
def test_what_was_wrong_once_is_right(path, campaign, capsys):
    assert campaign.replay([path]) == 0, capsys.readouterr().out


def test_the_truth_is_that_of_exact_fractions(campaign):
    n_valid = 0
    for number, family in enumerate(campaign.FAMILIES):
        trial = campaign.draw_trial(family, 2, number)
        truths = campaign.Truth.of_all(trial["problems"])
        for problem, truth in list(zip(campaign.build_all(trial["problems"]), truths, strict=True))[::3]:
            optimum = exact.optimum(problem)
            assert truth.optimum == (None if optimum == math.inf else optimum)
            for labels in product(*map(range, truth.shape.sizes)) if problem.n_outputs <= 64 else ():
                total = truth.total(list(labels))
                assert (total is not None) == naive.valid(problem, labels)
                assert total is None or total == exact.total(problem, labels)
                n_valid += total is not None
    assert n_valid > 100


@pytest.mark.parametrize("spread", [0, 40, 320])
def test_digits_spell_numbers_exactly(spread, campaign):
    truth, draw = importlib.import_module("truth"), np.random.default_rng(spread)
    drawn = draw.normal(size=50) * 10.0 ** np.maximum(draw.uniform(-spread, spread, size=50), -323).clip(max=300)
    numbers = np.concatenate([drawn, [0.0, -0.0, 5e-324, -3.0, 2.0**53 + 2, math.inf]])
    unit = truth.common_unit(numbers)
    digits = truth.carried(truth.in_digits(numbers, unit, truth.length_of(numbers, unit)))
    for x, column in zip(numbers.tolist(), digits.T.tolist(), strict=True):
        whole = sum(digit << (truth.BITS * at) for at, digit in enumerate(column))
        assert Fraction(whole, 1 << unit) == (Fraction(x) if math.isfinite(x) else 0)


@pytest.mark.parametrize(
    ("family", "step"),
    [
        ("cuts", "cut settled"),
        ("roofs", "persistency fixed"),
        ("thin", "buckets settled"),
        ("tallies", "count settled"),
        ("demanded", "demand"),
    ],
)
def test_a_family_of_a_step_reaches_it(family, step, campaign, monkeypatch):
    monkeypatch.setitem(sys.modules, "proofs", campaign)
    reach = importlib.import_module("reach")
    counts = reach.reach(family, 0, 8)
    assert counts[step] >= 0.2 * counts["problems"], counts


def trusting(answer):
    return replace(answer, bound=answer.bound + 1.0)


def careless(answer):
    return replace(answer, values=answer.values * 0) if answer.values is not None else answer


def confused(answer):
    return replace(answer, cost=answer.cost * 1.01 + 1.0)


@pytest.mark.parametrize("lie", [trusting, careless, confused])
def test_a_lie_is_noticed_and_told_in_few_words(lie, campaign, monkeypatch, tmp_path):
    class Liar(campaign.Certifier):
        def __call__(self, problems, found=None, *, n_jobs=1):
            answers = super().__call__(problems, found, n_jobs=n_jobs)
            return lie(answers) if hasattr(answers, "problem") else [lie(answer) for answer in answers]

    trial = campaign.draw_trial("anything", 2, 0)
    assert campaign.failure(trial) is None
    monkeypatch.setattr(campaign, "Certifier", Liar)
    small = campaign.made_small(trial, campaign.failure(trial))
    assert len(small["problems"]) == 1
    assert len(small["problems"][0]["variables"]) <= 2
    campaign.write(tmp_path / "small.json", small)
    assert campaign.read(tmp_path / "small.json") == small
    assert campaign.failure(small) == small["wrong"]
    assert small["wrong"].startswith("problem 0, ")
