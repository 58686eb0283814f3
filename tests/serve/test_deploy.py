"""The files in `deploy/` name settings, metrics and addresses that there are."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from hasten.cli import app
from hasten.serve.telling import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
SERVE = get_command(app).commands["serve"]  # type: ignore[attr-defined]


def known(args: list[str]) -> None:
    SERVE.make_context("serve", args)  # refuses an option that there is not


def test_the_unit_starts_a_server_with_options_that_there_are() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "hasten.service")
    known(shlex.split(unit["Service"]["ExecStart"])[2:])
    assert float(unit["Service"]["TimeoutStopSec"]) > 30


def test_the_image_starts_a_server_with_options_that_there_are() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    (entry,) = [json.loads(line.removeprefix("ENTRYPOINT ")) for line in lines if line.startswith("ENTRYPOINT")]
    assert entry[:2] == ["hasten", "serve"]
    known([*entry[2:], "model.hasten"])


def test_the_dashboard_draws_metrics_that_there_are() -> None:
    state = {"agreement": [0.99, 0.98, 1.0, 100], "trusted": True, "audits": 1, "disagreements": 0}
    gauges = dict.fromkeys(("queue", "slow_queue", "ready"), ("", 0.0))
    there = set(re.findall(r"# TYPE (\w+)", Metrics().text("m", state, gauges)))
    there |= {f"{name}_bucket" for name in there}
    board = json.loads((DEPLOY / "grafana.json").read_text())
    asked = [each["expr"] for panel in board["panels"] for each in panel["targets"]]
    drawn = {name for each in asked for name in re.findall(r"hasten_\w+", each)}
    assert drawn
    assert drawn <= there


def test_prometheus_is_told_where_the_server_is() -> None:
    yaml = pytest.importorskip("yaml")
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    port = next(each.default for each in SERVE.params if each.name == "port")
    assert job["static_configs"][0]["targets"] == [f"127.0.0.1:{port}"]
