"""A speedup is an estimator: scikit-learn's own checks, its splits, searches and pipelines hold for it."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as TheirNotFittedError
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing, get_tags, indexable, resample, shuffle
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted

from hasten.errors import NotFittedError, ProblemError
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.solvers import make_solver
from hasten.speedup.parts import Limits, Search, Trust
from hasten.speedup.predictor import Speedup

# -- scikit-learn's checks -----------------------------------------------------------------------------------

MODES = ("certified", "search")
MATRIX = "it is about matrices; a speedup's inputs are problems, which check their costs when they are made"
INAPPLICABLE = {
    "check_n_features_in_after_fitting": "problems have no fixed number of features",
    "check_n_features_in": "problems have no fixed number of features",
    "check_complex_data": MATRIX,
    "check_dtype_object": MATRIX,
    "check_estimators_empty_data_messages": MATRIX,
    "check_estimators_nan_inf": MATRIX,
    "check_estimator_sparse_tag": MATRIX,
    "check_estimator_sparse_array": MATRIX,
    "check_estimator_sparse_matrix": MATRIX,
    "check_fit1d": MATRIX,
    "check_fit2d_predict1d": MATRIX,
    "check_parameters_default_constructible": "it does not know that the default parts cannot change",
    "check_array_api_input": "scikit-learn itself leaves it out unless SCIPY_ARRAY_API is set",
}
APPLICABLE = {
    "check_estimators_overwrite_params",
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_fit_score_takes_y",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_estimators_unfitted",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_positive_only_tag_during_fit",
    "check_estimators_dtypes",
    "check_pipeline_consistency",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_get_params_invariance",
    "check_set_params",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
}


class OfRows(Speedup):
    """A speedup that reads each row of a matrix as a problem, so that checks written for matrices reach it.

    A feature is a variable: `on` costs its value, `off` nothing; neighbours that are both on cost half more.
    """

    def fit(self, X: Any, y: Any = None) -> Speedup:
        return super().fit(self.problems(X))

    def partial_fit(self, X: Any, y: Any = None) -> Speedup:
        return super().partial_fit(self.problems(X))

    def predict(self, X: Any) -> Any:
        return super().predict(self.problems(X)).labels.reshape(len(X), -1)

    def score(self, X: Any, y: Any = None) -> float:
        return super().score(self.problems(X))

    def problems(self, X: Any) -> Batch:
        X = np.asarray(X)
        shape, kinds = self.schema.structure(), self.schema.variables
        features = [shape.add(kinds["feature"]) for _ in range(X.shape[1])]
        for left, right in pairwise(features):
            shape.connect(self.schema.factors["pair"], left=left, right=right)
        return shape.batch(np.stack([X, np.zeros(X.shape)], axis=2).reshape(len(X), -1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        return tags


@lru_cache
def checks(mode: str) -> list[tuple[str, Callable[[], None]]]:
    """Returns scikit-learn's checks of an estimator, by name, ready to be called."""
    schema = Schema()
    feature = schema.variable("feature", ["on", "off"])
    schema.factor("pair", left=feature, right=feature).cost(0.5, left="on", right="on")
    estimator = OfRows(schema, answer=mode)
    found = []
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # that it does not inherit from theirs
        generated = list(estimator_checks_generator(estimator))
    for each, check in generated:
        options = ", ".join(f"{name}={value}" for name, value in check.keywords.items())
        found.append((f"{check.func.__name__}({options})", lambda each=each, check=check: check(each)))
    return found


def name_of(check: str) -> str:
    return check.partition("(")[0]


@pytest.mark.parametrize("mode", MODES)
def test_every_check_of_scikit_learn_is_known(mode):
    unfitted = set() if mode == "search" else {"check_estimators_unfitted"}  # certified mode needs no fit
    assert {name_of(check) for check, _ in checks(mode)} == (APPLICABLE | INAPPLICABLE.keys()) - unfitted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("mode", "check"), [(mode, check) for mode in MODES for check, _ in checks(mode)])
def test_the_checks_pass_but_those_that_cannot_apply(mode, check):
    run = dict(checks(mode))[check]
    if name_of(check) in INAPPLICABLE:
        with pytest.raises((Exception, SkipTest)):
            run()
    else:
        run()


