"""From one core to a cluster: how much faster, how much memory, and what is left when something is killed.

    python benchmarks/scale.py text SENTENCES.jsonl --count 100000 [--from CORPUS...]   # repeated and perturbed
    python benchmarks/scale.py speed MODEL SENTENCES.jsonl [--rounds 3] [--ray]       # 1 and 2 processes, Ray, in turns
    python benchmarks/scale.py threads MODEL SENTENCES.jsonl                          # why processes
    python benchmarks/scale.py bad MODEL SENTENCES.jsonl [--ray]                      # bad lines among good ones
    python benchmarks/scale.py cluster MODEL SENTENCES.jsonl   # three nodes; a node and the driver are killed

Whoever is compared takes turns. Beside the time on the clock stands that of the processor, of all processes together,
which tells what free cores would give on a machine that others use; the load says how many do.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

from hasten.scale.run import ShardedRun, Sharding, on_this_machine, predict_shards
from hasten.scale.work import Piece, PieceAnswerer, read_pieces
from hasten.tasks.entity_relation.data.formats import read_corpus, write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.labelling import Labeller
from hasten.tasks.entity_relation.tagger import Tagger

SHARD = 10_000
LOCAL: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "_node_ip_address": "127.0.0.1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    text = commands.add_parser("text")
    text.add_argument("out", type=Path)
    text.add_argument("--count", type=int, default=100_000)
    text.add_argument("--from", dest="sources", nargs="*", default=[])
    for name in ("speed", "threads", "bad", "cluster"):
        command = commands.add_parser(name)
        command.add_argument("model", type=Path)
        command.add_argument("text", type=Path)
        command.add_argument("--ray", action="store_true")
        command.add_argument("--rounds", type=int, default=3)
        command.add_argument("--engines", nargs="*", default=[])
    args = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    ways = {"text": make_text, "speed": speed, "threads": threads, "bad": bad, "cluster": cluster}
    ways[args.command](args)


def make_text(args: argparse.Namespace) -> None:
    """Writes sentences of corpora, or made-up ones, again and again; each time with two other words."""
    pool = [s.unlabeled() for path in args.sources for s in read_corpus(path) if len(s.spans) >= 2]
    pool = pool or list(generate(20_000, seed=0, labelled=False))
    rng = random.Random(0)
    words = [word for sentence in pool for word in sentence.tokens]

    def perturbed() -> Iterator[Any]:
        for n, sentence in enumerate(islice(cycle(pool), args.count)):
            tokens = list(sentence.tokens)
            for _ in range(2 * (n >= len(pool))):
                tokens[rng.randrange(len(tokens))] = rng.choice(words)
            yield replace(sentence, id=f"s{n}", tokens=tuple(tokens))

    print(f"{write_jsonl(args.out, perturbed()):,} sentences, {len(pool):,} of them different")


# Speed.


def speed(args: argparse.Namespace) -> None:
    """One process, two, and Ray, end to end from the command line, in turns."""
    engines = {"1 process": ["--jobs", "1"], "2 processes": ["--jobs", "2"]}
    if args.ray:
        engines["Ray, 2 cores"] = ["--jobs", "2", "--engine", "ray"]
    engines = {name: how for name, how in engines.items() if not args.engines or name in args.engines}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in engines}
    digests = set()
    with tempfile.TemporaryDirectory() as room:
        for n in range(args.rounds):
            for name, how in engines.items():
                out = Path(room) / "out.jsonl"
                measured = timed(["predict", str(args.model), str(args.text), str(out), *how])
                found[name].append(measured)
                digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
                print(f"round {n + 1}, {name}: " + ", ".join(f"{key} {value:.1f}" for key, value in measured.items()))
                for part in Path(room).iterdir():
                    shutil.rmtree(part) if part.is_dir() else part.unlink()
    print(f"{len(digests)} different outputs")
    base = next(iter(found.values()))
    for name, rows in found.items():
        ratios = [
            median(one[what] / row[what] for one, row in zip(base, rows, strict=True))
            for what in ("clock", "two free cores")
        ]
        print(f"{name}: {ratios[0]:.2f} times as fast by the clock, {ratios[1]:.2f} with two free cores")


def timed(command: list[str]) -> dict[str, float]:
    """Runs a command; returns seconds on the clock and of the processor, and the memory of the largest process.

    What free cores would take is estimated: what the command does until it starts others, then the rest on two cores.
    """
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "hasten", *command], stderr=subprocess.PIPE)
    peak, alone, cpu = 0.0, 0.0, dict[int, float]()
    while process.poll() is None:
        others = below(process.pid)
        for pid in (process.pid, *others):
            peak, cpu[pid] = max(peak, memory(pid)), max(seconds(pid), cpu.get(pid, 0.0))
        alone = alone if others else cpu[process.pid]
        time.sleep(0.2)
    assert process.returncode == 0, process.stderr and process.stderr.read().decode()
    total = sum(cpu.values())
    free = total if len(cpu) == 1 else alone + (total - alone) / 2
    clock = time.perf_counter() - began
    return {"clock": clock, "cpu": total, "two free cores": free, "peak MB": peak, "load": os.getloadavg()[0]}


def seconds(pid: int) -> float:
    """Returns the seconds of the processor that a process has had."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def below(pid: int) -> list[int]:
    """Returns the processes below one."""
    try:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *below(child))]


def memory(pid: int) -> float:
    """Returns what a Python process that answers has at most, in MB; 0 for all others."""
    try:
        if (
            b"raylet" in Path(f"/proc/{pid}/cmdline").read_bytes()
            or b"gcs" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ):
            return 0.0
        line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0.0
    return int(line.split()[1]) / 1024


