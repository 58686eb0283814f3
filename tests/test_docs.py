"""The examples of the pages run as printed, in order, and print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from promises import promised

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", ["README.md", "docs/modelling.md"])
def test_the_examples_of_a_page_run_and_print_what_it_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    code = "\n".join(blocks)
    exec(compile(code, page, "exec"), {"__name__": "page"})
    printed = capsys.readouterr().out.splitlines()
    wanted = promised(code)
    assert len(wanted) >= 4
    assert [line for line in printed if line in wanted] == wanted
