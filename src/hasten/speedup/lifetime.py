"""Learning tables over a lifetime: when to choose anew how to answer, and from which answers.

Answers of the black box are kept as they come in. When there are half as many new ones as before, every choice is made
anew. When audits ended the trust, the black box may have changed: once there are enough answers since then, those alone
are learned from, and if that agrees with them better than what was learned before, all older answers are forgotten.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import numpy as np

from hasten.learning.learner import Learner
from hasten.learning.targets import Answers
from hasten.model.batch import Batch
from hasten.model.solution import Solutions, same_labels
from hasten.speedup.audit import Counters
from hasten.speedup.choosing import Choice
from hasten.speedup.lessons import AFRESH
from hasten.speedup.state import Memory
from hasten.support.arrays import IntArray

log = logging.getLogger(__name__)
Choose = Callable[[Batch, IntArray, IntArray], tuple[Choice, Learner | None]]
Find = Callable[[Choice, Batch], Solutions]


def learn_more(
    memory: Memory,
    lock: threading.RLock,
    batch: Batch,
    answers: Answers,
    choose: Choose,
    find: Find,
    level: float | None,
    now: bool = False,
) -> None:
    """Keeps answers to learn from, and chooses anew how to answer when there are enough new ones, or now.

    Choosing takes a while; the lock is not held meanwhile, so that others can go on with what was learned before.
    """
    with lock:
        lessons = memory.lessons
        memory.count(Counters(labelled=lessons.add(batch, answers)))
        if not lessons.kept or not (now or lessons.due):
            return
        since, before = lessons.n_since, memory.choice
        known, recent = lessons.taken(), None
        if since is not None and since >= AFRESH:
            lessons.n_since = None
            if before is not None and since < len(lessons.kept):
                recent = lessons.taken(since)
        lessons.learned(len(known[0]))
    if recent is not None and before is not None and _is_better_afresh(before, *recent, choose, find):
        note = f"The black box seems to have changed: all but its last {len(recent[0])} answers are forgotten."
        log.info("%s", note)
        with lock:
            lessons.forget(len(recent[0]))
            memory.note(note)
        known = recent
    choice, learner = choose(*known, np.arange(len(known[0])))
    with lock:
        memory.adopt(choice, learner, level)


def _is_better_afresh(before: Choice, batch: Batch, labels: IntArray, choose: Choose, find: Find) -> bool:
    """Whether learning from recent answers alone agrees with them better than what was learned before them."""
    n_before = int(same_labels(batch, find(before, batch).values, labels).sum())
    choice, _ = choose(batch, labels, np.arange(len(batch)))
    held = choice.agreement.get(choice.way)
    return held is not None and held.estimate * held.n > n_before + 1
