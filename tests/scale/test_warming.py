"""Kernels are compiled once per node: the first worker compiles, the others wait for it."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os
import sys
import time
from pathlib import Path

from hasten.scale import work

kept = Path(sys.argv[1])


class Work:
    def warm(self):
        if (kept / "kernels").exists():
            (kept / f"loads-{os.getpid()}").touch()
            limit = time.monotonic() + 20.0
            while len(list(kept.glob("loads-*"))) < 3 and time.monotonic() < limit:
                time.sleep(0.01)  # for the others: all load at once
            print("loaded with", len(list(kept.glob("loads-*"))), flush=True)
        else:
            time.sleep(1.0)
            (kept / "kernels").touch()
            print("compiled", flush=True)


print("begins", flush=True)
sys.stdin.readline()
work.warm_once_per_node(Work())
"""


def test_of_four_workers_one_compiles_and_the_others_load_together(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path)]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_alone(tmp_path))
        for _ in range(4)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "begins\n"
    said = [_go(worker) for worker in workers]
    assert sorted(worker.communicate(timeout=60)[0].strip() for worker in said) == ["compiled"] + ["loaded with 3"] * 3


def _go(worker: subprocess.Popen[str]) -> subprocess.Popen[str]:
    assert worker.stdin is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    return worker


def _alone(place: Path) -> dict[str, str]:
    """Returns an environment whose locks no other process of this machine uses."""
    return os.environ | {"TMPDIR": str(place)}
