"""Fitting a speedup to shards."""

import numpy as np
import pytest
from strategies import entity_relation

from hasten.errors import ProblemError
from hasten.learning.learner import Learner
from hasten.learning.mixing import fit_shards
from hasten.model.solution import Solutions
from hasten.speedup.calibration import disagreeing
from hasten.speedup.parts import Search
from hasten.speedup.predictor import Speedup


@pytest.fixture(scope="module")
def batch():
    shape = entity_relation(2)
    return shape.batch(np.random.default_rng(0).normal(size=(400, shape.n_labels)))


def dealt(batch, n):
    return [batch.select(np.arange(i, len(batch), n)) for i in range(n)]


def test_decisions_rest_on_what_all_shards_held_out(batch):
    speedup = Speedup(batch.structures[0].schema, answer=Search(width=1, enforce=False, look_ahead=False, reduce=False))
    found = speedup.fit_shards(dealt(batch, 4))
    assert len(found.held_out) == 40
    assert found.mixture.n_shards == 4
    assert found.mixture.learner.trace[0].n_examples == 360
    assert speedup.counters.labelled == 400
    truth, _ = Speedup(speedup.schema)._oracle.answers(found.held_out)
    answers = speedup.answer.with_weights(speedup.heuristic.weights if found.guided else None)(found.held_out)
    assert found.agreement.n == 40
    assert found.agreement.estimate == (~disagreeing(answers, truth)).mean()
    assert 0 < found.agreement.estimate < 1
    plain = disagreeing(speedup.answer.with_weights(None)(found.held_out), truth).sum()
    learned = disagreeing(speedup.answer.with_weights(speedup.heuristic.weights)(found.held_out), truth).sum()
    assert found.guided == (learned < plain)
    calibration = speedup.calibrate(found.held_out, risk=0.2)
    assert calibration.table[0].n == 32  # all but the fifth that chooses the candidates


def test_what_is_learned_is_what_mixing_learns_from_what_was_not_held_out(batch):
    learner = Learner(1, epochs=2, progress=False)
    speedup = Speedup(batch.structures[0].schema, answer=Search(width=1, learner=learner))
    parts = dealt(batch, 3)
    found = speedup.fit_shards(parts)
    left = []
    for i, part in enumerate(parts):
        held = np.random.default_rng((0, i)).permutation(len(part))[: len(part) // 10]
        kept = part.select(np.setdiff1d(np.arange(len(part)), held))
        left.append((kept, Solutions.labels.fget(Speedup(speedup.schema)._oracle.answers(kept)[0])))
    expected = fit_shards(Learner(1, epochs=2, shuffle=False, progress=False), left).learner
    again = Speedup(speedup.schema, answer=Search(width=1, learner=Learner(1, epochs=2, shuffle=False)))
    assert again.set_params(n_jobs=2).fit_shards(parts).mixture.learner.weights == pytest.approx(expected.weights)
    assert found.mixture.learner.n_examples == expected.n_examples


def test_tables_and_gates_are_not_learned_from_shards(batch):
    with pytest.raises(ProblemError, match="Shards teach the heuristic alone"):
        Speedup(batch.structures[0].schema, answer="learned").fit_shards(dealt(batch, 2))
