"""Text: sentences for a labeller of entities and relations, and for a tagger of words; any input for a cascade.

The student of a cascade answers in the fast lane where it is sure; the black box is asked in the slow lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hasten.cascade import Cascade
from hasten.cascade.boxes import beyond
from hasten.cascade.parts import Question, Reply
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.serve.problems import gap_of
from hasten.serve.served import ABOUT, Columns, Found, Part, Refused, Served, Tensor
from hasten.speedup.parts import Limits
from hasten.speedup.predictor import Speedup
from hasten.tasks.entity_relation.data.columns import Columns as Sentences
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
from hasten.tasks.entity_relation.data.synthetic import generate as generate_news
from hasten.tasks.entity_relation.explain import read_sentence
from hasten.tasks.entity_relation.extraction import Extraction
from hasten.tasks.entity_relation.labelling import all_in_words
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.entity_relation.task import variable_names
from hasten.tasks.tagging.corpus import Tagged
from hasten.tasks.tagging.corpus import generate as generate_tagged
from hasten.tasks.tagging.model import Tagging
from hasten.tasks.tagging.tagger import SequenceTagger
from hasten.tasks.text.words import Vocabulary

MOST_TOKENS, MOST_SPANS = 2000, 64  # of one input


class ServedText(Served[Part]):
    """The common part of models of text: each item is a text of its own; as a tensor, JSON in a string."""

    inputs = (Tensor("text", "BYTES", (-1,)),)

    def of_tensors(self, tensors: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Part]:
        """Returns texts from strings."""
        return [self.read(self.one.decode(text)) for text in tensors["text"]]

    def about(self, answer: Solution) -> Columns:
        """Returns how an answer came about, in columns of one."""
        return {
            "cost": [answer.cost],
            "proved": [answer.proved],
            "source": [answer.source.value],
            "gap": [gap_of(answer)],
            "status": [answer.reason or answer.status.value],
            "version": [self.version],
        }


class ServedLabeller(ServedText[Sentence]):
    """A labeller of entities and relations."""

    kind = "labeller"
    outputs = (
        Tensor("types", "BYTES", (-1,)),
        Tensor("relations", "BYTES", (-1,)),
        Tensor("cost", "FP64", (-1,)),
        *ABOUT,
    )

    def __init__(self, name: str, version: str, tagger: Tagger) -> None:
        super().__init__(name, version)
        self.tagger, self.vocabulary = tagger, Vocabulary()
        self.speedup = tagger.speedup

    def read(self, record: dict[str, Any]) -> Sentence:
        """Returns a sentence, without labels; as `text`, words with the entities in brackets."""
        typed = record.get("text") if "tokens" not in record else None
        sentence = read_sentence(typed) if isinstance(typed, str) else from_object(record, "").unlabeled()
        if len(sentence.tokens) > MOST_TOKENS or len(sentence.spans) > MOST_SPANS:
            raise Refused(f"A sentence has at most {MOST_TOKENS:,} tokens and {MOST_SPANS} spans here.")
        return sentence

    def quick(self, parts: Sequence[Sentence]) -> list[Found]:
        """Proves sentences."""
        return self._labelled(parts, asking=False)

    def _labelled(self, parts: Sequence[Sentence], asking: bool) -> list[Found]:
        task, scorer, searches = self.tagger.task, self.tagger.scorer, self.tagger.searches
        found = list[Found]()
        for chunk in Sentences.of(parts, self.vocabulary).chunks():
            text = scorer.read(chunk)
            batch = task.batch(text.n_entities, scorer.lazy(text) if searches else scorer.costs(text)[0])
            answers, given = (self.speedup.ask(batch), None) if asking else self.speedup.at_once(batch)
            words = all_in_words(task, answers.labels, text.n_entities)
            for n, (answer, (types, relations)) in enumerate(zip(answers, words, strict=True)):
                known = answer.values is not None
                columns = {"types": [types if known else None], "relations": [relations if known else None]}
                found.append(Found(columns | self.about(answer), open=() if given is None or given[n] else (0,)))
        return found

    def ask(self, part: Sentence, items: Sequence[int], seconds: float) -> Columns:
        """Labels a sentence with the help of the solver."""
        limits = self.speedup.limits
        self.speedup.set_params(limits=Limits(min(seconds, limits.time_limit or seconds), max_nodes=limits.max_nodes))
        return self._labelled([part], asking=True)[0].columns

    def problem(self, part: Sentence) -> tuple[Problem, Sequence[str]]:
        """Returns a sentence as a problem."""
        text = self.tagger.scorer.read([part])
        problem = self.tagger.task.batch(text.n_entities, self.tagger.scorer.costs(text)[0])[0]
        return problem, variable_names([" ".join(part.tokens[first:last]) for first, last in part.spans])

    def examples(self) -> list[Sentence]:
        """Returns made-up news."""
        return list(generate_news(8, seed=0, labelled=False))


class TagRecord(msgspec.Struct, forbid_unknown_fields=True):
    """One sentence to tag: its tokens, or text with spaces between them."""

    tokens: list[str] | None = None
    text: str = ""
    id: str = ""
    rules: list[str] = []


class ServedTagger(ServedText[Tagged]):
    """A tagger of words."""

    kind, record = "tagger", TagRecord
    outputs = (Tensor("tags", "BYTES", (-1,)), Tensor("cost", "FP64", (-1,)), *ABOUT)

    def __init__(self, name: str, version: str, tagger: SequenceTagger) -> None:
        super().__init__(name, version)
        self.tagger = tagger
        self.speedup = Speedup(tagger.model.schema, solver=tagger.solver)

    def read(self, record: TagRecord) -> Tagged:
        """Returns a sentence."""
        words = record.text.split() if record.tokens is None else record.tokens
        if len(words) > MOST_TOKENS:
            raise Refused(f"A sentence has at most {MOST_TOKENS:,} tokens here.")
        sentence = Tagged(record.id, tuple(words), rules=tuple(record.rules))
        if sentence.rules:
            self.tagger.model.batch([sentence])  # refuses rules that it cannot read
        return sentence

    def quick(self, parts: Sequence[Tagged]) -> list[Found]:
        """Proves sentences."""
        answers, given = self.speedup.at_once(self.tagger.model.batch(parts))
        each = zip(parts, answers, given.tolist(), strict=True)
        return [Found(self._tagged(part, answer), open=() if done else (0,)) for part, answer, done in each]

    def _tagged(self, part: Tagged, answer: Solution) -> Columns:
        known = answer.values is not None and not self.tagger.model.impossible(part)
        return {"tags": [answer.names if known else None]} | self.about(answer)

    def ask(self, part: Tagged, items: Sequence[int], seconds: float) -> Columns:
        """Tags a sentence with the help of the solver."""
        self.speedup.set_params(limits=Limits(seconds))
        return self._tagged(part, self.speedup.ask(self.tagger.model.batch([part]))[0])

    def problem(self, part: Tagged) -> tuple[Problem, Sequence[str]]:
        """Returns a sentence as a problem."""
        problem = self.tagger.model.batch([part])[0]
        return problem, problem.variable_names(part.words)

    def examples(self) -> list[Tagged]:
        """Returns made-up news."""
        return [each.untagged() for each in generate_tagged(8, 0)]


class ServedCascade(ServedText[Question]):
    """A cascade, saved in its file whenever it ends."""

    kind, stateful, keeps = "cascade", True, True
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
