"""One sentence of a trained model, explained: how the searches label it, where they go wrong, and the proof.

The page needs nothing else, no scripts and no network; whoever never read the paper should understand it from there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from hasten.errors import CorpusError
from hasten.proof.certifier import Certifier
from hasten.search.beam import greedy
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
from hasten.tasks.entity_relation.labelling import in_words
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.entity_relation.task import variable_names
from hasten.tasks.text.lines import parse_object
from hasten.trace.drawing import on_a_page, paragraphs
from hasten.trace.events import Trace

HOW = 'Write the entities in brackets: "[Colin] went home to [Ordon Village]."'
MOST_ENTITIES = 12  # more, and the pictures are not readable
PAGE = (
    "body{margin:0;background:#fbfbfa}@media screen and (prefers-color-scheme:dark){body{background:#14171b}}"
    "main{max-width:1240px;margin:0 auto;padding:24px 12px}"
    ".hasten-seen{margin-bottom:20px}.hasten-seen h1{font-size:22px;line-height:1.35;margin:0 0 12px}"
    ".hasten-seen mark{background:var(--shade);color:inherit;border-radius:4px;padding:1px 5px}"
    ".hasten-seen mark small{color:var(--kept);margin-left:5px;font-size:12px}"
    "@media print{html,body{background:#fff;color-scheme:light}main{max-width:none;padding:0}}"
)


@dataclass(frozen=True)
class Explanation:
    """How one sentence is labelled: two searches and a proof; `str` tells it, `to_html` is a page."""

    sentence: Sentence
    types: tuple[str, ...]  # the answer
    relations: tuple[tuple[int, int, str], ...]
    searches: tuple[Trace, ...]
    proof: Trace

    def __str__(self) -> str:
        told = [str(trace) for trace in (*self.searches, self.proof)]
        return "\n\n\n".join(["\n".join([self._marked(), *self._relations()]), *told])

    def summary(self) -> list[str]:
        """Returns the answer, and how the searches and the proof ended, in five lines."""
        searches = [f"{trace.title}: {' '.join(trace.summary()[1:]) or trace.status}" for trace in self.searches]
        proof = f"Proof: {self.proof.status}" + (" The answer above is the reference." if self.types else "")
        return [self._marked(), " ".join(self._relations()) or "No relation.", proof, *searches]

    def to_html(self) -> str:
        """Returns it as a page."""
        words = " ".join(
            f"<mark>{escape(words)}<small>{escape(kind)}</small></mark>" if kind else escape(words)
            for words, kind in self._pieces()
        )
        lead = [
            "The black box gives every label a cost; its answer is the cheapest labelling that breaks no constraint, "
            f"proved below. It has {len(self.proof.names)} variables: a type for each entity, and a relation for "
            "each ordered pair of them.",
            *self._relations(),
        ]
        parts = [
            on_a_page(f"<h1>{words}</h1>", paragraphs(lead)),
            *(on_a_page(trace.section()) for trace in self.searches),
            on_a_page(self.proof.section()),
        ]
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark"><title>hasten: a sentence explained</title>'
            f"<style>{PAGE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
        )

    def _relations(self) -> list[str]:
        phrases = [" ".join(self.sentence.tokens[first:last]) for first, last in self.sentence.spans]
        return [f"{phrases[source]} → {phrases[target]}: {name}." for source, target, name in self.relations]

    def _marked(self) -> str:
        return " ".join(f"[{words}]({kind})" if kind else words for words, kind in self._pieces())

    def _pieces(self) -> list[tuple[str, str]]:
        """Returns the words of the sentence in order, those of entities together with their types."""
        pieces, at = [], 0
        for (first, last), kind in zip(self.sentence.spans, self.types, strict=True):
            pieces += [(token, "") for token in self.sentence.tokens[at:first]]
            pieces.append((" ".join(self.sentence.tokens[first:last]), kind))
            at = last
        return [*pieces, *((token, "") for token in self.sentence.tokens[at:])]


def explain(tagger: Tagger, sentence: Sentence, *, width: int | None = None, theta: float | None = None) -> Explanation:
    """Explains a sentence: greedy search, the tagger's own search, and the proof of the answer.

    `width` and `theta` take the place of the tagger's own.
    """
    if len(sentence.spans) > MOST_ENTITIES:
        raise CorpusError(
            f"Sentence {sentence.id!r} has {len(sentence.spans)} entities; of more than {MOST_ENTITIES} a picture "
            "shows too little. Choose a shorter sentence."
        )
    text, task, n = tagger.scorer.read([sentence]), tagger.task, len(sentence.spans)
    problem = task.batch(text.n_entities, tagger.scorer.costs(text)[0])[0]
    names = variable_names([" ".join(sentence.tokens[first:last]) for first, last in sentence.spans])
    proof = Certifier().trace(problem, names=names)
    best = proof.solution
    reference = None if best is None or best.values is None else best
    searches = tuple(each.trace(problem, reference, names=names) for each in (greedy(), tagger.beam(width, theta)))
    types, relations = in_words(task, reference.labels, n) if reference is not None else (("",) * n, ())
    return Explanation(sentence, types, relations, searches, proof)


def read_sentence(text: str) -> Sentence:
    """Reads a sentence as someone types it: a JSON object as in files, or words with the entities in brackets."""
    if text.lstrip().startswith("{"):
        return from_object(parse_object(text), "1")
    tokens: list[str] = []
    spans: list[tuple[int, int]] = []
    for piece in re.split(r"(\[[^\[\]]*\])", text):
        bracketed = piece.startswith("[") and piece.endswith("]") and len(piece) > 1
        inside = piece[1:-1] if bracketed else piece
        if "[" in inside or "]" in inside:
            raise CorpusError(f"A bracket in {text!r} is open, or closed, without its partner. {HOW}")
        words = inside.split() if bracketed else [part for word in inside.split() for part in _parts(word)]
        if bracketed:
            if not words:
                raise CorpusError(f"There is nothing between the brackets of {text!r}. {HOW}")
            spans.append((len(tokens), len(tokens) + len(words)))
        tokens += words
    if not spans:
        raise CorpusError(f"The sentence {text!r} has no entities. {HOW}")
    return Sentence("1", tuple(tokens), tuple(spans))


def _parts(word: str) -> list[str]:
    """Returns a word without the marks around it, and these marks: corpora have them as tokens of their own."""
    ((before, middle, after),) = re.findall(r"(?s)^([\"'“‘(]*)(.*?)([\"'”’),;:!?.]*)$", word)
    return [*before, *([middle] if middle else []), *after]
