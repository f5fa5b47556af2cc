"""inlink turns links into decisions: link graphs of crawls and archives, and what to fetch next.

Names are imported when they are first used, so that ``import inlink`` loads neither Numba nor SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inlink.base.progress import progress
    from inlink.crawl import Crawl
    from inlink.errors import InlinkError
    from inlink.frontier.queue import Politeness
    from inlink.frontier.rules import Rules
    from inlink.graph.graph import Graph
    from inlink.rank.degree import degree
    from inlink.rank.hits import hits
    from inlink.rank.linkrank import linkrank
    from inlink.rank.loops import loops
    from inlink.rank.pagerank import pagerank
    from inlink.rank.ranking import Ranking
    from inlink.rank.trustrank import trustrank
    from inlink.sources.read import read
    from inlink.sources.write import write_graph as write

__version__ = "0.1.0"

_HOMES = {
    "Crawl": ("inlink.crawl", "Crawl"),
    "Graph": ("inlink.graph.graph", "Graph"),
    "InlinkError": ("inlink.errors", "InlinkError"),
    "Politeness": ("inlink.frontier.queue", "Politeness"),
    "Ranking": ("inlink.rank.ranking", "Ranking"),
    "Rules": ("inlink.frontier.rules", "Rules"),
    "degree": ("inlink.rank.degree", "degree"),
    "hits": ("inlink.rank.hits", "hits"),
    "linkrank": ("inlink.rank.linkrank", "linkrank"),
    "loops": ("inlink.rank.loops", "loops"),
    "pagerank": ("inlink.rank.pagerank", "pagerank"),
    "progress": ("inlink.base.progress", "progress"),
    "read": ("inlink.sources.read", "read"),
    "trustrank": ("inlink.rank.trustrank", "trustrank"),
    "write": ("inlink.sources.write", "write_graph"),
}

__all__ = [
    "Crawl",
    "Graph",
    "InlinkError",
    "Politeness",
    "Ranking",
    "Rules",
    "__version__",
    "degree",
    "hits",
    "linkrank",
    "loops",
    "pagerank",
    "progress",
    "read",
    "trustrank",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'inlink' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
