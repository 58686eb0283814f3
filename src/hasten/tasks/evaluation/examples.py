"""Example inputs: chosen where the methods differ, and drawn with the labels that each method gives them.

An example is plain data for `results.json`: `names`, what each variable is called; `labels`, for every method, a label
for each variable or None; `violations`, the constraints that these break; `null_labels`, which say nothing. `words` is
the running text, each word with the number of its variable or None, where variables are not simply one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hasten.model.solution import Solutions
from hasten.support.words import Html, count, join, tag
from hasten.tasks.evaluation.measuring import in_words, same_answers
from hasten.tasks.evaluation.page import GREY, Entry, empty, key_of, label_colours
from hasten.tasks.evaluation.study import Row

N_EXAMPLES = 6
FEWEST, MOST = 5, 24  # variables that an example should have
REFERENCE, GOLD = "ILP", "gold"


def choose(greedy: str, labelled: Mapping[str, Solutions], about: Callable[[int], Row]) -> list[Row]:
    """Returns some short inputs on which `greedy` misses the reference's answer, those first that others miss too.

    `about` gives the number of an input its `names`, and the labels that are `gold`. No two have the same answer.
    """
    reference = labelled[REFERENCE]
    batch, sizes = reference.batch, reference.batch.n_variables
    missed = {name: ~same_answers(found, reference) for name, found in labelled.items()}
    dull = (sizes < FEWEST) | (sizes > MOST)
    chosen: dict[bytes, Row] = {}
    for p in np.lexsort((sizes, -np.sum(list(missed.values()), axis=0), dull)).tolist():
        answer = reference[p]
        if not (missed[greedy][p] and answer.valid and sizes[p] <= 2 * MOST and len(chosen) < N_EXAMPLES):
            continue
        example = about(p)
        labels = {name: in_words(found, p) for name, found in labelled.items()} | {GOLD: example.pop(GOLD)}
        broken = {
            name: [str(each) for each in batch[p].check(found[p].labels).violations]
            for name, found in labelled.items()
            if found[p].values is not None
        }
        example |= {"input": p, "labels": labels, "violations": broken}
        chosen.setdefault(answer.labels.tobytes(), example)
    return list(chosen.values())


def draw(examples: Sequence[Entry]) -> Html:
    """Returns the examples; methods that label one alike share a drawing of it."""
    if not examples:
        return empty("No short input on which the methods differ was kept.")
    null_labels = {str(label) for each in examples for label in each.get("null_labels") or ()}
    every = {label for each in examples for labels in (each.get("labels") or {}).values() for label in labels}
    colours = label_colours(sorted(str(label) for label in every if label is not None), null_labels)
    named = {name: colour for name, colour in colours.items() if name not in null_labels}
    said = "Greedy search goes wrong on these. What differs from the ILP’s answer is orange."
    return join(tag("p", said), key_of(named), [_draw_one(each, colours, null_labels) for each in examples])


def _draw_one(example: Entry, colours: Mapping[str, str], null_labels: set[str]) -> Html:
    names = [str(name) for name in example.get("names") or ()]
    labels: Mapping[str, Sequence[str | None]] = example.get("labels") or {}
    violations: Mapping[str, Sequence[str]] = example.get("violations") or {}
    words: Sequence[tuple[Any, int | None]] = example.get("words") or [(name, v) for v, name in enumerate(names)]
    reference = labels.get(REFERENCE) or [None] * len(names)
    inline, alike = {v for _, v in words}, dict[tuple[str | None, ...], list[str]]()
    for who, mine in labels.items():
        alike.setdefault(tuple(mine), []).append(who)

    def chip(name: object, label: str | None, wanted: str | None) -> Html:
        shown, quiet = "no answer" if label is None else label, label in null_labels and label == wanted
        kind = "chip quiet" if quiet else "chip" if label == wanted else "chip other"
        tint = f"--tint:{colours.get(shown, GREY)}"
        return tag("span", name, None if quiet else tag("small", shown), class_=kind, style=tint)

    panels = []
    for mine, methods in alike.items():
        pairs = list(zip(mine, reference, strict=False))
        text = [word if v is None or v >= len(pairs) else chip(word, *pairs[v]) for word, v in words]
        others = [chip(names[v], *pair) for v, pair in enumerate(pairs) if v not in inline and set(pair) - null_labels]
        n = sum(label != wanted for label, wanted in pairs)
        state = tag("span", count(n, "difference"), class_="state warn") if n else None
        broken = dict.fromkeys(str(each) for who in methods for each in violations.get(who) or ())
        said = [tag("li", _named(each, names), class_="warn") for each in broken]
        lines = [tag("p", [(each, " ") for each in line], class_="chips") for line in (text, others) if line]
        panels.append(tag("div", tag("h4", ", ".join(methods), " ", state), lines, tag("ul", said), class_="panel"))
    return tag("article", tag("div", panels, class_="panels two"), class_="sentence")


def _named(violation: str, names: Sequence[str]) -> str:
    """Returns a violation with the names of variables in place of their numbers."""

    def name(found: re.Match[str]) -> str:
        v = int(found[1])
        return f"“{names[v]}”" if v < len(names) else found[0]

    return re.sub(r"\bvariable (\d+)", name, violation)
