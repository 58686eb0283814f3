"""Compiled kernels: kept where that is possible, and taken from there only if nothing they came from has changed."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import logging
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hasten
from hasten.jit import cache as kernel_cache
from hasten.jit import tiers
from hasten.jit.backend import KEPT, NOT_KEPT, NOTICE, NoticingCache
from hasten.jit.tiers import DRIVERS, function_of, is_kernel
from hasten.paper.demo import running_example
from hasten.programs.statement import Builder
from hasten.search.beam import BeamSearch, ConstrainedSearch

PACKAGE = Path(hasten.__file__).parent
SOURCE = """
from hasten.jit import driver

@driver
def double(x):
    return 2 * x
"""


@pytest.fixture(autouse=True)
def only_our_drivers() -> Iterator[None]:
    """Forgets the drivers that a test made, so that no other compiles them."""
    n = len(DRIVERS)
    yield
    del DRIVERS[n:]


@pytest.fixture(autouse=True)
def compiled_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiles at once, whatever the environment says."""
    monkeypatch.setattr(tiers, "TIER", tiers.COMPILED)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keeps kernels in a directory of the test's own."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("doubling", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def n_hits(driver: Any) -> int:
    return sum(driver.dispatcher.stats.cache_hits.values())


@pytest.mark.usefixtures("own_cache")
def test_a_kernel_is_compiled_anew_once_any_other_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    hits = []
    for stamp in ("one", "one", "another", "another"):
        monkeypatch.setattr(kernel_cache, "stamp", lambda file, stamp=stamp: stamp)
        double = load(file)
        assert double(3) == 6
        hits.append(n_hits(double))
    assert hits == [0, 1, 0, 1]


@pytest.mark.parametrize("damage", [b"", b"gone", None], ids=["empty", "overwritten", "truncated"])
def test_a_broken_file_is_a_miss_and_is_written_again(damage: bytes | None, tmp_path: Path, own_cache: Path) -> None:
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    assert load(file)(3) == 6
    (kept,) = own_cache.glob("*.kernel")
    good = kept.read_bytes()
    kept.write_bytes(good[:-20] if damage is None else damage)
    for n in (0, 1):
        double = load(file)
        assert double(3) == 6
        assert n_hits(double) == n
    assert list(own_cache.iterdir()) == [kept]


def test_a_kept_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power cut leaves an empty one."""
    synced, replace = list[bool](), os.replace
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(True))
    monkeypatch.setattr(os, "replace", lambda part, place: (synced.append(False), replace(part, place)))
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    assert load(file)(3) == 6
    assert synced[:2] == [True, False]


def test_kernels_for_a_portable_processor_are_taken(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those that come with a wheel, where this processor has all that the portable one has."""
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    code = "import sys; sys.path.insert(0, sys.argv[1]); from doubling import double; assert double(3) == 6"
    name, _ = kernel_cache.PORTABLE[platform.machine()]
    environment = os.environ | {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": "", "HASTEN_TIER": "compiled"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=True)
    monkeypatch.syspath_prepend(tmp_path)  # an older Numba imports its module
    monkeypatch.setattr(kernel_cache, "CARRIED", own_cache)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))
    double = load(file)
    assert double(3) == 6
    assert n_hits(double) == 1
    assert not (tmp_path / "empty").exists()
    sys.modules.pop("doubling", None)


def test_the_stamp_changes_with_what_a_driver_is_made_of_alone(tmp_path: Path) -> None:
    texts = {
        "driver": "from hasten.sub import (\n    kernels,\n)\nfrom hasten.plain import x\n",
        "sub/__init__": "",
        "sub/kernels": "from hasten.jit import kernel\n    from hasten.further import y\n",
        "further": "from hasten.jit import kernel\n",
        "another": "from hasten.jit import kernel\n",  # imported by nobody
        "plain": "x = 1\n",  # without kernels
        "jit/passes": "z = 1\n",  # of the room that compiles all of them
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)

    def stamp() -> str:
        return kernel_cache.stamp.__wrapped__(tmp_path / "driver.py", tmp_path)

    first = stamp()
    for name in texts:
        (tmp_path / f"{name}.py").write_text(texts[name] + "# edited")
        assert (stamp() != first) == (name in ("driver", "sub/kernels", "further", "jit/passes")), name
        (tmp_path / f"{name}.py").write_text(texts[name])
    assert stamp() == first


