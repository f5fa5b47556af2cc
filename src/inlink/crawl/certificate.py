"""Certify places of a crawl: the pages there keep their places, whatever is still to be fetched.

The ranks are those of the finished crawl, with teleports to its seeds, or to its trusted pages by their weights. They
are bounded by :mod:`inlink.reranking.bounds`.
"""

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import numpy as np

from inlink.base.table import counted
from inlink.crawl.arguments import MOST_ROWS, argument
from inlink.crawl.folder import local
from inlink.crawl.questions.whole import NO_BOUND
from inlink.crawl.settings import stored
from inlink.errors import InlinkError, ParameterError
from inlink.factors.trust import seed_pages, trusted_pages
from inlink.frontier.settings import Settings
from inlink.protocol import BoundedPage, Certificate
from inlink.rank.certain import FirstPlaces
from inlink.reranking.bounds import GrowingBounds, best_places, certain_within
from inlink.store.life import OPEN
from inlink.store.reader import known_pages

__all__ = ["CertificateWatch", "Certifier", "certificate_lines", "certify", "shortened"]

_REST = 9.0
"""Seconds without work for each second of CPU time, so that the bounds take a tenth of one processor."""

_PAUSE = 1.0
"""Seconds between two looks at the log."""

_SILENCE = 60.0
"""Seconds without a question after which the thread ends and its memory is free."""


def certificate_lines(certificate: Certificate) -> list[str]:
    """Return a certificate and its assumptions in three lines."""
    nodes = np.array([row.page for row in certificate.places], np.int64)
    places = FirstPlaces(nodes, np.array([row.certain for row in certificate.places], bool), math.inf)
    name = "trusted page" if certificate.trusted else "seed"
    targets = f"the only {name}" if certificate.targets == 1 else f"the {counted(certificate.targets, name)}"
    return [
        f"within {certificate.within:g} of all rank: {places.summary()}",
        f"outside of the {certificate.fetched:,} fetched pages is at most {certificate.outside:.3g} of all rank; "
        f"a page that is not known yet has at most {certificate.unseen:.3g}",
        f"the rank is PageRank with teleports to {targets}; with uniform teleports there is no bound. "
        "Assumptions: fetched pages keep their links, pages that failed or were excluded have none, "
        f"and no {name} is added",
    ]


def shortened(certificate: Certificate, count: int, within: float) -> Certificate:
    """Return a certificate of the first ``count`` of its places, with another ε."""
    lower, upper = (
        np.array([(row.lower, row.upper) for row in certificate.places], np.float64).reshape(-1, 2).T
    )
    certain = certain_within(lower, upper, certificate.beyond, within).tolist()
    rows = [
        msgspec.structs.replace(row, certain=sure)
        for row, sure in zip(certificate.places[:count], certain, strict=False)
    ]
    beyond = max(certificate.beyond, float(upper[count:].max(initial=0.0)))
    return msgspec.structs.replace(certificate, within=within, beyond=beyond, places=rows)


def _refuse_shard(settings: Settings) -> None:
    if settings.rules is not None and settings.rules.part is not None:
        raise ParameterError(NO_BOUND)


