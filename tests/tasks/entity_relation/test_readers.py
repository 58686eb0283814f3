"""Formats that other tools write: what is read of them, what is refused, and that each is told by its content."""

from __future__ import annotations

import json

import pytest

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import read_corpus, recognise, write_jsonl
from hasten.tasks.text.lines import Faults

TOKENS = ["Ada", "Marlow", "runs", "Velt", "in", "Tarn", "."]
SPANS = ((0, 2), (3, 4), (5, 6))
TYPES = ("person", "organization", "location")
RELATIONS = ((0, 1, "WorkFor"), (1, 2, "OrgBasedIn"))
DYGIE = {
    "doc_key": "d",
    "sentences": [["It", "rains", "."], TOKENS],
    "ner": [[], [[3, 4, "person"], [6, 6, "organization"], [8, 8, "location"]]],
    "relations": [[], [[3, 4, 6, 6, "WorkFor"], [6, 6, 8, 8, "OrgBasedIn"]]],
}
CROSSRE = {
    "doc_key": "c",
    "sentence": TOKENS,
    "ner": [[0, 1, "person"], [3, 3, "organization"], [5, 5, "location"]],
    "relations": [[0, 1, 3, 3, "WorkFor", "", False, False], [3, 3, 5, 5, "OrgBasedIn", "", False, False]],
}
SPERT = {
    "tokens": TOKENS,
    "entities": [{"start": start, "end": end, "type": name} for (start, end), name in zip(SPANS, TYPES, strict=True)],
    "relations": [{"head": source, "tail": target, "type": name} for source, target, name in RELATIONS],
    "orig_id": 7,
}
TAGGED = {"tokens": TOKENS, "ner_tags": ["B-person", "I-person", "O", "S-organization", "O", "U-location", "O"]}
TEXT = "Ada Marlow runs Velt in Tarn."
AT = ((0, 3), (4, 10), (11, 15), (16, 20), (21, 23), (24, 28), (28, 29))
DOC = {
    "text": TEXT,
    "ents": [{"start": 0, "end": 10, "label": "person"}, {"start": 16, "end": 20, "label": "organization"},
             {"start": 24, "end": 28, "label": "location"}],
    "sents": [{"start": 0, "end": 29}],
    "tokens": [{"id": n, "start": start, "end": end} for n, (start, end) in enumerate(AT)],
}  # fmt: skip
PRODIGY = {
    "text": TEXT,
    "tokens": [{"id": n, "start": start, "end": end} for n, (start, end) in enumerate(AT)],
    "spans": DOC["ents"],
    "relations": [
        {"head_span": DOC["ents"][s], "child_span": DOC["ents"][t], "label": name} for s, t, name in RELATIONS
    ],
}
CONLLU = "# sent_id = u\n# text = x\n" + "\n".join(
    f"{n}\t{word}\t_\tX\t_\t_\t_\t_\t_\tNER={tag}|SpaceAfter=No"
    for n, (word, tag) in enumerate(zip(TOKENS, TAGGED["ner_tags"], strict=True), start=1)
)
BRACKETS = ["(e1-person-1", "e1)", "_", "(e2-organization)", "_", "(e3-location)", "_"]
GUM = "\n".join(
    f"{n}\t{word}\t_\tX\t_\t_\t_\t_\t_\tEntity={mark}" if mark != "_" else f"{n}\t{word}\t_\tX\t_\t_\t_\t_\t_\t_"
    for n, (word, mark) in enumerate(zip(TOKENS, BRACKETS, strict=True), start=1)
)
ANN = (
    "T1\tperson 0 10\tAda Marlow\nT2\torganization 16 20\tVelt\nT3\tlocation 24 28\tTarn\n"
    "R1\tWorkFor Arg1:T1 Arg2:T2\t\nR2\tOrgBasedIn Arg1:T2 Arg2:T3\nA1\tSure R1\n#1\tNote T1\thm\nE1\tRun:T1\n"
)


def lines(*objects):
    return "\n".join(map(json.dumps, objects))


LABELLED = {
    "dygie": lines(DYGIE),
    "crossre": lines(CROSSRE),
    "spert": json.dumps([SPERT], indent=2),
    "spert lines": lines(SPERT),
    "prodigy": lines(PRODIGY),
}
TYPED = {
    "tags": lines(TAGGED),
    "spacy": lines(DOC),
    "spacy list": json.dumps([DOC], indent=1),
    "conllu": CONLLU + "\n\n",
    "gum": GUM,
}


