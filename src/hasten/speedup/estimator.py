"""What scikit-learn expects of an estimator: settings by name, copies without what was learned, pickles."""

from __future__ import annotations

import inspect
import threading
from typing import Any, Self


class Estimator:
    """Has the arguments of its `__init__` as its settings, each an attribute; threads may share it.

    Settings may change at any time. They are checked when they are first used, and after each change.
    """

    _settled = False

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if not name.startswith("_"):
            object.__setattr__(self, "_settled", False)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the settings, by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Changes settings, by name."""
        names = self._defaults()
        unknown = sorted(set(params) - set(names))
        if unknown:
            raise ValueError(  # scikit-learn's own choice
                f"{type(self).__name__} has no setting {', '.join(unknown)}. It has {', '.join(names)}."
            )
        with self._lock:
            for name, value in params.items():
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

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params())

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_settled")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        defaults = self._defaults()
        settings = [f"{name}={value!r}" for name, value in self.get_params().items() if value is not defaults[name]]
        return f"{type(self).__name__}({', '.join(settings)})"

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
