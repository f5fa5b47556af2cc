"""The compiled loops of the benchmarks: drawing a web-like graph, naming its nodes, an independent PageRank.

Everything is unsigned, for the reason that :mod:`inlink.base.jit` gives. Random numbers are splitmix64
(Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), so that a seed gives the
same graph with any version of NumPy and Numba.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel

__all__ = [
    "LINKING",
    "HostGraph",
    "draw_host_links",
    "fill_rows",
    "name_hosts",
    "power_sweep",
    "transpose",
    "write_lines",
]

U2, U7, U10, U11 = np.uint64(2), np.uint64(7), np.uint64(10), np.uint64(11)
U32 = np.uint64(32)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX1, SHIFT1 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(30)
MIX2, SHIFT2 = np.uint64(0x94D049BB133111EB), np.uint64(27)
SHIFT3 = np.uint64(31)

# Chances of 2³²: what a page's links are. Near neighbours and lists copied from the page before are what makes
# real web graphs in URL order compressible (Boldi & Vigna 2004); the copied rest gives indegrees a power law.
SELF_LOOP = np.uint64(int(0.15 * 2**32))
HAS_MODEL = np.uint64(int(0.60 * 2**32))
COPY_ONE = np.uint64(int(0.75 * 2**32))
WITHIN_HOST = np.uint64(int(0.80 * 2**32))
NEAR = np.uint64(int(0.60 * 2**32))
COPY_REMOTE = np.uint64(int(0.75 * 2**32))
CLIMB = np.uint64(int(0.94 * 2**32))


@kernel
def draw(state: npt.NDArray[np.uint64], below: np.uint64) -> np.uint64:
    """The next random whole number below ``below`` (at most 2³²); ``state`` is uint64[1]."""
    state[0] += GOLDEN
    z = state[0]
    z = (z ^ (z >> SHIFT1)) * MIX1
    z = (z ^ (z >> SHIFT2)) * MIX2
    z = z ^ (z >> SHIFT3)
    return np.uint64(((z >> U32) * below) >> U32)


@kernel
def chance(state: npt.NDArray[np.uint64], of_2_32: np.uint64) -> bool:
    """True with a probability of ``of_2_32`` / 2³²."""
    return bool(draw(state, U1 << U32) < of_2_32)


@kernel
def draw_target(
    node: np.uint64,
    start: np.uint64,
    end: np.uint64,
    hosts: npt.NDArray[np.uint64],
    targets: npt.NDArray[np.uint32],
    written: np.uint64,
    state: npt.NDArray[np.uint64],
) -> np.uint64:
    """Return a new link of a page of the host [start, end): near, within the host, or out."""
    if end - start > U1 and chance(state, WITHIN_HOST):
        # A distance between 1 and 128; small distances are much more frequent.
        if chance(state, NEAR):
            distance = U1 + draw(state, U1 << draw(state, U7 + U1))
            if chance(state, U1 << SHIFT3):
                return min(node + distance, end - U1)
            return node - distance if node >= start + distance else start
        one, two = draw(state, end - start), draw(state, end - start)
        # The first pages of a host are its menus.
        return start + min(one, two, draw(state, end - start))
    if written > U0 and chance(state, COPY_REMOTE):
        # Pages with inlinks get more inlinks.
        return np.uint64(targets[draw(state, written)])
    # The front page of a host, the k-th most popular about 1/k as often as the first.
    number, popularity = np.uint64(len(hosts)) - U1, U1
    while popularity + popularity <= number and chance(state, CLIMB):
        popularity += popularity
    return np.uint64(hosts[draw(state, popularity) * GOLDEN % number])


@kernel
def sorted_once(row: npt.NDArray[np.uint32], length: np.uint64) -> np.uint64:
    """Sort ``row[:length]`` in place and drop duplicates; the new length."""
    row[:length].sort()
    kept = U0
    for i in range(U0, length):
        if kept == U0 or row[i] != row[kept - U1]:
            row[kept] = row[i]
            kept += U1
    return kept


@kernel
def fill_rows(
    hosts: npt.NDArray[np.uint64],
    degrees: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.uint64],
    targets: npt.NDArray[np.uint32],
    row: npt.NDArray[np.uint32],
    seed: np.uint64,
) -> np.uint64:
    """Draw every node's outlinks, node by node; returns how many arcs there are.

    ``hosts`` uint64[h + 1] says where each host's nodes begin. A row that cannot get as many different targets
    as ``degrees`` asks for leaves the rest to the next one. ``row`` is the buffer of one row, and its limit.
    """
    state = np.empty(1, np.uint64)
    state[0] = seed
    written = U0
    missing = U0
    for host in range(U0, np.uint64(len(hosts)) - U1):
        start, end = hosts[host], hosts[host + U1]
        for node in range(start, end):
            if degrees[node] > 0:
                asked = np.uint64(degrees[node]) + missing
                wanted = min(asked, np.uint64(len(row)))
                found = U0
                if chance(state, SELF_LOOP):
                    row[found] = node
                    found += U1
                if node > start and chance(state, HAS_MODEL):
                    model = node - U1 - draw(state, min(U7, node - start))
                    for k in range(offsets[model], offsets[model + U1]):
                        if found < wanted and chance(state, COPY_ONE):
                            row[found] = targets[k]
                            found += U1
                for _attempt in range(4):
                    while found < wanted:
                        row[found] = draw_target(np.uint64(node), start, end, hosts, targets, written, state)
                        found += U1
                    found = sorted_once(row, found)
                    if found == wanted:
                        break
                missing = asked - found
                for k in range(U0, found):
                    targets[written + k] = row[k]
                written += found
            offsets[node + U1] = written
    return written


@kernel
def transpose(
    offsets: npt.NDArray[np.uint64],
    targets: npt.NDArray[np.uint32],
    in_offsets: npt.NDArray[np.uint64],
    sources: npt.NDArray[np.uint32],
) -> None:
    """The inlinks by counting sort; ``in_offsets`` uint64[n + 2] comes as zeros and its first n + 1 are the result."""
    for k in range(U0, np.uint64(len(targets))):
        in_offsets[np.uint64(targets[k]) + U2] += U1
    for i in range(U1, np.uint64(len(in_offsets))):
        in_offsets[i] += in_offsets[i - U1]
    for node in range(U0, np.uint64(len(offsets)) - U1):
        for k in range(offsets[node], offsets[node + U1]):
            place = np.uint64(targets[k]) + U1
            sources[in_offsets[place]] = node
            in_offsets[place] += U1


@kernel
def power_sweep(
    in_offsets: npt.NDArray[np.uint64],
    sources: npt.NDArray[np.uint32],
    shares: npt.NDArray[np.float64],
    base: float,
    damping: float,
    ranks: npt.NDArray[np.float64],
) -> float:
    """One Jacobi round of PageRank, as the simplest loop; return the change (L1)."""
    change = 0.0
    for node in range(U0, np.uint64(len(ranks))):
        total = 0.0
        for k in range(in_offsets[node], in_offsets[node + U1]):
            total += shares[sources[k]]
        new = base + damping * total
        change += abs(new - ranks[node])
        ranks[node] = new
    return change


@kernel
def name_hosts(
    low: np.uint64,
    high: np.uint64,
    scramble: np.uint64,
    syllables: npt.NDArray[np.uint8],
    heads: npt.NDArray[np.uint8],
    head_ends: npt.NDArray[np.uint64],
    tails: npt.NDArray[np.uint8],
    tail_ends: npt.NDArray[np.uint64],
    text: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.uint64],
) -> None:
    """Reversed host names of the nodes [low, high): a head (``com.``), six syllables, a tail (``.www``).

    The syllables are the digits (of 64) of node · scramble mod 2³², the scramble being odd: no two alike. Heads and
    tails are chosen by a node's bits, from lists in which the frequent ones stand more than once.
    """
    six, low_bits, digit = np.uint64(6), np.uint64(0xFFFFFFFF), np.uint64(63)
    at = U0
    for node in range(low, high):
        number = (node * scramble) & low_bits
        choice = (node * GOLDEN) >> U32
        head, tail = choice & digit, (choice >> six) & digit
        for k in range(head_ends[head], head_ends[head + U1]):
            text[at] = heads[k]
            at += U1
        for _digit in range(6):
            piece = (number & digit) * U2
            text[at], text[at + U1] = syllables[piece], syllables[piece + U1]
            number >>= six
            at += U2
        for k in range(tail_ends[tail], tail_ends[tail + U1]):
            text[at] = tails[k]
            at += U1
        ends[node - low + U1] = at


@kernel
def write_lines(
    order: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.uint64],
    targets: npt.NDArray[np.uint32],
    text: npt.NDArray[np.uint8],
    name_ends: npt.NDArray[np.uint64],
    repeat: np.uint64,
    state: npt.NDArray[np.uint64],
    lines: npt.NDArray[np.uint8],
) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Lines ``source TAB target`` of as many nodes in ``order`` as surely fit; (nodes, bytes, lines) written.

    A line is written a second time with a chance of ``repeat`` / 2³²: pages of one host link to the same hosts.
    """
    tab, newline = np.uint8(9), np.uint8(10)
    room = np.uint64(len(lines))
    at = U0
    count = U0
    for i in range(U0, np.uint64(len(order))):
        node = np.uint64(order[i])
        first, end = name_ends[node], name_ends[node + U1]
        need = U0
        for k in range(offsets[node], offsets[node + U1]):
            target = np.uint64(targets[k])
            need += U2 * (end - first + name_ends[target + U1] - name_ends[target] + U2)
        if at + need > room:
            return np.uint64(i), at, count
        for k in range(offsets[node], offsets[node + U1]):
            target = np.uint64(targets[k])
            times = U2 if chance(state, repeat) else U1
            for _time in range(U0, times):
                for c in range(first, end):
                    lines[at] = text[c]
                    at += U1
                lines[at] = tab
                at += U1
                for c in range(name_ends[target], name_ends[target + U1]):
                    lines[at] = text[c]
                    at += U1
                lines[at] = newline
                at += U1
                count += U1
    return np.uint64(len(order)), at, count


