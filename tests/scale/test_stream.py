"""Labelling a stream: by how many processes does not show."""

import json

import pytest
from typer.testing import CliRunner

from hasten import cli
from hasten.errors import CorpusError
from hasten.scale.work import Chunk, answer_stream, predict_stream, read_pieces
from hasten.tasks.entity_relation.data.formats import write_jsonl
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.labelling import Labeller
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.text import lines
from hasten.tasks.text.lines import Faults, parse_object

CHUNK = 512  # sentences


@pytest.fixture(scope="module")
def tagger():
    return Tagger.train(list(generate(60, seed=0)))


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Lines of all kinds: blank ones, some without an id, one with letters beyond ASCII and keys of its own."""
    path = tmp_path_factory.mktemp("text") / "text.jsonl"
    write_jsonl(path, generate(3 * CHUNK, seed=1, labelled=False))
    lines = path.read_text().splitlines()
    for n in range(0, len(lines), 7):
        lines[n] = json.dumps({key: value for key, value in json.loads(lines[n]).items() if key != "id"})
    lines[5] = json.dumps({"tokens": ["Zoë", "—", "naïve"], "spans": [[0, 1], [2, 3]], "more": 1}, ensure_ascii=False)
    lines.insert(9, "")
    path.write_text("\n".join(lines))
    return path


def test_the_output_is_the_same_to_the_byte_and_in_order(tagger, text, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK", 40_000)  # so that there are many
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    counts = [predict_stream(Labeller(tagger), text, path, jobs=jobs) for jobs, path in ((1, one), (2, two))]
    assert one.read_bytes() == two.read_bytes()
    assert counts[0] == counts[1]
    assert counts[0]["problems"] == counts[0]["proved"] == 3 * CHUNK
    ids = [json.loads(line)["id"] for line in one.read_text().splitlines()]
    assert ids[7] == "8"
    assert ids[14] == "16"  # a blank line stands before it


def test_one_process_says_what_the_tagger_says(tagger, text):
    lines = b"".join(done.records for done in answer_stream(Labeller(tagger), read_pieces(text)))
    found = [json.loads(line) for line in lines.splitlines()]
    said = list(tagger.label(sentences(text)))
    assert [(each["types"], each["proved"]) for each in found] == [(list(s.sentence.types), s.proved) for s in said]


def sentences(path):
    for block in read_pieces(path):
        for number, line in block.entries():
            yield from_object(parse_object(line), str(number))


def test_a_bad_line_is_named_and_nothing_is_written(tagger, text, tmp_path):
    bad = tmp_path / "bad.jsonl"
    lines = text.read_text().splitlines()
    lines[2 * CHUNK] = '{"tokens": ["a"], "spans": [[0, 2]]}'
    bad.write_text("\n".join(lines))
    with pytest.raises(CorpusError, match=rf"bad.jsonl, line {2 * CHUNK + 1}: .*does not fit 1 tokens"):
        predict_stream(Labeller(tagger), bad, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


HOSTILE = [
    "",
    "{",
    "[]",
    "3",
    '{"tokens": ["a"]}',
    '{"tokens": [""], "spans": []}',
    '{"id": 3, "tokens": [], "spans": []}',
]


def test_what_is_bad_is_set_aside_with_its_line_and_the_rest_is_answered(tagger):
    good = '{"tokens": ["Rome"], "spans": [[0, 1]]}'
    records = [each for bad in HOSTILE for each in (bad, good)] + [b"\xff", b'{"tokens": ["\xc3\xa9"], "spans": []}']
    chunk = Chunk("here", 1, records)
    (done,) = answer_stream(Labeller(tagger), [chunk], set_aside=True)
    assert [each.line for each in done.bad] == [*range(1, 2 * len(HOSTILE), 2), 2 * len(HOSTILE) + 1]
    assert all(each.reason and each.file == "here" for each in done.bad)
    ids = [json.loads(line)["id"] for line in done.records.splitlines()]
    assert ids == [str(n) for n in [*range(2, 2 * len(HOSTILE) + 1, 2), 2 * len(HOSTILE) + 2]]
    assert done.counts["problems"] == len(HOSTILE) + 1


def test_what_is_passed_over_is_counted_whoever_reads_it(tagger, text, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(text.read_bytes() + b"\n[]\n{\n\xff\n")
    line = 3 * CHUNK + 2  # after a blank one
    faults = Faults(skip=True)
    counts = predict_stream(Labeller(tagger), bad, tmp_path / "out.jsonl", faults=faults)
    assert counts["problems"] == 3 * CHUNK
    assert faults.n == 3
    assert f"line {line + 2}: The line is not utf-8 text" in str(faults)
    assert f"bad.jsonl, line {line}: Expected a JSON object" in str(faults)
    bad.write_bytes(text.read_bytes() + b"\n[]\n{\n")
    with pytest.raises(CorpusError, match=rf"bad.jsonl, line {line}: .* So are 1 others of the file. .*--skip-bad"):
        predict_stream(Labeller(tagger), bad, tmp_path / "out.jsonl")


def test_the_command_line_shares_sentences_of_other_formats_among_jobs(tagger, tmp_path):
    source, out, one = tmp_path / "eng.txt", tmp_path / "out.jsonl", tmp_path / "one.jsonl"
    source.write_text("Ann NNP B-NP B-PER\nlives VBZ B-VP O\nin IN B-PP O\nRome NNP B-NP B-LOC\n\n" * (CHUNK + 3))
    tagger.save(tmp_path / "model")
    settings = ["--jobs", "2", "--mode", "search"]
    done = CliRunner().invoke(cli.app, ["predict", str(tmp_path / "model"), str(source), str(out), *settings])
    assert done.exit_code == 0, done.output
    assert f"Labelled {CHUNK + 3:,} sentences" in done.output
    assert predict_stream(Labeller(tagger.asking(mode="search")), source, one)["problems"] == CHUNK + 3
    assert out.read_bytes() == one.read_bytes()
    assert CliRunner().invoke(cli.app, ["predict", "a", "b", "c", "--jobs", "0"]).exit_code == 2
