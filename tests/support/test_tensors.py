"""A file of tensors is what was saved, or is refused without harm."""

import json
import os
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save

from hasten.errors import ModelError
from hasten.support.forms import Misfit, format_of, load_tensors, reading, save_tensors


@pytest.fixture
def path(tmp_path):
    save_tensors(tmp_path / "x", "ours", {"a": np.arange(5.0)}, {"said": "this"})
    return tmp_path / "x"


def test_what_was_saved_comes_back(path):
    tensors, about = load_tensors(path, "ours", "thing")
    assert tensors["a"].tolist() == [0, 1, 2, 3, 4]
    assert about == {"said": "this"}
    assert format_of(path) == "ours"
    assert format_of(path.parent) is None
    assert format_of(path.parent / "missing") is None


def header(**changes):
    """A file whose header says what its data do not hold."""
    entry = {"dtype": "F64", "shape": [5], "data_offsets": [0, 40]} | changes
    text = json.dumps({"a": entry, "__metadata__": {"format": "ours"}}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(40)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"short",
        (2**62).to_bytes(8, "little") + b"{}",
        (2**64 - 1).to_bytes(8, "little") + b"{}",
        header(shape=[10**12], data_offsets=[0, 8 * 10**12]),
        header(shape=[10**12]),
        header(shape=[2**40, 2**40]),
        header(shape=[2**40, 2**40, 0], data_offsets=[0, 0]),
        header(shape=[-5]),
        header(shape=[1] * 70 + [5]),
        header(dtype="F8_E4M3"),
        header(dtype="BF16"),
        header(dtype=["F64"]),
        header(data_offsets=[40, 0]),
        header(more=1),
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
        (7).to_bytes(8, "little") + b'{"a":1}',
        (22).to_bytes(8, "little") + b'{"__metadata__":["a"]}',
    ],
)
def test_a_header_that_lies_is_refused_at_once(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(
            ModelError, match=r"x is not a thing, or is damaged: .*\. Use another copy, or make it again\."
        ):
            load_tensors(tmp_path / "x", "ours", "thing")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_file_of_another_format_or_digest_is_refused(path):
    words = r"x is not a thing, or is of another version: its format is 'ours', not 'theirs'\. Name another file"
    with pytest.raises(ModelError, match=words):
        load_tensors(path, "theirs", "thing")
    path.write_bytes(save({"a": np.zeros(5)}, {"format": "ours"}))
    with pytest.raises(ModelError, match="x is damaged: its content does not match its digest"):
        load_tensors(path, "ours", "thing")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "/dev/zero"):
        with pytest.raises(ModelError, match="it is not a file"):
            load_tensors(tmp_path / name, "ours", "thing")
    with pytest.raises(ModelError, match=r"'a\\x00b' cannot be read: .*embedded null"):
        load_tensors("a\0b", "ours", "thing")


def test_a_misfit_names_its_file():
    with pytest.raises(ModelError, match=r"there is damaged: it is wrong\. Use another copy"), reading("there"):
        raise Misfit("it is wrong")
