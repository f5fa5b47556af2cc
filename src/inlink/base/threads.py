"""Pools of threads for systems that may start few or none."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from inlink.errors import ParameterError

P = ParamSpec("P")
T = TypeVar("T")


class Threads(ThreadPoolExecutor):
    """A pool of at most ``count`` threads. If the system starts none, the calling thread does the work."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._is_alone = False
        try:
            super().submit(int)
        except RuntimeError:
            self._is_alone = True

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin work on a thread.

        Raises
        ------
        inlink.errors.ParameterError
            If the system starts some threads, and not one more.
        """
        if self._is_alone:
            done: Future[T] = Future()
            done.set_result(fn(*args, **kwargs))
            return done
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            raise ParameterError(
                "the system starts no further thread: use fewer (`threads`, INLINK_THREADS=1), or raise the limits of "
                "memory and processes (ulimit -v, ulimit -u)"
            ) from None
