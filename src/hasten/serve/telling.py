"""What the page is told of a server: counts of each batch, the latest inputs, and marks of what changed."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import msgspec

from hasten.serve.batching import Batch, Request
from hasten.serve.lifetime import Answered, Lifetime, Window, bucket
from hasten.serve.served import Served

MARKS = {"not trusted": "alarm", "answers from now on": "version"}  # notes that the charts mark
TRUST = "trusted", "allowed", "promise", "version", "suspect"
ABOUT = "source", "agreed", "status", "probability", "proved", "version", "gap"  # what is not the answer itself
SHOWN = 8  # requests that the page is told of, each time
DIGITS = 4  # of numbers
MOST_SHOWN = 4096  # bytes of an input


class Teller(Lifetime):
    """The lifetime of what a server answers: counts each batch; `tell`, called now and then, does what takes longer."""

    def __init__(self, served: Served[Any]) -> None:
        super().__init__({"name": served.name, "kind": served.kind}, self.standing)
        self.served, self._n_asked, self._n_notes = served, 0, 0
        self._last = deque[tuple[Request, float]](maxlen=SHOWN)

    def seen(self, batch: Batch, now: float) -> None:
        """Counts a batch."""
        self._n_asked += batch.n_asked
        if not batch.sources:
            return
        window = self.window()
        window.calls, self._n_asked = window.calls + self._n_asked, 0
        for (source, proved), n in batch.sources.items():
            window.by[source] += n
            window.proved += n * bool(proved)
        for request in batch.requests:
            if request.n_items and request.found and not isinstance(request.reply, BaseException):
                window.seconds[bucket(now - request.call.began)] += request.n_items
                if request.slow or self.served.stateful:
                    self._count_trust(request, window)
                self._last.append((request, now))
        self.counted(batch.sources.total())

    def _count_trust(self, request: Request, window: Window) -> None:
        """Counts whether the black box agreed, and why it was asked."""
        for found in request.found:
            for agreed in found.columns.get("agreed", ()):
                window.audits += agreed is not None
                window.agreed += bool(agreed)
            if request.slow:
                window.reasons[str(found.columns["status"][found.at])] += 1

    def _shows(self, request: Request, now: float) -> Answered:
        """Returns what the page shows of the first answer to a request."""
        found, body = request.found[0], request.call.body[:MOST_SHOWN]
        told = self.served.told(request.parts[0], found.columns, found.at)
        known = {name: told.pop(name, None) for name in ABOUT}
        told = {name: round(each, DIGITS) if isinstance(each, float) else each for name, each in told.items()}
        given = msgspec.json.decode(body) if len(body) < MOST_SHOWN and request.call.body[:1] == b"{" else None
        explains = isinstance(given, dict) and "inputs" not in given
        words = (given.get("tokens") or given.get("text")) if explains and given is not None else None
        text = " ".join(words) if isinstance(words, list) else words
        return Answered(
            text or body.decode(errors="replace"),
            json.dumps(told, ensure_ascii=False),
            str(known["source"]),
            now - request.call.began,
            request.slow,
            known["agreed"],
            str(known["status"]) if request.slow else "",
            known["probability"],
            known["proved"],
            str(known["version"]),
            given if explains else None,
        )

    def tell(self) -> None:
        """Shows the latest answers, and marks what changed."""
        for n, each in enumerate(self._last, self.n - len(self._last) + 1):
            self.show(n, self._shows(*each))
        self._last.clear()
        notes = self.served.state().get("notes", ())
        for note in notes[self._n_notes :]:
            kind = next((kind for words, kind in MARKS.items() if words in note), "note")
            text = note.partition(": ")[2] or note
            self.mark(kind, text.split(" ", 1)[0] if kind == "version" else kind, text)
        self._n_notes = len(notes)

    def standing(self) -> dict[str, Any]:
        """Returns how things stand."""
        state = self.served.state()
        found = {name: state[name] for name in TRUST if state.get(name) is not None}
        alarms = [note for note in state.get("notes", ()) if "not trusted" in note]
        return found | ({"alarm": alarms[-1]} if alarms and not found.get("trusted", True) else {})
