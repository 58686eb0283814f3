"""Objects of JSON, one a line: read with errors in plain words, written whole or not at all."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hasten.errors import CorpusError
from hasten.support.files import output_directory, whole
from hasten.support.terminal import standard_output
from hasten.tasks.text.lines import AnyPath


def load_json(line: str) -> Any:
    """Returns what a line of JSON stands for."""
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise CorpusError(f"Not JSON ({error.msg} at column {error.colno}). Write one object a line.") from error
    except ValueError:
        raise CorpusError("A number has thousands of digits. Write smaller ones.") from None
    except RecursionError:
        raise CorpusError("The object is nested too deep. Write lists of strings and numbers.") from None


def parse_object(line: str) -> dict[str, Any]:
    """Returns the object that a line of JSON is."""
    found = load_json(line)
    if not isinstance(found, dict):
        raise CorpusError("Expected a JSON object with tokens and spans. Write one object a line.")
    return found


def parse_line(line: str | bytes) -> dict[str, Any]:
    """Returns the object that a line of JSON is, whether it is decoded already or not."""
    if isinstance(line, bytes):
        try:
            line = line.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise CorpusError("The line is not utf-8 text. Convert the file.") from None
    return parse_object(line)


def short(value: object) -> str:
    """Returns a value in few words, for an error."""
    try:
        return json.dumps(value)[:60]
    except RecursionError:
        return "something nested deep"


def write_objects(path: AnyPath, objects: Iterable[Mapping[str, object]]) -> int:
    """Writes one JSON object a line, and returns how many."""
    return write_blocks(path, ((json.dumps(each) + "\n").encode() for each in objects))


def write_blocks(path: AnyPath, blocks: Iterable[bytes]) -> int:
    """Writes bytes one after the other, and returns how many times.

    The file appears whole or not at all. A name that ends in `.gz` is compressed; `"-"` is standard output.
    """
    with ExitStack() as stack:
        if path == "-":
            out = stack.enter_context(standard_output())
            return sum(out.write(block.decode()) >= 0 for block in blocks)
        stack.enter_context(output_directory(Path(path).parent))
        stream: Any = stack.enter_context(open(stack.enter_context(whole(Path(path))), "wb"))
        if Path(path).suffix == ".gz":  # the same sentences give the same bytes
            stream = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0))
        return sum(stream.write(block) >= 0 for block in blocks)
