"""A sentence is explained by its searches and its proof, whatever words it has; traces get into the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hasten import cli
from hasten.errors import CorpusError
from hasten.paper.analyses import traces_of
from hasten.paper.demo import NAMES, running_example
from hasten.paper.report import render
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.explain import explain, read_sentence
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.entity_relation.task import variable_names


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger.train(list(generate(60, 0)), list(generate(60, 1, labelled=False)))


@pytest.mark.parametrize(
    ("text", "tokens", "spans"),
    [
        ("[Colin] went home.", ["Colin", "went", "home", "."], [(0, 1)]),
        ("In [Ordon Village], [Colin] (a man) slept", "In|Ordon Village|,|Colin|(|a|man|)|slept", [(1, 3), (4, 5)]),
        ("[Acme Corp.] hired (him).", ["Acme", "Corp.", "hired", "(", "him", ")", "."], [(0, 2)]),
        ("[a][b]", ["a", "b"], [(0, 1), (1, 2)]),
        ("“[Colin],” he said…", ["“", "Colin", ",", "”", "he", "said…"], [(1, 2)]),
        ('{"tokens": ["x", "y"], "spans": [[1, 2]]}', ["x", "y"], [(1, 2)]),
    ],
)
def test_a_sentence_is_read_as_people_type_it(text: str, tokens: Any, spans: Any) -> None:
    if isinstance(tokens, str):
        tokens = [word for part in tokens.split("|") for word in part.split()]
    found = read_sentence(text)
    assert list(found.tokens) == tokens
    assert list(found.spans) == spans


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Nobody went.", r"The sentence 'Nobody went.' has no entities. Write the"),
        ("", "has no entities"),
        ("[Colin went", "without its partner"),
        ("Colin] went", "without its partner"),
        ("[a [b] c]", "without its partner"),
        ("[] went", "nothing between the brackets"),
        ("{not json", "Not JSON"),
        ('{"tokens": []}', "'spans' is missing"),
        ("x" * 100_000, "has no entities"),
        ("a\0b", "has no entities"),
    ],
)
def test_what_is_not_a_sentence_is_refused_in_words(text: str, wrong: str) -> None:
    with pytest.raises(CorpusError, match=wrong):
        read_sentence(text)


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_an_explanation_has_the_answer_of_the_tagger(tagger: Tagger, n: int) -> None:
    words = " ".join(f"[Colin {i}] met" for i in range(n)) + " somebody"
    sentence = read_sentence(words) if n else Sentence("1", ("Nobody", "came"), ())
    found = explain(tagger, sentence, width=2, theta=0.5)
    (labelled,) = tagger.label([sentence])
    assert labelled.sentence.types == found.types
    assert labelled.sentence.relations == found.relations
    assert [trace.width for trace in found.searches] == [1, 2]
    assert found.proof.names == tuple(variable_names([f"Colin {i}" for i in range(n)]))
    page, told = found.to_html(), str(found)
    for text in (page, told):
        assert "Greedy search, constraints ignored" in text
        assert "Proved optimal without the solver." in text
    assert page.count("<h3>") == 3


def test_an_explanation_escapes_every_word(tagger: Tagger) -> None:
    sentence = read_sentence("[<script>alert(1)</script>] & [<b>] <i>")
    page = explain(tagger, sentence).to_html()
    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page


def test_a_sentence_of_too_many_entities_is_refused_in_words(tagger: Tagger) -> None:
    with pytest.raises(CorpusError, match=r"has 13 entities.*Choose a shorter sentence"):
        explain(tagger, read_sentence("[x] " * 13))


def test_the_command_line_explains_a_sentence_or_one_of_a_file(tagger: Tagger, tmp_path: Path) -> None:
    model, file, out = tmp_path / "model", tmp_path / "text.jsonl", tmp_path / "new" / "page.html"
    tagger.save(model)
    write_jsonl(file, generate(3, 5, labelled=False))
    run = CliRunner().invoke
    done = run(cli.app, ["explain", str(model), "[Colin] lives in [Ordon Village].", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "Ordon Village" in done.output
    assert len(done.output.splitlines()) == 6
    assert "Step 2: Ordon Village" in str(explain(tagger, read_sentence("[Colin] lives in [Ordon Village].")))
    assert "<mark>Ordon Village" in out.read_text()
    done = run(cli.app, ["explain", str(model), str(file), "--sentence", "3", "-o", str(out), "--theta", "0"])
    assert done.exit_code == 0, done.output
    assert "theta = 0" in done.output
    assert "Colin" not in out.read_text()
    before = out.read_text()
    done = run(cli.app, ["explain", str(model), "no such.jsonl", "-o", str(out)])
    assert "There is no file 'no such.jsonl'; and as a sentence it has no entities. Write" in str(done.exception)
    done = run(cli.app, ["explain", str(model), str(file), "--sentence", "4", "-o", str(out)])
    assert isinstance(done.exception, CorpusError)
    assert "has fewer than 4 sentences" in str(done.exception)
    assert out.read_text() == before


def test_the_report_draws_the_traces_of_its_examples() -> None:
    problem = running_example()
    sentence = Sentence("1", ("Colin", "lives", "in", "Ordon", "Village"), ((0, 1), (3, 5)))
    traces = traces_of(sentence, problem, BeamSearch(2), Certifier()(problem))
    traces = json.loads(json.dumps(traces))
    example = {"tokens": list(sentence.tokens), "spans": [[0, 1], [3, 5]], "labels": {}, "traces": traces}
    page = render({"examples": [example]})
    assert page.count('<details class="trace">') == 1
    assert "the gold node is lost" in page
    assert f"Step 1: {NAMES[0]}" in page
    broken: list[Any] = [None, [], {}, {"searches": 3}, traces | {"proof": None}]
    for key in ("steps", "width", "status", "labels"):
        wrong = json.loads(json.dumps(traces))
        wrong["searches"][0][key] = "nonsense"
        broken.append(wrong)
    wrong = json.loads(json.dumps(traces))
    wrong["searches"][0]["steps"][2]["candidates"][0]["node"] = 7
    for each in [*broken, wrong]:
        assert '<details class="trace">' not in render({"examples": [example | {"traces": each}]})
