"""A tagger is exact under every rule, survives what is hostile, and is saved whole."""

from __future__ import annotations

import json
from itertools import pairwise, product

import numpy as np
import pytest

from hasten import make_solver
from hasten.errors import CorpusError, ModelError, ProblemError, SchemaError
from hasten.proof.certifier import Certifier
from hasten.support.forms import save_tensors
from hasten.tasks.tagging import corpus as made_up
from hasten.tasks.tagging.corpus import Tagged
from hasten.tasks.tagging.model import TagModel
from hasten.tasks.tagging.rules import Rules
from hasten.tasks.tagging.tagger import FORMAT, SequenceTagger
from hasten.tasks.tagging.training import read, viterbi
from hasten.tasks.text.tables import entities, is_bio, to_bio
from hasten.tasks.text.words import Vocabulary

VERBS = "at least 1 VB or VBD or VBN or VBP or VBZ"


@pytest.fixture(scope="module")
def news():
    return list(made_up.generate(160, 0)), list(made_up.generate(160, 0, "bio"))


@pytest.fixture(scope="module")
def tagger(news):
    return SequenceTagger.train(news[0][:110], [VERBS, "at most 2 NN"], epochs=3)


@pytest.fixture(scope="module")
def entity_tagger(news):
    return SequenceTagger.train(news[1][:110], bio=True, epochs=3)


def brute(model: TagModel, costs: np.ndarray, allowed) -> float:
    """Returns the least cost of all tags of a sentence that are allowed."""
    best = np.inf
    for labels in product(range(len(model.tags)), repeat=len(costs)):
        if allowed(labels):
            total = sum(costs[i, label] for i, label in enumerate(labels))
            best = min(best, total + sum(model.follow[pair] for pair in pairwise(labels)))
    return best


def small(rng, tags, rules, bio=False):
    """Returns a model of random weights."""
    n = len(tags)
    weights = rng.normal(size=(64, n)).astype(np.float32), rng.normal(size=(n, n)).astype(np.float32)
    return TagModel(tuple(tags), *weights, Rules.of(tags, rules, bio=bio))


@pytest.mark.parametrize("seed", range(12))
def test_certified_tags_are_the_best_of_all_that_keep_the_rules(seed):
    rng = np.random.default_rng(seed)
    bio = seed % 2 == 0
    tags = ["B-x", "I-x", "O"] if bio else ["a", "b", "c"]
    rules = [f"at least {rng.integers(0, 3)} {tags[0]}", f"at most {rng.integers(0, 3)} {tags[1]} or {tags[2]}"]
    own = (f"no {tags[2]} after {tags[0]}",) if seed % 3 else ()
    model = small(rng, tags, rules, bio)
    sentence = Tagged("s", tuple(str(each) for each in rng.integers(0, 5, size=5)), rules=own)
    place = {tag: i for i, tag in enumerate(tags)}

    def allowed(labels):
        if any(pair == (place[tags[0]], place[tags[2]]) for pair in pairwise(labels)) and own:
            return False
        return not model.rules.broken(labels, tags)

    wanted = brute(model, model.costs([sentence]), allowed)
    answer = Certifier()(model.batch([sentence]))[0]
    assert answer.proved
    assert answer.cost == pytest.approx(wanted)