@pytest.mark.parametrize("name", [*LABELLED, *TYPED])
@pytest.mark.parametrize("file", ["corpus", "corpus.jsonl", "corpus.json"])
def test_a_format_is_told_by_its_content_and_read_whole(tmp_path, name, file):
    path = tmp_path / file
    path.write_text((LABELLED | TYPED)[name], encoding="utf-8")
    found = [sentence for sentence in read_corpus(path) if sentence.spans]
    assert [(s.tokens, s.spans, s.types) for s in found] == [(tuple(TOKENS), SPANS, TYPES)]
    assert found[0].relations == (RELATIONS if name in LABELLED else None)


def test_ids_are_those_of_the_file_where_it_has_them(tmp_path):
    ids = {"dygie": "d-1", "crossre": "c", "spert": "7", "tags": "1", "conllu": "u", "gum": "1"}
    for name, id in ids.items():
        path = tmp_path / name
        path.write_text((LABELLED | TYPED)[name])
        assert [sentence.id for sentence in read_corpus(path) if sentence.spans] == [id]


def test_brat_reads_a_directory_and_cuts_no_entity_and_no_relation(tmp_path):
    (tmp_path / "a.txt").write_text(TEXT + " It rains. The Org.\nIt rained", newline="")
    (tmp_path / "a.ann").write_text(
        ANN + "T4\torganization 40 47\tThe Org\nT5\tword 49 51\tIt\nR3\tx Arg1:T5 Arg2:T4\n"
    )
    (tmp_path / "b.txt").write_text("Velt\r\nTarn-like", newline="")
    (tmp_path / "b.ann").write_text("T1\tlocation 6 10\tTarn\n")
    first, second, joined, fourth, cut = read_corpus(tmp_path)
    assert (first.tokens, first.spans, first.types) == (tuple(TOKENS), SPANS, TYPES)
    assert (first.id, first.relations) == ("a-0", RELATIONS)
    assert second.tokens == ("It", "rains", ".")
    assert joined.tokens == ("The", "Org", ".", "It", "rained")  # two lines that a relation joins
    assert joined.relations == ((1, 0, "x"),)
    assert (fourth.tokens, fourth.relations) == (("Velt",), ())
    assert (cut.tokens, cut.spans) == (("Tarn", "-", "like"), ((0, 1),))
    assert recognise(tmp_path / "a.ann") == "brat"


