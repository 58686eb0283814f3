"""Compiling in half the time, by what is not public in Numba; without it kernels are compiled as usual.

Kernels are parts of drivers: they are lowered, and left to the drivers to optimise and to make machine code of. Numba
would do that for each kernel, and again in every caller. And most of the time that compiling takes is Numba's own
Python, so passes that do nothing for kernels, or copy in vain, are left out.
"""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

from numba import _dynfunc
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.types.misc import unliteral
from numba.core.untyped_passes import InlineClosureLikes, InlineInlinables, WithLifting

# An AttributeError here says that this Numba lacks something that is changed or called below.
_NEEDED = (
    *(JITCodeLibrary._optimize_final_module, JITCodeLibrary._finalize_final_module),
    *(JITCodeLibrary._finalize_dynamic_globals, JITCodeLibrary._verify_declare_only_symbols),
    *(JITCodeLibrary.enable_object_caching, InlineInlinables._do_work),
    *(Dispatcher.get_call_template, _dynfunc.make_function),
)


def take_any_numbers(kernel: Any) -> None:
    """Has a kernel compiled for numbers of a type: Numba would compile it once more for each that is written out.

    A variable that starts at a number and changes in a loop is taken for that number at first, so such code is mostly
    thrown away.
    """
    template = kernel.get_call_template

    def any_numbers(args: Any, kws: Any) -> Any:
        return template(tuple(map(unliteral, args)), {name: unliteral(each) for name, each in kws.items()})

    kernel.get_call_template = any_numbers


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel, as its callers link it."""

    def _optimize_final_module(self) -> None:
        """Leaves that to the callers, who would do it again."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):  # type: ignore[misc]
    """Lowers a kernel without making machine code of it."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lowers, and lets callers find it."""
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        state.flags.no_compile = False
        lowered = state["cr"]
        fndesc = lowered.fndesc
        name = fndesc.qualname.split(".")[-1]
        nobody = _dynfunc.make_function(fndesc.lookup_module(), name, "", 0, lowered.env, (state.library,))
        state.targetctx.insert_user_function(nobody, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=nobody)
        return True


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
