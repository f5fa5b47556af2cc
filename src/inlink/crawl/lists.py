"""The settings that name files of pages or hosts, ``trust``, ``distrust`` and ``prior``: read when they are given."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from inlink.crawl.trust import trust_given, trust_in
from inlink.errors import FolderError
from inlink.frontier.settings import Settings
from inlink.store.log import Log
from inlink.store.pages import Pages
from inlink.store.prior import DISTRUST, PRIOR, HostPlaces, keep_places, kept_places

__all__ = ["GivenLists"]


class GivenLists(msgspec.Struct, frozen=True):
    """The lists that a caller names when a crawl is opened; None for a list that the caller does not name.

    Attributes
    ----------
    trusted : dict of str to float, or None
        Weights of trust by canonical URL.
    places : dict of str to HostPlaces
        Hosts that are known as spam, and places of hosts in an earlier ranking, by the names of the settings.
    """

    trusted: dict[str, float] | None
    places: dict[str, HostPlaces]

    @classmethod
    def read(cls, given: Mapping[str, Any], settings: Settings, refused: Counter[str]) -> Self:
        """Read the lists that a caller names. No file is written.

        Raises
        ------
        inlink.errors.InputError, inlink.errors.FolderError
            If a list cannot be read: see :func:`.trust.read_trust` and :func:`inlink.sources.hostplaces.host_places`.
        """
        return cls(trust_given(given, settings, refused), _places_given(given, settings))

    def keep(self, pages: Pages, log: Log, now: float, settings: Settings) -> None:
        """Keep the lists in the crawl's log and folder. A list that was not given must be there already.

        Raises
        ------
        inlink.errors.FolderError
            If a list is neither given nor there, or damaged.
        """
        trust_in(pages, log, now, settings, self.trusted)
        for name, places in self.places.items():
            if not _is_kept(pages, name, places):
                keep_places(pages.folder, places, str(getattr(settings, name)), name)


def _is_kept(pages: Pages, name: str, places: HostPlaces) -> bool:
    try:
        return places.same(kept_places(pages.folder, name))
    except FolderError:
        return False


def _places_given(given: Mapping[str, Any], settings: Settings) -> dict[str, HostPlaces]:
    named = {name: getattr(settings, name) for name in (DISTRUST, PRIOR) if given.get(name) is not None}
    sources = {name: source for name, source in named.items() if source is not None}
    if not sources:
        return {}
    # The readers of rankings take 20 ms to import, and most crawls have no list.
    from inlink.sources.hostplaces import host_places

    return {name: host_places(source, name) for name, source in sources.items()}
