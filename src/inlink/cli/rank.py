"""``inlink rank``: rank a graph and keep the ranking in its folder."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.options import graph_argument
from inlink.cli.show import say
from inlink.cli.then import as_of_option, then

if TYPE_CHECKING:
    from inlink.graph.graph import Graph

__all__ = ["ALGORITHMS", "rank", "ranked_then", "values_given"]

_DEFAULT = "pagerank"

# Keys of the context's notes: the algorithms that the arguments name, and the algorithm whose options are read.
_CHOSEN = "inlink.cli.rank.algorithms"
_READ = "inlink.cli.rank.algorithm"

# Parameters whose options name a file of values, and a file of nodes.
_VALUES = {"personalization", "scores", "states"}
_NODES = {"trusted", "spam"}


def _number(flag: str, help: str, type: type = float) -> click.Option:
    return click.Option([flag], type=type, help=help)


def _name(flag: str, help: str, *names: str) -> click.Option:
    return click.Option([flag], type=click.Choice(names), help=f"{help}; {names[0]} if not given.")


def _values(parameter: str, help: str) -> click.Option:
    text = f"CSV or TSV file with a node and a value in each line: {help}. Nodes that it lacks have 0."
    return click.Option(["--scores", parameter], type=click.Path(path_type=Path), help=text)


def _nodes(flag: str, help: str) -> click.Option:
    return click.Option(
        [flag], type=click.Path(path_type=Path), required=True, help=f"{help}, one node a line."
    )


def _switched_off(flag: str, parameter: str, help: str) -> click.Option:
    return click.Option([flag, parameter], is_flag=True, flag_value=False, default=None, help=help)


_DAMPING = _number("--damping", "Share of visits that follow a link, from 0 to below 1; 0.85 if not given.")
_DAMPING_TO_1 = _number(
    "--damping",
    "Share of visits that follow a link, from 0 to 1; 0.85 if not given. 1 needs --method power and --max-iter.",
)
_TOL = _number("--tol", "Bound on the L1 error to reach; 1e-6 if not given.")
_RESIDUAL = _number("--tol", "Residual to reach; 1e-6 if not given.")
_MAX_ITER = _number("--max-iter", "Stop after this number of rounds, converged or not.", int)
_METHOD = _name("--method", "Method of solution", "gauss-seidel", "power")
_START = click.Option(["--start"], metavar="RANKING", help="Name of a stored ranking to start from.")
_UNWEIGHTED = _switched_off("--unweighted", "weighted", "Count every arc the same, whatever its weight.")
_UNNORMALIZED = _switched_off("--unnormalized", "normalized", "Do not normalize the values.")
_DIRECTION = _name("--direction", "Measure distances to the node (in) or from it (out)", "in", "out")
_SAMPLE = _number("-k", "Number of sources to draw; all sources, and exact values, if not given.", int)
_CONFIDENCE = _number("--confidence", "Confidence of the error that is reported; 0.95 if not given.")
_SEED = _number("--seed", "Seed of the random numbers, at least 0; 0 if not given.", int)
_THREADS = _number("--threads", "Number of threads; all processors if not given.", int)
_TRUSTED = _nodes("--trusted", "File of pages that are known to be good")

_DISTANCES = (
    _DIRECTION,
    click.Option(
        ["--exact/--estimate"],
        default=None,
        help="Search from every node, or estimate by HyperBall; by default exact up to 100,000 nodes.",
    ),
    _number("--log2m", "Estimate with 2^LOG2M registers a counter, from 4 to 16; 8 if not given.", int),
    _number(
        "--runs", "Return the mean of this number of estimates, and report their spread; 1 if not given.", int
    ),
    _SEED,
    _THREADS,
)

_CERTAIN = click.Option(
    ["--until-certain", "certain"],
    type=int,
    metavar="K",
    help="Iterate until the first K places are certain, because their values differ by more than the error bound.",
)

_SOLVED = (_TOL, _MAX_ITER, _METHOD, _START, _UNWEIGHTED, _THREADS)

ALGORITHMS: dict[str, tuple[click.Option, ...]] = {
    "pagerank": (_values("personalization", "the teleport vector"), _DAMPING_TO_1, *_SOLVED, _CERTAIN),
    "mcmc": (
        _number("--walks", "Number of walks from each node; 10 if not given.", int),
        _DAMPING,
        _name("--method", "Visits of walks that are counted", "stop-at-dangling", "end-point", "complete-path"),
        _name("--order", "Start of the walks: each node in turn, or random nodes", "cyclic", "random"),
        _CONFIDENCE,
        _UNWEIGHTED,
        _SEED,
        _THREADS,
    ),
    "trustrank": (_TRUSTED, _DAMPING, *_SOLVED),
    "anti-trustrank": (_nodes("--spam", "File of pages that are known to be spam"), _DAMPING, *_SOLVED),
    "spam-mass": (
        _TRUSTED,
        _number("--gamma", "Estimated share of good pages among all pages; 0.85 if not given."),
        _number("--rho", "Ignore nodes whose scaled PageRank (minimum 1) is below this number; 0 if not given."),
        _DAMPING,
        _number("--tol", "Relative error of each mass to reach; 1e-6 if not given."),
        _MAX_ITER,
        _METHOD,
        _UNWEIGHTED,
        _THREADS,
    ),
    "cheirank": (_values("personalization", "the teleport vector"), _DAMPING, *_SOLVED),
    "hits": (_values("scores", "the content scores"), _RESIDUAL, _MAX_ITER, _START, _UNWEIGHTED, _THREADS),
    "salsa": (_UNWEIGHTED,),
    "opic": (
        _name("--order", "The next page to visit: the page with the most cash, each in turn, or a random page",
              "greedy", "cyclic", "random"),
        _number("--tol", "Bound on the L1 error to reach; 0.01 if not given."),
        _MAX_ITER,
        _UNWEIGHTED,
        _SEED,
    ),
    "degree": (
        _name("--direction", "Links that are counted", "in", "out", "both"),
        _UNNORMALIZED,
        click.Option(["--weighted"], is_flag=True, default=None, help="Add up the weights of the arcs."),
    ),
    "closeness": _DISTANCES,
    "harmonic": _DISTANCES,
    "betweenness": (
        _SAMPLE,
        click.Option(["--endpoints"], is_flag=True, default=None, help="Count a path for the nodes at its ends too."),
        _UNNORMALIZED,
        _CONFIDENCE,
        _SEED,
        _THREADS,
    ),
    "percolation": (_values("states", "the percolation state of each node"), _SAMPLE, _CONFIDENCE, _SEED, _THREADS),
    "eigenvector": (_RESIDUAL, _MAX_ITER, _START, _UNWEIGHTED, _THREADS),
    "katz": (
        _number("--alpha", "Factor for each arc of a walk, below 1/λ₁; 0.1 if not given."),
        _number("--beta", "Constant that each node gets, above 0; 1 if not given."),
        _number("--tol", "Relative error of each value to reach; 1e-6 if not given."),
        _MAX_ITER,
        _UNNORMALIZED,
        _UNWEIGHTED,
        _THREADS,
    ),
}  # fmt: skip


def _flags(algorithm: str) -> list[str]:
    return [flag for option in ALGORITHMS[algorithm] for flag in (*option.opts, *option.secondary_opts)]


# The options of all algorithms that are followed by a value.
_VALUED = {flag for options in ALGORITHMS.values() for o in options if not o.is_flag for flag in o.opts}
_ALL_FLAGS = {flag for name in ALGORITHMS for flag in _flags(name)}


class _Algorithms(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """Names of algorithms, separated by commas."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the names, and refuse those that are unknown or that stand there twice."""
        if isinstance(value, list):
            return value
        names = [name.strip() for name in str(value).split(",")]
        for name in names:
            if name not in ALGORITHMS:
                self.fail(f"{name!r} is not one of {', '.join(ALGORITHMS)}", param, ctx)
        if len(set(names)) < len(names):
            self.fail(f"{value!r} names an algorithm twice", param, ctx)
        return names


