"""The surroundings of a process: the machine, packages, and modules of the user's own."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hasten.errors import ProblemError

PACKAGES = ("hasten", "numpy", "numba", "highspy", "gurobipy", "pytoulbar2", "ortools", "scipy", "vowpalwabbit")


def describe_machine() -> dict[str, object]:
    """Returns the processor, its cores, the system, Python and the packages that matter."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := package_version(name))},
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def processor() -> str:
    """Returns the name of the processor, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


def package_version(name: str) -> str | None:
    """Returns the version of an installed package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


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
