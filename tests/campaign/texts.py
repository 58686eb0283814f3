"""Changes text files of every format at random: a reader takes one, or refuses it with an error that names the file.

    python tests/campaign/texts.py --count 10000 --seed 0 [--format mps]

Corpora, tagged text, models, and the plan and the receipts of a run. Each change is drawn from the seed and its number
alone; none may need much more memory than the file has bytes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import resource
import shutil
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from files import dump, mutate

import hasten
from hasten.errors import CorpusError, HastenError
from hasten.scale.run import Sharding, predict_shards
from hasten.scale.work import Items, Piece
from hasten.tasks.entity_relation.data.formats import FORMATS, read_corpus
from hasten.tasks.entity_relation.data.formats.jsonl import to_json
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.tagging.corpus import read_tagged

CONLL04 = (
    b"7\tPeop\t0\tO\tNNP/NNP\tAda/Marlow\tO\tO\tO\n7\tO\t1\tO\t,\tCOMMA\tO\tO\tO\n"
    b"7\tLoc\t2\tO\tNNP/,/NNP\tTarn/COMMA/Orle\tO\tO\tO\n7\tOrg\t3\tO\tNNP\tVelt/Sons\tO\tO\tO\n\n"
    b"0\t3\tWork_For\n0\t2\tLive_In\n\n9\tOther\t0\tO\tJJ\tOstrian\tO\tO\tO\n\n\n"
)
CONLL2003 = b"-DOCSTART- -X- O O\n\nAda NNP I-NP I-PER\nMarlow NNP I-NP I-PER\nOrle NNP B-NP B-LOC\n\nVelt NNP I-NP O\n"
GMB = (
    b"Sentence #,Word,POS,Tag\nSentence: 1,Ada,NNP,B-per\n,left,VBD,O\n,Tarn,NNP,B-geo\n"
    b',",",",",O\nSentence: 2,Velt,NNP,B-org\n,caf\xe9,NN,O\n'
)
JSONL = "".join(json.dumps(to_json(sentence)) + "\n" for sentence in generate(3, 1)).encode()
TOKENS = ["Ada", "Marlow", "left", "Tarn"]
CONLLU = "".join(
    f"{n}\t{word}\t_\tX\t_\t_\t_\t_\t_\tNER={tag}|Entity={mark}\n"
    for n, word, tag, mark in zip(
        "1234", TOKENS, ["B-person", "I-person", "O", "S-place"], ["(e1-person", "e1)", "_", "(e2-place)"], strict=True
    )
)
DYGIE = {"doc_key": "d", "sentences": [TOKENS], "ner": [[[0, 1, "person"], [3, 3, "place"]]]}
DYGIE |= {"relations": [[[0, 1, 3, 3, "Left"]]]}
RECORDS = {
    "tokens": TOKENS,
    "entities": [{"start": 0, "end": 2, "type": "person"}, {"start": 3, "end": 4, "type": "x"}],
}
RECORDS |= {"relations": [{"head": 0, "tail": 1, "type": "Left"}], "ner_tags": ["B-person", "I-person", "O", "U-x"]}
SPACY = {"text": " ".join(TOKENS), "ents": [{"start": 0, "end": 10, "label": "person"}]}
SPACY |= {
    "tokens": [{"id": 0, "start": 0, "end": 3}, {"id": 1, "start": 4, "end": 10}],
    "sents": [{"start": 0, "end": 10}],
}
BRAT = b"T1\tperson 0 10\tAda Marlow\nT2\tplace 16 20\tTarn\nR1\tLeft Arg1:T1 Arg2:T2\t\nA1\tSure R1\n#1\tNote T1\thm\n"
CORPORA = {
    "jsonl": JSONL,
    "conll04": CONLL04,
    "conll2003": CONLL2003,
    "gmb": GMB,
    "conllu": f"# sent_id = u\n{CONLLU}\n".encode(),
    "brat": BRAT,
    "dygie": json.dumps(DYGIE).encode(),
    "records": json.dumps([RECORDS]).encode(),
    "spacy": json.dumps(SPACY).encode(),
}
TAGGED = {
    "conllu": f"# sent_id = u\n{CONLLU}\n".encode(),
    "conll": CONLL2003,
    "jsonl": b'{"tokens": ["Ada", "sleeps"], "tags": ["NOUN", "VERB"], "rules": ["no X"], "id": "1"}\n' * 2,
}
MODELS = {
    "mps": "NAME s\nOBJSENSE\n    MAX\nROWS\n N value\n L limit\n G least\n E same\nCOLUMNS\n M 'MARKER' 'INTORG'\n"
    " x value 3 limit 2\n y value 2 limit 1\n y least 1 same 1\n z value -1 same -1\n M 'MARKER' 'INTEND'\nRHS\n"
    " rhs limit 4 least 1\n rhs value -10\nRANGES\n rng limit 3\nBOUNDS\n UP bnd x 2\n BV bnd y\n LO bnd z -1\n"
    " UP bnd z 5\nENDATA\n",
    "lp": "Maximize\n value: 3 x + 2 y - z + [ 2 x ^2 + 8 x * y ] / 2 + 10\nSubject To\n limit: 2 x + y <= 4\n"
    " least: y >= 1\n same: y - z = 0\nBounds\n 0 <= x <= 2\n -1 <= z <= 5\nGeneral\n x z\nBinary\n y\nEnd\n",
    "wcsp": "tiny 3 3 4 10\n2 3 2\n1 0 0 1\n1 4\n2 0 1 0 2\n0 0 10\n1 2 3\n2 1 2 5 2\n0 0 0\n2 1 1\n0 1 0\n",
    "cfn": '{"problem": {"name": "tiny", "mustbe": "<10"}, "variables": {"a": 2, "b": ["p", "q", "r"]}, "functions": '
    '{"f": {"scope": ["a", "b"], "costs": [1, 2, 10, 0.5, 3, 4]}, "g": {"scope": ["b"], "defaultcost": 1, "costs": '
    '["q", 0]}}}',
    "uai": "MARKOV\n2\n2 3\n2\n1 0\n2 0 1\n2\n 0.25 0.75\n6\n 0.5 0.5 0\n 0.1 0.2 0.7\n",
}
LONGEST = [50, 100_000, 64_000_000]  # bytes of a line
MEMORY = 2**30  # beyond what the process has after the first change
PIECES = [
    *(
        b"\0",
        b"\t",
        b"\n",
        b"\r",
        b'"',
        b",",
        b"/",
        b"-",
        b" ",
        b"O",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\x1b[2J",
        b"\xe2\x80\xa8",
    ),
    *(b"[" * 100_000, b"9" * 5000, b"-1", b"1e999", b"NaN", b"null", b"{}", b"[]", b'"\\ud800"', b"x" * 200_000),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="changes of each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", choices=READERS, action="append")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.count} changes of each format")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.format or READERS:
            counts: Counter[str] = Counter()
            for number in range(options.count):
                what = outcome(name, options.seed, number, Path(folder) / "file")
                counts[what] += 1
                failures += what == "failed"
                if number == 0:
                    limit_memory()
            print(f"{name}: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())), flush=True)
    sys.exit(1 if failures else 0)


def limit_memory() -> None:
    """Leaves this process as much memory as it has, and some more."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))