@pytest.mark.parametrize("seed", range(12))
def test_rules_with_a_price_are_broken_where_that_is_cheaper(seed):
    rng = np.random.default_rng(seed)
    tags, n = ["a", "b", "c"], int(rng.integers(0, 3))
    each = " each" if seed % 2 else ""
    model = small(rng, tags, [f"exactly {n} a, or pay 1.5{each}", "at most 2 b", "no c after c or pay 0.5"])
    sentence = Tagged("s", tuple(str(each) for each in rng.integers(0, 5, size=5)), rules=("at least 2 c or pay 0.75",))

    def price(labels):
        missed = abs(labels.count(0) - n)
        return 1.5 * (missed if each else missed > 0) + 0.75 * (labels.count(2) < 2)

    costs = model.costs([sentence])
    wanted = min(
        sum(costs[i, label] for i, label in enumerate(labels))
        + sum(model.follow[pair] for pair in pairwise(labels))
        + price(labels)
        for labels in product(range(3), repeat=5)
        if labels.count(1) <= 2
    )
    batch = model.batch([sentence])
    answer = Certifier()(batch)[0]
    assert answer.proved
    assert answer.cost == pytest.approx(wanted)
    assert model.follow[2, 2] == pytest.approx(0.5 - model.pairs[2, 2])
    found = model.viterbi(batch)
    labels = found.labels.tolist()
    assert len(labels) == 5
    assert found.cost[0] >= wanted - 1e-9 or not found.valid[0]
    plain = sum(costs[i, label] for i, label in enumerate(labels)) + sum(model.follow[p] for p in pairwise(labels))
    assert found.cost[0] == pytest.approx(plain + price(labels))


def test_sentences_that_break_a_rule_with_a_price_are_answered(tagger):
    soft = tagger.with_rules(["at least 3 NN, or pay 5 each"])
    found = list(soft.predict([[], ["a"], ["a", "b"], Tagged("x", (), rules=("at least 1 NN or pay 2",))]))
    assert [len(each.tags) for each in found] == [0, 1, 2, 0]
    assert all(each.proved for each in found)


@pytest.mark.parametrize("seed", range(5))
def test_viterbi_over_all_lengths_is_the_certifier_without_rules(seed):
    rng = np.random.default_rng(seed)
    n_tags = int(rng.integers(1, 7))
    model = small(rng, [f"t{i}" for i in range(n_tags)], ())
    lengths = rng.integers(0, 12, size=30)
    batch = model.batch([Tagged(str(n), tuple(map(str, rng.integers(0, 50, size=n)))) for n in lengths])
    ours, theirs = Certifier()(batch), model.viterbi(batch)
    assert ours.proved.all()
    assert ours.cost == pytest.approx(theirs.cost)
    assert (ours.labels == theirs.labels).all()
    alone = [model.viterbi(batch.select([p])).labels for p in range(len(batch))]
    assert (np.concatenate(alone) == theirs.labels).all()


def test_viterbi_keeps_what_is_forbidden():
    follow = np.array([[np.inf, 0.0], [0.0, np.inf]])
    found = viterbi(np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [5.0, 0.0]]), np.array([0, 3, 3, 4]), follow)
    assert found.tolist() == [0, 1, 0, 1]
    assert viterbi(np.zeros((0, 2)), np.array([0, 0]), follow).size == 0


def test_with_rules_every_answer_is_the_solvers(tagger, news):
    batch = tagger.model.batch(news[0][110:130])
    ours, solver = Certifier()(batch), make_solver("highs")
    assert ours.proved.all()
    assert ours.cost == pytest.approx([solver.solve(batch[p]).cost for p in range(len(batch))])
    assert not tagger.model.viterbi(batch).valid.all()  # which the rules are beyond


def test_tags_are_learned(tagger, entity_tagger, news):
    assert tagger.with_rules(()).evaluate(news[0][110:]).kinds["tag"].micro.f1 > 0.9
    found = entity_tagger.evaluate(news[1][110:])
    assert found.kinds["tag"].micro.f1 > 0.9
    assert found.kinds["entity"].micro.f1 > 0.6
    assert found.n_valid == found.n_proved == found.n == 50


def test_hostile_sentences_are_answered_or_told(tagger):
    long = ["word", "the", "old", "zzz\u2028", "\ud800"] * 200
    own = [Tagged("own", ("a", "b"), rules=("at least 3 IN",)), Tagged("none", (), rules=("at least 1 NN",))]
    given = [[], ["xyzzy"], long, *own]
    found = list(tagger.with_rules(["at most 5 NN"]).predict(given))
    assert found[0].tags == ()
    assert len(found[1].tags) == 1
    assert len(found[2].tags) == 1000
    assert sum(tag == "NN" for tag in found[2].tags) <= 5
    assert [each.tags for each in found[3:]] == [None, None]
    assert {each.reason for each in found[3:]} == {"No tags keep all rules in this sentence."}
    assert all(each.proved for each in found)


