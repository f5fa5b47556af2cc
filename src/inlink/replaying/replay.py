"""``inlink.replay``: replay crawls of a known web, and compare the orders in which policies fetch its pages."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

import numpy as np

from inlink.base.arrays import BoolArray, Float64Array, UInt32Array
from inlink.base.declare import keywords
from inlink.base.progress import Work, track
from inlink.errors import InputError, ParameterError
from inlink.factors.trust import read_trust
from inlink.frontier.policies import policy_name
from inlink.graph.components import reachable
from inlink.graph.graph import Graph, Rows
from inlink.graph.interop import GraphLike, as_graph
from inlink.graph.source import level_of
from inlink.replaying.arguments import ReplayArguments
from inlink.replaying.changes import Drawn, counted_copies, fresh_rank_of, freshness_of, has_changes
from inlink.replaying.checks import ReplayPlan, checked, seed_sets
from inlink.replaying.jobs import Done, performed
from inlink.replaying.lines import best_fresh_rank, line, sort_bound, sorted_rows
from inlink.replaying.measures import (
    FRESH_RANK,
    FRESHNESS,
    MEASURES,
    Curve,
    check_order,
    counts_at,
    curve_of,
    harvest_of,
    worth_of,
)
from inlink.replaying.play import Played, ReplayTask
from inlink.replaying.result import BOUND, GREEDY, LOOK_AHEAD, OPTIMUM, Replay, Run
from inlink.replaying.web import Web, web_of_graph, with_noise

Source = str | os.PathLike[str] | GraphLike
LINES = {"greedy": GREEDY, "look-ahead": LOOK_AHEAD}
HOST_PAGES = (256,)
"""Sizes of guessed hosts, if none are given."""

MOST_FETCHES = 5
"""Maximum number of replayed fetches, as a multiple of the number of URLs: failures and redirects cost fetches too."""

SAMPLE = 1000
"""Number of names that are checked to decide whether names are URLs."""


@keywords(ReplayArguments)
def replay(source: Source, **arguments: Unpack[ReplayArguments]) -> Replay:
    """Replay crawls of a known web by several policies, and measure the pages that each fetches over time.

    Each replay is an :class:`inlink.Crawl` in a temporary folder and in virtual time; only the fetches are replayed.
    The same arguments and version give the same result. See :mod:`inlink.replaying.lines` for the lines.

    Parameters
    ----------
    source : path-like, Graph, SciPy sparse matrix, or NetworkX graph
        A graph in any form that :func:`inlink.read` reads, a crawl's folder, or a WARC, WACZ or ARC file.
    policies : sequence of str, Policy classes or instances
        Names, or ``module:Class``.
    seeds : str or sequence of sequences
        ``"20x10"`` draws 20 sets of 10 pages; ``"front"`` is one set with the front page of each host, and
        ``"front:20x10"`` draws among these; ``"recorded"`` takes the seeds of a recorded crawl; another text is a file
        with one URL a line and an empty line between two sets. Or the sets themselves, as URLs or page numbers.
    budget : float or int
        The end of a replay: a share in (0, 1] of the pages that the seeds reach, or a number of fetches, at least 1.
    marks : sequence of float
        Increasing shares in (0, 1] of the pages that the seeds reach, at which values are kept. Those beyond the budget
        are left out.
    baseline : str or None
        The policy that the others are compared with. None: ``host-diverse`` if it is among them, else the first.
    host_pages : sequence of int or None
        Numbers of pages of guessed hosts, for a graph whose names are no URLs; 0 is one host. None is 256.
    lines : bool
        Add clairvoyant greedy, look-ahead and the sort bound; with ``changes``, the optimum of revisits.
    tau : bool
        Compare the ranks of the crawled part with those of the whole, by Kendall's τ.
    relevant : float
        The least content score of a relevant page.
    top : int
        The number of pages with the highest PageRank of which the measure ``top`` is the share; at least 1.
    wasted : str or None
        A regular expression; fetches of URLs that it matches are counted as wasted.
    random_seed : int
        Seed of the random numbers that draw seeds and changes, at least 0.
    parallel : int
        Fetches under way at a time, at least 1.
    fetch_seconds : float
        Duration of a fetch in seconds, if no recording has it; at least 0.
    changes : float or None
        Mean time between two changes of a page, in seconds, at least 0.001: the changes are drawn at random, with
        ``random_seed``. None: the changes of the recording, if it has any. With changes, freshness is measured: see
        :mod:`inlink.replaying.changes`.
    noise : float
        Standard deviation, at least 0, of the errors in the content scores and link scores that a replayed crawl gets.
        Measures use the scores without errors.
    settings : mapping or None
        Other settings of :class:`inlink.Crawl`, such as ``politeness`` or ``revisit``. Without a recording, the delay
        is 0.
    jobs : int
        Processes that replay at the same time, at least 1.

    Returns
    -------
    Replay
        The shares that each order collected, by measure and seed set.

    Raises
    ------
    inlink.errors.ParameterError
        If an argument is out of its range, or does not go with the source.
    inlink.errors.UnknownNodeError
        If a seed is not in the source.
    inlink.errors.InputError, inlink.errors.FolderError
        If the source or a file of seeds cannot be read.

    Examples
    --------
    >>> import inlink
    >>> star = inlink.Graph.from_arcs([(0, k) for k in range(1, 9)] + [(8, 9)])
    >>> result = inlink.replay(star, policies=["breadth-first", "random"], seeds=[[0]], budget=1.0, marks=[0.5, 1.0])
    >>> round(result.mean("random", at=1.0).mean, 6)
    1.0
    """
    plan = checked(arguments)
    work = Replaying(webs_of(source, plan), plan)
    work.run()
    return work.result()


def webs_of(source: Source, plan: ReplayPlan) -> list[Web]:
    """Return the source as a web, or as several webs that differ in the sizes of guessed hosts.

    Raises
    ------
    inlink.errors.ParameterError
        If sizes of hosts are given, and the source has hosts.
    inlink.errors.InputError, inlink.errors.FolderError
        If the source cannot be read.
    """
    web, name = _read(source)
    if isinstance(web, Graph):
        if not web.num_nodes:
            raise ParameterError(f"{name}: a graph without nodes cannot be replayed")
        if not _has_urls(web):
            return [web_of_graph(web, name, size) for size in plan.host_pages or HOST_PAGES]
        web = web_of_graph(web, name, None)
    if plan.host_pages:
        raise ParameterError(f"the URLs of {name} have hosts, so `host_pages` does not apply: leave it out")
    return [web]


def _has_urls(graph: Graph) -> bool:
    """Return whether a graph's names are URLs."""
    if graph.names is None or graph.level not in (None, "page"):
        return False
    return level_of([graph.names.raw(node) for node in range(min(graph.num_nodes, SAMPLE))]) == "page"


