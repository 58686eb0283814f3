"""Records, spans and lanes in compiled code: their types, and what their operations compile to (`hasten.jit.records`).

With NUMBA_BOUNDSCHECK=1 spans check their indices as arrays do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    make_attribute_wrapper,
    models,
    register_model,
    type_callable,
    typeof_impl,
    unbox,
)

from hasten.jit import records
from hasten.jit.records import VIEWS, WIDTH, Record

INT = ir.IntType(64)
PAIR = types.UniTuple(types.intp, 2)


def lowers(function: Any, typer: Callable[..., Any], *arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """Says what type a call has in compiled code, given the types of its arguments, and decorates what builds it."""
    type_callable(function)(lambda context: typer)

    def register(build: Callable[..., Any]) -> Callable[..., Any]:
        for kinds in arguments:
            lower_builtin(function, *kinds)(build)
        return build

    return register


# -- spans: of one axis or, as grids, of two --------------------------------------------------------------------


class SpanType(types.Type):  # type: ignore[misc]
    """The type of a span of numbers of one kind."""

    def __init__(self, dtype: types.Type, n_axes: int = 1) -> None:
        self.dtype, self.n_axes = dtype, n_axes
        super().__init__(name=f"Span({dtype}, {n_axes})")


@register_model(SpanType)
class SpanModel(models.StructModel):  # type: ignore[misc]
    """A pointer, and a length for each axis."""

    def __init__(self, manager: Any, kind: SpanType) -> None:
        sizes = ["size"] if kind.n_axes == 1 else ["height", "width"]
        members = [("data", types.CPointer(kind.dtype)), *((name, types.int64) for name in sizes)]
        super().__init__(manager, kind, members)


make_attribute_wrapper(SpanType, "size", "size")


@infer_global(operator.getitem)
class _GetFromSpan(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Any:
        span, index = args
        if not isinstance(span, SpanType):
            return None
        if isinstance(index, types.Integer):
            return signature(span.dtype if span.n_axes == 1 else SpanType(span.dtype), span, types.intp)
        return signature(span.dtype, span, PAIR) if span.n_axes == 2 else None


@infer_global(operator.setitem)
class _SetInSpan(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Any:
        span, index, _ = args
        if not isinstance(span, SpanType) or isinstance(index, types.Integer) != (span.n_axes == 1):
            return None
        return signature(types.none, span, types.intp if span.n_axes == 1 else PAIR, span.dtype)


def _entry(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Returns a pointer to an entry of a span or, of a grid, to an entry or the first one of a row."""
    data, *sizes = cgutils.unpack_tuple(builder, args[0], 1 + sig.args[0].n_axes)
    index = cgutils.unpack_tuple(builder, args[1], 2) if sig.args[1] == PAIR else [args[1]]
    if context.enable_boundscheck:
        for at, size in zip(index, sizes, strict=False):
            cgutils.do_boundscheck(context, builder, at, size)
    at = index[0] if len(sizes) == 1 else builder.mul(index[0], sizes[1])
    return builder.gep(data, [builder.add(at, index[1]) if len(index) == 2 else at])


@lower_builtin(operator.getitem, SpanType, types.Integer)
@lower_builtin(operator.getitem, SpanType, types.UniTuple)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    entry = _entry(context, builder, sig, args)
    if isinstance(sig.return_type, SpanType):
        return cgutils.pack_struct(builder, [entry, builder.extract_value(args[0], 2)])
    return context.unpack_value(builder, sig.args[0].dtype, entry)


@lower_builtin(operator.setitem, SpanType, types.Integer, types.Any)
@lower_builtin(operator.setitem, SpanType, types.UniTuple, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0].dtype
    value = context.cast(builder, args[2], sig.args[2], kind)
    context.pack_value(builder, kind, value, _entry(context, builder, sig, args))
    return context.get_dummy_value()


def _check_order(context: Any, builder: Any, less: Any, more: Any, words: str) -> None:
    """Raises IndexError, where indices are checked, unless one number is at most the other."""
    if context.enable_boundscheck:
        with cgutils.if_unlikely(builder, builder.icmp_signed(">", less, more)):
            context.call_conv.return_user_exc(builder, IndexError, (words,))


def _unpacked(context: Any, builder: Any, kind: types.Type, value: Any) -> Any:
    if isinstance(kind, SpanType):
        return cgutils.unpack_tuple(builder, value, 2)
    array = context.make_array(kind)(context, builder, value)
    return array.data, array.nitems


def _make_span(context: Any, builder: Any, data: Any, size: Any, begin: Any, end: Any) -> Any:
    for first, last in (INT(0), begin), (begin, end), (end, size):
        _check_order(context, builder, first, last, "a span leaves its array")
    return cgutils.pack_struct(builder, [builder.gep(data, [begin]), builder.sub(end, begin)])