def test_rules_that_nothing_keeps_are_told_for_each_sentence(tagger):
    found = list(tagger.with_rules(["at least 3 NN"]).predict([["a", "b"], ["a", "b", "c"], []]))
    assert [each.tags is None for each in found] == [True, False, True]


def test_a_corpus_of_one_tag():
    tagger = SequenceTagger.train([Tagged("a", ("x", "y"), ("T", "T"))], epochs=1)
    assert [each.tags for each in tagger.predict([["z"] * 3, []])] == [("T",) * 3, ()]


def test_gold_that_the_model_lacks_is_a_lost_point_and_told(tagger):
    found = tagger.with_rules(()).evaluate([Tagged("a", ("the", "zzz"), ("DT", "NEW")), Tagged("b", ("the",), ("DT",))])
    assert (found.unreachable["n_texts"], found.unreachable["unknown"]) == (1, {"NEW": 1})
    assert "NEW (1)" in found.unreachable["in_words"]
    assert found.kinds["tag"].micro.f1 == pytest.approx(2 / 3)


def test_gold_that_breaks_the_rules_is_counted(tagger):
    known = [Tagged("a", ("the",), ("DT",)), Tagged("b", ("runs",), ("VBZ",))]
    lost = tagger.evaluate(known).unreachable
    assert (lost["n_texts"], lost["unknown"]) == (1, {})
    assert "one text" in lost["in_words"]
    assert tagger.evaluate(known[1:]).unreachable["in_words"] == "All gold labels can be reached."
    assert tagger.model.gold_broken(known) == 1


def test_search_mode_keeps_the_rules_or_says_that_it_found_nothing(tagger, news):
    searching = SequenceTagger(tagger.model, mode="search", width=4)
    for each in searching.predict(news[0][110:]):
        assert not each.proved
        if each.tags is not None:
            labels = [tagger.tags.index(tag) for tag in each.tags]
            assert tagger.model.rules.broken(labels, tagger.tags) == []
        else:
            assert "beam" in each.reason


def test_a_tagger_is_saved_and_loaded(tagger, news, tmp_path):
    place = tmp_path / "a" / "tagger"
    tagger.save(place)
    tagger.save(place)  # replaced
    again = SequenceTagger.load(place)
    assert again.model.rules.texts == tagger.model.rules.texts
    assert [each.tags for each in again.predict(news[0][:9])] == [each.tags for each in tagger.predict(news[0][:9])]
    assert [file.name for file in place.parent.iterdir()] == ["tagger"]


