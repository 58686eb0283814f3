"""Changes corpora of every format at random: a reader gives sentences, or a `CorpusError` that names the file.

    python tests/campaign/corpora.py --count 10000 --seed 0

Each change is drawn from the seed and its number alone.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import sys
import tempfile
import traceback
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.formats import FORMATS, read_corpus
from hasten.tasks.entity_relation.data.formats.jsonl import to_json
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.tagging.formats import read_tagged

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
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.count} changes of each format")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in [*FORMATS, *(f"tagged {name}" for name in TAGGED)]:
            counts: Counter[str] = Counter()
            for number in range(options.count):
                what = outcome(name, options.seed, number, Path(folder) / "corpus")
                counts[what] += 1
                failures += what == "failed"
            print(f"{name}: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())), flush=True)
    sys.exit(1 if failures else 0)


def outcome(name: str, seed: int, number: int, path: Path) -> str:
    """Returns what came of a changed corpus."""
    draw = random.Random(f"{name} {seed} {number}")
    try:
        read(name, draw, path)
    except CorpusError as error:
        if str(path) in str(error):
            return "refused"
        print(f"{name}: change {number}: an error without the name of the file: {error}", file=sys.stderr)
        return "failed"
    except BaseException:
        print(f"{name}: change {number} failed:\n{traceback.format_exc()[-1500:]}", file=sys.stderr)
        return "failed"
    return "read"


def read(name: str, draw: random.Random, path: Path) -> None:
    """Writes a changed corpus, and reads it."""
    kind, tagged = name.removeprefix("tagged "), name.startswith("tagged ")
    most = draw.choice([50, 100_000, 64_000_000])
    if kind == "brat":  # the text is a file of its own
        path.with_suffix(".txt").write_text(f"{' '.join(TOKENS)}\n")
        path = path.with_suffix(".ann")
        path.write_bytes(torn(draw, BRAT))
    else:
        path.write_bytes(changed(draw, (TAGGED if tagged else CORPORA)[kind]))
    if tagged:
        list(read_tagged(path, draw.choice([kind, "auto"]), max_line=most))
    else:
        list(read_corpus(path, draw.choice([kind, "auto"]), most))


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


if __name__ == "__main__":
    main()