def test_a_speedup_says_that_its_inputs_are_not_matrices():
    with pytest.warns(SkipTestWarning, match="Can't test estimator Speedup"):
        left = list(estimator_checks_generator(Speedup(pets().schema)))
    for estimator, check in left:
        check(estimator)
    tags = get_tags(Speedup(pets().schema))
    assert (tags.input_tags.two_d_array, tags.target_tags.required, tags.estimator_type) == (False, False, None)


# -- splits, searches, pipelines -------------------------------------------------------------------------------


@lru_cache
def pets() -> Structure:
    """Three pets in a row; a cat is not beside a dog."""
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog", "fish"])
    beside = schema.factor("beside", left=pet, right=pet)
    beside.forbid(left="cat", right="dog").forbid(left="dog", right="cat")
    shape = schema.structure()
    row = [shape.add(pet) for _ in range(3)]
    for left, right in pairwise(row):
        shape.connect(beside, left=left, right=right)
    return shape


def rows(n: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, pets().n_labels))


def lazy(n: int = 60) -> Batch:
    given = pets().batch(rows(n))

    def scorer(problems, variables):
        return np.concatenate([given[int(p)].costs_of(int(v)) for p, v in zip(problems, variables, strict=True)])

    return Batch.build([pets()], np.zeros(n, dtype=int), scorer)


def search(**settings: Any) -> Speedup:
    """A narrow search; settings of the search are set on it, others on the speedup."""
    inner = {name: settings.pop(name) for name in [*settings] if name in Search.__dataclass_fields__}
    answer = Search(**{"width": 1, "look_ahead": False, "reduce": False, "guided": False} | inner)
    return Speedup(pets().schema, answer=answer, **settings)


def as_list(batch: Batch) -> list[Problem]:
    return [batch[p] for p in range(len(batch))]


def as_objects(batch: Batch) -> np.ndarray:
    array = np.empty(len(batch), dtype=object)
    array[:] = as_list(batch)
    return array


FORMS = pytest.mark.parametrize("form", [lambda batch: batch, as_list, as_objects], ids=["batch", "list", "objects"])


@FORMS
def test_cross_validation_scores_each_fold_as_a_speedup_would(form):
    batch = pets().batch(rows())
    folds = KFold(4, shuffle=True, random_state=0)
    scores = cross_val_score(search(), form(batch), cv=folds, error_score="raise")
    expected = [search().fit(batch[learn]).score(batch[test]) for learn, test in folds.split(batch)]
    assert scores.tolist() == expected
    assert 0 < min(scores) <= max(scores) < 1
    assert (cross_val_score(Speedup(pets().schema), form(batch), error_score="raise") == 1).all()


@FORMS
@pytest.mark.parametrize("gold", ["solutions", "names", "numbers"])
def test_answers_are_split_with_their_problems(form, gold):
    batch = pets().batch(rows())
    found = Certifier()(batch)
    answers = {"solutions": found, "names": [each.names for each in found], "numbers": found.labels.reshape(-1, 3)}
    asked = []

    def solver(problem):
        asked.append(problem)
        return make_solver("brute").solve(problem)

    estimator = search(trust=Trust(prove=False), solver=solver, guided=True)
    scores = cross_val_score(estimator, form(batch), answers[gold], cv=3, error_score="raise")
    assert scores.tolist() == cross_val_score(estimator, form(batch), cv=3, error_score="raise").tolist()
    assert len(asked) == 60 + 2 * 60  # with the answers given, the solver is not asked


def test_lazy_problems_stay_lazy_when_they_are_split():
    learn, test = train_test_split(lazy(), random_state=0)
    assert learn.lazy
    assert test.lazy
    scores = cross_val_score(search(), lazy(), error_score="raise")
    assert scores.tolist() == cross_val_score(search(), pets().batch(rows()), error_score="raise").tolist()