def test_other_files_are_neither_loaded_nor_replaced(tagger, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    for act in (tagger.save, SequenceTagger.load):
        with pytest.raises(ModelError, match=r"notes\.txt"):
            act(other)
    assert other.read_text() == "mine"
    tagger.save(tmp_path / "t")
    data = bytearray((tmp_path / "t").read_bytes())
    data[-9] ^= 1
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(ModelError, match="digest"):
        SequenceTagger.load(tmp_path / "t")


def test_misuse_is_told(tagger):
    with pytest.raises(SchemaError, match="Did you mean NN"):
        tagger.with_rules(["at most 1 nn"])
    with pytest.raises(SchemaError, match="The rules must be a list, got 'at most 1 NN'"):
        tagger.with_rules("at most 1 NN")
    with pytest.raises(CorpusError, match="Sentence 'q' is the string 'Ada left'"):
        Tagged("q", "Ada left")
    with pytest.raises(CorpusError, match="Sentence 'q': words are strings"):
        Tagged("q", (1, 2))
    with pytest.raises(CorpusError, match="Sentence 'q': Cannot read the rule"):
        list(tagger.predict([Tagged("q", ("a",), rules=("nonsense",))]))
    with pytest.raises(ProblemError, match="Give a list of its words"):
        list(tagger.predict(["the old man"]))
    with pytest.raises(ProblemError, match="mode"):
        SequenceTagger(tagger.model, mode="magic")
    with pytest.raises(CorpusError, match="nothing to evaluate"):
        tagger.evaluate([])


def test_the_seed_fixes_the_weights(news):
    one, same, other = (TagModel.train(news[0][:30], epochs=1, seed=seed) for seed in (3, 3, 4))
    assert (one.weights == same.weights).all()
    assert (one.weights != other.weights).any()


def test_features_of_a_sentence_do_not_depend_on_its_neighbours():
    vocabulary, one, two = Vocabulary(), ["the", "old", "man"], ["sleeps", "."]
    together = read([one, [], two], 1024, vocabulary).rows
    alone = [read([each], 1024).rows for each in (one, two)]
    assert (together == np.concatenate(alone)).all()
    assert read([], 1024, vocabulary).rows.shape[0] == 0


def test_iob1_is_read_as_bio():
    assert to_bio(["I-a", "I-a", "B-a", "O", "I-b", "I-a"]) == ("B-a", "I-a", "B-a", "O", "B-b", "B-a")
    iob1 = [Tagged("a", ("Ada", "Byron", "in", "Rome"), ("I-PER", "I-PER", "O", "I-LOC"))] * 3
    tagger = SequenceTagger.train(iob1, bio=True, epochs=2)
    assert tagger.tags == ("B-LOC", "B-PER", "I-PER", "O")
    found = tagger.evaluate(iob1)
    assert found.n_exact == 3
    assert found.unreachable["n_texts"] == tagger.model.gold_broken(iob1) == 0


def test_entities_are_spans_of_bio_tags():
    assert entities(["B-a", "I-a", "B-a", "I-b", "O", None]) == {(0, 2, "a"), (2, 3, "a"), (3, 4, "b")}
    assert is_bio(["O", "B-a"])
    assert not is_bio(["O"])
    assert not is_bio(["NOUN", "B-a"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tags": ["a", "a"]}, "each once"),
        ({"tags": ["a"]}, "shape"),
        ({"tags": []}, ">= 1"),
        ({"rules": ["at least 1 c"]}, "not there"),
        ({"rules": "at least 1 a"}, "Expected `array`"),
        ({"bio": "yes"}, "Expected `bool`"),
        ({"bio": True}, "BIO tags"),
        ({"width": 0}, "width"),
        ({"mode": "magic"}, "mode"),
        ({"more": 1}, "more"),
        ({"features": -1}, "features"),
        ({"features": 77}, "another version"),
        ({"tags": None}, "Expected `array`"),
    ],
)
def test_forged_files_are_refused_by_form(tmp_path, change, said):
    model = small(np.random.default_rng(0), ["a", "b"], ())
    tensors, about = model.content()
    about |= {"mode": "certified", "width": 4} | change
    save_tensors(tmp_path / "t", FORMAT, tensors, {"tagger": json.dumps(about)})
    with pytest.raises(ModelError, match=said):
        SequenceTagger.load(tmp_path / "t")


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.full((64, 2), np.nan, np.float32)},
        {"weights": np.zeros((63, 2), np.float32)},
        {"weights": np.zeros((64, 2))},
        {"pairs": np.zeros((2, 3), np.float32)},
        {"extra": np.zeros(1, np.float32)},
    ],
)
def test_forged_weights_are_refused_by_form(tmp_path, change):
    model = small(np.random.default_rng(0), ["a", "b"], ())
    tensors, about = model.content()
    said = json.dumps(about | {"mode": "certified", "width": 4})
    save_tensors(tmp_path / "t", FORMAT, tensors | change, {"tagger": said})
    with pytest.raises(ModelError):
        SequenceTagger.load(tmp_path / "t")
