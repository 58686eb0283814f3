"""Tagged sentences in all their formats; what is wrong with a file is told with its line."""

from __future__ import annotations

import gzip
import json

import pytest

from hasten.errors import CorpusError
from hasten.tasks.tagging.corpus import Tagged, read_all, read_tagged, tags_of, to_json

CONLLU = """# sent_id = first
# text = Don't go.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tnow\tnow\tADV\tRB\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_
"""


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_conllu_passes_over_tokens_that_are_no_words(tmp_path):
    first, second = read_tagged(write(tmp_path, "a.conllu", CONLLU))
    assert first == Tagged("first", ("Do", "n't", "go", "."), ("AUX", "PART", "VERB", "PUNCT"))
    assert second.words == ("Yes",)


@pytest.mark.parametrize("column", ["xpos", 5, "5", -6])
def test_another_column_of_conllu(tmp_path, column):
    first, _ = read_tagged(write(tmp_path, "a.conllu", CONLLU), column=column)
    assert first.tags == ("VB", "RB", "VB", ".")


def test_conllu_is_known_by_its_lines_and_unpacked(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONLLU.encode()))
    assert [len(each.words) for each in read_tagged(str(path))] == [4, 1]


@pytest.mark.parametrize("between", [" ", "\t", "\tNN\tI-NP\t"])
def test_columns_have_the_word_first_and_the_tag_last(tmp_path, between):
    text = f"-DOCSTART-{between}O\n\nAda{between}B-PER\r\nsleeps{between}O\n\n\n\n#{between}O\n"
    first, second = read_tagged(write(tmp_path, "a.txt", text), "conll")
    assert (first.words, first.tags) == (("Ada", "sleeps"), ("B-PER", "O"))
    assert (second.words, second.tags) == (("#",), ("O",))


def test_words_alone_are_untagged(tmp_path):
    path = write(tmp_path, "a.txt", "Ada\nsleeps\n")
    assert next(read_tagged(path)).tags is None
    with pytest.raises(CorpusError, match="has no tags"):
        read_all(path)


def test_json_lines_go_and_come_back(tmp_path):
    every = [Tagged("a", ("Ada", "é\u2028"), ("X", "Y"), ("at most 1 X",)), Tagged("b", ()), Tagged("3", ("x",))]
    path = write(tmp_path, "a.jsonl", "\n".join(json.dumps(to_json(each)) for each in every) + "\n")
    assert list(read_tagged(path)) == every
    assert [each.tags for each in read_tagged(path, tags=False)] == [None] * 3


def test_tags_under_another_key(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"tokens": ["a"], "ner": ["O"]}\n')
    assert next(read_tagged(path, column="ner")).tags == ("O",)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", "{", "line 1: Not JSON"),
        ("a.jsonl", "[1]", "line 1: Expected a JSON object"),
        ("a.jsonl", '{"tokens": "Ada"}', "'tokens' should be a list of strings"),
        ("a.jsonl", '{"tokens": ["a"], "tags": ["X", "Y"]}', "got 2 tags for 1 words"),
        ("a.jsonl", '{"tokens": ["a", ""]}', "word 1 is empty"),
        ("a.jsonl", '{"tokens": ["a"], "tags": [""]}', "the tag of word 0 is empty"),
        ("a.jsonl", '{"tokens": [], "id": 3}', "'id' should be a string"),
        ("a.jsonl", '{"tokens": [], "rules": "at most 1 X"}', "'rules' should be a list of strings"),
        ("a.jsonl", "[" * 100_000, "line 1: "),
        ("a.conllu", "Ada\tNOUN\n", "line 1: A line of CoNLL-U begins with the number"),
        ("a.conllu", "1\tAda\n", "line 1: The line has 2 columns"),
        ("a.txt", "Ada NOUN\nsleeps\n", "the word 'sleeps' has no tag"),
    ],
)
def test_bad_files_are_refused_by_line_and_reason(tmp_path, name, text, said):
    with pytest.raises(CorpusError, match=said):
        list(read_tagged(write(tmp_path, name, text)))


def test_columns_and_formats_that_are_not_there(tmp_path):
    path = write(tmp_path, "a.txt", "Ada NOUN\n")
    with pytest.raises(CorpusError, match="no format 'xml'"):
        read_tagged(path, "xml")
    with pytest.raises(CorpusError, match="no column 'upos'"):
        read_tagged(path, "conll", "upos")
    with pytest.raises(CorpusError, match="none with the number 3"):
        list(read_tagged(path, "conll", 3))
    with pytest.raises(CorpusError, match="Check the path"):
        list(read_tagged(str(tmp_path / "none.txt")))


def test_a_corpus_without_tags_is_refused():
    with pytest.raises(CorpusError, match="No sentence has a tag"):
        tags_of([Tagged("a", ("b",)), Tagged("c", ())])
