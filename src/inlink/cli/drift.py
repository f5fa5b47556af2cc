"""``inlink drift``: why PageRank moved between two releases of a graph, or two crawls."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from inlink.cli.lookups import graph_at, node_in
from inlink.cli.options import json_option, number_option
from inlink.cli.remote import FolderOrUrl
from inlink.cli.show import note, show_answer, show_table

if TYPE_CHECKING:
    from inlink.rank.drift import Drift
    from inlink.rank.whatif import Interval

_PLACE = FolderOrUrl("this command reads a folder: run it on the machine where the folder is")


@click.command()
@click.argument("a", type=_PLACE)
@click.argument("b", type=_PLACE)
@click.option(
    "--node", "names", multiple=True, metavar="NAME", help="Show this node; may be given several times."
)
@number_option("Without --node: number of nodes that moved most.")
@click.option(
    "--linkers", type=int, default=10, show_default=True, help="Largest number of large linkers, at least 0."
)
@click.option(
    "--damping", type=float, default=0.85, show_default=True, help="Share of visits that follow a link."
)
@click.option(
    "--tol", type=float, default=1e-9, show_default=True, help="Bound on the L1 error of each ranking."
)
@click.option("--unweighted", is_flag=True, help="Count every arc the same, whatever its weight.")
@click.option("--threads", type=int, help="Number of threads. Default: all processors.")
@json_option
def drift(
    a: Path,
    b: Path,
    names: tuple[str, ...],
    count: int,
    linkers: int,
    damping: float,
    tol: float,
    unweighted: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Print why PageRank moved between two releases A and B of a graph, or between two crawls.

    The first table has what folded names (with and without www.), lost nodes, new nodes, the arcs of large linkers and
    all other arcs have moved. The second table has the nodes that moved most, with reasons. PageRank is scaled so that
    the smallest possible value is 1. Only moves that the error bounds prove are printed.
    """
    import inlink

    before, after = graph_at(a), graph_at(b)
    if before.is_weighted != after.is_weighted and not unweighted:
        note(f"only {a if before.is_weighted else b} has weights, so each link counts 1")

    def name_of(name: str) -> str:
        for graph in (after, before):
            if graph.names is not None and name in graph.names:
                return name
        return str(after.nodes[node_in(after, name, b)])

    moves = inlink.drift(
        before,
        after,
        nodes=list(map(name_of, names)) or None,
        top=count,
        linkers=linkers,
        damping=damping,
        tol=tol,
        weighted=False if unweighted else None,
        threads=threads,
    )
    kind = f"{after.level or before.level or 'node'}s"
    unlike = "" if moves.common else ": are both of the same level, and are names written alike?"
    note(f"{moves.common:,} {kind} in both{unlike}; moved for sure: {moves.moved:,}")
    rows = [{**row._asdict(), "reasons": [reason._asdict() for reason in row.reasons]} for row in moves]
    answer = {
        "common": moves.common,
        "moved": moves.moved,
        "steps": [step._asdict() for step in moves.steps],
        "nodes": rows,
    }
    show_answer(answer, as_json, lambda _: _show(moves, kind))


def _show(moves: "Drift", kind: str) -> None:
    rows = []
    for step in moves.steps:
        name = step.name.replace("nodes", kind) + (f": {', '.join(step.linkers)}" if step.linkers else "")
        cells = [f"{step.move.middle:.6g}", _error(step.move), step.percent]
        rows.append([*cells, f"{step.nodes:,}", f"+{step.new:,}", f"-{step.lost:,}", name])
    show_table(["move", "error", "share", kind, "new links", "lost", "step"], rows, right=range(6))
    rows = []
    for row in moves:
        whole = (row.before or row.after or row.move).middle
        ends = ["-" if end is None else f"{end.middle:.6g}" for end in (row.before, row.after)]
        lines = [(row.move, row.node), *((reason.change, f"  {reason.text}") for reason in row.reasons)]
        for change, text in lines:
            rows.append(
                [*ends, f"{change.middle:+.4g}", _error(change), f"{change.middle / whole:+.1%}", text]
            )
            ends = ["", ""]
    if rows:
        click.echo()
        show_table(["before", "after", "move", "error", "", "reasons"], rows, right=range(5))


def _error(interval: "Interval") -> str:
    return f"±{(interval.high - interval.low) / 2:.0e}"
