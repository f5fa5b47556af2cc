"""Rank-weighted freshness of schedules of revisits, beside the optimum: a replayed crawl of a generated site.

Pages change by Poisson processes with exponentially distributed rates. A cell is the share of rank whose copies are
current, as a mean over the second half of the time, divided by that of the optimum. In the last row, each page's rate
becomes ten times or a tenth of what it was in the middle of the time, and the last quarter of the time counts.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

import inlink
from bench import markdown
from bench.cli import note
from inlink.frontier.revisit import DAY, ByValue, FixedInterval
from inlink.rank.pagerank import pagerank
from inlink.replaying.changes import Drawn
from inlink.replaying.lines import best_fresh_rank
from inlink.replaying.play import Played, ReplayTask, play
from inlink.replaying.web import NO_PAGE, web_of_graph

__all__ = ["Switched", "main", "site", "weighted_freshness"]

MEAN = 1000.0
"""Seconds between two changes of a page whose rate is the mean rate."""

BUDGETS = (0.25, 0.5, 1.0, 2.0)
"""Fetches a page in MEAN seconds."""

LENGTH = 30
"""Length of a crawl, in MEAN seconds."""


class Switched(Drawn):
    """Poisson changes with given rates, which are other rates after some time.

    Parameters
    ----------
    rates, later : float64[n]
        Changes a second of each page, before and after ``moment``.
    moment : float
        In seconds from the beginning.
    seed : int
        Seed of the random numbers.
    """

    def __init__(self, rates: Any, later: Any, moment: float, seed: int) -> None:
        super().__init__(1.0, seed)
        self._rates, self._later, self._moment = rates, later, moment
        self._dice: dict[int, Any] = {}
        self._state: dict[int, tuple[int, float]] = {}

    def at(self, page: int, time: float) -> tuple[int, float]:
        """See :meth:`inlink.replaying.changes.Drawn.at`."""
        if page not in self._dice:
            self._dice[page] = np.random.default_rng([self._seed, page])
            self._state[page] = 0, self._following(page, 0.0)
        count, following = self._state[page]
        while following <= time:
            count, following = count + 1, self._following(page, following)
        self._state[page] = count, following
        return count, following

    def _following(self, page: int, time: float) -> float:
        amount = self._dice[page].exponential()
        if time < self._moment:
            before = (self._moment - time) * self._rates[page]
            if amount <= before:
                return float(time + amount / self._rates[page])
            amount, time = amount - before, self._moment
        return float(time + amount / self._later[page])


def weighted_freshness(played: Played, ranks: Any, begin: float, end: float) -> float:
    """The mean share of the rank whose copies are current, between two times in seconds."""
    some = np.flatnonzero(played.copies != NO_PAGE)
    pages, times, stale = played.copies[some], played.times[some], played.stale[some]
    order = np.lexsort((times, pages))
    pages, times, stale = pages[order], times[order], stale[order]
    replaced = np.full(len(pages), end)
    again = pages[1:] == pages[:-1]
    replaced[:-1][again] = times[1:][again]
    spans = np.minimum(np.minimum(replaced, stale), end) - np.maximum(times, begin)
    return float((ranks[pages] * np.maximum(spans, 0.0)).sum() / (ranks.sum() * (end - begin)))


def site(pages: int, seed: int) -> inlink.Graph:
    """Make a site of one host: the front page links to all pages, and others to the next and to popular pages."""
    dice = np.random.default_rng(seed)
    arcs = [(page, (page + 1) % pages) for page in range(pages)] + [(0, page) for page in range(pages)]
    popular = (pages * dice.random(6 * pages) ** 3).astype(int)
    arcs += list(zip(dice.integers(pages, size=6 * pages).tolist(), popular.tolist(), strict=True))
    return inlink.Graph.from_arcs(arcs)


def _share(pages: int, seed: int, budget: float, schedule: Any, slowness: float, *, switch: bool) -> float:
    """Rank-weighted freshness of a schedule, divided by that of the optimum."""
    graph = site(pages, seed)
    ranks, a_second = pagerank(graph).values, pages * budget / MEAN
    dice = np.random.default_rng([seed, 1])
    rates = np.maximum(dice.exponential(1, pages), 1e-4) / MEAN
    later = rates * np.where(dice.random(pages) < 0.5, 10.0, 0.1) if switch else rates
    length = (2 if switch else 1) * LENGTH * MEAN
    settings = {"revisit": schedule, "politeness": {"delay": 0.0}, "rerank_seconds": MEAN}
    task = ReplayTask("host-diverse", [0], int(pages + length * a_second), settings, 1, slowness / a_second)
    played = play(web_of_graph(graph, "site", 0), task, changes=Switched(rates, later, length / 2, seed))
    end = min(length, float(played.times[-1]))
    begin = (0.75 if switch else 0.5) * length
    return weighted_freshness(played, ranks, begin, end) / best_fresh_rank(ranks, later, a_second)


def main(arguments: Sequence[str]) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench freshness", description=__doc__)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    chosen = parser.parse_args(arguments)
    pages = chosen.pages
    print(markdown.line("schedule", *(f"{budget:g}" for budget in BUDGETS)))
    print(markdown.line("---", *["---:"] * len(BUDGETS)))
    for name, switch in (
        ("ByValue", False),
        ("ByValue, rates × 10 or ÷ 10", True),
        ("FixedInterval of pages/budget", False),
        ("ByValue from a tenth of the true mean", False),
    ):
        cells = []
        for budget in BUDGETS:
            interval = MEAN / budget
            schedule = {
                "Fixe": FixedInterval(interval),
                "ByVa": ByValue(
                    budget=pages / interval * DAY,
                    initial=MEAN / 10 if "tenth" in name else MEAN,
                    shortest=1.0,
                ),
            }[name[:4]]
            # Only a schedule with a budget of its own is given a faster spider.
            slowness = 0.125 if name.startswith("ByValue") else 1.0
            shares = [_share(pages, seed, budget, schedule, slowness, switch=switch) for seed in chosen.seeds]
            note(f"{name}, {budget}: {' '.join(f'{share:.3f}' for share in shares)}")
            cells.append(f"{np.mean(shares):.3f}")
        print(markdown.line(name, *cells), flush=True)