def test_old_files_are_removed_and_those_in_use_are_kept(own_cache: Path) -> None:
    stamp = kernel_cache.stamp(PACKAGE / "kernels" / "score.py")
    names = [f"hasten.kernels.score.{name}.kernel" for name in (f"score_batch.{stamp}.abc", "score_batch.old.abc")]
    names += ["hasten.gone.driver.old.abc.kernel", "another.thing"]
    own_cache.mkdir(exist_ok=True)
    for name in names:
        (own_cache / name).write_bytes(b"")
    assert kernel_cache.remove_old_files() == 2
    assert sorted(each.name for each in own_cache.iterdir()) == sorted([names[0], names[3]])


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports_of(module: str) -> dict[str, tuple[str, str]]:
    """Returns the module that each name was imported from, of those from this package, and what it is called there."""
    place = PACKAGE.parent / Path(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    froms = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in froms if node.module is not None and node.module.startswith("hasten")]
    return {alias.asname or alias.name: (str(node.module), alias.name) for node in ours for alias in node.names}


def home_of(module: str, name: str) -> str:
    """Returns the module where an imported name stands: those on the way only pass it on. It may be one itself."""
    if imports_of(module).get(name, (module, name)) != (module, name):  # a room may import a module of its own
        return home_of(*imports_of(module)[name])
    return f"{module}.{name}" if importlib.util.find_spec(module).submodule_search_locations else module


def test_all_that_kernels_read_is_in_modules_that_are_looked_at() -> None:
    """Constants are compiled in: a kernel that imports one from elsewhere would not notice that it changed."""
    looked_at = {name_of(file) for file in PACKAGE.rglob("*.py") if kernel_cache.counts(file, PACKAGE)}
    n_imported = 0
    for module in looked_at:
        for each in vars(importlib.import_module(module)).values():
            if getattr(each, "__module__", "") == module and is_kernel(each):
                for name in imports_of(module).keys() & set(function_of(each).__code__.co_names):
                    n_imported += 1
                    home = home_of(module, name)
                    assert {home, home.rpartition(".")[0]} & looked_at, f"{name}, which {each} reads"
    assert n_imported > 20


def test_compiling_beforehand_leaves_nothing_to_compile() -> None:
    """Neither drivers nor open kernels, such as those by which `Problem.check` looks at rules."""
    script = """
import sys
from hasten.jit.tiers import DRIVERS, Driver
from hasten.warm import compile_kernels
compile_kernels()
assert len(DRIVERS) > 10
ours = [each for name, module in sys.modules.items() if name.startswith("hasten") for each in vars(module).values()]
called = [each for each in ours if isinstance(each, Driver)]
assert {id(each) for each in DRIVERS} < {id(each) for each in called}
print(sorted({each.py_func.__name__ for each in called if not each.overloads}))
"""  # in a process of its own: other tests import drivers that only benchmarks have
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert said.stdout == "[]\n", said.stderr


