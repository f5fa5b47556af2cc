"""Functions that tests of graph formats share: reading without a folder, the content of a graph, small graphs."""

import numpy as np
from hypothesis import strategies as st

from inlink import Graph
from inlink.graph.build import build_graph
from inlink.graph.names import Names
from inlink.sources.files import read_source


def read(path, format=None, **options):
    source = read_source(path, format, options=options)
    return build_graph(source.batches, names=source.names, num_nodes=source.num_nodes, level=source.level)


def content(graph, islands=True):
    """Names (or numbers) of the nodes, and arcs between them with weights: what a file has to keep."""
    n = graph.num_nodes
    label = list(range(n)) if graph.names is None else [graph.names.raw(i) for i in range(n)]
    rows = graph.out_rows
    arcs = {}
    for i in range(n):
        for k in range(int(rows.offsets[i]), int(rows.offsets[i + 1])):
            weight = 1.0 if rows.weights is None else float(rows.weights[k])
            arcs[label[i], label[int(rows.nodes[k])]] = weight
    nodes = set(label) if islands else {end for arc in arcs for end in arc}
    return nodes, arcs


@st.composite
def graphs(draw, names):
    """Small graphs with names in any order, or numbers where ``names`` is None; with weights or without."""
    n = draw(st.integers(0, 8))
    if names is not None:
        labels = draw(st.lists(names, min_size=n, max_size=n, unique=True))
    pairs = (
        draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20, unique=True))
        if n
        else []
    )
    weights = None
    if pairs and draw(st.booleans()):
        positive = st.floats(min_value=0, exclude_min=True, max_value=1e300) | st.integers(1, 9).map(float)
        weights = draw(st.lists(positive, min_size=len(pairs), max_size=len(pairs)))
    graph = Graph.from_arcs(np.array(pairs, np.uint32).reshape(-1, 2), num_nodes=n, weights=weights)
    if names is not None:
        graph.names = Names.of(labels)
    return graph
