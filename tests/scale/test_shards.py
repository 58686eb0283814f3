"""Cutting files into shards, and answering them so that a run can be resumed."""

import gzip
import hashlib
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.errors import CorpusError, ModelError, NotFittedError, ProblemError, WriteError
from hasten.model.schema import Schema
from hasten.scale import shards, storage
from hasten.scale.run import Sharding, on_this_machine, predict_shards
from hasten.scale.work import FlatWork
from hasten.speedup.parts import Search, Trust
from hasten.speedup.predictor import Speedup
from hasten.speedup.state import Counters
from hasten.tasks.entity_relation.data.formats import write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.labelling import Labeller
from hasten.tasks.entity_relation.tagger import Tagger


@pytest.fixture(scope="module")
def tagger():
    return Tagger.train(list(generate(60, seed=0)))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.jsonl"
    write_jsonl(path, generate(95, seed=1, labelled=False))
    return path


def answers(run):
    """The files that a run wrote, as bytes."""
    return [Path(each).read_bytes() for each in run.files]


def said_at_once(tagger, path):
    """What one process writes of a file, as bytes."""
    from hasten.scale.work import predict_stream

    out = path.with_suffix(".one")
    predict_stream(Labeller(tagger), path, out)
    return out.read_bytes()


@given(
    lines=st.lists(st.binary(max_size=5).map(lambda b: b.replace(b"\n", b"")), max_size=12),
    ended=st.booleans(),
    size=st.integers(1, 5),
    block=st.integers(1, 9),
)
def test_shards_are_the_file_cut_at_lines(tmp_path_factory, lines, ended, size, block):
    data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    path = tmp_path_factory.mktemp("cut") / "a.jsonl"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "BLOCK", block)
        found = list(shards.plan([str(path)], size))
    assert b"".join(data[each.start : each.stop] for each in found) == data
    line = 0
    for n, each in enumerate(found):
        piece = data[each.start : each.stop]
        assert (each.number, each.line) == (n, line)
        assert each.n == piece.count(b"\n") + (not piece.endswith(b"\n"))
        assert each.n == size or n == len(found) - 1
        assert each.digest == hashlib.sha256(piece).hexdigest()
        line += each.n


@pytest.mark.parametrize("size", [1000, 40])
def test_the_shards_together_are_what_one_process_writes(tagger, text, tmp_path, size):
    run = predict_shards(Labeller(tagger), text, tmp_path / "out", how=Sharding(size=size))
    assert b"".join(answers(run)) == said_at_once(tagger, text)
    assert len(run.files) == -(-95 // size)
    assert run.counters.problems == run.counts["proved"] == 95
    run.merge(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_bytes() == said_at_once(tagger, text)
    with pytest.raises(WriteError, match=r"does not end like the answers"):
        run.merge(tmp_path / "all.parquet")


def test_a_packed_file_is_one_shard_and_several_files_go_in_order(tagger, text, tmp_path):
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    run = predict_shards(Labeller(tagger), [packed, text], tmp_path / "out", how=Sharding(size=40))
    assert len(run.files) == 1 + 3
    assert b"".join(answers(run)) == 2 * said_at_once(tagger, text)
    packed.write_bytes(gzip.compress(text.read_bytes())[:-30])
    with pytest.raises(CorpusError, match=r"packed.jsonl.gz: .*damaged"):
        predict_shards(Labeller(tagger), packed, tmp_path / "cut")


def test_a_second_run_keeps_what_is_finished_and_whole(tagger, text, tmp_path):
    out = tmp_path / "out"
    first = predict_shards(Labeller(tagger), text, out, how=Sharding(size=20))
    whole = answers(first)
    (out / "part-00001.jsonl").write_bytes(whole[1][:-1])  # damaged
    (out / "part-00002.jsonl").unlink()  # lost
    (out / "part-00003.receipt.json").write_text("{")  # not whole
    times = [(out / f"part-{n:05d}.jsonl").stat().st_mtime_ns for n in (0, 4)]
    again = predict_shards(Labeller(tagger), text, out, how=Sharding(size=20))
    assert again.n_kept == 2
    assert [(out / f"part-{n:05d}.jsonl").stat().st_mtime_ns for n in (0, 4)] == times
    assert answers(again) == whole
    assert again.counts == first.counts
    assert json.loads((out / "manifest.json").read_bytes())["finished"]["counts"]["problems"] == 95


def test_a_changed_model_input_or_setting_is_refused(tagger, text, tmp_path):
    out = tmp_path / "out"
    predict_shards(Labeller(tagger), text, out, how=Sharding(size=20))
    other = Labeller(tagger.asking(limits__max_nodes=3))
    with pytest.raises(ModelError, match="begun with another model"):
        predict_shards(other, text, out, how=Sharding(size=20))
    with pytest.raises(ModelError, match="begun with another max_line"):
        predict_shards(Labeller(tagger), text, out, how=Sharding(size=20, max_line=1000))
    with pytest.raises(ModelError, match="begun with another shard_size"):
        predict_shards(Labeller(tagger), text, out, how=Sharding(size=21))
    with pytest.raises(CorpusError, match="begun with other files"):
        predict_shards(Labeller(tagger), [text, text.rename(tmp_path / "more.jsonl")][1:], out, how=Sharding(size=20))
    (tmp_path / "more.jsonl").rename(text)
    data = bytearray(text.read_bytes())
    data[data.rindex(b"[[")] = ord(" ")  # the same size
    text.write_bytes(bytes(data))
    with pytest.raises(CorpusError, match=r"text.jsonl has changed since this run began"):
        predict_shards(Labeller(tagger), text, out, how=Sharding(size=20))


def test_a_directory_with_something_else_is_refused(tagger, text, tmp_path):
    with pytest.raises(WriteError, match="is not empty, and holds no run of ours"):
        predict_shards(Labeller(tagger), text, tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "hasten.run/3"}')
    with pytest.raises(ModelError, match="is damaged"):
        predict_shards(Labeller(tagger), text, tmp_path)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nothing.jsonl", "There is nothing at"),
        ("text.csv", "Run `hasten convert` on it first"),
        ("gone-*", "nothing at"),
    ],
)
def test_input_that_is_no_input_is_named(tagger, tmp_path, path, said):
    (tmp_path / "text.csv").write_text("a,b\n")
    with pytest.raises(CorpusError, match=said):
        predict_shards(Labeller(tagger), tmp_path / path, tmp_path / "out")
    with pytest.raises(CorpusError, match=r"text.csv is named twice"):
        predict_shards(Labeller(tagger), [tmp_path / "text.csv"] * 2, tmp_path / "out")


