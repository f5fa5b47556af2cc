"""The questions that commands ask about the nodes of a graph, and the answers from a graph on this machine.

:class:`inlink.sources.published.PublishedGraph` answers the same questions from the tables of a published graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from inlink.base.folder import Folder
from inlink.errors import FolderError
from inlink.graph import neighbours
from inlink.graph.graph import Graph
from inlink.rank.certain import best_nodes
from inlink.rank.ranking import FORMAT, KIND, Ranking

if TYPE_CHECKING:
    from inlink.urls.matching import Kind


class NamedNode(NamedTuple):
    """A node with its name. The name is None if the nodes have no names."""

    node: int
    name: str | None


class RankedNode(NamedTuple):
    """A place of a ranking.

    Attributes
    ----------
    place : int
        From 1.
    node : int
        The node's number.
    name : str or None
        Its name; None if the nodes have no names.
    value : float
        Its value; for a ranking by HITS or SALSA, the authority score.
    hub : float or None
        The hub score, if there is one.
    certain : bool or None
        Whether an exact computation would give the node the same place; None if there is no error bound.
    """

    place: int
    node: int
    name: str | None
    value: float
    hub: float | None
    certain: bool | None


@dataclass
class NodeFacts:
    """The data that a graph has about a node.

    Attributes
    ----------
    node : int
        The node's number.
    name : str or None
        Its name; None if the nodes have no names.
    inlinks, outlinks : int
        The numbers of nodes that link to it and that it links to.
    crawled : bool or None
        Whether the node was crawled; None if the graph does not say.
    rankings : dict of str to dict of str to float
        For each ranking its values: ``value``, or ``authorities`` and ``hubs``.
    damaged : dict of str to FolderError
        The errors of rankings that cannot be read.
    """

    node: int
    name: str | None
    inlinks: int
    outlinks: int
    crawled: bool | None
    rankings: dict[str, dict[str, float]]
    damaged: dict[str, FolderError] = field(default_factory=dict)


class LookUps(Protocol):
    """The questions that commands ask about nodes. ``suggests`` tells whether a search of all names is cheap."""

    suggests: bool

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""

    def node(self, text: str) -> int:
        """Return the number of the node that a text describes: see :func:`inlink.graph.neighbours.node_of`."""

    def find(self, expression: str, kind: "Kind" = "regex") -> Iterator[tuple[list[tuple[int, str]], int]]:
        """Yield the nodes whose names match an expression: see :func:`inlink.graph.neighbours.find`."""

    def links(self, node: int, direction: Literal["in", "out"]) -> Iterator[NamedNode]:
        """Yield the nodes that link to a node, or that it links to, by number."""

    def facts(self, node: int) -> NodeFacts:
        """Return the data about a node."""

    def top(self, ranking: str, count: int, *, hubs: bool = False) -> tuple[list[RankedNode], str]:
        """Return the best nodes of a stored ranking, and its algorithm. With ``hubs``, the hub scores decide."""


class GraphLookUps:
    """Answers from a graph, and from the rankings that are stored with it."""

    suggests = True

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self._graph.num_nodes

    def node(self, text: str) -> int:
        """Return the number of the node that a text describes: see :func:`inlink.graph.neighbours.node_of`."""
        return neighbours.node_of(self._graph, text)

    def find(self, expression: str, kind: "Kind" = "regex") -> Iterator[tuple[list[tuple[int, str]], int]]:
        """Yield the nodes whose names match an expression: see :func:`inlink.graph.neighbours.find`."""
        return neighbours.find(self._graph, expression, kind)

    def links(self, node: int, direction: Literal["in", "out"]) -> Iterator[NamedNode]:
        """Yield the nodes that link to a node, or that it links to, by number."""
        row = self._graph.inlinks if direction == "in" else self._graph.outlinks
        return (NamedNode(other, self._name(other)) for other in row(node).tolist())

    def _name(self, node: int) -> str | None:
        return None if self._graph.names is None else self._graph.names[node]

    def facts(self, node: int) -> NodeFacts:
        """Return the data about a node."""
        graph = self._graph
        crawled = None if graph.crawled is None else bool(graph.crawled[node])
        degrees = len(graph.inlinks(node)), len(graph.outlinks(node))
        facts = NodeFacts(node, self._name(node), *degrees, crawled, {})
        headers = [] if graph.path is None else sorted(graph.path.glob("rankings/[!.]*/header.json"))
        for header in headers:
            ranking = header.parent.name
            try:
                if Folder(header.parent, KIND, FORMAT).header.meta.get("graph_uuid") == graph.uuid:
                    columns = Ranking.load(graph, ranking).columns
                    facts.rankings[ranking] = {
                        column: float(values[node]) for column, values in columns.items()
                    }
            except FolderError as error:
                facts.damaged[ranking] = error
        return facts

    def top(self, ranking: str, count: int, *, hubs: bool = False) -> tuple[list[RankedNode], str]:
        """Return the best nodes of a stored ranking, and its algorithm. With ``hubs``, the hub scores decide."""
        stored = Ranking.load(self._graph, ranking)
        both = "hubs" in stored.columns
        places = None if hubs else stored.places(count)
        best = best_nodes(stored.hubs if hubs else stored.values, count).tolist()
        rows = [
            RankedNode(
                place,
                node,
                self._name(node),
                float(stored.values[node]),
                float(stored.hubs[node]) if both else None,
                None if places is None else bool(places.certain[place - 1]),
            )
            for place, node in enumerate(best, 1)
        ]
        return rows, stored.algorithm
