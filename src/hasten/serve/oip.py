"""The Open Inference Protocol, version 2: tensors in JSON, or in binary behind a header in JSON; and OpenAPI.

https://github.com/kserve/open-inference-protocol, with its binary tensor data extension.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

import hasten
from hasten.serve.connection import Reply
from hasten.serve.served import Found, Refused, Served, Tensor, plain

NUMBERS = {
    **{f"{sign}INT{bits}": f"<{sign.lower() or 'i'}{bits // 8}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
    **{"FP16": "<f2", "FP32": "<f4", "FP64": "<f8", "BOOL": "|b1"},
}  # as NumPy calls them
LENGTH = b"inference-header-content-length"


class Input(msgspec.Struct):
    """An input tensor; in binary, `parameters` has its size in bytes, and there is no data."""

    name: str
    shape: list[int]
    datatype: str
    data: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    parameters: dict[str, Any] = {}


class Output(msgspec.Struct):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] = {}


class Inference(msgspec.Struct):
    """A request for inference."""

    inputs: list[Input]
    id: str | None = None
    parameters: dict[str, Any] = {}
    outputs: list[Output] | None = None


_decode = msgspec.json.Decoder(Inference).decode


def read(served: Served[Any], body: bytes, header: bytes | None) -> tuple[list[Any], Inference, bytes]:
    """Returns the parts that a request asks for, checked, the request, and its JSON."""
    at = len(body)
    if header is not None:
        if not header.isdigit() or int(header) > len(body):
            raise Refused(f"Inference-Header-Content-Length is {header[:20]!r}; the body has {len(body)} bytes.")
        at = int(header)
    asked, tensors, text = _decode(body[:at]), dict[str, Any](), body[:at]
    wanted = {each.name: each for each in served.inputs}
    for each in asked.inputs:
        if each.name not in wanted or each.name in tensors:
            raise Refused(f"Give the inputs {', '.join(wanted)}, each once; got {each.name!r:.60}.")
        size = each.parameters.get("binary_data_size")
        if size is None:
            tensors[each.name] = _of_json(each, wanted[each.name])
        elif type(size) is not int or not 0 <= size <= len(body) - at:
            raise Refused(f"The binary data of {each.name} should have {size!r:.40} bytes; {len(body) - at} are there.")
        else:
            tensors[each.name] = _of_binary(each, memoryview(body)[at : at + size], wanted[each.name])
            at += size
    if missing := wanted.keys() - tensors.keys():
        raise Refused(f"The input {missing.pop()} is missing.")
    if at != len(body):
        raise Refused(f"{len(body) - at} bytes are left behind the binary data.")
    known = {each.name for each in served.outputs}
    for output in asked.outputs or ():
        if output.name not in known:
            raise Refused(f"There is no output {output.name!r:.60}. There are {', '.join(sorted(known))}.")
    return served.of_tensors(tensors, asked.parameters), asked, text


def _size(given: Input, wanted: Tensor) -> int:
    text = wanted.datatype == "BYTES"
    if (given.datatype == "BYTES") != text or (not text and given.datatype not in NUMBERS):
        raise Refused(f"{given.name} should be {wanted.datatype}, not {given.datatype!r:.20}.")
    if len(given.shape) != len(wanted.shape) or min(given.shape, default=0) < 0:
        raise Refused(f"{given.name} should have the shape {list(wanted.shape)}, -1 for any number.")
    return math.prod(given.shape)


def _of_json(given: Input, wanted: Tensor) -> Any:
    n = _size(given, wanted)
    if not given.data:
        raise Refused(f"{given.name} has no data.")
    if wanted.datatype == "BYTES":
        found: Any = msgspec.json.decode(given.data, type=list[str])
    else:
        try:
            found = np.array(msgspec.json.decode(given.data, type=list[float]), dtype=np.float64)
        except msgspec.ValidationError:  # rows within rows
            found = np.array(msgspec.json.decode(given.data, type=list[list[float]]), dtype=np.float64).ravel()
    if len(found) != n:
        raise Refused(f"{given.name} has {len(found)} values; the shape {given.shape} has {n}.")
    return found if wanted.datatype == "BYTES" else found.reshape(given.shape)


def _of_binary(given: Input, data: memoryview, wanted: Tensor) -> Any:
    n = _size(given, wanted)
    if wanted.datatype != "BYTES":
        kind = np.dtype(NUMBERS[given.datatype])
        if len(data) != n * kind.itemsize:
            raise Refused(f"{given.name} has {len(data)} bytes; {n} numbers of {given.datatype} are others.")
        return np.frombuffer(data, kind).reshape(given.shape).astype(np.float64)
    found, at = list[bytes](), 0
    while at + 4 <= len(data) and len(found) < n:
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        found.append(bytes(data[at + 4 : end]))
        at = end
    if len(found) != n or at != len(data):
        raise Refused(f"{given.name} should hold {n} strings, each behind its length in four bytes.")
    return found


def write(served: Served[Any], asked: Inference, found: Sequence[Found], version: str) -> Reply:
    """Returns the response."""
    binary = asked.parameters.get("binary_data_output") is True
    chosen = {each.name: each for each in asked.outputs} if asked.outputs else None
    outputs, data = list[dict[str, Any]](), list[bytes]()
    for each in served.outputs:
        if chosen is not None and each.name not in chosen:
            continue
        column, own = _column(found, each), None if chosen is None else chosen[each.name].parameters.get("binary_data")
        shape = list(column.shape) if isinstance(column, np.ndarray) else [len(column)]
        output: dict[str, Any] = {"name": each.name, "datatype": each.datatype, "shape": shape}
        if own is True or (binary and own is not False):
            data.append(_binary(column, each.datatype))
            output["parameters"] = {"binary_data_size": len(data[-1])}
        elif isinstance(column, np.ndarray):
            output["data"] = column.ravel().tolist()
        else:
            output["data"] = [_text(value) for value in column]
        outputs.append(output)
    said: dict[str, Any] = {"model_name": served.name, "model_version": version, "outputs": outputs}
    head = msgspec.json.encode(said if asked.id is None else {"id": asked.id} | said)
    if not data:
        return Reply(head)
    headers = b"%b: %d\r\n" % (LENGTH, len(head))
    return Reply(b"".join([head, *data]), kind=b"application/octet-stream", headers=headers)


def _column(found: Sequence[Found], output: Tensor) -> Any:
    columns = [each.column(output.name) for each in found]
    if output.datatype == "BYTES":
        if len(columns) == 1:
            return columns[0].tolist() if isinstance(columns[0], np.ndarray) else columns[0]
        return [value for column in columns for value in column]
    kind = np.dtype(NUMBERS[output.datatype])
    arrays = [np.asarray(column, dtype=kind) for column in columns]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays) if arrays else np.zeros(0, kind)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(plain(value)).decode()


def _binary(column: Any, datatype: str) -> bytes:
    if datatype != "BYTES":
        return np.ascontiguousarray(column).tobytes()
    known: dict[Any, bytes] = {}
    parts = []
    for value in column:
        if not isinstance(value, str) or value not in known:
            text = _text(value).encode()
            piece = len(text).to_bytes(4, "little") + text
            if isinstance(value, str):
                known[value] = piece
            parts.append(piece)
        else:
            parts.append(known[value])
    return b"".join(parts)


def metadata(served: Served[Any], version: str) -> Mapping[str, Any]:
    """Returns what a model takes and gives."""
    return {
        "name": served.name,
        "versions": [version],
        "platform": "hasten",
        "inputs": [each._asdict() for each in served.inputs],
        "outputs": [each._asdict() for each in served.outputs],
    }


def describe(served: Served[Any]) -> dict[str, Any]:
    """Describes every address, as OpenAPI 3.1."""
    (record, inference), components = msgspec.json.schema_components(
        [served.record, Inference], ref_template="#/components/schemas/{name}"
    )
    one_or_many = {"oneOf": [record, {"type": "array", "items": record}]}
    model, error = f"/v2/models/{served.name}", {"$ref": "#/components/schemas/Error"}

    def takes(summary: str, body: Any) -> dict[str, Any]:
        return {"post": {"summary": summary, "requestBody": {"required": True, "content": content(body)}} | gives()}

    def content(schema: Any) -> dict[str, Any]:
        return {"application/json": {"schema": schema}}

    def gives() -> dict[str, Any]:
        failures = {"400": "what is wrong with the request", "503": "come again later (Retry-After)"}
        told = {code: {"description": why, "content": content(error)} for code, why in failures.items()}
        return {"responses": {"200": {"description": "the answer"}} | told}

    paths: dict[str, Any] = {
        "/predict": takes("Answers one input, or a list of them.", one_or_many),
        "/explain": takes("Tells how one input is answered: a search and the proof, step by step.", record),
        "/feedback": takes("Keeps in the journal what an answer should have been.", {"type": "object"}),
        f"{model}/infer": takes("Answers tensors (Open Inference Protocol, also in binary).", inference),
    }
    for path, summary in {
        "/v2": "What this server is.",
        "/v2/health/live": "Whether it runs.",
        "/v2/health/ready": "Whether it answers.",
        model: "What the model takes and gives.",
        f"{model}/ready": "Whether the model answers.",
        "/metrics": "What was counted, for Prometheus.",
        "/lifetime": "What happened in each window of time.",
    }.items():
        paths[path] = {"get": {"summary": summary} | gives()}
    components["Error"] = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"hasten: {served.name}", "version": hasten.__version__},
        "paths": paths,
        "components": {"schemas": components},
    }
