"""What scikit-learn expects of an estimator: settings by name, copies without what was learned, tags, pickles.

Nothing here needs scikit-learn: it is imported only by what scikit-learn alone calls.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, Self

from hasten.errors import NotFittedError
from hasten.support.locks import renew_after_fork


class Estimator:
    """Has the arguments of its `__init__` as its settings, each an attribute; threads may share it.

    Settings may change at any time. They are checked when they are first used, and after each change.
    """

    _settled = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        renew_after_fork(self)

    def _renew_locks(self) -> None:
        """Makes a new lock, in a forked child."""
        self._lock = threading.RLock()

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if not name.startswith("_"):
            object.__setattr__(self, "_settled", False)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the settings, by name; `deep` adds the settings of a setting that has some: `learner__epochs`."""
        params = {name: getattr(self, name) for name in self._defaults()}
        if deep:
            for name, value in list(params.items()):
                params |= {f"{name}__{inner}": each for inner, each in _settings_of(value).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Changes settings, by name; `learner__epochs=3` replaces the learner by one that differs in that alone."""
        own = {name: value for name, value in params.items() if "__" not in name}
        nested: dict[str, dict[str, Any]] = {}
        for name in params.keys() - own.keys():
            outer, _, inner = name.partition("__")
            nested.setdefault(outer, {})[inner] = params[name]
        _check_names(type(self).__name__, own.keys() | nested.keys(), self._defaults())
        with self._lock:
            for name, settings in nested.items():
                own[name] = _changed(name, own.get(name, getattr(self, name)), settings)
            for name, value in own.items():
                setattr(self, name, value)
        return self

    def _settle(self) -> None:
        """Checks the settings, unless they were checked as they are."""
        if self._settled:
            return
        self._settled = True  # first, so that what another thread changes meanwhile is checked again
        try:
            self._check_settings()
        except BaseException:
            self._settled = False
            raise

    def _check_settings(self) -> None:
        """Refuses settings that make no sense."""

    def _requires_fit(self) -> bool:
        """Whether it must learn before it can answer."""
        return False

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(one_d_array=True, two_d_array=False),  # problems, not rows of features
            requires_fit=self._requires_fit(),
        )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_settled")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        renew_after_fork(self)

    def __repr__(self) -> str:
        settings = [f"{name}={value!r}" for name, value in self._set().items()]
        return f"{type(self).__name__}({', '.join(settings)})"

    def _set(self) -> dict[str, Any]:
        """Returns the settings that differ from their defaults."""
        defaults = {name: repr(default) for name, default in self._defaults().items()}
        return {name: value for name, value in self.get_params(deep=False).items() if repr(value) != defaults[name]}

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}


def not_fitted(message: str) -> NotFittedError:
    """Returns the error for what has not learned yet; where scikit-learn is loaded, it is also scikit-learn's own."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    return NotFittedError(message) if theirs is None else _both(theirs)(message)


@cache
def _both(theirs: type[Exception]) -> type[NotFittedError]:
    """Returns the error that is ours and theirs; it can be pickled, for other processes."""
    body = {"__doc__": NotFittedError.__doc__, "__reduce__": lambda error: (not_fitted, error.args)}
    return type("NotFittedError", (NotFittedError, theirs), body)


def _settings_of(value: Any) -> dict[str, Any]:
    """Returns the settings of a setting: what a dataclass is made with."""
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


def _changed(name: str, value: Any, settings: Mapping[str, Any]) -> Any:
    """Returns a setting with other settings of its own; the one it was, which others may share, stays as it is."""
    known = _settings_of(value)
    if not known:
        raise ValueError(f"{name} is {value!r}, which has no settings of its own. Set {name} before its settings.")
    _check_names(type(value).__name__, settings.keys(), known)
    same = all(known[inner] is each for inner, each in settings.items())
    return value if same else replace(value, **settings)


def _check_names(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise ValueError(  # scikit-learn's own choice
            f"{owner} has no setting {', '.join(unknown)}. It has {', '.join(known)}."
        )
