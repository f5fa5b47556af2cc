"""How far a crawl has come."""

from dataclasses import dataclass

import numpy as np

from inlink.frontier.frontier import Frontier
from inlink.store.layout import STATES

__all__ = ["HostStanding", "Standing", "standing"]


@dataclass(frozen=True, slots=True)
class HostStanding:
    """One host, or registered domain: pages that wait, pages taken so far, seconds until it may be asked."""

    name: str
    waiting: int
    taken: int
    due_in: float


@dataclass(frozen=True, slots=True)
class Standing:
    """A crawl at one moment.

    ``states`` counts pages by state; ``waiting`` are those that may be handed out; ``harvest`` is the share of the
    known pages' present rank that the crawled ones hold, None where the policy ranks nothing or no page is
    crawled; ``hosts`` are those with the most waiting pages.
    """

    known: int
    crawled: int
    waiting: int
    leased: int
    states: dict[str, int]
    harvest: float | None
    hosts: list[HostStanding]


def standing(frontier: Frontier, now: float, hosts: int) -> Standing:
    """See :meth:`inlink.Crawl.standing`."""
    pages, queue = frontier.pages, frontier.queue
    counts = np.bincount(pages.states[: pages.num_pages], minlength=len(STATES)).tolist()
    harvest = None
    if frontier.policy.algorithm is not None and pages.num_crawled:
        ranks = frontier.policy.priority(np.arange(pages.num_pages, dtype=np.uint32)).astype(np.float64)
        total = ranks.sum()
        harvest = float(ranks[pages.crawled()[0]].sum() / total) if total > 0 else None
    rows = queue.rows[: queue.num_slots]
    fullest = np.argsort(-rows["count"].astype(np.int64), kind="stable")[:hosts]
    return Standing(
        pages.num_pages,
        pages.num_crawled,
        len(queue),
        len(frontier.leases),
        {name: count for name, count in zip(STATES, counts, strict=True) if count},
        harvest,
        [
            HostStanding(
                frontier.hosts.name(slot),
                int(rows[slot]["count"]),
                int(rows[slot]["taken"]),
                max(float(rows[slot]["due"]) - now, 0.0),
            )
            for slot in fullest.tolist()
            if rows[slot]["count"]
        ],
    )
