"""The gate to machine code: how kernels are declared, and how work is cut up for threads.

A kernel is a plain loop over arrays. It lives in a ``kernels`` module and is decorated with :func:`kernel`. A piece of
a loop that several kernels share is decorated with :func:`inlined`.

A wheel has machine code of all kernels that inlink calls (:mod:`inlink.base.machinecode`). Numba is then imported only
when a kernel gets arguments of other types. In a source tree Numba compiles kernels at their first call
(:mod:`inlink.base.compiling`).

Measurements that led to this design:

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

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from importlib import import_module
from itertools import pairwise
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np

from inlink.base import machinecode
from inlink.base.arrays import AnyArray, UInt64Array
from inlink.base.machinecode import CHECKED, stamp

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

__all__ = [
    "CHECKED",
    "U0",
    "U1",
    "Index",
    "Late",
    "add_lanes",
    "addresses",
    "array_at",
    "chunks_by_arcs",
    "inlined",
    "item_at",
    "keep_larger",
    "kernel",
    "late_of",
    "num_threads",
    "on_threads",
    "one_blas_thread",
    "prefetch",
    "stamp",
]

F = TypeVar("F", bound=Callable[..., Any])

# An index in a kernel. It is always a uint64; type checkers see an int if it comes from range().
Index = np.uint64 | int

U0 = np.uint64(0)
U1 = np.uint64(1)


class Late:
    """A function that Numba compiles when it is first needed, while inlink runs without Numba.

    Attributes
    ----------
    python : function
        The function as it was written.
    compile : function
        Makes Numba's object from a copy of the function that refers to other such objects.
    """

    def __init__(self, python: Callable[..., Any], compile: Callable[[Callable[..., Any]], Any]) -> None:
        self.python, self.compile = python, compile

    def __call__(self, *arguments: Any) -> Any:
        """Import Numba, compile the function, and call it."""
        _compiling(self.python.__qualname__)
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """Numba's object for the function."""
        return self.compile(self._with_compiled_globals())

    def _with_compiled_globals(self) -> Callable[..., Any]:
        """Return a copy of the function that finds Numba's functions in place of its module's stand-ins."""
        function, module = self.python, self.python.__module__
        names = _globals.get(module)
        if names is None:
            names = _globals[module] = dict(function.__globals__)
            for name, value in function.__globals__.items():
                late = late_of(value)
                if late is not None:
                    names[name] = late.compiled
        copy = FunctionType(
            function.__code__, names, function.__name__, function.__defaults__, function.__closure__
        )
        copy.__module__, copy.__qualname__ = module, function.__qualname__
        return copy


def _compiling(kernel: str = "") -> Any:
    """Return :mod:`inlink.base.compiling`, which imports Numba.

    Parameters
    ----------
    kernel : str
        Name of the kernel that needs it, for the message; empty if all do.

    Raises
    ------
    inlink.errors.MissingExtraError
        If Numba is not installed.
    """
    try:
        from inlink.base import compiling
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        from inlink.errors import MissingExtraError

        if not kernel:
            raise MissingExtraError(machinecode.missing) from None
        raise MissingExtraError(
            f"there is no machine code of `{kernel}` for arguments of these types, so Numba has to compile it: "
            "pip install 'inlink[jit]'"
        ) from None
    return compiling


_late: dict[str, Late] = {}
_stand_ins: dict[int, Late] = {}
_globals: dict[str, dict[str, Any]] = {}


def late_of(value: object) -> Late | None:
    """Return the function that Numba compiles instead of a stand-in in a module's globals; None for other values."""
    return value if isinstance(value, Late) else _stand_ins.get(id(value))


def _call_late(place: str, *arguments: Any) -> Any:
    return _late[place](*arguments)


def _refuse_subinterpreter() -> None:
    """Raise an error in a subinterpreter: Numba waits there for ever, and machine code has one state per process."""
    with suppress(ImportError):
        interpreters = import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
        if interpreters.get_current() != interpreters.get_main():
            from inlink.errors import InlinkError

            raise InlinkError(
                "inlink cannot run in a subinterpreter of Python: use a thread or a process instead (with mod_wsgi: "
                "WSGIApplicationGroup %{GLOBAL})"
            )


_refuse_subinterpreter()
_machine_code = machinecode.load(lambda place: partial(_call_late, place))


@overload
def kernel(function: F) -> F: ...


@overload
def kernel(*, allocates: bool) -> Callable[[F], F]: ...