LONG = """
import os, sys, threading, time
from hasten.jit import driver
{body}
@driver
def many(x):
    total = x
{loops}
    return total
"""
FORK = """
thread = threading.Thread(target=many, args=(1,))
thread.start()
while not {busy} and thread.is_alive():
    time.sleep(0.001)
assert thread.is_alive()
child = os.fork()
if not child:
    os._exit(0 if double(many(1)) == 2 * 41 else 1)
for _ in range(600):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        thread.join()
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.1)
os.kill(child, 9)
sys.exit(2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.parametrize(
    "busy",
    [
        "'numba' in sys.modules",
        "getattr(getattr(sys.modules.get('hasten.jit.backend'), 'NoticingCache', 0), 'told', False)",
    ],
)
def test_a_child_forked_while_another_thread_imports_numba_or_compiles_can_compile(busy: str, tmp_path: Path) -> None:
    loops = "".join(f"    for i in range({n}, {n} + 1):\n        total += i - {n} + 1\n" for n in range(40))
    script = tmp_path / "script.py"
    script.write_text((LONG + FORK).replace("{busy}", busy).format(body=SOURCE, loops=loops))
    environment = {
        **os.environ,
        "HASTEN_TIER": tiers.COMPILED,
        "PYTHONPATH": str(PACKAGE.parent),
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, "it hangs" if done.returncode == 2 else done.stderr


@pytest.mark.usefixtures("own_cache")
def test_an_interrupt_that_llvm_loses_is_raised_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It calls Python to hand over what it compiled, and what is raised there is lost: nothing can be kept, then."""
    lose_it = kernel_cache.KernelCache.save_overload

    def save(cache: Any, signature: Any, compiled: Any) -> None:
        compiled.library._compiled_object = None  # as if the call had ended early
        lose_it(cache, signature, compiled)

    monkeypatch.setattr(kernel_cache.KernelCache, "save_overload", save)
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    double = load(file)
    with pytest.raises(KeyboardInterrupt):
        double(3)
    assert double(3) == 6
    monkeypatch.undo()
    assert load(file)(3) == 6


INLINED = """
from hasten.jit import driver, inlined_kernel

@inlined_kernel
def add_up(values, start):
    total = 0
    for i in range(start, values.size):
        total += values[i]
    return total

@inlined_kernel
def ends(values, start):
    both = add_up(values, start)
    if start > 0:
        both = both * 10 + add_up(values, 0)
    return both

@driver
def double(values):
    return ends(values, 0), ends(values, 1), add_up(values, 2), ends(values, 2)
"""


@pytest.mark.usefixtures("own_cache")
def test_kernels_are_inlined_in_each_other_and_several_times(tmp_path: Path) -> None:
    """What is inlined is not copied, so each place must have code of its own."""
    file = tmp_path / "doubling.py"
    file.write_text(INLINED)
    double, values = load(file), np.array([5, 3, 1])
    assert double(values) == (9, 49, 1, 19)
    assert double(values.astype(float)) == (9.0, 49.0, 1.0, 19.0)


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("looked", [True, False])
def test_compiling_leaves_the_garbage_collector_as_it_was(looked: bool, tmp_path: Path) -> None:
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    double = load(file)
    before = gc.isenabled()
    try:
        gc.enable() if looked else gc.disable()
        assert double(3) == 6
        assert gc.isenabled() == looked
        with pytest.raises(Exception, match="nopython"):  # an object cannot be doubled
            double(object())
        assert gc.isenabled() == looked
    finally:
        gc.enable() if before else gc.disable()


def forbid_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every directory one that can only be read."""
    monkeypatch.setattr(kernel_cache, "_written", lambda path, data: False)
    monkeypatch.setattr(os, "access", lambda path, mode: False)


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the notices begin anew, without a terminal."""
    monkeypatch.setattr(NoticingCache, "told", False)
    kernel_cache._warn_once.cache_clear()
    monkeypatch.setattr(tiers, "DRIVERS", [])  # so that none but the test's own are still to be compiled


@pytest.mark.usefixtures("untold", "own_cache")
def test_compiling_is_one_line_in_the_log_and_loading_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    with caplog.at_level(logging.WARNING, "hasten"):
        double = load(file)
        assert double(3) == 6
        assert double(3.0) == 6.0  # compiled again, for floats
        assert [record.message for record in caplog.records] == [NOTICE.format(1, 1, KEPT)]
        monkeypatch.setattr(NoticingCache, "told", False)
        caplog.clear()
        assert load(file)(3) == 6
        assert caplog.records == []


@pytest.mark.usefixtures("untold", "own_cache")
def test_the_notice_counts_what_is_left_of_a_cache_that_is_partly_filled(tmp_path: Path) -> None:
    """Whether a driver was on disk was looked up once, before another process compiled it."""
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    seen = load(file)
    assert not seen.is_compiled
    load(file)(3)
    assert seen.is_compiled
    assert "s of processor time" in NOTICE


