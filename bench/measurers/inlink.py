"""inlink, with as many threads as there are processors."""

from typing import Any

import numpy as np

from bench.measurers.base import SOURCES, TOLERANCES, WALKS, Inputs, Measurement, Vector
from bench.webgraph import Arrays

NAME = "inlink"
ABOUT = "its times include the error bounds, and the check that HITS and the eigenvector are unique"
THREADS = 0


def available() -> str | None:
    return None


def load(arrays: Arrays, measure: str) -> Any:
    return arrays


def graph(arrays: Arrays) -> Any:
    """A new one for each run, as a graph keeps its degrees after the first call."""
    from inlink.graph.graph import Graph, Rows

    return Graph(Rows(arrays.offsets, arrays.targets), Rows(arrays.in_offsets, arrays.in_sources))


def _degree(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.degree import degree

    return degree(graph(arrays)).values


def _closeness(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.closeness import closeness

    return closeness(graph(arrays), exact=True).values


def _closeness_within(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.closeness import closeness

    return closeness(graph(arrays), wf_improved=False, exact=True).values


def _harmonic(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.closeness import harmonic

    return harmonic(graph(arrays), exact=True).values


def _betweenness(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.betweenness import betweenness

    return betweenness(graph(arrays)).values


def _percolation(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.percolation import percolation

    return percolation(graph(arrays), inputs.states).values


def _betweenness_sample(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.betweenness import betweenness

    return betweenness(graph(arrays), k=min(int(setting), arrays.num_nodes)).values


def _eigenvector(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.eigenvector import eigenvector

    return eigenvector(graph(arrays), tol=setting).values


def _katz(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.katz import katz

    return katz(graph(arrays), alpha=inputs.alpha, tol=setting, normalized=False).values - 1


def _hits(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.hits import hits

    ranking = hits(graph(arrays), tol=setting)
    return np.concatenate([ranking.values, ranking.hubs])


def _pagerank(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.pagerank import pagerank

    return pagerank(graph(arrays), tol=setting).values


def _mcmc(arrays: Arrays, inputs: Inputs, setting: float) -> Vector:
    from inlink.rank.mcmc import mcmc

    return mcmc(graph(arrays), walks=int(setting)).values


MEASURES = {
    "degree": Measurement(_degree),
    "closeness": Measurement(_closeness),
    "closeness_within": Measurement(_closeness_within),
    "harmonic": Measurement(_harmonic),
    "betweenness": Measurement(_betweenness),
    "percolation": Measurement(_percolation),
    "betweenness_sample": Measurement(_betweenness_sample, [SOURCES]),
    "eigenvector": Measurement(_eigenvector, TOLERANCES),
    "katz": Measurement(_katz, TOLERANCES),
    "hits": Measurement(_hits, TOLERANCES),
    "pagerank": Measurement(_pagerank, TOLERANCES),
    "mcmc": Measurement(_mcmc, [WALKS]),
}
