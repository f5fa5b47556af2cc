"""Read the seeds of a crawl from its log, and its trusted pages: a seed event whose scores are weights of trust."""

from typing import NamedTuple

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array
from inlink.base.order import distinct
from inlink.store.format import SEED, TRUSTED
from inlink.store.kernels.frames import link_scores_at
from inlink.store.pages import Pages

__all__ = ["Trusted", "seed_pages", "trusted_pages"]


class Trusted(NamedTuple):
    """Trusted pages, uint32[k], increasing, their weights, float32[k], and the place of their event in the log."""

    pages: UInt32Array
    weights: Float32Array
    place: int


def trusted_pages(pages: Pages) -> Trusted | None:
    """The trusted pages of the log's last event of this kind; None if there is no such event."""
    for place in reversed(pages.frames_of_kind(SEED)):
        if pages.frame(place).flags & TRUSTED:
            found = pages.list_at(place)
            weights = np.empty(len(found), np.float32)
            link_scores_at(pages.log_at(np.array([place])), np.uint64(place), weights)
            return Trusted(found, weights, place)
    return None


def seed_pages(pages: Pages) -> UInt32Array:
    """Return the pages that were given as seeds, in files of seeds or in sitemaps, or as trusted pages, increasing."""
    lists = [pages.list_at(place) for place in pages.frames_of_kind(SEED)]
    return distinct(np.concatenate(lists)).astype(np.uint32) if lists else np.empty(0, np.uint32)
