"""The paper's experiment (§5), whole: train a black box, let it label unlabeled text, learn, compare.

70% of the labelled sentences train the black box, 30% test. Its answers on the unlabeled sentences, found by
proof and where that fails by the solver, teach the speedup classifier. Every row of the results is measured on
the test sentences: accuracy against gold labels and against the black box, validity, and CPU time in one thread
with features included. `results.json` is what `run` returns; `report.py` draws it.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from hasten import __version__
from hasten.batch import Batch
from hasten.bound import Certifier
from hasten.calibrate import Calibration, calibrate
from hasten.certified import prove_or_solve
from hasten.errors import CorpusError, SolverTooSmall
from hasten.graph import FloatArray, IntArray
from hasten.learner import Learner
from hasten.search import BeamSearch, ConstrainedSearch, ReducedSearch, greedy
from hasten.solution import Solution, Solutions
from hasten.solvers import Solver, make_solver
from hasten.tasks.entity_relation import native
from hasten.tasks.entity_relation.black_box import LinearScorer
from hasten.tasks.entity_relation.corpus import Sentence, split
from hasten.tasks.entity_relation.measure import Reference, Row, Timing, timed, times_faster
from hasten.tasks.entity_relation.tagger import in_words
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.entity_relation.text import intern
from hasten.tasks.entity_relation.training import gold, train_independent, train_structured

Tell = Callable[[str, float], None]  # (what is being done, share of it done)

PAPER_ROWS: tuple[dict[str, Any], ...] = tuple(
    dict(zip(
        ("table", "model", "beam", "theta", "entity_f1_gold", "relation_f1_gold", "entity_f1_ilp",
         "relation_f1_ilp", "time_ms", "time_ms_std", "validity"),
        row, strict=True,
    ))
    for row in (
        ("1", "ILP", None, None, 0.827, 0.482, 1.0, 1.0, 239, 11.4, 1.0),
        ("1", "search", None, None, 0.822, 0.334, 0.877, 0.546, 170, 6.5, 0.29),
        ("1", "constrained search", None, None, 0.800, 0.572, 0.880, 0.741, 844, 31.0, 1.0),
        ("1", "speedup", 1, None, 0.822, 0.447, 0.877, 0.674, 136, 2.1, 0.96),
        ("1", "speedup", 2, None, 0.844, 0.484, 0.930, 0.752, 158, 19.8, 0.95),
        ("2", "speedup", 1, 0.0, 0.21, 0.0, 0.173, 0.0, 39, 3.7, 1.0),
        ("2", "speedup", 1, 0.25, 0.822, 0.435, 0.877, 0.546, 87, 2.5, 0.99),
        ("2", "speedup", 1, 0.5, 0.822, 0.455, 0.877, 0.672, 114, 4.7, 0.98),
        ("2", "speedup", 2, 0.0, 0.373, 0.152, 0.377, 0.139, 55, 2.5, 1.0),
        ("2", "speedup", 2, 0.25, 0.819, 0.461, 0.893, 0.623, 130, 14.4, 0.99),
        ("2", "speedup", 2, 0.5, 0.825, 0.494, 0.907, 0.689, 134, 4.0, 0.98),
    )
)  # fmt: skip
MAX_NODES = 20_000  # of branching, before the solver is asked
PAPER_THETAS = (0.0, 0.25, 0.5)
CURVE = (30, 100, 300, 1000, 3000, 10_000, 30_000)


@dataclass(frozen=True)
class Experiment:
    """What to run: labelled and unlabeled sentences, and how."""

    labelled: Sequence[Sentence]
    unlabelled: Sequence[Sentence]
    task: EntityRelationTask = field(default_factory=EntityRelationTask)
    black_box: str = "structured"
    solver: str = "highs"
    runs: int = 5
    seed: int = 0
    epochs: int = 5
    source: str = ""  # what the corpora are called in the report
    synthetic: bool = False

    def __post_init__(self) -> None:
        if self.black_box not in ("structured", "independent"):
            raise CorpusError(f"A black box is 'structured' or 'independent', not {self.black_box!r}.")
        if self.runs < 1 or self.epochs < 1:
            raise CorpusError(f"Give at least one run and one epoch, not {self.runs} and {self.epochs}.")
        for what, sentences, least in (("labelled", self.labelled, 10), ("unlabeled", self.unlabelled, 10)):
            if len(sentences) < least:
                raise CorpusError(
                    f"Got {len(sentences)} {what} sentences that can be used; the experiment needs {least}. "
                    "Labelled ones have types and a relation, unlabeled ones two spans or more."
                )

    def run(self, tell: Tell = lambda what, share: None) -> dict[str, Any]:
        """Runs everything and returns what `results.json` holds."""
        return _Run(self, tell).results()


class _Run:
    """One run of an experiment; each property is made when it is first needed."""

    def __init__(self, experiment: Experiment, tell: Tell) -> None:
        self.of = experiment
        self.task = experiment.task
        self.tell = tell
        self.certifier = Certifier()
        self.train, self.test = split(experiment.labelled, 0.7, experiment.seed)
        self.text = intern(self.test)
        self.unlabelled_text = intern(experiment.unlabelled)
        self.rows: list[Row] = []

    def results(self) -> dict[str, Any]:
        """Measures everything, in the order of the report."""
        self.measure_table_1()
        self.measure_ours()
        calibrations = self.measure_table_2()
        return {
            "about": self.about(),
            "rows": [row.as_dict() for row in self.rows],
            "paper": list(PAPER_ROWS),
            "calibration": calibrations,
            "theta_sweep": self.theta_sweep(),
            "learning_curve": self.learning_curve(),
            "by_size": self.by_size(),
            "structures": self.structures(),
            "weights": [
                {"factor": row.factor, "labels": row.labels, "weight": row.weight}
                for row in self.learner(2).heuristic.strongest(24)
            ],
            "examples": self.examples(),
        }

    def about(self) -> dict[str, Any]:
        """Says what was run, on what."""
        of, entities = self.of, self.text.n_entities
        return {
            "hasten": __version__,
            "python": platform.python_version(),
            "machine": _processor(),
            "source": of.source,
            "synthetic": of.synthetic,
            "black_box": of.black_box,
            "solver": of.solver,
            "solver_version": _version_of(of.solver),
            "n_learned": self.n_learned,
            "runs": of.runs,
            "seed": of.seed,
            "n_train": len(self.train),
            "n_test": len(self.test),
            "n_unlabeled": len(of.unlabelled),
            "entities_per_sentence": float(entities.mean()),
            "max_entities": int(entities.max()),
            "entity_labels": list(self.task.entity_labels),
            "relation_labels": list(self.task.relation_labels),
            "cost_scale": self.scale,
            "proved_unlabeled": float(self.answers.proved.mean()),
            "label_unlabeled_ms": self.label_timing.mean,
            "too_large_for_solver": self.n_too_large,
        }

    # -- the parts ----------------------------------------------------------------------------------------

    @cached_property
    def model(self) -> LinearScorer:
        """The trained black box."""
        labels = self.task.entity_labels, self.task.relation_labels

        def progress(done: int, total: int) -> None:
            self.tell("Training the black box", done / total)

        self.tell("Training the black box", 0.0)
        if self.of.black_box == "independent":
            return train_independent(self.train, *labels, seed=self.of.seed, progress=progress)
        return train_structured(self.train, *labels, self.infer, seed=self.of.seed, progress=progress)

    def infer(self, n_entities: IntArray, costs: FloatArray, cost_at: IntArray) -> IntArray:
        """Exact inference for structured training."""
        return self.certifier(self.task.batch(n_entities, costs)).labels

    @cached_property
    def features(self) -> tuple[Batch, Timing]:
        """The test sentences with all their costs, and how long these took."""
        costs, timing = timed(lambda: self.model.costs(self.text)[0], self.of.runs)
        return self.task.batch(self.text.n_entities, costs), timing

    @property
    def batch(self) -> Batch:
        """The test sentences."""
        return self.features[0]

    @cached_property
    def unlabelled(self) -> Batch:
        """The unlabeled sentences."""
        self.tell("Scoring the unlabeled text", 0.0)
        return self.task.batch(self.unlabelled_text.n_entities, self.model.costs(self.unlabelled_text)[0])

    @cached_property
    def labelling(self) -> tuple[Solutions, Timing]:
        """The black box's answers on the unlabeled sentences, and how long they took."""
        self.tell("Labelling the unlabeled text", 0.0)
        found, timing = timed(lambda: self.certifier(self.unlabelled), 1, 1)
        open_ones = np.flatnonzero(~found.proved)
        if open_ones.size:
            solver = make_solver("highs")
            for n, p in enumerate(open_ones.tolist()):
                self.tell("Solving what was not proved", n / open_ones.size)
                answer = solver.solve(self.unlabelled[p])
                at = self.unlabelled.variable_at
                found.labels[at[p] : at[p + 1]] = answer.labels
        return found, timing

    @property
    def n_learned(self) -> int:
        """How many of the unlabeled sentences are learned from; the rest, up to 5,000, are for calibration."""
        return len(self.unlabelled) - min(len(self.unlabelled) // 5, 5000)

    @property
    def answers(self) -> Solutions:
        """The black box's answers on the unlabeled sentences."""
        return self.labelling[0]

    @property
    def label_timing(self) -> Timing:
        """How long labelling the unlabeled sentences took."""
        return self.labelling[1]

    @cached_property
    def scale(self) -> float:
        """The median, over variables, of what the second-best label costs above the best."""
        gaps = []
        for p in range(min(len(self.batch), 200)):
            problem = self.batch[p]
            for v in range(problem.n_variables):
                two = np.partition(problem.costs_of(v), 1)[:2]
                gaps.append(two[1] - two[0])
        return float(np.median(gaps))

    def learner(self, width: int, *, paper: bool = False, enforce: bool = False, n: int | None = None) -> Learner:
        """Returns a learner that has learned from (the first `n` of) the unlabeled sentences."""
        key = (width, paper, enforce, n)
        if key not in self._learners:
            batch, labels = self.unlabelled, self.answers.labels
            n = self.n_learned if n is None else n
            batch, labels = batch.select(np.arange(n)), labels[: batch.variable_at[n]]
            settings: dict[str, Any] = {"epochs": self.of.epochs, "progress": False}
            learner = (
                Learner.paper(width, **settings)
                if paper
                else Learner(width, enforce=enforce, seed=self.of.seed, **settings)
            )
            self._learners[key] = learner.fit(batch, labels)
        return self._learners[key]

    @cached_property
    def _learners(self) -> dict[tuple[Any, ...], Learner]:
        return {}

    @cached_property
    def reference(self) -> Reference:
        """Gold labels and the ILP's answers."""
        return self.ilp[0]

    @cached_property
    def ilp(self) -> tuple[Reference, Timing]:
        """The reference, and how long the ILP solver took for it."""
        solver, large = make_solver(self.of.solver), make_solver("highs")
        times: list[float] = []
        for run in range(self.of.runs + 1):  # the first builds the models

            def progress(share: float, run: int = run) -> None:
                self.tell(f"Solving by {solver.name}", (run + share) / (self.of.runs + 1))

            answers, timing = timed_solving(solver, large, self.batch, progress)
            self.n_too_large = timing[1]
            if run:
                times.append(timing[0])
        entity, relation = self.task.entity_labels, self.task.relation_labels
        labels = np.concatenate([gold(sentence, entity, relation) for sentence in self.test])
        is_entity = np.concatenate([np.arange(n * n) < n for n in self.text.n_entities.tolist()])
        nothing = entity.index("none") if "none" in entity else -1
        return Reference(labels, answers, is_entity, nothing, len(relation) - 1), Timing(tuple(times))

    n_too_large = 0

    # -- the tables ---------------------------------------------------------------------------------------

    def measure(self, model: str, search: Callable[[Batch], Solutions], **about: Any) -> Row:
        """Adds a row for answers that start from all costs."""
        self.tell(f"Measuring {model}", 0.5)
        batch, features = self.features
        n_entities, costs = self.text.n_entities, batch.cost
        task = self.task if about.pop("learned", False) else self.task.lean  # features that nobody reads cost time
        found, inference = timed(lambda: search(task.batch(n_entities, costs)), self.of.runs)
        row = self.reference.row(model, found, features, inference, **about)
        self.rows.append(row)
        return row

    def measure_lazily(self, model: str, search: BeamSearch, **about: Any) -> Row:
        """Adds a row for a search that computes the costs it needs."""
        self.tell(f"Measuring {model}", 0.5)
        row = self.lazy_row(model, search, self.of.runs, **about)
        self.rows.append(row)
        return row

    def lazy_row(self, model: str, search: BeamSearch, runs: int, **about: Any) -> Row:
        """Returns a row for a search that computes the costs it needs."""
        found, timing = timed(lambda: self.search_lazily(search), runs)
        return self.reference.row(model, found, None, timing, **about)

    def search_lazily(self, search: BeamSearch) -> Solutions:
        """Searches the test sentences, computing the costs that the search asks for."""
        weights = None if search.weights is None else self.task.folded(search.weights)
        return native.search(self.model, self.text, self.empty, replace(search, weights=weights))

    @cached_property
    def empty(self) -> Batch:
        """The test sentences without their costs."""
        return self.task.lean.batch(self.text.n_entities, np.zeros(self.batch.cost_at[-1]))

    def search_greedily(self) -> Solutions:
        """Computes every cost of the test sentences, and takes the cheapest labels."""
        return greedy()(self.task.lean.batch(self.text.n_entities, self.model.costs(self.text)[0]))

    def measure_table_1(self) -> None:
        """The paper's Table 1, with its algorithm as listed."""
        reference, timing = self.ilp
        n_calls = len(self.batch)
        self.rows.append(reference.row("ILP", reference.ilp, self.features[1], timing, table="1", solver_calls=n_calls))
        self.measure("search", greedy(), table="1", note="greedy, constraints ignored")
        self.measure("constrained search", ConstrainedSearch(), table="1", note="arc consistency")
        for width in (1, 2):
            self.tell(f"Learning as the paper does, width {width}", 0.0)
            weights = self.learner(width, paper=True).weights
            search = BeamSearch(width, weights, enforce=False)
            note = "Algorithm 1: step 1, last weights"
            self.measure("speedup (paper)", search, beam=width, table="1", note=note, learned=True)

    def measure_ours(self) -> None:
        """Our rows: better learning, enforced tables, look-ahead, elimination, proof."""
        for width in (1, 2):
            self.tell(f"Learning, width {width}", 0.0)
            search = BeamSearch(width, self.learner(width).weights, enforce=False)
            self.measure("speedup", search, beam=width, note="averaged weights, step from the costs", learned=True)
        for width in (1, 2, 4):
            self.measure("enforced beam", BeamSearch(width), beam=width, note="forbidden tuples left out")
        self.measure("look-ahead beam", BeamSearch(2, look_ahead=True), beam=2)
        for width in (1, 2):
            self.measure("reduced beam", ReducedSearch(width), beam=width, note="over what elimination leaves")
        calls: list[int] = []
        solver = make_solver(self.of.solver)

        def certified(batch: Batch) -> Solutions:
            answers, n_calls = prove_or_solve(batch, None, lambda: solver, MAX_NODES)
            calls.append(n_calls)
            return answers

        row = self.measure("certified", certified, note="proved, or solved")
        self.rows[-1] = replace(row, solver_calls=calls[-1])

    def measure_table_2(self) -> list[dict[str, Any]]:
        """The paper's Table 2: theta of the paper, scaled to our costs, and theta by calibration."""
        calibrations = []
        for width in (1, 2):
            weights = self.learner(width).weights
            for theta in PAPER_THETAS:
                search = BeamSearch(width, weights, enforce=False, theta=theta * self.scale)
                note = f"theta {theta:g} of the paper times the cost scale"
                self.measure_lazily("speedup", search, beam=width, theta=search.theta, table="2", note=note)
        for width in (1, 2, 4):
            for enforce in (False, True):
                chosen = self.calibrated(width, enforce)
                search = BeamSearch(width, self.lazy_weights(width, enforce), enforce=enforce, theta=chosen.theta)
                self.measure_lazily(
                    "calibrated" + (", enforced" if enforce else ""),
                    search,
                    beam=width,
                    theta=_finite(chosen.theta),
                    table="2",
                    note=f"risk 1%, at most {chosen.limit:.2%} of answers changed",
                )
                calibrations.append(
                    {
                        "width": width,
                        "enforce": enforce,
                        "theta": _finite(chosen.theta),
                        "changed": chosen.changed,
                        "limit": chosen.limit,
                        "share": chosen.share,
                        "times_faster_than_greedy": times_faster(
                            lambda search=search: self.search_lazily(search),  # type: ignore[misc]
                            self.search_greedily,
                            20 * self.of.runs,
                        ),
                    }
                )
        return calibrations

    def lazy_weights(self, width: int, enforce: bool) -> FloatArray | None:
        """The heuristic that a lazy search is guided by: enforced tables already say what weights would."""
        return None if enforce else self.learner(width).weights

    def calibrated(self, width: int, enforce: bool) -> Calibration:
        """Chooses theta on the unlabeled sentences that nothing was learned from."""
        self.tell(f"Calibrating theta, width {width}", 0.0)
        search = BeamSearch(width, self.lazy_weights(width, enforce), enforce=enforce)
        held_out = np.arange(self.n_learned, len(self.unlabelled))
        return calibrate(search, self.unlabelled.select(held_out), seed=self.of.seed)

    # -- the figures --------------------------------------------------------------------------------------

    def theta_sweep(self) -> list[dict[str, Any]]:
        """Time and accuracy over theta, for widths 1 and 2."""
        sweep = []
        thetas = [0.0, *np.geomspace(0.01, 4.0, 12)]
        for width in (1, 2):
            for n, theta in enumerate(thetas):
                self.tell(f"Sweeping theta, width {width}", n / len(thetas))
                search = BeamSearch(width, self.learner(width).weights, enforce=False, theta=float(theta * self.scale))
                row = self.lazy_row("speedup", search, self.of.runs, beam=width, theta=search.theta)
                sweep.append(row.as_dict() | {"relative_theta": float(theta)})
        return sweep

    def learning_curve(self) -> list[dict[str, Any]]:
        """Accuracy against the ILP over the number of unlabeled sentences learned from."""
        curve = []
        sizes = sorted({n for n in CURVE if n < self.n_learned} | {self.n_learned})
        for width in (1, 2):
            for n, size in enumerate(sizes):
                self.tell(f"Learning curve, width {width}", n / len(sizes))
                weights = self.learner(width, n=size).weights
                found = BeamSearch(width, weights, enforce=False)(self.batch)
                entity, relation = self.reference.f1(found.labels, self.reference.ilp.labels)
                curve.append(
                    {
                        "beam": width,
                        "n": size,
                        "entity_f1_ilp": entity,
                        "relation_f1_ilp": relation,
                        "validity": float(found.valid.mean()),
                        "exact_match": float(self.reference.exact(found).mean()),
                    }
                )
        return curve

    def by_size(self) -> list[dict[str, Any]]:
        """Time per sentence over the number of entities."""
        solver, large = make_solver(self.of.solver), make_solver("highs")
        sizes, counts = np.unique(self.text.n_entities, return_counts=True)
        found = []
        for n, (size, count) in enumerate(zip(sizes.tolist(), counts.tolist(), strict=True)):
            self.tell("Measuring by size", n / len(sizes))
            some = self.batch.select(np.flatnonzero(self.text.n_entities == size))
            copies = some.select(np.tile(np.arange(count), max(1, 2000 // (count * size * size))))
            runs = [timed_solving(solver, large, some, lambda share: None)[1][0] for _ in range(3)]
            ilp = min(runs)
            entry: dict[str, Any] = {"entities": size, "sentences": count, "ilp": 1000 * ilp / count}
            searches: tuple[tuple[str, Callable[[Batch], Solutions]], ...] = (
                ("search", greedy()),
                ("beam 2", BeamSearch(2)),
                ("certified", self.certifier),
            )
            for name, search in searches:
                _, timing = timed(lambda search=search, copies=copies: search(copies), 3)  # type: ignore[misc]
                entry[name] = 1000 * min(timing.runs) / len(copies)
            found.append(entry)
        return found

    def structures(self) -> dict[str, Any]:
        """How few distinct outputs occur among the black box's answers."""
        at, labels = self.unlabelled.variable_at, self.answers.labels.astype(np.int8)
        seen: dict[bytes, int] = {}
        curve = []
        for p in range(len(self.unlabelled)):
            key = labels[at[p] : at[p + 1]].tobytes()
            seen[key] = seen.get(key, 0) + 1
            if p + 1 in CURVE or p + 1 == len(self.unlabelled):
                curve.append({"n": p + 1, "distinct": len(seen)})
        counts = np.sort(np.array(list(seen.values())))[::-1]
        covered = np.cumsum(counts) / counts.sum()
        return {
            "curve": curve,
            "distinct": len(seen),
            "for_half": int(np.searchsorted(covered, 0.5) + 1),
            "for_ninety": int(np.searchsorted(covered, 0.9) + 1),
        }

    def examples(self, n: int = 8) -> list[dict[str, Any]]:
        """Some test sentences on which greedy search, the speedup and the ILP differ."""
        candidates = {
            "greedy": greedy()(self.batch),
            "speedup": BeamSearch(2, self.learner(2).weights, enforce=False)(self.batch),
            "ilp": self.reference.ilp,
        }
        wrong = {name: ~self.reference.exact(found) for name, found in candidates.items()}
        long_enough = [len(sentence.tokens) >= 8 for sentence in self.test]
        good = np.flatnonzero(wrong["greedy"] & (self.text.n_entities <= 5) & long_enough).tolist()
        chosen: list[int] = []
        seen: set[tuple[object, ...]] = set()
        for hard in (True, False):  # first what the speedup gets wrong too, then what it mends
            for p in sorted(good, key=lambda p: len(self.test[p].tokens)):
                kind = (hard, tuple(sorted(set(self.test[p].relations or ()))), len(self.test[p].spans))
                names = (hard, *sorted({name for _, _, name in self.test[p].relations or ()}))
                if wrong["speedup"][p] == hard and kind not in seen and names not in seen:
                    seen |= {kind, names}
                    chosen.append(p)
                if len(chosen) == (n // 2 if hard else n):
                    break
        return [self.example(p, candidates) for p in chosen]

    def example(self, p: int, candidates: dict[str, Solutions]) -> dict[str, Any]:
        """One sentence with the labels that each method, and the annotators, gave it."""
        sentence = self.test[p]
        labellings = {name: found[p].labels for name, found in candidates.items()}
        at = self.batch.variable_at
        labellings["gold"] = self.reference.gold[at[p] : at[p + 1]]
        problem = self.batch[p]
        return {
            "tokens": list(sentence.tokens),
            "spans": [list(span) for span in sentence.spans],
            "labels": {name: self.words(labels, len(sentence.spans)) for name, labels in labellings.items()},
            "violations": {
                name: [str(each) for each in problem.check(labels).violations]
                for name, labels in labellings.items()
                if name != "gold"
            },
        }

    def words(self, labels: IntArray, n_entities: int) -> dict[str, Any]:
        """Returns a labelling in words, as JSON has them."""
        types, relations = in_words(self.task, labels, n_entities)
        return {"types": list(types), "relations": [list(relation) for relation in relations]}


def timed_solving(
    solver: Solver, large: Solver, batch: Batch, progress: Callable[[float], None]
) -> tuple[Solutions, tuple[float, int]]:
    """Solves problem after problem; returns the answers, CPU milliseconds, and how many were too large for it."""
    answers: list[Solution] = []
    n_large = 0
    problems = [batch[p] for p in range(len(batch))]
    begin = time.process_time()
    for n, problem in enumerate(problems):
        try:
            answers.append(solver.solve(problem))
        except SolverTooSmall:
            answers.append(large.solve(problem))
            n_large += 1
        if n % 50 == 0:
            progress(n / len(problems))
    elapsed = 1000.0 * (time.process_time() - begin)
    return Solutions.of(batch, answers), (elapsed, n_large)


def _finite(theta: float) -> float | None:
    """Returns theta for JSON, which has no infinity: None stands for computing every cost."""
    return theta if math.isfinite(theta) else None


def _version_of(solver: str) -> str:
    """Returns the version of the package that a solver comes in."""
    package = {"highs": "highspy", "gurobi": "gurobipy", "toulbar2": "pytoulbar2", "cpsat": "ortools"}.get(solver)
    return version(package) if package else __version__


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
