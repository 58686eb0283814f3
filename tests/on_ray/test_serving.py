"""A deployment on Ray Serve; skipped where that is not installed."""

from __future__ import annotations

import json
import urllib.request

import pytest

ray = pytest.importorskip("ray")
serve = pytest.importorskip("ray.serve")

import hasten  # noqa: E402
from hasten.ray.predicting import connect  # noqa: E402
from hasten.ray.serving import deployment  # noqa: E402
from hasten.serve.loading import Source  # noqa: E402


def test_a_deployment_answers(tmp_path):
    file = tmp_path / "shop.lp"
    file.write_text("Minimize\n obj: 3 a + 2 b\nSubject To\n r: a + b >= 1\nBinary\n a b\nEnd\n")
    started = connect(cores=2)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": 18123})
        serve.run(deployment(Source(str(file)), num_replicas=1))
        body = json.dumps({"objective": {"a": 1.0, "b": 2.0}}).encode()
        with urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:18123/", body), timeout=60) as found:
            answer = json.loads(found.read())
        assert answer["objective"] == hasten.read(file).solve(objective={"a": 1.0, "b": 2.0}).objective
    finally:
        serve.shutdown()
        if started:
            ray.shutdown()