def test_bad_records_are_named_and_the_others_answered_up_to_a_limit(tagger, text, tmp_path):
    lines = text.read_bytes().splitlines()
    lines[30], lines[70], lines[71], lines[94] = b"{", b"\xff\xfe", b'{"tokens": "long ' + b"x" * 9000 + b'"}', b"[]"
    text.write_bytes(b"\n".join(lines))
    settings = {"size": 20, "max_line": 8000}
    run = predict_shards(Labeller(tagger), text, tmp_path / "out", how=Sharding(**settings))
    assert [each.line for each in run.bad] == [31, 71, 72, 95]
    assert [each.file for each in run.bad] == [str(text)] * 4
    assert "Not JSON" in run.bad[0].reason
    assert "not utf-8" in run.bad[1].reason
    assert "more than 8,000 bytes" in run.bad[2].reason
    listed = [json.loads(line) for line in (tmp_path / "out" / "bad.jsonl").read_text().splitlines()]
    assert listed == [each._asdict() for each in run.bad]
    ids = [json.loads(line)["id"] for each in answers(run) for line in each.splitlines()]
    assert len(ids) == len(set(ids)) == 91
    with pytest.raises(CorpusError, match=r"More than 3 records .* among them\n  .*line 31: Not JSON"):
        predict_shards(Labeller(tagger), text, tmp_path / "less", how=Sharding(max_bad=3, **settings))
    assert predict_shards(Labeller(tagger), text, tmp_path / "less", how=Sharding(max_bad=4, **settings)).n_kept == 5


def test_processes_share_shards_with_the_same_result(tagger, text, tmp_path):
    runs = [
        predict_shards(Labeller(tagger), text, tmp_path / f"{n}", how=Sharding(size=16), engine=on_this_machine(n))
        for n in (1, 2)
    ]
    assert answers(runs[0]) == answers(runs[1])
    assert runs[0].counts == runs[1].counts


def test_urls_are_read_and_written(tagger, text):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/scale/in/a.jsonl", text.read_bytes())
    run = predict_shards(Labeller(tagger), "memory://scale/in", "memory://scale/out", how=Sharding(size=50))
    assert memory.cat("/scale/out/part-00001.jsonl") in said_at_once(tagger, text)
    assert (
        predict_shards(
            Labeller(tagger), "memory://scale/in/*.jsonl", "memory://scale/out", how=Sharding(size=50)
        ).n_kept
        == 2
    )
    assert storage.find(f"file://{text}") == [str(text)]
    with pytest.raises(CorpusError, match="nothing at memory://scale/none"):
        storage.find("memory://scale/none.jsonl")
    with pytest.raises(CorpusError, match="strange"):
        storage.find("strange://a")
    assert run.counts["problems"] == 95


