"""``inlink rank``: rank a graph and keep the ranking beside it."""

from pathlib import Path
from typing import Any, NamedTuple

import click

from inlink.cli.options import graph_argument
from inlink.cli.show import say


class _Files(NamedTuple):
    """Which parameter of an algorithm a file of values is for, and which one a file of nodes."""

    scores: str = ""
    seeds: str = ""


ALGORITHMS = {
    "pagerank": _Files(scores="personalization"),
    "mcmc": _Files(),
    "trustrank": _Files(seeds="seeds"),
    "anti-trustrank": _Files(seeds="bad"),
    "spam-mass": _Files(seeds="trusted"),
    "cheirank": _Files(scores="personalization"),
    "hits": _Files(scores="scores"),
    "salsa": _Files(),
    "opic": _Files(),
    "degree": _Files(),
    "closeness": _Files(),
    "harmonic": _Files(),
    "betweenness": _Files(),
    "percolation": _Files(scores="states"),
    "eigenvector": _Files(),
    "katz": _Files(),
}


@click.command()
@graph_argument
@click.option(
    "--algorithm",
    type=click.Choice(list(ALGORITHMS)),
    metavar="NAME",
    default="pagerank",
    show_default=True,
    help=f"How to rank: {', '.join(ALGORITHMS)}.",
)
@click.option("--name", help="What to call the ranking; the algorithm's name if not given.")
@click.option(
    "--scores",
    type=click.Path(path_type=Path),
    help="A value for each node, node,score a line: PageRank's and CheiRank's teleport, HITS' topic, "
    "percolation's states.",
)
@click.option(
    "--seeds",
    type=click.Path(path_type=Path),
    help="Nodes, one a line: trusted ones for TrustRank and spam mass, spam for Anti-TrustRank.",
)
@click.option("--damping", type=float, help="The share of followed links; 0.85 if not given.")
@click.option(
    "--tol",
    type=float,
    help="The error to stop at: a bound on the L1 distance for PageRank; 1e-6 if not given.",
)
@click.option("--max-iter", type=int, help="Stop after so many sweeps, converged or not.")
@click.option(
    "--method",
    metavar="NAME",
    help="PageRank's: gauss-seidel (if not given) or power; of mcmc: end-point, complete-path or "
    "stop-at-dangling (if not given).",
)
@click.option("--start", metavar="RANKING", help="A stored ranking to start from.")
@click.option("--unweighted", is_flag=True, help="Let every arc count the same.")
@click.option("--unnormalized", is_flag=True, help="Betweenness, degree, Katz: as they are, not divided.")
@click.option(
    "--direction",
    type=click.Choice(["in", "out", "both"]),
    help="Of degree, closeness and harmonic; inlinks, and paths to the node, if not given.",
)
@click.option("--alpha", type=float, help="Katz: how much an arc makes of a walk; 0.1 if not given.")
@click.option("-k", "k", type=int, help="Betweenness, percolation: so many sources, drawn; all if not given.")
@click.option("--endpoints", is_flag=True, help="Betweenness: paths count for the nodes at their ends too.")
@click.option("--walks", type=int, help="Of mcmc: so many from each node; 10 if not given.")
@click.option(
    "--confidence", type=float, help="With which what is said of a sample holds; 0.95 if not given."
)
@click.option("--gamma", type=float, help="Spam mass: what share of all pages is good; 0.85 if not given.")
@click.option(
    "--rho", type=float, help="Spam mass: the least PageRank, 1 being the least there is; 0 if not given."
)
@click.option("--order", metavar="NAME", help="OPIC: greedy (if not given), cyclic or random.")
@click.option(
    "--seed", type=int, help="Of random numbers: the same one gives the same ranking; 0 if not given."
)
@click.option("--threads", type=int, help="How many; all processors if not given.")
def rank(
    graph: Path, algorithm: str, name: str | None, scores: Path | None, seeds: Path | None, **given: Any
) -> None:
    """Rank GRAPH and keep the ranking in its folder, for ``inlink top`` and ``inlink export``.

    GRAPH may be a crawl's folder: its graph is made anew each time, in a temporary folder.
    """
    from inspect import signature

    from inlink import rank as room
    from inlink.sources.crawl import graph_in, load_ranking, values_of
    from inlink.sources.scores import read_nodes, read_scores

    files = ALGORITHMS[algorithm]
    function = getattr(room, algorithm.replace("-", "_"))
    taken = set(signature(function).parameters)
    if "options" in taken:  # PageRank's
        taken |= set(signature(room.pagerank).parameters)
    options = {key: value for key, value in given.items() if value is not None and value is not False}
    for key in options:
        if key.removeprefix("un") not in taken:
            raise click.UsageError(f"{_shown(key)} does not go with --algorithm {algorithm}")
    if scores is not None and not files.scores:
        raise click.UsageError(f"--scores does not go with --algorithm {algorithm}")
    if seeds is not None and not files.seeds:
        raise click.UsageError(f"--seeds does not go with --algorithm {algorithm}")
    if seeds is None and files.seeds:
        raise click.UsageError(f"--algorithm {algorithm} needs --seeds, a file of nodes")
    for flag in ("weighted", "normalized"):
        if options.pop(f"un{flag}", False):
            options[flag] = False
    opened = graph_in(graph)
    if "start" in options:
        start = load_ranking(opened, options["start"])
        options["start"] = values_of(start, opened, float(start.values.mean()) if len(start) else 1.0)
    if scores is not None:
        options[files.scores], unknown = read_scores(scores, opened)
        if unknown:
            say(f"{scores}: names that are not in {graph}: {unknown:,}")
    if seeds is not None:
        options[files.seeds] = read_nodes(seeds, opened)
    ranking = function(opened, **options)
    ranking.save(opened, name or algorithm)
    say(f"{name or algorithm}: {ranking.verdict()}")


def _shown(key: str) -> str:
    return "-k" if key == "k" else f"--{key.replace('_', '-')}"