def _read(source: Source) -> tuple[Graph | Web, str]:
    from inlink.graph.graph import is_graph
    from inlink.sources.read import read
    from inlink.sources.recognise import recognise
    from inlink.store.reader import is_crawl

    if not isinstance(source, str | os.PathLike):
        return as_graph(source), "graph"
    path = Path(source)
    name = path.resolve().name
    if is_crawl(path):
        from inlink.replaying.recording import web_of_crawl

        return web_of_crawl(path), name
    if is_graph(path):
        return Graph.open(path), name
    if path.is_file() and recognise(path) in ("warc", "arc"):
        from inlink.replaying.archived import web_of_archive

        return web_of_archive(path), name
    return read(source), name


@dataclass(frozen=True)
class _Start:
    """A seed set on a web: the reachable pages and their values."""

    seeds: UInt32Array
    reached: BoolArray
    pages: int
    budget: int


class Replaying:
    """Replays in progress: :meth:`run` may be interrupted, and :meth:`result` has the seed sets that are complete.

    Parameters
    ----------
    webs : list of Web
        The webs.
    plan : ReplayPlan
        The plan of the replay.

    Attributes
    ----------
    speeds : dict of str to (int, float)
        The numbers of fetches, and their CPU seconds, by policy. No result has them, because they differ each time.
    """

    def __init__(self, webs: list[Web], plan: ReplayPlan) -> None:
        self._webs, self._plan = webs, plan
        web = webs[0]
        self._sets = seed_sets(web, plan.seeds, plan.random_seed)
        if len(web.seeds) or web.settings:
            politeness = dict(web.settings.get("politeness", {})) | dict(plan.settings.get("politeness", {}))
            self._plan = plan = replace(
                plan, settings=web.settings | plan.settings | {"politeness": politeness}
            )
        self._trusted = _trusted_in(web, plan.settings.get("trust"))
        if self._trusted is not None:
            # A crawl begins at its trusted pages too.
            self._sets = [np.union1d(seeds, np.array(list(self._trusted), np.uint32)) for seeds in self._sets]
        self._fresh = plan.changes is not None or has_changes(web)
        revisits = plan.settings.get("revisit") is not None or plan.settings.get("revisit_rules")
        if revisits and not self._fresh:
            raise ParameterError(
                f"{web.name} does not know when pages change, so revisits find nothing: "
                "give `changes`, the mean seconds between two changes of a page, or leave `revisit` and "
                "`revisit_rules` out"
            )
        self._starts = [self._start(web, seeds) for seeds in self._sets]
        if not all(start.pages for start in self._starts):
            raise ParameterError(
                f"{web.name}: a seed set reaches no page that can be fetched: give other seeds"
            )
        share = plan.budget
        if isinstance(share, int):
            share = min(1.0, *(start.budget / start.pages for start in self._starts))
        self._marks = [mark for mark in plan.marks if mark <= share] or [share]
        damping = float(plan.settings.get("damping", 0.85))
        with track("measuring the whole web"):
            worth = worth_of(web, damping=damping, relevant=plan.relevant, top=plan.top)
        self._worth = {name: values for name, values in worth.items() if values.any()}
        if plan.noise and "score" not in worth:
            raise ParameterError(f"{web.name} has no content scores, so `noise` does not apply: leave it out")
        self._damping = damping
        self._wasted = _matched(web, plan.wasted)
        self._played: dict[tuple[int, int], list[Done]] = {}
        self.speeds: dict[str, tuple[int, float]] = {}

    def _start(self, web: Web, seeds: UInt32Array) -> _Start:
        ends = np.unique(web.targets[seeds])
        reached = reachable(web.graph.out_rows, ends.tolist()) & web.fetchable
        pages, budget = int(reached.sum()), self._plan.budget
        most = MOST_FETCHES * web.num_pages
        fetches = max(1, int(budget * pages + 1e-9)) if isinstance(budget, float) else min(budget, most)
        return _Start(seeds, reached, pages, fetches)

    @property
    def num_sets(self) -> int:
        """The number of seed sets."""
        return len(self._sets)

    def check_measure(self, name: str) -> None:
        """Check that the web has a measure.

        Raises
        ------
        inlink.errors.ParameterError
            If the web does not have it.
        """
        if name not in self._measures:
            remedy = "; freshness needs `changes`" if name in (FRESHNESS, FRESH_RANK) else ""
            raise ParameterError(
                f"{self._webs[0].name} has no measure {name!r}: there are {', '.join(self._measures)}{remedy}"
            )

    @property
    def _measures(self) -> list[str]:
        return [
            name
            for name in MEASURES
            if name in self._worth or (name in (FRESHNESS, FRESH_RANK) and self._fresh)
        ]

    def run(self) -> None:
        """Make all replays."""
        total = len(self._webs) * len(self._plan.names) * sum(start.budget for start in self._starts)
        with track("replaying", total, "fetches") as progress:
            for number, web in enumerate(self._webs):
                self._run_on(number, web, progress)

    def _run_on(self, number: int, web: Web, progress: Work) -> None:
        plan = self._plan
        with ExitStack() as stack:
            settings = stack.enter_context(_trusted_settings(web, plan.settings, self._trusted))
            tasks = [
                ReplayTask(
                    policy, start.seeds.tolist(), start.budget, settings, plan.parallel, plan.fetch_seconds,
                    plan.changes, plan.random_seed, place,
                    counts_at(self._marks, start.pages) if plan.tau else [], self._damping,
                )
                for place, start in enumerate(self._starts)
                for policy in plan.policies
            ]  # fmt: skip
            results = stack.enter_context(
                performed(
                    with_noise(web, plan.noise, plan.random_seed),
                    self._worth["pagerank"],
                    tasks,
                    plan.jobs,
                    progress.advance,
                )
            )
            for done in results:
                self._played.setdefault((number, done.task.set), []).append(done)
                name = policy_name(done.task.policy)
                fetches, cpu = self.speeds.get(name, (0, 0.0))
                self.speeds[name] = (fetches + len(done.played.fetched), cpu + done.played.cpu)

    def result(self) -> Replay:
        """Return the result of the seed sets for which all policies were replayed on all webs."""
        from inlink import __version__

        plan, web = self._plan, self._webs[0]
        whole = [
            place
            for place in range(len(self._starts))
            if all(len(self._played.get((k, place), [])) == len(plan.names) for k in range(len(self._webs)))
        ]
        runs: list[Run] = []
        for number, replayed in enumerate(self._webs):
            for place in whole:
                runs += self._runs(replayed, place, self._played[number, place])
        optimum = [OPTIMUM] if plan.changes is not None else []
        if plan.lines:
            rows = sorted_rows(web.graph, self._worth["pagerank"])
            for place in whole:
                runs += self._lines(web, place, rows)
        return Replay(
            web=web.name,
            version=__version__,
            pages=web.num_pages,
            links=len(web.links),
            notes={what: count for what, count in web.notes.items() if count},
            orders=[*plan.names, *([*LINES.values(), BOUND, *optimum] if plan.lines else [])],
            baseline=plan.baseline,
            marks=self._marks,
            measures=self._measures,
            hosts=[replayed.hosts for replayed in self._webs],
            seeds=[self._sets[place].tolist() for place in whole],
            settings=plan.described(),
            complete=len(whole) == len(self._starts),
            runs=runs,
        )

    def _runs(self, web: Web, place: int, played: Iterable[Done]) -> list[Run]:
        start, plan = self._starts[place], self._plan
        by_name = {policy_name(done.task.policy): done for done in played}
        counts = counts_at(self._marks, start.pages)
        base = by_name[plan.baseline].played.times
        moments = [float(base[min(count, len(base)) - 1]) for count in counts] if len(base) else []
        runs = []
        for name in plan.names:
            done = by_name[name]
            home, times = done.played.home, done.played.times
            check_order(home, self._worth, start.reached, start.budget, f"{web.name}, set {place}, {name}")
            timed = len(times) > 0 and times[-1] > 0
            then = [int(np.searchsorted(times, moment, "right")) for moment in moments] if timed else []
            harvests = self._harvests(home, start)
            fresh, more = self._freshness(done.played, start, counts)
            runs.append(
                Run(
                    hosts=web.hosts,
                    order=name,
                    set=place,
                    reached=start.pages,
                    budget=start.budget,
                    fetches=len(home),
                    counts=done.played.counts | more,
                    seconds=[float(times[min(count, len(times)) - 1]) for count in counts] if timed else [],
                    measures={key: curve_of(harvest, counts) for key, harvest in harvests.items()} | fresh,
                    by_time={
                        key: [float(harvest[min(k, len(harvest)) - 1]) if k else 0.0 for k in then]
                        for key, harvest in harvests.items()
                        if timed
                    },
                    tau=done.tau,
                    wasted=[]
                    if self._wasted is None
                    else [float(self._wasted[done.played.fetched[:count]].mean()) for count in counts],
                )
            )
        return runs

    def _freshness(
        self, played: Played, start: _Start, counts: Sequence[int]
    ) -> tuple[dict[str, Curve], dict[str, int]]:
        """Return the measures of freshness, and the number of copies that they leave out."""
        if not self._fresh:
            return {}, {}
        watched = None if self._plan.changes is not None else self._webs[0].watched
        copies = counted_copies(played.copies, played.times, played.stale, watched)
        ranks = np.where(start.reached, self._worth["pagerank"], 0.0)
        shares = {
            FRESHNESS: freshness_of(copies, played.times),
            FRESH_RANK: fresh_rank_of(copies, played.times, ranks, watched),
        }
        left_out = {"copies whose changes are not recorded": copies.left_out} if copies.left_out else {}
        return {
            name: curve_of(values, counts, area=mean, budget=start.budget)
            for name, (values, mean) in shares.items()
        }, left_out

    def _harvests(self, home: UInt32Array, start: _Start) -> dict[str, Float64Array]:
        return {
            name: harvest_of(home, values, float(values[start.reached].sum()), start.budget)
            for name, values in self._worth.items()
        }

    def _lines(self, web: Web, place: int, rows: Rows) -> list[Run]:
        """Return the lines as runs of the first web. Hosts have no effect on them."""
        start = self._starts[place]
        counts = counts_at(self._marks, start.pages)
        by_label: dict[str, dict[str, Float64Array]] = {}
        ends = np.unique(web.targets[start.seeds]).astype(np.uint32)
        for name, label in LINES.items():
            order = line(name, rows, self._worth["pagerank"], web.fetchable, ends, start.budget)
            check_order(order, self._worth, start.reached, start.budget, f"{web.name}, set {place}, {label}")
            by_label[label] = self._harvests(order, start)
        by_label[BOUND] = {
            name: sort_bound(values, start.reached, start.budget)
            / max(float(values[start.reached].sum()), 1e-300)
            for name, values in self._worth.items()
        }
        curves = {
            label: {name: curve_of(harvest, counts) for name, harvest in harvests.items()}
            for label, harvests in by_label.items()
        }
        if (best := self._best_fresh_rank(place)) is not None:
            curves[OPTIMUM] = {FRESH_RANK: curve_of(np.full(start.budget, best), counts, area=best)}
        return [
            Run(
                hosts=web.hosts, order=label, set=place, reached=start.pages, budget=start.budget,
                fetches=start.budget, counts={}, seconds=[], by_time={}, tau=[], wasted=[], measures=measures,
            )
            for label, measures in curves.items()
        ]  # fmt: skip

    def _best_fresh_rank(self, place: int) -> float | None:
        """The optimum of revisits with as many fetches a second as the baseline makes; None without drawn changes."""
        plan, reached = self._plan, self._starts[place].reached
        base = next(
            done.played for done in self._played[0, place] if policy_name(done.task.policy) == plan.baseline
        )
        if plan.changes is None or not len(base.times) or not base.times[-1]:
            return None
        drawn = Drawn(plan.changes, plan.random_seed)
        rates = np.array([drawn.rate(page) for page in np.flatnonzero(reached).tolist()])
        return best_fresh_rank(
            self._worth["pagerank"][reached], rates, len(base.times) / float(base.times[-1])
        )


