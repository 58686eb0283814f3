"""Readers give back what a file says, and say where a file is wrong."""

import gzip
import io
import json
import os
import sys
import zipfile
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import MARLOW, installed, sentences

from hasten.errors import CorpusError, ProblemError, WriteError
from hasten.tasks.entity_relation.data.corpus import Sentence, induce_arguments
from hasten.tasks.entity_relation.data.formats import (
    FORMATS,
    read_corpus,
    tables,
    write_jsonl,
)

CONLL04 = """\
7	Peop	0	O	NNP/NNP	Ada/Marlow	O	O	O
7	O	1	O	,	COMMA	O	O	O
7	O	2	O	IN	of	O	O	O
7	Loc	3	O	NNP/,/NNP	Tarn/COMMA/Orle	O	O	O
7	O	4	O	-LRB-	-LRB-	O	O	O
7	Org	5	O	NNP	Velt/Sons	O	O	O
7	O	6	O	-RRB-	-RRB-	O	O	O

0	5	Work_For
0	3	Live_In

9	Other	0	O	JJ	Ostrian	O	O	O
9	O	1	O	NN	rain	O	O	O


"""

GMB = """\
Sentence #,Word,POS,Tag
Sentence: 1,Ada,NNP,B-per
,Marlow,NNP,I-per
,left,VBD,O
,Tarn,NNP,B-geo
,Monday,NNP,B-tim
,",",",",O
Sentence: 2,Ostrian,JJ,B-gpe
,Velt,NNP,B-org
,caf\xe9,NN,O
"""

CONLL2003 = """\
-DOCSTART- -X- O O

Ada NNP I-NP I-PER
Marlow NNP I-NP I-PER
Tarn NNP I-NP I-LOC
Orle NNP B-NP B-LOC
rests VBZ I-VP O

Velt NNP I-NP I-ORG
"""


@settings(deadline=None)
@given(st.lists(sentences(), max_size=3), st.sampled_from(["x.jsonl", "x.jsonl.gz"]))
def test_jsonl_gives_back_what_was_written(tmp_path_factory, written, name):
    path = tmp_path_factory.mktemp("round") / name
    assert write_jsonl(path, written) == len(written)
    assert list(read_corpus(path, "jsonl")) == written


def test_conll04_is_expanded_and_translated(tmp_path):
    path = tmp_path / "conll04.corp"
    path.write_text(CONLL04)
    first, second = read_corpus(path, "conll04")
    assert first.id == "7"
    assert first.tokens == ("Ada", "Marlow", ",", "of", "Tarn", ",", "Orle", "(", "Velt/Sons", ")")
    assert first.pos == ("NNP", "NNP", ",", "IN", "NNP", ",", "NNP", "-LRB-", "NNP", "-RRB-")
    assert first.spans == ((0, 2), (4, 7), (8, 9))
    assert first.types == ("person", "location", "organization")
    assert first.relations == ((0, 2, "WorkFor"), (0, 1, "LiveIn"))
    assert (second.id, second.types, second.relations) == ("9", ("none",), ())


@pytest.mark.parametrize(
    ("words", "tags", "expected"),
    [
        ("/", "NN", [("/", "NN")]),
        ("and/or", "CC", [("and/or", "CC")]),
        ("Tarn/,Orle", "NNP/,/NNP", [("Tarn", "NNP"), (",", ","), ("Orle", "NNP")]),
        ("Tarn/,/Orle", "NNP,/NNP", [("Tarn", "NNP"), (",", ","), ("Orle", "NNP")]),
        ("Tarn/COMMA/Orle", "NNP", [("Tarn", "NNP"), (",", ","), ("Orle", "NNP")]),
        ("Old/Tarn/Road", "JJ/NNP", [("Old", "JJ"), ("Tarn", "NNP"), ("Road", "NNP")]),
        ("OldTarn", "JJ/NNP", [("OldTarn", "JJ")]),
    ],
)
def test_conll04_rows_whose_words_and_tags_differ_in_number(tmp_path, words, tags, expected):
    path = tmp_path / "x.corp"
    path.write_text(f"0\tLoc\t0\tO\t{tags}\t{words}\tO\tO\tO\n\n\n")
    (sentence,) = read_corpus(path, "conll04")
    assert list(zip(sentence.tokens, sentence.pos, strict=True)) == expected
    assert sentence.spans == ((0, len(expected)),)


