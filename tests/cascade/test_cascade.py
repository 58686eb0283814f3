"""A cascade learns from its black box, keeps its promise, notices a drift, and never lets one input cost another."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.cascade.boxes import Command, Endpoint
from hasten.cascade.cascade import Cascade
from hasten.cascade.parts import FIRST, Budget
from hasten.cascade.promise import Promise, candidates, promise
from hasten.cascade.student import Confidence
from hasten.errors import CorpusError, HastenError, ProblemError, SolverError
from hasten.speedup.audit import lower_limit, upper_limit
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.extraction import Extraction
from hasten.tasks.tagging.corpus import Tagged
from hasten.tasks.tagging.corpus import generate as generate_tagged
from hasten.tasks.tagging.model import Tagging


@cache
def news(n: int = 3000) -> tuple[Sentence, ...]:
    return tuple(replace(each, id=str(k)) for k, each in enumerate(generate(n, seed=0)))


class Extractor:
    """A slow extractor that knows the answers; it can drift, and fail."""

    def __init__(self) -> None:
        self.n_calls, self.drifted, self.broken = 0, False, False

    def answer(self, text: Sentence) -> Sentence:
        gold = news()[int(text.id)]
        return replace(gold, types=tuple("none" for _ in gold.spans), relations=()) if self.drifted else gold

    def __call__(self, text: Sentence) -> Sentence:
        self.n_calls += 1
        assert text.types is None
        if self.broken:
            raise RuntimeError("out of order")
        return self.answer(text)


def unlabeled(sentences) -> list[Sentence]:
    return [each.unlabeled() for each in sentences]


def same(one: Sentence, other: Sentence) -> bool:
    return one.types == other.types and set(one.relations) == set(other.relations)


@cache
def served() -> tuple[Cascade, Extractor, list]:
    extractor = Extractor()
    cascade = Cascade(Extraction(), extractor, risk=0.2, seed=1)
    replies = [reply for at in range(0, 2500, 250) for reply in cascade.predict(unlabeled(news()[at : at + 250]))]
    return cascade, extractor, replies


def test_the_student_learns_and_answers_as_promised():
    cascade, extractor, replies = served()
    assert cascade.trusted, cascade.notes
    given = [n for n, reply in enumerate(replies) if reply.source == "student"]
    assert len(given) > 300
    assert all(replies[n].promised and replies[n].version for n in given)
    wrong = sum(not same(replies[n].text, news()[n]) for n in given)
    assert wrong / len(given) <= 0.2
    counters = cascade.counters
    assert (counters.inputs, counters.by_student, counters.calls) == (2500, len(given), 2500 - len(given))
    assert extractor.n_calls == counters.calls
    asked = [reply for reply in replies if reply.source == "black box"]
    assert all(reply.reason for reply in asked)
    assert {reply.reason for reply in asked} >= {"The student is not sure enough."}
    assert 0 < cascade.agreement.n <= counters.audits
    audits = [reply.agreed for reply in replies if reply.agreed is not None]
    assert (len(audits), audits.count(False)) == (counters.audits, counters.disagreements)
    assert all(reply.called == (reply.source == "black box") for reply in replies)


def test_the_first_answers_are_all_the_black_boxes():
    extractor = Extractor()
    cascade = Cascade(Extraction(), extractor)
    replies = cascade.predict(unlabeled(news()[:100]))
    assert [reply.text for reply in replies] == list(news()[:100])
    assert all(reply.source == "black box" and np.isnan(reply.probability) for reply in replies)
    assert f"of {FIRST} answers" in replies[-1].reason
    assert not cascade.trusted
    assert str(cascade) == "Cascade(no student yet)"


def test_answers_that_are_there_already_teach():
    extractor = Extractor()
    cascade = Cascade(Extraction(), extractor, risk=0.2)
    cascade.teach(news()[:2000])
    assert cascade.trusted
    assert extractor.n_calls == 0
    assert sum(reply.source == "student" for reply in cascade.predict(unlabeled(news()[2000:2300]))) > 50


def test_a_drift_is_noticed_named_and_learned_from():
    extractor = Extractor()
    cascade = Cascade(Extraction(), extractor, risk=0.2, seed=3)
    cascade.teach(news()[:2000])
    cascade.predict(unlabeled(news()[2000:2200]))
    assert cascade.suspect is None
    extractor.drifted, wrong = True, 0
    for n in range(2200, 3000):
        (reply,) = cascade.predict(unlabeled(news()[n : n + 1]))
        wrong += not same(reply.text, extractor.answer(news()[n]))
        if cascade.suspect is not None:
            break
    assert wrong <= 60
    assert 200 in cascade.suspect or cascade.suspect.start >= 200
    assert any(note.kind == "alarm" and "may be wrong" in str(note) for note in cascade.notes)
    (reply,) = cascade.predict(unlabeled(news()[2900:2901]))
    assert (reply.source, reply.reason) == ("black box", "The student is not trusted.")
    cascade.predict(unlabeled(news()[:1200]))  # now it learns what is new
    assert cascade.trusted, cascade.notes
    replies = cascade.predict(unlabeled(news()[1200:1400]))
    assert sum(reply.source == "student" for reply in replies) > 100
    assert all(set(reply.text.types) == {"none"} for reply in replies)


def test_a_black_box_that_fails_costs_no_other_input_and_ends_the_trust():
    extractor = Extractor()
    cascade = Cascade(Extraction(), extractor, risk=0.2, audit=0.3)
    extractor.broken = True
    (reply,) = cascade.predict(unlabeled(news()[:1]))
    assert (reply.text, reply.source) == (None, "nobody")
    assert reply.reason == "The black box failed: RuntimeError: out of order"
    (reply,) = Cascade(Extraction(), lambda text: ["person"]).predict(unlabeled(news()[:1]))
    assert "The black box must return the input, labelled; it returned ['person']" in reply.reason
    cascade.teach(news()[:2000])
    assert cascade.trusted
    replies = cascade.predict(unlabeled(news()[2000:2300]))
    assert not cascade.trusted
    assert all(reply.text is not None for reply in replies)  # the student's, without a promise
    assert {reply.promised for reply in replies if "failed" in reply.reason} == {False}
    assert cascade.counters.failed > 5


def test_a_budget_is_kept():
    extractor = Extractor()
    cascade = Cascade(Extraction(), extractor, risk=0.2, budget=Budget(calls=50))
    replies = cascade.predict(unlabeled(news()[:100]))
    assert extractor.n_calls == 50
    assert sum(reply.source == "black box" for reply in replies) == 50
    assert {reply.reason for reply in replies if reply.source == "nobody"} == {"The budget is spent."}
    cascade.teach(news()[:2000])
    late = cascade.predict(unlabeled(news()[2000:2050]))
    assert {reply.source for reply in late} == {"student"}
    assert {reply.reason for reply in late if not reply.promised} == {"The budget is spent."}
    hourly = Budget(per_hour=3)
    hourly.take(3)
    assert hourly.left() == 0
    with pytest.raises(ProblemError, match="calls"):
        Budget(calls=-1)


def test_versions_can_be_promoted_and_rolled_back():
    cascade = Cascade(Extraction(), Extractor(), risk=0.2)
    with pytest.raises(HastenError, match="no earlier version"):
        cascade.rollback()
    cascade.teach(news()[:1000])
    cascade.teach(news()[1000:3000])
    assert set(cascade.versions) == {"v1", "v2"}
    cascade.promote("v1")
    assert cascade.champion.name == "v1"
    cascade.rollback()
    assert cascade.champion.name == "v2"
    with pytest.raises(ProblemError, match=r"no version 'v9'\. There are v1, v2"):
        cascade.promote("v9")


def test_it_learns_in_a_thread_of_its_own():
    extractor = Extractor()
    with Cascade(Extraction(), extractor, risk=0.2, budget=Budget(at_once=4)) as cascade:
        cascade.predict(unlabeled(news()[:2000]))
        for _ in range(200):
            if cascade.champion is not None:
                break
            threading.Event().wait(0.1)
    assert cascade.champion is not None
    assert not any(thread.name.startswith("hasten cascade") for thread in threading.enumerate())


def test_another_task_learns_too():
    tagged = [replace(each, id=str(n)) for n, each in enumerate(generate_tagged(1500, seed=0))]
    cascade = Cascade(Tagging(epochs=4), lambda text: tagged[int(text.id)], risk=0.2)
    cascade.teach(tagged[:1200])
    replies = cascade.predict([each.untagged() for each in tagged[1200:]])
    given = [(reply.text, truth) for reply, truth in zip(replies, tagged[1200:], strict=True) if reply.promised]
    assert len(given) > 50
    assert np.mean([mine.tags != truth.tags for mine, truth in given]) <= 0.2


@pytest.mark.parametrize(
    "settings", [{"risk": 0.0}, {"risk": 1.5}, {"confidence": 1.0}, {"audit": "much"}, {"risk": True}]
)
def test_settings_are_checked(settings):
    with pytest.raises(ProblemError, match="must be a share between 0 and 1"):
        Cascade(Extraction(), Extractor(), **settings)


def test_what_is_no_task_or_no_function_is_refused():
    with pytest.raises(ProblemError, match="task must be a Task"):
        Cascade("text", Extractor())
    with pytest.raises(ProblemError, match="not 'neurall'"):
        Extraction("neurall")
    with pytest.raises(ProblemError, match="black_box must be a function"):
        Cascade(Extraction(), "http://localhost")
    with pytest.raises(ProblemError, match="at_once"):
        Budget(at_once=0)
    with pytest.raises(ProblemError, match="risk must be a share"):
        Cascade(Extraction(), Extractor(), risk={})
    with pytest.raises(ProblemError, match="risk of 'entity' must be a share"):
        Cascade(Extraction(), Extractor(), risk={"entity": 2})


@pytest.mark.parametrize("one", ["Ada lives in Ulm.", news()[0]])
def test_one_input_is_no_list_of_inputs(one):
    with pytest.raises(ProblemError, match=r"such as a list of one: \[text\]"):
        Cascade(Extraction(), Extractor()).predict(one)


# -- the promise ---------------------------------------------------------------------------------------------------


def whole(risk: float, *answers) -> Promise:
    return promise({"answer": risk}, 0.95, *((log_p, right[:, None]) for log_p, right in answers))


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.1]), st.integers(0, 400), st.booleans())
def test_a_promise_is_what_its_test_shows(seed, risk, n, several):
    rng = np.random.default_rng(seed)
    risks = {"entity": risk, "relation": 2 * risk} if several else {"answer": risk}
    log_p = np.log(rng.random(n))
    right = rng.random((n, len(risks))) < np.exp(log_p)[:, None] ** 0.2
    seen, tested = (log_p[: n // 3], right[: n // 3]), (log_p[n // 3 :], right[n // 3 :])
    made = promise(risks, 0.95, seen, tested)
    if made.holds:
        given = tested[0] >= made.threshold
        assert made.n_given == given.sum()
        for column, (name, limit) in enumerate(risks.items()):
            assert made.wrong[name] == (given & ~tested[1][:, column]).sum()
            assert upper_limit(made.wrong[name], made.n_given, 0.95) <= limit
        assert made.threshold in candidates(np.array(list(risks.values())), seen)
        assert "with confidence 95%" in str(made)
        assert (" in relation" in str(made)) == several
    else:
        assert made.coverage == 0
        assert made.needed is None or made.needed > 0
        assert "no promise" in str(made)


@pytest.mark.parametrize("risks", [{"answer": 0.05}, {"a": 0.05, "b": 0.05}])
def test_a_promise_is_rarely_broken(risks):
    rng, broken, runs = np.random.default_rng(0), 0, 1000
    for _ in range(runs):
        log_p = np.log(rng.random(900))
        right = rng.random((900, len(risks))) < np.exp(log_p)[:, None] ** 0.15  # the chance of being right
        made = promise(risks, 0.95, (log_p[:300], right[:300]), (log_p[300:], right[300:]))
        if made.holds:
            p = np.exp(made.threshold)
            broken += 1 - (1 - p**1.15) / 1.15 / (1 - p) > 0.05  # the mean of p ** 0.15 above the threshold
    assert lower_limit(broken, runs, 0.999) <= 0.05


def test_no_promise_says_how_many_more_answers_it_needs():
    log_p, right = np.log(np.linspace(0.99, 1.0, 60)), np.ones(60, dtype=bool)
    made = whole(0.02, (log_p[:20], right[:20]), (log_p[20:], right[20:]))
    assert not made.holds
    assert 80 <= made.needed <= 1000
    hopeless = whole(0.02, (log_p[:20], ~right[:20]), (log_p[20:], ~right[20:]))
    assert hopeless.needed is None
    assert "a better student" in str(hopeless)
    assert whole(0.02, (log_p[:0], right[:0]), (log_p[:0], right[:0])).needed == 149
    assert not Promise().holds


def test_confidence_is_calibrated_where_margins_say_something():
    rng = np.random.default_rng(0)
    margin = rng.exponential(2.0, 4000)
    right = rng.random(4000) < 1 / (1 + np.exp(-(margin - 0.5)))
    groups = np.zeros(4000, dtype=np.int64)
    fitted = Confidence.fit(groups, margin, right)
    score = fitted.weights[0] @ np.stack([np.ones_like(margin), margin, np.log(margin + 1e-3)])
    p = 1 / (1 + np.exp(-score))
    for low in (0.3, 0.5, 0.7, 0.9):
        some = (p >= low) & (p < low + 0.1)
        assert abs(right[some].mean() - p[some].mean()) < 0.08


@pytest.mark.parametrize("right", [True, False])
def test_confidence_survives_what_has_no_variety(right):
    margin = np.full(50, np.inf)
    fitted = Confidence.fit(np.zeros(50, dtype=np.int64), margin, np.full(50, right))
    assert np.isfinite(fitted.weights).all()


# -- black boxes somewhere else ------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    reply: bytes | None = None

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"types": ["person"] * len(given["spans"]), "relations": []}
        body = json.dumps(answer).encode() if Handler.reply is None else Handler.reply
        self.send_response(200 if self.path == "/" else 500)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


def test_a_black_box_behind_http():
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, text = f"http://127.0.0.1:{server.server_port}", news()[0].unlabeled()
    try:
        answer = Endpoint(Extraction(), url + "/")(text)
        assert answer == replace(text, types=("person",) * len(text.spans), relations=())
        with pytest.raises(SolverError, match="did not answer: Internal Server Error"):
            Endpoint(Extraction(), url + "/wrong")(text)
        Handler.reply = b"<html>"
        with pytest.raises(SolverError, match="did not answer with JSON, but with b'<html>'"):
            Endpoint(Extraction(), url)(text)
        Handler.reply = b'{"relations": []}'
        with pytest.raises(CorpusError, match="'types' and 'relations'"):
            Endpoint(Extraction(), url)(text)
    finally:
        Handler.reply = None
        server.shutdown()
        server.server_close()
    with pytest.raises(SolverError, match="did not answer"):
        Endpoint(Extraction(), url, timeout=0.5)(text)
    with pytest.raises(SolverError, match="begins with http"):
        Endpoint(Extraction(), "file:///etc/passwd")


def test_a_black_box_that_is_a_command():
    text = Tagged("a", ("Ada", "laughs"))
    code = "import json,sys; print(json.dumps({'tags': ['X'] * len(json.load(sys.stdin)['tokens'])}))"
    assert Command(Tagging(), [sys.executable, "-c", code])(text).tags == ("X", "X")
    with pytest.raises(SolverError, match="failed with 3: oh no"):
        Command(Tagging(), [sys.executable, "-c", "import sys; sys.stderr.write('oh no'); sys.exit(3)"])(text)
    with pytest.raises(SolverError, match="did not answer: "):
        Command(Tagging(), ["no such command"])(text)
    with pytest.raises(SolverError, match="The words of a command must be a list, got 'cat -u'"):
        Command(Tagging(), "cat -u")
    with pytest.raises(SolverError, match="timed out"):
        Command(Tagging(), [sys.executable, "-c", "import time; time.sleep(9)"], timeout=0.2)(text)
    with pytest.raises(CorpusError, match="should be an object"):
        Command(Tagging(), [sys.executable, "-c", "print('[]')"])(text)
