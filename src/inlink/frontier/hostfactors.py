"""Factors of the priorities of a host's pages, which the ranking process publishes with each ranking.

A waiting page was not fetched yet, so only its host tells how good it may be. There are two factors:

- By distrust D, the probability of arriving at a listed spam host (:mod:`inlink.reranking.distrust`)::

      1 ÷ (1 + (D ÷ 0.02)²)

  So a link to spam on few pages of a host costs little. A host comes last if most of its pages lead to spam. Before a
  ranking with this list, D is 1 for listed hosts, and else 0.
- By spam mass m, the part of the host's rank that does not come from trusted pages
  (:mod:`inlink.reranking.spammass`): 1 − m. A host that became known after the ranking has the median of the others.
  Before the first ranking, all hosts have 1.
"""

from typing import ClassVar

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.base.columns import reserve
from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.frontier.parts import Part
from inlink.frontier.policy import MOST_PAGES
from inlink.reranking.distrust import HostFinder
from inlink.store.pages import Pages
from inlink.store.prior import HostPlaces

__all__ = ["HostDistrust", "HostFactor", "HostMass"]

EVEN = 0.02
"""The distrust that halves a priority."""


class HostFactor:
    """A factor by a share that each host has.

    Parameters
    ----------
    pages : Pages
    identity : int
        The value under ``name`` in the header of a ranking whose shares can be used.

    Attributes
    ----------
    name : str
        The name of the array with the shares in the folder of a ranking.
    published : bool
        True if the shares come from a ranking.
    """

    name: ClassVar[str]

    def __init__(self, pages: Pages, identity: int) -> None:
        self.pages, self.identity, self.published = pages, identity, False
        self._shares: Float32Array = reserve(np.float32, MOST_PAGES)
        self._known = 0

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
            found = np.asarray(ranks.array(self.name))
        except KeyError:
            raise FolderError(f"it has no {self.name} of hosts") from None
        if (
            found.dtype != np.float32
            or found.ndim != 1
            or len(found) > self.pages.num_hosts
            or not np.all((found >= 0) & (found <= 1))
        ):
            raise FolderError(f"its {self.name} of hosts is not a share for each host")
        return found

    def adopt(self, published: Float32Array | None) -> None:
        """Use the shares that :meth:`read` returned; None is no ranking."""
        self.published, self._known = published is not None, 0
        self._take_in()

    def _take_in(self) -> None:
        """Give hosts that became known their shares before a ranking."""

    def factor(self, pages: UInt32Array) -> Float32Array:
        """Return the factors of the pages' priorities, float32[k], in [0, 1]."""
        self._take_in()
        return self._factors(self._shares[self.pages.hosts[pages]])

    def _factors(self, shares: Float32Array) -> Float32Array:
        """Return the factors of shares."""
        raise NotImplementedError

    def parts(self, page: int) -> list[Part]:
        """Return the part of a page's priority that :meth:`factor` computes; none if it is 1."""
        factor = float(self.factor(np.array([page], np.uint32))[0])
        return [] if factor == 1 else [Part(self._told(int(self.pages.hosts[page])), "×", factor)]

    def _told(self, host: int) -> str:
        """Return the name of a host's part."""
        raise NotImplementedError


class HostDistrust(HostFactor):
    """The factor by distrust. Hosts that become known are looked up in the list when they are first asked for.

    Parameters
    ----------
    pages : Pages
    listed : HostPlaces
        Hosts and domains that are known as spam.
    """

    name = "distrust"

    def __init__(self, pages: Pages, listed: HostPlaces) -> None:
        super().__init__(pages, listed.checksum)
        self._finder = HostFinder(pages, listed)

    def _take_in(self) -> None:
        if self._known < self.pages.num_hosts:
            listed = self._finder.listed()
            self._shares[self._known : len(listed)] = listed[self._known :]
            self._known = len(listed)

    def adopt(self, published: Float32Array | None) -> None:
        """Use the distrust that :meth:`read` returned; None leaves the listed hosts only."""
        super().adopt(published)
        if published is not None:
            known = self._shares[: len(published)]
            np.maximum(known, published, out=known)

    def _factors(self, shares: Float32Array) -> Float32Array:
        ratio = shares / np.float32(EVEN)
        found: Float32Array = np.float32(1) / (np.float32(1) + ratio * ratio)
        return found

    def _told(self, host: int) -> str:
        name, share = self.pages.host(host), float(self._shares[host])
        if share == 1:
            return f"{name} is listed in `distrust`"
        return f"distrust {share:.3g} of {name}, whose pages lead to listed hosts"


class HostMass(HostFactor):
    """The factor by spam mass. Its shares are 1 − m.

    Parameters
    ----------
    pages : Pages
    """

    name = "trusted_share"

    def __init__(self, pages: Pages) -> None:
        super().__init__(pages, 1)
        # The share of hosts that are not in the ranking, and the number of those that are.
        self._usual, self._ranked = np.float32(1), 0

    def _take_in(self) -> None:
        if self._known < self.pages.num_hosts:
            self._shares[self._known : self.pages.num_hosts] = self._usual
            self._known = self.pages.num_hosts

    def adopt(self, published: Float32Array | None) -> None:
        """Use the shares that :meth:`read` returned; None gives each host the share 1."""
        self._usual, self._ranked = np.float32(1), 0
        if published is not None and len(published):
            self._usual, self._ranked = np.float32(np.median(published)), len(published)
        super().adopt(published)
        if published is not None:
            self._shares[: len(published)] = published

    def _factors(self, shares: Float32Array) -> Float32Array:
        return shares

    def _told(self, host: int) -> str:
        name = self.pages.host(host)
        if host < self._ranked:
            return f"1 − spam mass of {name}: the share of its rank that comes from trusted pages"
        return f"median of 1 − spam mass, because {name} is newer than the ranking"
