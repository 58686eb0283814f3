"""The passes that kernels and drivers go through: Numba's, but for what does nothing for them or copies in vain.

Most of the time that compiling takes is Numba's own Python, so each pass that is left out is felt. As in
`hasten.jit.parts`, what is changed here is not a public part of Numba.
"""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

from numba.core import ir
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes, InlineInlinables, WithLifting

from hasten.jit.parts import PartLowering


class Unshared(ir.Block):  # type: ignore[misc]
    """A block that nobody else has, so that there is no need to copy it."""

    def __deepcopy__(self, memo: Any) -> Unshared:
        return self


def inline_unshared(worker: Any, caller: Any, block: Any, i: int, callee: Any, *others: Any, **more: Any) -> Any:
    """Inlines a function whose intermediate code was made for that: Numba would copy all of it twice."""
    for each in callee.blocks.values():
        each.__class__ = Unshared
    found = type(worker).inline_ir(worker, caller, block, i, callee, *others, **more)
    for each in caller.blocks.values():
        each.__class__ = ir.Block
    return found


@register_pass(mutates_CFG=True, analysis_only=False)
class Inlining(InlineInlinables):  # type: ignore[misc]
    """Inlines kernels, and those that they inline."""

    _name = "inlining"

    def _do_work(self, state: Any, work_list: Any, block: Any, i: int, expr: Any, worker: Any) -> Any:
        worker.inline_ir = partial(inline_unshared, worker)
        worker._compiler_pipeline = _inlined_passes
        return super()._do_work(state, work_list, block, i, expr, worker)


def _inlined_passes(state: Any) -> Any:
    return _change(DefaultPassBuilder.define_untyped_pipeline(state), _OF_KERNELS)


# What is used instead of a pass; None: nothing.
_OF_DRIVERS: dict[type, type | None] = {InlineInlinables: Inlining}
_OF_KERNELS: dict[type, type | None] = {
    InlineInlinables: Inlining,
    NativeLowering: PartLowering,
    InlineClosureLikes: None,  # kernels have no closures or comprehensions,
    WithLifting: None,  # no `with`,
    NopythonRewrites: None,  # and no expressions of whole arrays
}


def _change(pipeline: Any, changes: dict[type, type | None]) -> Any:
    """Returns passes, some of them changed."""
    changed = [(changes.get(each, each), about) for each, about in pipeline.passes]
    pipeline.passes = [(each, about) for each, about in changed if each is not None]
    pipeline._finalized = False
    pipeline.finalize()
    return pipeline


class DriverCompiler(Compiler):  # type: ignore[misc]
    """Compiles a driver and, on the way, what it calls."""

    def compile_extra(self, func: Any) -> Any:
        """Compiles without looking for garbage: there is much to look through, and little to find until the end."""
        looked = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if looked:
                gc.enable()

    def define_pipelines(self) -> Any:
        """Returns the passes."""
        return [_change(pipeline, _OF_DRIVERS) for pipeline in super().define_pipelines()]


class PartCompiler(Compiler):  # type: ignore[misc]
    """Compiles a kernel, as a part of what calls it."""

    def define_pipelines(self) -> Any:
        """Returns the passes."""
        return [_change(pipeline, _OF_KERNELS) for pipeline in super().define_pipelines()]
