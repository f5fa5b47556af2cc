"""Graphs for property tests: dangling nodes, islands, self-loops, duplicates, one node, none, no arcs."""

from dataclasses import dataclass

import networkx as nx
import numpy as np
import scipy.sparse
from hypothesis import strategies as st

from inlink import Graph


@dataclass
class Arcs:
    """A small graph in the plainest form there is."""

    num_nodes: int
    pairs: list[tuple[int, int]]
    weights: list[float] | None = None

    def graph(self, *, count: bool = False) -> Graph:
        pairs = np.array(self.pairs, np.uint32).reshape(-1, 2)
        return Graph.from_arcs(pairs, num_nodes=self.num_nodes, weights=self.weights, count=count)

    def dense(self, *, count: bool = False) -> np.ndarray:
        """A[i, j]: the arc i → j; 0 or 1, or the sum of weights, or how often it stood there."""
        A = np.zeros((self.num_nodes, self.num_nodes))
        for k, (i, j) in enumerate(self.pairs):
            if self.weights is not None:
                A[i, j] += self.weights[k]
            elif count:
                A[i, j] += 1
            else:
                A[i, j] = 1
        return A

    def digraph(self) -> nx.DiGraph:
        graph = nx.DiGraph()
        graph.add_nodes_from(range(self.num_nodes))
        graph.add_edges_from(self.pairs)
        return graph

    def sparse(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(self.dense())


@st.composite
def arcs(draw: st.DrawFn, *, max_nodes: int = 12, min_nodes: int = 0, weighted: bool = False) -> Arcs:
    n = draw(st.integers(min_nodes, max_nodes))
    node = st.integers(0, max(n - 1, 0))
    pairs = draw(st.lists(st.tuples(node, node), max_size=3 * n)) if n else []
    if pairs and draw(st.booleans()):
        pairs += draw(st.lists(st.sampled_from(pairs), max_size=5))
    weights = None
    if weighted:
        weights = [draw(st.floats(0.1, 10)) for _ in pairs]
    return Arcs(n, pairs, weights)
