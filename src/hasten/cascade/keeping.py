"""Keeping a cascade: in a file, and in the rows of its journal, which say what happened since that was written.

A file is safetensors with a digest (`hasten.support.forms`). A version whose model says nothing of its `content` is
not in it: a student is trained again from the answers, which are. Questions to the black box go to the journal before
anybody gets the answer, and `resume` takes them in again; so whatever moment a process dies at, nothing is lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from hasten.cascade.boxes import beyond, joined
from hasten.cascade.parts import Asked, Budget, Counters, Note, Question, Reply
from hasten.cascade.promise import Promise
from hasten.cascade.student import Confidence, Student
from hasten.errors import HastenError, ModelError, ProblemError
from hasten.journal import Journal
from hasten.speedup.audit import Audit, AuditState
from hasten.support import forms
from hasten.support.forms import Tensors, load_tensors, reading, save_tensors
from hasten.tasks.task import Task, Text

if TYPE_CHECKING:
    from hasten.cascade.cascade import Cascade

FORMAT = "hasten.cascade/2"
TOLD = 1000  # notes


# -- the journal ---------------------------------------------------------------------------------------------------


def rows(
    cascade: Cascade[Any], asked: Sequence[Asked], given: Iterable[tuple[Asked, Reply[Any]]] = ()
) -> list[tuple[str, Any]]:
    """Returns the rows of questions, and of the student's answers if the journal wants them.

    An answer leaves out what its input says.
    """
    to_json, rows = cascade.task.to_json, list[tuple[str, Any]]()
    if cascade.journal is None:
        return rows
    for each in asked:
        told = {name: getattr(each, name) for name in Asked.__struct_fields__} | {"input": to_json(each.input)}
        told["answer"] = None if each.answer is None else beyond(told["input"], to_json(each.answer))
        rows.append(("audit" if each.sure else "asked", told))
    for each, reply in given if cascade.journal.given else ():
        if reply.source == "student":
            told = {"at": reply.number, "input": to_json(each.input)}
            told["answer"] = beyond(told["input"], to_json(reply.text))
            rows.append(("given", told | {"version": reply.version, "probability": reply.probability}))
    return rows


def read_asked(task: Task[Any], data: Any) -> Asked:
    """Returns the question that a row tells of."""
    asked = msgspec.convert(data, Asked)
    answer = None if asked.answer is None else task.of_json(joined(asked.input, asked.answer))
    if answer is not None:
        task.check_labelled(answer)
    return msgspec.structs.replace(asked, input=task.of_json(asked.input), answer=answer)


def resume(cascade: Cascade[Any], journal: Journal) -> None:
    """Takes in the rows that a journal has beyond what the cascade knows, and learns."""
    counters, cascade._replaying = cascade.counters, True
    for row in journal.rows(since=cascade._last_row):
        cascade._last_row = row.number
        try:
            if row.kind in ("asked", "audit"):
                asked = read_asked(cascade.task, row.data)
                counters.inputs = max(counters.inputs, asked.at + 1)
                cascade.budget.take(asked.at >= 0, row.time)
                cascade._take([asked])
            elif row.kind == "promotion" and row.data["version"] in cascade.versions:
                cascade.promote(row.data["version"])
            if row.kind in ("note", "version", "promotion"):
                cascade.notes.append(msgspec.convert(row.data, Note))
        except (msgspec.ValidationError, HastenError, KeyError, TypeError) as error:
            why = f"is not of a cascade for {cascade.task.title}"
            raise ModelError(f"{journal.path}: row {row.number} {why}: {error}. Name another.") from None
    counters.by_student = max(counters.by_student, counters.inputs - counters.by_black_box - counters.unanswered)
    cascade._replaying = False
    cascade._learn_if_due()


def replay(
    cascade: Cascade[Text], stretch: range | None, journal: Journal | None
) -> Iterator[tuple[Text, Reply[Text]]]:
    """Asks the black box about given answers: yields each of them with the new reply."""
    task = cascade.task
    if not isinstance(journal, Journal) or not isinstance(stretch, range):
        raise ProblemError("There is nothing to replay. Give the cascade a journal, and name a stretch of its answers.")
    given = [row.data for row in journal.rows("given") if row.data["at"] in stretch]
    for some in (given[at : at + 64] for at in range(0, len(given), 64)):
        questions = [Question(task.of_json(each["input"]), each["at"]) for each in some]
        cascade.ask(questions)
        for each, reply in zip(some, cascade.end(questions), strict=True):
            yield task.of_json(joined(each["input"], each["answer"])), reply


# -- the file ------------------------------------------------------------------------------------------------------


class Version(msgspec.Struct):
    """A version, but for the tensors of its model."""

    name: str
    n_taught: int
    promise: Promise
    model: Any


class State(msgspec.Struct):
    """The content of a file, but for tensors."""

    task: str
    risks: dict[str, float]
    confidence: float
    audit: float
    seed: int
    rng: str
    counters: Counters
    notes: list[Note]
    used: int  # of the budget
    times: list[float]
    last_row: int
    suspect: tuple[int, int] | None
    learned: tuple[int, int, int, int]
    audits: dict[str, AuditState]
    unsure: AuditState
    versions: list[Version]
    champion: str
    taught: list[tuple[int, Any]]
    held: list[tuple[int, Any]]


def save(cascade: Cascade[Any], path: str | os.PathLike[str]) -> None:
    """Writes a cascade to a file."""
    tensors, versions, task = Tensors(), list[Version](), cascade.task
    with cascade._lock:
        for each in cascade.versions.values():
            if (content := each.model.content()) is not None:
                of_model, model = content
                tensors |= {f"{each.name}/model/{name}": tensor for name, tensor in of_model.items()}
                tensors[f"{each.name}/confidence"] = each.confidence.weights
                versions.append(Version(each.name, each.n_taught, each.promise, model))
        state = State(
            task=task.title,
            risks=cascade.risks,
            confidence=cascade.confidence,
            audit=cascade.audit,
            seed=cascade.seed,
            rng=json.dumps(cascade._rng.bit_generator.state),
            counters=cascade.counters,
            notes=cascade.notes[-TOLD:],
            used=cascade.budget.used,
            times=cascade.budget.times,
            last_row=cascade._last_row,
            suspect=None if cascade.suspect is None else (cascade.suspect.start, cascade.suspect.stop),
            learned=(cascade._n_versions, cascade._n_tested, cascade._n_learned, cascade._since),
            audits={name: each.plain() for name, each in cascade._audits.items()},
            unsure=cascade._unsure.plain(),
            versions=versions,
            champion="" if cascade.champion is None else cascade.champion.name,
            taught=[(at, task.to_json(text)) for at, text in cascade._taught],
            held=[(at, task.to_json(text)) for at, text in cascade._held],
        )
        tensors["state"] = np.frombuffer(msgspec.msgpack.encode(state), dtype=np.uint8)
    save_tensors(path, FORMAT, tensors, {})


def load(
    path: str | os.PathLike[str],
    task: Task[Text],
    black_box: Callable[[Text], Text],
    *,
    budget: Budget | None = None,
    journal: Journal | None = None,
) -> Cascade[Text]:
    """Reads what `Cascade.save` wrote, for the same task; then what the journal has since then."""
    from hasten.cascade.cascade import Cascade

    tensors, _ = load_tensors(path, FORMAT, "cascade")
    with reading(path):
        try:
            state = msgspec.msgpack.decode(tensors.pop("state").tobytes(), type=State)
        except (msgspec.MsgspecError, KeyError) as error:
            raise forms.Misfit(f"its content makes no sense ({type(error).__name__}: {error})") from None
    if state.task != task.title:
        raise ModelError(f"{path} is a cascade for the task {state.task!r}, not {task.title!r}. Give its own task.")
    with reading(path):
        try:
            shares = {"confidence": state.confidence, "audit": state.audit}
            cascade = Cascade(task, black_box, risk=state.risks, **shares, budget=budget, journal=None, seed=state.seed)
            cascade.counters, cascade.notes, cascade._last_row = state.counters, state.notes, state.last_row
            cascade.budget.used, cascade.budget.times = state.used, state.times
            cascade._n_versions, cascade._n_tested, cascade._n_learned, cascade._since = state.learned
            cascade.suspect = None if state.suspect is None else range(*state.suspect)
            cascade._taught = [(at, task.of_json(found)) for at, found in state.taught]
            cascade._held = [(at, task.of_json(found)) for at, found in state.held]
            cascade._rng.bit_generator.state = json.loads(state.rng)
            cascade._audits = {name: Audit.of_plain(state.audits[name]) for name in cascade._audits}
            cascade._unsure = Audit.of_plain(state.unsure)
            for each in state.versions:
                prefix = f"{each.name}/model/"
                mine = {name.removeprefix(prefix): tensors[name] for name in tensors if name.startswith(prefix)}
                weights = tensors[f"{each.name}/confidence"]
                forms.check_tensors({"confidence": weights}, {"confidence": forms.Array("float64", (None, 3))})
                model = task.of_content(Path(path), mine, each.model)
                student = Student(each.name, model, each.n_taught, Confidence(weights), each.promise)
                cascade.versions[each.name] = student
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError) as error:
            raise forms.Misfit(f"its content makes no sense ({type(error).__name__}: {error})") from None
    cascade.champion = cascade.versions.get(state.champion)
    if cascade.champion is None:
        cascade._n_learned = cascade._n_tested = 0  # it learns anew
    cascade.journal = journal
    if journal is not None:
        resume(cascade, journal)
    cascade._learn_if_due()
    return cascade
