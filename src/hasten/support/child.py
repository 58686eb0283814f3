"""A script in a process of its own, asked and answering in lines of JSON: for libraries that cannot share ours.

The process runs this file, which has nothing but the standard library, with the path of the script. The script defines
`answer(request)`, and imports nothing of hasten.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any


class Child:
    """The process. What it is asked, and what it says, go through pipes."""

    def __init__(self, script: str) -> None:
        self._parent = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,  # so that Ctrl-C is not for it
        )
        self._asked: Any = self._process.stdin
        self._answers: Any = self._process.stdout

    def ask(self, request: object) -> Any:
        """Returns what it says; None if the process ended over it."""
        try:
            self._asked.write(json.dumps(request) + "\n")
            self._asked.flush()
            said = self._answers.readline()
        except OSError:
            return None
        return json.loads(said) if said else None

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal, if it is still there."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def end(self) -> None:
        """Ends the process, unless it belongs to the parent of a fork."""
        if os.getpid() != self._parent:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._asked, self._answers):
            with suppress(OSError, ValueError):  # what it was never sent, or a thread that still reads
                pipe.close()


def serve(script: str) -> None:
    """Answers requests, a line each, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    answer = runpy.run_path(script)["answer"]
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