def test_gmb_gives_spans_of_people_organisations_and_places_without_types(tmp_path):
    path = tmp_path / "ner_dataset.csv"
    path.write_bytes(GMB.encode("latin-1"))
    first, second = read_corpus(path, "gmb")
    assert first.tokens == ("Ada", "Marlow", "left", "Tarn", "Monday", ",")
    assert first.spans == ((0, 2), (3, 4))
    assert second.spans == ((0, 1), (1, 2))
    assert second.tokens[-1] == "café"
    assert (first.types, first.relations) == (None, None)


def test_gmb_cut_by_a_spreadsheet_loses_its_last_sentence(tmp_path, monkeypatch):
    path = tmp_path / "ner_dataset.csv"
    path.write_bytes(GMB.encode("latin-1"))
    monkeypatch.setattr(tables, "SPREADSHEET_ROWS", len(GMB.splitlines()))
    assert [sentence.id for sentence in read_corpus(path, "gmb")] == ["1"]


def test_conll2003_gives_spans_without_types(tmp_path):
    path = tmp_path / "eng.train"
    path.write_text(CONLL2003)
    first, second = read_corpus(path, "conll2003")
    assert first.spans == ((0, 2), (2, 3), (3, 4))
    assert first.pos == ("NNP", "NNP", "NNP", "NNP", "VBZ")
    assert (second.id, second.tokens, second.types) == ("2", ("Velt",), None)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("pack", ["plain", "gz", "zip"])
@pytest.mark.parametrize(("text", "name"), [(CONLL04, "conll04"), (GMB, "gmb"), (CONLL2003, "conll2003")])
def test_every_format_is_recognised_however_packed(tmp_path, text, name, pack, newline):
    data = text.replace("\n", newline).encode("latin-1")
    path = tmp_path / "mystery"
    if pack == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("folder/", "")
            archive.writestr("folder/mystery", data)
            archive.writestr("__MACOSX/._mystery", b"\0")
    else:
        path.write_bytes(gzip.compress(data) if pack == "gz" else data)
    assert list(read_corpus(path)) == list(read_corpus(path, name))


def test_jsonl_is_recognised_by_name_or_by_its_brace(tmp_path):
    for name in ("x.jsonl", "x.txt"):
        write_jsonl(tmp_path / name, [MARLOW])
        assert list(read_corpus(tmp_path / name)) == [MARLOW]
    write_jsonl(tmp_path / "empty.jsonl", [])
    assert list(read_corpus(tmp_path / "empty.jsonl")) == []


def test_an_unknown_format_lists_those_that_exist(tmp_path):
    path = tmp_path / "novel.txt"
    path.write_text("It was a dark and stormy night.\n")
    for format in ("auto", "xml"):
        with pytest.raises(CorpusError, match="jsonl, conll04, conll2003, gmb"):
            read_corpus(path, format)


