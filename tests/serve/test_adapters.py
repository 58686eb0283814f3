"""Models of servers in other people's servers."""

from __future__ import annotations

import importlib
import json
import pickletools

import numpy as np
import pytest

import hasten
from hasten.errors import WriteError
from hasten.serve.loading import Source
from hasten.serve.mlflow import save
from hasten.tasks.entity_relation.task import PAPERS

FOUR = PAPERS.structure(4)
COSTS = np.random.default_rng(1).normal(size=(6, FOUR.n_labels)).round(3)
EXACT = hasten.Certifier()(FOUR.batch(COSTS))


def test_a_folder_for_mlflow_answers_as_the_model(folder, tmp_path):
    source = Source(str(folder / "er.hasten"), structures="shapes:structures")
    save(tmp_path / "model", source, code=[folder / "shapes.py"])
    with pytest.raises(WriteError, match="there already"):
        save(tmp_path / "model", source)
    lines = (tmp_path / "model" / "MLmodel").read_text().splitlines()
    form = dict(line.strip().split(": ") for line in lines if line[-1] != ":")
    loader = importlib.import_module(form["loader_module"])
    found = loader._load_pyfunc(str(tmp_path / "model" / form["data"])).predict(
        [{"costs": row, "structure": "four"} for row in COSTS]
    )
    assert [each["cost"] for each in found] == pytest.approx(EXACT.cost.tolist())
    assert all(each["proved"] for each in found)
    for file in (tmp_path / "model").rglob("*"):
        if file.is_file():
            with pytest.raises(Exception):  # noqa: B017, PT011, no file is a pickle
                list(pickletools.genops(file.read_bytes()))


def test_mlflow_loads_the_folder(folder, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    save(tmp_path / "model", Source(str(folder / "shop.lp")))
    found = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict([{"objective": [1.0, 2.0, 3.0, 4.0]}])
    assert found[0]["objective"] == hasten.read(folder / "shop.lp").solve(objective=[1.0, 2.0, 3.0, 4.0]).objective


def test_what_takes_the_solver_is_asked_in_place(folder):
    import shapes

    from hasten.serve.mlflow import Answerer

    rows = np.random.default_rng(3).normal(size=(4, shapes.hard.n_labels)).round(3)
    found = Answerer(Source(str(folder / "queens.hasten"), structures="shapes:hard")()).predict(
        [{"costs": row.tolist()} for row in rows]
    )
    exact = hasten.Speedup(shapes.queens).predict(shapes.hard.batch(rows))
    assert [each["cost"] for each in found] == pytest.approx(exact.cost.tolist())
    assert json.dumps(found)
