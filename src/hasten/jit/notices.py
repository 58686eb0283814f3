"""Telling that kernels are being compiled: never silence while somebody waits.

In a terminal there is a line with a spinner until it is done; elsewhere one line in the log of each process.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from typing import Any

from numba.core import event

log = logging.getLogger("hasten")
WORDS = "hasten compiles its kernels for this machine, once; they are kept for later."


class Notices(event.Listener):  # type: ignore[misc]
    """Listens to Numba, and tells when the outermost kernel of ours begins and ends to be compiled."""

    def __init__(self) -> None:
        self.depth = 0
        self.told = False
        self.muted = 0
        self.spinner: Any = None
        self.lock = threading.RLock()

    def on_start(self, event: Any) -> None:
        """Notices that something begins to be compiled."""
        if self._is_ours(event):
            with self.lock:
                self.depth += 1
                if self.depth == 1 and not self.muted:
                    self._begin()

    def on_end(self, event: Any) -> None:
        """Notices that something was compiled."""
        if self._is_ours(event):
            with self.lock:
                self.depth -= 1
                if self.depth == 0 and self.spinner is not None:
                    self.spinner.stop()
                    self.spinner = None

    def _begin(self) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            with suppress(Exception):  # another display has the terminal: then its own progress is to be seen
                from rich.console import Console

                self.spinner = Console(stderr=True).status(WORDS)
                self.spinner.start()
        elif not self.told:
            log.warning(WORDS)
        self.told = True

    @staticmethod
    def _is_ours(event: Any) -> bool:
        function = getattr((event.data or {}).get("dispatcher"), "py_func", None)
        return str(getattr(function, "__module__", "")).startswith("hasten")


NOTICES = Notices()
event.register("numba:compile", NOTICES)
