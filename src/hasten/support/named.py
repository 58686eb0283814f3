"""Things of the user's own, named on the command line as `module:name`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from hasten.errors import ProblemError


def named(name: str, example: str) -> Any:
    """Returns what `module:name` stands for; modules are also looked for in the directory that one is in."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise ProblemError(f"Give module:name, such as {example}, not {name!r}.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            raise
        raise ProblemError(f"There is no module {module!r} here. Give one that Python can import.") from None
    except AttributeError:
        raise ProblemError(f"The module {module!r} has no {attribute!r}.") from None
