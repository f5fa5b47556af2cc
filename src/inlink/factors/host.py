"""The base class of host factors. A factor multiplies the priorities of a host's pages.

A waiting page was not fetched yet, so only its host tells how good it may be. The ranking process computes a share of
each host with each ranking, and publishes it beside the ranking. The frontier turns the shares into factors. Each
factor is a class in a module of its own: see :data:`inlink.factors.table.HOST_FACTORS`.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from inlink.base.arrays import Float32Array, Float64Array, Int64Array, UInt32Array, slices
from inlink.base.columns import most_pages, reserve
from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.factors.parts import Part
from inlink.factors.trust import Trusted
from inlink.store.pages import Pages
from inlink.store.prior import HostPlaces

_AT_A_TIME = 1 << 14


def rows_of_hosts(pages: Pages, places: HostPlaces, first: int) -> Iterator[tuple[slice, Int64Array]]:
    """Look up all hosts from ``first`` on in a list; yield the hosts and their rows, −1 for a host without a row."""
    for hosts in slices(pages.tally.hosts, _AT_A_TIME, first):
        yield hosts, places.find([pages.table.host(host) for host in range(hosts.start, hosts.stop)])


class RankedCrawl(NamedTuple):
    """A ranking that the ranking process has just computed.

    Attributes
    ----------
    ranks : float64[pages]
    damping : float
    cross_only : bool
        Only links between hosts count.
    uniform_ranks : callable
        Returns PageRank with equal teleports, float64[pages].
    between : callable
        To be called every few milliseconds of work.
    """

    ranks: Float64Array
    damping: float
    cross_only: bool
    uniform_ranks: Callable[[], Float64Array]
    between: Callable[[], None]


class HostFactor:
    """A factor by a share that each host has.

    Parameters
    ----------
    pages : Pages
    identity : int
        The value under ``name`` in the header of a ranking whose shares can be used.

    Attributes
    ----------
    setting : str
        The name of the setting that turns the factor on.
    applies : str
        The name of the attribute by which a policy says that it takes the factor.
    name : str
        The name of the array with the shares in the folder of a ranking.
    published : bool
        True if the shares come from a ranking.
    """

    setting: ClassVar[str]
    applies: ClassVar[str]
    name: ClassVar[str]

    def __init__(self, pages: Pages, identity: int) -> None:
        self.pages, self.identity, self.published = pages, identity, False
        self._shares: Float32Array = reserve(np.float32, most_pages())
        self._num_known = 0

    @classmethod
    def check(cls, settings: Any) -> None:
        """Raise ParameterError if the setting needs another setting."""

    @classmethod
    def from_crawl(cls, pages: Pages, trusted: Trusted | None) -> Self | None:
        """Return the factor for a crawl; None if the crawl lacks the data that the factor needs."""
        raise NotImplementedError

    def compute(self, ranked: RankedCrawl) -> Float32Array:
        """Return the shares of all hosts by the present links, float32[num_hosts]. The ranking process calls this."""
        raise NotImplementedError

    def read(self, ranks: Folder) -> Float32Array | None:
        """Return the shares in the folder of a ranking, float32[hosts]; None if they were computed otherwise.

        Raises
        ------
        inlink.errors.FolderError
            If they are missing, or one is outside [0, 1].
        """
        if ranks.header.meta.get(self.name, 0) != self.identity:
            return None
        try:
            shares = np.asarray(ranks.array(self.name))
        except KeyError:
            raise FolderError(f"it has no {self.name} of hosts") from None
        if (
            shares.dtype != np.float32
            or shares.ndim != 1
            or len(shares) > self.pages.tally.hosts
            or not np.all((shares >= 0) & (shares <= 1))
        ):
            raise FolderError(f"its {self.name} of hosts is not a share for each host")
        return shares

    def adopt(self, shares: Float32Array | None) -> None:
        """Use the shares that :meth:`read` returned; None is no ranking."""
        self.published, self._num_known = shares is not None, 0
        self._take_in()

    def _take_in(self) -> None:
        """Give hosts that became known their shares before a ranking."""

    def factor(self, pages: UInt32Array) -> Float32Array:
        """Return the factors of the pages' priorities, float32[k], in [0, 1]."""
        self._take_in()
        return self._factors(self._shares[self.pages.hosts[pages]])

    def _factors(self, shares: Float32Array) -> Float32Array:
        return shares

    def parts(self, page: int) -> list[Part]:
        """Return the part of a page's priority that :meth:`factor` computes; none if it is 1."""
        factor = float(self.factor(np.array([page], np.uint32))[0])
        return [] if factor == 1 else [Part(self._reason(int(self.pages.hosts[page])), "×", factor)]

    def _reason(self, host: int) -> str:
        """Return the name of a host's part."""
        raise NotImplementedError
