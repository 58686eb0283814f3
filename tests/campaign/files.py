"""Changes saved files in every way we can think of: a file is refused with an error of ours, or it works.

    python tests/campaign/files.py --count 10000 --seed 0 [--kind speedup] [--first 417]

Some changes are blind (bits, cuts), some keep the digest right: another value, type or shape in one place. Each is
drawn from the seed and its number alone. They run in processes of their own, with a limit on memory and time; where
one crashes, the number of the change is told, and `--first N --count 1` repeats it.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from kinds import KINDS
from safetensors.numpy import save

from hasten.errors import HastenError
from hasten.support.forms import _parse, digest_of

BATCH = 500  # changes for each process
SECONDS = 60  # of the processor, for one change
MEMORY = 2**30  # beyond what the process has when it starts
DEEP, LONG = "a list of a hundred thousand lists", "a number of 5000 digits"  # stand for what JSON cannot dump
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 65537, 2**31, 2**53, 2**62, 2**63, 2**64, 2**128, 10**18, 10**30, 10**400),
    *(0.0, -0.0, 0.5, -1.5, 1e-320, 1e18, 1e308, float("nan"), float("inf"), -float("inf")),
    *("", "x", "\0", "\ud800", "\x1b[2J", "x" * 10_000, [], {}, [[]], [None], {"x": 1}, DEEP, LONG),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="changes of each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--worker", action="store_true", help="run the changes in this process")
    options = parser.parse_args()
    if options.worker:
        work(options.kind[0], options.seed, range(options.first, options.first + options.count))
        return
    print(f"seed {options.seed}, {options.count} changes of each kind", flush=True)
    failures = 0
    for name in options.kind or KINDS:
        counts: Counter[str] = Counter()
        for first in range(options.first, options.first + options.count, BATCH):
            failures += run_batch(name, options.seed, first, min(BATCH, options.first + options.count - first), counts)
        said = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        print(f"{name}: {counts.total()} changes: {said}", flush=True)
    sys.exit(1 if failures else 0)


def run_batch(name: str, seed: int, first: int, count: int, counts: Counter[str]) -> int:
    """Runs some changes in a process; goes on after one that ends it. Returns how many failed."""
    failures, end = 0, first + count
    while first < end:
        command = [sys.executable, __file__, "--worker", "--kind", name, "--seed", str(seed)]
        command += ["--first", str(first), "--count", str(end - first)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
        ended = [line for line in lines if len(line) == 2]
        counts.update(what for _, what in ended)
        failures += sum(what == "failed" for _, what in ended)
        first = int(lines[-1][0]) + 1 if lines else end
        if done.returncode:
            failures += 1
            counts["crashed"] += 1
            print(f"{name}: change {first - 1} of seed {seed} ended the process: {done.returncode}", flush=True)
    return failures


def work(name: str, seed: int, numbers: range) -> None:
    """Makes each change, loads the file, and uses what was loaded."""
    kind = KINDS[name]
    told, sys.stdout = sys.stdout, sys.stderr  # a progress bar must not come between
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        kind.make(0).save(path)
        good = path.read_bytes()
        kind.work(kind.load(path))  # compiles what is needed, before memory is limited
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
        for number in numbers:
            print(number, end="", file=told, flush=True)
            path.write_bytes(change(random.Random(f"{name} {seed} {number}"), good))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            print(f" {outcome(kind, path, name, number)}", file=told, flush=True)
            signal.setitimer(signal.ITIMER_PROF, 0)


def outcome(kind: Any, path: Path, name: str, number: int) -> str:
    """Returns what came of a changed file."""
    try:
        try:
            loaded = kind.load(path)
        except HastenError as error:
            if str(path) not in str(error):
                raise AssertionError("an error without the name of the file") from error
            return "refused"
        try:
            kind.work(loaded)
        except HastenError:
            return "loaded, but refused to work"
        loaded.save(path)
        kind.load(path)
    except BaseException:
        print(f"{name}: change {number} failed:\n{traceback.format_exc()[-2000:]}", file=sys.stderr)
        return "failed"
    return "loaded and worked"


def change(draw: random.Random, good: bytes) -> bytes:
    """Returns a file with one change, or a few."""
    blind = [flip, cut, splice, forge_header]
    return draw.choice([draw.choice(blind), forge_about, forge_tensor, forge_tensor, forge_about])(draw, good)


def flip(draw: random.Random, good: bytes) -> bytes:
    data = bytearray(good)
    for _ in range(draw.choice([1, 1, 2, 8])):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def cut(draw: random.Random, good: bytes) -> bytes:
    return good[: draw.randrange(len(good))]


def splice(draw: random.Random, good: bytes) -> bytes:
    at, start = draw.randrange(len(good)), draw.randrange(len(good))
    return good[:at] + good[start : start + draw.randrange(100)] + good[at + draw.randrange(100) :]


def forge_header(draw: random.Random, good: bytes) -> bytes:
    """Changes what the header says of the tensors, which no digest covers, or how long it is."""
    size = int.from_bytes(good[:8], "little")
    if draw.random() < 0.2:
        return draw.choice([0, 1, 2, len(good), 10**8, 2**31, 2**62, 2**64 - 1]).to_bytes(8, "little") + good[8:]
    return with_header(dump(mutate(draw, json.loads(good[8 : 8 + size]))).encode(), good[8 + size :])


def with_header(header: bytes, rest: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + rest


def forge_about(draw: random.Random, good: bytes) -> bytes:
    """Changes one value of what a file says about itself, and makes the digest right."""
    tensors, about = _parse(good)
    key = draw.choice([key for key in about if key != "sha256"])
    if draw.random() < 0.1:
        del about[key]
    elif draw.random() < 0.1:
        about[draw.choice(["x", key + "s", ""])] = about[key]
    else:
        try:
            said = json.loads(about[key])
        except ValueError:
            about[key] = draw.choice(["", "x", about[key][:-1], "[" * 100_000])
        else:
            about[key] = dump(mutate(draw, said))
    return signed(tensors, about)


def forge_tensor(draw: random.Random, good: bytes) -> bytes:
    """Changes one tensor, and makes the digest right."""
    tensors, about = _parse(good)
    tensors = {name: np.array(tensor) for name, tensor in tensors.items()}
    name = draw.choice(sorted(tensors))
    tensor, what = tensors[name], draw.randrange(8)
    if what == 0:
        del tensors[name]
    elif what == 1:
        tensors[draw.choice(["x", f"{name}/x", ""])] = tensor
    elif what == 2:
        types = [np.float32, np.float64, np.int64, np.int32, np.uint8, np.float16, np.bool_, np.uint64]
        with np.errstate(all="ignore"):
            tensors[name] = tensor.astype(draw.choice(types))
    elif what == 3:
        tensors[name] = tensor.reshape(draw.choice([(-1,), (1, -1), (-1, 1), (*tensor.shape, 1)]))
    elif what == 4:
        tensors[name] = np.resize(tensor, draw.choice([0, 1, 2, max(0, tensor.size - 1), tensor.size + 1, 1000]))
    elif what == 5:
        tensors[name] = np.resize(tensor, [max(0, n + draw.choice([-1, 0, 1])) for n in tensor.shape])
    elif tensor.size:
        flat = tensors[name].reshape(-1)
        odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 3e38, -1, 0, 1, 2, 255, 2**31, 2**62, 2**63 - 1, -(2**63)]
        with np.errstate(all="ignore"):
            for _ in range(draw.choice([1, 2, flat.size])):
                flat[draw.randrange(flat.size)] = np.array(draw.choice(odd)).astype(flat.dtype)
    return signed(tensors, about)


def signed(tensors: dict[str, np.ndarray], about: dict[str, str]) -> bytes:
    about = {key: value.encode("utf-8", "replace").decode() for key, value in about.items() if key != "sha256"}
    return save(
        {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()},
        about | {"sha256": digest_of(tensors, about)},
    )


def mutate(draw: random.Random, value: Any) -> Any:
    """Returns JSON with one change somewhere inside; strings that are JSON themselves are opened too."""
    if not isinstance(value, list | dict) or not value or draw.random() < 0.1:
        return draw.choice(ODD)
    key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
    changed = value.copy()
    what = draw.random()
    if what < 0.1:
        del changed[key]
    elif what < 0.2 and isinstance(value, dict):
        changed[draw.choice(["x", "", "width", "__metadata__"])] = value[key]
    elif what < 0.2:
        changed.insert(key, value[key])
    else:
        changed[key] = mutate(draw, value[key])
    return changed


def dump(value: Any) -> str:
    text = json.dumps(value)
    return text.replace(json.dumps(DEEP), "[" * 100_000 + "]" * 100_000).replace(json.dumps(LONG), "9" * 5000)


if __name__ == "__main__":
    main()