def outcome(name: str, seed: int, number: int, path: Path) -> str:
    """Returns what came of a changed file."""
    draw = random.Random(f"{name} {seed} {number}")
    try:
        READERS[name](draw, path)
    except HastenError as error:
        if str(path) in str(error):
            return "refused"
        print(f"{name}: change {number}: an error without the name of the file: {error}", file=sys.stderr)
        return "failed"
    except BaseException:
        print(f"{name}: change {number} failed:\n{traceback.format_exc()[-1500:]}", file=sys.stderr)
        return "failed"
    return "read"


def read_changed(kind: str, draw: random.Random, path: Path) -> None:
    """Reads a changed corpus."""
    if kind == "brat":  # the text is a file of its own
        path.with_suffix(".txt").write_text(f"{' '.join(TOKENS)}\n")
        path = path.with_suffix(".ann")
        path.write_bytes(torn(draw, BRAT))
    else:
        path.write_bytes(changed(draw, CORPORA[kind]))
    list(read_corpus(path, draw.choice([kind, "auto"]), draw.choice(LONGEST)))


def read_changed_tags(kind: str, draw: random.Random, path: Path) -> None:
    """Reads changed tagged text."""
    path.write_bytes(changed(draw, TAGGED[kind]))
    list(read_tagged(path, draw.choice([kind, "auto"]), max_line=draw.choice(LONGEST)))