# The share of hosts among the popular ones, and the chances that these and all others link. 0.26 of all hosts link.
_POPULAR = np.uint64(8)
_POPULAR_LINKS, _OTHER_LINKS = np.uint64(int(0.875 * 2**32)), np.uint64(int(0.07 * 2**32))
LINKING = (1 - 49 / 64) * 0.875 + 49 / 64 * 0.07
_NEAR_HOST, _SAME_COUNTRY = np.uint64(int(0.25 * 2**32)), np.uint64(int(0.60 * 2**32))
# The number of the most popular hosts, which are equally popular, and the chance of each doubling of this number.
_TOP, _DOUBLED = np.uint64(64), np.uint64(int(0.88 * 2**32))


class HostGraph(NamedTuple):
    """The parameters of a generated graph of hosts; see ``bench/hostgraph.py``.

    Attributes
    ----------
    nodes, size : uint64
        The number of hosts, and of hosts of a country.
    spread, unspread : uint64
        The k-th popular host is ``k · spread mod nodes``, and the inverse of ``spread``.
    local, unlocal : uint64
        The same for the hosts of each country.
    order : uint64
        The k-th host to link is ``k · order mod nodes``.
    scale, power, most : float
        A host has ``min(⌈scale · u ** power⌉, most)`` links, with u uniform in (0, 1).
    """

    nodes: np.uint64
    size: np.uint64
    spread: np.uint64
    unspread: np.uint64
    local: np.uint64
    unlocal: np.uint64
    order: np.uint64
    scale: float
    power: float
    most: float