MALFORMED = [
    ("jsonl", '{"tokens": ["a"], "spans": []}\n\n{"tokens":', 3, "Not JSON"),
    ("jsonl", "[]", 1, "Expected a JSON object"),
    ("jsonl", '{"tokens": ["a"]}', 1, "'spans' is missing"),
    ("jsonl", '{"spans": []}', 1, "'tokens' is missing"),
    ("jsonl", '{"tokens": "a", "spans": []}', 1, "'tokens' should be a list of strings"),
    ("jsonl", '{"tokens": [1], "spans": []}', 1, "'tokens' should be a list of strings"),
    ("jsonl", '{"tokens": ["a"], "spans": [[0]]}', 1, r"'spans' should be a list of \[start, end\]"),
    ("jsonl", '{"tokens": ["a"], "spans": [[0, true]]}', 1, "'spans' should be"),
    ("jsonl", '{"tokens": ["a"], "spans": [[0, 2]]}', 1, "does not fit"),
    (
        "jsonl",
        '{"tokens": ["a"], "spans": [], "pos": null}',
        1,
        "'pos' should be a list of strings, not null",
    ),
    ("jsonl", '{"tokens": [], "spans": [], "relations": [[0, 1]]}', 1, "'relations' should be"),
    ("jsonl", '{"id": 3, "tokens": [], "spans": []}', 1, "'id' should be a string, not 3"),
    ("conll04", "0\tPeop\n", 1, "Expected 9 columns"),
    ("conll04", CONLL04.replace("Peop", "Animal"), 1, "no entity type 'Animal'. Known are Peop"),
    ("conll04", CONLL04.replace("Work_For", "Sings"), 9, "no relation 'Sings'. Known are Kill"),
    ("conll04", CONLL04.replace("0\t3\tL", "0\t4\tL"), 10, "Row 4 of sentence 7 is not an entity"),
    ("conll04", CONLL04.replace("0\t3\tL", "0\t0\tL"), 12, "joins span 0 to itself"),
    ("conll04", CONLL04.replace("7\tO\t1", "8\tO\t1"), 2, "Sentence 8 begins inside sentence 7"),
    ("conll04", CONLL04.replace("\n\n0\t5", "\n0\t5"), 8, "before its sentence has ended"),
    ("gmb", "word,tag\n", 1, "Expected the header"),
    ("gmb", "", None, "Expected the header"),
    ("gmb", GMB.replace(",left,VBD,O", ",left,O"), 4, "Expected 4 columns, not 3"),
    ("gmb", GMB.replace("B-tim", "tim"), 8, "entity tag such as O, B-x or I-x, not 'tim'"),
    ("conll2003", CONLL2003.replace(" I-VP", ""), 7, "not 3 columns"),
    ("conll2003", "Ada NNP I-NP PER\n", 1, "entity tag"),
]


@pytest.mark.parametrize(("format", "text", "line", "message"), MALFORMED)
def test_a_malformed_line_is_named(tmp_path, format, text, line, message):
    path = tmp_path / "broken"
    path.write_bytes(text.encode("latin-1"))
    place = f"broken, line {line}: " if line else "broken: "
    with pytest.raises(CorpusError, match=place + ".*" + message):
        list(read_corpus(path, format))


def test_an_entity_may_be_called_o(tmp_path):
    path = tmp_path / "odd"
    path.write_text("Ada NNP I-NP I-O\nMarlow NNP I-NP I-O\nleft VBD I-VP O\nTarn NNP I-NP I-O\n")
    assert next(read_corpus(path, "conll2003")).spans == ((0, 2), (3, 4))


