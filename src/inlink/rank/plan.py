"""Plan ``inlink rank --all``: options, memory and time of each measure, and which rankings are stored already.

**Memory** is what each measure asks for before it starts, and the copies of rows that it or an earlier measure makes.
**Time** is the cost of a pass, times the usual number of passes, divided by the number of threads. It may be off by a
factor of three: the passes depend on the graph, and the cost on caches and on other work.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from inlink.base.declare import parameters_of
from inlink.base.memory import require_memory
from inlink.base.table import counted
from inlink.errors import InlinkError, ParameterError
from inlink.graph.graph import Graph
from inlink.rank.betweenness import betweenness
from inlink.rank.closeness import EXACT_NODES, LOG2M, harmonic
from inlink.rank.degree import degree
from inlink.rank.eigenvector import eigenvector
from inlink.rank.inputs import VECTORS, use_weights, vector_bytes
from inlink.rank.katz import katz
from inlink.rank.pagerank import pagerank
from inlink.rank.ranking import Ranking

EPSILON = 0.01
"""The error of betweenness, where it is estimated."""

EXACT_STEPS = 20_000_000_000
"""The largest nodes · (nodes + arcs) for exact betweenness: about a minute of one thread."""

MEASURES: dict[str, Callable[..., Ranking]] = {
    "degree": degree,
    "harmonic": harmonic,
    "pagerank": pagerank,
    "eigenvector": eigenvector,
    "katz": katz,
    "betweenness": betweenness,
}
"""The measures, in the order in which they are computed. Katz needs the eigenvalue of the eigenvector."""

# Nanoseconds for each node and arc in a pass, usual passes (None: one for each node), and the rows that are read.
# CPU times of whole calls with compiled kernels on one thread of an AMD EPYC, divided by passes and by nodes and arcs:
# cnr-2000 (325,557 nodes, 3.2 M arcs) and a generated graph (500,000 nodes, 5.0 M arcs, 60% dangling). For exact
# searches: generated graphs of 10,000 nodes and 96,100 arcs, and of 4,000 nodes and 170,578 arcs. Costs and passes
# are those of one graph, or between them. For a sample of paths, a pass is a path.
_COSTS: dict[str, tuple[float, int | None, tuple[str, ...]]] = {
    "degree": (10, 1, ("out",)),
    "harmonic": (0.25, None, ("out",)),
    "harmonic, estimated": (45, 35, ("out", "split")),
    "pagerank": (6, 10, ()),
    "katz": (9, 90, ("out", "split", "in")),
    "eigenvector": (12, 25, ("out", "split")),
    "betweenness": (3, None, ("out",)),
    "betweenness, sampled": (0.16, 18_000, ("out", "in")),
}


class Step(NamedTuple):
    """A measure that is to be computed. ``kind`` tells whether it is estimated, and ``memory`` is in bytes."""

    algorithm: str
    kind: str
    options: dict[str, Any]
    memory: int
    seconds: float

    def summary(self) -> str:
        """Return a line with the kind, and with the time and the memory in a few digits."""
        size = f"{self.memory / 1e9:,.1f} GB" if self.memory >= 1e9 else f"{max(self.memory / 1e6, 1):.0f} MB"
        return f"{self.kind}: {_about(self.seconds)}, {size} of memory"

    def stored(self, graph: Graph, name: str) -> Ranking | None:
        """Return the ranking of this name if the same call would store the same parameters; else None."""
        try:
            ranking = Ranking.load(graph, name)
        except InlinkError:
            return None
        kept = ranking.parameters
        if ranking.algorithm != self.algorithm or kept.get("personalized") or kept.get("started"):
            return None
        for key, declared in parameters_of(MEASURES[self.algorithm]).items():
            value = self.options.get(key, declared.default)
            value = use_weights(graph, value) if key == "weighted" else value
            if key != "threads" and kept.get(key, declared.default) != value:
                return None
        return ranking


def plan(graph: Graph, threads: int | None = None) -> list[Step]:
    """Return the measures in their order. ``threads`` None: all processors."""
    from inlink.base.jit import num_threads

    n, size, weighted = graph.num_nodes, graph.num_nodes + graph.num_arcs, use_weights(graph, None)
    steps, held, copies = list[Step](), 0, _copies(graph)
    for algorithm in MEASURES:
        kind, options, more = algorithm, dict[str, Any](), 0
        if algorithm == "harmonic" and n > EXACT_NODES:
            kind, options, more = "harmonic, estimated", {"log2m": LOG2M}, _counters(graph)
        elif algorithm == "betweenness" and n * size > EXACT_STEPS:
            kind, options = "betweenness, sampled", {"epsilon": EPSILON}
        nanoseconds, passes, rows = _COSTS[kind]
        if algorithm == "pagerank" and weighted:
            # Without weights, it decodes compressed rows on the way.
            rows, more = ("out", "split"), vector_bytes(graph, 0, linking=16)
        held += sum(copies.pop(each, 0) for each in rows)
        memory = held + more + vector_bytes(graph, **VECTORS[kind], threads=threads)
        seconds = nanoseconds * 1e-9 * size * (n if passes is None else passes) / num_threads(threads)
        steps.append(Step(algorithm, kind, options, memory, seconds))
    return steps


def katz_alpha(ranking: Ranking) -> float:
    """Return Katz's α for a graph with this eigenvector: the default, or half of the largest possible if that is less.

    The default 0.1 has no finite values on a graph whose largest eigenvalue is 10 or more, as that of most webs is.
    """
    default: float = parameters_of(katz)["alpha"].default
    eigenvalue = ranking.parameters.get("eigenvalue")
    if not isinstance(eigenvalue, float) or not eigenvalue > 0:
        return default
    return min(default, float(f"{0.5 / eigenvalue:.3g}"))


def _copies(graph: Graph) -> dict[str, int]:
    """Return the bytes of each copy of rows that a measure makes. The copies stay in memory."""
    n, m, weights = graph.num_nodes, graph.num_arcs, graph.out_weights
    coded = graph.coded_in_rows
    split = len((graph.split_in_rows if coded is None else coded).linking) > 0
    decoded = 0 if coded is None else 8 * n + 4 * m
    joined = 16 * n + m * (4 if weights is None else 4 + weights.itemsize)
    return {"out": decoded, "split": decoded, "in": joined * split}


def _counters(graph: Graph) -> int:
    """Return the bytes of HyperBall's counters."""
    from inlink.rank.kernels.hyperball import LONG

    linked, links = graph.indegrees, graph.outdegrees > 0
    pairs, single = np.count_nonzero((linked > 0) & links), np.count_nonzero((linked > LONG) & ~links)
    return (2 * int(pairs) + int(single)) << LOG2M


def check_memory(steps: Iterable[Step]) -> None:
    """Refuse all steps if memory does not suffice for one of them.

    Raises
    ------
    inlink.errors.ParameterError
        Names the measures that do not fit, and how to compute the others.
    """
    fitting, refusals = [], list[str]()
    for step in steps:
        try:
            require_memory(step.memory, f"{step.kind}: vectors and rows")
            fitting.append(step.algorithm)
        except ParameterError as error:
            refusals.append(str(error))
    if refusals:
        others = f" --algorithm {','.join(fitting)} computes the others." if fitting else ""
        raise ParameterError(f"nothing was computed: {' '.join(refusals)}{others}")


def _about(seconds: float) -> str:
    if seconds < 1:
        return "less than 1 s"
    # Only the first digit means something.
    for length, unit, most in ((1, "s", 60), (60, "min", 60), (3600, "h", 48)):
        if (amount := float(f"{seconds / length:.0e}")) < most:
            return f"about {amount:.0f} {unit}"
    return f"about {counted(round(float(f'{seconds / 86400:.0e}')), 'day')}"
