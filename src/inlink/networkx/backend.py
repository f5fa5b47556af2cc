"""The functions that NetworkX dispatches to inlink, with NetworkX's parameters and results.

NetworkX converts its graph with :func:`convert_from_nx`, and keeps the result for the next call. An
:class:`inlink.Graph` needs no conversion: ``nx.pagerank(graph)`` runs here too. :func:`can_run` declines calls whose
answer would differ from NetworkX's. Some differences show only while a function runs; then it raises
``NotImplementedError`` with the reason. In both cases NetworkX runs its own function, unless the caller insists on
``backend="inlink"``.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from operator import methodcaller
from typing import Any

import networkx as nx
import numpy as np
from scipy.sparse import csr_array

import inlink
from inlink.base.arrays import AnyArray, Float64Array
from inlink.errors import InlinkError, ParameterError
from inlink.graph.graph import Graph
from inlink.graph.interop import from_scipy
from inlink.rank.ranking import Ranking

# Products of the matrix in one restart of NetworkX's ARPACK, whose restarts `max_iter` counts.
PRODUCTS = 20
# Tolerance for functions of NetworkX that solve by LAPACK or to machine precision.
FINE = 1e-12


@dataclass(eq=False)
class LinkGraph:
    """A NetworkX graph as an inlink graph, with its own nodes, kind and attributes.

    NetworkX may use a conversion with weights for a later call that asks for none. So the graph without weights is
    kept too.

    Attributes
    ----------
    graph : Graph
        All edges, whatever their weights. Nodes are numbers, and an undirected edge is two arcs. If a multigraph has
        parallel edges, the weights are their numbers.
    weights : Graph
        The edges whose attribute is not 0, with the attribute as weight. The weights of parallel edges are added.
        This is ``graph`` if no attribute was asked for, or if it changes nothing.
    nodes : list
        The nodes of the NetworkX graph, by number.
    directed, multigraph : bool
        The kind of the NetworkX graph.
    states : dict of str to list
        Attributes of nodes, by name; None where a node lacks the attribute.
    """

    __networkx_backend__ = "inlink"

    graph: Graph
    nodes: list[Any]
    weights: Graph
    directed: bool = True
    multigraph: bool = False
    states: Mapping[str, list[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""
        return self.directed

    def is_multigraph(self) -> bool:
        """Return whether the NetworkX graph may have parallel edges."""
        return self.multigraph

    def arcs(self, weight: str | None) -> dict[str, Any]:
        """Return the arguments of a ranking. Weights come from the attribute `weight`; None: no weights."""
        graph = self.graph if weight is None else self.weights
        return {
            "graph": graph,
            "weighted": graph.is_weighted and (weight is not None or self.multigraph),
        }

    def vector(self, values: Mapping[Any, float] | None) -> Float64Array | None:
        """Return a mapping as float64[n], with 0 for missing nodes; nodes that the graph lacks are ignored."""
        if values is None:
            return None
        return np.array([values.get(node, 0) for node in self.nodes], np.float64)

    def by_node(self, values: AnyArray) -> dict[Any, float]:
        """Return number[n] as a dictionary from node to Python number."""
        return dict(zip(self.nodes, values.tolist(), strict=True))


# -- the interface of a backend ------------------------------------------------------------------------------


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    **_: Any,
) -> LinkGraph:
    """Return a NetworkX graph as a :class:`LinkGraph`.

    Raises
    ------
    NotImplementedError
        If more than one attribute of edges is asked for, or a weight is not a finite number of at least 0.
    """
    attributes = dict(edge_attrs or {})
    if preserve_edge_attrs or preserve_node_attrs or len(attributes) > 1:
        raise NotImplementedError("inlink keeps one attribute of edges only")
    name, default = next(iter(attributes.items()), (None, 1))
    if default != 1:
        raise NotImplementedError(f"inlink gives an edge without {name!r} the weight 1; got {default!r}")
    nodes = list(graph)
    links = weights = Graph.from_arcs([])
    if nodes:
        matrix = _matrix(graph, nodes)
        try:
            links = from_scipy(matrix)
            if name is not None:
                matrix.data = _values(graph, name)
                weights = from_scipy(matrix)
                if not (weights.is_weighted or links.is_weighted) and weights.num_arcs == links.num_arcs:
                    weights = links
            else:
                weights = links
        except (TypeError, ValueError, OverflowError, ParameterError) as error:
            raise NotImplementedError(f"inlink cannot use these weights: {error}") from None
    states = {
        attribute: [data.get(attribute) for _, data in graph.nodes(data=True)]
        for attribute in node_attrs or {}
    }
    return LinkGraph(links, nodes, weights, graph.is_directed(), graph.is_multigraph(), states)


def _matrix(graph: Any, nodes: list[Any]) -> Any:
    """Return the numbers of edges between nodes as a matrix, float64[n, n] in CSR format.

    NetworkX's own ``to_scipy_sparse_array`` makes a tuple of each edge first, which takes five times as long.
    """
    place = dict(zip(nodes, range(len(nodes)), strict=True))
    rows = dict(graph.adjacency())
    # The length of a row may be wrong in a view of a graph.
    neighbours = [list(rows[node]) for node in nodes]
    offsets = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, neighbours), np.int64, len(nodes)), out=offsets[1:])
    count = int(offsets[-1])
    targets = np.fromiter(map(place.__getitem__, chain.from_iterable(neighbours)), np.int64, count)
    edges = np.ones(count)
    if graph.is_multigraph():
        between = chain.from_iterable(rows[node].values() for node in nodes)
        edges = np.fromiter(map(len, between), np.float64, count)
    return csr_array((edges, targets, offsets), shape=(len(nodes), len(nodes)))


def _values(graph: Any, name: str) -> Float64Array:
    """Return an attribute of the edges in the order of :func:`_matrix`, float64[m]. It is 1 where it is missing.

    The values of parallel edges are added.
    """
    rows = dict(graph.adjacency())
    between = chain.from_iterable(rows[node].values() for node in graph)
    weight = methodcaller("get", name, 1)
    if graph.is_multigraph():
        return np.array([sum(map(weight, edges.values())) for edges in between], np.float64)
    return np.fromiter(map(weight, between), np.float64)


def convert_to_nx(result: Any, **_: Any) -> Any:
    """Return a graph of this backend as a NetworkX graph; other results as they are."""
    if isinstance(result, Graph):
        return result.to_networkx()
    if not isinstance(result, LinkGraph):
        return result
    graph = result.weights.to_networkx()
    if result.weights is not result.graph:
        graph.add_edges_from(result.graph.to_networkx().edges - graph.edges, weight=0)
    graph = nx.relabel_nodes(graph, dict(enumerate(result.nodes)))
    return graph if result.directed else graph.to_undirected()


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or the reason why inlink's answer to this call would differ from NetworkX's."""
    function = globals()[name]
    try:
        arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError as error:
        return str(error)
    for parameter, (fits, reason) in _TAKEN.get(name, {}).items():
        if parameter in arguments and not fits(arguments[parameter]):
            return reason
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or the reason why inlink is no gain in a call that does not insist on it."""
    graph = args[0] if args else kwargs.get("G")
    if name.endswith("degree_centrality") and getattr(graph, "__networkx_backend__", "") != "inlink":
        return "converting the graph takes longer than counting its edges"
    return True


def _above_zero(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < math.inf


def _absent(value: Any) -> bool:
    return value is None


_Rule = tuple[Callable[[Any], bool], str]
_STEPS: _Rule = (_absent, "inlink counts each edge as one step")
_ALL: _Rule = (_absent, "inlink computes the values of all nodes, from all nodes")
_BETA: _Rule = (_above_zero, "inlink takes one number above 0 for all nodes")
_ALPHA: _Rule = (
    lambda value: isinstance(value, int | float) and value >= 0,
    "inlink takes no factor below 0",
)
_TOL: _Rule = (_above_zero, "inlink takes a tolerance above 0")
_TAKEN: dict[str, dict[str, _Rule]] = {
    "pagerank": {
        "alpha": (
            lambda value: isinstance(value, int | float) and 0 <= value < 1,
            "inlink takes 0 ≤ alpha < 1",
        ),
        "tol": _TOL,
        "dangling": (_absent, "inlink spreads the rank of dangling nodes by the personalization"),
    },
    "hits": {
        "normalized": (bool, "NetworkX's signs and lengths are arbitrary then"),
        "method": ("power_iteration".__eq__, "inlink iterates"),
    },
    "eigenvector_centrality": {"tol": _TOL},
    "katz_centrality": {"alpha": _ALPHA, "beta": _BETA, "tol": _TOL},
    "katz_centrality_numpy": {"alpha": _ALPHA, "beta": _BETA},
    "closeness_centrality": {
        "u": _ALL,
        "distance": _STEPS,
        "sp": (_absent, "inlink computes the shortest paths itself"),
    },
    "harmonic_centrality": {"nbunch": _ALL, "sources": _ALL, "distance": _STEPS},
    "betweenness_centrality": {
        "k": (_absent, "inlink and NetworkX draw different samples"),
        "weight": _STEPS,
    },
    "percolation_centrality": {"weight": _STEPS},
}
"""For each function and parameter: which values inlink takes, and why no others."""


def _links_of(graph: Any, max_iter: int = 1) -> LinkGraph:
    if isinstance(graph, Graph):
        graph = LinkGraph(graph, list(graph.nodes), graph)
    if isinstance(graph, LinkGraph):
        if graph.nodes and max_iter < 1:
            raise nx.PowerIterationFailedConvergence(max_iter)
        return graph
    raise NotImplementedError(f"inlink does not know graphs of type {type(graph).__name__}")


@contextmanager
def _declining() -> Iterator[None]:
    """Leave a call that inlink refuses to NetworkX."""
    try:
        yield
    except InlinkError as error:
        raise NotImplementedError(str(error)) from error


# -- link analysis -------------------------------------------------------------------------------------------


def pagerank(
    G: Any,
    alpha: float = 0.85,
    personalization: Mapping[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: str | None = "weight",
    dangling: None = None,
) -> dict[Any, float]:
    """See ``networkx.pagerank``."""
    links = _links_of(G, max_iter)
    if not links.nodes:
        return {}
    teleport = links.vector(personalization)
    if teleport is not None and teleport.sum() == 0:
        raise ZeroDivisionError
    with _declining():
        ranking = inlink.pagerank(
            **links.arcs(weight),
            damping=alpha,
            personalization=teleport,
            tol=tol,
            max_iter=max_iter,
            start=links.vector(nstart),
        )
    # NetworkX stops when a sweep changes the values by less than n·tol. This is the bound times 1 − alpha.
    if not ranking.converged and not (ranking.error_bound or 0) * (1 - alpha) < len(links) * tol:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return links.by_node(ranking.values)


def hits(
    G: Any,
    max_iter: int = 100,
    tol: float = 1e-8,
    nstart: Mapping[Any, float] | None = None,
    normalized: bool = True,
    *,
    method: str = "power_iteration",
) -> tuple[dict[Any, float], dict[Any, float]]:
    """See ``networkx.hits``."""
    links = _links_of(G, max_iter)
    if not links.nodes:
        return {}, {}
    if len(links) == 1 or not links.weights.num_arcs:
        raise NotImplementedError("NetworkX computes HITS only if there are two nodes and an edge")
    with _declining():
        ranking = inlink.hits(
            links.weights, tol=max(tol, 1e-13), max_iter=PRODUCTS * max_iter, start=links.vector(nstart)
        )
    if not ranking.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return links.by_node(ranking.hubs), links.by_node(ranking.authorities)


# -- solutions of equations ----------------------------------------------------------------------------------


def eigenvector_centrality(
    G: Any,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: str | None = None,
) -> dict[Any, float]:
    """See ``networkx.eigenvector_centrality``."""
    links = _links_of(G, max_iter)
    if not links.nodes:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    start = links.vector(nstart)
    if start is not None and not start.any():
        raise nx.NetworkXError("initial vector cannot have all zero values")
    ranking = _eigenvector(links, tol, max_iter, start, weight)
    # NetworkX stops when a round changes the values by less than n·tol in L1, which is at most √n times as much.
    if not ranking.converged and not (ranking.residual or 0) < math.sqrt(len(links)) * tol:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return links.by_node(ranking.values)


def eigenvector_centrality_numpy(
    G: Any, weight: str | None = None, max_iter: int = 50, tol: float = 0
) -> dict[Any, float]:
    """See ``networkx.eigenvector_centrality_numpy``."""
    from inlink.graph.components import components

    links = _links_of(G)
    if not links.nodes:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    if len(np.unique(components(links.graph.out_rows, strong=True))) > 1:
        raise nx.AmbiguousSolution(
            "`eigenvector_centrality_numpy` does not give consistent results for disconnected graphs"
        )
    ranking = _eigenvector(links, max(tol, FINE), PRODUCTS * max_iter, None, weight)
    if not ranking.converged:
        raise NotImplementedError(f"inlink does not reach the residual {max(tol, FINE):g}")
    return links.by_node(ranking.values)


def _eigenvector(
    links: LinkGraph, tol: float, max_iter: int, start: Float64Array | None, weight: str | None
) -> Ranking:
    with _declining():
        ranking = inlink.eigenvector(**links.arcs(weight), tol=tol, max_iter=max_iter, start=start)
    if ranking.unique is False or not ranking.values.any():
        raise NotImplementedError(ranking.note)
    return ranking


def katz_centrality(
    G: Any,
    alpha: float = 0.1,
    beta: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-6,
    nstart: Mapping[Any, float] | None = None,
    normalized: bool = True,
    weight: str | None = None,
) -> dict[Any, float]:
    """See ``networkx.katz_centrality``. The answer does not depend on ``nstart``."""
    links = _links_of(G, max_iter)
    if not links.nodes:
        return {}
    try:
        ranking = inlink.katz(
            **links.arcs(weight),
            alpha=alpha,
            beta=beta,
            tol=tol,
            max_iter=max_iter,
            normalized=bool(normalized),
        )
    except ParameterError as error:
        # The walks add up to no finite number.
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    if not ranking.converged:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return links.by_node(ranking.values)


def katz_centrality_numpy(
    G: Any, alpha: float = 0.1, beta: float = 1.0, normalized: bool = True, weight: str | None = None
) -> dict[Any, float]:
    """See ``networkx.katz_centrality_numpy``."""
    links = _links_of(G)
    if not links.nodes:
        return {}
    with _declining():
        ranking = inlink.katz(
            **links.arcs(weight),
            alpha=alpha,
            beta=beta,
            tol=FINE,
            normalized=bool(normalized),
        )
    if not ranking.converged:
        raise NotImplementedError(f"inlink does not reach the relative error {FINE:g}")
    return links.by_node(ranking.values)


# -- shortest paths ------------------------------------------------------------------------------------------


def closeness_centrality(
    G: Any, u: None = None, distance: None = None, wf_improved: bool = True, *, sp: None = None
) -> dict[Any, float]:
    """See ``networkx.closeness_centrality``."""
    links = _links_of(G)
    return links.by_node(inlink.closeness(links.graph, wf_improved=bool(wf_improved), exact=True).values)


def harmonic_centrality(
    G: Any, nbunch: None = None, distance: None = None, sources: None = None
) -> dict[Any, float]:
    """See ``networkx.harmonic_centrality``."""
    links = _links_of(G)
    return links.by_node(inlink.harmonic(links.graph, exact=True).values)


def betweenness_centrality(
    G: Any,
    k: None = None,
    normalized: bool = True,
    weight: None = None,
    endpoints: bool = False,
    seed: object = None,
) -> dict[Any, float]:
    """See ``networkx.betweenness_centrality``."""
    links = _links_of(G)
    values = inlink.betweenness(links.graph, normalized=bool(normalized), endpoints=bool(endpoints)).values
    # NetworkX counts a path and its reverse once.
    return links.by_node(values if normalized or links.directed else values / 2)


def percolation_centrality(
    G: Any,
    attribute: str | None = "percolation",
    states: Mapping[Any, float] | None = None,
    weight: None = None,
) -> dict[Any, float]:
    """See ``networkx.percolation_centrality``."""
    links = _links_of(G)
    if states is None:
        have = links.states.get(str(attribute), [None] * len(links))
        x = np.array([1 if state is None else state for state in have], np.float64)
    elif set(states) != set(links.nodes):
        raise NotImplementedError("each node needs a state")
    else:
        x = np.array([states[node] for node in links.nodes], np.float64)
    if len(x) < 3 or np.count_nonzero(x) < 2:
        raise NotImplementedError("NetworkX divides by 0 unless two of at least three nodes are percolated")
    with _declining():
        return links.by_node(inlink.percolation(links.graph, x).values)


# -- degrees -------------------------------------------------------------------------------------------------


def _degrees(direction: Any) -> Callable[[Any], dict[Any, float]]:
    """Return the function of NetworkX for the degrees of one direction, or of both."""

    def centrality(G: Any) -> dict[Any, float]:
        links = _links_of(G)
        if len(links) <= 1:
            return dict.fromkeys(links.nodes, 1)
        values = inlink.degree(**links.arcs(None), direction=direction, normalized=False).values
        if not links.directed:
            # An edge is two arcs, but a self-loop is one, and NetworkX counts its two ends.
            values = (values + 2 * links.graph.to_scipy().diagonal()) / 2
        return links.by_node(values * (1.0 / (len(links) - 1.0)))

    return centrality


degree_centrality = _degrees("both")
in_degree_centrality = _degrees("in")
out_degree_centrality = _degrees("out")