@FORMS
def test_a_grid_search_scores_all_settings_and_takes_the_best(form):
    batch, grid = pets().batch(rows()), {"answer__width": [1, 27], "answer__theta": [0.0, math.inf]}
    found = GridSearchCV(search(), grid, error_score="raise").fit(form(batch))
    for settings, score in zip(found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True):
        assert score == pytest.approx(cross_val_score(search().set_params(**settings), batch).mean())
    assert found.best_params_ == {"answer__width": 27, "answer__theta": math.inf}  # which never prunes
    assert found.best_score_ == 1
    assert found.predict(form(batch)).valid.all()


def test_a_grid_search_reaches_the_settings_of_the_learner():
    speedup = search(guided=True, learner=Learner())
    found = GridSearchCV(
        speedup, {"answer__learner__epochs": [1, 4], "answer__learner__seed": [3]}, error_score="raise"
    )
    found.fit(pets().batch(rows()))
    assert found.best_estimator_.answer.learner.seed == 3
    assert speedup.answer.learner.seed == 0  # the one that was given is left alone


def test_a_pipeline_goes_from_raw_inputs_to_answers():
    pipeline = Pipeline([("problems", FunctionTransformer(pets().batch)), ("speedup", search())])
    raw = rows()
    with pytest.raises(TheirNotFittedError):
        pipeline.predict(raw)
    assert cross_val_score(pipeline, raw, error_score="raise").tolist() == (
        cross_val_score(search(), pets().batch(raw), error_score="raise").tolist()
    )
    found = GridSearchCV(pipeline, {"speedup__answer__width": [1, 27]}, error_score="raise").fit(raw)
    assert found.best_params_ == {"speedup__answer__width": 27}
    assert (found.predict(raw).labels == Certifier()(pets().batch(raw)).labels).all()
    assert "Speedup" in pipeline._repr_html_()
    taught = pipeline.set_params(speedup__answer__learner=Learner())
    assert "answer__learner__seed" in taught.get_params()["speedup"].get_params()
    assert pipeline.set_params(speedup__answer__learner__seed=5)["speedup"].answer.learner.seed == 5


def test_what_needs_no_fit_answers_in_a_pipeline_at_once():
    pipeline = Pipeline([("problems", FunctionTransformer(pets().batch)), ("speedup", Speedup(pets().schema))])
    assert pipeline.predict(rows()).proved.all()


def test_batches_are_indexed_as_scikit_learn_indexes():
    batch = pets().batch(rows(10))
    mask = np.arange(10) % 2 == 0
    for key in (mask, mask.tolist(), np.flatnonzero(mask), [0, 2, 4, 6, 8], slice(0, 10, 2)):
        some = _safe_indexing(batch, key)
        assert isinstance(some, Batch)
        assert (some.cost == rows(10)[mask].ravel()).all()
    assert isinstance(_safe_indexing(batch, 3), Problem)
    assert indexable(batch, range(10))[0] is batch
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        indexable(batch, range(9))
    learn, test, seven, three = train_test_split(batch, np.arange(10), test_size=3, random_state=0)
    assert (learn.cost == rows(10)[seven].ravel()).all()
    assert (test.cost == rows(10)[three].ravel()).all()
    assert len(resample(batch, n_samples=20, random_state=0)) == 20
    assert isinstance(shuffle(batch, random_state=0), Batch)


def test_predictions_across_folds_are_solutions():
    batch = pets().batch(rows())
    answers = cross_val_predict(Speedup(pets().schema), batch)
    assert [answer.cost for answer in answers] == Certifier()(batch).cost.tolist()


# -- fitted or not ---------------------------------------------------------------------------------------------


def test_to_be_fitted_is_to_be_able_to_answer():
    batch = pets().batch(rows(30))
    check_is_fitted(Speedup(pets().schema))
    check_is_fitted(search(learn=True))
    fresh = search()
    with pytest.raises(TheirNotFittedError):
        check_is_fitted(fresh)
    with pytest.raises(TheirNotFittedError, match="Call fit") as caught:
        fresh.predict(batch)
    assert isinstance(caught.value, NotFittedError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, NotFittedError)
    assert str(again) == str(caught.value)
    check_is_fitted(fresh.fit(batch))
    check_is_fitted(search().partial_fit(batch))


def test_scikit_learn_is_neither_needed_nor_imported():
    code = "import hasten, sys; repr(hasten.Speedup(hasten.Schema())); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- settings --------------------------------------------------------------------------------------------------


