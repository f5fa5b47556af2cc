"""End a run of ``inlink crawl`` as soon as its best places are certain."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from inlink.crawl.certificate import Certifier

__all__ = ["Stopping"]

_POLL = 0.5
"""Seconds between two looks at the number of pages."""

_LEAST_GROWTH = 10
_GROWTH = 0.02
"""The bounds are computed again when the crawl has grown by this share, and by ``_LEAST_GROWTH`` answers."""

_REST = 9.0
"""Seconds without work for each second of work, so that the bounds take a tenth of one processor."""


class Stopping:
    """Computes the bounds of a crawl from its folder, in a thread, while the crawl goes on.

    Parameters
    ----------
    folder : Path
        The crawl's folder. It must exist when :meth:`watch` begins.
    count : int
        Number of places, 1 … 1,000.
    within : float
        ε, a share of all rank: see :class:`inlink.protocol.Certificate`.
    """

    def __init__(self, folder: Path, count: int, within: float) -> None:
        self.folder, self.count, self.within = folder, count, within
        self._over = threading.Event()

    def watch(self, answers: Callable[[], int]) -> bool:
        """Block until all places are certain, and return True. Return False once :meth:`stop` is called.

        Parameters
        ----------
        answers : callable
            Returns the number of answers in this run so far.

        Raises
        ------
        inlink.errors.InlinkError
            If the crawl cannot be read.
        """
        certifier, seen = None, 0
        try:
            while not self._over.wait(_POLL):
                if answers() < seen + max(_LEAST_GROWTH, _GROWTH * seen):
                    continue
                seen, began = answers(), time.monotonic()
                if certifier is None:
                    certifier = Certifier(self.folder, self.count, self.within, self._between)
                if certifier.look().holds:
                    return True
                self._over.wait(_REST * (time.monotonic() - began))
        except _OverError:
            pass
        finally:
            if certifier is not None:
                certifier.close()
        return False

    def stop(self) -> None:
        """End :meth:`watch` from another thread. It returns as soon as the events at hand are read."""
        self._over.set()

    def _between(self) -> None:
        if self._over.is_set():
            raise _OverError


class _OverError(Exception):
    """The run has ended."""
