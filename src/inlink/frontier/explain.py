"""Why a URL stands where it stands."""

from dataclasses import dataclass

import numpy as np

from inlink.frontier.frontier import Frontier
from inlink.frontier.queue import NO_LIMIT
from inlink.frontier.traps import FACTORS
from inlink.frontier.traps import explain as explain_traps
from inlink.store.pages import STATES

__all__ = ["Why", "explain"]

SHOWN = 5  # inlinks
FAR = 10_000  # places up to which the order is looked through


@dataclass(frozen=True)
class Why:
    """A URL's place in the order, and each reason for it.

    ``place`` is 1 for what comes next; None where the page does not wait, or stands behind the first 10,000.
    ``reasons`` are pairs of a phrase and a value, in the order in which they were applied. ``inlinks`` are the
    best of them, with what each gives.
    """

    url: str
    state: str
    place: int | None
    priority: float | None
    reasons: list[tuple[str, float | str]]
    inlinks: list[tuple[str, float]]

    def __str__(self) -> str:
        place = "does not wait" if self.priority is None else "not among the first 10,000"
        lines = [
            f"{self.url}: {self.state}, {place if self.place is None else f'number {self.place:,} in the order'}"
        ]
        lines += [
            f"  {name}: {value if isinstance(value, str) else format(value, '.6g')}"
            for name, value in self.reasons
        ]
        if self.inlinks:
            lines.append("  best inlinks:")
            lines += [f"    {share:.6g}  {url}" for url, share in self.inlinks]
        return "\n".join(lines)


def explain(frontier: Frontier, page: int, now: float) -> Why:
    """Every reason for a page's place."""
    pages, queue, policy = frontier.pages, frontier.queue, frontier.policy
    url, slot = pages.url(page), queue.slot(page)
    row = queue.rows[slot]
    reasons: list[tuple[str, float | str]] = [(f"policy {policy.name}", "")]
    reasons += policy.explain(page)
    reasons.append(("score", float(pages.scores[page])))
    reasons.append(("depth", float(pages.depths[page])))
    for name, found, factor in explain_traps(url, frontier.year):
        reasons.append((f"trap rule {name!r} ({found})", f"× {factor:.3g}"))
    if frontier.traps[page]:
        reasons.append(("trap penalty, all told", f"× {float(FACTORS[frontier.traps[page]]):.3g}"))
    host = pages.host(int(pages.hosts[page]))
    if policy.sharing == "shared":
        reasons.append((f"pages taken from {host}", f"÷ (1 + {row['taken']:,})"))
    if slot in frontier.hosts.failures:
        reasons.append((f"failures of {host} in a row", f"÷ (1 + {frontier.hosts.failures[slot]})"))
    reasons.append((f"{host} due in, seconds", max(float(row["due"]) - now, 0.0)))
    reasons.append((f"leases out to {host}", f"{row['flying']} of {row['most']}"))
    for name, left in (
        ("budget left, pages", int(row["budget"])),
        ("budget left of its domain, pages", int(queue.slots.domain_budgets[int(row["domain"])])),
    ):
        if left != NO_LIMIT:
            reasons.append((name, float(left)))
    lease = frontier.leases.current(page)
    if lease is not None:
        reasons.append(("leased, number", float(lease[0])))
        reasons.append(("lease runs out in, seconds", max(lease[1].expires - now, 0.0)))
    if page in frontier.plans:
        what = "tried again in, seconds" if pages.errors[page] else "crawled again in, seconds"
        reasons.append((what, max(frontier.plans[page] - now, 0.0)))
    if pages.errors[page]:
        reasons.append(("failures in a row", float(pages.errors[page])))
    if page in pages.merged:
        reasons.append(("merged into", pages.url(pages.survivor(page))))
    place, priority = None, None
    if page in queue:
        priority = queue.key(page)
        for number, (other, _, _) in enumerate(queue.order(FAR, now)):
            if other == page:
                place = number + 1
                break
    return Why(url, STATES[pages.states[page]], place, priority, reasons, best_inlinks(frontier, page))


def best_inlinks(frontier: Frontier, page: int) -> list[tuple[str, float]]:
    """The inlinks that give most to a page: URL, and priority ÷ number of links."""
    pages = frontier.pages
    sources = pages.inlinks(page)
    if not len(sources):
        return []
    counts = np.array([max(len(pages.links(int(one))), 1) for one in sources[:FAR]])
    shares = frontier.policy.priority(sources[:FAR]) / counts
    best = np.argsort(-shares, kind="stable")[:SHOWN]
    return [(pages.url(int(sources[k])), float(shares[k])) for k in best]