def kernel(function: F | None = None, *, allocates: bool = True) -> F | Callable[[F], F]:
    """Make machine code of a function of arrays and scalars: that of the wheel, or else by Numba at the first call.

    Numba keeps the code for later processes. If no cache folder can be written (package and home are both read-only),
    the code is compiled in each process.

    Parameters
    ----------
    function : callable
        The loop. It takes its arguments by place, and returns a scalar, a new array, or a tuple of these.
    allocates : bool
        False for a kernel that makes no arrays. Numba then counts no references in it. By default it counts those to
        the arguments of calls and within branches, which threads that share an array wait for.
    """
    if function is None:
        return lambda loop: _compiled(loop, allocates)
    return _compiled(function, allocates)


def _compiled(function: F, allocates: bool) -> F:
    if not _machine_code:
        return cast(F, _compiling().compiled(function, allocates))
    late = Late(function, partial(_compile, allocates))
    place = f"{function.__module__}:{function.__qualname__}"
    made = _machine_code.get(place)
    if made is None:
        return cast(F, late)
    _late[place] = _stand_ins[id(made)] = late
    return cast(F, made)


def _compile(allocates: bool, function: Callable[..., Any]) -> Any:
    return _compiling().compiled(function, allocates)


def inlined(function: F) -> F:
    """Put the body of a function into each kernel that calls it; for short pieces of loops that kernels share.

    Write no loop within an ``if`` of such a function, unless the kernels that call it allocate nothing: Numba would
    count references to the arrays at each call.
    """
    if not _machine_code:
        return cast(F, _compiling().inlined(function))
    _stand_ins[id(function)] = Late(function, _compile_inlined)
    return function


def _compile_inlined(function: Callable[..., Any]) -> Any:
    return _compiling().inlined(function)


def addresses(arrays: Sequence[AnyArray]) -> UInt64Array:
    """A table of the address and the length of each array, in turn: uint64[2 · n].

    Keep the arrays as long as the table, and make a new table when an array is replaced.
    """
    # The size of an element lets a kernel that checks bounds compare it with the dtype that it reads.
    pairs = [(array.ctypes.data, len(array) | (array.itemsize << 48 if CHECKED else 0)) for array in arrays]
    return np.array(pairs, np.uint64).ravel()


def _in_kernels(name: str) -> Any:
    """Return a function of :mod:`inlink.base.compiling` that only kernels can call, or a substitute for it."""
    if not _machine_code:
        return getattr(_compiling(), name)

    def stand_in(*_: Any) -> Any:
        raise TypeError(f"only a kernel can call `{name}`")

    def compile(_: Callable[..., Any]) -> Any:
        return getattr(_compiling(), name)

    return Late(stand_in, compile)


array_at: Any = _in_kernels("array_at")
"""``array_at(places, number, dtype)``: the array with this number in a table of :func:`addresses`; for kernels."""

item_at: Any = _in_kernels("item_at")
"""``item_at(array, at, dtype)``: the number or record that begins at byte ``at`` of a uint8 array; for kernels.

One load. ``array[at : at + size].view(dtype)[0]`` means the same, but counts references, which takes eight times as
long. A record is read in place, so use it while the array is there. The place is checked only if :data:`CHECKED`.
"""

prefetch: Any = _in_kernels("prefetch")
"""``prefetch(array, at)``: ask the processor to load the element at ``at`` into its caches; for kernels.

Call it some hundred nanoseconds before the element is read, if elements lie far apart. It checks nothing and does not
wait. A place outside of the array does no harm.
"""

add_lanes: Any = _in_kernels("add_lanes")
"""``add_lanes(array, at, other, place, lanes)``: add numbers of one float64 array to those of another; for kernels.

``array[at + k] += other[place + k]`` for each k < 8 whose bit is set in the uint64 ``lanes``. Both arrays must have
eight numbers there. Numba does not vectorise such a loop, because the arrays could overlap.
"""

keep_larger: Any = _in_kernels("keep_larger")
"""``keep_larger(array, at, other, place, count)``: raise bytes of one uint8 array to those of another; for kernels.

``array[at + k] = max(array[at + k], other[place + k])`` for each k < ``count``, a literal number.
"""


def num_threads(threads: int | None = None) -> int:
    """The number of threads to use: the argument, else ``INLINK_THREADS``, else the processors of this process.

    Raises
    ------
    inlink.errors.ParameterError
        If the argument or the variable is not an integer above 0.
    """
    from inlink.errors import ParameterError

    wanted: object = threads if threads is not None else os.environ.get("INLINK_THREADS")
    if wanted is None or wanted == "":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    try:
        count = int(cast(Any, wanted))
    except (TypeError, ValueError):
        count = 0
    if count < 1:
        raise ParameterError(f"the number of threads must be a whole number above 0, not {wanted!r}")
    return count


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


def on_threads(work: Callable[..., Any], bounds: UInt64Array, pool: "ThreadPoolExecutor | None") -> list[Any]:
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
