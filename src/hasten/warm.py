"""Every kernel, compiled beforehand: for images, clusters and continuous integration (`hasten compile`).

Kernels are compiled when they are first called. Here each is called, on problems of a few variables.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from hasten.bench.families import FAMILIES
from hasten.certificates.writing import Draft, stated
from hasten.jit import tiers
from hasten.learning.gate import Gate
from hasten.learning.learner import Learner
from hasten.learning.perceptron import Perceptron, StepSize
from hasten.learning.tables import Changing
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.padded.layout import Layout
from hasten.padded.search import Inference, Question, Request
from hasten.paper.demo import running_example
from hasten.programs.program import Program
from hasten.programs.requirements import Requirements
from hasten.programs.statement import Builder
from hasten.proof.certifier import Certifier
from hasten.proof.improve import Improvement
from hasten.proof.look import LOOKING
from hasten.proof.outcome import OPEN, OUTCOME
from hasten.proof.outline import outline
from hasten.proof.steps import prove
from hasten.search.beam import BeamSearch, ConstrainedSearch, greedy
from hasten.solvers import make_solver
from hasten.speedup.parts import TextMode, Trust
from hasten.speedup.predictor import Speedup
from hasten.speedup.skipping import Calibrator, GatedSearch
from hasten.sums import marginals, sample
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.terminal import Progress, no_progress
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.scoring import black_box
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.entity_relation.task import EntityRelationTask, Training

CLIQUE = 12  # variables of a clique that is neither eliminated nor thin


def compile_kernels(progress: Progress = no_progress) -> None:
    """Compiles what is not compiled yet, and keeps it where the next process finds it."""
    tiers.TIER = tiers.COMPILED  # for the rest of the process
    problem = running_example()

    def scorer(problems: IntArray, variables: IntArray) -> FloatArray:
        return np.concatenate([problem.costs_of(int(v)) for v in variables])

    stages: dict[str, Callable[[], object]] = {
        "search": lambda: greedy()(problem),
        "lazy search": lambda: BeamSearch(2, theta=1.0)(problem.structure.problem(scorer)),
        "constrained search": lambda: ConstrainedSearch()(problem),
        "proof": lambda: _prove(problem),
        "improvement": lambda: _improve(problem),
        "best labellings": lambda: Certifier().best(problem, 2),
        "certificates": lambda: outline(Draft(stated(problem), None, 0, np.inf), problem, -np.inf, np.inf, max_join=0),
        "reduced search": lambda: BeamSearch(2, look_ahead=True, reduce=True)(problem),
        "enumeration": lambda: make_solver("brute").solve(problem),
        "checks": lambda: [each.check([1] * each.n_variables) for each in (problem, drawn("knapsack"))],
        "learning": lambda: _learn(problem),
        "calibration": lambda: Calibrator().theta(BeamSearch(2), _noise(problem, 100)),
        "entities and relations": _label_text,
        "sums": lambda: (marginals(problem), sample(problem)),
        "programs": _adopt,
        "padded scores": lambda: _pad(problem),
    }
    for n, (stage, compile_stage) in enumerate(stages.items()):
        progress("Compiling kernels", n / len(stages), stage)
        compile_stage()
    progress("Compiling kernels", 1.0)


def _pad(problem: Problem) -> None:
    """Answers a row of scores of both widths, and finds losses with gold and tables, and their gradients."""
    structure, kinds = problem.structure, tuple(problem.structure.schema.factors)
    inference = Inference(Layout(structure), Certifier())
    shape = 1, structure.n_labels
    placed = inference.layout.place([shape], {}, kinds=kinds, flat=True)
    tables = {name: np.zeros(kind.shape) for name, kind in structure.schema.factors.items()}
    for dtype in (np.float32, np.float64):
        given = Question(placed, [np.zeros(shape, dtype)], tables, asked=Request(margin=1.0, sharing=True))
        given = given._replace(gold=inference.decode(given).labels)
        inference.loss(given)
        inference.sums(given)


def _prove(problem: Problem) -> None:
    """Takes every step of a proof that needs no limit of time, on problems that the steps before it leave open."""
    for family in ("ruled", "knapsack", "potts"):
        Certifier()(drawn(family))
    for certifier in (Certifier(), Certifier(max_join=0), Certifier(max_nodes=1)):
        certifier(_noise(problem, 64))
    Certifier(max_nodes=1)(drawn("spin"))
    Certifier()(_related())
    Certifier()(_clique())


def _improve(problem: Problem) -> None:
    """Takes one slice of the step that needs a limit of time."""
    work = Certifier(max_join=0)._work_on(_noise(problem, 64), None, 1)
    prove(work, np.arange(64), (LOOKING,))
    Improvement(work, int(np.flatnonzero(work.proofs.facts[OUTCOME] == OPEN)[0])).go(np.inf)


def _clique() -> Problem:
    """Returns a clique of variables that neither like to agree nor to differ, of which roof duality fixes some."""
    schema = Schema()
    pixel = schema.variable("pixel", ["off", "on"])
    same = schema.factor("same", one=pixel, other=pixel).set_table(1.0 - np.eye(2))
    clique = schema.structure([pixel] * CLIQUE)
    for v, u in combinations(range(CLIQUE), 2):
        clique.connect(same, one=v, other=u)
    mixed = {f: (-1.0) ** (f % 3) * np.eye(2) for f in range(len(clique.factors))}
    return clique.problem(np.random.default_rng(0).normal(size=clique.n_labels), tables=mixed)


def drawn(family: str) -> Problem:
    """Returns a problem of a family of the benchmark; a grid is too large to be eliminated."""
    return FAMILIES[family].problems(9, 1)[0]


def _related() -> Problem:
    """Returns two spans of many types, which a relation would pull from their cheapest ones."""
    schema = Schema()
    kind, relation = schema.variable("kind", [str(n) for n in range(32)]), schema.variable("relation", ["part", "none"])
    args = schema.factor("args", source=kind, relation=relation, target=kind)
    args.allow(relation="none").allow(relation="part", source="1", target="1")
    shape = schema.structure()
    shape.connect(args, source=shape.add(kind), relation=shape.add(relation), target=shape.add(kind))
    return shape.problem(np.concatenate([np.arange(32.0), [0.0, 9.0], np.arange(32.0)]))


def _learn(problem: Problem) -> None:
    batch, every = _noise(problem, 8), np.arange(8)
    answers = Certifier()(batch)
    Learner(enforce=False, look_ahead=False).fit(batch, answers)
    changing = Changing(batch, np.zeros(problem.structure.schema.n_weights, dtype=bool))
    Perceptron(changing, batch, answers.values, StepSize(1.0, 0.0)).run(every)
    others = Certifier()(_noise(problem, 60, seed=1))  # there is much to learn from, and nothing to agree with
    learned = Speedup(problem.structure.schema, answer="learned", trust=Trust(min_agreement=None))
    learned.fit(_noise(problem, 60), others.labels)


def _noise(problem: Problem, n: int, seed: int = 0) -> Batch:
    return problem.structure.batch(np.random.default_rng(seed).normal(size=(n, problem.cost.size)))


def _adopt() -> None:
    """Packs items twice: the second time it is known that branching is all there is to do; and takes a path."""
    build, n = Builder(), 7
    for item in range(n):
        build.column(f"x{item}", 0.0, 2.0, whole=True, cost=-1.0)
    build.row(range(n), np.sqrt(np.arange(2, n + 2)), high=n)
    program = Program(build.statement())
    for _ in range(2):
        program.solve(solver="brute")
    program.solve_all([program.statement.objective], solver="brute")
    Requirements(["a label"]).nearest([1.0])
    path = Builder()
    path.column("x", 0.0, 1.0, whole=True)
    for weight in (1.0, -1.0):
        path.row([0], [weight], weight, weight)
    Program(path.statement()).solve()


def _label_text() -> None:
    task, text = EntityRelationTask(), intern(generate(20, seed=0))
    batch = task.batch(text.n_entities, np.zeros(int((text.n_entities * (6 * text.n_entities - 2)).sum())))
    gate = Gate({"relation": lambda problems, variables: np.zeros((len(problems), 1), np.int64)}, n_rows=16)
    GatedSearch(gate.fit(batch, Certifier()(batch)))(batch)
    sentences = list(generate(20, seed=0))
    for training in Training:
        tagger = Tagger.train(sentences, black_box=training)
        for mode in TextMode:
            list(tagger.asking(mode=mode).label(sentences))
    black_box.search(tagger.scorer, tagger.scorer.read(sentences), batch, tagger.beam(theta=1.0))
