"""Derive graphs from graphs: reversed, folded to hosts or domains, cut to a set of nodes or arcs.

Each function streams arcs through the builder. The header of the result has its parent's uuid, and
:attr:`inlink.Graph.from_parent` maps the parent's nodes to the new nodes, so that ranks can be carried back.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import BoolArray, UInt32Array
from inlink.base.memory import require_memory
from inlink.errors import ParameterError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.build import Destination, build_graph
from inlink.graph.graph import Graph
from inlink.graph.names import NO_NODE, Names, NameTable
from inlink.graph.views import arc_blocks

if TYPE_CHECKING:
    from inlink.urls.columns import HostNames

_BLOCK = 1 << 20
# Number of names that are looked at to see how they write hosts.
_SAMPLE = 10_000


def fold(
    graph: Graph,
    level: Literal["host", "domain"],
    *,
    self_loops: bool = False,
    private_suffixes: bool = False,
    keep_suffixes: bool = False,
    strip_www: bool = False,
    hosts: "HostNames | None" = None,
    **destination: Unpack[Destination],
) -> Graph:
    """The graph of hosts, or of registered domains: one node for all nodes of a host, weights added up.

    Parameters
    ----------
    graph : Graph
        A graph of pages (names are URLs) or of hosts (names such as ``com.example.www`` or ``www.example.com``).
    level : {"host", "domain"}
        The kind of the new nodes. A domain is a suffix of the public suffix list and one label more.
    self_loops : bool
        Keep the arcs within a host as a self-loop. Common Crawl's graphs have no self-loops.
    private_suffixes : bool
        Use the list's private section too: ``a.github.io`` and ``b.github.io`` become two domains.
    keep_suffixes : bool
        Keep hosts that are public suffixes themselves (``gov.uk``) as domains, instead of leaving them out.
    strip_www : bool
        Drop ``www.`` from hosts, as Common Crawl did before the end of 2025.
    hosts : {"reversed", "plain"} or None
        How names that are no URLs write a host. None: a sample of the names tells, see
        :func:`inlink.urls.columns.form_of`. ``meta["hosts"]`` has the form. A graph of level host or domain has
        reversed names, and refuses this parameter.
    **destination
        See :class:`inlink.graph.build.Destination`.

    Returns
    -------
    Graph
        With the number of folded arcs (or the sum of their weights) as weights, nodes in byte order of their
        names. Nodes without a host (an IP address, a name that is not a URL) are left out. ``meta["left_out"]`` is
        their number, and :attr:`Graph.from_parent` is 2³² − 1 for them.

    Raises
    ------
    ParameterError
        If the graph has no names, or names that are neither URLs nor hosts, or a sample does not tell how hosts are
        written.
    """
    ids, names, form = _sites(graph, level, private_suffixes, keep_suffixes, strip_www, hosts)

    def keep(source: UInt32Array, target: UInt32Array) -> BoolArray:
        inside = _inside(source, target)
        if not self_loops:
            inside &= source != target
        return inside

    meta = {"parent_level": graph.level, "left_out": int((ids == NO_NODE).sum())}
    return _derived(
        graph, ids, keep, names, len(names), level, meta | ({"hosts": form} if form else {}), **destination
    )


def without_internal(
    graph: Graph, level: Literal["host", "domain"], **destination: Unpack[Destination]
) -> Graph:
    """The graph with all nodes, without the arcs within one host or one registered domain.

    Arcs of a node without a host are kept, except its self-loop.
    """
    sites, *_ = _sites(graph, level, False, True, False)

    def keep(near: UInt32Array, far: UInt32Array) -> BoolArray:
        outward: BoolArray = ((sites[near] != sites[far]) | (sites[near] == NO_NODE)) & (near != far)
        return outward

    same = np.arange(graph.num_nodes, dtype=np.uint32)
    return _derived(graph, same, keep, graph.names, graph.num_nodes, graph.level, **destination)


def subgraph(graph: Graph, nodes: npt.ArrayLike, **destination: Unpack[Destination]) -> Graph:
    """The graph of a set of nodes and the arcs between them. The nodes keep their order.

    Parameters
    ----------
    graph : Graph
        The graph to cut.
    nodes : bool[n], integer[k], or a sequence of names
        The nodes to keep. ``graph.crawled`` keeps the pages that were crawled.
    **destination
        See :class:`inlink.graph.build.Destination`.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If a node is not in the graph.
    ParameterError
        If a mask does not have one entry for each node.
    """
    require_memory(16 * graph.num_nodes, f"numbers of {graph.num_nodes:,} nodes")
    mask = _mask(graph, nodes)
    kept = np.flatnonzero(mask).astype(np.uint32)
    ids = np.full(graph.num_nodes, NO_NODE, np.uint32)
    ids[kept] = np.arange(len(kept), dtype=np.uint32)
    names = None
    if graph.names is not None:
        order = graph.names.order
        size = len(graph.names.text) * len(kept) // graph.num_nodes + 16 * len(kept)
        require_memory(size, f"names of {len(kept):,} nodes")
        column = graph.names.take(kept)
        named = None if order is None else ids[order[mask[order]]]
        names = Names(column.text, column.offsets, named)
    return _derived(graph, ids, _inside, names, len(kept), graph.level, **destination)


def _inside(source: UInt32Array, target: UInt32Array) -> BoolArray:
    inside: BoolArray = (source != NO_NODE) & (target != NO_NODE)
    return inside


def _mask(graph: Graph, nodes: npt.ArrayLike) -> BoolArray:
    values = np.asarray(nodes)
    if values.dtype == np.bool_:
        if values.shape != (graph.num_nodes,):
            raise ParameterError(
                f"a mask must have one entry for each of the {graph.num_nodes:,} nodes; its shape is {values.shape}"
            )
        return values
    if values.ndim != 1:
        raise ParameterError("`nodes` must be a mask, or a sequence of numbers or names")
    mask = np.zeros(graph.num_nodes, np.bool_)
    if values.dtype.kind in "iu":
        for wrong in values[(values < 0) | (values >= graph.num_nodes)]:
            graph.node(int(wrong))
        mask[values] = True
    else:
        for name in values.tolist():
            mask[graph.node(name)] = True
    return mask


ORIGIN = ("sources", "records", "pages", "links", "files_left_out", "skipped")
"""Fields of a graph's header on its origin. Headers of derived graphs have them too."""


