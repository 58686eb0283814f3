"""What notebooks show is small, well-formed and harmless, whatever it is of, and to look changes nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.model.solution import Solutions
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.speedup.parts import Search, Trust
from hasten.speedup.predictor import Speedup

SCRIPT = "<script>alert('1')</script>"


class Page(HTMLParser):
    """Reads HTML: its words, its rows, and whether every tag is closed where it should be."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] != "style":
            self.words.append(data)
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def page(thing: Any) -> Page:
    html = thing._repr_html_()
    assert len(html) < 50_000
    found = Page(html)
    assert found.tags <= {"div", "style", "p", "b", "table", "tr", "th", "td"}
    return found


def shape(labels: tuple[str, ...] = ("cat", "dog"), n: int = 2, name: str = "pet") -> Structure:
    """A chain of pets in which a first label is never beside a second."""
    schema = Schema()
    pet = schema.variable(name, labels)
    pair = schema.factor(f"{name} beside", left=pet, right=pet).forbid(left=labels[0], right=labels[1])
    schema.rule(f"few {name}s", at_most=n, **{name: labels[0]})
    made = schema.structure()
    pets = [made.add(pet) for _ in range(n)]
    for left in pets[:-1]:
        made.connect(pair, left=left, right=left + 1)
    return made


def everything(made: Structure, n: int) -> list[Any]:
    """One of each thing that notebooks show."""
    batch = made.batch(np.random.default_rng(0).normal(size=(n, made.n_labels)))
    fresh, used = (
        Speedup(made.schema),
        Speedup(made.schema, answer=Search(learner=Learner(3)), trust=Trust(audit=1.0)).fit(batch),
    )
    answers = used.predict(batch)
    broken = greedy()(made.problem([[0.0] + [1.0] * (len(kind) - 1) for kind in made.kinds]))
    return [made.schema, made, batch, batch[0], answers, answers[0], broken, fresh, used]


def test_a_solution_is_a_table_of_its_labels_with_a_sentence():
    problem = shape().problem([0.0, 1.0, 2.0, 0.5])
    shown = page(Certifier()(problem))
    assert shown.rows == [["variable", "kind", "label"], ["0", "pet", "dog"], ["1", "pet", "dog"]]
    assert shown.words[:2] == ["Solution: cost 1.5", "Proved optimal without the solver."]
    broken = page(greedy()(problem))
    assert broken.words[:2] == ["Solution: invalid", "Found by search; it breaks a constraint."]
    assert str(problem.check([0, 1])) + "." in broken.words


def test_what_is_large_is_summed_up_and_counted():
    made = shape(n=40)
    batch = made.batch(np.random.default_rng(0).normal(size=(2000, made.n_labels)))
    answers = page(Certifier()(batch))
    assert sum(int(row[0].replace(",", "")) for row in answers.rows if row[-1].startswith("Proved")) == 2000
    assert ["2,000", "Structure(40 variables, 39 factors, 0 rules)"] in page(batch).rows
    assert ["pet beside", "39"] in page(made).rows
    assert "… and 28 more" in page(batch[0]).words
    assert ["pet", "variable kind", "cat, dog"] in page(made.schema).rows
    assert ["pet beside", "factor kind", "left=pet, right=pet"] in page(made.schema).rows
    assert ["few pets", "rule", "at most 40"] in page(made.schema).rows


def test_a_speedup_shows_what_was_set_and_what_it_did():
    made = shape()
    speedup = Speedup(made.schema, answer=Search(width=1), trust=Trust(audit=1.0))
    fresh = page(speedup)
    assert [row[0] for row in fresh.rows] == ["setting", "schema", "answer", "trust"]
    assert "Not used yet." in fresh.words
    batch = made.batch(np.random.default_rng(0).normal(size=(30, made.n_labels)))
    speedup.fit(batch).predict(batch)
    used = page(speedup)
    assert ["problems", "30"] in used.rows
    assert f"Agrees with the black box: {speedup.agreement}." in used.words


@pytest.mark.parametrize("n", [1, 2000])
def test_names_are_never_read_as_html(n):
    made = shape((SCRIPT, '"&amp;', "'" * 2000), 30, name="<b onclick=x>")
    for thing in everything(made, n):
        html = thing._repr_html_()
        assert "<script" not in html
        assert "<b onclick" not in html
        page(thing)
    words = " ".join(page(made.schema).words)
    assert SCRIPT in words
    assert "<b onclick=x>" in words
    assert '"&amp;' in words


def test_hundreds_of_kinds_with_long_names_stay_small():
    schema = Schema()
    kinds = [schema.variable("&" * 300 + str(k), ["<" * 300, ">" * 300]) for k in range(60)]
    for k, kind in enumerate(kinds):
        schema.factor('"' * 300 + str(k), one=kind).cost(1.0, one="<" * 300)
        schema.rule("'" * 300 + str(k), at_least=0, **{kind.name: "<" * 300})
    made = schema.structure()
    for kind in kinds:
        made.add(kind)
    for thing in (schema, made, made.problem(np.zeros(120)), Speedup(schema)):
        page(thing)


def test_what_is_empty_lazy_or_infeasible_is_shown_too():
    made, asked = shape(), []

    def scorer(problems, variables):
        asked.extend(problems)
        return np.zeros(2 * len(variables))

    lazy = Batch.build([made], np.zeros(3, dtype=int), scorer)
    for thing in (lazy, lazy[0]):
        assert "Its costs are computed on demand." in page(thing).words
    assert not asked
    skipped = BeamSearch(1, theta=0.0)(lazy[0])
    known = len(asked)
    page(skipped)
    assert len(asked) == known
    forbidden = made.problem(np.full(4, np.inf))
    infeasible = Certifier()(forbidden)
    assert page(infeasible).words == ["Solution: no labelling", "No labelling satisfies the constraints."]
    assert ["1", "bound", "No labelling satisfies the constraints."] in page(Certifier()([forbidden])).rows
    page(forbidden)
    empty = made.batch(np.zeros((0, 4)))
    for thing in (Schema(), Schema().structure(), Batch.of([]), empty, Solutions.of(empty, []), Certifier()(empty)):
        assert not page(thing).rows
    nothing = Schema().structure().problem([])
    page(nothing)
    page(Certifier()(nothing))
    page(Speedup("no schema", solver=None, answer="none", seed=-1))


def test_to_look_changes_nothing():
    schema = Schema()
    pet = schema.variable("pet", ["cat"])
    schema._repr_html_()
    schema.variable("owner", ["ann"])  # the schema is still open
    made = schema.structure()
    made._repr_html_()
    made.add(pet)  # and so is the structure
    speedup = Speedup(schema)
    speedup._repr_html_()
    assert speedup._state.rng is None


def test_a_card_has_no_colours_of_its_own():
    html = shape()._repr_html_()
    style = re.search("<style>(.*)</style>", html).group(1)
    assert set(re.findall(r"(?:color|background):([^;}]*)", style)) <= {"inherit", "none"}
    assert not re.search(r"https?:|url\(|@import", html)
