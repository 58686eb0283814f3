"""Telling that kernels are being compiled, so that nobody waits in silence.

In a terminal a line with a spinner shows until it is done or, where a bar shows already, one line above it; elsewhere
each process writes one line to the log.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from types import FunctionType
from typing import Any

from numba.core import event

from hasten.jit.cache import can_write
from hasten.jit.namespaces import seconds_to_compile
from hasten.support.locks import renew_after_fork
from hasten.support.terminal import drawn_on, is_terminal

log = logging.getLogger("hasten")
KEPT = "hasten is compiling kernels for this machine, once, and keeps them for later; this takes about {} s."
NOT_KEPT = "hasten is compiling kernels for this process, which takes about {} s; there is no place to keep them."


class Notices(event.Listener):  # type: ignore[misc]
    """Listens to Numba, and tells when compiling of our kernels begins and ends."""

    def __init__(self) -> None:
        self.depth = 0
        self.told = False
        self.spinner: Any = None
        self._renew_locks()
        renew_after_fork(self)

    def _renew_locks(self) -> None:
        """Makes a new lock, in a forked child."""
        self.lock = threading.RLock()

    def on_start(self, event: Any) -> None:
        """Notices that something begins to be compiled."""
        if self._is_ours(event):
            with self.lock:
                self.depth += 1
                if self.depth == 1:
                    self._begin(event.data["dispatcher"].py_func)

    def on_end(self, event: Any) -> None:
        """Notices that something was compiled."""
        if self._is_ours(event):
            with self.lock:
                self.depth -= 1
                if self.depth == 0 and self.spinner is not None:
                    self.spinner.stop()
                    self.spinner = None

    def _begin(self, function: FunctionType) -> None:
        words = (KEPT if can_write(function) else NOT_KEPT).format(max(1, round(seconds_to_compile(function))))
        terminal = drawn_on()
        if terminal is not None:  # by a bar, which says how long it takes
            if not self.told:
                terminal.print(words, highlight=False)
        elif is_terminal(sys.stderr):
            with suppress(Exception):  # something that is not ours has the terminal
                from rich.console import Console

                self.spinner = Console(stderr=True).status(words)
                self.spinner.start()
        elif not self.told:
            log.warning(words)
        self.told = True

    @staticmethod
    def _is_ours(event: Any) -> bool:
        function = getattr((event.data or {}).get("dispatcher"), "py_func", None)
        return str(getattr(function, "__module__", "")).startswith("hasten")


NOTICES = Notices()
event.register("numba:compile", NOTICES)
