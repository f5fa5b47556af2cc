"""Certify places of a crawl: the pages there keep their places, whatever is still to be fetched.

The ranks are those of the finished crawl, with teleports to its seeds, or to its trusted pages by their weights. They
are bounded by :mod:`inlink.reranking.bounds`.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from inlink.crawl.arguments import argument
from inlink.crawl.folder import local
from inlink.crawl.settings import stored
from inlink.factors.trust import seed_pages, trusted_pages
from inlink.frontier.settings import Settings
from inlink.protocol import BoundedPage, Certificate
from inlink.rank.certain import FirstPlaces
from inlink.reranking.bounds import GrowingBounds, best_places, certain_within
from inlink.store.life import OPEN
from inlink.store.pages import Pages
from inlink.store.reader import Reader

__all__ = ["Certifier", "certificate_lines", "certify", "shortened"]


def certificate_lines(found: Certificate) -> list[str]:
    """Return a certificate and its assumptions in three lines."""
    nodes = np.array([row.page for row in found.places], np.int64)
    places = FirstPlaces(nodes, np.array([row.certain for row in found.places], bool), math.inf)
    name = "trusted page" if found.trusted else "seed"
    targets = f"the only {name}" if found.targets == 1 else f"the {found.targets:,} {name}s"
    return [
        f"within {found.within:g} of all rank: {places.summary()}",
        f"outside of the {found.fetched:,} fetched pages is at most {found.outside:.3g} of all rank; "
        f"a page that is not known yet has at most {found.unseen:.3g}",
        f"the rank is PageRank with teleports to {targets}; with uniform teleports there is no bound. "
        "Assumptions: fetched pages keep their links, pages that failed or were excluded have none, "
        f"and no {name} is added",
    ]


def shortened(found: Certificate, count: int, within: float) -> Certificate:
    """Return a certificate of the first ``count`` of its places, with another ε."""
    lower, upper = np.array([(row.lower, row.upper) for row in found.places], np.float64).reshape(-1, 2).T
    certain = certain_within(lower, upper, found.beyond, within).tolist()
    rows = [
        msgspec.structs.replace(row, certain=sure)
        for row, sure in zip(found.places[:count], certain, strict=False)
    ]
    beyond = max(found.beyond, float(upper[count:].max(initial=0.0)))
    return msgspec.structs.replace(found, within=within, beyond=beyond, places=rows)


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
        If an argument is out of its range.
    """

    def __init__(
        self, folder: Path, count: int, within: float, between: Callable[[], None] | None = None
    ) -> None:
        self._count, self._within = argument("rows", count), argument("within", within)
        self._settings = stored(folder)
        self._reader = Reader(folder)
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
        self.refresh()
        return _certificate(self._reader.pages, self._settings, self._bounds, self._count, self._within)

    def refresh(self) -> None:
        """Take in the new events."""
        self._reader.refresh()

    @property
    def end(self) -> int:
        """The byte after the last event that was taken in."""
        return self._reader.end

    def close(self) -> None:
        """Close the files."""
        self._reader.close()


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
        If an argument is out of its range, or the crawl has no seeds.
    inlink.errors.DamageError
        If the log is damaged.
    """
    certifier = Certifier(local(folder), count, within)
    try:
        return certifier.look()
    finally:
        certifier.close()


def _certificate(
    pages: Pages, settings: Settings, bounds: GrowingBounds, count: int, within: float
) -> Certificate:
    visited, places = pages.crawled()
    states = pages.states[: pages.num_pages]
    is_open = np.isin(states, OPEN)
    is_open[visited] = False
    trusted = trusted_pages(pages) if settings.trust is not None else None
    teleport = np.zeros(pages.num_pages, np.float32)
    if trusted is None:
        teleport[seed_pages(pages)] = 1
    else:
        teleport[trusted.pages] = trusted.weights
    hosts = pages.hosts[: pages.num_pages] if settings.cross_domain_only else None
    found = bounds.update(pages.log, visited, places, is_open, teleport, hosts)
    nodes, beyond = best_places(found, count)
    certain = certain_within(found.lower[nodes], found.upper[nodes], beyond, within).tolist()
    rows = [
        BoundedPage(place, page, pages.url(page), float(found.lower[page]), float(found.upper[page]), sure)
        for place, (page, sure) in enumerate(zip(nodes.tolist(), certain, strict=True), 1)
    ]
    return Certificate(
        within,
        found.outside,
        found.unseen,
        beyond,
        len(visited),
        int(is_open.sum()),
        int(np.count_nonzero(teleport)),
        trusted is not None,
        settings.damping,
        rows,
    )
