"""NetworkX, on small inputs only: its dictionaries need some hundred bytes an arc."""

from pathlib import Path

from bench.peers.base import needs

NAME = "NetworkX"
COMPUTES = "a DiGraph of names; in memory"
LARGEST = 200_000_000


def available() -> str | None:
    return needs("networkx")


def run(path: Path, folder: Path) -> int:
    import networkx

    graph = networkx.read_edgelist(
        path, delimiter="\t", create_using=networkx.DiGraph, comments=None, data=False
    )
    return int(graph.number_of_edges())