def _trusted_in(web: Web, path: str | None) -> dict[int, float] | None:
    """Read a file of trusted pages; return the weights of those that the web has, or None if there is no file."""
    if path is None:
        return None
    weights = read_trust(path, web.url_rules, Counter())
    trusted = {page: weights[url] for page, url in enumerate(web.urls) if url in weights}
    if not trusted:
        raise InputError(
            f"trust: {path} names no page of {web.name}: name URLs of its pages, such as {web.urls[0]}"
        )
    return trusted


@contextmanager
def _trusted_settings(
    web: Web, settings: Mapping[str, Any], trusted: Mapping[int, float] | None
) -> Iterator[dict[str, Any]]:
    """Yield the settings for a replay on one web. Their ``trust`` names a temporary file, which has its pages only."""
    if trusted is None:
        yield dict(settings)
        return
    with TemporaryDirectory(prefix="inlink-replay-") as folder:
        file = Path(folder) / "trust.txt"
        lines = [f"{web.urls[page]}\t{weight!r}\n" for page, weight in trusted.items()]
        file.write_text("".join(lines), "utf-8")
        yield {**settings, "trust": str(file)}


def _matched(web: Web, expression: str | None) -> BoolArray | None:
    """Return whether an expression matches each URL, bool[n]."""
    if expression is None:
        return None
    from inlink.base.strings import Strings
    from inlink.urls.matching import matcher

    matched = np.zeros(web.num_pages, np.bool_)
    matched[matcher(expression)(Strings.of(web.urls))] = True
    return matched
