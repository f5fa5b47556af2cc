"""``inlink rank``: rank a graph and keep the ranking in its folder."""

import sys
from collections.abc import Iterable
from copy import copy
from functools import cache
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from inlink.cli.lookups import graph_at, is_source
from inlink.cli.options import Output, as_of_option, declared_option, graph_argument, json_option
from inlink.cli.remote import then
from inlink.cli.show import note, say, show_json, show_table
from inlink.errors import ParameterError

if TYPE_CHECKING:
    from inlink.base.declare import Parameter
    from inlink.graph.graph import Graph
    from inlink.rank.plan import Step
    from inlink.rank.ranking import Ranking


_DEFAULT = "pagerank"

# Key of the context's notes: the algorithms that the arguments name.
_CHOSEN = "inlink.cli.rank.algorithms"

ALGORITHMS = (
    "pagerank",
    "mcmc",
    "trustrank",
    "anti-trustrank",
    "spam-mass",
    "cheirank",
    "hits",
    "salsa",
    "opic",
    "degree",
    "closeness",
    "harmonic",
    "betweenness",
    "percolation",
    "eigenvector",
    "katz",
)

# Parameters whose options name a file of values, and a file of nodes.
_VALUES = {"personalization", "scores", "states"}
_NODES = {"trusted", "spam"}


@cache
def options_of(algorithm: str) -> tuple[click.Option, ...]:
    """Return an option for each parameter that the function of an algorithm declares with a help."""
    import inlink
    from inlink.base.declare import parameters_of

    declared = parameters_of(getattr(inlink, algorithm.replace("-", "_")))
    return tuple(_option(row) for row in declared.values() if row.help)


def _option(row: "Parameter") -> click.Option:
    flag = row.option or f"--{row.name.replace('_', '-')}"
    if row.name in _VALUES:
        text = (
            f"CSV or TSV file with a node and a value in each line: {row.help}. Nodes that it lacks have 0."
        )
        return click.Option([flag, row.name], type=click.Path(path_type=Path), help=text)
    if row.name in _NODES:
        text = f"{row.help}, one node a line."
        return click.Option([flag, row.name], type=click.Path(path_type=Path), required=True, help=text)
    if row.name == "start":
        return click.Option([flag, row.name], metavar="RANKING", help=row.help)
    return declared_option(row)


def _flags(algorithm: str) -> list[str]:
    return [flag for option in options_of(algorithm) for flag in (*option.opts, *option.secondary_opts)]


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


@cache
def _shared() -> dict[str, click.Option]:
    """Return the options of all algorithms by their flags. Their values stay as they were read."""
    options: dict[str, click.Option] = {}
    for option in (option for name in ALGORITHMS for option in options_of(name)):
        plain = options.setdefault(option.opts[0], copy(option))
        plain.name, plain.required, plain.callback, plain.type = (
            option.opts[0],
            False,
            None,
            click.UNPROCESSED,
        )
    return options


