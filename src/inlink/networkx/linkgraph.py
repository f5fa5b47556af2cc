"""A NetworkX graph, converted for inlink's functions."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from inlink.base.arrays import AnyArray, Float64Array
from inlink.graph.graph import Graph


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

    def __init__(
        self,
        graph: Graph,
        nodes: list[Any],
        *,
        weights: Graph | None = None,
        directed: bool = True,
        multigraph: bool = False,
        states: Mapping[str, list[Any]] | None = None,
    ) -> None:
        self.graph, self.nodes = graph, nodes
        self.weights = graph if weights is None else weights
        self.directed, self.multigraph = directed, multigraph
        self.states = dict(states or {})

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
