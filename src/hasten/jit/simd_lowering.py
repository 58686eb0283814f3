"""SIMD lanes in compiled code: a vector of eight floats (see `hasten.jit.simd`)."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from hasten.jit.lowering import SpanType, returns
from hasten.jit.simd import (
    WIDTH,
    exponent,
    gather,
    greater,
    lesser,
    load,
    scale,
    spread,
    store,
    where_equal,
    where_less,
)

DOUBLES = ir.VectorType(ir.DoubleType(), WIDTH)
NOTHING = ir.Constant(DOUBLES, ir.Undefined)
INTEGERS = ir.VectorType(ir.IntType(64), WIDTH)
ROUND = 1.5 * 2.0**52  # added to a whole number, leaves it in the last bits
LIFT = 2.0**52  # its bits, with a small whole number in the last ones, are those of both together


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


returns(spread, lambda value: LANES)
returns(load, lambda span, x: LANES)
returns(lesser, lambda one, other: LANES)
returns(greater, lambda one, other: LANES)
returns(gather, lambda span, start, x: LANES)
returns(where_less, lambda one, other, then, otherwise: LANES)
returns(where_equal, lambda one, other, then, otherwise: LANES)
returns(scale, lambda one, power: LANES)
returns(exponent, lambda one: LANES)
returns(store, lambda span, x, lanes: types.none)


def _place(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, size = cgutils.unpack_tuple(builder, args[0], 2)
    index = builder.mul(context.cast(builder, args[1], sig.args[1], types.intp), ir.IntType(64)(WIDTH))
    if context.enable_boundscheck:
        for at in (index, builder.add(index, index.type(WIDTH - 1))):
            cgutils.do_boundscheck(context, builder, at, size)
    return builder.bitcast(builder.gep(data, [index]), DOUBLES.as_pointer())


@lower_builtin(load, SpanType, types.Integer)
def _lower_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_place(context, builder, sig, args), align=8)


@lower_builtin(store, SpanType, types.Integer, LanesType)
def _lower_store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], _place(context, builder, sig, args), align=8)
    return context.get_dummy_value()


@lower_builtin(gather, SpanType, SpanType, types.Integer)
def _lower_gather(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (data, size), (starts, n_starts) = (cgutils.unpack_tuple(builder, span, 2) for span in args[:2])
    x, lanes = context.cast(builder, args[2], sig.args[2], types.intp), NOTHING
    for lane in range(WIDTH):
        at = builder.add(builder.load(builder.gep(starts, [ir.IntType(64)(lane)])), x)
        if context.enable_boundscheck:
            cgutils.do_boundscheck(context, builder, ir.IntType(64)(lane), n_starts)
            cgutils.do_boundscheck(context, builder, at, size)
        lanes = builder.insert_element(lanes, builder.load(builder.gep(data, [at])), ir.IntType(32)(lane))
    return lanes


@lower_builtin(spread, types.Float)
def _lower_spread(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    first = builder.insert_element(NOTHING, args[0], ir.IntType(32)(0))
    return builder.shuffle_vector(first, NOTHING, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))


@infer_global(operator.add)
@infer_global(operator.sub)
@infer_global(operator.mul)
@infer_global(operator.truediv)
class _Arithmetic(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Any:
        return signature(LANES, LANES, LANES) if args == (LANES, LANES) else None


def _lower(function: Any, n: int, build: Callable[..., Any]) -> None:
    """Says what a function of `n` lanes compiles to."""

    @lower_builtin(function, *n * [LanesType])
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return build(builder, *args)


_lower(operator.add, 2, lambda builder, one, other: builder.fadd(one, other))
_lower(operator.sub, 2, lambda builder, one, other: builder.fsub(one, other))
_lower(operator.mul, 2, lambda builder, one, other: builder.fmul(one, other))
_lower(operator.truediv, 2, lambda builder, one, other: builder.fdiv(one, other))
_lower(lesser, 2, lambda builder, one, other: builder.select(builder.fcmp_ordered("<", one, other), one, other))
_lower(greater, 2, lambda builder, one, other: builder.select(builder.fcmp_ordered(">", one, other), one, other))
_lower(where_less, 4, lambda builder, a, b, *chosen: builder.select(builder.fcmp_ordered("<", a, b), *chosen))
_lower(where_equal, 4, lambda builder, a, b, *chosen: builder.select(builder.fcmp_ordered("==", a, b), *chosen))


def _all(kind: Any, value: Any) -> Any:
    return ir.Constant(kind, [value] * WIDTH)


@lower_builtin(scale, LanesType, LanesType)
def _lower_scale(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    power = builder.bitcast(builder.fadd(args[1], _all(DOUBLES, ROUND)), INTEGERS)
    bits = builder.add(builder.bitcast(args[0], INTEGERS), builder.shl(power, _all(INTEGERS, 52)))
    return builder.bitcast(bits, DOUBLES)


@lower_builtin(exponent, LanesType)
def _lower_exponent(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    bits = builder.lshr(builder.bitcast(args[0], INTEGERS), _all(INTEGERS, 52))
    lifted = builder.bitcast(builder.or_(bits, _all(INTEGERS, 0x4330000000000000)), DOUBLES)
    return builder.fsub(lifted, _all(DOUBLES, LIFT + 1023.0))