@kernel
def draw_popular(state: npt.NDArray[np.uint64], count: np.uint64) -> np.uint64:
    """A place among ``count`` hosts in the order of popularity: the k-th host about 1 / k as often."""
    popularity = min(_TOP, count)
    while popularity + popularity <= count and chance(state, _DOUBLED):
        popularity += popularity
    return draw(state, popularity)


@kernel
def draw_host_links(
    graph: HostGraph,
    seed: np.uint64,
    place: np.uint64,
    sources: npt.NDArray[np.uint32],
    targets: npt.NDArray[np.uint32],
) -> tuple[np.uint64, np.uint64]:
    """Draw the links of as many hosts as surely fit, from the ``place``-th on; return the next place and the number of
    links drawn.
    """
    nodes, size, spread, unspread, local, unlocal, order, scale, power, most = graph
    state = np.empty(1, np.uint64)
    count = U0
    while place < nodes and count + np.uint64(most) <= np.uint64(len(sources)):
        host = place * order % nodes
        place += U1
        state[0] = (seed * MIX1) ^ (host * MIX2)
        base = host - host % size
        popular = host * unspread % nodes < nodes // _POPULAR
        popular = popular or (host - base) * unlocal % size < size // _POPULAR
        if not chance(state, _POPULAR_LINKS if popular else _OTHER_LINKS):
            continue
        uniform = (np.float64(draw(state, U1 << U32)) + 0.5) / 2.0**32
        for _link in range(U0, np.uint64(min(np.ceil(scale * uniform**power), most))):
            kind = draw(state, U1 << U32)
            if kind < _NEAR_HOST:
                distance = U1 + draw(state, U1 << draw(state, U10))
                target = host + distance if chance(state, U1 << SHIFT3) else host + nodes - distance
                target %= nodes
            elif kind < _SAME_COUNTRY:
                target = base + draw_popular(state, size) * local % size
            else:
                target = draw_popular(state, nodes) * spread % nodes
            sources[count], targets[count] = host, target
            count += U1
    return place, count
