"""`hasten train`, `evaluate`, `predict`, `convert` and `explain`: mistakes that users make, and splits."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from hasten import cli
from hasten.tasks.entity_relation.data.corpus import in_order
from hasten.tasks.entity_relation.data.formats import read_corpus, write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.tagging import corpus as made_up
from hasten.tasks.tagging.tagger import SequenceTagger


def run(*arguments):
    done = CliRunner().invoke(cli.app, list(map(str, arguments)))
    assert done.exit_code == 0, (done.output, done.exception)
    return " ".join(done.output.split())


def refused(*arguments):
    """What a command says that ends in an error of ours."""
    done = CliRunner().invoke(cli.app, list(map(str, arguments)))
    assert done.exit_code == 1
    return f"{type(done.exception).__name__}: {done.exception}"


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A corpus, three lists of its ids, a labeller, and a tagger of words."""
    room = tmp_path_factory.mktemp("room")
    write_jsonl(room / "gold.jsonl", generate(120, 0))
    ids = [sentence.id for sentence in generate(120, 0)]
    for part, some in {"train": ids[:60], "dev": ids[60:70], "test": ids[70:85]}.items():
        (room / f"{part}.ids").write_text("\n".join(some))
    Tagger.train(list(generate(60, 0))).save(room / "model")
    SequenceTagger.train(made_up.generate(20, 0), epochs=1).save(room / "tagger")
    return room


@pytest.mark.parametrize(("parts", "said"), [(("train", "dev", "test"), "10 labelled sentences of dev"),
                                             (("train", "test"), "15 labelled sentences of test")])  # fmt: skip
def test_training_is_evaluated_on_the_list_for_that(room, parts, said):
    lists = [each for part in parts for each in ("--split", room / f"{part}.ids")]
    told = run("train", room / "gold.jsonl", "--out", room / "split-model", *lists)
    assert "Trained on 60 labelled sentences" in told
    assert f"On the {said}:" in told


def test_evaluate_and_convert_take_the_sentences_of_a_list(room):
    run("evaluate", room / "model", room / "gold.jsonl", "--split", room / "test.ids", "--out", room / "eval")
    assert json.loads((room / "eval" / "evaluation.json").read_text())["n"] == 15
    out = room / "dev.jsonl"
    run("convert", room / "gold.jsonl", out, "--split", room / "dev.ids", "--split", f"test={room / 'test.ids'}")
    assert [each.id for each in read_corpus(out, "jsonl")] == [each.id for each in generate(120, 0)][60:85]
    (room / "strange.ids").write_text("nobody")
    said = refused("convert", room / "gold.jsonl", out, "--split", f"dev={room / 'strange.ids'}")
    assert "strange.ids, line 1: No sentence has the id 'nobody'" in said


def test_the_input_is_never_written_over(room, tmp_path):
    text, link = tmp_path / "text.jsonl", tmp_path / "link.jsonl"
    write_jsonl(text, generate(3, 0))
    link.symlink_to(text)
    before = text.read_bytes()
    for command in (["predict", room / "model"], ["convert"], ["tag", "predict", room / "tagger"]):
        for target in (text, link):
            assert f"{target} is the input" in refused(*command, text, target)
    assert text.read_bytes() == before


def test_the_model_is_never_written_over(room, tmp_path):
    write_jsonl(tmp_path / "text.jsonl", generate(3, 0))
    for command, model in (["predict"], "model"), (["tag", "predict"], "tagger"):
        before = (room / model).read_bytes()
        assert f"{model} is the model" in refused(*command, room / model, tmp_path / "text.jsonl", room / model)
        assert (room / model).read_bytes() == before
    assert "model is the model" in refused("explain", room / "model", "[Ada] left", "--out", room / "model")


def test_what_trains_is_not_developed_on(room, tmp_path):
    said = refused("train", room / "gold.jsonl", "--out", tmp_path / "x", "--dev", room / "gold.jsonl")
    assert "gold.jsonl trains, and so says nothing about other sentences" in said
    tagged = tmp_path / "tagged.conll"
    tagged.write_text("a\tX\n\n" * 12)
    said = refused("tag", "train", tagged, "--out", tmp_path / "x", "--dev", tagged)
    assert "tagged.conll is the file to train on" in said


def test_what_is_no_corpus_is_told_what_to_write(room, tmp_path):
    text = tmp_path / "plain.txt"
    text.write_text("Ada Marlow works for Velt.\nShe lives in Tarn.\n")
    assert "Plain text will not do" in refused("predict", room / "model", text, tmp_path / "out")
    said = refused("tag", "predict", room / "tagger", text, tmp_path / "out")
    assert "plain.txt, line 2: There are lines of 4 and of 5 columns. Is it running text?" in said
    assert "would hold JSON lines" in refused("predict", room / "model", room / "gold.jsonl", tmp_path / "x.parquet")


def test_swapped_arguments_and_models_for_something_else_are_told(room):
    gold, out = room / "gold.jsonl", room / "out.jsonl"
    for command in (["predict", gold, room / "model", out], ["evaluate", gold, room / "model"]):
        assert "gold.jsonl is no model, but" in refused(*command)
    assert "tagger is a tagger of words. Use it with hasten tag predict" in refused(
        "predict", room / "tagger", gold, out
    )
    assert "model is a labeller of entities" in refused("tag", "predict", room / "model", gold, out)
    said = refused("predict", gold, gold, out)
    assert "gold.jsonl is not a labeller of entities and relations, or is damaged: it does not begin as our" in said


def test_too_little_is_refused(room, tmp_path):
    empty, one, out = tmp_path / "empty.jsonl", tmp_path / "one.jsonl", tmp_path / "out"
    empty.touch()
    write_jsonl(one, [next(sentence for sentence in generate(9, 0) if sentence.relations)])
    assert "Got 1 labelled sentence to train on; 10 is the least" in refused("train", one, "--out", out)
    one.write_text('{"tokens": ["Ada"], "tags": ["NOUN"]}')
    assert "Got 1 tagged sentence to train on" in refused("tag", "train", one, "--out", out)
    for command in (["predict", room / "model"], ["convert", "--format", "jsonl"], ["tag", "predict", room / "tagger"]):
        assert "empty.jsonl has no sentence" in refused(*command, empty, out)
    assert not out.exists()


def test_a_file_without_sentences_has_none_to_explain_and_bytes_are_not_text(room, tmp_path):
    empty, data = tmp_path / "empty.jsonl", tmp_path / "bytes.jsonl"
    empty.touch()
    data.write_bytes(bytes(range(128, 256)))
    assert "empty.jsonl has no sentence. Check the file" in refused("explain", room / "model", empty)
    assert "has fewer than 999 sentences" in refused("explain", room / "model", room / "gold.jsonl", "--sentence", 999)
    assert "bytes.jsonl: The bytes that follow are not utf-8 text." in refused("convert", data, tmp_path / "out")


def test_another_schema_is_told_instead_of_tables_of_zeros(room, tmp_path):
    other = tmp_path / "other.jsonl"
    write_jsonl(other, [in_order("1", ["x", "y"], [(0, 1), (1, 2)], types=["Task", "Method"], relations=[])])
    said = refused("evaluate", room / "model", other)
    assert "The model knows none of the types of these sentences: Task, Method." in said
    assert "Its own are person, location, organization, none" in said


def test_explain_says_five_lines_and_where_the_page_is(room):
    done = CliRunner().invoke(
        cli.app, ["explain", str(room / "model"), "[Ada Marlow] lives in [Tarn].", "--out", str(room / "page.html")]
    )
    assert done.exit_code == 0, done.output
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 6
    assert "page.html" in lines[-1]
