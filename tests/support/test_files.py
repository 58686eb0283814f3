"""Files are whole or not there, and what cannot be written is named."""

import os
from pathlib import Path

import numpy as np
import pytest

from hasten.errors import HastenError, WriteError
from hasten.support.files import output_directory, whole, write_whole
from hasten.support.forms import save_tensors


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "x"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(WriteError, match=r"x cannot be written: no space left on device\. Choose another place"):
        write_whole(path, b"newer")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_directory_that_takes_no_files_is_not_called_missing():
    with pytest.raises(WriteError, match=r"/proc/x cannot be written: nothing can be made in /proc\. Choose another"):
        write_whole(Path("/proc/x"), b"new")


def test_weights_without_a_directory_say_so(tmp_path):
    path = tmp_path / "missing" / "x.safetensors"
    with pytest.raises(
        HastenError, match=r"x\.safetensors cannot be written: there is no directory .*missing\. Make it"
    ):
        save_tensors(path, "format", {"a": np.zeros(2)}, {})
    assert not list(tmp_path.iterdir())


def test_an_output_directory_is_there_in_time_and_gone_after_a_failure(tmp_path):
    path = tmp_path / "a" / "b"
    with pytest.raises(KeyboardInterrupt), output_directory(path):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    with output_directory(path):
        assert path.is_dir()
    with pytest.raises(KeyboardInterrupt), output_directory(path):
        raise KeyboardInterrupt
    assert path.is_dir()  # it was there before


def test_an_output_directory_keeps_what_was_written_before_the_failure(tmp_path):
    def fail_late():
        write_whole(tmp_path / "a" / "results", b"kept")
        raise ValueError("late")

    with pytest.raises(ValueError, match="late"), output_directory(tmp_path / "a"):
        fail_late()
    assert (tmp_path / "a" / "results").exists()


def test_a_file_in_the_way_is_named_before_anything_starts(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in ("file", "file/deep"):
        with pytest.raises(WriteError, match=r"file is not a directory"), output_directory(tmp_path / place):
            pytest.fail("it started")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(WriteError, match="permission denied"), output_directory(tmp_path):
        pytest.fail("it started")


def test_what_a_killed_process_left_is_taken_away_by_the_next_save(tmp_path):
    path, left, other = tmp_path / "x", tmp_path / ".x.0123abcd.part", tmp_path / ".y.0123abcd.part"
    left.write_bytes(b"half")
    other.write_bytes(b"of another file")
    write_whole(path, b"new")
    assert sorted(tmp_path.iterdir()) == [other, path]
    with whole(path) as part:  # what is being written now stays
        part.write_bytes(b"slow")
        write_whole(path, b"fast")
        assert part.exists()
    assert path.read_bytes() == b"slow"
    assert not left.exists()


def test_a_link_leads_to_the_file_that_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "x")
    write_whole(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "real" / "x").read_bytes() == b"new"


def test_a_name_with_a_null_character_is_refused():
    with pytest.raises(WriteError, match=r"'a\\x00b' cannot be written"):
        write_whole(Path("a\0b"), b"")


def test_a_file_has_the_rights_that_others_have(tmp_path):
    write_whole(tmp_path / "x", b"")
    (tmp_path / "y").write_bytes(b"")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "y").stat().st_mode
