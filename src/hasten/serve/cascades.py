"""Cascades: the student answers in the fast lane where it is sure; the black box is asked in the slow lane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hasten.cascade import Cascade
from hasten.cascade.boxes import beyond
from hasten.cascade.parts import Question, Reply
from hasten.model.problem import Problem
from hasten.serve.served import Columns, Found, Refused, Served, Tensor
from hasten.serve.texts import TEXT, of_strings
from hasten.tasks.entity_relation.data.synthetic import generate as generate_news
from hasten.tasks.entity_relation.extraction import Extraction
from hasten.tasks.tagging.corpus import Tagged
from hasten.tasks.tagging.model import Tagging


class ServedCascade(Served[Question]):
    """A cascade, saved in its file whenever it ends."""

    kind, stateful, keeps = "cascade", True, True
    inputs = TEXT
    outputs = (
        *(Tensor("answer", "BYTES", (-1,)), Tensor("proved", "BOOL", (-1,)), Tensor("source", "BYTES", (-1,))),
        *(Tensor("probability", "FP64", (-1,)), Tensor("promised", "BOOL", (-1,))),
        *(Tensor("status", "BYTES", (-1,)), Tensor("version", "BYTES", (-1,))),
    )

    def __init__(self, name: str, version: str, cascade: Cascade[Any], path: Path) -> None:
        super().__init__(name, version)
        self.cascade, self.path = cascade.__enter__(), path

    def read(self, record: Any) -> Question:
        """Returns an input."""
        try:
            return Question(self.cascade.task.of_json(record))
        except (TypeError, KeyError, ValueError) as error:  # a task of the user's own
            raise Refused(f"The input is not one of this task: {error}") from None

    def of_tensors(self, tensors: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Question]:
        """Returns inputs from strings of JSON."""
        return of_strings(self, tensors)

    def quick(self, parts: Sequence[Question]) -> list[Found]:
        """Lets the student answer where it may."""
        self.cascade.begin(parts)
        given = [part for part in parts if part.given]
        replies = iter(self.cascade.end(given) if given else ())
        return [Found(self._columns(part, next(replies))) if part.given else Found({}, open=(0,)) for part in parts]

    def ask(self, part: Question, items: Sequence[int], seconds: float) -> Columns:
        """Asks the black box."""
        self.cascade.ask([part])
        return self._columns(part, self.cascade.end([part])[0])

    def _columns(self, part: Question, reply: Reply[Any]) -> Columns:
        to_json, known = self.cascade.task.to_json, reply.text is not None
        answer = beyond(to_json(part.input), to_json(reply.text)) if known else None
        return {
            **{"answer": [answer], "proved": [False], "source": [reply.source], "probability": [reply.probability]},
            **{"promised": [reply.promised], "status": [reply.reason], "version": [reply.version]},
            "agreed": [reply.agreed],
        }

    def problem(self, part: Question) -> tuple[Problem, Sequence[str]]:
        """Returns an input as the student's problem."""
        champion = self.cascade.champion
        if champion is None:
            raise Refused("There is no student yet: the black box answers, and nobody can say how.")
        return champion.model.batch([part.input])[0], champion.model.names(part.input)

    def examples(self) -> list[Question]:
        """Returns no inputs: a cascade counts and audits all that it answers."""
        return []

    def warm(self) -> None:
        """Lets the student answer made-up text, without any trace."""
        champion, texts = self.cascade.champion, list[Any]()
        if isinstance(self.cascade.task, Extraction):
            texts = list(generate_news(8, seed=0, labelled=False))
        elif isinstance(self.cascade.task, Tagging):
            texts = [Tagged(str(n), each.tokens) for n, each in enumerate(generate_news(8, seed=0))]
        if champion is not None and texts:
            for n in (1, 8, 64):
                champion((texts * 8)[:n])

    def state(self) -> dict[str, Any]:
        """Returns its promise, version, agreement and notes."""
        cascade, agreement = self.cascade, self.cascade.agreement
        return cascade.standing() | {
            "version": self.version if cascade.champion is None else cascade.champion.name,
            "agreement": [agreement.estimate, agreement.low, agreement.high, agreement.n] if agreement.n else None,
            "audits": cascade.counters.audits,
            "disagreements": cascade.counters.disagreements,
            "calls": cascade.counters.calls,
            "notes": list(map(str, cascade.notes)),
        }

    def use(self, box: Callable[[Any], Any]) -> None:
        """Takes the way to call a black box that is a function."""
        if self.box is not None:
            self.cascade.black_box = box

    def close(self) -> None:
        """Ends learning, and saves."""
        self.cascade.__exit__(None, None, None)
        self.cascade.save(self.path)
