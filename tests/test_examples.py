"""Every example runs as a script and prints what its comments promise, no more and no less; only times may differ."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from promises import promised

from hasten.jit.backend import NOTICE

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
FIGURE = re.compile(r"^[\d.]+ times")  # as measured in that run


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_prints_what_it_promises(file: Path) -> None:
    ran = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    notices = [line.startswith(NOTICE.split("{")[0]) for line in ran.stderr.splitlines()]
    assert all(notices)  # kernels may be compiled on the way
    printed, wanted = ran.stdout.splitlines(), promised(file.read_text())
    if printed and printed[-1].startswith("This example needs "):
        pytest.skip(printed[-1])
    assert [FIGURE.sub("# times", line) for line in printed] == [FIGURE.sub("# times", line) for line in wanted]
    assert len(wanted) >= 4


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 12
