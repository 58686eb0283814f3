"""How many inputs a student answers in front of a slow extractor, and whether its promise holds.

The extractor is a labeller of entities and relations (`hasten train`) that shows nothing but its answers. *Coverage*: a
linear student learns from 20,000 answers; 3,500 others fit and test its confidence; the rest are to come. *Promise*:
200 times other 3,500 answers fit and test, and the rest show whether more than the risk were wrong. *Drift*: a cascade
serves, and the extractor stops reporting relations, or mistakes two types for each other: wrong answers given until
trust ends, by audits alone and with the inputs that go to the extractor anyway.

    python benchmarks/cascade.py --labeller A.model TEXT...
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from dataclasses import replace

import numpy as np

from hasten.cascade.cascade import Cascade
from hasten.cascade.confidence import Confidence
from hasten.cascade.promise import promise
from hasten.cascade.student import SEEN, _answered, _same, train
from hasten.speedup.audit import Audit
from hasten.support.progress import tell_nobody
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.extraction import Extraction
from hasten.tasks.entity_relation.tagger import Tagger

RISKS = 0.02, 0.05, 0.1


def answers_of(labeller: str, sentences: list[Sentence]) -> list[Sentence]:
    """Returns what a labeller answers."""
    return [each.sentence for each in Tagger.load(labeller).label(sentences)]


def coverage(answers: list[Sentence], n_taught: int, n_held: int, resamples: int) -> None:
    """Prints coverage and realised risk, and how often the promise is broken."""
    began = time.process_time()
    student = train(Extraction(), answers[:n_taught], "v1", 0, tell_nobody)
    print(f"student trained on {n_taught:,} answers in {time.process_time() - began:.0f} s of processor time")
    rest = answers[n_taught:]
    found = _answered(student.model, rest)
    same = [_same(mine, list(student.model.gold(text))) for mine, text in zip(found.names, rest, strict=True)]
    right = np.array([all(each) for each in same])
    at, flat = found.batch.variable_at, np.concatenate([np.array(each, dtype=bool) for each in same])
    print(f"whole answers that are the extractor's: {right.mean():.3f} of {len(rest):,}")
    rng, broken = np.random.default_rng(0), {risk: list[tuple[float, float]]() for risk in RISKS}
    for run in range(resamples):
        order = np.arange(len(rest)) if run == 0 else rng.permutation(len(rest))
        held, test = order[:n_held], order[n_held:]
        seen, tested = held[::SEEN], np.setdiff1d(held, held[::SEEN])
        of_seen = np.concatenate([np.arange(at[p], at[p + 1]) for p in seen])
        fitted = Confidence.fit(found.groups[of_seen], found.margin[of_seen], flat[of_seen])
        log_p = fitted.log_probability(found.batch, found.groups, found.margin)
        for risk in RISKS:
            made = promise(risk, 0.95, (log_p[seen], right[seen]), (log_p[tested], right[tested]))
            given = log_p[test] >= made.threshold
            wrong = float((~right[test][given]).mean()) if given.any() else 0.0
            broken[risk].append((float(given.mean()), wrong))
            if run == 0:
                print(
                    f"  risk {risk:.0%}: {made}; on {len(test):,} to come: {given.mean():.1%} given, {wrong:.2%} wrong"
                )
    for risk, each in broken.items():
        shares, wrongs = np.array(each).T
        over = (wrongs > risk).mean()
        print(
            f"  risk {risk:.0%}, {resamples} resamples: mean coverage {shares.mean():.3f}, promise broken in {over:.1%}"
        )


def drift(before: list[Sentence], after: list[Sentence], n_taught: int, streams: int, risk: float) -> None:
    """Prints how many wrong answers are given until the change is noticed."""
    for alone in (True, False):
        wrong, noticed, false = [], [], 0
        for seed in range(streams):
            order = random.Random(seed).sample(range(len(before)), len(before))
            now = before

            def black_box(text: Sentence) -> Sentence:
                return now[int(text.id)]  # noqa: B023, the list that counts at the time

            cascade = Cascade(Extraction(), black_box, risk=risk, seed=seed)
            cascade.teach([before[n] for n in order[:n_taught]])
            if not cascade.trusted:
                print(f"  stream {seed}: {cascade.promise}")
                continue
            if alone:
                cascade._unsure = Audit(None)
            inputs = [before[n].unlabeled() for n in order[n_taught:]]
            cascade.predict(inputs[:1000])
            false += cascade.suspect is not None
            now, given, asked = after, 0, 0
            for text in inputs[1000:]:
                (reply,) = cascade.predict([text])
                asked += 1
                truth = after[int(text.id)]
                if reply.source == "student":
                    mine = reply.text
                    given += (mine.types, set(mine.relations)) != (truth.types, set(truth.relations))
                if cascade.suspect is not None:
                    break
            wrong.append(given)
            noticed.append(asked)
        how = "audits alone" if alone else "with unsure inputs"
        print(
            f"  {how}: {np.mean(wrong):.1f} wrong answers (each {wrong}), noticed after {np.mean(noticed):.0f} inputs; "
            f"{false} false alarms in {1000 * len(wrong):,} inputs before"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="+", help="corpora; sentences with two spans or more are used")
    parser.add_argument("--labeller", required=True, help="a file that `hasten train` wrote")
    parser.add_argument("--taught", type=int, default=20_000)
    parser.add_argument("--held", type=int, default=3500)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--streams", type=int, default=10)
    args = parser.parse_args()
    sentences = [each for path in args.text for each in Extraction().read(path) if len(each.spans) >= 2]
    random.Random(0).shuffle(sentences)
    sentences = [Sentence(str(n), each.tokens, each.spans, each.pos) for n, each in enumerate(sentences)]
    answers = answers_of(args.labeller, sentences)
    coverage(answers, args.taught, args.held, args.resamples)
    (one, _), (other, _) = Counter(name for each in answers for name in each.types or ()).most_common(2)
    swapped = {one: other, other: one}
    drifts = {
        "no relations any more": [replace(each, relations=()) for each in answers],
        f"{one} and {other} swapped": [
            replace(each, types=tuple(swapped.get(name, name) for name in each.types or ())) for each in answers
        ],
    }
    for name, others in drifts.items():
        changed = np.mean([a != b for a, b in zip(answers, others, strict=True)])
        print(f"drift: {name}, which changes {changed:.1%} of the answers; risk 10%")
        drift(answers[:8000], others[:8000], 5000, args.streams, 0.1)


if __name__ == "__main__":
    main()