class RankCommand(click.Command):
    """A command whose options are those of the algorithms that its arguments name.

    The values of options are read once for each algorithm that has them. They are in ``given``.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.general = self.params

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, and then the values of each algorithm's options."""
        names = _named(args)
        known = [name for name in names if name in ALGORITHMS] or [_DEFAULT]
        if any(argument == "--algorithm" or argument.startswith("--algorithm=") for argument in args):
            ctx.meta[_CHOSEN] = known
        rest = super().parse_args(ctx, args)
        values = {flag: ctx.params.pop(flag) for flag in _shared()}
        if ctx.params["every"]:
            names = known = ctx.params["algorithms"] = _all_measures(ctx, values)
        for flag, value in values.items():
            if value is not None and not any(flag in _flags(name) for name in names):
                takes = "; ".join(f"{name} takes {', '.join(_flags(name))}" for name in names)
                raise click.UsageError(
                    f"{flag} does not apply to --algorithm {','.join(names)}; {takes}", ctx
                )
        common, given = ctx.params, dict[str, dict[str, Any]]()
        for name in known:
            ctx.params = {}
            for option in options_of(name):
                if (value := values[option.opts[0]]) is not None:
                    option.handle_parse_result(ctx, {str(option.name): value}, [])
                elif option.required:
                    raise click.MissingParameter(ctx=ctx, param=option)
            given[name] = ctx.params
        ctx.params = {**common, "given": given}
        return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The general options and those of all algorithms."""
        help_option = self.get_help_option(ctx)
        return [*self.general, *_shared().values(), *([help_option] if help_option else [])]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Describe the options of the algorithms; without an algorithm, list the options of all."""
        general = [option for option in self.general if isinstance(option, click.Option)]
        help_option = self.get_help_option(ctx)
        _describe(ctx, formatter, "Options", [*general, *([help_option] if help_option else [])])
        for chosen in ctx.meta.get(_CHOSEN, []):
            _describe(ctx, formatter, f"Options of {chosen}", options_of(chosen))
        if _CHOSEN not in ctx.meta:
            with formatter.section("Options of each algorithm"):
                formatter.write_dl([(name, ", ".join(_flags(name))) for name in ALGORITHMS])


