"""What clients should not send: every request is answered in words, none harms another."""

from __future__ import annotations

import json
import socket
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from servers import Server
from typer.testing import CliRunner

from hasten.cli import app
from hasten.journal import Journal
from hasten.tasks.entity_relation.task import PAPERS

FOUR = PAPERS.structure(4)
GOOD = {"costs": np.random.default_rng(3).normal(size=FOUR.n_labels).round(3).tolist(), "structure": "four"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["costs", "structure", "inputs", "name", "shape", "datatype", "data", "parameters", "outputs"])
LIKELY = st.recursive(
    JSON | st.sampled_from(["costs", "four", "FP64", "BYTES", "BOOL", [1, 88], [0, 88], [-1, 88], [0.0] * 88]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)


def fine(server):
    assert server.post("/predict", GOOD)[0] == 200


@settings(max_examples=250)
@given(
    path=st.sampled_from(["/predict", "/explain", "/feedback", "/v2/models/er/infer"]),
    body=st.binary(max_size=200) | st.builds(lambda x: json.dumps(x).encode(), JSON | LIKELY),
    length=st.none() | st.integers(-5, 300),
)
def test_no_body_is_our_mistake(server, path, body, length):
    headers = {} if length is None else {"Inference-Header-Content-Length": str(length)}
    status, found, _ = server.ask("POST", path, body, headers.items())
    assert status in (200, 202, 400, 404, 422), (status, found)
    if status >= 400:
        assert json.loads(found)["error"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "truncated"),
        (b"{", "The body is not JSON"),
        (b"null", "Expected `object`"),
        (b'{"costs":[1,2],"structure":"four"}', "2 costs for 88 labels"),
        (b'{"costs":[1e999],"structure":"four"}', "out of range"),
        (b'{"costs":[NaN],"structure":"four"}', "invalid character"),
        (b'{"costs":["-inf"],"structure":"four"}', "Invalid enum value"),
        (b'{"costs":[],"structure":"five"}', "There are four, two"),
        (b'{"costs":[],"structure":"four","more":1}', "unknown field"),
        (b"[" * 100_000, "Expected `object`"),
        (b'{"more":' * 100_000, "unknown field"),
    ],
)
def test_an_error_says_what_is_wrong(server, body, says):
    status, found = server.post("/predict", body)
    assert status == 400
    assert says in found["error"]
    fine(server)


@pytest.mark.parametrize("path", ["/feedback", "/v2/models/er/infer"])
def test_deep_nesting_is_refused(server, path):
    for deep in (b'{"a":' * 200_000, b'{"a":' + b"[" * 200_000, b'{"inputs":[{"name":"costs","data":' + b"[" * 200_000):
        assert server.post(path, deep)[0] == 400
    fine(server)


def test_a_bad_request_never_fails_its_neighbours(server):
    found = []

    def ask(body):
        found.append((body is GOOD, server.post("/predict", body)[0]))

    bad = {"costs": [1.0], "structure": "four"}
    threads = [threading.Thread(target=ask, args=(GOOD if n % 3 else bad,)) for n in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(good, status) for good, status in found} == {(True, 200), (False, 400)}


def test_methods_and_addresses(server):
    status, _, headers = server.ask("GET", "/predict")
    assert (status, headers["allow"]) == (405, "POST")
    assert server.ask("DELETE", "/metrics")[0] == 405
    assert server.get("/nothing")[0] == 404
    assert server.get("/%00%ff")[0] == 404


def test_other_sites_and_names_are_refused(server):
    assert server.ask("POST", "/predict", GOOD, {"Origin": "http://evil.example"}.items())[0] == 403
    assert server.ask("GET", "/metrics", headers={"Host": "evil.example"}.items())[0] == 421
    here = {"Origin": f"http://127.0.0.1:{server.port}"}
    assert server.ask("POST", "/predict", GOOD, here.items())[0] == 200


