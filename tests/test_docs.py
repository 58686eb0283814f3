"""The examples of the pages run as printed, in order, and print what the page says; links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest
from promises import promised

import hasten

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", ["README.md", "docs/modelling.md"])
def test_the_examples_of_a_page_run_and_print_what_it_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    code = "\n".join(blocks)
    exec(compile(code, page, "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out.splitlines()
    wanted = promised(code)
    assert len(wanted) >= 4
    assert [line for line in printed if line in wanted] == wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_to_files_that_are_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
    assert links or page.name != "README.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_calls_by_its_full_name_is_there(page: Path) -> None:
    for name in set(re.findall(r"\bhasten(?:\.[A-Za-z_]\w*)+", page.read_text())):
        assert resolve_name(name) is not None


def test_the_reference_has_every_public_name_once() -> None:
    told = re.findall(r"^::: hasten\.(\w+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE)
    assert sorted(told) == sorted(hasten.__all__)


def test_the_citation_names_the_version() -> None:
    assert f"\nversion: {hasten.__version__}\n" in (ROOT / "CITATION.cff").read_text()
