"""Many types: a corpus of 150 types and 7 relations, of which few pairs of types are related.

Maintenance reports and biomedical text have such label sets: the table of a relation and its types has 157,500 entries
and forbids nearly all of them. Measured are the rows of `hasten reproduce` on it: certified answers beside greedy
search, inference alone and end to end, and the largest memory of the process.

    python benchmarks/many_types.py [--types 150] [--relations 7] [--spans 6] [--sentences 1600] [--time-limit 5]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def write_corpus(path: Path, args: argparse.Namespace) -> None:
    """Writes sentences whose words hint at the types of their spans, and verbs at the relations between them."""
    rng = np.random.default_rng(args.seed)
    popular = rng.dirichlet(np.full(args.types, 0.3))
    related: dict[tuple[int, int], int] = {}
    while len(related) < args.types:
        source, target = rng.choice(args.types, 2, p=popular).tolist()
        related[source, target] = int(rng.integers(args.relations))
    pairs, share = list(related), np.array([popular[i] * popular[j] for i, j in related])
    with path.open("w", encoding="utf-8") as file:
        for number in range(args.sentences):
            types: list[int] = []
            while len(types) < int(rng.integers(2, args.spans + 1)):
                types += pairs[rng.choice(len(pairs), p=share / share.sum())]
            tokens, spans, relations = list[str](), list[list[int]](), list[list[object]]()
            for n, kind in enumerate(types):
                known = kind if rng.random() < 0.9 else int(rng.choice(args.types, p=popular))  # some words mislead
                if n:
                    relation = related.get((types[n - 1], kind))
                    tokens.append("and" if relation is None else f"verb{relation}x{rng.integers(4)}")
                    relations += [] if relation is None else [[n - 1, n, f"relation{relation}"]]
                spans.append([len(tokens), len(tokens) + 1])
                tokens.append(f"Word{known}x{rng.integers(6)}")
            names = [f"type{kind}" for kind in types]
            row = {"id": str(number), "tokens": tokens, "spans": spans, "types": names, "relations": relations}
            file.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in [("types", 150), ("relations", 7), ("spans", 6), ("sentences", 1600), ("seed", 0)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        corpus, out = Path(room) / "types.jsonl", Path(room) / "results"
        write_corpus(corpus, args)
        command = [sys.executable, "-m", "hasten", "reproduce", str(corpus), "--induce", "--out", str(out)]
        subprocess.run(command, check=True)
        rows = json.loads((out / "results.json").read_text("utf-8"))["rows"]
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{'':40} inference ms   with features ms")
    for row in rows:
        shown = [row.get("inference_ms"), row.get("time_ms")]
        print(f"{row['model'][:40]:40}", *("" if each is None else f"{each:12.2f}" for each in shown))
    print(f"largest memory {peak:.0f} MB")


if __name__ == "__main__":
    main()
