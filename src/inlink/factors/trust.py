"""The trusted pages of a crawl: reading them from a file, and from its log.

In the log they are a seed event whose scores are weights of trust.
"""

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array, distinct
from inlink.base.opening import Stream, lines
from inlink.errors import InputError
from inlink.sources.ranks import rank_rows
from inlink.sources.releases import MOST_RANKS, rank_file
from inlink.store.format import BY_SHARD, SEED, TRUSTED
from inlink.store.inbox import seeds_in
from inlink.store.kernels.frames import link_scores_at
from inlink.store.pages import Pages
from inlink.urls.canonical import UrlRules, canonical, refusal
from inlink.urls.hosts import reverse_host

LARGEST = 1e30
"""The largest weight."""


class Trusted(NamedTuple):
    """Trusted pages, uint32[k], increasing, their weights, float32[k], and the place of their event in the log."""

    pages: UInt32Array
    weights: Float32Array
    place: int


def trusted_pages(pages: Pages) -> Trusted | None:
    """Return the trusted pages of the log's last event of this kind; None if there is no such event."""
    for place in reversed(pages.frames.of_kind(SEED)):
        if pages.frames.frame(place).flags & TRUSTED:
            trusted = pages.frames.list_at(place)
            weights = np.empty(len(trusted), np.float32)
            link_scores_at(pages.frames.at(np.array([place])), np.uint64(place), weights)
            return Trusted(trusted, weights, place)
    return None


def seed_pages(pages: Pages) -> UInt32Array:
    """Return the pages that were given as seeds, in files of seeds or in sitemaps, or as trusted pages, increasing."""
    places = [place for place in pages.frames.of_kind(SEED) if not pages.frames.frame(place).flags & BY_SHARD]
    lists = [pages.frames.list_at(place) for place in places]
    return distinct(np.concatenate(lists)).astype(np.uint32) if lists else np.empty(0, np.uint32)


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
    weights: dict[str, float] = {}
    for url, weight in _lines(path):
        if not 0 <= weight <= LARGEST:
            raise InputError(f"{path}: the weight of {url[:200]!r} must be in [0, 1e30]; got {weight!r}")
        form = canonical(url, None, rules)
        if form is None:
            refused[refusal(url) or "link is no valid URL"] += 1
        elif weight > 0:
            weights[form] = max(weight, weights.get(form, 0.0))
    if not weights:
        raise InputError(f"trust: {path} has no URL with a weight above 0: name at least one page to trust")
    return weights


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