# Flat problems.


@pytest.fixture(scope="module")
def chain():
    schema = Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    pair = schema.factor("pair", left=kind, right=kind)
    pair.allow(left="a", right="b").allow(left="b", right="c").allow(left="c", right="a").allow(left="b", right="a")
    shape = schema.structure()
    variables = [shape.add(kind) for _ in range(4)]
    for left, right in pairwise(variables):
        shape.connect(pair, left=left, right=right)
    return shape


@pytest.fixture
def problems(chain, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "problems.jsonl"
    costs = rng.normal(size=(60, chain.n_labels)).round(3)
    path.write_text("".join(json.dumps({"id": f"p{n}", "costs": row.tolist()}) + "\n" for n, row in enumerate(costs)))
    return path, costs


def test_flat_problems_are_answered_as_the_speedup_answers_them(chain, problems, tmp_path):
    path, costs = problems
    speedup = Speedup(chain.schema)
    run = predict_shards(FlatWork(speedup, {"chain": chain}), path, tmp_path / "out", how=Sharding(size=25))
    found = [json.loads(line) for each in answers(run) for line in each.splitlines()]
    expected = speedup.predict(chain.batch(costs))
    assert [each["labels"] for each in found] == [each.names for each in expected]
    assert [each["cost"] for each in found] == pytest.approx(expected.cost)
    assert all(each["proved"] and each["structure"] == "chain" for each in found)
    assert run.counters.problems == run.counters.proved == 60


def test_audits_are_merged_exactly_and_do_not_depend_on_who_answers(chain, problems, tmp_path):
    path, costs = problems
    answer, trust = Search(width=1, reduce=False, look_ahead=False), Trust(audit=0.5, min_agreement=None)
    speedup = Speedup(chain.schema, answer=answer, trust=trust).fit(chain.batch(costs))
    work = FlatWork(speedup, {"chain": chain})
    runs = [
        predict_shards(work, path, tmp_path / f"{n}", how=Sharding(size=20), engine=on_this_machine(n)) for n in (1, 2)
    ]
    assert runs[0].counts == runs[1].counts
    alone = [speedup.for_shard(n) for n in range(3)]
    for n, each in enumerate(alone):
        each.predict(chain.batch(costs[20 * n : 20 * n + 20]))
    together = Counters.from_dict(sum((Counter(each.counters.as_dict()) for each in alone), Counter()))
    assert runs[0].counters == together
    assert together.audits > 10
    assert runs[0].agreement.n == together.audits
    assert runs[0].agreement.estimate == 1 - together.disagreements / together.audits
    assert speedup.counters.problems == 0  # only copies worked
    assert together.by_search > 0


def test_flat_problems_that_are_none_are_set_aside(chain, tmp_path):
    good = [0.0] * chain.n_labels
    records = [
        {"costs": good},
        {"costs": good[:-1]},
        {"costs": [float("nan"), *good[1:]]},
        {"costs": ["a", *good[1:]]},
        {"costs": None},
        {"costs": good, "structure": "tree"},
        {"costs": good, "id": 3},
        {"costs": [float("inf"), *good[1:]], "structure": "chain"},
    ]
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    run = predict_shards(FlatWork(Speedup(chain.schema), {"chain": chain}), path, tmp_path / "out")
    assert [each.line for each in run.bad] == [2, 3, 4, 5, 6, 7]
    assert all(each.reason for each in run.bad)
    assert run.counts["problems"] == 2


def test_a_speedup_that_cannot_work_is_refused_before_any_record(chain):
    with pytest.raises(ProblemError, match="Set learn=False"):
        FlatWork(Speedup(chain.schema, learn=True), {"chain": chain})
    with pytest.raises(ProblemError, match="name at least one"):
        FlatWork(Speedup(chain.schema), {})
    with pytest.raises(NotFittedError, match="has not learned anything yet"):
        FlatWork(Speedup(chain.schema, answer="search"), {"chain": chain})


def test_another_structure_is_another_work(chain):
    longer = chain.schema.structure()
    longer.add(chain.schema.variables["kind"])
    speedup = Speedup(chain.schema)
    assert FlatWork(speedup, {"chain": chain}).digest == FlatWork(Speedup(chain.schema), {"chain": chain}).digest
    assert FlatWork(speedup, {"chain": chain}).digest != FlatWork(speedup, {"chain": longer}).digest
    assert (
        FlatWork(speedup, {"chain": chain}).digest != FlatWork(Speedup(chain.schema, seed=3), {"chain": chain}).digest
    )
