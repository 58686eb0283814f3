"""The log of a proof: what kernels say of it, and how they let labels go.

Labels that a table or a row leaves no room for go, and those that cost too much. What goes is a split: the part with
the labels that go ends at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph
from hasten.proof.sweep.dual import Dual
from hasten.support.arrays import FloatArray, IntArray

SPLIT, SUM, VIOLATED, LEAF, MOVE, PRICE = 0, 1, 2, 3, 4, 5  # what the log says
WORDS, NUMBERS, DONE = 0, 1, 2  # what is used of both, and whether the proof is complete
STAYS, GOES, GONE = 0.0, 1.0, 2.0  # marks of labels


class Log(NamedTuple):
    """Steps, as words, with the numbers of messages and multipliers beside them."""

    words: IntArray
    numbers: FloatArray
    used: IntArray  # (3,)


@inlined_kernel
def say(log: Log, word: int) -> None:
    """Adds a word, as long as there is room."""
    if log.used[WORDS] < log.words.size:
        log.words[log.used[WORDS]] = word
    log.used[WORDS] += 1


@inlined_kernel
def say_number(log: Log, number: float) -> None:
    """Adds a number, as long as there is room."""
    if log.used[NUMBERS] < log.numbers.size:
        log.numbers[log.used[NUMBERS]] = number
    log.used[NUMBERS] += 1


@inlined_kernel
def is_full(log: Log) -> bool:
    """Whether there was no room for something."""
    return bool(log.used[WORDS] > log.words.size or log.used[NUMBERS] > log.numbers.size)


@inlined_kernel
def say_split(log: Log, v: int, n_parts: int) -> None:
    """Begins a split, of which the parts follow."""
    say(log, SPLIT)
    say(log, v)
    say(log, n_parts)


@kernel
def say_labels(graph: Graph, dual: Dual, v: int, m: int, mark: float, log: Log) -> None:
    """Adds a part of a split: the labels of a variable that have a mark."""
    n, place = 0, log.used[WORDS]
    say(log, 0)
    for i in range(graph.first[v + 1] - graph.first[v]):
        if dual.marginal[m + i] == mark:
            say(log, i)
            n += 1
    if place < log.words.size:
        log.words[place] = n


@kernel
def let_go(graph: Graph, dual: Dual, v: int, m: int, log: Log) -> int:
    """Logs a split into labels that go and that stay, by their marks from `m` on; returns how many go; -1: all do."""
    n_out, n_left = 0, 0
    for i in range(graph.first[v + 1] - graph.first[v]):
        n_out += dual.marginal[m + i] == GOES
        n_left += dual.marginal[m + i] == STAYS
    if n_left == 0:
        return -1
    if n_out:
        say_split(log, v, 2)
        say_labels(graph, dual, v, m, GOES, log)
        say_labels(graph, dual, v, m, STAYS, log)
        for i in range(graph.first[v + 1] - graph.first[v]):
            if dual.marginal[m + i] == GOES:
                dual.belief[graph.first[v] + i] = np.inf
    return n_out


@kernel
def keep_allowed(graph: Graph, dual: Dual, log: Log) -> bool:
    """Logs splits that take labels of infinite costs out of tables; false if a variable has no other."""
    marks = dual.marginal
    for v in range(graph.order.size):
        n_left, n = 0, graph.first[v + 1] - graph.first[v]
        for i in range(n):
            marks[i] = STAYS if dual.belief[graph.first[v] + i] < np.inf else GONE
            n_left += marks[i] == STAYS
        if n_left == 0:
            say(log, SUM)
            return False
        if n_left < n:
            say_split(log, v, 1)
            say_labels(graph, dual, v, 0, STAYS, log)
    return True


@kernel
def supported(graph: Graph, table: FloatArray, f: int, dual: Dual) -> bool:
    """Marks the labels of factor `f` that no tuple has by 1, others by 0; false if no tuple is left."""
    a0, a1 = graph.scope_first[f], graph.scope_first[f + 1]
    listing, m0, marks, found = graph.listing[f], graph.message_at[a0], dual.marginal, False
    for a in range(a0, a1):
        v, m = graph.scope[a], graph.message_at[a] - m0
        for i in range(graph.first[v + 1] - graph.first[v]):
            marks[m + i] = GOES if dual.belief[graph.first[v] + i] < np.inf else GONE
    t0, label_at = graph.list_first[listing], graph.list_label_at[listing]
    for t in range(t0, graph.list_first[listing + 1]):
        at, possible = label_at + (t - t0) * (a1 - a0), table[graph.table_at[f] + graph.list_entry[t]] < np.inf
        for s in range(a1 - a0):
            possible = possible and marks[graph.message_at[a0 + s] - m0 + graph.list_label[at + s]] < GONE
        if possible:
            found = True
            for s in range(a1 - a0):
                marks[graph.message_at[a0 + s] - m0 + graph.list_label[at + s]] = STAYS
    return found


@kernel
def leave_tables(graph: Graph, table: FloatArray, dual: Dual, log: Log) -> int:
    """Lets labels go that a table forbids; returns how many, -1 if the node is done."""
    n_out = 0
    for f in range(graph.table_at.size):
        if graph.table_at[f] < 0:
            continue
        if not supported(graph, table, f, dual):
            say(log, SUM)
            return -1
        a0 = graph.scope_first[f]
        for a in range(a0, graph.scope_first[f + 1]):
            m = graph.message_at[a] - graph.message_at[a0]
            n = let_go(graph, dual, graph.scope[a], m, log)
            if n > 0:
                say(log, SUM)
                n_out += n
    return n_out


@inlined_kernel
def span(graph: Graph, r: int, c: int, belief: FloatArray) -> tuple[float, float, int]:
    """Returns the least and the most that the variable of cell `c` adds to row `r`, and the next one's first cell."""
    v, c1 = graph.row_variable[c], graph.row_first[r + 1]
    least, most = np.inf, -np.inf
    for at in range(graph.first[v], graph.first[v + 1]):
        weight = 0.0
        if c < c1 and graph.row_label[c] == at:
            weight = graph.row_weight[c]
            c += 1
        if belief[at] < np.inf:
            least, most = min(least, weight), max(most, weight)
    return least, most, c


