"""The description of inlink that NetworkX shows. Every ``import networkx`` loads this module, so it imports nothing."""

from typing import Any

_STEPS = "Each edge is one step: `distance` and `weight` must be None. All threads are used."
_FUNCTIONS = {
    "pagerank": (
        "The L1 distance to the exact answer is at most `tol` unless `max_iter` sweeps do not suffice. Then "
        "NetworkX's own criterion decides. `dangling` must be None, and `alpha` below 1."
    ),
    "hits": (
        "`max_iter` counts restarts of 20 rounds. If the answer is not unique, it is the limit from equal values; "
        "NetworkX's depends on random numbers. `normalized` must be True."
    ),
    "eigenvector_centrality": "Graphs without a cycle, and graphs whose answer is not unique, are left to NetworkX.",
    "eigenvector_centrality_numpy": "The residual is at most 1e-12.",
    "katz_centrality": "The relative error of each value is at most `tol`. `beta` must be a number above 0.",
    "katz_centrality_numpy": "`beta` must be a number above 0, and `alpha` below 1/λ₁.",
    "closeness_centrality": f"{_STEPS} `u` must be None.",
    "harmonic_centrality": f"{_STEPS} `nbunch` and `sources` must be None.",
    "betweenness_centrality": f"{_STEPS} `k` must be None.",
    "percolation_centrality": f"{_STEPS} Each node needs a state.",
    "degree_centrality": "",
    "in_degree_centrality": "",
    "out_degree_centrality": "",
}


def info() -> dict[str, Any]:
    """Return the description of the backend, as the entry point ``networkx.backend_info`` wants it."""
    return {
        "backend_name": "inlink",
        "project": "inlink",
        "package": "inlink",
        "short_summary": "Compiled link analysis with error bounds, on all processors.",
        "functions": {name: {"additional_docs": text} for name, text in _FUNCTIONS.items()},
    }
