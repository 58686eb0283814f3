"""Black boxes that are somewhere else: behind HTTP, or in a process of their own. Inputs and answers are JSON.

An input is sent as `Task.to_json` has it. An answer is the text with its labels; an object may leave out what the input
says already.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic

from hasten.errors import ProblemError, SolverError
from hasten.support.checks import brief, listed
from hasten.support.environment import check_module, named
from hasten.tasks.task import Task, Text

log = logging.getLogger(__name__)
MOST = 16 * 2**20  # bytes of an answer
TASKS = {
    "entities": "hasten.tasks.entity_relation.extraction:Extraction",
    "tags": "hasten.tasks.tagging.model:Tagging",
}


def task_of(name: str) -> Task[Any]:
    """Returns the task of a name: one of `TASKS`, or "module:name" of a `Task` or of a class of one."""
    found = named(TASKS.get(name, name), "my_task:Weather") if name in TASKS or ":" in name else None
    found = found() if isinstance(found, type) else found
    if not isinstance(found, Task):
        raise ProblemError(f"{name} is not a task. Give {', '.join(TASKS)}, or module:name of one (docs/new-task.md).")
    return found


def box_of(name: str, task: Task[Any], seconds: float = 60.0) -> Callable[[Any], Any] | None:
    """Returns a black box behind HTTP, or a command; None for a function, "module:name", which the caller imports."""
    if name.startswith(("http://", "https://")):
        return Endpoint(task, name, seconds)
    if not re.fullmatch(r"[\w.]+:[\w.]+", name):
        return Command(task, shlex.split(name), seconds)
    check_module(name.partition(":")[0])
    return None


def nobody(text: Any) -> Any:
    """Stands for a black box where there is none."""
    raise ProblemError("There is no black box to ask.")


@dataclass(frozen=True)
class Endpoint(Generic[Text]):
    """A black box behind HTTP: it gets the input in a POST request.

    timeout
        Seconds that an answer may take.
    headers
        Sent with each request, such as a token.
    """

    task: Task[Text]
    url: str
    timeout: float = 60.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise SolverError(f"The address of a black box begins with http:// or https://; got {self.url!r}.")

    def __call__(self, text: Text) -> Text:
        """Asks about one input."""
        data = json.dumps(self.task.to_json(text)).encode()
        request = urllib.request.Request(self.url, data, {"Content-Type": "application/json", **self.headers})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                found = answer.read(MOST + 1)
        except (urllib.error.URLError, TimeoutError) as error:
            raise SolverError(f"{self.url} did not answer: {getattr(error, 'reason', error)}") from None
        return _labelled(self.task, data, found, self.url)


@dataclass(frozen=True)
class Command(Generic[Text]):
    """A black box that is a command: it is started for each input, reads it from standard input and writes the answer.

    timeout
        Seconds that an answer may take.
    """

    task: Task[Text]
    command: Sequence[str]
    timeout: float = 60.0

    def __post_init__(self) -> None:
        listed(self.command, "The words of a command", SolverError, str)

    def __call__(self, text: Text) -> Text:
        """Asks about one input."""
        data, name = json.dumps(self.task.to_json(text)).encode(), self.command[0]
        try:
            done = subprocess.run(self.command, input=data, capture_output=True, timeout=self.timeout, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SolverError(f"{name} did not answer: {error}") from None
        if done.returncode:
            raise SolverError(f"{name} failed with {done.returncode}: {done.stderr.decode(errors='replace')[-200:]}")
        return _labelled(self.task, data, done.stdout, name)


def ask_all(
    task: Task[Text], black_box: Callable[[Text], Text], texts: Sequence[Text], at_once: int
) -> list[Text | Exception]:
    """Asks a black box, in threads; where a call fails, its error is the answer: one bad input costs no other."""

    def call(text: Text) -> Text | Exception:
        try:
            answer = black_box(text)
            if answer is None:
                raise ProblemError("The black box returned None. It must return the input, labelled.")
            try:
                task.check_labelled(answer)
            except (AttributeError, TypeError):
                raise ProblemError(
                    f"The black box must return the input, labelled; it returned {brief(answer)}."
                ) from None
            return answer
        except Exception as error:
            log.warning("The black box failed: %s: %s", type(error).__name__, error)
            return error

    if at_once == 1 or len(texts) < 2:
        return list(map(call, texts))
    with ThreadPoolExecutor(min(at_once, len(texts))) as pool:
        return list(pool.map(call, texts))


def _labelled(task: Task[Text], data: bytes, found: bytes, name: str) -> Text:
    """Returns the text that a black box answered with."""
    if len(found) > MOST:
        raise SolverError(f"{name} answered with more than {MOST:,} bytes.")
    try:
        answer = json.loads(found)
    except ValueError:
        raise SolverError(f"{name} did not answer with JSON, but with {found[:60]!r}.") from None
    text = task.of_json(joined(json.loads(data), answer))
    task.check_labelled(text)
    return text


def joined(given: Any, answer: Any) -> Any:
    """Returns an answer with all that the input says and it does not."""
    return {**given, **answer} if isinstance(given, dict) and isinstance(answer, dict) else answer


def beyond(given: Any, answer: Any) -> Any:
    """Returns what an answer says beyond the input: `joined` brings the rest back."""
    if not isinstance(given, dict) or not isinstance(answer, dict) or given.keys() - answer.keys():
        return answer
    return {key: each for key, each in answer.items() if key not in given or given[key] != each}
