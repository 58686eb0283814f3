"""Adds pages from elsewhere in the repository to the site: the README, the changelog, the examples, docstrings."""

from __future__ import annotations

import re
from pathlib import Path

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LINKS = {"../docs/": "", "docs/": "", "examples/README.md": "examples.md", **PAGES}  # in the repository: on the site


def on_config(config: MkDocsConfig) -> None:
    """Adds the extension that reads our docstrings."""
    config.markdown_extensions.append(Docstrings())  # Markdown takes instances as well as names


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds the pages from elsewhere in the repository."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=as_on_the_site((ROOT / source).read_text(encoding="utf-8"))))
    files.append(File.generated(config, "examples.md", content=examples()))


def as_on_the_site(text: str) -> str:
    """Turns links between files of the repository into links between pages."""
    for there, here in LINKS.items():
        text = text.replace(f"]({there}", f"]({here}")
    return text


def examples() -> str:
    """Returns a page with the overview of the examples, and the code of each under the first line of its docstring."""
    parts = [as_on_the_site((ROOT / "examples" / "README.md").read_text(encoding="utf-8"))]
    for file in sorted((ROOT / "examples").glob("*.py")):
        code = file.read_text(encoding="utf-8")
        title, _, rest = code.removeprefix('"""').partition("\n")
        parts += [f"## {title.rstrip('.')}", f"`examples/{file.name}`"]
        description, _, code = rest.partition('"""\n')
        parts += [description.strip(), f"```python\n{code.strip()}\n```"]
    return "\n\n".join(parts)


class Docstrings(Extension):
    """Renders lists of settings, and sessions of the interpreter, in docstrings."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # Markdown's own name
        """Adds the step that rewrites them, before Markdown looks for code."""
        md.preprocessors.register(_Rewrite(md), "docstrings", 40)


class _Rewrite(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        """Rewrites the text between blocks of code."""
        parts = re.split(r"(?ms)(^```.*?^```$)", "\n".join(lines))
        return "".join(part if n % 2 else _rewritten(part) for n, part in enumerate(parts)).split("\n")


def _rewritten(text: str) -> str:
    """Makes settings with a description below definition lists, and lines from `>>>` on blocks of code."""
    text = re.sub(r"(?m)^(\w+(?:, \w+)*)\n {4}(?=\S)", r"\n`\1`\n:   ", text)
    return re.sub(r"(?m)^>>> .*\n(?:.+\n?)*", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
