"""Kills saving processes at random moments: the old file or the new one is there, whole, and nothing else stays.

    python tests/campaign/kills.py --count 200 --seed 0

A child saves one thing and another in turns; after some milliseconds it is killed. Now and then there is no old
file; then there may be none afterwards either. What lies beside the file is gone with the next save.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from kinds import KINDS, make_tagger

from hasten.paper.report import write_report
from hasten.support.files import write_whole
from hasten.support.forms import _header
from hasten.tasks.entity_relation.data.formats import read_corpus, write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate

Save = Callable[[Path], object]


def savers() -> dict[str, tuple[Save, Save, Callable[[Path], object]]]:
    """Returns, for each kind of output, two things to write, and how to read and tell apart what was written."""
    found = {name: (kind.make(0).save, kind.make(1).save, partial(digest, name)) for name, kind in KINDS.items()}
    large = [make_tagger(n, n_buckets=2**15) for n in (0, 1)]
    found["large tagger"] = large[0].save, large[1].save, partial(digest, "tagger")
    texts = [list(generate(200, seed)) for seed in (0, 1)]
    for name in ("converted.jsonl", "converted.jsonl.gz"):
        one, other = (partial(lambda path, text: write_jsonl(path, text), text=text) for text in texts)
        found[name] = one, other, lambda path: list(read_corpus(path, "jsonl"))
    reports = [partial(lambda path, about: write_report({"about": about}, path), about={"seed": n}) for n in (0, 1)]
    found["report.html"] = reports[0], reports[1], Path.read_bytes
    results = [partial(lambda path, data: write_whole(path, data), data=bytes([n]) * 300_000) for n in (0, 1)]
    found["results.json"] = results[0], results[1], Path.read_bytes
    return found


def digest(name: str, path: Path) -> str:
    """Loads a file, and returns the digest that it has; the order of what it says about itself may change."""
    KINDS[name].load(path)
    return _header(path.read_bytes())[1]["sha256"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="kills of each kind of save")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.count} kills of each kind")
    for name, (one, other, read) in savers().items():
        random = Random(f"{options.seed} {name}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name.replace(" ", "_")
            one(path)
            first = read(path)
            began = time.perf_counter()
            other(path)
            longest = 3 * (time.perf_counter() - began)
            second = read(path)
            assert first != second
            halfway = absent = 0
            for n in range(options.count):
                if n % 4 == 1:
                    path.unlink(missing_ok=True)
                before = set(path.parent.iterdir())
                kill_saving(path, one, other, random.random() * longest)
                halfway += not set(path.parent.iterdir()) <= before | {path}
                if path.exists():
                    assert read(path) in (first, second), f"{name}: kill {n} left half a file"
                else:
                    assert path not in before, f"{name}: kill {n} lost the old file"
                    absent += 1
                if n % 5 == 0 or n == options.count - 1:  # now and then, so that debris of several kills gathers
                    one(path)
                    assert list(path.parent.iterdir()) == [path], f"{name}: kill {n} left {os.listdir(folder)}"
        print(f"{name}: {options.count} kills, {halfway} in the middle of a save, {absent} before the first; all whole")


def kill_saving(path: Path, one: Save, other: Save, after: float) -> None:
    """Lets a child save for some time, and kills it."""
    child = os.fork()
    if not child:
        while True:
            one(path)
            other(path)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "a save failed before it was killed"


if __name__ == "__main__":
    main()