@lowers(
    records.part,
    lambda array, begin, end: SpanType(array.dtype),
    (types.Array, types.Integer, types.Integer),
    (SpanType, types.Integer, types.Integer),
)
def _part(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, n = _unpacked(context, builder, sig.args[0], args[0])
    begin, end = (context.cast(builder, args[i], sig.args[i], types.intp) for i in (1, 2))
    return _make_span(context, builder, data, n, begin, end)


@lowers(
    records.split,
    lambda array, sizes: types.UniTuple(SpanType(array.dtype), sizes.count),
    (types.Array, types.UniTuple),
    (SpanType, types.UniTuple),
)
def _split(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, n = _unpacked(context, builder, sig.args[0], args[0])
    begin, parts = INT(0), []
    for size in cgutils.unpack_tuple(builder, args[1], sig.args[1].count):
        end = builder.add(begin, context.cast(builder, size, sig.args[1].dtype, types.intp))
        parts.append(_make_span(context, builder, data, n, begin, end))
        begin = end
    return context.make_tuple(builder, sig.return_type, parts)


@lowers(records.grid, lambda span, height, width: SpanType(span.dtype, 2), (SpanType, types.Integer, types.Integer))
def _grid(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, size = cgutils.unpack_tuple(builder, args[0], 2)
    height, width = (context.cast(builder, args[i], sig.args[i], types.intp) for i in (1, 2))
    _check_order(context, builder, builder.mul(height, width), size, "a grid leaves its span")
    return cgutils.pack_struct(builder, [data, height, width])


@lowers(records.keep, lambda arrays: types.none, (types.Any,))
def _keep(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.get_dummy_value()


# -- records ----------------------------------------------------------------------------------------------------


class RecordType(types.Type):  # type: ignore[misc]
    """The type of a record: its name and its fields."""

    def __init__(self, name: str, fields: tuple[tuple[str, bool], ...]) -> None:
        self.fields = fields
        self.places = {field: place for place, (field, _) in enumerate(fields)}
        super().__init__(name=f"{name}({', '.join(field for field, _ in fields)})")


@register_model(RecordType)
class RecordModel(models.StructModel):  # type: ignore[misc]
    """A pointer to its buffer."""

    def __init__(self, manager: Any, kind: RecordType) -> None:
        super().__init__(manager, kind, [("data", types.CPointer(types.int64))])


@cache  # Numba asks at every call
def type_of(record: Any) -> RecordType:
    """Returns the type that a class of records has in compiled code."""
    return RecordType(record.__name__, tuple(record._fields.items()))


@typeof_impl.register(Record)
def _typeof_record(record: Any, context: Any) -> RecordType:
    return type_of(record.__class__)


@unbox(RecordType)
def _unbox_record(kind: RecordType, record: Any, c: Any) -> NativeValue:
    array = types.Array(types.int64, 1, "C")
    held = c.pyapi.object_getattr_string(record, "buffer")
    data = c.context.make_array(array)(c.context, c.builder, c.unbox(array, held).value).data
    c.pyapi.decref(held)  # the record keeps it
    return NativeValue(cgutils.pack_struct(c.builder, [data]))


@infer_getattr
class _RecordAttributes(AttributeTemplate):  # type: ignore[misc]
    key = RecordType

    def generic_resolve(self, record: RecordType, name: str) -> Any:
        if name not in record.places:
            return None
        return SpanType(types.float64 if record.fields[record.places[name]][1] else types.int64)


@lower_getattr_generic(RecordType)
def _record_attribute(context: Any, builder: Any, kind: RecordType, value: Any, name: str) -> Any:
    place = kind.places[name]
    record = builder.extract_value(value, 0)

    def read(at: int) -> Any:
        number = builder.load(builder.gep(record, [INT(at)]))
        # No kernel writes to a header, so LLVM may read it once for all uses; fields themselves do change.
        number.set_metadata("invariant.load", builder.module.add_metadata([]))
        return number

    number = types.float64 if kind.fields[place][1] else types.int64
    start = builder.gep(record, [read(2 * place)])
    data = builder.bitcast(start, context.get_data_type(number).as_pointer())
    return cgutils.pack_struct(builder, [data, read(2 * place + 1)])


@cache
def _register_view(view: Callable[[int], Any], record: Any) -> None:
    kind = type_of(record)

    @lowers(view, lambda address: kind, (types.Integer,))
    def lower_view(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cgutils.pack_struct(builder, [builder.inttoptr(args[0], INT.as_pointer())])


def register_views() -> None:
    """Lets compiled code call the viewers that were made since the last time."""
    for view, record in VIEWS.items():
        _register_view(view, record)


# -- lanes: a vector of eight floats ----------------------------------------------------------------------------

DOUBLES = ir.VectorType(ir.DoubleType(), WIDTH)
INTEGERS = ir.VectorType(INT, WIDTH)
NOTHING = ir.Constant(DOUBLES, ir.Undefined)
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


def _lanes_at(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Returns a pointer to the lanes that a span has at a place."""
    data, size = cgutils.unpack_tuple(builder, args[0], 2)
    index = builder.mul(context.cast(builder, args[1], sig.args[1], types.intp), INT(WIDTH))
    if context.enable_boundscheck:
        for at in (index, builder.add(index, INT(WIDTH - 1))):
            cgutils.do_boundscheck(context, builder, at, size)
    return builder.bitcast(builder.gep(data, [index]), DOUBLES.as_pointer())


@lowers(records.load, lambda span, x: LANES, (SpanType, types.Integer))
def _load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_lanes_at(context, builder, sig, args), align=8)


@lowers(records.store, lambda span, x, lanes: types.none, (SpanType, types.Integer, LanesType))
def _store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], _lanes_at(context, builder, sig, args), align=8)
    return context.get_dummy_value()


@lowers(records.gather, lambda span, start, x: LANES, (SpanType, SpanType, types.Integer))
def _gather(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (data, size), (starts, n_starts) = (cgutils.unpack_tuple(builder, span, 2) for span in args[:2])
    x, lanes = context.cast(builder, args[2], sig.args[2], types.intp), NOTHING
    for lane in range(WIDTH):
        at = builder.add(builder.load(builder.gep(starts, [INT(lane)])), x)
        if context.enable_boundscheck:
            cgutils.do_boundscheck(context, builder, INT(lane), n_starts)
            cgutils.do_boundscheck(context, builder, at, size)
        lanes = builder.insert_element(lanes, builder.load(builder.gep(data, [at])), ir.IntType(32)(lane))
    return lanes


@lowers(records.spread, lambda value: LANES, (types.Float,))
def _spread(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    first = builder.insert_element(NOTHING, args[0], ir.IntType(32)(0))
    return builder.shuffle_vector(first, NOTHING, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))


@infer_global(operator.add)
@infer_global(operator.sub)
@infer_global(operator.mul)
@infer_global(operator.truediv)
class _Arithmetic(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Any:
        return signature(LANES, LANES, LANES) if args == (LANES, LANES) else None


def _all(kind: Any, value: Any) -> Any:
    return ir.Constant(kind, [value] * WIDTH)


def _scale(builder: Any, lanes: Any, power: Any) -> Any:
    power = builder.bitcast(builder.fadd(power, _all(DOUBLES, ROUND)), INTEGERS)
    bits = builder.add(builder.bitcast(lanes, INTEGERS), builder.shl(power, _all(INTEGERS, 52)))
    return builder.bitcast(bits, DOUBLES)


def _exponent(builder: Any, lanes: Any) -> Any:
    bits = builder.lshr(builder.bitcast(lanes, INTEGERS), _all(INTEGERS, 52))
    lifted = builder.bitcast(builder.or_(bits, _all(INTEGERS, 0x4330000000000000)), DOUBLES)
    return builder.fsub(lifted, _all(DOUBLES, LIFT + 1023.0))


def _chosen(builder: Any, sign: str, one: Any, other: Any, then: Any, otherwise: Any) -> Any:
    return builder.select(builder.fcmp_ordered(sign, one, other), then, otherwise)


# What functions of lanes alone compile to. The type of the operators' calls is that of `_Arithmetic`.
_BUILT: dict[Any, Callable[..., Any]] = {
    operator.add: lambda builder, one, other: builder.fadd(one, other),
    operator.sub: lambda builder, one, other: builder.fsub(one, other),
    operator.mul: lambda builder, one, other: builder.fmul(one, other),
    operator.truediv: lambda builder, one, other: builder.fdiv(one, other),
    records.exponent: _exponent,
    records.scale: _scale,
    records.lesser: lambda builder, one, other: _chosen(builder, "<", one, other, one, other),
    records.greater: lambda builder, one, other: _chosen(builder, ">", one, other, one, other),
    records.where_less: lambda builder, *lanes: _chosen(builder, "<", *lanes),
    records.where_equal: lambda builder, *lanes: _chosen(builder, "==", *lanes),
}
_TYPERS: dict[int, Callable[..., Any]] = {1: lambda a: LANES, 2: lambda a, b: LANES, 4: lambda a, b, c, d: LANES}


def _lower_all() -> None:
    for function, build in _BUILT.items():
        n = function.__code__.co_argcount if hasattr(function, "__code__") else 2

        def lower(context: Any, builder: Any, sig: Any, args: Any, build: Callable[..., Any] = build) -> Any:
            return build(builder, *args)

        if function.__module__ == records.__name__:
            lowers(function, _TYPERS[n], n * (LanesType,))(lower)
        else:
            lower_builtin(function, *n * [LanesType])(lower)


_lower_all()
