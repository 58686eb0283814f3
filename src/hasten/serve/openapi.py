"""The description of every address, as OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

import msgspec

import hasten
from hasten.serve.oip import Inference
from hasten.serve.served import Served


def describe(served: Served[Any]) -> dict[str, Any]:
    """Returns the description."""
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
