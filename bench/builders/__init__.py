"""Builders, one file a peer: lines ``source TAB target`` to node numbers and sorted rows without duplicates.

Each has NAME, COMPUTES, LARGEST (bytes of input), ``available()``, and ``run(path, folder)``, which returns
how many arcs it found.
"""

ALL = ["inlink", "pyarrow_scipy", "polars", "duckdb", "networkx"]