def test_parquet_tells_the_names_of_numbered_classes(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = ["O", "B-person", "I-person", "B-organization", "B-location"]
    features = {"ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "List"}}
    table = pyarrow.table({"tokens": [TOKENS] * 2, "ner_tags": [[1, 2, 0, 3, 0, 4, 0]] * 2})
    noted = {"huggingface": json.dumps({"info": {"features": features}})}
    parquet.write_table(table.replace_schema_metadata(noted), tmp_path / "data")
    assert [(s.spans, s.types) for s in read_corpus(tmp_path / "data")] == [(SPANS, TYPES)] * 2
    parquet.write_table(table, tmp_path / "bare")
    with pytest.raises(CorpusError, match=r"bare, entry 1: 'ner_tags' should be a list of strings.*features.* 1 other"):
        list(read_corpus(tmp_path / "bare"))
    (tmp_path / "torn").write_bytes((tmp_path / "data").read_bytes()[:100])
    with pytest.raises(CorpusError, match="torn: The table cannot be read"):
        list(read_corpus(tmp_path / "torn"))


def test_a_docbin_is_read_with_its_sentences_and_relations(tmp_path):
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin, Span

    doc = Doc(spacy.blank("en").vocab, [*TOKENS, " ", "It", "rains"], sent_starts=[True, *[False] * 7, True, False])
    doc.ents = [Span(doc, start, end, name) for (start, end), name in zip(SPANS, TYPES, strict=True)]
    doc.user_data["._.", "rel", None, None] = {(0, 3): {"WorkFor": 1.0, "x": 0.2}, (3, 5): {"OrgBasedIn": 0.9}}
    path = tmp_path / "train.spacy"
    DocBin(docs=[doc], store_user_data=True).to_disk(path)
    first, second = read_corpus(path)
    assert (first.tokens, first.spans, first.types) == (tuple(TOKENS), SPANS, TYPES)
    assert first.relations == RELATIONS
    assert (second.tokens, second.relations) == (("It", "rains"), ())
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(CorpusError, match=r"train\.spacy: spaCy cannot read it"):
        list(read_corpus(path))


HOSTILE = [
    ("dygie", lines(DYGIE | {"ner": [[]]}), "line 1: 'ner' should have a list for each of 2 sentences"),
    ("dygie", lines(DYGIE | {"relations": [[], [[3, 4, 5, 5, "r"]]]}), "joins tokens 5 to 5, which are not an entity"),
    ("dygie", lines(DYGIE | {"ner": [[], [[3, "x", "r"]]]}), "rows of 2 token numbers and a name"),
    ("dygie", lines(DYGIE | {"ner": [[], [[0, 0, "r"]]], "relations": [[], []]}), "does not fit 7 tokens"),
    ("dygie", lines({"sentences": "no"}), "lists of tokens"),
    ("records", lines(SPERT | {"relations": [{"head": 0, "tail": 9, "type": "r"}]}), "joins 9, which is not one of 3"),
    ("records", lines(SPERT | {"entities": [{"start": 0}]}), "An entity has a start, an end and a type"),
    ("records", lines(SPERT | {"entities": [{"start": 5, "end": 9, "type": "x"}], "relations": []}), "does not fit"),
    ("records", lines(TAGGED | {"ner_tags": ["O"]}), "Got 1 tags for 7 tokens"),
    ("records", lines(TAGGED | {"ner_tags": [0] * 7}), "write these"),
    ("records", lines({"words": 3, "ner_tags": []}), "There are no tokens"),
    ("records", "[1, 2]", "entry 1: Expected a JSON object"),
    ("records", "[" * 100_000, "nested too deep"),
    ("spacy", lines(DOC | {"ents": [{"start": 1, "end": 10, "label": "x"}]}), "begins or ends inside a token"),
    ("spacy", lines(DOC | {"ents": [{"start": 0, "end": 10}]}), "There is no label"),
    ("spacy", lines({"text": "x", "tokens": [3], "ents": []}), "tokens with their start and end"),
    ("conllu", "1\tx\t_\n", "line 1: Expected 10 columns, not 3"),
    ("conllu", GUM.replace("e1)", "e9)"), "Entity 'e9' ends at token 2 and never begins"),
    ("conllu", GUM.replace("=e1)", "=_"), "Entity 'e1' begins at token 1 and never ends"),
    ("conllu", CONLLU.replace("NER=B-person", "NER=person"), "Expected an entity tag"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "text", "message"), HOSTILE)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path, format, text, message):
    path = tmp_path / "bad"
    path.write_text(text)
    with pytest.raises(CorpusError, match=r"^[^:]*bad") as caught:
        list(read_corpus(path, format))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("T1\tperson 0 3;4 10\tAda Marlow", "several pieces"),
        ("T1\tperson 0 900\tAda", "in a text of 29 characters"),
        ("T1\tperson x 3\tAda", "Expected a type, a start and an end"),
        ("R1\tWorkFor Arg1:T1", "Expected a name and two arguments"),
        ("R1\tWorkFor Arg1:T8 Arg2:T9", "joins T8, which is not an entity"),
        ("nonsense", "There is no annotation"),
    ],
)
def test_a_bad_annotation_is_named_or_passed_over(tmp_path, line, message):
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "a.ann").write_text(f"T7\tlocation 24 28\tTarn\n{line}\n")
    with pytest.raises(CorpusError, match=r"a\.ann, line 2: ") as caught:
        list(read_corpus(tmp_path / "a.ann"))
    assert message in str(caught.value)
    faults = Faults(skip=True)
    assert [sentence.types for sentence in read_corpus(tmp_path / "a.ann", faults=faults)] == [("location",)]
    assert faults.n == 1


def test_a_text_that_is_missing_beside_its_annotations_is_named(tmp_path):
    (tmp_path / "a.ann").write_text(ANN)
    with pytest.raises(CorpusError, match=r"a\.txt: Cannot be read"):
        list(read_corpus(tmp_path / "a.ann"))


def test_whatever_is_read_can_be_written_as_json_lines_and_read_again(tmp_path):
    for name, text in (LABELLED | TYPED).items():
        (tmp_path / "given").write_text(text)
        read = list(read_corpus(tmp_path / "given"))
        assert all(isinstance(sentence, Sentence) for sentence in read), name
        write_jsonl(tmp_path / "ours.jsonl", read)
        assert list(read_corpus(tmp_path / "ours.jsonl")) == read


def test_a_file_of_many_bad_documents_is_passed_over_entry_by_entry(tmp_path):
    bad = SPERT | {"relations": [{"head": 1, "tail": 1, "type": "r"}]}
    (tmp_path / "mixed").write_text(lines(SPERT, bad, SPERT, bad))
    faults = Faults(skip=True)
    assert len(list(read_corpus(tmp_path / "mixed", faults=faults))) == 2
    assert faults.n == 2
    assert "mixed, line 2: " in str(faults)
