"""Settings by name, as scikit-learn reads and changes them, down into the parts: `answer__learner__epochs`.

Nothing here needs scikit-learn: it is imported only by what scikit-learn alone calls.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

from hasten.errors import NotFittedError, ProblemError, SchemaError
from hasten.model.schema import Schema
from hasten.solvers import check_solver
from hasten.speedup.parts import SHORTHANDS, Certified, Learned, Limits, Search, Trust, as_answer
from hasten.support.checks import brief, check_switch, check_type, check_whole


class Estimator:
    """Has the named arguments of its `__init__` as its settings, each an attribute."""

    __signature__: inspect.Signature
    _defaults: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        _, *every = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature([each for each in every if each.kind is not each.VAR_KEYWORD])
        cls._defaults = {name: each.default for name, each in cls.__signature__.parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the settings, by name; `deep` adds the settings of the parts: `answer__width`."""
        params = {name: getattr(self, name) for name in self._defaults}
        return with_parts(params) if deep else params

    def set_params(self, **params: Any) -> Self:
        """Changes settings, by name; `trust__audit=0.1` replaces the part by one that differs in that alone."""
        for name, value in changed(type(self).__name__, self.get_params(deep=False), params).items():
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    def __repr__(self) -> str:
        params = self.get_params(deep=False).items()
        changed = [f"{name}={value!r}" for name, value in params if repr(value) != repr(self._defaults[name])]
        return f"{type(self).__name__}({', '.join(changed)})"


def settings_of(value: Any) -> dict[str, Any]:
    """Returns the settings of a part: the fields that a dataclass is made with; a shorthand stands for its part."""
    if isinstance(value, str) and value in SHORTHANDS:
        value = SHORTHANDS[value]
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


def with_parts(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings with those of their parts, by names with two underscores."""
    found = dict(params)
    for name, value in params.items():
        found |= {f"{name}__{inner}": each for inner, each in with_parts(settings_of(value)).items()}
    return found


def changed(owner: str, known: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that change; where a name leads into a part, a copy of that part differs in it alone."""
    own = {name: value for name, value in params.items() if "__" not in name}
    nested: dict[str, dict[str, Any]] = {}
    for name in params.keys() - own.keys():
        outer, _, inner = name.partition("__")
        nested.setdefault(outer, {})[inner] = params[name]
    if unknown := sorted((own.keys() | nested.keys()) - known.keys()):
        raise ValueError(no_setting(owner, unknown, known))  # scikit-learn's own choice
    for name, settings in nested.items():
        value = own.get(name, known[name])
        inside = settings_of(value)
        if not inside:
            raise ValueError(f"{name} is {value!r}, which has no settings of its own. Set {name} before its settings.")
        part = SHORTHANDS[value] if isinstance(value, str) else value
        new = changed(type(part).__name__, inside, settings)
        own[name] = value if all(inside[inner] is each for inner, each in new.items()) else replace(part, **new)
    return own


def no_setting(owner: str, unknown: Iterable[str], known: Iterable[str]) -> str:
    """Says that there are no such settings, and of which parts they are."""
    parts = {"answer": (Search, Certified, Learned), "trust": (Trust,), "limits": (Limits,)}
    hints = {"mode": "mode= is answer= now, such as answer='search'."}
    for outer, kinds in parts.items():
        for kind in kinds:
            hints |= {each.name: f"{each.name}= is in {outer}={kind.__name__}({each.name}=…)." for each in fields(kind)}
    said = [f"{owner} has no setting {', '.join(unknown)}. It has {', '.join(known)}."]
    return " ".join(said + [hints[name] for name in unknown if name in hints])


def tags(requires_fit: bool) -> Any:
    """Returns what scikit-learn wants to know of an estimator whose samples are problems, not rows of features."""
    from sklearn.utils import InputTags, Tags, TargetTags

    return Tags(
        estimator_type=None,
        target_tags=TargetTags(required=False),
        input_tags=InputTags(one_d_array=True, two_d_array=False),
        requires_fit=requires_fit,
    )


def not_fitted(message: str) -> NotFittedError:
    """Returns the error for what has not learned yet; where scikit-learn is loaded, it is also scikit-learn's own."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    return NotFittedError(message) if theirs is None else _both(theirs)(message)


@cache
def _both(theirs: type[Exception]) -> type[NotFittedError]:
    """Returns the error that is ours and theirs; it can be pickled, for other processes."""
    body = {"__doc__": NotFittedError.__doc__, "__reduce__": lambda error: (not_fitted, error.args)}
    return type("NotFittedError", (NotFittedError, theirs), body)


def check_settings(speedup: Any) -> None:
    """Refuses settings of a speedup that make no sense; parts were checked when they were made."""
    check_type(speedup.schema, Schema, "A speedup is for the problems of a schema; what is passed first", SchemaError)
    check_solver(speedup.solver)
    if speedup.solver_options is not None and not isinstance(speedup.solver_options, Mapping):
        raise ProblemError(f"solver_options must map names to values; got {brief(speedup.solver_options)}.")
    as_answer(speedup.answer)
    check_type(speedup.trust, Trust, "trust")
    check_type(speedup.limits, Limits, "limits")
    check_switch("learn", speedup.learn)
    check_whole("n_jobs", speedup.n_jobs, least=1)
    check_whole("seed", speedup.seed, most=None)
