"""The examples of the pages run as printed, in order, and print what the page says; links lead somewhere."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from contextlib import nullcontext, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest
import typer
from promises import promised

import hasten
from hasten.cli import app
from hasten.errors import MissingExtra
from hasten.proof.report import Step

ROOT = Path(__file__).parents[1]
PACKAGE = Path(hasten.__file__).parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md"])


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *(
            f"docs/{name}.md"
            for name in (
                "modelling",
                "adopting",
                "dropin",
                "requirements",
                "skipping",
                "marginals",
                "seeing",
                "tagging",
                "new-task",
            )
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PuLP's, of how most write it
def test_the_examples_of_a_page_run_and_print_what_it_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    code = "\n".join(blocks)
    exec(compile(code, page, "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out.splitlines()
    wanted = promised(code)
    assert len(wanted) >= 4
    assert [line for line in printed if line in wanted] == wanted


def test_the_examples_of_the_guide_to_learning_run() -> None:
    page = "docs/learning.md"
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert len(blocks) >= 4
    exec(compile("\n".join(blocks), page, "exec"), {"__name__": "page"})


def test_the_examples_of_the_page_on_torch_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    test_the_examples_of_a_page_run_and_print_what_it_says("docs/torch.md", capsys)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_to_files_that_are_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
    assert links or page.name != "README.md"


MISSING = [name for name in ("ray", "torch", "jax", "cvxpy", "pyepo") if find_spec(name) is None]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_calls_by_its_full_name_is_there(page: Path) -> None:
    for name in set(re.findall(r"\bhasten(?:\.[A-Za-z_]\w*)+", page.read_text())):
        with suppress(MissingExtra, AttributeError) if name.split(".")[1] in MISSING else nullcontext():
            assert resolve_name(name) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_imports_from_us_is_there(page: Path) -> None:
    for module, names in re.findall(r"^(?:>>> )?from (hasten[\w.]*) import ([\w, ]+)$", page.read_text(), re.MULTILINE):
        if module.startswith("hasten.ray"):
            pytest.importorskip("ray.data", reason="Install hasten[ray] to import its room.")
        assert [name for name in names.split(", ") if not hasattr(import_module(module), name)] == []


ROOMS = {file.parent.relative_to(PACKAGE).as_posix().replace("/", ".") for file in PACKAGE.rglob("__init__.py")} - {"."}


def modules_named(page: str) -> set[str]:
    """Returns the dotted names, in code, that begin with a room of the package."""
    names = set(re.findall(r"`([a-z_0-9]+(?:\.[a-z_0-9]+)*)`", page))
    return {name for name in names if "." in name and name.split(".")[0] in ROOMS} | names & ROOMS


def test_the_architecture_names_modules_that_exist_and_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = modules_named(page)
    places = [PACKAGE / name.replace(".", "/") for name in named]
    assert [str(place) for place in places if not (place.is_dir() or place.with_suffix(".py").is_file())] == []
    assert ROOMS - named == set()
    assert len(named) > 60
    for module in (file.stem for file in PACKAGE.glob("*.py") if file.name != "__init__.py"):
        assert f"`{module}`" in page


def test_the_steps_of_a_proof_have_one_name_each() -> None:
    page, words = (ROOT / "docs" / "architecture.md").read_text(), (ROOT / "docs" / "glossary.md").read_text()
    for step in Step:
        name = step.name.lower()
        assert step.value.startswith(f"by {name.removesuffix('e')}")
        assert f"**{name.capitalize()}**" in page
        assert f"| **{name}** |" in words


def test_the_tests_that_pages_name_are_there() -> None:
    tests = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    named = {name for page in PAGES for name in re.findall(r"`(test_\w+)`", page.read_text())}
    assert {name for name in named if f"def {name}(" not in tests} == set()
    assert len(named) > 20


NAMES = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def commands() -> set[str]:
    """Returns the commands of `hasten` that lines of the pages begin with, and those that make runs."""
    targets = ["demo", "reproduce", "bench-peers", "CORPUS=c", "UNLABELED=a b"]
    made = subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = "\n".join([*(page.read_text() for page in PAGES), made]).replace("\\\n", " ")
    found = re.findall(r"^ *(?:\.venv/bin/)?hasten ([a-z]+\b[^\n#|>]*)", lines, re.MULTILINE)
    return {command for command in found if command.split()[0] in NAMES}


@pytest.mark.parametrize("command", sorted(commands()))
def test_the_command_line_knows_the_options_that_pages_show(command: str) -> None:
    name, *words = shlex.split(command)
    parser = NAMES[name]
    if hasattr(parser, "commands"):
        parser, *words = parser.commands[words[0]], *words[1:]
    parser.make_context(name, words)


def test_the_pages_and_make_show_commands() -> None:
    assert len(commands()) > 15


def test_the_reference_has_every_public_name_once() -> None:
    told = re.findall(r"^::: hasten\.(\w+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE)
    assert sorted(told) == sorted(hasten.__all__)


def test_the_pictures_are_what_the_code_draws() -> None:
    """To draw them anew: python docs/pictures/draw.py"""
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures" / "draw.py"))["pictures"]()
    assert {file.name for file in (ROOT / "docs" / "pictures").glob("*.svg")} == drawn.keys()
    for name, picture in drawn.items():
        assert (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8") == picture + "\n"


def test_the_citation_names_the_version() -> None:
    assert f"\nversion: {hasten.__version__}\n" in (ROOT / "CITATION.cff").read_text()
