"""Tells the page of the answers: counts each batch, shows a few of its inputs, and marks what changed."""

from __future__ import annotations

from typing import Any

import msgspec

from hasten.serve.batching import Batch, Request
from hasten.serve.lifetime import Answered, Lifetime, Window, bucket
from hasten.serve.served import Served

MARKS = {"not trusted": "alarm", "answers from now on": "version"}  # notes that the charts mark
TRUST = "trusted", "allowed", "promise", "version", "suspect"
ABOUT = "source", "agreed", "status", "probability", "proved", "version"  # what is not the answer itself
SHOWN = 8  # answers that the page is told of, each time
MOST_SHOWN = 4096  # bytes of an input


class Teller:
    """Counts in the event loop; `tell`, called now and then, hands it on to the lifetime."""

    def __init__(self, served: Served[Any]) -> None:
        self.served = served
        self.lifetime = Lifetime({"name": served.name, "kind": served.kind}, self.trust)
        self._window, self._shown, self._n_notes = Window(0, 0, 0.0, 0.0), list[Answered](), 0

    def seen(self, batch: Batch, now: float) -> None:
        """Counts a batch."""
        window = self._window
        window.calls += batch.n_asked
        for (source, proved), n in batch.sources.items():
            window.by[source] += n
            window.proved += n * bool(proved)
        for request in batch.requests:
            if request.n_items and request.found and not isinstance(request.reply, BaseException):
                window.seconds[bucket(now - request.call.began)] += request.n_items
                if request.slow or self.served.stateful:
                    self._count_trust(request)
                if len(self._shown) < SHOWN:
                    self._shown.append(self._shows(request, now))

    def _count_trust(self, request: Request) -> None:
        """Counts whether the black box agreed, and why it was asked."""
        for found in request.found:
            for agreed in found.columns.get("agreed", ()):
                self._window.audits += agreed is not None
                self._window.agreed += bool(agreed)
            if request.slow:
                self._window.reasons[str(found.columns["status"][found.at])] += 1

    def _shows(self, request: Request, now: float) -> Answered:
        """Returns what the page shows of the first answer to a request."""
        found, body = request.found[0], request.call.body[:MOST_SHOWN]
        told = self.served.told(request.parts[0], found.columns, found.at)
        known = {name: told.pop(name, None) for name in ABOUT}
        given = msgspec.json.decode(body) if len(body) < MOST_SHOWN and request.call.body[:1] == b"{" else None
        explains = isinstance(given, dict) and "inputs" not in given
        tokens = given.get("tokens") if explains and given is not None else None
        return Answered(
            " ".join(tokens) if tokens else body.decode(errors="replace"),
            msgspec.json.encode(told).decode(),
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
        """Tells the lifetime what was counted since it was told last."""
        if self._window.by.total():
            window, self._window, shown, self._shown = self._window, Window(0, 0, 0.0, 0.0), self._shown, []
            self.lifetime.add(window, shown)
        notes = self.served.state().get("notes", ())
        for note in notes[self._n_notes :]:
            kind = next((kind for words, kind in MARKS.items() if words in note), "note")
            text = note.partition(": ")[2] or note
            self.lifetime.mark(kind, text.split(" ", 1)[0] if kind == "version" else kind, text)
        self._n_notes = len(notes)

    def trust(self) -> dict[str, Any]:
        """Returns how things stand."""
        state = self.served.state()
        found = {"trusted": True} | {name: state[name] for name in TRUST if state.get(name) is not None}
        if not found["trusted"] and (alarms := [note for note in state.get("notes", ()) if "not trusted" in note]):
            found["alarm"] = alarms[-1]
        return found
