"""SIMD lanes in compiled code: a vector of eight floats (see `hasten.jit.simd`)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model, type_callable

from hasten.jit.lowering import SpanType
from hasten.jit.simd import WIDTH, gather, greater, lesser, load, spread, store, where_equal, where_less

DOUBLES = ir.VectorType(ir.DoubleType(), WIDTH)


class LanesType(types.Type):  # type: ignore[misc]
    """The type of lanes."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({WIDTH})")


LANES = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """A vector."""

    def __init__(self, manager: Any, kind: LanesType) -> None:
        super().__init__(manager, kind, DOUBLES)


def _place(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Returns where number `x` of each problem lies."""
    data, size = cgutils.unpack_tuple(builder, args[0], 2)
    index = builder.mul(context.cast(builder, args[1], sig.args[1], types.intp), ir.IntType(64)(WIDTH))
    if context.enable_boundscheck:
        for at in (index, builder.add(index, index.type(WIDTH - 1))):
            cgutils.do_boundscheck(context, builder, at, size)
    return builder.bitcast(builder.gep(data, [index]), DOUBLES.as_pointer())


@type_callable(load)
def _type_load(context: Any) -> Callable[..., Any]:
    return lambda span, x: LANES


@lower_builtin(load, SpanType, types.Integer)
def _lower_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_place(context, builder, sig, args), align=8)


@type_callable(store)
def _type_store(context: Any) -> Callable[..., Any]:
    return lambda span, x, lanes: types.none


@lower_builtin(store, SpanType, types.Integer, LanesType)
def _lower_store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], _place(context, builder, sig, args), align=8)
    return context.get_dummy_value()


@type_callable(gather)
def _type_gather(context: Any) -> Callable[..., Any]:
    return lambda span, start, x: LANES


@lower_builtin(gather, SpanType, SpanType, types.Integer)
def _lower_gather(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (data, size), (starts, n_starts) = (cgutils.unpack_tuple(builder, span, 2) for span in args[:2])
    x = context.cast(builder, args[2], sig.args[2], types.intp)
    lanes = ir.Constant(DOUBLES, ir.Undefined)
    for lane in range(WIDTH):
        at = builder.add(builder.load(builder.gep(starts, [ir.IntType(64)(lane)])), x)
        if context.enable_boundscheck:
            cgutils.do_boundscheck(context, builder, ir.IntType(64)(lane), n_starts)
            cgutils.do_boundscheck(context, builder, at, size)
        lanes = builder.insert_element(lanes, builder.load(builder.gep(data, [at])), ir.IntType(32)(lane))
    return lanes


@type_callable(spread)
def _type_spread(context: Any) -> Callable[..., Any]:
    return lambda value: LANES


@lower_builtin(spread, types.Float)
def _lower_spread(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    first = builder.insert_element(ir.Constant(DOUBLES, ir.Undefined), args[0], ir.IntType(32)(0))
    all_first = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, ir.Constant(DOUBLES, ir.Undefined), all_first)


@infer_global(operator.add)
@infer_global(operator.sub)
@infer_global(operator.mul)
class _Arithmetic(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Any:
        return signature(LANES, LANES, LANES) if args == (LANES, LANES) else None


@lower_builtin(operator.add, LanesType, LanesType)
def _add(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fadd(*args)


@lower_builtin(operator.sub, LanesType, LanesType)
def _subtract(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fsub(*args)


@lower_builtin(operator.mul, LanesType, LanesType)
def _multiply(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fmul(*args)


@type_callable(lesser)
@type_callable(greater)
def _type_lesser(context: Any) -> Callable[..., Any]:
    return lambda one, other: LANES


@lower_builtin(lesser, LanesType, LanesType)
def _lower_lesser(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", *args), *args)


@lower_builtin(greater, LanesType, LanesType)
def _lower_greater(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", *args), *args)


@type_callable(where_less)
@type_callable(where_equal)
def _type_where(context: Any) -> Callable[..., Any]:
    return lambda one, other, then, otherwise: LANES


@lower_builtin(where_less, LanesType, LanesType, LanesType, LanesType)
def _lower_where_less(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])


@lower_builtin(where_equal, LanesType, LanesType, LanesType, LanesType)
def _lower_where_equal(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.select(builder.fcmp_ordered("==", args[0], args[1]), args[2], args[3])