class Certifier:
    """Bounds of a crawl that another thread or process may be writing.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    count : int
        Number of places, 1 … 1,000.
    within : float
        ε, a share of all rank, 0 … 1.
    between : callable or None
        Called without arguments every few milliseconds of work. It may sleep, or raise an exception to end the work.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    inlink.errors.ParameterError
        If an argument is out of its range, or the crawl is a shard.
    """

    def __init__(
        self, folder: Path, count: int, within: float, between: Callable[[], None] | None = None
    ) -> None:
        self._count, self._within = argument("rows", count), argument("within", within)
        self._settings = stored(folder)
        _refuse_shard(self._settings)
        self._pages = known_pages(folder)
        # Rounding must stay far below ε.
        self._bounds = GrowingBounds(self._settings.damping, self._within / 1000, between)

    def look(self) -> Certificate:
        """Take in the new events, and return the certificate.

        Raises
        ------
        inlink.errors.ParameterError
            If the crawl has no seeds.
        inlink.errors.DamageError
            If the log is damaged.
        """
        self._pages.refresh()
        pages, settings, within = self._pages, self._settings, self._within
        visited, places = pages.crawled()
        is_open = np.isin(pages.states[: pages.num_pages], OPEN)
        is_open[visited] = False
        trusted = trusted_pages(pages) if settings.trust is not None else None
        teleport = np.zeros(pages.num_pages, np.float32)
        if trusted is None:
            teleport[seed_pages(pages)] = 1
        else:
            teleport[trusted.pages] = trusted.weights
        hosts = pages.hosts[: pages.num_pages] if settings.cross_domain_only else None
        bounds = self._bounds.update(pages.frames.log, visited, places, is_open, teleport, hosts)
        nodes, beyond = best_places(bounds, self._count)
        certain = certain_within(bounds.lower[nodes], bounds.upper[nodes], beyond, within).tolist()
        rows = [
            BoundedPage(
                place, page, pages.url(page), float(bounds.lower[page]), float(bounds.upper[page]), sure
            )
            for place, (page, sure) in enumerate(zip(nodes.tolist(), certain, strict=True), 1)
        ]
        return Certificate(
            within,
            bounds.outside,
            bounds.unseen,
            beyond,
            len(visited),
            int(is_open.sum()),
            int(np.count_nonzero(teleport)),
            trusted is not None,
            settings.damping,
            rows,
        )

    def has_news(self) -> bool:
        """Take in the new events; return whether there were any."""
        before = self._pages.frames.end
        self._pages.refresh()
        return self._pages.frames.end != before

    def close(self) -> None:
        """Close the files."""
        self._pages.close()


def certify(folder: str | os.PathLike[str], count: int = 10, within: float = 0.0) -> Certificate:
    """Return which of a crawl's best places no page that is still unknown can change.

    The call reads all links of the crawl some dozens of times. Another process may be writing the crawl.

    Parameters
    ----------
    folder : path-like
        The crawl's folder.
    count : int
        Number of places, 1 … 1,000.
    within : float
        ε, a share of all rank, 0 … 1: how much a change may matter.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl.
    inlink.errors.ParameterError
        If an argument is out of its range, the crawl has no seeds, or it is a shard.
    inlink.errors.DamageError
        If the log is damaged.
    """
    with closing(Certifier(local(folder), count, within)) as certifier:
        return certifier.look()


class CertificateWatch:
    """Certificates of a crawl. It costs nothing until the first question.

    Parameters
    ----------
    folder : Path
        The crawl's folder, which another thread or process may be writing.

    Raises
    ------
    inlink.errors.ParameterError
        If the crawl is a shard.
    """

    def __init__(self, folder: Path) -> None:
        _refuse_shard(stored(folder))
        self._folder = folder
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._asked = self._used = 0.0
        self._certificate: Certificate | None = None
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
        return None if self._certificate is None else shortened(self._certificate, count, within)

    def stop(self) -> None:
        """End the thread. No question may follow."""
        self._over.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _work(self) -> None:
        self._used = time.thread_time()
        try:
            with closing(Certifier(self._folder, MOST_ROWS, 0.0, self._between)) as certifier:
                is_new = True
                while time.monotonic() - self._asked < _SILENCE:
                    if certifier.has_news() or is_new:
                        # Without seeds there is no certificate.
                        with suppress(ParameterError):
                            self._certificate = certifier.look()
                    is_new = False
                    if self._over.wait(_PAUSE):
                        return
        except _ClosedError:
            pass
        except InlinkError as error:
            self._fault = error

    def _between(self) -> None:
        if self._over.wait(_REST * (time.thread_time() - self._used)):
            raise _ClosedError
        self._used = time.thread_time()


class _ClosedError(Exception):
    """The crawl was closed."""
