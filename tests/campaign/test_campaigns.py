"""The campaigns, in short; each runs for as long as one likes with `--count`."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "count"), [("kills.py", 10), ("files.py", 150), ("corpora.py", 300)], ids=["kills", "files", "corpora"]
)
def test_a_short_campaign_finds_nothing(name, count):
    command = [sys.executable, str(HERE / name), "--count", str(count), "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 1" in done.stdout