def _derived(
    graph: Graph,
    ids: UInt32Array,
    keep: Callable[[UInt32Array, UInt32Array], BoolArray],
    names: Names | None,
    num_nodes: int,
    level: Level | None,
    fold: dict[str, Any] | None = None,
    **destination: Unpack[Destination],
) -> Graph:
    """Build the graph of the arcs that ``keep`` chooses by the new numbers of their ends.

    Parameters
    ----------
    graph : Graph
        The parent.
    ids : uint32[n]
        The new number of each node of the parent, NO_NODE if it is left out.
    keep : function of (uint32[k], uint32[k]) that returns bool[k]
        Which arcs are kept.
    names : Names or None
        The names of the new nodes.
    num_nodes : int
        The number of new nodes.
    level : {"page", "host", "domain"} or None
        The kind of the new nodes.
    fold : dict or None
        Fields of the header of a fold: it counts arcs, and its nodes are no pages that could be crawled.
    """

    def batches() -> Iterator[ArcBatch]:
        for near, far, weights in arc_blocks(graph):
            source, target = ids[near], ids[far]
            kept = keep(source, target)
            chosen = None if weights is None else weights[kept].astype(np.float64)
            yield ArcBatch(source[kept], target[kept], None, chosen)
        if graph.crawled is not None and fold is None:
            crawled, none = ids[graph.crawled], np.empty(0, np.uint32)
            yield ArcBatch(none, none, crawled=crawled[crawled != NO_NODE])

    origin = {"parent": graph.uuid} if graph.uuid else {}
    origin |= {key: graph.meta[key] for key in ORIGIN if key in graph.meta} | (fold or {})
    return build_graph(
        batches(),
        names=names,
        num_nodes=num_nodes,
        level=level,
        count=fold is not None,
        meta=origin,
        from_parent=ids,
        **destination,
    )


def _sites(
    graph: Graph,
    level: str,
    private_suffixes: bool,
    keep_suffixes: bool,
    strip_www: bool,
    hosts: "HostNames | None" = None,
) -> "tuple[UInt32Array, Names, HostNames | None]":
    """The host or domain of each node, uint32[n], NO_NODE if it has none; their names in byte order; and the form.

    The form is that of names that are no URLs.
    """
    from inlink.urls.columns import domains_of, form_of, hosts_of

    if level not in ("host", "domain"):
        raise ParameterError(f"`level` must be 'host' or 'domain'; got {level!r}")
    if graph.names is None:
        raise ParameterError(
            "this graph has no names, so its nodes have no hosts: fold a graph whose names are URLs"
        )
    if graph.level == "domain" and level == "host":
        raise ParameterError("a graph of domains cannot be folded to hosts: fold the graph of pages or hosts")
    if hosts not in (None, "reversed", "plain"):
        raise ParameterError(f"`hosts` must be 'reversed' or 'plain'; got {hosts!r}")
    if hosts and graph.level in ("host", "domain"):
        raise ParameterError(f"`hosts` does not apply: the nodes of this graph are {graph.level}s already")
    if hosts is None and graph.level is None and graph.num_nodes:
        places = np.unique(np.linspace(0, graph.num_nodes - 1, _SAMPLE).astype(np.uint32))
        hosts = form_of(graph.names.take(places))
    require_memory(16 * graph.num_nodes, f"numbers of {graph.num_nodes:,} nodes")
    table = NameTable()
    ids = np.full(graph.num_nodes, NO_NODE, np.uint32)
    for start, part in graph.names.columns(_BLOCK):
        sites = part if graph.level in ("host", "domain") else hosts_of(part, strip_www=strip_www, form=hosts)
        if level == "domain" and graph.level != "domain":
            sites = domains_of(sites, private=private_suffixes, keep_suffixes=keep_suffixes)
        there = sites.is_valid()
        ids[start : start + len(part)][there] = table.number(sites.filter(there))
    if graph.num_nodes and table.known == 0 and graph.level is None:
        raise ParameterError(
            f"no node has a {level}: the first is named {graph.names[0]!r}. Names have to be URLs or hosts "
            "(com.example.www or www.example.com)."
        )
    sites_by_number, order = table.sorted()
    label = np.full(table.known, 0, np.uint32)
    label[order] = np.arange(len(order), dtype=np.uint32)
    inside = ids != NO_NODE
    ids[inside] = label[ids[inside]]
    column = sites_by_number.take(order)
    return ids, Names(column.text, column.offsets), hosts