def _named(args: list[str]) -> list[str]:
    """Return the algorithms that the arguments name, known or not."""
    text = _DEFAULT
    for place, argument in enumerate(args):
        if argument == "--algorithm" and place + 1 < len(args):
            text = args[place + 1]
        elif argument.startswith("--algorithm="):
            text = argument.partition("=")[2]
    return [name.strip() for name in text.split(",")]


def _pieces(args: list[str]) -> list[tuple[str, list[str]]]:
    """Return the arguments in pieces: each option of an algorithm with its value and flag, the others without flag."""
    pieces: list[tuple[str, list[str]]] = []
    rest = iter(args)
    for argument in rest:
        flag = argument.partition("=")[0]
        if flag not in _ALL_FLAGS:
            # A value may follow a short option without a space.
            flag = argument[:2] if argument[:2] in _VALUED else ""
        values = rest if argument == "--" else islice(rest, int(argument in _VALUED))
        pieces.append((flag, [argument, *values]))
    return pieces


class RankCommand(click.Command):
    """A command whose options are those of the algorithms that its arguments name.

    The arguments are read once for each algorithm, with the options that it has. Its values are in ``given``.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.general = self.params
        self.params = [*self.general, *(option for options in ALGORITHMS.values() for option in options)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the algorithms first, and take their options only."""
        names = _named(args)
        known = [name for name in names if name in ALGORITHMS] or [_DEFAULT]
        if any(argument == "--algorithm" or argument.startswith("--algorithm=") for argument in args):
            ctx.meta[_CHOSEN] = known
        pieces = _pieces(args)
        for flag, _ in pieces:
            if flag and names == known and not any(flag in _flags(name) for name in names):
                takes = "; ".join(f"{name} takes {', '.join(_flags(name))}" for name in names)
                raise click.UsageError(
                    f"{flag} does not apply to --algorithm {','.join(names)}; {takes}", ctx
                )
        given: dict[str, dict[str, Any]] = {}
        common: dict[str, Any] = {}
        rest: list[str] = []
        for name in known:
            ctx.meta[_READ] = name
            ctx.params = {}
            flags = ["", *_flags(name)]
            rest = super().parse_args(
                ctx, [part for flag, parts in pieces if flag in flags for part in parts]
            )
            common = {option.name: ctx.params.pop(option.name) for option in self.general if option.name}
            given[name] = ctx.params
        ctx.params = {**common, "given": given}
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The general options and those of the algorithm that is read."""
        help_option = self.get_help_option(ctx)
        own = ALGORITHMS[ctx.meta.get(_READ, _DEFAULT)]
        return [*self.general, *own, *([help_option] if help_option else [])]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Describe the options of the algorithms; without an algorithm, list the options of all."""
        general = [option for option in self.general if isinstance(option, click.Option)]
        help_option = self.get_help_option(ctx)
        _describe(ctx, formatter, "Options", [*general, *([help_option] if help_option else [])])
        for chosen in ctx.meta.get(_CHOSEN, []):
            _describe(ctx, formatter, f"Options of {chosen}", ALGORITHMS[chosen])
        if _CHOSEN not in ctx.meta:
            with formatter.section("Options of each algorithm"):
                formatter.write_dl([(name, ", ".join(_flags(name))) for name in ALGORITHMS])


