"""The loops of LinkRank: selection of the inlinks and outlinks that count, and one round over them."""

from typing import NamedTuple

from numpy import float64, uint32, uint64

from inlink.base.arrays import BoolArray, Float64Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, kernel
from inlink.graph.kernels.walks import first_at_least
from inlink.rank.kernels.gather import WeightedRows, row_sum

__all__ = ["NONE", "OutlinkRules", "Seen", "Sites", "counting_inlinks", "limit_outlinks", "linkrank_round"]

# the number of a page, host or domain where there is none
NONE = uint32(2**32 - 1)


class Sites(NamedTuple):
    """The host, domain and page of each node or link, by number, uint32[…] each; :data:`NONE` if there is none.

    An array is empty if no rule needs it.
    """

    hosts: UInt32Array
    domains: UInt32Array
    pages: UInt32Array


class Seen(NamedTuple):
    """For each domain and each page the row in which it was last seen: uint32[…], all :data:`NONE` at first."""

    domains: UInt32Array
    pages: UInt32Array


class OutlinkRules(NamedTuple):
    """Nutch's rules for outlinks: leave out links within a host or domain; keep only the first to a page or domain."""

    ignore_host: bool
    ignore_domain: bool
    limit_page: bool
    limit_domain: bool


@kernel
def counting_inlinks(
    outlinks: WeightedRows,
    inlinks: WeightedRows,
    loops: BoolArray,
    sites: Sites,
    seen: Seen,
    offsets: UInt64Array,
    nodes: UInt32Array,
) -> uint64:
    """Write the inlinks that count, as rows: no loops, and only the first of each page and domain; return their number.

    ``loops``, bool[m] in the order of the outlinks, is empty if loops count. ``sites`` are those of the nodes.
    ``offsets`` is uint64[n + 1], ``nodes`` uint32[m].
    """
    out_offsets, out_nodes, _ = outlinks
    in_offsets, in_nodes, _ = inlinks
    _, domains, pages = sites
    seen_domains, seen_pages = seen
    kept = U0
    for v in range(U0, uint64(len(in_offsets)) - U1):
        offsets[v] = kept
        for k in range(in_offsets[v], in_offsets[v + U1]):
            u = uint64(in_nodes[k])
            if len(loops) > 0 and loops[first_at_least(out_nodes, out_offsets[u], out_offsets[u + U1], v)]:
                continue
            page = pages[u] if len(pages) > 0 else NONE
            domain = domains[u] if len(domains) > 0 else NONE
            if page != NONE and seen_pages[page] == uint32(v):
                continue
            if domain != NONE and seen_domains[domain] == uint32(v):
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
    offsets: UInt64Array, targets: Sites, sources: Sites, rules: OutlinkRules, seen: Seen, keep: BoolArray
) -> None:
    """Set ``keep``, bool[m], for the links that Nutch's rules let stand: links k in [offsets[r], offsets[r + 1]) are
    row r's.

    ``targets`` has the site of each link's target, ``sources`` that of each row. A rule does not apply to a link whose
    target has no such site.
    """
    hosts, domains, pages = targets
    own_hosts, own_domains, _ = sources
    ignore_host, ignore_domain, limit_page, limit_domain = rules
    seen_domains, seen_pages = seen
    for r in range(U0, uint64(len(offsets)) - U1):
        for k in range(offsets[r], offsets[r + U1]):
            host, domain, page = hosts[k], domains[k], pages[k]
            if ignore_host and host != NONE and host == own_hosts[r]:
                continue
            if ignore_domain and domain != NONE and domain == own_domains[r]:
                continue
            if limit_page and page != NONE and seen_pages[page] == uint32(r):
                continue
            if limit_domain and domain != NONE and seen_domains[domain] == uint32(r):
                continue
            keep[k] = True
            if page != NONE:
                seen_pages[page] = r
            if domain != NONE:
                seen_domains[domain] = r


@kernel
def linkrank_round(
    rows: WeightedRows,
    z: Float64Array,
    base: float,
    damping: float,
    x: Float64Array,
    y: Float64Array,
    low: uint64,
    high: uint64,
) -> tuple[float, float]:
    """Write y[i] = base + damping · Σ z[u] over the inlinks u that count.

    Return Σ|y − x| and Σ (inlinks + 16) · (|y| + |x|). The second sum times 2⁻⁵³ bounds the rounding error.
    """
    offsets, nodes, weights = rows
    change, roundings = 0.0, 0.0
    for i in range(low, high):
        value = base + damping * row_sum(0.0, offsets, nodes, weights, z, i)
        change += abs(value - x[i])
        roundings += float64(offsets[i + U1] - offsets[i] + uint64(16)) * (abs(value) + abs(x[i]))
        y[i] = value
    return change, roundings
