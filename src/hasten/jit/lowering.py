"""Records and spans in compiled code: their types, and what their operations compile to (see `hasten.jit.records`).

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

from hasten.jit.records import VIEWS, Record, grid, keep, part, split

PAIR = types.UniTuple(types.intp, 2)


def returns(function: Any, typer: Callable[..., Any]) -> None:
    """Says what type a call of a function has in compiled code, given the types of its arguments."""
    type_callable(function)(lambda context: typer)


class SpanType(types.Type):  # type: ignore[misc]
    """The type of a span of numbers of one kind."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Span({dtype})")


class GridType(types.Type):  # type: ignore[misc]
    """The type of a span of two dimensions."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Grid({dtype})")


class RecordType(types.Type):  # type: ignore[misc]
    """The type of a record: its name and its fields."""

    def __init__(self, name: str, fields: tuple[tuple[str, bool], ...]) -> None:
        self.fields = fields
        self.places = {field: place for place, (field, _) in enumerate(fields)}
        super().__init__(name=f"{name}({', '.join(field for field, _ in fields)})")


@register_model(SpanType)
class SpanModel(models.StructModel):  # type: ignore[misc]
    """A pointer and a length."""

    def __init__(self, manager: Any, kind: SpanType) -> None:
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), ("size", types.int64)])


@register_model(GridType)
class GridModel(models.StructModel):  # type: ignore[misc]
    """A pointer and two lengths."""

    def __init__(self, manager: Any, kind: GridType) -> None:
        members = [("data", types.CPointer(kind.dtype)), ("height", types.int64), ("width", types.int64)]
        super().__init__(manager, kind, members)


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


# -- spans ------------------------------------------------------------------------------------------------------


make_attribute_wrapper(SpanType, "size", "size")


@infer_global(operator.getitem)
class _GetFromSpan(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Any:
        if isinstance(args[0], SpanType) and isinstance(args[1], types.Integer):
            return signature(args[0].dtype, args[0], types.intp)
        if isinstance(args[0], GridType):
            if isinstance(args[1], types.Integer):
                return signature(SpanType(args[0].dtype), args[0], types.intp)
            return signature(args[0].dtype, args[0], PAIR)
        return None


@infer_global(operator.setitem)
class _SetInSpan(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: tuple[types.Type, ...], kws: Any) -> Any:
        if isinstance(args[0], SpanType) and isinstance(args[1], types.Integer):
            return signature(types.none, args[0], types.intp, args[0].dtype)
        if isinstance(args[0], GridType):
            return signature(types.none, args[0], PAIR, args[0].dtype)
        return None


def _check_order(context: Any, builder: Any, less: Any, more: Any, words: str) -> None:
    """Raises IndexError, where indices are checked, unless one number is at most the other."""
    if context.enable_boundscheck:
        with cgutils.if_unlikely(builder, builder.icmp_signed(">", less, more)):
            context.call_conv.return_user_exc(builder, IndexError, (words,))


def _place(context: Any, builder: Any, kind: SpanType, value: Any, index: Any) -> Any:
    data, size = cgutils.unpack_tuple(builder, value, 2)
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, index, size)
    return builder.gep(data, [index])


@lower_builtin(operator.getitem, SpanType, types.Integer)
def _get(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.unpack_value(builder, sig.args[0].dtype, _place(context, builder, sig.args[0], args[0], args[1]))


@lower_builtin(operator.setitem, SpanType, types.Integer, types.Any)
def _set(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = context.cast(builder, args[2], sig.args[2], sig.args[0].dtype)
    context.pack_value(builder, sig.args[0].dtype, value, _place(context, builder, sig.args[0], args[0], args[1]))
    return context.get_dummy_value()


def _place_in_grid(context: Any, builder: Any, kind: GridType, value: Any, index: Any) -> Any:
    data, height, width = cgutils.unpack_tuple(builder, value, 3)
    row, column = cgutils.unpack_tuple(builder, index, 2)
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, row, height)
        cgutils.do_boundscheck(context, builder, column, width)
    return builder.gep(data, [builder.add(builder.mul(row, width), column)])


@lower_builtin(operator.getitem, GridType, types.UniTuple)
def _get_from_grid(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    return context.unpack_value(builder, kind.dtype, _place_in_grid(context, builder, kind, args[0], args[1]))


@lower_builtin(operator.getitem, GridType, types.Integer)
def _row_of_grid(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, height, width = cgutils.unpack_tuple(builder, args[0], 3)
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, args[1], height)
    return cgutils.pack_struct(builder, [builder.gep(data, [builder.mul(args[1], width)]), width])


@lower_builtin(operator.setitem, GridType, types.UniTuple, types.Any)
def _set_in_grid(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    value = context.cast(builder, args[2], sig.args[2], kind.dtype)
    context.pack_value(builder, kind.dtype, value, _place_in_grid(context, builder, kind, args[0], args[1]))
    return context.get_dummy_value()


returns(split, lambda array, sizes: types.UniTuple(SpanType(array.dtype), sizes.count))
returns(grid, lambda span, height, width: GridType(span.dtype))
returns(part, lambda array, begin, end: SpanType(array.dtype))
returns(keep, lambda arrays: types.none)


def _unpacked(context: Any, builder: Any, kind: types.Type, value: Any) -> Any:
    if isinstance(kind, SpanType):
        return cgutils.unpack_tuple(builder, value, 2)
    array = context.make_array(kind)(context, builder, value)
    return array.data, array.nitems


@lower_builtin(split, types.Array, types.UniTuple)
@lower_builtin(split, SpanType, types.UniTuple)
def _lower_split(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, n = _unpacked(context, builder, sig.args[0], args[0])
    begin, parts = ir.Constant(ir.IntType(64), 0), []
    for size in cgutils.unpack_tuple(builder, args[1], sig.args[1].count):
        end = builder.add(begin, context.cast(builder, size, sig.args[1].dtype, types.intp))
        parts.append(_make_span(context, builder, data, n, begin, end))
        begin = end
    return context.make_tuple(builder, sig.return_type, parts)


@lower_builtin(grid, SpanType, types.Integer, types.Integer)
def _lower_grid(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, size = cgutils.unpack_tuple(builder, args[0], 2)
    height, width = (context.cast(builder, args[i], sig.args[i], types.intp) for i in (1, 2))
    _check_order(context, builder, builder.mul(height, width), size, "a grid leaves its span")
    return cgutils.pack_struct(builder, [data, height, width])


@lower_builtin(keep, types.Any)
def _lower_keep(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.get_dummy_value()


def _make_span(context: Any, builder: Any, data: Any, size: Any, begin: Any, end: Any) -> Any:
    for first, last in (begin.type(0), begin), (begin, end), (end, size):
        _check_order(context, builder, first, last, "a span leaves its array")
    return cgutils.pack_struct(builder, [builder.gep(data, [begin]), builder.sub(end, begin)])


@lower_builtin(part, types.Array, types.Integer, types.Integer)
@lower_builtin(part, SpanType, types.Integer, types.Integer)
def _lower_part(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, n = _unpacked(context, builder, sig.args[0], args[0])
    begin, end = (context.cast(builder, args[i], sig.args[i], types.intp) for i in (1, 2))
    return _make_span(context, builder, data, n, begin, end)


# -- records ----------------------------------------------------------------------------------------------------


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
        number = builder.load(builder.gep(record, [ir.Constant(ir.IntType(64), at)]))
        number.set_metadata("invariant.load", builder.module.add_metadata([]))
        return number

    number = types.float64 if kind.fields[place][1] else types.int64
    start = builder.gep(record, [read(2 * place)])
    data = builder.bitcast(start, context.get_data_type(number).as_pointer())
    return cgutils.pack_struct(builder, [data, read(2 * place + 1)])


@cache
def _register_view(view: Callable[[int], Any], record: Any) -> None:
    kind = type_of(record)
    returns(view, lambda address: kind)

    @lower_builtin(view, types.Integer)
    def lower_view(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cgutils.pack_struct(builder, [builder.inttoptr(args[0], ir.IntType(64).as_pointer())])


def register_views() -> None:
    """Lets compiled code call the viewers that were made since the last time."""
    for view, record in VIEWS.items():
        _register_view(view, record)