def _describe(
    ctx: click.Context, formatter: click.HelpFormatter, title: str, options: Iterable[click.Option]
) -> None:
    lines = [option.get_help_record(ctx) for option in options]
    with formatter.section(title):
        formatter.write_dl([line for line in lines if line])


@click.command(cls=RankCommand)
@graph_argument
@click.option(
    "--algorithm",
    "algorithms",
    type=_Algorithms(),
    metavar="NAME",
    default=_DEFAULT,
    show_default=True,
    help="How to rank, separated by commas; inlink rank --algorithm NAME --help describes the options of NAME.",
)
@click.option("--name", help="Name of the ranking; the algorithm's name if not given.")
@as_of_option
def rank(
    graph: Path,
    algorithms: list[str],
    name: str | None,
    moment: str | None,
    given: dict[str, dict[str, Any]],
) -> None:
    """Rank GRAPH and keep the ranking in its folder, for ``inlink top`` and ``inlink export``.

    GRAPH may be the folder of a crawl. Its graph is built each time, in a temporary folder. With --as-of, the graph has
    the pages and links of that moment. The ranking is kept under the name that --name gives.
    """
    import inlink
    from inlink.sources.crawlgraph import CrawlGraph, graph_in

    if name and len(algorithms) > 1:
        raise click.UsageError(
            f"--name names one ranking, and {','.join(algorithms)} are {len(algorithms)}: leave it out, "
            "and each ranking has the name of its algorithm"
        )
    if moment is not None and not name:
        raise click.UsageError(
            "--as-of needs --name, so that it does not replace the crawl's present ranking"
        )
    opened = graph_in(graph) if moment is None else CrawlGraph(graph, graph_in(then(graph, moment).folder))
    # All files are read before the first ranking begins.
    options = {algorithm: values_given(given[algorithm], opened, graph) for algorithm in algorithms}
    for algorithm in algorithms:
        ranking = getattr(inlink, algorithm.replace("-", "_"))(opened, **options[algorithm])
        ranking.save(opened, name or algorithm)
        say(f"{name or algorithm}: {ranking.verdict()}")


def values_given(given: dict[str, Any], opened: "Graph", graph: Path) -> dict[str, Any]:
    """Return the options of an algorithm that were given, with the contents of files in place of their paths."""
    options = {key: value for key, value in given.items() if value is not None}
    if not options:
        return options
    from inlink.sources.rankings import load_ranking, values_of
    from inlink.sources.scores import read_nodes, read_scores

    for key, value in options.items():
        if key in _VALUES:
            options[key], unknown = read_scores(value, opened)
            _say_unknown(value, graph, unknown)
        elif key in _NODES:
            options[key], unknown = read_nodes(value, opened)
            _say_unknown(value, graph, unknown)
        elif key == "start":
            start = load_ranking(opened, value)
            options[key] = values_of(start, opened, float(start.values.mean()) if len(start) else 1.0)
    return options


def _say_unknown(file: Path, graph: Path, unknown: int) -> None:
    if unknown:
        say(f"{file}: names that are not in {graph}: {unknown:,}")


def ranked_then(folder: Path | str, name: str, moment: str | None) -> Path:
    """A copy of a crawl's folder as it was, with a ranking of the links of that time; ``moment`` as for :func:`then`.

    Raises
    ------
    inlink.errors.ParameterError
        If no algorithm has that name, or it needs more than links.
    """
    import inlink
    from inlink.errors import ParameterError
    from inlink.sources.crawlgraph import graph_in

    possible = [
        algorithm
        for algorithm, options in ALGORITHMS.items()
        if not any(option.required for option in options)
    ]
    if name not in possible:
        raise ParameterError(
            f"--as-of ranks anew, so --by must be one of {', '.join(possible)}; got {name!r}"
        )
    copy = then(folder, moment).folder
    graph = graph_in(copy)
    getattr(inlink, name.replace("-", "_"))(graph).save(graph, name)
    return copy
