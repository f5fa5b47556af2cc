"""The one gate to Numba: how kernels are compiled, cached and cut into chunks for threads.

A kernel is a plain loop over arrays in a ``kernels`` module, decorated with :func:`kernel`. Nothing else in
inlink imports Numba.

Facts that settled this module (``docs/performance.md`` has the figures):

- Indices are unsigned throughout. A signed index costs Numba a wrap-around test and a sign extension for every
  gather, up to 1.7 times the sweep. Mixing ``uint64`` with a signed literal would make the sum a float, so
  kernels add :data:`U1`, not ``1``.
- Kernels release the GIL and run on a plain pool of Python threads: as fast as ``parallel=True``, compiled in a
  fifth of the time, and with no threading layer that aborts under a server or dies after a fork.
- An array costs 55 ns as an argument, in a named tuple 200. Loops that run a few microseconds at a time, over a dozen
  columns, get one table of :func:`addresses` instead, and take each column from it by :func:`array_at`.
"""

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils
from numba.core.event import Event, Listener, register
from numba.extending import intrinsic
from numba.np.numpy_support import carray

__all__ = [
    "U0",
    "U1",
    "addresses",
    "array_at",
    "chunks_by_arcs",
    "chunks_evenly",
    "kernel",
    "num_threads",
    "on_threads",
    "one_blas_thread",
]

# where all is logged at DEBUG, as Scrapy does, a first compilation would say 150,000 lines
logging.getLogger("numba").setLevel(logging.INFO)

_log = logging.getLogger("inlink.compiling")

F = TypeVar("F", bound=Callable[..., Any])

U0 = np.uint64(0)
U1 = np.uint64(1)


class _First(Listener):
    """Says once what a first start waits for."""

    told = False

    def on_start(self, event: Event) -> None:
        """A kernel was not in the cache."""
        if not self.told:
            self.told = True
            _log.info("compiling loops to machine code, once on this machine; it takes up to a minute")

    def on_end(self, event: Event) -> None:
        """Nothing to say."""


register("numba:compile", _First())  # type: ignore[no-untyped-call]


def kernel(function: F) -> F:
    """Compile a function of arrays and scalars at its first call, and keep the machine code for later processes.

    Where no cache folder can be written (package and home both read-only) the code is compiled anew in each
    process instead of failing at import.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # "cannot cache function: no locator available"
        compiled = numba.njit(**options)(function)
    return cast(F, compiled)


def addresses(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
    """Where some arrays are, uint64[2 · n]: the address and the length of each in turn.

    Whoever keeps it keeps the arrays too, and makes it anew when one of them is replaced.
    """
    pairs = [(one.ctypes.data, len(one)) for one in arrays]
    return np.array(pairs, np.uint64).ravel()


def _as_pointer(typing: Any, address: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return numba.types.voidptr(address), code


_pointer: Any = intrinsic(_as_pointer)


@kernel
def array_at(places: npt.NDArray[np.uint64], number: int, dtype: Any) -> Any:
    """The array of that number in a table of :func:`addresses`, within a kernel."""
    return carray(_pointer(places[2 * number]), places[2 * number + 1], dtype)


def num_threads(threads: int | None = None) -> int:
    """How many threads to use: the argument, else ``INLINK_THREADS``, else the processors this process may use.

    Raises
    ------
    inlink.errors.ParameterError
        If the argument or the variable is not a whole number above 0.
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


def chunks_evenly(length: int, count: int) -> npt.NDArray[np.uint64]:
    """Boundaries uint64[count + 1] that cut ``range(length)`` into equal parts."""
    return np.linspace(0, length, count + 1).astype(np.uint64)


def chunks_by_arcs(offsets: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    """Boundaries uint64[count + 1] that cut rows into parts of about equal work, a row's work being its arcs + 1.

    Balanced by arcs and not by nodes: with hubs first, equal numbers of nodes would leave one thread all the work.
    """
    nodes = len(offsets) - 1
    work = int(offsets[-1]) + nodes
    wanted = [work * part // count for part in range(count + 1)]
    # offsets[i] + i is increasing; bisect it without making it
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


def on_threads(
    work: Callable[..., Any], bounds: npt.NDArray[np.uint64], pool: ThreadPoolExecutor | None
) -> list[Any]:
    """Call ``work(low, high)`` for each chunk, on the pool if there is one and more than one chunk.

    The results come in the order of the chunks, so that what is summed from them does not depend on timing.
    """
    pairs: Sequence[tuple[np.uint64, np.uint64]] = list(pairwise(bounds))
    if pool is None or len(pairs) == 1:
        return [work(low, high) for low, high in pairs]
    return [future.result() for future in [pool.submit(work, low, high) for low, high in pairs]]


def one_blas_thread() -> AbstractContextManager[object]:
    """Within it, what NumPy and SciPy leave to BLAS runs on the calling thread.

    BLAS's threads spin while they wait for work. Between sweeps that use all processors they win nothing and hold
    the sweeps up: a norm of a million numbers took 80 times as long where others worked too. It costs 1 ms, and
    sees only libraries that are loaded already: import what is needed before.
    """
    from threadpoolctl import threadpool_limits

    return cast("AbstractContextManager[object]", threadpool_limits(1, "blas"))
