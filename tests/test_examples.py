"""Every example runs as a script and prints what its comments promise, no more and no less."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from promises import promised

from hasten.jit.notices import KEPT

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_prints_what_it_promises(file: Path) -> None:
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert set(ran.stderr.splitlines()) <= {KEPT}  # kernels may be compiled on the way
    wanted = promised(file.read_text())
    assert ran.stdout.splitlines() == wanted
    assert len(wanted) >= 4


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5
