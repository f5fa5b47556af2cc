"""A generated graph of hosts with the shape of a Common Crawl release, drawn as a stream of arcs.

Hosts are numbered in the order of their reversed names, and cut into 64 equal countries. 26% of them link, and the
popular ones more often than the others. The number of links of a host follows a Pareto distribution. A quarter of the
links go to a near host, as subdomains do, 35% to a popular host of the same country, and 40% to a popular host of
any country. Popular hosts are scattered over the numbers. A link may be drawn more than once.

Hosts link in scattered order, as archives give it. No memory grows with the arcs.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bench import kernels

__all__ = ["COUNTRIES", "host_arcs", "layout"]

COUNTRIES = 64
# Draws of one piece, and the most links of a host.
_PIECE, _MOST = 1 << 20, 100_000
_EXPONENT = 1.5
# Two odd primes near the golden ratio of 2³² and of 2³¹.
_SPREAD, _OTHER = 2_654_435_761, 1_327_217_909


def layout(num_nodes: int, num_arcs: int) -> kernels.HostGraph:
    """Return the parameters of the graph.

    Parameters
    ----------
    num_nodes : int
        The number of hosts, at least 4,096 and below 2³²; rounded down to a multiple of 64.
    num_arcs : int
        The number of links to draw. The number drawn differs by up to a percent.
    """
    size = num_nodes // COUNTRIES
    n = size * COUNTRIES
    spread, local, order = _coprime(_SPREAD, n), _coprime(_OTHER, size), _coprime(_SPREAD + 2, n)
    uniform = (np.arange(1 << 20) + 0.5) / (1 << 20)
    heavy = uniform ** (-1 / _EXPONENT)
    low, high = 0.0, float(_MOST)
    for _ in range(60):
        middle = (low + high) / 2
        mean = float(np.minimum(np.ceil(heavy * middle), _MOST).mean())
        low, high = (low, middle) if mean * n * kernels.LINKING > num_arcs else (middle, high)
    return kernels.HostGraph(
        nodes=np.uint64(n),
        size=np.uint64(size),
        spread=np.uint64(spread),
        unspread=np.uint64(pow(spread, -1, n)),
        local=np.uint64(local),
        unlocal=np.uint64(pow(local, -1, size)),
        order=np.uint64(order),
        scale=low,
        power=-1 / _EXPONENT,
        most=float(_MOST),
    )


def _coprime(number: int, modulus: int) -> int:
    number %= modulus
    while np.gcd(number, modulus) != 1 or number < 2:
        number += 1
    return number


def host_arcs(
    num_nodes: int, num_arcs: int, seed: int = 1
) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]]:
    """Draw the graph, and yield the sources and targets of about a million arcs at a time; the same for the same
    three numbers.
    """
    graph = layout(num_nodes, num_arcs)
    sources, targets = np.empty(_PIECE + _MOST, np.uint32), np.empty(_PIECE + _MOST, np.uint32)
    place = np.uint64(0)
    while place < graph.nodes:
        place, count = kernels.draw_host_links(graph, np.uint64(seed), place, sources, targets)
        yield sources[: int(count)].copy(), targets[: int(count)].copy()
