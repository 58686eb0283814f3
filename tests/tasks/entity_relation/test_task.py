"""The task's schema, its structures, and the folding of its features."""

from itertools import accumulate

import naive
import numpy as np
import pytest
from strategies import entity_relation

from hasten.errors import CorpusError, SchemaError
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.scoring import black_box
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.scoring.gold import Unreachable, gold
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import FEATURES, PAPER_ARGUMENTS, EntityRelationTask, ordered_pairs


@pytest.fixture(scope="module")
def task() -> EntityRelationTask:
    return EntityRelationTask()


@pytest.mark.parametrize("n_entities", [0, 1, 2, 5, 24, 30])
def test_a_structure_has_an_entity_per_span_and_a_relation_each_way(task, n_entities):
    structure = task.structure(n_entities)
    assert structure.n_variables == n_entities**2
    assert structure is task.structure(n_entities)


def test_the_schema_is_the_papers_as_the_tests_write_it_out(task):
    schema, written_out = task.schema, entity_relation(2).schema
    for name in ("entity", "relation"):
        assert schema.variables[name].labels == written_out.variables[name].labels
    for name in ("args", "both"):
        np.testing.assert_array_equal(schema.factors[name].table, written_out.factors[name].table)


def test_each_set_of_features_adds_to_the_one_before():
    sizes = [EntityRelationTask(features=features).schema.n_weights for features in FEATURES]
    triples, pairs, both = 4 * 6 * 4, 2 * 4 * 6, 6 * 6
    assert sizes == list(accumulate([triples, pairs, both]))


def test_pairs_are_in_the_order_of_the_variables(task):
    structure = task.structure(4)
    args = [factor for factor in structure.factors if factor.kind.name == "args"]
    scopes = {factor.scope[1]: (factor.scope[0], factor.scope[2]) for factor in args}
    assert [scopes[v] for v in range(4, 16)] == ordered_pairs(4)


def test_relations_demand_their_arguments(task):
    problem = task.structure(2).problem(np.zeros(20))
    assert problem.check(["person", "location", "LiveIn", "NoRel"])
    broken = problem.check(["organization", "location", "LiveIn", "NoRel"])
    assert [str(v) for v in broken.violations] == [
        "args: LiveIn needs source=person, got source=organization for variable 0"
    ]
    assert not problem.check(["location", "location", "LocatedAt", "LocatedAt"])


def test_a_schema_is_induced_from_a_corpus():
    sentences = [
        Sentence("a", ("x", "y"), ((0, 1), (1, 2)), types=("gene", "drug"), relations=((1, 0, "treats"),)),
        Sentence("b", ("x", "y"), ((0, 1), (1, 2)), types=("gene", "gene"), relations=()),
    ]
    task = EntityRelationTask.induced(sentences)
    assert task.entity_labels == ("drug", "gene")
    assert task.relation_labels == ("treats", "NoRel")
    assert task.arguments == {"treats": {("drug", "gene")}}
    with pytest.raises(SchemaError, match="No sentence has entity types"):
        EntityRelationTask.induced([Sentence("c", ("x",), ())])


def test_the_synthetic_corpus_obeys_the_papers_arguments():
    task = EntityRelationTask.induced(generate(300, 0))
    assert {name: set(pairs) for name, pairs in task.arguments.items()} == PAPER_ARGUMENTS


def test_misuse_is_an_error():
    with pytest.raises(SchemaError, match="There are no features 'all'"):
        EntityRelationTask(features="all")
    with pytest.raises(SchemaError, match="stands for no relation"):
        EntityRelationTask(arguments={"NoRel": {("person", "person")}})
    for features in ("both",):
        with pytest.raises(SchemaError, match=f"'{features}' do not fold"):
            EntityRelationTask(features=features).folded(np.zeros(3))


@pytest.mark.parametrize("features", ["triples", "paper"])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_folded_weights_search_alike(features, width):
    task = EntityRelationTask(features=features)
    rng = np.random.default_rng(width)
    sizes = np.array([1, 2, 3, 4, 4, 5])
    costs = rng.normal(size=sum(n * 4 + n * (n - 1) * 6 for n in sizes))
    weights = rng.normal(size=task.schema.n_weights)
    for enforce in (False, True):
        whole = BeamSearch(width, weights, enforce)(task.batch(sizes, costs))
        lean = BeamSearch(width, task.folded(weights), enforce)(task.lean.batch(sizes, costs))
        np.testing.assert_array_equal(whole.labels, lean.labels)


@pytest.mark.parametrize("theta", [0.0, 0.3, 2.0, np.inf])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_native_search_is_the_lazy_search(task, theta, width):
    sentences = list(generate(60, 3))
    model = train_black_box("independent", sentences, task, epochs=2, n_buckets=2**10, seed=0)
    text = intern([*generate(40, 4), Sentence("none", ("x",), ()), Sentence("one", ("X",), ((0, 1),))])
    rng = np.random.default_rng(0)
    for enforce in (False, True):
        search = BeamSearch(width, rng.normal(size=task.schema.n_weights), enforce, theta=theta)
        lazy = task.batch(text.n_entities, model.lazy(text))
        ours, theirs = black_box.search(model, text, lazy, search), search(lazy)
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        np.testing.assert_array_equal(ours.n_costs, theirs.n_costs)
        np.testing.assert_array_equal(ours.cost, theirs.cost)
        np.testing.assert_array_equal(ours.valid, theirs.valid)