def test_a_clone_of_a_clone_has_the_settings_and_nothing_that_was_learned():
    speedup = search(learner=Learner(3, epochs=2), seed=4).fit(pets().batch(rows()))
    copy = clone(clone(speedup))
    assert copy.get_params() == speedup.get_params()
    assert copy.schema is speedup.schema
    assert copy.counters != speedup.counters
    with pytest.raises(NotFittedError):
        copy.predict(pets().batch(rows()))
    copy.set_params(answer__learner__epochs=7)
    assert (copy.answer.learner.epochs, speedup.answer.learner.epochs) == (7, 2)
    assert (copy.answer.learner.width, speedup.answer.learner.width) == (3, 3)


def test_settings_of_a_setting_are_settings_too():
    speedup = search(learner=Learner(3))
    deep, shallow = speedup.get_params(), speedup.get_params(deep=False)
    assert shallow.items() <= deep.items()
    parts = {"answer": Search, "trust": Trust, "limits": Limits, "answer__learner": Learner}
    assert {name for name in deep if "__" in name} == {
        f"{part}__{field.name}" for part, kind in parts.items() for field in fields(kind) if field.init
    }
    assert len(shallow) == 9
    assert clone(speedup).set_params(**deep).get_params() == deep
    speedup.set_params(answer__learner__epochs=3, answer=Search(learner=Learner(5)))  # the part first, in any order
    assert (speedup.answer.learner.width, speedup.answer.learner.epochs) == (5, 3)


def test_a_shorthand_has_the_settings_of_its_part():
    speedup = Speedup(pets().schema, answer="search")
    assert speedup.get_params()["answer__width"] == Search().width
    assert speedup.get_params(deep=False)["answer"] == "search"
    assert speedup.set_params(answer__width=5, trust__audit=0.5).answer == Search(width=5)
    assert speedup.trust == Trust(audit=0.5)


def test_a_solver_with_settings_is_set_like_a_learner():
    @dataclass(frozen=True)
    class Patient:
        seconds: int = 1

        def solve(self, problem):
            return make_solver("brute").solve(problem)

    speedup = search(solver=Patient())
    assert speedup.get_params()["solver__seconds"] == 1
    assert clone(speedup).set_params(solver__seconds=2).solver == replace(speedup.solver, seconds=2)
    assert speedup.solver.seconds == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"depth": 3}, r"Speedup has no setting depth. It has schema, solver, "),
        ({"depth__deeper": 3, "seed": 5}, "Speedup has no setting depth"),
        ({"answer__learner__depth": 3, "seed": 5}, "Learner has no setting depth. It has width, step, "),
        (
            {"solver__time_limit": 3, "seed": 5},
            "solver is 'highs', which has no settings of its own. Set solver",
        ),
        (
            {"answer__learner": None, "answer__learner__epochs": 3, "seed": 5},
            "learner is None, which has no settings of its own",
        ),
    ],
)
def test_settings_that_do_not_exist_are_refused_and_nothing_is_changed(wrong, message):
    speedup = search(learner=Learner())
    before = speedup.get_params()
    with pytest.raises(ValueError, match=message):
        speedup.set_params(**wrong)
    assert speedup.get_params() == before


def test_settings_are_kept_as_given_and_checked_when_they_are_used():
    speedup = Speedup("no schema", seed=-1, answer="wide")
    assert speedup.get_params()["seed"] == -1
    with pytest.raises(ProblemError, match="answer must be 'certified' or"):
        speedup.set_params(schema=pets().schema).predict(pets().batch(rows(2)))
    with pytest.raises(ProblemError, match="seed must be at least 0"):
        speedup.set_params(answer="certified").predict(pets().batch(rows(2)))
    assert speedup.set_params(seed=3).predict(pets().batch(rows(2))).valid.all()


def test_the_seed_that_counts_is_the_one_at_first_use():
    batch = pets().batch(rows(200))
    learning = {"learn": True, "trust": Trust(audit=0.3, min_agreement=None)}
    late = search(**learning).set_params(seed=8).predict(batch).proved
    assert (late == search(seed=8, **learning).predict(batch).proved).all()
    assert (late != search(**learning).predict(batch).proved).any()
