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
from inlink.frontier.settings import Settings
from inlink.rank.certain import Places
from inlink.reranking.bounds import Bounds, GrowingBounds, certain_within
from inlink.store.format import DISCOVERED, LEASED
from inlink.store.pages import Pages
from inlink.store.reader import Reader
from inlink.store.trust import seed_pages, trusted_pages

__all__ = ["BoundedPage", "Certificate", "Certifier", "certify"]


class BoundedPage(msgspec.Struct, frozen=True):
    """A page at one of the best places.

    Parameters
    ----------
    place : int
        From 1, by the lower bound.
    page : int
    url : str
    lower, upper : float
        Bounds on its rank in the finished crawl, as shares of all rank.
    certain : bool
        Whether its place is certain within :attr:`Certificate.within`.
    """

    place: int
    page: int
    url: str
    lower: float
    upper: float
    certain: bool


class Certificate(msgspec.Struct, frozen=True):
    """The places that cannot change much, however the crawl goes on.

    A place is certain if, in the finished crawl, no page after it has more than ``within`` above the rank of its page,
    and no page before it has more than ``within`` below that rank.

    Parameters
    ----------
    within : float
        A share of all rank.
    outside : float
        Upper bound on the rank of all pages that are not fetched, known or not.
    unseen : float
        Upper bound on the rank of any page that is not known.
    fetched : int
        Number of pages whose links are known.
    waiting : int
        Number of pages that wait for their first fetch.
    targets : int
        Number of teleport targets.
    trusted : bool
        Whether the targets are the trusted pages, not the seeds.
    damping : float
    places : list of BoundedPage
        The best pages.
    """

    within: float
    outside: float
    unseen: float
    fetched: int
    waiting: int
    targets: int
    trusted: bool
    damping: float
    places: list[BoundedPage]

    @property
    def holds(self) -> bool:
        """True if all places are certain."""
        return bool(self.places) and all(row.certain for row in self.places)

    def told(self) -> list[str]:
        """Return the certificate and its assumptions in three lines."""
        nodes = np.array([row.page for row in self.places], np.int64)
        places = Places(nodes, np.array([row.certain for row in self.places], bool), math.inf)
        name = "trusted page" if self.trusted else "seed"
        return [
            f"within {self.within:g} of all rank: {places.told()}",
            f"outside of the {self.fetched:,} fetched pages is at most {self.outside:.3g} of all rank; "
            f"a page that is not known yet has at most {self.unseen:.3g}",
            f"the rank is PageRank with teleports to the {self.targets:,} {name}{'s' * (self.targets != 1)}; with "
            "uniform teleports there is no bound. Assumptions: fetched pages keep their links, pages that failed or "
            f"were excluded have none, and no {name} is added",
        ]


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
        self._reader.refresh()
        return _certificate(self._reader.pages, self._settings, self._bounds, self._count, self._within)

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
    is_open = (states == DISCOVERED) | (states == LEASED)
    is_open[visited] = False
    trusted = trusted_pages(pages) if settings.trust is not None else None
    teleport = np.zeros(pages.num_pages, np.float32)
    if trusted is None:
        teleport[seed_pages(pages)] = 1
    else:
        teleport[trusted.pages] = trusted.weights
    hosts = pages.hosts[: pages.num_pages] if settings.cross_domain_only else None
    found = bounds.update(pages.log, visited, places, is_open, teleport, hosts)
    return Certificate(
        within,
        found.outside,
        found.unseen,
        len(visited),
        int(is_open.sum()),
        int(np.count_nonzero(teleport)),
        trusted is not None,
        settings.damping,
        _rows(pages, found, count, within),
    )


def _rows(pages: Pages, bounds: Bounds, count: int, within: float) -> list[BoundedPage]:
    nodes, certain = certain_within(bounds, count, within)
    return [
        BoundedPage(
            place, page, pages.url(page), float(bounds.lower[page]), float(bounds.upper[page]), bool(sure)
        )
        for place, (page, sure) in enumerate(zip(nodes.tolist(), certain, strict=True), 1)
    ]
