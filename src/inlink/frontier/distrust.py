"""Let pages of hosts that lead to spam sink in the order, by the distrust of their hosts.

The ranking process computes the distrust D of each host (:mod:`inlink.reranking.distrust`) and publishes it with the
ranking. Until then, a host has 1 if it is listed, and else 0. A priority is multiplied by ::

    1 ÷ (1 + (D ÷ 0.02)²)

So a link to spam on few pages of a host costs little. A host most of whose pages lead to spam comes last. A waiting
page has no links yet, so its host is all that tells about it.
"""

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

__all__ = ["HostDistrust"]

EVEN = 0.02
"""The distrust that halves a priority."""


class HostDistrust:
    """The distrust of a crawl's hosts. Hosts that become known are looked up in the list when they are first asked for.

    Parameters
    ----------
    pages : Pages
    listed : HostPlaces
        Hosts and domains that are known as spam.

    Attributes
    ----------
    checksum : int
        Identifies the list.
    published : bool
        Whether the distrust comes from a ranking that was computed with this list.
    """

    def __init__(self, pages: Pages, listed: HostPlaces) -> None:
        self.pages, self.checksum = pages, listed.checksum
        self.published = False
        self._finder = HostFinder(pages, listed)
        self._distrust: Float32Array = reserve(np.float32, MOST_PAGES)
        self._known = 0

    def _take_in(self) -> None:
        if self._known < self.pages.num_hosts:
            listed = self._finder.listed()
            self._distrust[self._known : len(listed)] = listed[self._known :]
            self._known = len(listed)

    def read(self, ranks: Folder) -> Float32Array | None:
        """Return the distrust in the folder of a ranking, float32[hosts]; None if it was computed with another list.

        Raises
        ------
        inlink.errors.FolderError
            If it is missing, or has a value outside [0, 1].
        """
        if ranks.header.meta.get("distrust", 0) != self.checksum:
            return None
        try:
            found = np.asarray(ranks.array("distrust"))
        except KeyError:
            raise FolderError("it has no distrust of hosts") from None
        if (
            found.dtype != np.float32
            or found.ndim != 1
            or len(found) > self.pages.num_hosts
            or not np.all((found >= 0) & (found <= 1))
        ):
            raise FolderError("its distrust of hosts is not a share for each host")
        return found

    def adopt(self, published: Float32Array | None) -> None:
        """Use the distrust that :meth:`read` returned; None leaves the listed hosts only."""
        self.published = published is not None
        self._known = 0
        self._take_in()
        if published is not None:
            known = self._distrust[: len(published)]
            np.maximum(known, published, out=known)

    def factor(self, pages: UInt32Array) -> Float32Array:
        """Return the factors of the pages' priorities, float32[k], above 0 and at most 1."""
        self._take_in()
        share = self._distrust[self.pages.hosts[pages]] / np.float32(EVEN)
        found: Float32Array = np.float32(1) / (np.float32(1) + share * share)
        return found

    def parts(self, page: int) -> list[Part]:
        """Return the part of a page's priority that :meth:`factor` computes; none if it is 1."""
        factor = float(self.factor(np.array([page], np.uint32))[0])
        if factor == 1:
            return []
        host = int(self.pages.hosts[page])
        name, distrust = self.pages.host(host), float(self._distrust[host])
        if distrust == 1:
            return [Part(f"{name} is listed in `distrust`", "×", factor)]
        return [Part(f"distrust {distrust:.3g} of {name}, whose pages lead to listed hosts", "×", factor)]