@pytest.mark.parametrize(("place", "value"), [(6, 1), (8, 99)])  # a password; a way to pack that nobody knows
def test_an_archive_that_cannot_be_opened_is_named(tmp_path, place, value):
    path = tmp_path / "locked.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", "Ada NNP I-NP I-PER\n")
    data = bytearray(path.read_bytes())
    data[place] = data[data.index(b"PK\x01\x02") + place + 2] = value
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=r"locked\.zip: The archive cannot be opened .* Pack it again"):
        list(read_corpus(path, "conll2003"))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(CorpusError, match="nowhere: Cannot be read"):
        read_corpus(tmp_path / "nowhere")
    path = tmp_path / "bytes.jsonl"
    path.write_bytes(b'{"tokens": [], "spans": []}\n\xff\n')
    with pytest.raises(CorpusError, match=r"bytes.jsonl.*not utf-8"):
        list(read_corpus(path, "jsonl"))
    path.write_bytes(gzip.compress(b'{"tokens": [], "spans": []}\n' * 99)[:-12])
    with pytest.raises(CorpusError, match="damaged"):
        list(read_corpus(path, "jsonl"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "")
        archive.writestr("b", "")
    with pytest.raises(CorpusError, match="holds 2 files"):
        list(read_corpus(path, "jsonl"))


def test_keys_that_are_not_ours_are_passed_over_and_an_id_is_optional(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('\ufeff{"tokens": ["Ada"], "spans": [[0, 1]], "source": {"page": 4}}\n', encoding="utf-8")
    assert list(read_corpus(path, "jsonl")) == [Sentence("1", ("Ada",), ((0, 1),))]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    def failing():
        yield MARLOW
        raise KeyboardInterrupt

    path = tmp_path / "x.jsonl"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_jsonl(path, failing())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_can_be_rewritten_from_itself(tmp_path):
    path = tmp_path / "x.jsonl"
    write_jsonl(path, [MARLOW, MARLOW])
    write_jsonl(path, (sentence.unlabeled() for sentence in read_corpus(path, "jsonl")))
    assert list(read_corpus(path, "jsonl")) == [MARLOW.unlabeled()] * 2


def test_the_same_sentences_compress_to_the_same_bytes(tmp_path):
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_jsonl(tmp_path / name, [MARLOW])
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()


def test_a_dash_is_standard_output_and_input(capsys, monkeypatch):
    assert write_jsonl("-", [MARLOW]) == 1
    printed = capsys.readouterr().out
    assert json.loads(printed)["tokens"][0] == "Ada"
    stdin = io.TextIOWrapper(io.BytesIO(printed.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(read_corpus("-")) == [MARLOW]
    assert not stdin.buffer.closed


def packed(data, pack):
    if pack == "zip":
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("x", data)
        return file.getvalue()
    return gzip.compress(data) if pack == "gz" else data


class Pipe(io.BytesIO):
    """A stream that cannot go back."""

    def seekable(self):
        return False


@pytest.mark.parametrize("pack", ["plain", "gz"])
@pytest.mark.parametrize(("text", "name"), [(CONLL04, "conll04"), (GMB, "gmb"), (CONLL2003, "conll2003")])
def test_standard_input_is_recognised_and_read_whole(tmp_path, monkeypatch, text, name, pack):
    data = text.encode("latin-1")
    (tmp_path / "x").write_bytes(data)
    stream = io.BufferedReader(Pipe(packed(b"\n" + data if name == "conll2003" else data, pack)))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    assert list(read_corpus("-")) == list(read_corpus(tmp_path / "x", name))


def test_standard_input_that_is_not_recognised_asks_for_the_format(tmp_path, monkeypatch):
    for data in (b"It was a dark and stormy night.\n", b"less than a line", packed(CONLL2003.encode(), "zip")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe(data))))
        with pytest.raises(CorpusError, match=r"format of standard input\. Name it: .*format= in Python, one of jsonl"):
            read_corpus("-")
    (tmp_path / "x").write_text(CONLL2003, encoding="latin-1")
    assert list(read_corpus("-", "conll2003")) == list(
        read_corpus(tmp_path / "x", "conll2003")
    )  # a zip archive, when told
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Pipe(b""))))
    assert list(read_corpus("-")) == []


def test_a_directory_is_called_one(tmp_path):
    for format in ("auto", "jsonl"):
        with pytest.raises(CorpusError, match=r"is a directory\. Name a file in it"):
            list(read_corpus(tmp_path, format))


@pytest.mark.parametrize("place", ["file/x.jsonl", "folder"])
def test_a_file_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError) as caught:
        write_jsonl(tmp_path / place, [MARLOW])
    assert str(caught.value).startswith(f"{tmp_path / place.split('/')[0]} cannot be written: ")
    assert ".part" not in str(caught.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "folder"]


def test_a_device_is_written_to_and_stays_one():
    assert write_jsonl(os.devnull, [MARLOW]) == 1
    assert not os.path.isfile(os.devnull)


@pytest.mark.corpus
def test_conll04_has_the_papers_counts():
    sentences = list(read_corpus(installed("conll04/conll04.corp.gz")))
    related = [sentence for sentence in sentences if sentence.relations]
    types = Counter(kind for sentence in related for kind in sentence.types)
    relations = Counter(name for sentence in related for _, _, name in sentence.relations)
    assert (len(sentences), len(related)) == (5516, 1441)
    assert types == {"location": 1968, "person": 1691, "organization": 984, "none": 706}
    assert relations == {"LiveIn": 521, "OrgBasedIn": 452, "LocatedAt": 406, "WorkFor": 401, "Kill": 268}
    assert max(len(sentence.spans) for sentence in related) == 24
    assert sum(len(sentence.spans) >= 2 for sentence in sentences if not sentence.relations) == 2438
    assert induce_arguments(sentences) == {
        "Kill": {("person", "person")},
        "LiveIn": {("person", "location")},
        "WorkFor": {("person", "organization")},
        "LocatedAt": {("location", "location")},
        "OrgBasedIn": {("organization", "location")},
    }