def threads(args: argparse.Namespace) -> None:
    """Threads of one process on the same chunks: the interpreter's lock holds them back."""
    tagger = Tagger.load(args.model)
    chunks = list(islice(read_pieces(args.text), 40))
    PieceAnswerer(Labeller(tagger))(chunks[0])
    for n in range(args.rounds):
        for jobs in (1, 2):
            began, cpu = time.perf_counter(), time.process_time()
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(answer_all, [tagger] * jobs, [chunks[i::jobs] for i in range(jobs)]))
            clock, cpu = time.perf_counter() - began, time.process_time() - cpu
            print(f"round {n + 1}, {jobs} threads: clock {clock:.1f}, cpu {cpu:.1f}, load {os.getloadavg()[0]:.1f}")


def answer_all(tagger: Tagger, chunks: list[Piece]) -> None:
    work = PieceAnswerer(Labeller(tagger))
    for chunk in chunks:
        work(chunk)


# Bad input.


def bad(args: argparse.Namespace) -> None:
    """Spoils every 5,000th line, each in its own way; the others are answered, and these named."""
    ways = [b"{", b"[]", b"\xff\xfe", b'{"tokens": ["a"]}', b'{"tokens": ["a"], "spans": [[0, 9]]}', b"null"]
    lines = args.text.read_bytes().splitlines()
    spoiled = list(range(2500, len(lines), 5000))
    for n, at in enumerate(spoiled):
        lines[at] = ways[n % len(ways)]
    with tempfile.TemporaryDirectory() as room:
        source, out = Path(room) / "spoiled.jsonl", Path(room) / "out"
        source.write_bytes(b"\n".join(lines))
        run = answered(args, source, out)
        ids = {json.loads(line)["id"] for part in run.files for line in Path(part).read_text().splitlines()}
        assert [each.line for each in run.bad] == [at + 1 for at in spoiled]
        assert len(ids) == run.counts["problems"] == len(lines) - len(spoiled)
        print(f"{len(ids):,} good ones labelled, {len(run.bad)} bad ones named:")
        for each in run.bad[: len(ways)]:
            print(f"  line {each.line}: {each.reason}")


def answered(args: argparse.Namespace, source: Path, out: Path) -> ShardedRun:
    if not args.ray:
        return predict_shards(
            Labeller(Tagger.load(args.model)), source, out, how=Sharding(size=SHARD), engine=on_this_machine(2)
        )
    import ray

    import hasten.ray

    ray.init(num_cpus=2, object_store_memory=100_000_000, **LOCAL)
    run = hasten.ray.predict(source, args.model, out, how=Sharding(size=SHARD))
    ray.shutdown()
    assert isinstance(run, ShardedRun)
    return run


# A cluster of three nodes.

DRIVER = """
import sys
import ray
import hasten.ray
from hasten.scale.run import Sharding
ray.init(sys.argv[1], log_to_driver=False, logging_level="warning")
run = hasten.ray.predict(sys.argv[3], sys.argv[2], sys.argv[4], how=Sharding(size=int(sys.argv[5])))
print("kept", run.n_kept, "of", len(run.files), flush=True)
"""


def cluster(args: argparse.Namespace) -> None:
    """Kills a node while a run is on, then its driver; the driver starts again, and all is there, once."""
    import ray
    from ray.cluster_utils import Cluster

    room = Path(tempfile.mkdtemp(prefix="hasten-cluster-"))
    out, script = room / "out", room / "driver.py"
    script.write_text(DRIVER)
    loopback = {"node_ip_address": "127.0.0.2"}  # drivers take 127.0.0.1 for the address that others see
    nodes = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": 100_000_000, "include_dashboard": False, **loopback},
    )
    try:
        workers = [nodes.add_node(num_cpus=1, object_store_memory=80_000_000, **loopback) for _ in range(3)]
        nodes.wait_for_nodes()
        size = 2000
        command = [sys.executable, str(script), nodes.address, *map(str, (args.model, args.text, out, size))]
        driver = subprocess.Popen(command)
        until(lambda: finished(out) >= 3, driver)
        nodes.remove_node(workers[0], allow_graceful=False)
        print(f"killed a node with {finished(out)} shards finished")
        at_death = finished(out)
        until(lambda: finished(out) >= at_death + 3, driver)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        time.sleep(10)  # what the dead driver's workers still do
        before = {each.name: each.stat().st_mtime_ns for each in out.glob("part-*.receipt.json")}
        print(f"killed the driver with {len(before)} shards finished")
        again = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"started again: {again.stdout.strip()}")
        after = {each.name: each.stat().st_mtime_ns for each in out.glob("part-*.receipt.json")}
        redone = sum(after[name] != stamp for name, stamp in before.items())
        print(f"{redone} of {len(before)} finished shards were done again; {len(after)} shards in all")
        parts = sorted(out.glob("part-*.jsonl"))
        one = room / "one.jsonl"
        timed(["predict", str(args.model), str(args.text), str(one)])
        same = b"".join(part.read_bytes() for part in parts) == one.read_bytes()
        print(f"the same as one process writes: {same}")
        assert same
        assert not redone
    finally:
        ray.shutdown()
        nodes.shutdown()
        shutil.rmtree(room, ignore_errors=True)


def finished(out: Path) -> int:
    return len(list(out.glob("part-*.receipt.json")))


def until(true: Any, driver: subprocess.Popen[bytes]) -> None:
    while not true():
        assert driver.poll() is None, "the driver ended before anything could be killed"
        time.sleep(0.1)


if __name__ == "__main__":
    main()
