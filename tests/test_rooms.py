"""Each room of the package imports only what its docstring says it may; the front door shows only what is public."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import hasten

PACKAGE = Path(hasten.__file__).parent

# A module belongs to the room with the longest name that its own name begins with. A room imports from itself and
# from the rooms listed behind it; one that is not listed, even within a listed one, is closed to it.
MODEL = "errors support kernels model"
PROOF = "proof proof.elimination"
CORE = f"{MODEL} certificate certificates jit kernels.search trace search {PROOF} solvers learning speedup"
DATA = "tasks.text tasks.entity_relation.data tasks.entity_relation.data.corpus tasks.entity_relation.data.formats"
TASK = f"{DATA} tasks.entity_relation.names tasks.entity_relation.task"
SCORING = f"{TASK} tasks.entity_relation.scoring"
SHARED = "tasks.task tasks.evaluation"
LABELLING = "tasks.entity_relation"
PAPER = f"{SCORING} {SHARED} {LABELLING}"
PROGRAMS = "programs programs.reading programs.adopting"
EDGES = f"{PAPER} tasks.tagging paper scale ray bench warm journal cascade"
MAY_IMPORT = {
    "errors": "",
    "support": "errors",
    "journal": "errors support",
    "jit": "support",
    "kernels": "support jit",
    "kernels.search": "support jit kernels proof.elimination",
    "model": MODEL,
    "trace": f"{MODEL} jit kernels.search",
    "search": f"{MODEL} kernels.search proof.elimination trace",
    "proof": f"{MODEL} jit proof.elimination trace certificates",
    "proof.elimination": f"{MODEL} jit",
    "sums": f"{MODEL} jit {PROOF}",
    "solvers": MODEL,
    "certificate": "",
    "certificates": f"{MODEL} certificate",
    "learning": f"{MODEL} jit kernels.search search {PROOF} solvers",
    "speedup": CORE,
    "programs": CORE,
    "programs.reading": f"{CORE} programs",
    "programs.adopting": f"{CORE} programs",
    "hosts": f"{CORE} {PROGRAMS}",
    **dict.fromkeys(("pulp", "linopy", "cvxpy", "pyepo"), f"{CORE} {PROGRAMS} hosts"),
    "pyomo": f"{CORE} {PROGRAMS} hosts hasten",
    "tasks": "",
    "tasks.task": "errors support model",
    "tasks.text": "errors support jit",
    "tasks.tagging": f"{CORE} {SHARED} {DATA}",
    "tasks.evaluation": f"{CORE} tasks.task",
    "tasks.entity_relation": f"{CORE} {SCORING} {SHARED} tasks.entity_relation.neural",
    "tasks.entity_relation.neural": f"{CORE} {SCORING} sums",
    "tasks.entity_relation.names": "support",
    "tasks.entity_relation.data.corpus": "errors support",
    "tasks.entity_relation.data": f"errors support {DATA}",
    "tasks.entity_relation.data.formats": "errors support tasks.text tasks.entity_relation.data.corpus",
    "tasks.entity_relation.task": f"errors support model {DATA}",
    "tasks.entity_relation.scoring": f"{MODEL} jit kernels.search search {PROOF} learning {TASK}",
    "cascade": f"{CORE} sums tasks.task journal",
    "scale": f"{CORE} {SCORING} {LABELLING}",
    "ray": f"{CORE} scale {LABELLING} serve",
    "padded": f"{CORE} sums",
    "torch": f"{CORE} sums padded",
    "jax": f"{CORE} padded",
    "bench": f"{CORE} {SCORING} tasks.evaluation",
    "paper": f"{CORE} {PAPER}",
    "warm": f"{CORE} {PAPER} programs paper sums padded",
    "serve": f"journal {CORE} {PAPER} tasks.tagging {PROGRAMS} cascade hasten",
    "commands": f"{CORE} {EDGES} {PROGRAMS} journal serve hasten",
    "cli": "errors support commands hasten",
    "hasten": f"{CORE} {PROGRAMS} hosts padded cascade",
    "__main__": "cli",
}

# In the core, what goes forward imports the later step when it is called. No other import waits for a call.
FORWARD = {
    "jit.tiers: compile() imports jit.backend",  # Numba, when it is needed
    "model.schema: structure() imports model.structure",
    "model.structure: problem() imports model.problem",
    "model.structure: batch() imports model.batch",
    "model.problem: batch() imports model.batch",
    "model.problem: alike() imports model.batch",
    "proof.certifier: certificate() imports certificates.writing",
    "proof.certifier: certificate() imports proof.outline",
    "speedup.predictor: save() imports speedup.persistence",
    "speedup.predictor: digest() imports speedup.persistence",
    "speedup.predictor: load() imports speedup.persistence",
    "trace.events: section() imports trace.drawing",
    "trace.events: _repr_svg_() imports trace.drawing",
    "trace.events: _repr_html_() imports trace.drawing",
}


class Import(NamedTuple):
    """What a module imports, and when: the function it waits for, `""` when loaded, None for types alone."""

    module: str
    imported: str
    function: str | None

    def __str__(self) -> str:
        where = f"{self.function}() imports" if self.function else "imports"
        return f"{self.module}: {where} {self.imported}"


def name_of(file: Path) -> str:
    """Returns a module's name within the package, `hasten` for the front door."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".") or "hasten"


