"""Blocks of lines: together they are the lines of the file."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.errors import CorpusError, ProblemError
from hasten.tasks.text import lines
from hasten.tasks.text.lines import open_lines, read_blocks

TEXT = st.text(st.sampled_from("aé😀\r\n\u2028\x0b\x85 \t"), max_size=40)


def lines_of(path, max_line=100):
    return [each for block in read_blocks(path, max_line) for each in block.entries()]


def one_by_one(path, max_line=100):
    with open_lines(path, max_line) as lines:
        return [(lines.number, line.rstrip("\n")) for line in lines if not line.isspace()]


@given(text=TEXT, mark=st.booleans(), packed=st.booleans(), size=st.integers(3, 12))
def test_the_lines_of_all_blocks_are_those_of_the_file(tmp_path_factory, text, mark, packed, size):
    path = tmp_path_factory.mktemp("text") / "text"
    data = text.encode("utf-8-sig" if mark else "utf-8")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", size)
        assert lines_of(path) == one_by_one(path)


def test_a_block_has_whole_lines_and_is_no_longer_than_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK", 8)
    path = tmp_path / "text"
    path.write_bytes(b"one\ntwo\nthree\n" + b"4" * 20 + b"\nfive")
    assert [(block.first, block.data) for block in read_blocks(path)] == [
        (1, b"one\ntwo\n"),
        (3, b"three\n"),
        (4, b"4" * 20 + b"\n"),
        (5, b"five"),
    ]


def test_lines_that_are_not_text_are_bytes_and_keep_their_numbers(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"one\n\n\xff\nfour\n")
    assert lines_of(path) == [(1, b"one"), (3, b"\xff"), (4, b"four")]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_that_is_too_long_is_named(tmp_path, monkeypatch, end):
    path = tmp_path / "text"
    path.write_bytes(b"one\n\n" + b"3" * 11 + end)
    assert lines_of(path, 11)[-1] == (3, "3" * 11)
    for size in (4, 1000):
        monkeypatch.setattr(lines, "BLOCK", size)
        with pytest.raises(CorpusError, match=r"text, line 3: The line has more than 10 characters.*--max-line"):
            lines_of(path, 10)


def test_a_line_without_end_does_not_fill_the_memory():
    with pytest.raises(CorpusError, match=r"/dev/zero, line 1: The line has more than 1,000 characters"):
        lines_of("/dev/zero", 1000)


def test_a_file_that_is_not_there_or_damaged_is_named(tmp_path):
    with pytest.raises(CorpusError, match=r"none: Cannot be read \(No such file"):
        lines_of(tmp_path / "none")
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 50)[:-20])
    with pytest.raises(CorpusError, match=r"text.gz: The file is damaged"):
        lines_of(path)
    with pytest.raises(ProblemError, match="max_line must be at least 1"):
        lines_of(path, 0)
