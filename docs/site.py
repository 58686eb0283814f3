"""What the site adds to the pages of this folder: the README, the changelog, the examples, and docstrings."""

from __future__ import annotations

import re
from pathlib import Path

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
LINKS = {"docs/": "", "examples/": "examples.md", **PAGES}  # from the root of the repository, and on the site


def on_config(config: MkDocsConfig) -> None:
    """Teaches Markdown how our docstrings are written."""
    config.markdown_extensions.append(Docstrings())  # Markdown takes instances as well as names


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds the pages that stand elsewhere in the repository."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=as_on_the_site((ROOT / source).read_text(encoding="utf-8"))))
    files.append(File.generated(config, "examples.md", content=examples()))


def as_on_the_site(text: str) -> str:
    """Turns links that start at the root of the repository into links between pages."""
    for there, here in LINKS.items():
        text = text.replace(f"]({there}", f"]({here}")
    return text


def examples() -> str:
    """Returns a page with every example: its docstring's first line as the heading, and its code."""
    parts = ["# Examples", "Each is a script in `examples/`, and a test: it prints what its comments promise."]
    for file in sorted((ROOT / "examples").glob("*.py")):
        code = file.read_text(encoding="utf-8")
        title, _, rest = code.removeprefix('"""').partition("\n")
        parts += [f"## {title.rstrip('.')}", f"`examples/{file.name}`"]
        said, _, code = rest.partition('"""\n')
        parts += [said.strip(), f"```python\n{code.strip()}\n```"]
    return "\n\n".join(parts)


class Docstrings(Extension):
    """Shows what Markdown alone would not: listed settings and dialogues with the interpreter."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # Markdown's own name
        """Adds the step that rewrites them, before code is looked for."""
        md.preprocessors.register(_Rewrite(md), "docstrings", 40)


class _Rewrite(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        """Leaves blocks of code alone, and rewrites what stands between them."""
        parts = re.split(r"(?ms)(^```.*?^```$)", "\n".join(lines))
        return "".join(part if n % 2 else _rewritten(part) for n, part in enumerate(parts)).split("\n")


def _rewritten(text: str) -> str:
    """Makes a setting above its description a term with a definition, and lines from `>>>` on a block of code."""
    text = re.sub(r"(?m)^(\w+(?:, \w+)*)\n {4}(?=\S)", r"\n`\1`\n:   ", text)
    return re.sub(r"(?m)^>>> .*\n(?:.+\n?)*", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