def test_bodies_that_are_too_large_or_encoded(server):
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
    assert server.raw(head).startswith(b"HTTP/1.1 413")
    chunks = b"".join(b"100000\r\n" + b" " * 2**20 + b"\r\n" for _ in range(18))
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 413 " in server.raw(head + chunks)[:40]
    assert server.ask("POST", "/predict", b"x", {"Content-Encoding": "gzip"}.items())[0] == 415
    fine(server)


def test_headers_that_are_too_large(server):
    many = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 100) for n in range(400))
    assert server.raw(b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n").startswith(b"HTTP/1.1 431")
    assert server.raw(b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 431")
    endless = b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000
    assert server.raw(endless).startswith(b"HTTP/1.1 431")
    assert server.raw(b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    fine(server)


def test_slow_and_vanishing_clients_are_cut_off(folder):
    server = Server(folder, "er.hasten", "--structures", "shapes:structures", "--time-limit", "1")
    body = json.dumps(GOOD).encode()
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    for part in (b"", b"POST /pre", head, head + body[:100]):
        with socket.create_connection(("127.0.0.1", server.port), 30) as slow:
            slow.sendall(part)
            assert slow.recv(100)[:12] in (b"HTTP/1.1 408", b"")
    for part in (head + body[:100], head + body):
        with socket.create_connection(("127.0.0.1", server.port), 30) as gone:
            gone.sendall(part)
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    fine(server)
    assert server.end() == 0
    assert [each for each in server.logged() if each["level"] == "error"] == []


def test_pipelined_requests_are_answered_in_order(server):
    body = json.dumps(GOOD).encode()
    one = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    last = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    found = server.raw(one * 5 + last)
    assert found.count(b'"proved":true') == 5
    assert found.endswith(b'{"live":true}')


def test_many_pipelined_requests_and_a_half_closed_connection(server):
    one = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    found = server.raw(one * 5000 + last)
    assert found.count(b"HTTP/1.1 200") == 5001, found[-400:]
    body = json.dumps(GOOD).encode()
    ask = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with socket.create_connection(("127.0.0.1", server.port), 20) as half:
        half.sendall(ask * 3)
        half.shutdown(socket.SHUT_WR)
        found = b""
        while got := half.recv(65536):
            found += got
    assert found.count(b'"proved":true') == 3


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"Name one Host"),
        (b"GET /v2 HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n", b"Name one Host"),
        (b"POST /v2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", b"400"),
        (b"POST /v2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", b"400"),
        (b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", b"200 OK"),
        (b"GET /v2 HTTP/1.0\r\nHost: localhost\r\n\r\n", b"200 OK"),
        (b"HEAD /v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"405"),
        (b"GET http://localhost/v2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"200 OK"),
        (b"GET /%76%32 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"200 OK"),
        (b"GET /v2 HTTP/1.1\r\nX-Request-Id: a\x0bb\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00", b"400"),
    ],
)
def test_odd_requests_are_answered_and_end_the_connection(server, head, says):
    found = server.raw(head)
    assert says in found
    assert b"connection: close" in found
    fine(server)


def test_a_client_that_waits_is_told_to_go_on(server):
    body = json.dumps(GOOD).encode()
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), 20) as one:
        one.sendall(head % len(body))
        assert one.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(body)
        assert one.recv(65536).startswith(b"HTTP/1.1 200 OK")
        one.sendall(head % 10**9)
        assert one.recv(65536).startswith(b"HTTP/1.1 413")


def test_a_journal_that_cannot_be_written_is_no_fault_of_the_input(folder):
    with Journal(folder / "torn.journal") as journal:
        for _ in range(2000):
            journal.write([("given", {"x": "y" * 100})])
    torn = bytearray((folder / "torn.journal").read_bytes())
    for at in range(4096, len(torn), 4096):
        torn[at : at + 60] = bytes(60)
    (folder / "torn.journal").write_bytes(torn)
    server = Server(folder, "shop.lp", "--journal", "torn.journal")
    status, found = server.post("/predict", {"objective": {"a": 1.0}})
    assert status == 503
    assert "journal" in found["error"]
    assert "torn" not in found["error"]
    assert server.end() == 0


def test_a_full_queue_says_when_to_come_again(folder):
    server = Server(folder, "queens.hasten", "--structures", "shapes:hard", "--queue", "2")
    rng, found = np.random.default_rng(0), []
    body = [{"costs": rng.normal(size=81).round(3).tolist()} for _ in range(60)]

    def ask():
        found.append(server.ask("POST", "/predict", body))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by = {status: headers for status, _, headers in found}
    assert by.keys() == {200, 503}
    assert by[503]["retry-after"] == "1"
    assert server.end() == 0


def test_a_token_is_needed_beyond_loopback_and_checked(folder):
    run = CliRunner().invoke(app, ["serve", str(folder / "shop.lp"), "--host", "0.0.0.0"])
    assert "show a token" in str(run.exception)
    (folder / "token").write_text("a-secret-of-many-letters\n")
    server = Server(folder, "shop.lp", "--token-file", "token", ready=False)
    while server.get("/v2/health/ready")[0] != 200:
        time.sleep(0.05)
    body = {"objective": [1.0, 1.0, 1.0, 1.0]}
    for shown in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "a-secret-of-many-letters"}):
        status, _, headers = server.ask("POST", "/predict", body, shown.items())
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert server.ask("GET", "/metrics", headers=shown.items())[0] == 401
    right = {"Authorization": "Bearer a-secret-of-many-letters"}
    assert server.ask("POST", "/predict", body, right.items())[0] == 200
    assert server.end() == 0
    assert "a-secret" not in server.log.read_text()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nothing.hasten"], "There is no file"),
        (["shapes.py"], "cannot be served"),
        (["."], "is a directory"),
        (["new.cascade", "--task", "nonsense", "--black-box", "shapes:box"], "Give entities, tags, or module:name"),
        (["er.hasten"], "--structures"),
        (["er.hasten", "--structures", "shapes"], "module:name"),
        (["er.hasten", "--structures", "nowhere:x"], "no module"),
        (["er.hasten", "--structures", "shapes:N"], "mapping of structures"),
        (["er.hasten", "--structures", "shapes:hard"], "schema differs"),
        (["new.cascade", "--black-box", "shapes:box"], "--task"),
        (["shop.lp", "--token-file", "nowhere"], "token cannot be read"),
        (["shop.lp", "--token-file", "shop.lp"], "printable"),
        (["shop.lp", "--solver", "cplex"], "There is no solver 'cplex'"),
        (["shop.lp", "--task", "tags"], "is no cascade"),
        (["news.hasten", "--black-box", "shapes:box"], "is no cascade"),
        (["news.hasten", "--structures", "shapes:structures"], "is no speedup"),
        (["new.cascade", "--task", "tags", "--black-box", "nowhere:box"], "There is no module 'nowhere'"),
        (["new.cascade", "--task", "tags", "--black-box", "shapes.more:box"], "There is no module 'shapes.more'"),
    ],
)
def test_a_command_that_cannot_serve_says_why(folder, monkeypatch, args, says):
    monkeypatch.chdir(folder)
    assert says in str(CliRunner().invoke(app, ["serve", *args, "--port", "0"]).exception)


def test_a_port_that_is_taken_is_named(server, folder, monkeypatch):
    monkeypatch.chdir(folder)
    port = str(server.port)
    assert f"port {port}: Address already in use" in str(
        CliRunner().invoke(app, ["serve", "shop.lp", "--port", port]).exception
    )


def test_a_function_that_is_not_there_is_told_by_the_ready_check(folder):
    server = Server(folder, "new.cascade", "--task", "tags", "--black-box", "shapes:nobox", ready=False)
    said = b""
    while b"has no 'nobox'" not in said:
        said = server.get("/v2/health/ready")[1]
        time.sleep(0.05)
    assert server.end() == 0