@kernel
def leave_row(graph: Graph, r: int, dual: Dual, log: Log) -> int:
    """Lets labels go that row `r` leaves no room for; returns how many, -1 if the node is done."""
    low, high, n_out, marks = 0.0, 0.0, 0, dual.marginal
    c, c1 = graph.row_first[r], graph.row_first[r + 1]
    while c < c1:
        least, most, c = span(graph, r, c, dual.belief)
        low, high = low + least, high + most
    top, bottom = graph.row_most[r] + graph.row_margin[r], graph.row_least[r] - graph.row_margin[r]
    if low > top or high < bottom:
        say(log, VIOLATED)
        say(log, r)
        return -1
    c = c1 if high <= top and low >= bottom else graph.row_first[r]
    while c < c1:
        begin, v = c, graph.row_variable[c]
        least, most, c = span(graph, r, c, dual.belief)
        for side in range(2 if least < most else 0):
            x = begin
            for at in range(graph.first[v], graph.first[v + 1]):
                weight = 0.0
                if x < c and graph.row_label[x] == at:
                    weight = graph.row_weight[x]
                    x += 1
                goes = high + (weight - most) < bottom if side else low + (weight - least) > top
                marks[at - graph.first[v]] = GONE if dual.belief[at] == np.inf else GOES if goes else STAYS
            n = let_go(graph, dual, v, 0, log)
            if n:
                say(log, VIOLATED)
                say(log, r)
                n_out += n
            if n < 0:
                return -1
    return n_out


@kernel
def leave_expensive(graph: Graph, dual: Dual, room: float, log: Log) -> int:
    """Lets labels go that cost `room` more than their variable's cheapest, or more; returns how many."""
    n_out, marks = 0, dual.marginal
    for v in range(graph.order.size):
        least = np.inf
        for at in range(graph.first[v], graph.first[v + 1]):
            least = min(least, dual.belief[at])
        for at in range(graph.first[v], graph.first[v + 1]):
            goes = dual.belief[at] - least >= room
            marks[at - graph.first[v]] = GONE if dual.belief[at] == np.inf else GOES if goes else STAYS
        n = let_go(graph, dual, v, 0, log)
        if n > 0:
            say(log, SUM)
            n_out += n
    return n_out


@inlined_kernel
def say_price(log: Log, r: int, u: float) -> None:
    """Logs the multiplier of a row, as certificates take it: positive for the low limit."""
    say(log, PRICE)
    say(log, r)
    say_number(log, u)
