"""What traces of searches and of proofs share: text for a terminal, plain data both ways, and a page of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Self, get_args, get_origin, get_type_hints

from hasten.support.pictures import Page, on_a_page
from hasten.support.terminal import printable
from hasten.support.words import plain_number

LEFT_OUT = "solution"  # the field of a trace that is no plain data


class Trace:
    """A log of typed steps; `str` tells it, notebooks draw it, `to_dict` is plain data."""

    names: tuple[str, ...]  # of the variables

    def lines(self) -> list[str]:
        """Returns it in words."""
        raise TypeError(f"{type(self).__name__} does not say what it tells. Define lines.")

    def page(self) -> Page:
        """Returns it as pictures, with what explains them."""
        raise TypeError(f"{type(self).__name__} does not say how it is drawn. Define page.")

    def to_dict(self) -> dict[str, Any]:
        """Returns it as lists, words and numbers that JSON can hold; an infinite number is the word "inf"."""
        found = plain(self)
        return {"variables": found.pop("names"), **found}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Returns the trace that `to_dict` wrote down, but for its solution."""
        trace: Self = typed(cls, {**found, "names": found["variables"]})
        return trace

    def section(self) -> str:
        """Returns it as a part of a page that has the style already."""
        return self.page().section()

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))

    def _repr_html_(self) -> str:
        return on_a_page(self.section())

    def _repr_svg_(self) -> str:
        return self.page().svg()


def plain(value: Any) -> Any:
    """Returns a value as JSON can hold it: lists in place of tuples, words in place of infinite numbers."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.name != LEFT_OUT}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, StrEnum):
        return str(value)
    return plain_number(value) if isinstance(value, float) else value


def typed(kind: Any, found: Any) -> Any:
    """Returns a value of a type from what `plain` made of it."""
    if is_dataclass(kind):
        of: Any = kind
        return of(**{name: typed(hint, found[name]) for name, hint in _hints(of).items()})
    if get_origin(kind) is tuple:
        return tuple(typed(get_args(kind)[0], each) for each in found)
    if get_args(kind):  # X | None
        return None if found is None else typed(get_args(kind)[0], found)
    return kind(found)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind) if each.name != LEFT_OUT}
