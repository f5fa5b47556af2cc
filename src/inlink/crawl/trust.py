"""The setting ``trust``: a file of trusted pages with weights, read when a crawl is opened and kept in its log."""

import logging
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.opening import Stream, lines
from inlink.crawl.intake import coded
from inlink.errors import FolderError, InputError
from inlink.frontier.settings import Settings
from inlink.sources.ranks import rank_rows
from inlink.sources.releases import MOST_RANKS, rank_file
from inlink.store.format import HAS_SCORES, SEED, TRUSTED
from inlink.store.inbox import seeds_in
from inlink.store.log import Log
from inlink.store.pages import Pages
from inlink.store.trust import trusted_pages
from inlink.urls.canonical import UrlRules, canonical, refusal
from inlink.urls.hosts import reverse_host

__all__ = ["read_trust", "take_trust", "trust_given", "trust_in"]

_log = logging.getLogger("inlink.crawl")

LARGEST = 1e30


def read_trust(path: str, rules: UrlRules | None, refused: Counter[str]) -> dict[str, float]:
    """Read trusted pages: one URL a line, optionally followed by a tab and its weight, which is 1 by default.

    Common Crawl's ranks of hosts or domains are recognised by their header: the home page of each host is trusted, and
    its weight is the host's PageRank. Of a release or a URL, the first 1,000,000 ranks are read.

    Parameters
    ----------
    path : str
        The file, which may be compressed with gzip or Zstandard; a URL; or a release of Common Crawl, see
        :func:`inlink.sources.releases.rank_file`.
    rules : UrlRules or None
    refused : Counter
        Counts the lines that are not valid URLs, by reason.

    Returns
    -------
    dict of str to float
        The weights by canonical URL. The largest counts if a URL is repeated.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, a weight is not in [0, 1e30], no URL has a weight above 0, or a file on this machine
        has more than 1,000,000 ranks.
    """
    found: dict[str, float] = {}
    for url, weight in _lines(path):
        if not 0 <= weight <= LARGEST:
            raise InputError(f"{path}: the weight of {url[:200]!r} must be in [0, 1e30]; got {weight!r}")
        form = canonical(url, None, rules)
        if form is None:
            refused[refusal(url) or "link is no valid URL"] += 1
        elif weight > 0:
            found[form] = max(weight, found.get(form, 0.0))
    if not found:
        raise InputError(f"trust: {path} has no URL with a weight above 0: name at least one page to trust")
    return found


def _lines(path: str) -> list[tuple[str, float]]:
    file = rank_file(path)
    with Stream(file) as stream:
        common_crawl, rows = rank_rows(stream, path, "pagerank")
        if common_crawl:
            is_local = isinstance(file, Path)
            ranks = list(islice(rows, MOST_RANKS + is_local))
            if len(ranks) > MOST_RANKS:
                raise InputError(
                    f"{path}: more than {MOST_RANKS:,} ranks, and each would become a seed. Keep the first lines only."
                )
            hosts = [reverse_host(row.name.decode("utf-8", "surrogateescape")) for row in ranks]
            return [(f"https://{host}/", row.value) for host, row in zip(hosts, ranks, strict=True)]
    with Stream(file) as stream:
        text = b"\n".join(line for _, line in lines(stream)).decode("utf-8", "surrogateescape")
    return seeds_in(text, path)


def take_trust(pages: Pages, log: Log, now: float, weights: dict[str, float]) -> None:
    """Write trusted pages into the log, as seeds, unless its last event of this kind has the same pages and weights."""
    numbers, new, text = pages.number(list(weights))
    given = np.fromiter(weights.values(), np.float32, len(weights))
    order = np.argsort(numbers)
    before = trusted_pages(pages)
    if (
        not new
        and before is not None
        and np.array_equal(before.pages, numbers[order])
        and np.array_equal(before.weights, given[order])
    ):
        return
    count, payload = coded(numbers.copy(), given.copy())
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
    pages.fold_frame(place, np.frombuffer(frame, np.uint8))


def trust_given(
    given: Mapping[str, Any], settings: Settings, refused: Counter[str]
) -> dict[str, float] | None:
    """The trusted pages that a caller names, see :func:`read_trust`; None if the caller names no file."""
    if given.get("trust") is None or settings.trust is None:
        return None
    found = read_trust(settings.trust, settings.url_rules, refused)
    if refused:
        count = sum(refused.values())
        told = "1 line that is no valid URL" if count == 1 else f"{count:,} lines that are not valid URLs"
        _log.warning("trust: %s: ignored %s", settings.trust, told)
    return found


def trust_in(
    pages: Pages, log: Log, now: float, settings: Settings, trusted: dict[str, float] | None
) -> None:
    """Write trusted pages into the log if they were given. Otherwise the trusted pages in the log stay in force.

    Raises
    ------
    inlink.errors.FolderError
        If the settings say that pages are trusted, none are given, and the log has none.
    """
    if trusted is not None:
        take_trust(pages, log, max(now, pages.last_time()), trusted)
    elif settings.trust is not None and trusted_pages(pages) is None:
        raise FolderError(
            f"{pages.folder}: the log of this crawl names no trusted pages any more: give trust=FILE again"
        )
