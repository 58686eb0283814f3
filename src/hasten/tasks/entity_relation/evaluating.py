"""How well a trained labeller does on labelled sentences: `hasten evaluate`.

Relations are compared as sets, so that each name of a joint label counts for itself. The type "none", which the paper's
corpus gives to spans that are nothing, is not a label to be found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import tee

from hasten.errors import CorpusError
from hasten.model.solution import Source
from hasten.support.words import first_few
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.scoring.gold import Unreachable
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.evaluation.scores import Evaluation, Item, Tally

TYPE, RELATION, STRICT = "type", "relation", "relation with its types"
NO_ENTITY = "none"


def evaluate(tagger: Tagger, sentences: Iterable[Sentence], *, seed: int = 0) -> Evaluation:
    """Lets a tagger label annotated sentences, of which it sees no label, and compares."""
    tally, counts, unreachable = Tally((TYPE, RELATION, STRICT), seed), Counter[str](), Unreachable.of((), tagger.task)
    gold, text = tee(_annotated(sentences))
    for sentence, answer in zip(gold, tagger.label(text), strict=True):
        tally.add(_items(sentence), _items(answer.sentence))
        unreachable = unreachable + Unreachable.of((sentence,), tagger.task)
        by_solver, failed = answer.source is Source.SOLVER, bool(answer.reason)
        counts.update(n_valid=answer.valid, n_proved=answer.proved, n_by_solver=by_solver, n_failed=failed)
    if not tally.n:
        raise CorpusError("There is no sentence to evaluate on. Give sentences with types and relations.")
    types = unreachable.reasons["types"]
    if 0 < unreachable.n_types == types.total():
        raise CorpusError(
            f"The model knows none of the types of these sentences: {first_few(list(types), 8)}. "
            f"Its own are {first_few(tagger.task.entity_labels, 8)}. Was it trained on another corpus?"
        )
    kinds = tally.result()
    kinds[STRICT].confused = []  # its places have types in them: nothing shares one
    return Evaluation(kinds, tally.n, tally.n_exact, unreachable=unreachable.as_dict(), **counts)


def _annotated(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    for sentence in sentences:
        if not sentence.annotated:
            raise CorpusError(
                f"Sentence {sentence.id!r} has no gold labels. Give types and relations, which may be an empty list."
            )
        yield sentence


def _items(sentence: Sentence) -> dict[str, set[Item]]:
    """Returns what is labelled in a sentence: its spans, its pairs, and its pairs with the types of both."""
    types = sentence.types or ("",) * len(sentence.spans)
    relations = sentence.relations or ()
    return {
        TYPE: {(n, name) for n, name in enumerate(types) if name and name != NO_ENTITY},
        RELATION: {((source, target), name) for source, target, name in relations},
        STRICT: {((s, t, types[s], types[t]), name) for s, t, name in relations},
    }
