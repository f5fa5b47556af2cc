"""The settings that name files of pages or hosts: ``trust`` and ``prior``. The files are read when they are given."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from inlink.crawl.trust import trust_given, trust_in
from inlink.errors import FolderError
from inlink.frontier.settings import Settings
from inlink.store.log import Log
from inlink.store.pages import Pages
from inlink.store.prior import HostPlaces, keep_places, kept_places

__all__ = ["GivenLists"]


@dataclass(frozen=True)
class GivenLists:
    """The lists that a caller names when a crawl is opened; None for a list that the caller does not name.

    Attributes
    ----------
    trusted : dict of str to float, or None
        Weights of trust by canonical URL.
    prior : HostPlaces or None
        Places of hosts in an earlier ranking.
    """

    trusted: dict[str, float] | None
    prior: HostPlaces | None

    @classmethod
    def read(cls, given: Mapping[str, Any], settings: Settings, refused: Counter[str]) -> Self:
        """Read the lists that a caller names. No file is written.

        Raises
        ------
        inlink.errors.InputError, inlink.errors.FolderError
            If a list cannot be read: see :func:`.trust.read_trust` and :func:`inlink.sources.hostplaces.host_places`.
        """
        return cls(trust_given(given, settings, refused), _prior_given(given, settings))

    def keep(self, pages: Pages, log: Log, now: float, settings: Settings) -> None:
        """Keep the lists in the crawl's log and folder. A list that was not given must be there already.

        Raises
        ------
        inlink.errors.FolderError
            If a list is neither given nor there, or damaged.
        """
        trust_in(pages, log, now, settings, self.trusted)
        if self.prior is not None and not self._prior_is_kept(pages):
            keep_places(pages.folder, self.prior, str(settings.prior))

    def _prior_is_kept(self, pages: Pages) -> bool:
        assert self.prior is not None
        try:
            return self.prior.same(kept_places(pages.folder))
        except FolderError:
            return False


def _prior_given(given: Mapping[str, Any], settings: Settings) -> HostPlaces | None:
    if given.get("prior") is None or settings.prior is None:
        return None
    from inlink.sources.hostplaces import host_places

    return host_places(settings.prior)
