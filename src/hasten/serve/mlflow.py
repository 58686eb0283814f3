"""MLflow: a model file in the `pyfunc` flavour, without any pickle.

    save("model", Source("er.hasten", structures="shapes:structures"), code=["shapes.py"])
    mlflow.pyfunc.load_model("model").predict([{"costs": [...]}])

The folder has the model file as it is, `source.json`, and the modules that it needs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hasten.errors import WriteError
from hasten.serve.loading import Source
from hasten.serve.served import Served, plain

FORM = """flavors:
  python_function:
    loader_module: hasten.serve.mlflow
    data: data
    code: code
    env:
      virtualenv: python_env.yaml
"""
NEEDED = "dependencies:\n- hasten[serve]\n"


class Answerer:
    """The model that MLflow calls: inputs as records, a list of them or a data frame, and answers as records."""

    def __init__(self, served: Served[Any]) -> None:
        self.served = served
        served.warm()

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Answers inputs, proved at once or asked in this process."""
        return answer(self.served, model_input.to_dict("records") if hasattr(model_input, "to_dict") else model_input)


def answer(served: Served[Any], records: Any) -> list[dict[str, Any]]:
    """Answers records; those that the fast lane leaves open are asked here and now."""
    parts, _ = served.parts(msgspec.json.encode(list(records), enc_hook=plain))
    told = list[dict[str, Any]]()
    for part, found in zip(parts, served.quick(parts) if parts else (), strict=True):
        if len(found.open):
            found.merge(served.ask(part, found.open, 60.0))
        told += [served.told(part, found.columns, at) for at in range(found.at, found.at + found.n)]
    return told


def save(path: str | os.PathLike[str], source: Source, code: Sequence[str | os.PathLike[str]] = ()) -> None:
    """Writes a folder that MLflow loads; `code` are the modules that hold structures."""
    folder = Path(path)
    if folder.exists():
        raise WriteError(f"{folder} is there already. Name another folder.")
    for part in ("data", "code"):
        (folder / part).mkdir(parents=True)
    shutil.copy(source.path, folder / "data")
    for each in code:
        shutil.copy(each, folder / "code")
    kept = {
        "path": Path(source.path).name,
        "structures": source.structures,
        "solver": source.solver,
        "name": source.name,
    }
    (folder / "data" / "source.json").write_bytes(msgspec.json.encode(kept))
    (folder / "python_env.yaml").write_text(NEEDED)
    (folder / "MLmodel").write_text(FORM)


def _load_pyfunc(path: str) -> Answerer:
    """Loads what `save` wrote; MLflow calls it with the folder's `data`."""
    settings = msgspec.json.decode((Path(path) / "source.json").read_bytes(), type=dict[str, Any])
    return Answerer(Source(**settings | {"path": str(Path(path) / settings["path"])})())
