"""The settings that name files of pages or hosts, ``trust``, ``distrust`` and ``prior``: read when they are given.

Trusted pages are kept in the crawl's log, and lists of hosts in its folder.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import msgspec
import numpy as np

from inlink.crawl.journal import encoded_list
from inlink.errors import FolderError
from inlink.factors.trust import read_trust, trusted_pages
from inlink.frontier.settings import Settings
from inlink.store.format import HAS_SCORES, SEED, TRUSTED
from inlink.store.log import Log
from inlink.store.pages import Pages
from inlink.store.prior import DISTRUST, PRIOR, HostPlaces, keep_places, kept_places

__all__ = ["GivenLists"]

_log = logging.getLogger("inlink.crawl")


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
            If a list cannot be read: see :func:`inlink.factors.trust.read_trust` and
            :func:`inlink.sources.hostplaces.host_places`.
        """
        return cls(_trust_given(given, settings, refused), _places_given(given, settings))

    def keep(self, pages: Pages, log: Log, now: float, settings: Settings) -> None:
        """Keep the lists in the crawl's log and folder. A list that was not given must be there already.

        Raises
        ------
        inlink.errors.FolderError
            If a list is neither given nor there, or damaged.
        """
        if self.trusted is not None:
            _keep_trust(pages, log, max(now, pages.last_time()), self.trusted)
        elif settings.trust is not None and trusted_pages(pages) is None:
            raise FolderError(
                f"{pages.folder}: the log of this crawl names no trusted pages any more: give trust=FILE again"
            )
        for name, places in self.places.items():
            if not _is_kept(pages, name, places):
                keep_places(pages.folder, places, str(getattr(settings, name)), name)


def _trust_given(
    given: Mapping[str, Any], settings: Settings, refused: Counter[str]
) -> dict[str, float] | None:
    if given.get("trust") is None or settings.trust is None:
        return None
    weights = read_trust(settings.trust, settings.url_rules, refused)
    if refused:
        count = refused.total()
        ignored = "1 line that is no valid URL" if count == 1 else f"{count:,} lines that are not valid URLs"
        _log.warning("trust: %s: ignored %s", settings.trust, ignored)
    return weights


def _keep_trust(pages: Pages, log: Log, now: float, trust: dict[str, float]) -> None:
    """Write trusted pages into the log, as seeds, unless its last event of this kind has the same pages and weights."""
    numbers, new, text = pages.number(list(trust))
    weights = np.fromiter(trust.values(), np.float32, len(trust))
    order = np.argsort(numbers)
    before = trusted_pages(pages)
    if (
        not new
        and before is not None
        and np.array_equal(before.pages, numbers[order])
        and np.array_equal(before.weights, weights[order])
    ):
        return
    count, payload = encoded_list(numbers.copy(), weights.copy())
    place, frame = log.append(
        SEED,
        now,
        flags=HAS_SCORES | TRUSTED,
        listed=count,
        payload=payload,
        first=pages.num_pages - new,
        new=new,
        urls=text,
    )
    pages.columns.fold(np.frombuffer(frame, np.uint8))
    pages.frames.end = place + len(frame)


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
