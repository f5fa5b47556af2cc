"""The interface between readers and the builder of graphs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inlink.graph.batches import ArcBatch, Level
from inlink.graph.names import Names

if TYPE_CHECKING:
    from inlink.graph.part import InputPart


@dataclass
class Source:
    """Arcs, and the data on their nodes that a format has before its arcs.

    Attributes
    ----------
    batches : iterator of ArcBatch
        The arcs. They are read when the iterator advances, which raises the errors of the input.
    names : Names or None
        The nodes' names, if the format gives them by number. Then batches hold numbers.
    num_nodes : int or None
        The number of nodes, if batches hold numbers and the format states it.
    level : {"page", "host", "domain"} or None
        The kind of the names, if it is known.
    fractional : bool
        Keep weights as float64, even if all are whole numbers: the weights of left-out arcs were not whole.
    origin : dict
        The origin in a graph's header, if the source is a graph.
    part : InputPart or None
        The same arcs as a part, if names and arcs are in order already.
    stated : str
        Where the input states `num_nodes`, if it has no data on each node.
    bounded : bool
        Whether the size of the input bounds the number of nodes, as :func:`inlink.base.memory.check_nodes` says.
    max_node : int or None
        The largest number of a node that the user allows instead.
    """

    batches: Iterator[ArcBatch]
    names: Names | None = None
    num_nodes: int | None = None
    level: Level | None = None
    fractional: bool = False
    origin: dict[str, Any] = field(default_factory=dict)
    part: "InputPart | None" = None
    stated: str = ""
    bounded: bool = False
    max_node: int | None = None


def level_of(names: list[bytes]) -> Level | None:
    """Pages, if nine names in ten are URLs (real graphs hold some broken ones); None otherwise."""
    urls = sum(b"://" in name[:16] for name in names)
    return "page" if names and urls >= 0.9 * len(names) else None