def read_changed_model(kind: str, draw: random.Random, path: Path) -> None:
    """Reads a changed model, and says what was recognised."""
    data, packed = torn(draw, MODELS[kind].encode()), draw.random() < 0.2
    path = path.with_suffix(f".{kind}{'.gz' * packed}")
    path.write_bytes(torn(draw, gzip.compress(data)) if packed else data)
    hasten.read(path).describe()


def resume_changed(what: str, draw: random.Random, path: Path) -> None:
    """Goes on with a run whose plan or receipt is changed: it is refused, or all answers are right in the end."""
    source, out = path.with_suffix(".jsonl"), path.with_suffix(".out")
    if not out.exists():
        source.write_bytes(b'{"n": 1}\n{"n": "x"}\n{"n": 3}\n')
        predict_shards(Doubling(), source, out, how=Sharding(size=2))
        shutil.copytree(out, path.with_suffix(".good"))
    shutil.copytree(path.with_suffix(".good"), out, dirs_exist_ok=True)
    file = out / {"plan": "manifest.json", "receipt": "part-00000.receipt.json"}[what]
    good = file.read_bytes()
    file.write_bytes(dump(mutate(draw, json.loads(good))).encode() if draw.random() < 0.7 else torn(draw, good))
    run = predict_shards(Doubling(), source, out, how=Sharding(size=2))
    assert [json.loads(line) for part in run.files for line in Path(part).read_text().splitlines()] == [
        {"n": 2},
        {"n": 6},
    ]
    assert [each.line for each in run.bad] == [2]


class Doubling:
    """Answers records with twice their number."""

    kind, digest = "text", "doubling"

    def begin(self, shard: int) -> None:
        pass

    def read(self, piece: Piece) -> Items:
        records = [(number, json.loads(entry)["n"]) for number, entry in piece.entries()]
        good = [(number, n) for number, n in records if isinstance(n, int)]
        bad = [(number, CorpusError("n is not a number.")) for number, n in records if not isinstance(n, int)]
        return Items([n for _, n in good], [number for number, _ in good], bad)

    def answer(self, items: Items) -> tuple[list[dict[str, Any]], Counter[str]]:
        return [{"n": 2 * n} for n in items.values], Counter(problems=len(items.values))

    def encode(self, records: Sequence[dict[str, Any]]) -> bytes:
        return "".join(json.dumps(record) + "\n" for record in records).encode()


def changed(draw: random.Random, data: bytes) -> bytes:
    """Returns a corpus with some changes, plain or packed; of a packed one the archive may be changed instead."""
    method = draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    pack = draw.choice([bytes, bytes, gzip.compress, partial(zipped, method)])
    if pack is bytes or draw.random() < 0.5:
        return pack(torn(draw, data))
    return torn(draw, pack(data))


def zipped(method: int, data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("x", data)
    return file.getvalue()


def torn(draw: random.Random, data: bytes) -> bytes:
    """Returns bytes with a few bits flipped, pieces put in, cut out, or moved."""
    found = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 5])):
        at, what = draw.randrange(len(found) + 1), draw.randrange(6)
        if what == 0 and at < len(found):
            found[at] ^= 1 << draw.randrange(8)
        elif what == 1:
            found[at:at] = draw.choice(PIECES)
        elif what == 2:
            del found[at : at + draw.randrange(20)]
        elif what == 3:
            start = draw.randrange(len(found) + 1)
            found[at:at] = found[start : start + draw.randrange(50)]
        elif what == 4:
            found[at : at + draw.randrange(4)] = draw.choice(PIECES)
        elif draw.random() < 0.3:
            del found[at:]
    return bytes(found)


READERS: dict[str, Callable[[random.Random, Path], None]] = {
    **{name: partial(read_changed, name) for name in FORMATS},
    **{f"tagged {name}": partial(read_changed_tags, name) for name in TAGGED},
    **{name: partial(read_changed_model, name) for name in MODELS},
    **{f"{what} of a run": partial(resume_changed, what) for what in ("plan", "receipt")},
}


if __name__ == "__main__":
    main()
