"""The black box: lazy costs are the eager ones, training learns, and a damaged file is refused."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sentences import installed

from hasten.errors import CorpusError, ModelError
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import read_corpus
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer, all_variables, score_variables
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import NO_RELATION, PAPER_ARGUMENTS, PAPER_ENTITIES, PAPERS, EntityRelationTask

ENTITIES = ("person", "location", "none")
RELATIONS = ("LiveIn", "LocatedAt", "NoRel")
ARGUMENTS = {"LiveIn": ("person", "location"), "LocatedAt": ("location", "location")}
TASK = EntityRelationTask(ENTITIES, {name: {pair} for name, pair in ARGUMENTS.items()})

PEOPLE = ("Colin", "Ada Quill", "Mrs. Moth", "Bertil", "Old Noor", "Piet")
PLACES = ("Wobbling", "Port Ember", "Ludd", "North Sallow", "Grum", "Tarnby")
THINGS = ("Tuesday", "Latin", "Ember Ale", "Psalter")
PATTERNS = (
    ("{person} lives in {location} .", "LiveIn", 0, 1),
    ("The {location} house of {person} burned .", "LiveIn", 1, 0),
    ("{location} , {location} , woke late .", "LocatedAt", 0, 1),
    ("{person} flew over {location} .", None, 0, 1),
    ("On {none} , {person} sang .", None, 0, 1),
    ("{person} met {person} on {none} .", None, 0, 1),
)


def toy(n, seed):
    """Writes `n` sentences from the patterns above, which a linear model can tell apart."""
    random = np.random.default_rng(seed)
    for number in range(n):
        pattern, name, source, target = PATTERNS[random.integers(len(PATTERNS))]
        tokens, spans, types = [], [], []
        for piece in pattern.split():
            kind = piece.strip("{}")
            names = {"person": PEOPLE, "location": PLACES, "none": THINGS}.get(kind)
            words = [piece] if names is None else str(random.choice(names)).split()
            if names is not None:
                spans.append((len(tokens), len(tokens) + len(words)))
                types.append(kind)
            tokens += words
        relations = () if name is None else ((source, target, name),)
        yield Sentence(str(number), tuple(tokens), tuple(spans), None, tuple(types), relations)


def allowed(n, labels):
    """Says whether labels keep the argument types and relate each pair one way at most."""
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    names = [RELATIONS[label] for label in labels[n:]]
    for q, (i, j) in enumerate(pairs):
        if "NoRel" not in names[2 * q : 2 * q + 2]:
            return False
        for (source, target), name in zip(((i, j), (j, i)), names[2 * q : 2 * q + 2], strict=True):
            if name != "NoRel" and (ENTITIES[labels[source]], ENTITIES[labels[target]]) != ARGUMENTS[name]:
                return False
    return True


OUTPUTS = {
    n: np.array([y for y in product(range(3), repeat=n * n) if allowed(n, y)], np.int64).reshape(-1, n * n)
    for n in (1, 2)
}


def enumerate_outputs(n_entities, costs, cost_at):
    """The slow exact inference: tries every valid output (all label sets have three labels here)."""
    found = []
    for p, n in enumerate(n_entities):
        table = costs[cost_at[p] : cost_at[p + 1]].reshape(n * n, 3)
        totals = table[np.arange(n * n), OUTPUTS[n]].sum(1)
        found.append(OUTPUTS[n][totals.argmin()])
    return np.concatenate(found)


def small(sentences):
    return [sentence for sentence in sentences if len(sentence.spans) <= 2]


def solved(model, sentences):
    """The cheapest valid labels and the gold ones."""
    text = intern(sentences)
    found = enumerate_outputs(text.n_entities, *model.costs(text))
    return found, np.concatenate([gold(s, ENTITIES, RELATIONS) for s in sentences])


@pytest.fixture(scope="module")
def independent():
    return train_black_box("independent", list(toy(300, 0)), TASK, n_buckets=2**12, seed=0)


@pytest.fixture(scope="module")
def structured():
    return train_black_box("structured", small(toy(300, 0)), TASK, n_buckets=2**12, seed=0)


@pytest.fixture(params=["independent", "structured"])
def model(request):
    return request.getfixturevalue(request.param)


def odd_text():
    crowd = Sentence("24", tuple(f"Name{n}" for n in range(60)), tuple((2 * n, 2 * n + 1) for n in range(24)))
    nobody, someone = Sentence("0", ("quiet", "."), ()), Sentence("1", ("Colin",), ((0, 1),))
    tagged = Sentence("pos", ("Ada", "left", "Ludd"), ((0, 1), (2, 3)), ("NNP", "VBD", "NNP"))
    return intern([nobody, *toy(20, 5), someone, nobody, crowd, tagged, nobody])


def test_lazy_costs_are_the_eager_ones_bit_for_bit(model):
    text = odd_text()
    costs, cost_at = model.costs(text)
    scorer = model.lazy(text)
    problems, variables = all_variables(text)
    order = np.random.default_rng(0).permutation(len(problems))
    asked = scorer(problems[order], variables[order]).reshape(-1, 3)
    assert asked.tobytes() == costs.reshape(-1, 3)[order].tobytes()
    for p in range(text.n_sentences):
        n = text.n_variables[p]
        own = scorer(np.full(n, p), np.arange(n))
        assert own.tobytes() == costs[cost_at[p] : cost_at[p + 1]].tobytes()
        for v in range(min(n, 30)):
            one = scorer(np.array([p]), np.array([v]))
            assert one.tobytes() == own[3 * v : 3 * v + 3].tobytes()


def test_label_sets_may_differ_in_size():
    random = np.random.default_rng(1)
    entity, relation = (random.normal(size=(64, n)).astype(np.float32) for n in (2, 5))
    model = LinearScorer(("a", "b"), ("r", "s", "t", "u", "none"), entity, relation, "structured")
    text = intern(small(toy(9, 2)))
    costs, cost_at = model.costs(text)
    assert_array_equal(np.diff(cost_at), text.n_entities * 2 + (text.n_variables - text.n_entities) * 5)
    scorer = model.lazy(text)
    assert_array_equal(scorer(np.array([0, 0]), np.array([2, 1])), np.r_[costs[4:9], costs[2:4]])
    assert scorer(np.empty(0, np.int64), np.empty(0, np.int64)).size == 0


def test_independent_costs_are_log_probabilities(independent):
    costs, _ = independent.costs(odd_text())
    np.testing.assert_allclose(np.exp(-costs.reshape(-1, 3)).sum(1), 1.0)


def test_a_trained_black_box_beats_the_majority(model):
    found, truth = solved(model, small(toy(200, 9)))
    assert (found == truth).mean() > 0.95 > np.bincount(truth).max() / len(truth)
    assert (found == truth)[truth < 2].mean() > 0.9


def test_structured_training_separates_what_can_be_separated(structured):
    assert_array_equal(*solved(structured, small(toy(300, 0))))


def test_a_seed_fixes_the_weights_and_progress_is_told():
    sentences, told = small(toy(40, 3)), []

    def train(seed):
        how = {"epochs": 2, "n_buckets": 2**10, "seed": seed}
        return (
            train_black_box("independent", sentences, TASK, **how),
            train_black_box(
                "structured", sentences, TASK, **how, progress=lambda stage, share, note="": told.append(share)
            ),
        )

    for one, two, other in zip(train(1), train(1), train(2), strict=True):
        assert one.relation_weights.tobytes() == two.relation_weights.tobytes()
        assert one.relation_weights.tobytes() != other.relation_weights.tobytes()
    assert told == [0.0, 0.5, 1.0] * 3


def test_training_on_sentences_without_pairs_is_harmless():
    alone = [
        Sentence("1", ("Colin",), ((0, 1),), None, ("person",), ()),
        Sentence("0", ("hm",), (), None, (), ()),
    ]
    for model in (
        train_black_box("independent", alone, TASK, n_buckets=64, seed=0),
        train_black_box("structured", alone, TASK, n_buckets=64, seed=0),
    ):
        costs, _ = model.costs(intern(alone))
        assert costs.argmin() == 0
        assert not model.relation_weights.any()


def test_training_says_what_it_needs():
    for sentences in ([], [Sentence("0", ("hm",), (), None, (), ())]):
        with pytest.raises(CorpusError, match="nothing to learn from"):
            train_black_box("structured", sentences, TASK, seed=0)
    for n_buckets in (0, 1000):
        with pytest.raises(ModelError, match="power of two"):
            train_black_box("independent", list(toy(5, 0)), TASK, n_buckets=n_buckets, seed=0)


def test_gold_labels_follow_the_variables():
    sentence = Sentence(
        "g",
        tuple("abcd"),
        ((0, 1), (1, 2), (3, 4)),
        None,
        ("location", "person", "none"),
        ((1, 0, "LiveIn"), (1, 2, "LocatedAt")),
    )
    # entities, then (0,1) and back, (0,2) and back, (1,2) and back
    assert gold(sentence, ENTITIES, RELATIONS).tolist() == [1, 0, 2, 2, 0, 2, 2, 1, 2]
    with pytest.raises(CorpusError, match=r"'g' has no gold labels\. Give its types"):
        gold(sentence.unlabeled(), ENTITIES, RELATIONS)
    with pytest.raises(CorpusError, match=r"'g'.*lacks.*model's labels are \('person',\)"):
        gold(sentence, ("person",), RELATIONS)


def test_what_a_file_holds_makes_the_model_again(model):
    back = LinearScorer.of_tensors(model.tensors(), model.about())
    assert (back.entity_labels, back.relation_labels) == (ENTITIES, RELATIONS)
    assert back.training == model.training
    assert model.costs(odd_text())[0].tobytes() == back.costs(odd_text())[0].tobytes()


def test_weights_that_cannot_be_written_compile_nothing(model):
    """As those of a pickle that shares its memory, or of a mapped file."""
    text = intern(list(toy(10, seed=3)))
    costs, _ = model.costs(text)
    n_versions = len(score_variables.overloads)
    buffers = []
    pickled = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    shared = pickle.loads(pickled, buffers=[bytes(each) for each in buffers])
    frozen = [weights.copy() for weights in (model.entity_weights, model.relation_weights)]
    for weights in frozen:
        weights.flags.writeable = False
    given = replace(model, entity_weights=frozen[0], relation_weights=frozen[1])
    for same in (shared, given):
        assert_array_equal(same.costs(text)[0], costs)
    assert len(score_variables.overloads) == n_versions


@pytest.mark.parametrize(
    ("entity", "training", "message"),
    [
        (np.zeros((3, 3), np.float32), "structured", "power of two"),
        (np.zeros((4, 2), np.float32), "structured", "one column for each label"),
        (np.zeros((4, 3)), "structured", "float32"),
        (np.full((4, 3), np.nan, np.float32), "structured", "finite"),
        (np.zeros((4, 3), np.float32), "guessed", "'guessed' is unknown"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(entity, training, message):
    with pytest.raises(ModelError, match=message):
        LinearScorer(ENTITIES, RELATIONS, entity, np.zeros((4, 3), np.float32), training)


@pytest.mark.corpus
def test_independent_training_does_as_well_as_the_paper_on_its_corpus():
    path = installed("conll04/conll04.corp.gz")
    entities, relations = PAPER_ENTITIES, (*PAPER_ARGUMENTS, NO_RELATION)
    sentences = [sentence for sentence in read_corpus(path, "conll04") if sentence.relations]
    order = np.random.default_rng(0).permutation(len(sentences))
    train, test = ([sentences[i] for i in part] for part in np.split(order, [round(0.7 * len(order))]))
    text = intern(test)
    costs, _ = train_black_box("independent", train, PAPERS, seed=0).costs(text)
    problems, variables = all_variables(text)
    is_entity = variables < text.n_entities[problems]
    first = np.cumsum(np.where(is_entity, 4, 6))
    found = np.array([block.argmin() for block in np.split(costs, first[:-1])])
    truth = np.concatenate([gold(s, entities, relations) for s in test])
    for chosen, none, paper in ((is_entity, 3, 0.827), (~is_entity, 5, 0.482)):
        y, g = found[chosen], truth[chosen]
        assert 2 * ((y == g) & (g != none)).sum() / ((y != none).sum() + (g != none).sum()) > paper
