"""A real server: every address, the journal, and how it begins and ends."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import naive
import numpy as np
import pytest
from servers import Server

import hasten
from hasten.journal import Journal
from hasten.tasks.entity_relation.task import PAPERS

TWO, FOUR = PAPERS.structure(2), PAPERS.structure(4)
COSTS = np.random.default_rng(7).normal(size=(60, FOUR.n_labels)).round(3)
SMALL = np.random.default_rng(8).normal(size=(40, TWO.n_labels)).round(3)


def record(costs, structure="four"):
    return {"costs": costs.tolist(), "structure": structure}


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def children(pid):
    found = []
    for each in os.listdir("/proc"):
        if each.isdigit():
            try:
                with open(f"/proc/{each}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found += [int(each), *children(int(each))]
    return found


def test_answers_are_the_optima(server):
    for costs in SMALL:
        status, found = server.post("/predict", record(costs, "two"))
        truth = naive.solve(TWO.problem(costs))
        assert status == 200
        assert found["proved"]
        assert found["cost"] == pytest.approx(truth.cost)
        assert TWO.problem(costs).total(found["labels"]) == pytest.approx(truth.cost)
        assert found["gap"] == 0.0


def test_a_list_is_answered_as_its_items_are(server):
    records = [record(costs) for costs in COSTS[:9]] + [record(costs, "two") for costs in SMALL[:9]]
    status, together = server.post("/predict", records)
    assert status == 200
    assert together == [server.post("/predict", each)[1] for each in records]


def test_requests_at_the_same_time_are_answered_as_alone(server):
    found = [None] * len(COSTS)

    def ask(n):
        found[n] = server.post("/predict", record(COSTS[n]))[1]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(len(COSTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    exact = hasten.Certifier()(FOUR.batch(COSTS))
    assert [each["cost"] for each in found] == pytest.approx(exact.cost.tolist())


def test_a_forbidden_label_and_no_answer(server):
    costs = SMALL[0].tolist()
    costs[:4] = ["inf", "inf", "inf", 1.0]
    status, found = server.post("/predict", {"costs": costs, "structure": "two"})
    assert status == 200
    assert found["labels"][0] == "none"
    costs[:4] = ["inf"] * 4
    status, found = server.post("/predict", {"costs": costs, "structure": "two"})
    assert status == 200
    assert found["labels"] is None
    assert found["cost"] is None
    assert found["proved"]
    assert found["status"] == hasten.Status.INFEASIBLE


def test_it_says_what_it_is(server):
    assert server.get("/v2/health/live")[0] == server.get("/v2/health/ready")[0] == 200
    assert json.loads(server.get("/v2")[1])["extensions"] == ["binary_tensor_data"]
    about = json.loads(server.get("/v2/models/er")[1])
    assert about["inputs"] == [{"name": "costs", "datatype": "FP64", "shape": [-1, -1]}]
    assert server.get(f"/v2/models/er/versions/{about['versions'][0]}/ready")[0] == 200
    assert server.get("/v2/models/other")[0] == 404


def test_every_address_is_described_and_there(server):
    described = json.loads(server.get("/openapi.json")[1])
    assert described["openapi"].startswith("3.1")
    for path, methods in described["paths"].items():
        for method in methods:
            status, body, _ = server.ask(method.upper(), path, None if method == "get" else b"{}")
            assert status in (200, 400, 202), (path, status, body)
    assert "/predict" in described["paths"]


def test_metrics_count(server):
    def counted():
        lines = server.get("/metrics")[1].decode().splitlines()
        assert all(line.startswith(("#", "hasten_")) for line in lines)
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

    before = counted()
    server.post("/predict", [record(costs) for costs in COSTS[:5]])
    server.post("/predict", {"costs": []})
    after = counted()

    def more(name):
        return sum(value - before.get(key, 0) for key, value in after.items() if key.startswith(name))

    assert more("hasten_answers_total") == 5
    assert more('hasten_responses_total{status="400"}') == 1
    assert more('hasten_seconds_count{lane="fast"}') == 1
    assert after["hasten_memory_bytes"] > 10**7
    assert after["hasten_queue"] == 0


def test_the_page_shows_the_latest_answers(server):
    server.get("/lifetime")  # it is told of all that came before
    for n in range(12):
        server.post("/predict", record((SMALL[0] + n).round(3), "two"))
    shown = json.loads(server.get("/lifetime")[1])["recent"][0]
    assert json.loads(shown["text"]) == record((SMALL[0] + 11).round(3), "two")
    assert json.loads(shown["answer"])["labels"]
    assert shown["explains"]


def test_an_explanation_has_the_search_and_the_proof(server):
    status, found = server.post("/explain", record(SMALL[0], "two"))
    assert status == 200
    assert found["proof"]["steps"]["labels"] == server.post("/predict", record(SMALL[0], "two"))[1]["labels"]
    assert found["search"]["text"].startswith("Greedy search")
    assert found["html"].count("<svg") >= 2
    assert server.post("/explain", [record(SMALL[0], "two")])[0] == 400


def test_the_page_and_its_numbers(server):
    status, page, headers = server.get("/")
    assert status == 200
    assert b"page.js" in page
    assert "script-src 'self'" in headers["content-security-policy"]
    assert server.get("/page.js")[0] == server.get("/page.css")[0] == 200
    assert server.get("/../app.py")[0] == server.get("/page/app.py")[0] == 404
    before = json.loads(server.get("/lifetime")[1])
    server.post("/predict", record(COSTS[0]))
    after = json.loads(server.get(f"/lifetime?since={before['revision']}")[1])
    assert after["answers"] == before["answers"] + 1
    assert after["total"]["proved"] == before["total"]["proved"] + 1
    status, found = server.post("/explain", {"number": after["recent"][0]["number"]})
    assert status == 200
    assert found["proof"]
    assert server.post("/explain", {"number": 10**9})[0] == 404
    assert server.get("/lifetime?since=x")[0] == 400


def test_what_is_answered_and_said_is_in_the_journal(server, folder):
    _, _, headers = server.ask("POST", "/predict", record(COSTS[1]), headers={"X-Request-Id": "mine1"}.items())
    assert headers["x-request-id"] == "mine1"
    assert server.ask("POST", "/feedback", {"id": "mine1", "labels": []}, {"X-Request-Id": "mine2"}.items())[0] == 202
    rows = list(Journal(folder / "er.journal", read_only=True).rows())
    (given,) = [row.data for row in rows if row.kind == "given" and row.data["id"] == "mine1"]
    assert json.loads(given["input"]) == record(COSTS[1])
    assert json.loads(given["answer"])["proved"]
    assert [row.data["id"] for row in rows if row.kind == "feedback"].count("mine2") == 1


def test_text_and_programs_are_served(folder):
    sentence = {"tokens": ["Ada", "lives", "in", "Ulm", "."], "spans": [[0, 1], [3, 4]]}
    from hasten.tasks.entity_relation.data.formats.jsonl import from_object
    from hasten.tasks.entity_relation.tagger import Tagger

    server = Server(folder, "news.hasten")
    (truth,) = Tagger.load(folder / "news.hasten").label([from_object(sentence, "")])
    status, found = server.post("/predict", sentence)
    assert status == 200
    assert tuple(found["types"]) == truth.sentence.types
    assert [tuple(each) for each in found["relations"]] == list(truth.sentence.relations)
    tensor = {"name": "text", "datatype": "BYTES", "shape": [2], "data": [json.dumps(sentence)] * 2}
    status, answer = server.post("/v2/models/news/infer", {"inputs": [tensor], "outputs": [{"name": "types"}]})
    assert status == 200
    assert answer["outputs"][0]["data"] == [json.dumps(found["types"], separators=(",", ":"))] * 2
    assert server.post("/predict", {"text": "[Ada] lives in [Ulm]."}) == (200, found)
    assert server.post("/explain", sentence)[0] == 200
    assert server.end() == 0

    server = Server(folder, "tags.hasten", "--name", "words")
    status, found = server.post("/predict", {"tokens": sentence["tokens"], "rules": ["at least 2 NNP"]})
    assert status == 200
    assert found["tags"].count("NNP") >= 2
    tags = server.post("/predict", {"tokens": sentence["tokens"]})[1]["tags"]
    assert server.post("/predict", {"text": " ".join(sentence["tokens"])})[1]["tags"] == tags
    assert server.post("/predict", {"tokens": ["a"], "rules": ["nonsense"]})[0] == 400
    assert server.get("/v2/models/words")[0] == 200
    assert server.end() == 0

    server = Server(folder, "shop.lp")
    objective = {"a": 1.0, "b": 5.0, "c": 2.0, "d": 2.0}
    status, found = server.post("/predict", {"objective": objective})
    truth = hasten.read(folder / "shop.lp").solve(objective=objective)
    assert (status, found["objective"]) == (200, truth.objective)
    assert found["values"] == truth.chosen()
    assert server.post("/predict", {"objective": {"nobody": 1.0}})[0] == 400
    assert server.end() == 0


def test_what_no_quick_proof_settles_goes_to_the_slow_lane_and_never_holds_up_the_fast_one(folder):
    import shapes

    server = Server(folder, "queens.hasten", "--structures", "shapes:hard")
    rng = np.random.default_rng(1)
    rows = [rng.normal(size=shapes.hard.n_labels).round(3) for _ in range(6)]
    _, found = server.post("/predict", [{"costs": row.tolist()} for row in rows])
    exact = hasten.Speedup(shapes.queens).predict(shapes.hard.batch(np.array(rows)))
    assert [each["cost"] for each in found] == pytest.approx(exact.cost.tolist())
    asked = [line for line in server.get("/metrics")[1].decode().splitlines() if line.startswith("hasten_black_box_c")]
    assert float(asked[0].split()[1]) > 0
    assert server.end() == 0


def test_a_cascade_learns_while_it_serves_and_is_saved(folder):
    args = "words.cascade", "--task", "tags", "--black-box", "shapes:box", "--journal", "words.journal", "--risk", "0.1"
    server = Server(folder, *args)
    rng = np.random.default_rng(0)
    words = ["Ada", "Bob", "sees", "likes", "12", "7", "Ulm", "trees"]
    for _ in range(16):
        texts = [{"tokens": rng.choice(words, 6).tolist()} for _ in range(40)]
        status, found = server.post("/predict", texts)
        assert status == 200
    assert all(each["answer"]["tags"] for each in found)
    end = time.monotonic() + 60
    while '"source":"student"' not in json.dumps(found, separators=(",", ":")) and time.monotonic() < end:
        _, found = server.post("/predict", texts)
    by = {each["source"] for each in found}
    assert "student" in by
    for text, each in zip(texts, found, strict=True):
        wanted = ["NUM" if w.isdigit() else "UP" if w[:1].isupper() else "LOW" for w in text["tokens"]]
        assert each["answer"]["tags"] == wanted
    assert server.post("/explain", texts[0])[0] == 200
    state = json.loads(server.get("/lifetime")[1])
    assert state["trust"]["version"].startswith("v")
    assert [each["kind"] for each in state["marks"]].count("version") >= 1
    status, found = server.post("/predict", {"tokens": ["fail"]})
    assert status == 200
    assert server.end() == 0
    again = Server(folder, *args)
    assert json.loads(again.get("/lifetime")[1])["trust"]["version"] == state["trust"]["version"]
    assert again.end() == 0


def test_it_finishes_what_it_accepted_and_leaves_no_process(folder):
    server = Server(folder, "queens.hasten", "--structures", "shapes:hard")
    rng, found = np.random.default_rng(2), []
    bodies = [[{"costs": rng.normal(size=81).round(3).tolist()} for _ in range(40)] for _ in range(3)]
    threads = [
        threading.Thread(target=lambda body=body: found.append(server.post("/predict", body))) for body in bodies
    ]
    for thread in threads:
        thread.start()
    while "hasten_queue 3" not in server.get("/metrics")[1].decode() and any(t.is_alive() for t in threads):
        time.sleep(0.005)
    started = children(server.process.pid)
    assert server.end() == 0
    for thread in threads:
        thread.join()
    assert [status for status, _ in found] == [200] * 3
    end = time.monotonic() + 10
    while any(map(alive, started)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, started))


def test_it_is_not_ready_before_kernels_are_there(folder):
    server = Server(folder, "er.hasten", "--structures", "shapes:structures", ready=False)
    seen = set()
    while (status := server.get("/v2/health/ready")[0]) != 200:
        seen.add((status, server.get("/v2/health/live")[0] if status else 0))
        if status == 503 and server.post("/predict", record(COSTS[0]))[0] == 503:
            seen.add("refused")
    assert server.post("/predict", record(COSTS[0]))[0] == 200
    assert (503, 200) in seen
    assert server.end(signal.SIGINT) == 0


@pytest.mark.parametrize("seed", range(3))
def test_kill_9_loses_no_acknowledged_row(folder, seed):
    name = f"kill{seed}.journal"
    server = Server(folder, "er.hasten", "--structures", "shapes:structures", "--journal", name)
    acknowledged, rng = [], np.random.default_rng(seed)

    def ask(n):
        for k in range(10**6):
            id = f"n{n}k{k}"
            status, _, _ = server.ask("POST", "/predict", record(COSTS[k % 60]), {"X-Request-Id": id}.items())
            if status != 200:
                return
            acknowledged.append(id)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2 + rng.random())
    started = children(server.process.pid)
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    for thread in threads:
        thread.join()
    kept = {row.data["id"] for row in Journal(folder / name, read_only=True).rows()}
    assert acknowledged
    assert set(acknowledged) <= kept
    end = time.monotonic() + 10
    while any(map(alive, started)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, started))
