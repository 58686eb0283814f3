"""What a piece of code promises to print: in a comment behind `print`, or on the comment lines right below it."""

from __future__ import annotations


def promised(code: str) -> list[str]:
    """Returns the promised lines, in order."""
    lines: list[str] = []
    below = False
    for line in map(str.strip, code.splitlines()):
        if line.startswith("print("):
            lines += line.split("  # ", 1)[1:]
        elif below and line.startswith("# "):
            lines.append(line[2:])
            continue
        below = line.startswith("print(")
    return lines
