"""Importing many modules at once, at the least cost."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_IDLE = "OPENBLAS_THREAD_TIMEOUT"


@contextmanager
def quick_imports() -> Iterator[None]:
    """A context for imports: no garbage collection, and threads of NumPy's BLAS that sleep as soon as they are idle.

    The objects of modules stay until the end, so a collection meanwhile finds nothing. In a Scrapy process, the one
    that our own modules cause takes 55 ms of CPU time.

    OpenBLAS starts a thread for each further processor when NumPy is imported. Each of them waits for work in a loop of
    2²⁶ cycles, about 30 ms, before it sleeps. The variable makes this 2⁴ cycles. OpenBLAS reads it at the import only,
    so it is removed afterwards. Nothing changes if NumPy was imported before.
    """
    collecting, before = gc.isenabled(), os.environ.get(_IDLE)
    gc.disable()
    if before is None:
        os.environ[_IDLE] = "4"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_IDLE, None)
        if collecting:
            gc.enable()
