"""The loops of LinkRank: which inlinks count, and one round over them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = ["counting_inlinks", "limit_outlinks", "linkrank_round"]

F8 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint64]
U4 = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]
NONE = np.uint32(2**32 - 1)


@kernel
def counting_inlinks(
    out_offsets: U8,
    out_nodes: U4,
    in_offsets: U8,
    in_nodes: U4,
    loops: Bools,
    pages: U4,
    domains: U4,
    seen_pages: U4,
    seen_domains: U4,
    offsets: U8,
    nodes: U4,
) -> np.uint64:
    """Write the inlinks that count, as rows: no loops, and of each page and domain the first; returns how many.

    ``loops`` bool[m] in the order of the outlinks, ``pages`` and ``domains`` uint32[n] are empty where the rule is off;
    the ``seen`` arrays have a place for each page and domain, all 2³² − 1. ``offsets`` is uint64[n + 1], ``nodes``
    uint32[m].
    """
    kept = U0
    for v in range(U0, np.uint64(len(in_offsets)) - U1):
        offsets[v] = kept
        for k in range(in_offsets[v], in_offsets[v + U1]):
            u = np.uint64(in_nodes[k])
            if len(loops) > 0:
                low, high = out_offsets[u], out_offsets[u + U1]
                while low < high:
                    middle = (low + high) >> U1
                    if np.uint64(out_nodes[middle]) < v:
                        low = middle + U1
                    else:
                        high = middle
                if loops[low]:
                    continue
            page = pages[u] if len(pages) > 0 else NONE
            domain = domains[u] if len(domains) > 0 else NONE
            if page != NONE and seen_pages[page] == np.uint32(v):
                continue
            if domain != NONE and seen_domains[domain] == np.uint32(v):
                continue
            if page != NONE:
                seen_pages[page] = v
            if domain != NONE:
                seen_domains[domain] = v
            nodes[kept] = u
            kept += U1
    offsets[len(in_offsets) - 1] = kept
    return kept


@kernel
def limit_outlinks(
    offsets: U8,
    hosts: U4,
    domains: U4,
    pages: U4,
    own_hosts: U4,
    own_domains: U4,
    ignore_host: bool,
    ignore_domain: bool,
    limit_page: bool,
    limit_domain: bool,
    seen_pages: U4,
    seen_domains: U4,
    keep: Bools,
) -> None:
    """Set ``keep`` for the links that Nutch's rules let stand: links k in [offsets[r], offsets[r + 1]) are row r's.

    Of each link the target's host, domain and page, of each row its own; 2³² − 1 where there is none, and then no rule
    that asks for it applies. The ``seen`` arrays are as in :func:`counting_inlinks`, with rows for nodes.
    """
    for r in range(U0, np.uint64(len(offsets)) - U1):
        for k in range(offsets[r], offsets[r + U1]):
            host, domain, page = hosts[k], domains[k], pages[k]
            if ignore_host and host != NONE and host == own_hosts[r]:
                continue
            if ignore_domain and domain != NONE and domain == own_domains[r]:
                continue
            if limit_page and page != NONE and seen_pages[page] == np.uint32(r):
                continue
            if limit_domain and domain != NONE and seen_domains[domain] == np.uint32(r):
                continue
            keep[k] = True
            if page != NONE:
                seen_pages[page] = r
            if domain != NONE:
                seen_domains[domain] = r


@kernel
def linkrank_round(
    offsets: U8, nodes: U4, z: F8, base: float, damping: float, x: F8, y: F8, low: np.uint64, high: np.uint64
) -> Any:
    """y[i] = base + damping · Σ z[u] over the inlinks u that count.

    Returns Σ|y − x| and Σ (inlinks + 16) · (|y| + |x|), which times 2⁻⁵³ bounds what rounding can have done.
    """
    change, roundings = 0.0, 0.0
    for i in range(low, high):
        total = 0.0
        for k in range(offsets[i], offsets[i + U1]):
            total += z[nodes[k]]
        value = base + damping * total
        change += abs(value - x[i])
        roundings += np.float64(offsets[i + U1] - offsets[i] + np.uint64(16)) * (abs(value) + abs(x[i]))
        y[i] = value
    return change, roundings
