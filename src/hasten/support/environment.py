"""What a measurement was made with: processor, Python, versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "hasten",
    "numpy",
    "numba",
    "highspy",
    "gurobipy",
    "pytoulbar2",
    "ortools",
    "pyscipopt",
    "scipy",
    "vowpalwabbit",
)


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
