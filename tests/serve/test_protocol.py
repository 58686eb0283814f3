"""The Open Inference Protocol: tensors in JSON and in binary, and what does not conform."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

import hasten
from hasten.tasks.entity_relation.task import PAPERS

FOUR = PAPERS.structure(4)
COSTS = np.random.default_rng(5).normal(size=(300, FOUR.n_labels)).round(3)
EXACT = hasten.Certifier()(FOUR.batch(COSTS))
PATH = "/v2/models/er/infer"


def asked(costs, **more):
    tensor = {"name": "costs", "shape": list(costs.shape), "datatype": "FP64", "data": costs.ravel().tolist()}
    return {"inputs": [tensor], "parameters": {"structure": "four"}} | more


def in_binary(costs, kind="FP64", dtype="<f8", **more):
    data = costs.astype(dtype).tobytes()
    tensor = {"name": "costs", "shape": list(costs.shape), "datatype": kind}
    tensor["parameters"] = {"binary_data_size": len(data)}
    parameters = {"structure": "four", "binary_data_output": True}
    head = json.dumps({"inputs": [tensor], "parameters": parameters} | more).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))}


def read(body, headers):
    """Returns the header, and the outputs by name, of a response in binary."""
    size = int(headers["inference-header-content-length"])
    head, at, found = json.loads(body[:size]), size, {}
    kinds = {"FP64": "<f8", "INT64": "<i8", "BOOL": "?"}
    for output in head["outputs"]:
        data = body[at : at + output["parameters"]["binary_data_size"]]
        at += len(data)
        if output["datatype"] == "BYTES":
            strings = []
            while data:
                (n,) = struct.unpack("<I", data[:4])
                strings.append(data[4 : 4 + n].decode())
                data = data[4 + n :]
            found[output["name"]] = strings
        else:
            found[output["name"]] = np.frombuffer(data, kinds[output["datatype"]]).reshape(output["shape"])
    assert at == len(body)
    return head, found


def test_tensors_in_json(server):
    status, found = server.post(PATH, asked(COSTS[:20], id="mine"))
    assert status == 200
    assert (found["id"], found["model_name"]) == ("mine", "er")
    outputs = {each["name"]: each for each in found["outputs"]}
    assert outputs.keys() == {"labels", "cost", "proved", "source", "gap", "status", "version"}
    assert outputs["labels"]["shape"] == [20, FOUR.n_variables]
    assert outputs["labels"]["data"] == EXACT.labels.reshape(300, -1)[:20].ravel().tolist()
    assert outputs["cost"]["data"] == pytest.approx(EXACT.cost[:20].tolist())
    assert outputs["proved"]["data"] == [True] * 20
    assert set(outputs["source"]["data"]) <= {"bound", "branch", "search"}
    assert outputs["version"]["data"] == [found["model_version"]] * 20


def test_rows_within_rows(server):
    flat, nested = asked(COSTS[:3]), asked(COSTS[:3])
    nested["inputs"][0]["data"] = COSTS[:3].tolist()
    assert server.post(PATH, nested) == server.post(PATH, flat)


@pytest.mark.parametrize("n", [1, 3, 300])
def test_tensors_in_binary(server, n):
    body, headers = in_binary(COSTS[:n])
    status, found, headers = server.ask("POST", PATH, body, headers.items())
    assert status == 200
    assert headers["content-type"] == "application/octet-stream"
    head, outputs = read(found, headers)
    assert outputs["labels"].tolist() == EXACT.labels.reshape(300, -1)[:n].tolist()
    assert outputs["cost"] == pytest.approx(EXACT.cost[:n])
    assert outputs["proved"].all()
    assert outputs["gap"].tolist() == [0.0] * n
    assert outputs["version"] == [head["model_version"]] * n


def test_no_problem_at_all(server):
    status, found = server.post(PATH, asked(COSTS[:0]))
    assert status == 200
    assert {each["name"]: each["shape"][0] for each in found["outputs"]}["cost"] == 0


def test_other_types_of_numbers(server):
    whole = np.round(COSTS[:4] * 10)
    body, headers = in_binary(whole, "FP32", "<f4")
    one = read(*server.ask("POST", PATH, body, headers.items())[1:])[1]
    body, headers = in_binary(whole, "INT16", "<i2")
    other = read(*server.ask("POST", PATH, body, headers.items())[1:])[1]
    assert one["cost"].tolist() == other["cost"].tolist()


def test_chosen_outputs_some_in_binary(server):
    outputs = [{"name": "cost", "parameters": {"binary_data": True}}, {"name": "proved"}]
    status, found, headers = server.ask("POST", PATH, asked(COSTS[:2], outputs=outputs))
    size = int(headers["inference-header-content-length"])
    head = json.loads(found[:size])
    assert status == 200
    assert [each["name"] for each in head["outputs"]] == ["cost", "proved"]
    assert head["outputs"][1]["data"] == [True, True]
    assert np.frombuffer(found[size:]) == pytest.approx(EXACT.cost[:2])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "other"}, "Give the inputs costs"),
        ({"datatype": "BYTES"}, "should be FP64"),
        ({"datatype": "FP65"}, "should be FP64"),
        ({"shape": [88]}, "should have the shape"),
        ({"shape": [-1, 88]}, "should have the shape"),
        ({"shape": [2, 88]}, "the shape [2, 88] has 176"),
        ({"shape": [88, 1]}, "1 cost for 88 labels"),
        ({"data": []}, "has 0 values"),
        ({"data": ["1"]}, "Expected `array`"),
        ({"parameters": {"binary_data_size": 8}}, "should have 8 bytes; 0 are there"),
        ({"parameters": {"binary_data_size": -8}}, "should have -8 bytes"),
        ({"parameters": {"binary_data_size": True}}, "should have True bytes"),
    ],
)
def test_tensors_that_do_not_conform(server, change, says):
    request = asked(COSTS[:1])
    request["inputs"][0] |= change
    status, found = server.post(PATH, request)
    assert status == 400
    assert says in found["error"]


def test_requests_that_do_not_conform(server):
    for request, says in (
        ({"inputs": []}, "costs is missing"),
        (asked(COSTS[:1]) | {"inputs": asked(COSTS[:1])["inputs"] * 2}, "each once"),
        (asked(COSTS[:1], outputs=[{"name": "nothing"}]), "no output 'nothing'"),
        (asked(COSTS[:1], parameters={"structure": ["four"]}), "no structure"),
    ):
        status, found = server.post(PATH, request)
        assert (status, says in found["error"]) == (400, True), found
    body, headers = in_binary(COSTS[:2])
    for wrong in (body[:-1], body + b"x"):
        assert server.ask("POST", PATH, wrong, headers.items())[0] == 400
    for length in ("-1", "x", str(len(body) + 1)):
        assert server.ask("POST", PATH, body, {"Inference-Header-Content-Length": length}.items())[0] == 400
    costs = COSTS[:1].copy()
    costs[0, 0] = np.nan
    body, headers = in_binary(costs)
    assert b"finite" in server.ask("POST", PATH, body, headers.items())[1]
