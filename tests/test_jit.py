"""A compiled kernel is taken from disk only if nothing that it was compiled from has changed."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

import hasten
from hasten import jit

PACKAGE = Path(hasten.__file__).parent
SOURCE = """
from hasten.jit import driver

@driver
def double(x):
    return 2 * x
"""


def load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("doubling", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def test_a_kernel_is_compiled_anew_once_any_other_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    hits = []
    for stamp in (jit.STAMP, jit.STAMP, "another", "another"):
        monkeypatch.setattr(jit, "STAMP", stamp)
        double = load(file)
        assert double(3) == 6
        hits.append(sum(double.stats.cache_hits.values()))
    assert hits == [0, 1, 0, 1]


def test_what_an_older_version_left_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may name types that are gone, and Numba would fail to read it."""
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    assert load(file)(3) == 6
    old = list(tmp_path.rglob("*.nbi"))
    assert old
    for index in old:
        index.write_bytes(index.read_bytes()[:30] + b"gone")
    monkeypatch.setattr(jit, "STAMP", "another")
    assert load(file)(3) == 6


def test_the_stamp_changes_with_what_mentions_kernels_alone(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    other, kernels = tmp_path / "other.py", tmp_path / "sub" / "kernels.py"
    other.write_text("x = 1")
    kernels.write_text("from hasten.jit import kernel")
    first = jit.stamp_of(tmp_path)
    other.write_text("x = 2")
    assert jit.stamp_of(tmp_path) == first
    kernels.write_text("from hasten.jit import kernel  # edited")
    assert jit.stamp_of(tmp_path) != first


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def imports_of(file: Path) -> dict[str, set[str]]:
    """Returns which module each name comes from that is imported from this package: itself may be one."""
    froms = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    return {
        alias.asname or alias.name: {node.module, f"{node.module}.{alias.name}"}
        for node in froms
        for alias in node.names
        if node.module is not None and node.module.startswith("hasten")
    }


def test_all_that_kernels_read_is_in_modules_that_are_looked_at() -> None:
    """Constants are compiled in: a kernel that imports one from elsewhere would not notice that it changed."""
    files = [file for file in PACKAGE.rglob("*.py") if "hasten.jit" in file.read_text()]
    looked_at = {name_of(file) for file in files}
    n_imported = 0
    for file in files:
        imports = imports_of(file)
        if file.name == "__init__.py":  # kernels elsewhere read what it passes on
            assert all(modules & looked_at for modules in imports.values()), file
        for each in vars(importlib.import_module(name_of(file))).values():
            if getattr(each, "__module__", "") == name_of(file) and hasattr(each, "py_func"):
                for name in imports.keys() & set(each.py_func.__code__.co_names):
                    n_imported += 1
                    assert imports[name] & looked_at, f"{name}, which {each} reads"
    assert n_imported > 20
