"""inlink turns links into decisions: link graphs of crawls and archives, and what to fetch next.

Names are imported when they are first used, so that ``import inlink`` loads neither Numba nor SciPy.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inlink import errors
    from inlink.base.clock import VirtualClock
    from inlink.base.progress import progress
    from inlink.client.shards import connect
    from inlink.crawl.crawl import Crawl
    from inlink.crawl.view import CrawlView
    from inlink.errors import InlinkError
    from inlink.frontier.rules import Rules
    from inlink.frontier.settings import Politeness
    from inlink.graph.graph import Graph
    from inlink.rank.betweenness import betweenness
    from inlink.rank.cheirank import cheirank
    from inlink.rank.closeness import closeness, harmonic
    from inlink.rank.degree import degree
    from inlink.rank.drift import Drift, drift
    from inlink.rank.eigenvector import eigenvector
    from inlink.rank.hits import hits
    from inlink.rank.katz import katz
    from inlink.rank.linkrank import linkrank
    from inlink.rank.loops import loops
    from inlink.rank.mcmc import Walks, mcmc
    from inlink.rank.opic import opic
    from inlink.rank.pagerank import pagerank
    from inlink.rank.percolation import percolation
    from inlink.rank.ranking import Ranking
    from inlink.rank.salsa import salsa
    from inlink.rank.spam import anti_trustrank, spam_mass
    from inlink.rank.structure import Structure, structure
    from inlink.rank.trustrank import trustrank
    from inlink.rank.whatif import RankChanges, whatif
    from inlink.replaying.replay import replay
    from inlink.sources.diff import diff
    from inlink.sources.publish import publish
    from inlink.sources.published import PublishedGraph
    from inlink.sources.read import read
    from inlink.sources.write import write_graph as write

__version__ = "0.1.0"

_HOMES = {
    "Crawl": ("inlink.crawl.crawl", "Crawl"),
    "CrawlView": ("inlink.crawl.view", "CrawlView"),
    "Drift": ("inlink.rank.drift", "Drift"),
    "Graph": ("inlink.graph.graph", "Graph"),
    "InlinkError": ("inlink.errors", "InlinkError"),
    "Politeness": ("inlink.frontier.settings", "Politeness"),
    "PublishedGraph": ("inlink.sources.published", "PublishedGraph"),
    "RankChanges": ("inlink.rank.whatif", "RankChanges"),
    "Ranking": ("inlink.rank.ranking", "Ranking"),
    "Rules": ("inlink.frontier.rules", "Rules"),
    "Structure": ("inlink.rank.structure", "Structure"),
    "VirtualClock": ("inlink.base.clock", "VirtualClock"),
    "Walks": ("inlink.rank.mcmc", "Walks"),
    "anti_trustrank": ("inlink.rank.spam", "anti_trustrank"),
    "betweenness": ("inlink.rank.betweenness", "betweenness"),
    "cheirank": ("inlink.rank.cheirank", "cheirank"),
    "closeness": ("inlink.rank.closeness", "closeness"),
    "connect": ("inlink.client.shards", "connect"),
    "degree": ("inlink.rank.degree", "degree"),
    "diff": ("inlink.sources.diff", "diff"),
    "drift": ("inlink.rank.drift", "drift"),
    "eigenvector": ("inlink.rank.eigenvector", "eigenvector"),
    "harmonic": ("inlink.rank.closeness", "harmonic"),
    "hits": ("inlink.rank.hits", "hits"),
    "katz": ("inlink.rank.katz", "katz"),
    "linkrank": ("inlink.rank.linkrank", "linkrank"),
    "loops": ("inlink.rank.loops", "loops"),
    "mcmc": ("inlink.rank.mcmc", "mcmc"),
    "opic": ("inlink.rank.opic", "opic"),
    "pagerank": ("inlink.rank.pagerank", "pagerank"),
    "percolation": ("inlink.rank.percolation", "percolation"),
    "progress": ("inlink.base.progress", "progress"),
    "publish": ("inlink.sources.publish", "publish"),
    "read": ("inlink.sources.read", "read"),
    "replay": ("inlink.replaying.replay", "replay"),
    "salsa": ("inlink.rank.salsa", "salsa"),
    "spam_mass": ("inlink.rank.spam", "spam_mass"),
    "structure": ("inlink.rank.structure", "structure"),
    "trustrank": ("inlink.rank.trustrank", "trustrank"),
    "whatif": ("inlink.rank.whatif", "whatif"),
    "write": ("inlink.sources.write", "write_graph"),
}

__all__ = [
    "Crawl",
    "CrawlView",
    "Drift",
    "Graph",
    "InlinkError",
    "Politeness",
    "PublishedGraph",
    "RankChanges",
    "Ranking",
    "Rules",
    "Structure",
    "VirtualClock",
    "Walks",
    "__version__",
    "anti_trustrank",
    "betweenness",
    "cheirank",
    "closeness",
    "connect",
    "degree",
    "diff",
    "drift",
    "eigenvector",
    "errors",
    "harmonic",
    "hits",
    "katz",
    "linkrank",
    "loops",
    "mcmc",
    "opic",
    "pagerank",
    "percolation",
    "progress",
    "publish",
    "read",
    "replay",
    "salsa",
    "spam_mass",
    "structure",
    "trustrank",
    "whatif",
    "write",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("inlink.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'inlink' has no attribute {name!r}")
    from inlink.base.importing import quick_imports

    module, attribute = _HOMES[name]
    with quick_imports():
        value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


# Notebooks do not show the log, so a message on the page explains why a first call takes long.
if "ipykernel" in sys.modules:
    from inlink.base.progress import show_compiling

    show_compiling()
