"""The settings that name files of pages or hosts, ``trust``, ``distrust`` and ``prior``: read when they are given.

Trusted pages are kept in the crawl's log, and lists of hosts in its folder.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.table import counted
from inlink.crawl.journal import encoded_list
from inlink.errors import FolderError
from inlink.factors.trust import read_trust, trusted_pages
from inlink.frontier.settings import Settings
from inlink.store.format import HAS_SCORES, SEED, TRUSTED
from inlink.store.kernels.fold import fold
from inlink.store.log import Log
from inlink.store.pages import Pages
from inlink.store.prior import DISTRUST, PRIOR, HostPlaces, keep_places, kept_places

_log = logging.getLogger("inlink.crawl")


def read_lists(
    given: Mapping[str, Any], settings: Settings, refused: Counter[str]
) -> tuple[dict[str, float] | None, dict[str, HostPlaces]]:
    """Read the lists that a caller names when a crawl is opened. No file is written.

    Returns
    -------
    dict of str to float, or None
        Weights of trust by canonical URL; None if the caller names no file.
    dict of str to HostPlaces
        Hosts that are known as spam, and places of hosts in an earlier ranking, by the names of the settings.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.FolderError
        If a list cannot be read: see :func:`inlink.factors.trust.read_trust` and
        :func:`inlink.sources.ranklists.host_places`.
    """
    trusted = None
    if given.get("trust") is not None and settings.trust is not None:
        trusted = read_trust(settings.trust, settings.url_rules, refused)
        if refused:
            count = refused.total()
            ignored = counted(count, "line that is no valid URL", "lines that are not valid URLs")
            _log.warning("trust: %s: ignored %s", settings.trust, ignored)
    sources = {name: getattr(settings, name) for name in (DISTRUST, PRIOR) if given.get(name) is not None}
    if not sources:
        return trusted, {}
    # The readers of rankings take 20 ms to import, and most crawls have no list.
    from inlink.sources.ranklists import host_places

    return trusted, {name: host_places(source, name) for name, source in sources.items()}


def keep_lists(folder: Path, places: Mapping[str, HostPlaces], settings: Settings) -> None:
    """Keep lists of hosts in a crawl's folder."""
    for name, hosts in places.items():
        with suppress(FolderError):
            if hosts.checksum == kept_places(folder, name).checksum:
                continue
        keep_places(folder, hosts, str(getattr(settings, name)), name)


def keep_trust(
    pages: Pages, log: Log, now: float, trust: dict[str, float] | None, settings: Settings
) -> None:
    """Write trusted pages into the log, as seeds, unless its last event of this kind has the same pages and weights.

    Raises
    ------
    inlink.errors.FolderError
        If no pages are given, and the log has none although the settings name them.
    """
    if trust is None:
        if settings.trust is not None and trusted_pages(pages) is None:
            raise FolderError(
                f"{pages.folder}: the log of this crawl names no trusted pages any more: give trust=FILE again"
            )
        return
    numbers, new, text = pages.table.number(list(trust))
    weights = np.fromiter(trust.values(), np.float32, len(trust))
    order, before = np.argsort(numbers), trusted_pages(pages)
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
        max(now, pages.last_time()),
        flags=HAS_SCORES | TRUSTED,
        listed=count,
        payload=payload,
        first=pages.num_pages - new,
        new=new,
        urls=text,
    )
    fold(pages.addresses, np.frombuffer(frame, np.uint8))
    pages.frames.end = place + len(frame)
