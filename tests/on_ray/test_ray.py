"""hasten on Ray, on a cluster of this machine (`make test-ray`); skipped where Ray is not installed."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

import ray
import ray.data
from typer.testing import CliRunner

import hasten.ray
from hasten import Schema, Speedup, cli
from hasten.errors import CorpusError, ModelError, ProblemError, WorkerError
from hasten.ray.predicting import on_ray
from hasten.scale.run import Sharding, predict_shards
from hasten.scale.work import predict_stream
from hasten.speedup.parts import Search, Trust
from hasten.tasks.entity_relation.data.formats import write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.labelling import Labeller
from hasten.tasks.entity_relation.tagger import Tagger

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own
N = 700


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(
        num_cpus=2,
        object_store_memory=100_000_000,
        include_dashboard=False,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def tagger():
    return Tagger.train(list(generate(60, seed=0)))


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.jsonl"
    write_jsonl(path, generate(N, seed=1, labelled=False))
    return path


def answers(run):
    return [Path(each).read_bytes() for each in run.files]


def test_files_are_answered_resumed_and_put_together(tagger, text, tmp_path):
    tagger.save(tmp_path / "model")
    one = tmp_path / "one.jsonl"
    counts = predict_stream(Labeller(tagger), text, one)
    run = hasten.ray.predict(text, tmp_path / "model", tmp_path / "out", how=Sharding(size=200))
    assert b"".join(answers(run)) == one.read_bytes()
    assert {name: n for name, n in run.counts.items() if n} == {name: n for name, n in counts.items() if n}
    assert run.n_kept == 0
    (tmp_path / "out" / "part-00002.jsonl").write_text("")
    again = hasten.ray.predict(text, tagger, f"file://{tmp_path / 'out'}", how=Sharding(size=200))
    assert again.n_kept == 3
    assert answers(again) == answers(run)
    again.merge(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_bytes() == one.read_bytes()
    with pytest.raises(ModelError, match="another model"):
        hasten.ray.predict(text, tagger.asking(limits__max_nodes=3), tmp_path / "out", how=Sharding(size=200))


def test_bad_records_are_named_and_too_many_of_them_end_the_run(tagger, text, tmp_path):
    lines = text.read_bytes().splitlines()
    lines[250], lines[699] = b"{", b"[]"
    text.write_bytes(b"\n".join(lines))
    run = hasten.ray.predict(text, tagger, tmp_path / "out", how=Sharding(size=200))
    assert [(each.file, each.line) for each in run.bad] == [(str(text), 251), (str(text), 700)]
    assert run.counts["problems"] == N - 2
    with pytest.raises(CorpusError, match=r"More than 1 records .*\n.*line 251: Not JSON"):
        hasten.ray.predict(text, tagger, tmp_path / "few", how=Sharding(size=200, max_bad=1))


def test_parquet_in_and_out_holds_what_json_holds(tagger, text, tmp_path):
    wanted = tmp_path / "one.jsonl"
    predict_stream(Labeller(tagger), text, wanted)
    rows = hasten.ray.predict(text, tagger, tmp_path / "rows", how=Sharding("parquet", 400))
    rows.merge(tmp_path / "rows.parquet")
    back = hasten.ray.predict(tmp_path / "rows.parquet", tagger, tmp_path / "lines", how=Sharding(size=400))
    assert len(back.files) > 1  # several row groups
    assert b"".join(answers(back)) == wanted.read_bytes()  # labels that were there are labelled anew


def test_a_dataset_is_answered_by_a_dataset(tagger, text, tmp_path):
    records = [json.loads(line) for line in text.read_text().splitlines()[:50]]
    records[7]["spans"] = [[0, 10_000]]
    found = hasten.ray.predict(ray.data.from_items(records), tagger).take_all()
    place = {each["id"]: n for n, each in enumerate(records)}
    found.sort(key=lambda each: place[each["id"]])
    assert [each["id"] for each in found] == [each["id"] for each in records]
    assert "does not fit" in found[7]["failed"]
    assert found[7]["types"] is None
    assert all(each["proved"] and each["failed"] is None for n, each in enumerate(found) if n != 7)
    with pytest.raises(ProblemError, match="leave out `out`"):
        hasten.ray.predict(ray.data.from_items(records), tagger, tmp_path / "out")
    with pytest.raises(ProblemError, match="Say where the answers to files go"):
        hasten.ray.predict(text, tagger)


def test_flat_problems_and_their_audits_are_as_without_ray(tmp_path):
    schema = Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    schema.factor("pair", left=kind, right=kind).allow(left="a", right="b").allow(left="b", right="c")
    shape = schema.structure()
    shape.connect(schema.factors["pair"], left=shape.add(kind), right=shape.add(kind))
    costs = np.random.default_rng(0).normal(size=(90, shape.n_labels))
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps({"costs": row.tolist()}) + "\n" for row in costs))
    speedup = Speedup(schema, answer=Search(width=1), trust=Trust(audit=0.5, min_agreement=None)).fit(
        shape.batch(costs)
    )
    run = hasten.ray.predict(path, speedup, tmp_path / "out", structures={"pair": shape}, how=Sharding(size=30))
    here = predict_shards(
        hasten.ray.predicting.FlatWork(speedup, {"pair": shape}), path, tmp_path / "h", how=Sharding(size=30)
    )
    assert answers(run) == answers(here)
    assert run.counters == here.counters
    assert run.agreement == here.agreement
    assert run.counters.audits > 10


def test_the_command_line_answers_on_ray(tagger, text, tmp_path):
    tagger.save(tmp_path / "model")
    predict_stream(Labeller(tagger), text, tmp_path / "one.jsonl")
    settings = ["--engine", "ray", "--shard-size", "300"]
    for said in ("Labelled 700 sentences", "3 shards of 3 had been finished before"):
        done = CliRunner().invoke(
            cli.app, ["predict", str(tmp_path / "model"), str(text), str(tmp_path / "out.jsonl"), *settings]
        )
        assert done.exit_code == 0, done.output
        assert said in done.output
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    refused = CliRunner().invoke(cli.app, ["predict", str(tmp_path / "model"), "-", "x.jsonl", *settings])
    assert "A stream has no shards" in str(refused.exception)


def test_the_cluster_file_is_one():
    from ray.autoscaler._private.util import prepare_config, validate_config

    yaml = pytest.importorskip("yaml")
    file = Path(__file__).parents[2] / "examples" / "ray-cluster.yaml"
    config = prepare_config(yaml.safe_load(file.read_text()))
    validate_config(config)
    assert config["provider"]["worker_ips"] == ["10.0.0.2", "10.0.0.3"]


class Killing(Labeller):
    """Answers by ending its process."""

    def __reduce__(self):
        return Killing, (self.tagger,)

    def answer(self, items):
        os._exit(1)


def test_a_shard_that_kills_what_answers_it_ends_the_run(tagger, text, tmp_path):
    with pytest.raises(WorkerError, match=rf"5 workers died over {text}, lines 1 to 700"):
        predict_shards(Killing(tagger), text, tmp_path / "out", engine=on_ray())