def test_more_features_and_more_shapes_are_certified_alike():
    sizes = np.array([2, 3, 4, 6])
    costs = np.random.default_rng(1).normal(size=sum(n * 4 + n * (n - 1) * 6 for n in sizes))
    found = [Certifier()(EntityRelationTask(features=f).batch(sizes, costs)) for f in FEATURES]
    for other in found[1:]:
        np.testing.assert_allclose(other.cost, found[0].cost)


def pair(*relations, types=("gene", "drug")):
    return Sentence("a", ("x", "y"), ((0, 1), (1, 2)), types=types, relations=relations)


def test_labels_that_the_paper_lacks_are_taken_from_the_corpus_unless_that_is_forbidden():
    foreign, papers = [pair((1, 0, "treats"))], list(generate(50, 0))
    assert EntityRelationTask.fitting(foreign).arguments == {"treats": {("drug", "gene")}}
    assert EntityRelationTask.fitting(papers).is_papers
    assert EntityRelationTask.fitting(papers, no_relation="nothing").relation_labels[-1] == "nothing"
    with pytest.raises(CorpusError, match=r"has the label 'gene', which the paper's task lacks.*--induce"):
        EntityRelationTask.fitting(foreign, induce=False)


def test_a_type_named_like_a_relation_is_not_that_relation():
    assert (
        EntityRelationTask()
        .lacks([pair((0, 1, "Kill"), types=("Kill", "person"))])
        .startswith("Sentence 'a' has the label 'Kill', which the task lacks")
    )
    assert EntityRelationTask().lacks([pair((0, 1, "Kill"), types=("person", "person"))]) == ""


def test_a_relation_may_be_named_as_we_name_none():
    task = EntityRelationTask.induced([pair((0, 1, "NoRel"), (1, 0, "NoRel 2"))])
    assert task.relation_labels == ("NoRel", "NoRel 2", "NoRel 3")
    assert EntityRelationTask.induced([pair((0, 1, "r"))], no_relation="nothing").relation_labels == ("r", "nothing")


def test_relations_that_hold_both_ways_are_learned_from_the_corpus_and_no_others():
    task = EntityRelationTask.induced(
        [pair((0, 1, "knows"), (1, 0, "knows"), types=("x", "x")), pair((0, 1, "owns"), types=("x", "x"))]
    )
    problem = task.structure(2).problem(np.zeros(task.structure(2).n_labels))
    assert problem.check(["x", "x", "knows", "knows"])
    assert not problem.check(["x", "x", "owns", "owns"])
    assert not problem.check(["x", "x", "knows", "owns"])
    assert task.lean.both_ways == task.both_ways


def test_certified_answers_are_the_cheapest_also_where_relations_hold_both_ways():
    both = pair((0, 1, "knows"), (1, 0, "knows"), types=("x", "x"))
    task = EntityRelationTask.induced([both, pair((0, 1, "owns"), (1, 0, "owned"), types=("x", "y"))])
    rng = np.random.default_rng(0)
    for _ in range(6):
        problem = task.structure(3).problem(rng.normal(size=task.structure(3).n_labels))
        found = Certifier()(problem)
        assert found.proved
        assert found.cost == pytest.approx(naive.solve(problem).cost)


def test_gold_that_a_task_cannot_express_is_counted_by_its_reason():
    task = EntityRelationTask.induced([pair((1, 0, "treats"))])
    test = [
        pair((1, 0, "treats")),
        pair((0, 1, "causes"), types=("gene", "cell")),
        pair((0, 1, "treats")),
        pair((0, 1, "treats"), (1, 0, "treats"), types=("drug", "drug")),
    ]
    found = Unreachable.of(test, task)
    assert (found.reasons["types"], found.reasons["relations"]) == ({"cell": 1}, {"causes": 1})
    assert found.reasons["signatures"] == {"treats from gene to drug": 1, "treats from drug to drug": 2}
    assert found.n == 5
    assert "treats from drug to drug 2" in str(found)
    wide = EntityRelationTask(["drug"], {"treats": {("drug", "drug")}})
    assert Unreachable.of(test[3:], wide).reasons["both_ways"] == {"treats and treats": 1}
    assert Unreachable.of(test[3:], EntityRelationTask.induced(test[3:])).n == 0


def test_gold_that_a_task_lacks_is_lost_or_refused():
    labels = ("gene", "drug"), ("treats", "none")
    assert gold(pair((1, 0, "none"), types=("gene", "cell")), *labels, lost=True).tolist() == [0, -1, 1, -1]
    with pytest.raises(CorpusError, match=r"has the label 'cell', which the model lacks.*--induce"):
        gold(pair(types=("gene", "cell")), *labels)


def test_a_task_keeps_few_variables_of_structures_however_many_sizes_come(monkeypatch):
    monkeypatch.setattr("hasten.tasks.entity_relation.task.MAX_VARIABLES", 300)
    task = EntityRelationTask()
    for n in (*range(2, 16), 2):
        assert task.structure(n).n_variables == n * n
        assert task._structures.weight <= 300
    assert task.structure(2) is task.structure(2)
