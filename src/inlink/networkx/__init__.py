"""inlink as a backend of NetworkX: ``nx.pagerank(G, backend="inlink")``."""
