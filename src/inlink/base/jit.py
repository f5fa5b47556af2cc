"""The only module that imports Numba: how kernels are compiled and cached, and how work is cut up for threads.

A kernel is a plain loop over arrays. It lives in a ``kernels`` module and is decorated with :func:`kernel`. A piece of
a loop that several kernels share is decorated with :func:`inlined`.

What was measured, and led to this design (``docs/performance.md`` has the figures):

- All indices are unsigned. For a signed index Numba adds a wrap-around test and a sign extension to every gather,
  which costs up to 1.7 times the sweep. The sum of a ``uint64`` and a signed literal would be a float, so kernels add
  :data:`U1`, not ``1``.
- Kernels release the GIL and run on a plain pool of Python threads. That is as fast as ``parallel=True`` and compiles
  five times faster. No threading layer can abort under a server or die after a fork.
- A call from one kernel to another takes about 30 ns, 2.6 times the sum of a typical row. A function that is
  :func:`inlined` costs nothing, and its results have the same bits as the same lines written out.
- An array as an argument costs 55 ns, an array in a named tuple 200 ns. A sweep does not notice, so kernels take what
  belongs together as a named tuple. They unpack it before their loops: ``rows.nodes[k]`` within a loop counts
  references, up to five times the sweep. Kernels that run for a few microseconds on a dozen columns take one table
  of :func:`addresses` instead, and get each column from it by :func:`array_at`.
"""

import logging
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import numba
import numpy as np
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.event import Event, Listener, register
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from inlink.base.arrays import AnyArray, UInt64Array

__all__ = [
    "U0",
    "U1",
    "Index",
    "addresses",
    "array_at",
    "chunks_by_arcs",
    "chunks_evenly",
    "inlined",
    "item_at",
    "kernel",
    "num_threads",
    "on_threads",
    "one_blas_thread",
]

# Where everything is logged at DEBUG, as Scrapy does, Numba would log 150,000 lines during a first compilation.
logging.getLogger("numba").setLevel(logging.INFO)

_log = logging.getLogger("inlink.compiling")

F = TypeVar("F", bound=Callable[..., Any])

# an index in a kernel: always a uint64, which type checkers take for an int where it comes from range()
Index = np.uint64 | int

U0 = np.uint64(0)
U1 = np.uint64(1)

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}


class _FirstCompilation(Listener):
    """Logs once why a first start takes long."""

    logged = False

    def on_start(self, event: Event) -> None:
        """Log that a kernel is not in the cache. Functions of the user's own are not inlink's to tell of."""
        module = getattr(event.data["dispatcher"].py_func, "__module__", "")
        if not self.logged and module.startswith("inlink."):
            self.logged = True
            _log.info("compiling loops to machine code, once on this machine; it takes up to a minute")

    def on_end(self, event: Event) -> None:
        """Log nothing."""


register("numba:compile", _FirstCompilation())  # type: ignore[no-untyped-call]


# the modules that a kernels module takes constants and record layouts from
_IMPORTED = re.compile(rb"^from inlink\.([\w.]+) import (\w+)", re.M)


def _sources() -> list[Path]:
    """The files of all kernels, those that they import from, and this module."""
    package = Path(__file__).parents[1]
    files = {Path(__file__), *package.rglob("kernels/*.py"), *package.rglob("kernels.py")}
    for module, name in [found for path in files for found in _IMPORTED.findall(path.read_bytes())]:
        place = package.joinpath(*module.decode().split("."))
        files |= {place.with_suffix(".py"), place / f"{name.decode()}.py"}
    return sorted(path for path in files if path.is_file())


@cache
def _all_kernels() -> str:
    """A checksum of :func:`_sources`."""
    return sha256(b"\0".join(path.read_bytes() for path in _sources())).hexdigest()


class _Cache(FunctionCache):
    """Numba's cache of machine code, made stale by a change to any kernel or to what kernels import.

    The machine code of a kernel contains that of the kernels it calls or has inlined, and the constants and record
    layouts that it uses. Numba compares only the size and time of the file that the kernel itself is in, so that after
    an upgrade it could load code of an earlier version. Here the text of all these files counts, and no times do.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        index = self._cache_file
        index._source_stamp = _all_kernels()

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code for later processes. A full disk only means that they compile it again."""
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


@overload
def kernel(function: F) -> F: ...


@overload
def kernel(*, allocates: bool) -> Callable[[F], F]: ...


def kernel(function: F | None = None, *, allocates: bool = True) -> F | Callable[[F], F]:
    """Compile a function of arrays and scalars at its first call, and keep the machine code for later processes.

    If no cache folder can be written (package and home are both read-only), the code is compiled in each process.

    Parameters
    ----------
    function : callable
        The loop.
    allocates : bool
        False for a kernel that makes no arrays. Numba then counts no references in it. By default it counts those to
        the arguments of calls and within branches, which threads that share an array wait for.
    """
    if function is None:
        return lambda loop: _compiled(loop, allocates)
    return _compiled(function, allocates)


