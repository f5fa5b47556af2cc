"""Compiles kernels with Numba. Only this module imports Numba, and only :mod:`inlink.base.jit` imports this module."""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.event import Event, Listener, register
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from inlink.base.machinecode import CHECKED, stamp

__all__ = ["add_lanes", "array_at", "compiled", "inlined", "item_at", "keep_larger", "prefetch"]

# If all loggers log at DEBUG, as with Scrapy, Numba would log 150,000 lines during a first compilation.
logging.getLogger("numba").setLevel(logging.INFO)

_log = logging.getLogger("inlink.compiling")

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": CHECKED}


class _FirstCompilation(Listener):
    """Logs once why a first start takes long."""

    logged = False

    def on_start(self, event: Event) -> None:
        """Log that a kernel is not in the cache. Functions of users are not logged."""
        module = getattr(event.data["dispatcher"].py_func, "__module__", "")
        if not self.logged and module.startswith("inlink."):
            self.logged = True
            _log.info("compiling loops to machine code, once on this machine; it takes up to a minute")

    def on_end(self, event: Event) -> None:
        """Log nothing."""


register("numba:compile", _FirstCompilation())  # type: ignore[no-untyped-call]


class _Cache(FunctionCache):
    """Numba's cache of machine code, made stale by a change to any kernel or to what kernels import.

    The machine code of a kernel contains that of the kernels it calls or has inlined, and the constants and record
    layouts that it uses. Numba compares only the size and time of the file that the kernel itself is in, so that after
    an upgrade it could load code of an earlier version. Here the text of all these files counts, and no times do.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        index = self._cache_file
        index._source_stamp = stamp()

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code for later processes. A full disk only means that they compile it again."""
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def compiled(function: Callable[..., Any], allocates: bool) -> Any:
    """Return Numba's dispatcher of a kernel: see :func:`inlink.base.jit.kernel`."""
    options = _OPTIONS if allocates else {**_OPTIONS, "_nrt": False}
    dispatcher = numba.njit(**options)(function)
    # RuntimeError: "cannot cache function: no locator available"; OSError: a package in an archive has no files
    with suppress(RuntimeError, OSError):
        dispatcher._cache = _Cache(function)
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """Return a function whose body Numba puts into each kernel that calls it."""
    return numba.njit(inline="always", **_OPTIONS)(function)


def _as_pointer(typing: Any, address: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return numba.types.voidptr(address), code


_pointer: Any = intrinsic(_as_pointer)


def _array_at(places: Any, number: int, dtype: Any) -> Any:
    return carray(_pointer(places[2 * number]), places[2 * number + 1], dtype)


def _checked_array_at(places: Any, number: int, dtype: Any) -> Any:
    size = places[2 * number + 1]
    array = carray(_pointer(places[2 * number]), size & ((1 << 48) - 1), dtype)
    if array.itemsize != size >> 48:
        raise IndexError("an array in a table of addresses has another dtype")
    return array


array_at: Any = numba.njit(**_OPTIONS)(_checked_array_at if CHECKED else _array_at)


def _check_line(array: Any, *, written: bool = False) -> None:
    if not (isinstance(array, numba.types.Array) and array.layout == "C" and array.ndim == 1):
        raise numba.TypingError("`array` must be a contiguous array of one dimension")
    if written and not array.mutable:
        raise numba.TypingError("`array` is read-only")


def _check_item(context: Any, builder: Any, array: Any, place: Any, item: Any, at: Any) -> None:
    """Write the code that raises IndexError if an item does not lie within an array."""
    place = context.cast(builder, place, at, numba.types.uint64)
    size = place.type(item.size if isinstance(item, numba.types.Record) else item.bitwidth // 8)
    length = builder.mul(array.nitems, array.itemsize)
    outside = builder.or_(
        builder.icmp_unsigned("<", length, size),
        builder.icmp_unsigned(">", place, builder.sub(length, size)),
    )
    with cgutils.if_unlikely(builder, outside):  # type: ignore[no-untyped-call]
        context.call_conv.return_user_exc(builder, IndexError, ("item is out of bounds",))


def _as_item(typing: Any, array: Any, at: Any, dtype: Any) -> Any:
    _check_line(array)
    item = dtype.dtype

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(array)(context, builder, arguments[0])
        model = context.data_model_manager[item]
        if CHECKED:
            _check_item(context, builder, made, arguments[1], item, at)
        place = builder.gep(builder.bitcast(made.data, cgutils.voidptr_t), [arguments[1]])
        place = builder.bitcast(place, model.get_data_type().as_pointer())
        return model.load_from_data_pointer(builder, place, align=1)

    return item(array, at, dtype), code


item_at: Any = intrinsic(_as_item)


def _as_prefetch(typing: Any, array: Any, at: Any) -> Any:
    _check_line(array)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        number = cgutils.int32_t
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        # The arguments: read access, all levels of the cache, data.
        builder.call(instruction, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return numba.types.void(array, at), code


prefetch: Any = intrinsic(_as_prefetch)


def _block(context: Any, builder: Any, array: Any, value: Any, at: Any, count: int) -> Any:
    """Write the code for the address of ``count`` elements of an array, from ``at`` on, as a vector."""
    made = context.make_array(array)(context, builder, value)
    if CHECKED:
        size = at.type(count)
        outside = builder.or_(
            builder.icmp_unsigned("<", made.nitems, size),
            builder.icmp_unsigned(">", at, builder.sub(made.nitems, size)),
        )
        with cgutils.if_unlikely(builder, outside):  # type: ignore[no-untyped-call]
            context.call_conv.return_user_exc(builder, IndexError, ("block is out of bounds",))
    kind = ir.VectorType(context.get_data_type(array.dtype), count)
    return builder.bitcast(builder.gep(made.data, [at]), kind.as_pointer())


def _as_larger(typing: Any, array: Any, at: Any, other: Any, place: Any, count: Any) -> Any:
    _check_line(array, written=True)
    _check_line(other)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = count.literal_value
        kept = _block(context, builder, array, arguments[0], arguments[1], size)
        new = _block(context, builder, other, arguments[2], arguments[3], size)
        left, right = builder.load(kept, align=1), builder.load(new, align=1)
        larger = builder.select(builder.icmp_unsigned(">", right, left), right, left)
        builder.store(larger, kept, align=1)
        return context.get_dummy_value()

    return numba.types.void(array, at, other, place, count), code


keep_larger: Any = intrinsic(prefer_literal=True)(_as_larger)


def _as_sum(typing: Any, array: Any, at: Any, other: Any, place: Any, lanes: Any) -> Any:
    _check_line(array, written=True)
    _check_line(other)

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total = _block(context, builder, array, arguments[0], arguments[1], 8)
        new = _block(context, builder, other, arguments[2], arguments[3], 8)
        bits = builder.bitcast(builder.trunc(arguments[4], cgutils.int8_t), ir.VectorType(ir.IntType(1), 8))
        value = builder.load(new, align=8)
        value = builder.select(bits, value, value.type(None))
        builder.store(builder.fadd(builder.load(total, align=8), value), total, align=8)
        return context.get_dummy_value()

    return numba.types.void(array, at, other, place, lanes), code


add_lanes: Any = intrinsic(_as_sum)
