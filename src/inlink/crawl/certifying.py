"""Keep the certificate of a growing crawl up to date, in a thread, for as long as somebody asks for it."""

import threading
import time
from pathlib import Path

from inlink.crawl.arguments import MOST_ROWS, argument
from inlink.crawl.certificate import Certifier, shortened
from inlink.errors import InlinkError, ParameterError
from inlink.protocol import Certificate

__all__ = ["CertificateWatch"]

_REST = 9.0
"""Seconds without work for each second of CPU time, so that the bounds take a tenth of one processor."""

_PAUSE = 1.0
"""Seconds between two looks at the log."""

_SILENCE = 60.0
"""Seconds without a question after which the thread ends and its memory is free."""


class CertificateWatch:
    """Certificates of a crawl. It costs nothing until the first question.

    Parameters
    ----------
    folder : Path
        The crawl's folder, which another thread or process may be writing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._asked = self._used = 0.0
        self._found: Certificate | None = None
        self._fault: InlinkError | None = None

    def latest(self, count: int, within: float) -> Certificate | None:
        """Return the last certificate; None if none has been computed yet, or the crawl has no seeds.

        Later events cannot end the certainty of a place, unless seeds are added.

        Parameters
        ----------
        count : int
            Number of places, 1 … 1,000.
        within : float
            ε, a share of all rank, 0 … 1.

        Raises
        ------
        inlink.errors.ParameterError
            If an argument is out of its range.
        inlink.errors.InlinkError
            If the crawl could not be read since the last question.
        """
        count, within = argument("rows", count), argument("within", within)
        self._asked = time.monotonic()
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="inlink-certificate", daemon=True)
            self._thread.start()
        return None if self._found is None else shortened(self._found, count, within)

    def stop(self) -> None:
        """End the thread. No question may follow."""
        self._over.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        certifier, seen = None, -1
        self._used = time.thread_time()
        try:
            certifier = Certifier(self._folder, MOST_ROWS, 0.0, self._between)
            while time.monotonic() - self._asked < _SILENCE:
                certifier.refresh()
                if certifier.end != seen:
                    seen = certifier.end
                    self._found = self._look(certifier)
                if self._over.wait(_PAUSE):
                    return
        except _ClosedError:
            pass
        except InlinkError as error:
            self._fault = error
        finally:
            if certifier is not None:
                certifier.close()

    def _look(self, certifier: Certifier) -> Certificate | None:
        try:
            return certifier.look()
        except ParameterError:
            # There are no seeds yet.
            return None

    def _between(self) -> None:
        if self._over.wait(_REST * (time.thread_time() - self._used)):
            raise _ClosedError
        self._used = time.thread_time()


class _ClosedError(Exception):
    """The crawl was closed."""