def _compiled(function: F, allocates: bool) -> F:
    options = _OPTIONS if allocates else {**_OPTIONS, "_nrt": False}
    compiled = numba.njit(**options)(function)
    # RuntimeError: "cannot cache function: no locator available"; OSError: a package in an archive has no files
    with suppress(RuntimeError, OSError):
        compiled._cache = _Cache(function)
    return cast(F, compiled)


def inlined(function: F) -> F:
    """Put the body of a function into each kernel that calls it; for short pieces of loops that kernels share.

    Write no loop within an ``if`` of such a function, unless the kernels that call it allocate nothing: Numba would
    count references to the arrays at each call.
    """
    return cast(F, numba.njit(inline="always", **_OPTIONS)(function))


def addresses(arrays: Sequence[AnyArray]) -> UInt64Array:
    """A table of the address and the length of each array, in turn: uint64[2 · n].

    Keep the arrays as long as the table, and make a new table when an array is replaced.
    """
    pairs = [(one.ctypes.data, len(one)) for one in arrays]
    return np.array(pairs, np.uint64).ravel()


def _as_pointer(typing: Any, address: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return numba.types.voidptr(address), code


_pointer: Any = intrinsic(_as_pointer)


@kernel
def array_at(places: UInt64Array, number: int, dtype: Any) -> Any:
    """The array with this number in a table of :func:`addresses`; for kernels."""
    return carray(_pointer(places[2 * number]), places[2 * number + 1], dtype)


def _as_item(typing: Any, array: Any, at: Any, dtype: Any) -> Any:
    item = dtype.dtype
    if not (isinstance(array, numba.types.Array) and array.layout == "C" and array.ndim == 1):
        raise numba.TypingError("`array` must be a contiguous array of one dimension")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(array)(context, builder, arguments[0]).data
        place = builder.gep(builder.bitcast(data, cgutils.voidptr_t), [arguments[1]])
        model = context.data_model_manager[item]
        place = builder.bitcast(place, model.get_data_type().as_pointer())
        return model.load_from_data_pointer(builder, place, align=1)

    return item(array, at, dtype), code


item_at: Any = intrinsic(_as_item)
"""``item_at(array, at, dtype)``: the number or record that begins at byte ``at`` of a uint8 array; for kernels.

One load. ``array[at : at + size].view(dtype)[0]`` means the same, but counts references, which takes eight times as
long. A record is read in place, so use it while the array is there. Nothing is checked.
"""


def num_threads(threads: int | None = None) -> int:
    """The number of threads to use: the argument, else ``INLINK_THREADS``, else the processors of this process.

    Raises
    ------
    inlink.errors.ParameterError
        If the argument or the variable is not an integer above 0.
    """
    from inlink.errors import ParameterError

    given: object = threads if threads is not None else os.environ.get("INLINK_THREADS")
    if given is None or given == "":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    try:
        count = int(cast(Any, given))
    except (TypeError, ValueError):
        count = 0
    if count < 1:
        raise ParameterError(f"the number of threads must be a whole number above 0, not {given!r}")
    return count


def chunks_evenly(length: int, count: int) -> UInt64Array:
    """Boundaries uint64[count + 1] that cut ``range(length)`` into equal parts."""
    return np.linspace(0, length, count + 1).astype(np.uint64)


def chunks_by_arcs(offsets: UInt64Array, count: int) -> UInt64Array:
    """Boundaries uint64[count + 1] that cut rows into parts of about equal work. The work of a row is its arcs + 1.

    If hubs come first, parts with the same number of nodes would leave all the work to one thread.
    """
    nodes = len(offsets) - 1
    work = int(offsets[-1]) + nodes
    wanted = [work * part // count for part in range(count + 1)]
    # offsets[i] + i is increasing, so it can be bisected without an array of it.
    bounds = np.empty(count + 1, np.uint64)
    for part, goal in enumerate(wanted):
        low, high = 0, nodes
        while low < high:
            middle = (low + high) // 2
            if int(offsets[middle]) + middle < goal:
                low = middle + 1
            else:
                high = middle
        bounds[part] = low
    bounds[0], bounds[-1] = 0, nodes
    return bounds


def on_threads(work: Callable[..., Any], bounds: UInt64Array, pool: ThreadPoolExecutor | None) -> list[Any]:
    """Call ``work(low, high)`` for each chunk, on the pool if there is a pool and more than one chunk.

    The results are in the order of the chunks, so that their sum does not depend on timing.
    """
    pairs: Sequence[tuple[np.uint64, np.uint64]] = list(pairwise(bounds))
    if pool is None or len(pairs) == 1:
        return [work(low, high) for low, high in pairs]
    return [future.result() for future in [pool.submit(work, low, high) for low, high in pairs]]


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which BLAS, as NumPy and SciPy use it, runs on the calling thread.

    The threads of BLAS spin while they wait for work. Between sweeps that use all processors they gain nothing and slow
    the sweeps down: a norm of a million numbers took 80 times as long on a busy machine. Entering the context takes
    1 ms. It applies only to libraries that are loaded already, so import them before.
    """
    from threadpoolctl import threadpool_limits

    return cast("AbstractContextManager[object]", threadpool_limits(1, "blas"))