@pytest.mark.usefixtures("untold", "own_cache")
def test_what_cannot_be_kept_is_compiled_in_memory_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    forbid_writing(monkeypatch)
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    double = load(file)
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.WARNING, "hasten"):
        warnings.simplefilter("always")
        assert double(3) == 6
        assert double(3.0) == 6.0
    assert ["NUMBA_CACHE_DIR" in str(warning.message) for warning in warned] == [True]
    assert [record.message for record in caplog.records] == [NOTICE.format(1, 1, NOT_KEPT)]
    assert list(tmp_path.rglob("*.kernel")) == []


@pytest.mark.usefixtures("untold", "own_cache")
def test_kernels_are_read_where_they_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image whose kernels were compiled by its builder, and which runs as another user."""
    file = tmp_path / "doubling.py"
    file.write_text(SOURCE)
    assert load(file)(3) == 6

    forbid_writing(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double = load(file)
        assert double(3) == 6
    assert n_hits(double) == 1


def test_the_package_can_be_used_where_nothing_can_be_written(tmp_path: Path) -> None:
    """In a process of its own: from the first import, with the answer on time and one warning."""
    code = """
import hasten
from hasten.jit import cache, driver
cache._written = lambda path, data: False
@driver
def double(x):
    return 2 * x
print(double(3), double(3.0))
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    environment = {**os.environ, "HOME": str(tmp_path / "nowhere"), "PYTHONPATH": str(PACKAGE.parent)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "6 6.0\n"
    assert done.stderr.count("RuntimeWarning") == 1


def strided(matrix: np.ndarray) -> np.ndarray:
    return np.repeat(matrix, 2, axis=1)[:, ::2]


def read_only(matrix: np.ndarray) -> np.ndarray:
    copy = matrix.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize(
    "given",
    [
        read_only,
        strided,
        np.asfortranarray,
        lambda matrix: read_only(matrix.astype(np.float32)),
        lambda matrix: matrix.astype(">f8"),
        lambda matrix: np.round(matrix).astype(np.int16),
        lambda matrix: matrix[::-1],
        lambda matrix: np.frombuffer(b"0" + matrix.tobytes(), np.uint8)[1:].view(float).reshape(matrix.shape),
    ],
    ids=["read-only", "strided", "columns first", "float32", "big endian", "whole", "reversed", "unaligned"],
)
def test_whatever_arrays_are_given_no_driver_is_compiled_again(given: Any) -> None:
    """Numba would compile a driver once more for each kind of array."""
    problem = running_example()
    shape, schema = problem.structure, problem.structure.schema
    matrix = np.random.default_rng(0).normal(size=(16, shape.n_labels))
    build = Builder()
    for name in "abc":
        build.column(name, 0.0, 1.0, whole=True)
    build.row(range(3), [1.0, 2.0, 3.0], high=4.0)
    program = hasten.Program(build.statement())

    def use_all(array: np.ndarray) -> None:
        def scorer(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
            costs = np.concatenate([problem.costs_of(int(v)) for v in variables])
            return given(costs[None])[0] if array is not matrix else costs

        batch = shape.batch(array)
        lazy = hasten.Batch.build([shape], np.zeros(16, dtype=int), scorer)
        single = shape.problem(array[0], tables={"both": given(np.zeros((6, 6)))})
        answers = hasten.Certifier()(batch)
        for each in (batch, lazy, single, shape.problem(array[0]), hasten.Batch.of([problem, single])):
            for search in (hasten.greedy(), hasten.BeamSearch(2, theta=1.0), ConstrainedSearch()):
                search(each)
            BeamSearch(reduce=True)(each)
            hasten.Certifier()(each)
            hasten.Speedup(schema).predict(each)
        hasten.Learner(enforce=False, look_ahead=False).fit(batch, given(answers.labels[None])[0].astype(int))
        hasten.Speedup(schema, answer="search", trust=hasten.Trust(min_agreement=None)).fit(batch).predict(lazy)
        hasten.BeamSearch(2, np.abs(given(np.ones((1, schema.n_weights)))[0]))(batch)
        program.solve_all(array[:, :3])
        hasten.make_solver("brute").solve(single)

    use_all(matrix)
    n_versions = [len(each.overloads) for each in DRIVERS]
    use_all(given(matrix))
    assert [len(each.overloads) for each in DRIVERS] == n_versions
