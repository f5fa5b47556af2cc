"""A known web: the answer of each page to a fetch of a replay.

A graph, a recorded crawl and an archive all become a :class:`Web`. Data that a recording does not have are marked as
unknown, and never invented.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    UInt8Array,
    UInt16Array,
    UInt32Array,
    UInt64Array,
)
from inlink.base.memory import require_memory
from inlink.errors import ParameterError
from inlink.graph.graph import Graph, Rows
from inlink.urls.canonical import UrlRules, canonical

PAGE, FAILED, REDIRECT, EXCLUDED, UNKNOWN = range(5)
"""Results of a fetch: the page, an error, another page, a refusal by a rule, or unknown."""

NO_PAGE = 0xFFFFFFFF


@dataclass(frozen=True)
class Web:
    """A known web. Unless stated otherwise, all arrays have one entry for each page.

    Attributes
    ----------
    name : str
        The name of the web in results.
    hosts : str
        The kind of hosts: ``"real"``, or the number of pages of a guessed host, or ``"all"`` if there is one host.
    urls : list of str
        Canonical URLs, each once.
    graph : Graph
        The links between pages, where a redirect is its target; for measures and lines.
    offsets : uint64[n + 1]
        The place of each page's first link.
    links : uint32[m]
        The linked pages, as written.
    outcomes : uint8[n]
        The result of a fetch: one of :data:`PAGE`, …, :data:`UNKNOWN`.
    statuses : uint16[n]
        HTTP status; 0 if there is none.
    targets : uint32[n]
        The page at the end of a redirect; for other pages, the page itself.
    tries : uint8[n]
        The number of failed fetches before the first success.
    scores : float32[n]
        The score of the content.
    fingerprints : uint64[n]
        The fingerprint of the page's text; 0 if there is none.
    seconds : float32[n]
        The duration of a fetch in seconds; NaN if it is unknown.
    delays : float32[n]
        The delay between two fetches that the page's host asked for, in seconds; 0 if none.
    link_scores : float32[m]
        The score of each link; empty if there are none.
    change_offsets : uint64[n + 1]
        The place of each page's first change.
    changes : float64[k]
        The times at which changes were found, in seconds since the recording began; increasing for each page.
    watched : float64[n, 2]
        The first and the last time between which the page's changes are known; NaN if they never are.
    seeds : uint32[k]
        The seeds of the recording; empty without a recording.
    settings : dict
        Settings of the recorded crawl that hold for its replay.
    url_rules : UrlRules or None
        Rules of the recorded crawl for canonical URLs.
    notes : dict
        Number of pages or links that the source does not know, or that cannot be fetched, by kind.
    """

    name: str
    hosts: str
    urls: list[str]
    graph: Graph
    offsets: UInt64Array
    links: UInt32Array
    outcomes: UInt8Array
    statuses: UInt16Array
    targets: UInt32Array
    tries: UInt8Array
    scores: Float32Array
    fingerprints: UInt64Array
    seconds: Float32Array
    delays: Float32Array
    link_scores: Float32Array
    change_offsets: UInt64Array
    changes: Float64Array
    watched: Float64Array
    seeds: UInt32Array
    settings: dict[str, Any] = field(default_factory=dict)
    url_rules: UrlRules | None = None
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def num_pages(self) -> int:
        """The number of URLs."""
        return len(self.outcomes)

    @property
    def fetchable(self) -> BoolArray:
        """True for each page that a fetch can get, bool[n]."""
        same: BoolArray = self.outcomes == PAGE
        return same

    def save(self, folder: Path) -> None:
        """Write the arrays into a folder, for :meth:`load` in another process."""
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self, name))
        np.save(folder / "graph_offsets.npy", self.graph.out_rows.offsets)
        np.save(folder / "graph_nodes.npy", self.graph.out_rows.nodes)
        (folder / "urls.txt").write_text("\n".join(self.urls), "utf-8", "surrogateescape")

    @classmethod
    def load(cls, folder: Path, **more: Any) -> "Web":
        """Return the web that :meth:`save` wrote. Its arrays are mapped, so that processes share them."""

        def array(name: str) -> AnyArray:
            mapped: AnyArray = np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray)
            return mapped

        rows = Rows(array("graph_offsets"), array("graph_nodes"))
        urls = (folder / "urls.txt").read_text("utf-8", "surrogateescape").split("\n")
        columns: dict[str, Any] = {name: array(name) for name in _ARRAYS}
        return cls(urls=urls, graph=Graph(rows, checked=True), **columns, **more)


_PLAIN = ("name", "hosts", "urls", "graph", "settings", "url_rules", "notes")
_ARRAYS = tuple(column.name for column in fields(Web) if column.name not in _PLAIN)


def web_of_graph(graph: Graph, name: str, host_pages: int | None) -> Web:
    """Return a graph as a web: each page has its outlinks, and no fetch fails.

    Parameters
    ----------
    graph : Graph
        The graph of the web.
    name : str
        The name of the web.
    host_pages : int or None
        Number of pages of a guessed host, which has consecutive nodes; 0 puts all pages on one host. It applies only to
        a graph whose names are no URLs. None: the names are URLs.

    Raises
    ------
    inlink.errors.ParameterError
        If ``host_pages`` is None and the graph has no URLs.
    """
    n = graph.num_nodes
    require_memory(400 * n, f"a replay of {n:,} pages")
    outcomes = np.zeros(n, np.uint8)
    if graph.crawled is not None:
        outcomes[~np.asarray(graph.crawled)] = UNKNOWN
    notes = {"pages that are not recorded": int((outcomes == UNKNOWN).sum())}
    if host_pages is None:
        if graph.names is None:
            raise ParameterError("this graph has no names, so hosts must be guessed: give their size")
        urls, same = _urls_of(list(graph.names), outcomes, notes)
        if same is not None:
            graph = merged_graph(graph.out_rows, same)
    else:
        urls = [f"http://h{node // host_pages if host_pages else 0}.example/{node}" for node in range(n)]
    return Web(
        name=name,
        hosts="real" if host_pages is None else str(host_pages) if host_pages else "all",
        urls=urls,
        graph=graph,
        offsets=graph.out_rows.offsets,
        links=graph.out_rows.nodes,
        outcomes=outcomes,
        notes=notes,
        **plain_columns(n),
    )


def with_noise(web: Web, noise: float, seed: int) -> Web:
    """Return a web whose content scores and link scores have errors: independent, normal, of mean 0.

    Parameters
    ----------
    web : Web
        The web.
    noise : float
        Standard deviation of the errors. With 0, the web itself is returned.
    seed : int
        Seed of the random numbers, at least 0.
    """
    if not noise:
        return web
    generator = np.random.default_rng([seed, 0x4E6F697365])

    def noisy(scores: Float32Array) -> Float32Array:
        errors = generator.normal(0.0, noise, len(scores))
        return (np.asarray(scores, np.float64) + errors).astype(np.float32)

    return replace(web, scores=noisy(web.scores), link_scores=noisy(web.link_scores))


def plain_columns(n: int) -> dict[str, Any]:
    """Return the columns of a web whose pages all answer at once, with status 200 and score 0."""
    return {
        "statuses": np.full(n, 200, np.uint16),
        "targets": np.arange(n, dtype=np.uint32),
        "tries": np.zeros(n, np.uint8),
        "scores": np.zeros(n, np.float32),
        "fingerprints": np.zeros(n, np.uint64),
        "seconds": np.full(n, np.nan, np.float32),
        "delays": np.zeros(n, np.float32),
        "link_scores": np.empty(0, np.float32),
        "change_offsets": np.zeros(n + 1, np.uint64),
        "changes": np.empty(0, np.float64),
        "watched": np.full((n, 2), np.nan),
        "seeds": np.empty(0, np.uint32),
    }


def change_columns(n: int, seen: Mapping[int, Sequence[tuple[float, bytes]]]) -> dict[str, Any]:
    """Return the columns of changes of a web.

    Parameters
    ----------
    n : int
        The number of pages.
    seen : mapping of int to sequence of (float, bytes)
        For each page, the times of its visits in seconds since the recording began, increasing, each with a hash of the
        content. A hash that differs from the one before is a change. The changes of a page with one visit are unknown.
    """
    counts, times, watched = np.zeros(n + 1, np.uint64), list[float](), np.full((n, 2), np.nan)
    for page in sorted(seen):
        visits = seen[page]
        if len(visits) > 1:
            changed = [later[0] for earlier, later in pairwise(visits) if earlier[1] != later[1]]
            watched[page] = visits[0][0], visits[-1][0]
            counts[page + 1] = len(changed)
            times += changed
    return {
        "change_offsets": np.cumsum(counts, dtype=np.uint64),
        "changes": np.array(times, np.float64),
        "watched": watched,
    }


def _urls_of(
    names: list[str], outcomes: UInt8Array, notes: dict[str, int]
) -> tuple[list[str], UInt32Array | None]:
    """Return the canonical URLs of nodes, and for each node the first node with the same URL; None if all differ.

    A node whose name is no URL, or whose URL is that of an earlier node, gets a URL to which no page links.
    """
    urls: list[str] = []
    first: dict[str, int] = {}
    same = np.arange(len(names), dtype=np.uint32)
    invalid = 0
    for node, name in enumerate(names):
        url = canonical(name)
        if url is None:
            invalid += 1
            outcomes[node] = UNKNOWN
        elif url in first:
            same[node] = first[url]
            outcomes[first[url]] = min(outcomes[first[url]], outcomes[node])
            outcomes[node], url = UNKNOWN, None
        else:
            first[url] = node
        urls.append(f"http://none.invalid/{node}" if url is None else url)
    doubles = int((same != np.arange(len(names))).sum())
    notes |= {"names that are no URLs": invalid, "names with the same canonical URL as another": doubles}
    return urls, same if doubles else None


def merged_graph(rows: Rows, same: UInt32Array) -> Graph:
    """Return the graph in which node k is merged into node ``same[k]``, which gets its arcs, each once."""
    n = len(same)
    if (same == np.arange(n)).all():
        return Graph(rows, checked=True)
    sources = np.repeat(np.arange(n, dtype=np.uint32), np.diff(rows.offsets).astype(np.int64))
    arcs = np.unique(same[sources].astype(np.uint64) << np.uint64(32) | same[rows.nodes])
    begin = np.searchsorted(arcs >> np.uint64(32), np.arange(n + 1, dtype=np.uint64))
    return Graph(
        Rows(begin.astype(np.uint64), (arcs & np.uint64(0xFFFFFFFF)).astype(np.uint32)), checked=True
    )
