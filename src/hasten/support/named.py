"""Things of the user's own, named on the command line as `module:name`."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

from hasten.errors import ProblemError


def named(name: str, example: str) -> Any:
    """Returns what `module:name` stands for; modules are also looked for in the directory that one is in."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ProblemError(f"Give module:name, such as {example}, not {name!r}.")
    check_module(module)
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise ProblemError(f"The module {module!r} has no {attribute!r}.") from None


def check_module(module: str) -> None:
    """Refuses a module that is not there, without importing it; packages around it are imported."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = sys.modules.get(module) or find_spec(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        found = None
    if found is None:
        raise ProblemError(f"There is no module {module!r} here. Give one that Python can import.")
