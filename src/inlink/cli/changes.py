"""Changes of PageRank by edits of links: computed and printed for ``inlink whatif`` and ``inlink why --without``."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inlink.cli.remote import then
from inlink.cli.show import note

if TYPE_CHECKING:
    from inlink.graph.graph import Graph
    from inlink.rank.whatif import NodeChange


def stored(graph: "Graph") -> dict[str, Any]:
    """The parameters of the ranking that is stored as pagerank, and its values as a start; empty if there is none."""
    from inlink.rank.ranking import list_rankings
    from inlink.sources.rankings import load_ranking, values_of

    if "pagerank" not in list_rankings(graph):
        return {}
    ranking = load_ranking(graph, "pagerank")
    if ranking.algorithm != "pagerank" or not len(ranking):
        return {}
    if ranking.parameters.get("personalized"):
        note("the stored ranking is personalized; the answer is for PageRank without personalization")
    damping = ranking.parameters.get("damping", 0.85)
    options = {"damping": damping} if damping < 1 else {}
    weighted = bool(ranking.parameters.get("weighted")) and graph.is_weighted
    return {**options, "weighted": weighted, "start": values_of(ranking, graph, float(ranking.values.mean()))}


def without_link(
    crawl: Path, page: str, source: "Callable[[Graph], int]", moment: str | None
) -> "NodeChange":
    """Return the change of a page's PageRank without its link from a node. ``source`` returns the node's number."""
    import inlink
    from inlink.sources.crawlgraph import graph_in

    graph = graph_in(crawl if moment is None else then(crawl, moment).folder)
    target = graph.node(page)
    [change] = inlink.whatif(graph, remove=[(source(graph), target)], nodes=[target], **stored(graph))
    return change


def change_row(row: "NodeChange") -> dict[str, Any]:
    """The fields of a change for JSON; intervals and places are arrays of two numbers."""
    return {**row._asdict(), "decided": row.decided}


def described(row: "NodeChange") -> str:
    """A change in one line."""
    before, after, rank, new_rank, change, share, _, exact = map(str, change_cells(row))
    return f"PageRank {rank} → {new_rank} ({change}, {share}; {exact}), place {before} → {after}"


def change_cells(row: "NodeChange") -> list[object]:
    """The cells of a change: places, PageRanks, the change, its share, the node, and how exact it is."""
    middle, before = row.change.middle, row.before.middle
    half = (row.change.high - row.change.low) / 2
    share = f"{middle / before:+.2%}" if before else "new"
    exact = (
        f"{half / abs(middle):.1%} of the change" if row.decided and middle else "0" if row.decided else ""
    )
    return [
        _place(row.place_before),
        _place(row.place_after),
        f"{before:.6g}",
        f"{row.after.middle:.6g}",
        f"{middle:+.4g}",
        share,
        row.node,
        exact or f"not decided: {row.reason}",
    ]


def _place(places: tuple[int, int] | None) -> str:
    if places is None:
        return "-"
    return str(places[0]) if places[0] == places[1] else f"{places[0]} to {places[1]}"