def _all_measures(ctx: click.Context, values: dict[str, Any]) -> list[str]:
    """Return the measures of --all, and refuse options of single measures."""
    from inlink.rank.plan import MEASURES

    others = ["--algorithm"] * (_CHOSEN in ctx.meta)
    others += [flag for flag, value in values.items() if value is not None and flag != "--threads"]
    if others:
        raise click.UsageError(
            f"--all ranks by {', '.join(MEASURES)} with their defaults: leave out {', '.join(others)} or --all",
            ctx,
        )
    return list(MEASURES)


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
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Rank by degree, harmonic, pagerank, eigenvector, katz and betweenness, after an estimate of time and memory. "
    "A graph's rankings with the same parameters are not computed again: --algorithm NAME computes them anyway. On "
    "large graphs, harmonic and betweenness are estimated.",
)
@click.option("--name", help="Name of the ranking; the algorithm's name if not given.")
@click.option(
    "--output",
    "-o",
    type=Output(dash=True),
    help="For a GRAPH that is a file: write all values to this file, .csv or .parquet, or as CSV to - (standard "
    "output). Default: print the best ten nodes.",
)
@click.option(
    "--content",
    is_flag=True,
    help="For a crawl: leave out links of menus and footers. The ranking's name ends with -content by default.",
)
@as_of_option
@json_option
def rank(
    graph: Path,
    algorithms: list[str],
    every: bool,
    name: str | None,
    output: Path | None,
    content: bool,
    moment: str | None,
    as_json: bool,
    given: dict[str, dict[str, Any]],
) -> None:
    """Rank GRAPH and keep the ranking in its folder, for ``inlink top`` and ``inlink export``.

    GRAPH may be the folder of a crawl. Its graph is built each time, in a temporary folder. With --as-of, the graph has
    the pages and links of that moment. The ranking is kept under the name that --name gives.

    GRAPH may also be a file that inlink build reads, or - for standard input. No graph and no ranking are kept then.
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
    kept = not is_source(graph)
    if output is not None and (kept or len(algorithms) > 1):
        raise click.UsageError(
            f"{graph} is a folder and keeps the ranking: inlink export --by writes it to a file"
            if kept
            else f"-o takes one ranking; got {','.join(algorithms)}"
        )
    if str(output) == "-" and as_json:
        raise click.UsageError("-o - and --json both write to standard output: give one of them")
    if output is not None and output.suffix not in (".csv", ".parquet") and str(output) != "-":
        raise click.UsageError(f"-o writes .csv or .parquet; got {output.name}")
    place = graph if moment is None else then(graph, moment).folder
    opened = graph_at(graph) if moment is None else CrawlGraph(graph, graph_in(place))
    ranked = opened
    if content:
        from inlink.audit.templates import content_graph

        if not isinstance(opened, CrawlGraph):
            raise click.UsageError(
                f"--content needs the folder of a crawl, whose links have texts; got {graph}"
            )
        ranked = content_graph(opened, place)
    # All files are read before the first ranking begins.
    options = {algorithm: values_given(given[algorithm], opened, graph) for algorithm in algorithms}
    # A crawl may have new links since its rankings were stored.
    stored = _planned(ranked, options, kept and not isinstance(opened, CrawlGraph)) if every else {}
    answers: list[dict[str, Any]] = []
    refused = False
    for algorithm in algorithms:
        called = name or f"{algorithm}{'-content' * content}"
        if algorithm in stored:
            answers.append(_described(called, stored[algorithm]))
            say(f"{called}: stored with the same parameters, not computed again", err=as_json)
            continue
        try:
            ranking = getattr(inlink, algorithm.replace("-", "_"))(ranked, **options[algorithm])
        except ParameterError as error:
            if not every:
                raise
            note(f"{called}: {error}")
            refused = True
            continue
        if kept:
            ranking.save(opened, called)
        if every and algorithm == "eigenvector":
            from inlink.rank.plan import katz_alpha

            options["katz"]["alpha"] = katz_alpha(ranking)
        answers.append(_described(called, ranking))
        if output is not None:
            _write(ranking, output)
        elif not kept:
            best = enumerate(ranking.top(10), 1)
            answers[-1]["top"] = [
                {"place": place, "node": node, "value": value} for place, (node, value) in best
            ]
        if not as_json:
            say(f"{called}: {ranking.verdict()}", err=not kept)
            rows = [(row["place"], f"{row['value']:.6g}", row["node"]) for row in answers[-1].get("top", [])]
            if rows:
                show_table(["place", name or algorithm, "node"], rows, right=(0, 1))
    if as_json:
        show_json(answers)
    if refused:
        click.get_current_context().exit(2)


def _planned(ranked: "Graph", options: dict[str, dict[str, Any]], keeps: bool) -> dict[str, "Ranking"]:
    """Print the estimates of --all, add the options of its measures, and return the rankings that are stored."""
    from inlink.rank.plan import check_memory, katz_alpha, plan

    stored: dict[str, Ranking] = {}
    left: list[Step] = []
    for step in plan(ranked, options["pagerank"].get("threads")):
        if step.algorithm == "katz" and "eigenvector" in stored:
            step.options["alpha"] = katz_alpha(stored["eigenvector"])
        options[step.algorithm] |= step.options
        ranking = step.stored(ranked, step.algorithm) if keeps else None
        if ranking is None:
            left.append(step)
        else:
            stored[step.algorithm] = ranking
    check_memory(left)
    for step in left:
        note(step.summary())
    return stored


def _described(name: str, ranking: "Ranking") -> dict[str, Any]:
    columns = ("algorithm", "iterations", "converged", "error_bound", "residual", "note")
    described = {column: getattr(ranking, column) for column in columns}
    return {"name": name, **described, "verdict": ranking.verdict()}


def _write(ranking: "Ranking", output: Path) -> None:
    """Write a ranking to a file, or as CSV to standard output."""
    if output.suffix == ".parquet":
        ranking.to_parquet(output)
    elif str(output) != "-":
        ranking.to_csv(output)
    else:
        with TemporaryDirectory() as folder:
            file = Path(folder, "ranking.csv")
            ranking.to_csv(file)
            with file.open("rb") as stream:
                copyfileobj(stream, sys.stdout.buffer)


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
        algorithm for algorithm in ALGORITHMS if not any(option.required for option in options_of(algorithm))
    ]
    if name not in possible:
        raise ParameterError(
            f"--as-of ranks anew, so --by must be one of {', '.join(possible)}; got {name!r}"
        )
    copy = then(folder, moment).folder
    graph = graph_in(copy)
    getattr(inlink, name.replace("-", "_"))(graph).save(graph, name)
    return copy