@pytest.mark.corpus
def test_the_usual_split_of_conll04_names_sentences_by_their_ids():
    related = {s.id for s in read_corpus(installed("conll04/conll04.corp.gz")) if s.relations}
    parts = [set(installed(f"conll04/split_{part}.ids").read_text().split()) for part in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [910, 243, 288]
    assert set.union(*parts) == related


@pytest.mark.corpus
def test_gmb_has_every_sentence_but_the_cut_one():
    sentences = list(read_corpus(installed("gmb/ner_dataset.csv.zip")))
    assert len(sentences) == 47_959 - 1
    assert sum(len(sentence.spans) >= 2 for sentence in sentences) == 26_156


@pytest.mark.corpus
def test_conll2003_has_its_counts():
    parts = [list(read_corpus(installed(f"conll2003/eng.{part}.gz"))) for part in ("train", "testa", "testb")]
    assert [len(part) for part in parts] == [14_041, 3_250, 3_453]
    assert sum(len(sentence.spans) >= 2 for part in parts for sentence in part) == 9_198


HOSTILE = [
    ('{"tokens": ' + "[" * 100_000 + "]" * 100_000 + ', "spans": []}', "nested too deep"),
    ('{"tokens": ' + "[" * 900 + "]" * 900 + ', "spans": []}', "'tokens' should be a list of strings"),
    ('{"tokens": [], "spans": [], "more": ' + "[" * 100_000 + "}", "nested too deep"),
    ('{"tokens": [], "spans": [[0, ' + "9" * 5000 + "]]}", "thousands of digits"),
    ('{"tokens": ["a"], "spans": [[0, ' + "9" * 4000 + "]]}", "does not fit 1 tokens"),
]


@pytest.mark.parametrize(("line", "words"), HOSTILE)
def test_json_that_is_meant_to_hurt_is_refused_with_its_line(tmp_path, line, words):
    path = tmp_path / "x.jsonl"
    path.write_text('{"tokens": [], "spans": []}\n' + line + "\n")
    with pytest.raises(CorpusError, match=rf"x\.jsonl, line 2: .*{words}"):
        list(read_corpus(path, "jsonl"))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("pack", ["plain", "gz", "zip"])
def test_a_line_without_an_end_is_refused(tmp_path, name, pack):
    path = tmp_path / "x"
    path.write_bytes(packed(b" " * 3_000_000, pack))
    with pytest.raises(CorpusError, match=r"x, line 1: The line has more than 1,000,000 characters.*max_line"):
        list(read_corpus(path, name, 1_000_000))


def test_a_line_may_be_exactly_as_long_as_is_allowed(tmp_path):
    path = tmp_path / "x.jsonl"
    write_jsonl(path, [MARLOW])
    length = path.stat().st_size
    assert list(read_corpus(path, "jsonl", length)) == [MARLOW]
    with pytest.raises(CorpusError, match="line 1: The line has more than"):
        list(read_corpus(path, "jsonl", length - 1))
    with pytest.raises(ProblemError, match="max_line must be at least 1"):
        list(read_corpus(path, "jsonl", 0))


def test_a_name_with_a_null_character_is_refused():
    for format in ("auto", *FORMATS):
        with pytest.raises(CorpusError, match=r"'a\\x00b': A name holds no null character"):
            list(read_corpus("a\0b", format))


def test_standard_streams_that_are_closed_are_told(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", None)
    for format in ("auto", "jsonl"):
        with pytest.raises(CorpusError, match="Standard input is closed"):
            list(read_corpus("-", format))
    with pytest.raises(WriteError, match="Standard output is closed"):
        write_jsonl("-", [MARLOW])


def test_an_archive_whose_file_has_no_name_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.jsonl", "w") as archive:
        archive.writestr(zipfile.ZipInfo(""), '{"tokens": [], "spans": []}\n')
    assert len(list(read_corpus(tmp_path / "x.jsonl", "jsonl"))) == 1


def test_an_archive_from_the_future_is_refused(tmp_path):
    data = bytearray(packed(b"{}", "zip"))
    data[data.index(b"PK\x01\x02") + 6] = 255  # the version that is needed to unpack it
    (tmp_path / "x.jsonl").write_bytes(data)
    with pytest.raises(CorpusError, match=r"x\.jsonl: The archive cannot be opened \(zip file version"):
        list(read_corpus(tmp_path / "x.jsonl", "jsonl"))
