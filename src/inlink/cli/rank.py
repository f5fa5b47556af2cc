"""``inlink rank``: rank a graph and keep the ranking beside it."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.options import graph_argument
from inlink.cli.show import say

_ALGORITHMS = ["pagerank", "trustrank", "hits", "degree"]


@click.command()
@graph_argument
@click.option(
    "--algorithm", type=click.Choice(_ALGORITHMS), default="pagerank", show_default=True, help="How to rank."
)
@click.option("--name", help="What to call the ranking; the algorithm's name if not given.")
@click.option(
    "--scores", type=click.Path(path_type=Path), help="Content scores, node,score a line: teleport, or topic."
)
@click.option("--seeds", type=click.Path(path_type=Path), help="TrustRank's trusted nodes, one a line.")
@click.option(
    "--damping", type=float, help="PageRank's and TrustRank's share of followed links; 0.85 if not given."
)
@click.option(
    "--tol",
    type=float,
    help="The error to stop at: a bound on the L1 distance for PageRank; 1e-6 if not given.",
)
@click.option("--max-iter", type=int, help="Stop after so many sweeps, converged or not.")
@click.option(
    "--method", type=click.Choice(["gauss-seidel", "power"]), help="PageRank's; Gauss-Seidel if not given."
)
@click.option("--start", metavar="RANKING", help="A stored ranking to start from.")
@click.option("--unweighted", is_flag=True, help="Let every arc count the same.")
@click.option("--direction", type=click.Choice(["in", "out", "both"]), help="Degree's; inlinks if not given.")
@click.option("--threads", type=int, help="How many; all processors if not given.")
def rank(
    graph: Path, algorithm: str, name: str | None, scores: Path | None, seeds: Path | None, **given: Any
) -> None:
    """Rank GRAPH and keep the ranking in its folder, for ``inlink top`` and ``inlink export``.

    GRAPH may be a crawl's folder: its graph is made anew each time, in a temporary folder.
    """
    from inlink import rank as room
    from inlink.sources.crawl import graph_in, load_ranking, values_of
    from inlink.sources.scores import read_nodes, read_scores

    allowed = {
        "pagerank": {"damping", "tol", "max_iter", "method", "start", "unweighted", "threads"},
        "trustrank": {"damping", "tol", "max_iter", "method", "start", "unweighted", "threads"},
        "hits": {"tol", "max_iter", "start", "unweighted", "threads"},
        "degree": {"direction", "unweighted"},
    }[algorithm]
    options = {key: value for key, value in given.items() if value not in (None, False)}
    for key in options.keys() - allowed:
        raise click.UsageError(f"--{key.replace('_', '-')} does not go with --algorithm {algorithm}")
    if scores is not None and algorithm not in ("pagerank", "hits"):
        raise click.UsageError(f"--scores does not go with --algorithm {algorithm}")
    if (seeds is not None) != (algorithm == "trustrank"):
        raise click.UsageError("--seeds goes with --algorithm trustrank, which needs it")
    opened = graph_in(graph)
    if options.pop("unweighted", False):
        options["weighted"] = False
    if "start" in options:
        start = load_ranking(opened, options["start"])
        options["start"] = values_of(start, opened, float(start.values.mean()) if len(start) else 1.0)
    if scores is not None:
        values, unknown = read_scores(scores, opened)
        options["personalization" if algorithm == "pagerank" else "scores"] = values
        if unknown:
            say(f"{scores}: names that are not in {graph}: {unknown:,}")
    if seeds is not None:
        options["seeds"] = read_nodes(seeds, opened)
    ranking = getattr(room, algorithm)(opened, **options)
    ranking.save(opened, name or algorithm)
    say(f"{name or algorithm}: {ranking.verdict()}")
