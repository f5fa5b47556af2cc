"""Seed sets: the pages at which replays begin."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.base.table import counted
from inlink.errors import ParameterError, UnknownNodeError
from inlink.replaying.web import PAGE, Web

__all__ = ["RECORDED", "check_seeds", "seed_sets"]

RECORDED = "recorded"
"""Name of the seed set that has the seeds of the recorded crawl."""

_DRAWN = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,8})")


def check_seeds(seeds: Any) -> None:
    """Check the argument for seeds, as far as this needs no web.

    Raises
    ------
    inlink.errors.ParameterError
        If it is neither SETSxPAGES, nor "recorded", nor a list of lists.
    """
    if isinstance(seeds, str):
        if seeds != RECORDED and not _DRAWN.fullmatch(seeds):
            raise ParameterError(
                f"`seeds` must be SETSxPAGES, such as 20x10 for 20 sets of 10 pages, or {RECORDED!r}; got {seeds!r}"
            )
        return
    sets = isinstance(seeds, Sequence) and [
        pages
        for pages in seeds
        if isinstance(pages, Sequence | np.ndarray) and not isinstance(pages, str) and len(pages)
    ]
    if not sets or len(sets) < len(seeds):
        raise ParameterError("`seeds` must be a text, or a list of sets, each a list of URLs or page numbers")


def seed_sets(web: Web, seeds: Any, random_seed: int) -> list[UInt32Array]:
    """Return the sets of seed pages. The pages of each set are increasing.

    Drawn sets hold pages that can be fetched and have links. All these pages are equally likely.

    Parameters
    ----------
    web : Web
        The web.
    seeds : str or list of lists
        As :func:`check_seeds` allows.
    random_seed : int
        Seed of the random numbers, at least 0.

    Raises
    ------
    inlink.errors.ParameterError
        If the web has fewer pages with links than a set needs, no recorded seeds, or lacks a page.
    """
    if isinstance(seeds, str) and seeds == RECORDED:
        if not len(web.seeds):
            raise ParameterError(
                f"{web.name} is no recorded crawl, so it has no recorded seeds: give SETSxPAGES"
            )
        return [np.sort(web.seeds)]
    if isinstance(seeds, str):
        return _drawn(web, seeds, random_seed)
    numbers = {url: page for page, url in enumerate(web.urls)}
    return [np.unique(np.array([_page(web, numbers, page) for page in pages], np.uint32)) for pages in seeds]


def _drawn(web: Web, seeds: str, random_seed: int) -> list[UInt32Array]:
    drawn = _DRAWN.fullmatch(seeds)
    assert drawn is not None
    sets, count = int(drawn[1]), int(drawn[2])
    linking = np.flatnonzero((np.diff(web.offsets) > 0) & (np.asarray(web.outcomes) == PAGE)).astype(
        np.uint32
    )
    if len(linking) < count:
        raise ParameterError(
            f"`seeds` wants {counted(count, 'page')} a set; {web.name} has {counted(len(linking), 'page')} with links"
        )
    random = np.random.default_rng(random_seed)
    return [np.sort(random.choice(linking, count, replace=False)) for _ in range(sets)]


def _page(web: Web, numbers: dict[str, int], seed: Any) -> int:
    if isinstance(seed, str):
        if seed not in numbers:
            raise UnknownNodeError(
                f"{web.name} has no page {seed!r}: seeds are canonical URLs or page numbers"
            )
        return numbers[seed]
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < web.num_pages:
        raise ParameterError(f"a seed must be a URL or a page number below {web.num_pages:,}; got {seed!r}")
    return int(seed)
