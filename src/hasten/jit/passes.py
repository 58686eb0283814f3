"""Compiling in half the time, by what is not public in Numba; without it kernels are compiled as usual.

Kernels are parts of drivers: they are lowered, and left to the drivers to optimise and to make machine code of. Numba
would do that for each kernel, and again in every caller. A kernel is also compiled once for all numbers of a type.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.dispatcher import Dispatcher
from numba.core.typed_passes import NativeLowering
from numba.core.types.misc import unliteral

# An AttributeError here says that this Numba lacks something that is changed or called below.
_NEEDED = (
    *(JITCodeLibrary._optimize_final_module, JITCodeLibrary._finalize_final_module),
    *(JITCodeLibrary._finalize_dynamic_globals, JITCodeLibrary._verify_declare_only_symbols),
    *(JITCodeLibrary.enable_object_caching, Dispatcher.get_call_template, _dynfunc.make_function),
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


class PartCompiler(Compiler):  # type: ignore[misc]
    """Compiles a kernel, as a part of what calls it."""

    def define_pipelines(self) -> Any:
        """Returns Numba's passes, but for the last of them."""
        (pipeline,) = super().define_pipelines()
        pipeline.passes = [(PartLowering if each is NativeLowering else each, why) for each, why in pipeline.passes]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]