FILES = {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def imports_in(module: str, node: ast.AST, function: str | None = "") -> Iterator[Import]:
    """Yields what a piece of code imports, however deep inside."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        function = None
    elif isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(module, ours(alias.name), function)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, f"{module}: write {ast.unparse(node)} with the package's name"
        for alias in node.names:
            within = ours(f"{node.module}.{alias.name}")
            yield Import(module, within if within in FILES else ours(str(node.module)), function)
    for child in ast.iter_child_nodes(node):
        yield from imports_in(module, child, function)


def ours(imported: str) -> str:
    """Drops the package's own name, so that `hasten.jit` is `jit`; `ray` is not `hasten.ray`."""
    return imported.removeprefix("hasten.") if imported.split(".")[0] == "hasten" else f"the library {imported}"


def room_of(module: str) -> str:
    parts = module.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in MAY_IMPORT), f"{module}, which is in no room,")


ALL = [found for name, file in FILES.items() for found in imports_in(name, ast.parse(file.read_text()))]
WITHIN = [found for found in ALL if found.imported in FILES]


def test_imports_are_seen_wherever_they_stand() -> None:
    code = """
from hasten.model import batch, schema
if TYPE_CHECKING:
    import hasten.cli
class Deep:
    def hidden(self):
        if self:
            from hasten.speedup.predictor import Speedup
"""
    assert [str(found) for found in imports_in("support.arrays", ast.parse(code))] == [
        "support.arrays: imports model.batch",
        "support.arrays: imports model.schema",
        "support.arrays: imports cli",
        "support.arrays: hidden() imports speedup.predictor",
    ]


def test_a_room_imports_only_what_it_may() -> None:
    strangers = []
    for found in WITHIN:
        mine, theirs = room_of(found.module), room_of(found.imported)
        if theirs not in {mine, *MAY_IMPORT.get(mine, "").split()}:
            strangers.append(f"{found}; but {mine} may not import {theirs}")
    assert strangers == []
    assert len(WITHIN) > 300


def test_rooms_stand_in_an_order_and_each_is_there() -> None:
    TopologicalSorter({room: set(below.split()) - {room} for room, below in MAY_IMPORT.items()}).prepare()
    assert {room_of(module) for module in FILES} == set(MAY_IMPORT)


@pytest.mark.parametrize("room", [room for room in MAY_IMPORT if FILES[room].name == "__init__.py"])
def test_a_room_says_what_it_may_import(room: str) -> None:
    said = ast.get_docstring(ast.parse(FILES[room].read_text())) or ""
    assert "Imports " in said or room == "hasten", f"{FILES[room]} does not say what its room may import"


def test_in_the_core_only_what_goes_forward_imports_when_it_is_called() -> None:
    late = {str(found) for found in WITHIN if found.function and room_of(found.module) in CORE.split()}
    assert late == FORWARD


def test_modules_import_each_other_in_no_circle_when_they_are_loaded() -> None:
    loaded = defaultdict(set)
    for found in WITHIN:
        if found.function == "":
            loaded[found.module].add(found.imported)
    TopologicalSorter(loaded).prepare()  # names the circle, if there is one


def test_only_jit_imports_numba() -> None:
    assert users_of("numba") == {"jit"}


@pytest.mark.parametrize("library", ["ray", "torch", "jax"])
def test_only_rooms_at_the_edge_import_it(library: str) -> None:
    neural = {"tasks.entity_relation.neural"} if library == "torch" else set()
    assert users_of(library) == {library} | neural


def users_of(library: str) -> set[str]:
    """Returns the rooms that import a library."""
    names = (f"the library {library}", f"the library {library}.")
    return {room_of(found.module) for found in ALL if found.imported == names[0] or found.imported.startswith(names[1])}


def test_completion_shows_what_is_public_and_nothing_else() -> None:
    shown = {name for name in dir(hasten) if not (name.startswith("__") and name.endswith("__"))}
    assert shown == set(hasten.__all__)
    assert "__version__" in dir(hasten)
    assert all(hasattr(hasten, name) for name in dir(hasten))
