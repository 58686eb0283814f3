"""Published lists of ids say who trains and who tests; what is wrong with them is told by file and line."""

import pytest

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpora import Split, named_part, parts_of
from hasten.tasks.entity_relation.data.corpus import Sentence


def sentences(*ids):
    return [Sentence(each, ("A", "B"), ((0, 1), (1, 2)), None, ("person", "person"), ((0, 1, "Kill"),)) for each in ids]


CORPUS = sentences("1", "2", "3", "4", "5", "6")


def write(path, *ids, end="\n"):
    path.write_bytes("".join(f"{each}{end}" for each in ids).encode())
    return str(path)


def test_lists_say_who_trains_and_tests(tmp_path):
    train, dev = write(tmp_path / "a", "5", "1"), write(tmp_path / "b", "2")
    test = write(tmp_path / "c", "6", "", "3", end="\r\n")
    split = Split.read([f"train={train}", f"dev={dev}", f"test={test}"])
    assert split.apply(CORPUS) == ([0, 4], [2, 5], [1])  # 4 is in no list, and left out
    assert split.files == ("train: a", "dev: b", "test: c")
    assert parts_of(CORPUS, split, 7)[:2] == ([0, 4], [2, 5])


def test_a_part_that_no_list_names_is_the_rest(tmp_path):
    one = write(tmp_path / "one", "2", "3")
    assert Split.read([f"test={one}"]).apply(CORPUS)[:2] == ([0, 3, 4, 5], [1, 2])
    assert Split.read([f"train={one}"]).apply(CORPUS)[:2] == ([1, 2], [0, 3, 4, 5])
    more = write(tmp_path / "more", "4")
    assert Split.read([f"train={one}", f"train={more}"]).apply(CORPUS)[:2] == ([1, 2, 3], [0, 4, 5])


def test_the_name_of_a_file_may_say_its_part(tmp_path):
    assert named_part("data/split_test.ids") == ("test", "data/split_test.ids")
    assert named_part("Train.txt") == ("train", "Train.txt")
    assert named_part("dev=x=y.ids") == ("dev", "x=y.ids")
    for unclear in ("ids.txt", "train_test.ids", "timer.ids", "valid=a.ids"):
        with pytest.raises(CorpusError, match=r"which part is it\? Name it, train=FILE"):
            named_part(unclear)
    with pytest.raises(CorpusError, match="no file is named"):
        named_part("train=")


@pytest.mark.parametrize(
    ("ids", "more", "words"),
    [
        (["1", "99"], [], r"list, line 2: No labelled sentence of the corpus has the id '99'.* first ids are '1', '2'"),
        (["1", "2", "1"], [], r"list, line 3: The id '1' is listed already: .*list, line 1"),
        (["1"], ["1"], r"more, line 1: The id '1' is listed already: .*list, line 1"),
        ([], [], "list lists no id"),
        (["1", "2", "3", "4", "5", "6"], [], "leaves no sentence to test on"),
    ],
)
def test_what_is_wrong_with_a_list_is_told(tmp_path, ids, more, words):
    options = [f"train={write(tmp_path / 'list', *ids)}"]
    options += [f"dev={write(tmp_path / 'more', *more)}"] if more else []
    with pytest.raises(CorpusError, match=words):
        Split.read(options).apply(CORPUS)


def test_a_list_that_is_not_there_and_one_for_nothing(tmp_path):
    with pytest.raises(CorpusError, match=r"nowhere: Cannot be read"):
        Split.read([f"test={tmp_path / 'nowhere'}"])
    with pytest.raises(CorpusError, match="needs a list for training or for testing"):
        Split.read([f"dev={write(tmp_path / 'dev', '1')}"])


def test_ids_that_two_sentences_share_cannot_be_listed(tmp_path):
    split = Split.read([f"test={write(tmp_path / 'test', '2')}"])
    with pytest.raises(CorpusError, match="Two sentences of the corpus have the id '2'"):
        split.apply([*CORPUS, *sentences("2")])
    assert split.apply([*CORPUS, *sentences("1")])[:2] == ([0, 2, 3, 4, 5, 6], [1])
