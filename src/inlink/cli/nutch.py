"""``inlink nutch``: Nutch's link analysis, by Nutch's names and inlink's."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.base.table import counted, printable
from inlink.cli.options import Output
from inlink.cli.sections import Uncut
from inlink.cli.show import note, say, summary

if TYPE_CHECKING:
    from inlink.graph.graph import Graph
    from inlink.nutch.urlrules import NutchUrlRules


# Nutch's flags that take several values.
_SEVERAL = ("--segment", "-segment", "-segmentDir", "--segment-dir")
# Key of the names in the command line, as a list, in click's context.
_GIVEN = "inlink.nutch.given"
_ALIASES = {"scoreupdater": "scoreupdate", "nodedumper": "nodedump", "linkdumper": "linkdump"}


class Command(click.Command):
    """A command that reads its arguments as Nutch does.

    ``-segment A B C`` means ``-segment A -segment B -segment C``. A long name after a single dash is one name, and not
    several short options. Without arguments the command prints its help.
    """

    def __init__(self, name: str | None, **attributes: Any) -> None:
        super().__init__(name, **attributes | {"no_args_is_help": True})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat options of several values before each value, and refuse unknown names as a whole."""
        known = {
            name: param.nargs if isinstance(param, click.Option) and not param.is_flag else 0
            for param in self.get_params(ctx)
            for name in param.opts
        }
        spread: list[str] = []
        option, values = "", 0
        for place, arg in enumerate(args):
            if arg == "--":
                spread += args[place:]
                break
            if values:
                values -= 1
            elif arg.startswith("-") and len(arg) > 1:
                name, equals, _ = arg.partition("=")
                if not arg.startswith(("--", "-D")) and name not in known:
                    raise click.NoSuchOption(
                        name, possibilities=get_close_matches(name, known, cutoff=0.75), ctx=ctx
                    )
                option = arg if arg in _SEVERAL else ""
                values = 0 if equals else known.get(name, 0)
            elif option and spread[-1] != option:
                spread.append(option)
            spread.append(arg)
        ctx.meta[_GIVEN] = [arg.partition("=")[0] for arg in spread]
        return super().parse_args(ctx, spread)


def given(name: str) -> bool:
    """Return whether the running command was given an option by this name."""
    return name in click.get_current_context().meta[_GIVEN]


_HELP = ["-h", "-help", "--help"]


class Group(Uncut):
    """Commands that can also be called by Nutch's names."""

    def __init__(self, name: str | None = None, **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self.context_settings["help_option_names"] = _HELP

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command with Nutch's names for help, because click keeps the first names that it sees."""
        cmd.context_settings.setdefault("help_option_names", _HELP)
        super().add_command(cmd, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, or by Nutch's name for it."""
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))


@click.group(cls=Group)
def nutch() -> None:
    """Run Nutch's link analysis: web graph, loops, LinkRank, update of the crawl's scores, and dumps.

    Nutch's own flags (-webgraphdb, -segment, …), its properties (-D name=value) and its nutch-site.xml (-conf) work
    too. The step `inlink nutch loops` is optional.
    """


def command(**named: tuple[str, Any]) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command on a web graph, with Nutch's properties. Options take precedence over -D, and -D over files.

    Parameters
    ----------
    **named : (str, object)
        For an option of the command, the property that it stands for, and the value if neither is given.

    Returns
    -------
    callable
        A decorator. The function gets the web graph's folder as ``db``, and the properties that are set as
        ``settings``.
    """

    def add(function: Callable[..., Any]) -> click.Command:
        def run(confs: tuple[Path, ...], defined: tuple[str, ...], **options: Any) -> Any:
            from inlink.nutch.properties import read_properties

            settings = read_properties(confs, defined)
            for option, (name, default) in named.items():
                if options[option] is None:
                    options[option] = settings.get(name, default)
            return function(settings=settings, **options)

        made = nutch.command(function.__name__, cls=Command, help=function.__doc__)(run)
        own = reversed(getattr(function, "__click_params__", ()))
        made.params += [_DATABASE, *own, _CONF, _DEFINED]
        return made

    return add


_DATABASE = click.Option(
    ["--db", "-webgraphdb", "db"], required=True, type=Output(), help="The web graph's folder."
)
_CONF = click.Option(
    ["--conf", "-conf", "confs"], type=click.Path(path_type=Path), multiple=True, help="A nutch-site.xml."
)
_DEFINED = click.Option(["-D", "defined"], metavar="NAME=VALUE", multiple=True, help="A property of Nutch.")

url_option = click.option("--url", "-url", "url", required=True, help="The URL, as in the web graph.")


def _open(db: Path) -> "Graph":
    from inlink.graph.graph import Graph

    return Graph.open(db)


def switch(flag: str, name: str, value: bool, help: str) -> Callable[..., Any]:
    """Return an option that sets a property to true or false. Without it, the option is None."""
    return click.option(flag, name, is_flag=True, flag_value=value, type=bool, default=None, help=help)


def url_rules(
    normalize: bool, filter: bool, conf_dir: Path | None, settings: dict[str, Any]
) -> "NutchUrlRules | None":
    """Return the rules for URLs that -normalize and -filter ask for; None if neither is given."""
    from inlink.nutch.urlrules import NutchUrlRules

    confs = click.get_current_context().params["confs"]
    folder = conf_dir or (confs[-1].parent if confs else None)
    chosen: dict[str, Path | None] = {}
    for asked, option, setting, name in (
        (normalize, "normalize", "urlnormalizer.regex.file", "regex-normalize.xml"),
        (filter, "filter", "urlfilter.regex.file", "regex-urlfilter.txt"),
    ):
        path = Path(str(settings.get(setting, name)))
        if asked and folder is None and not path.is_absolute():
            raise click.UsageError(
                f"-{option} reads {path}: name Nutch's configuration folder with --conf-dir or NUTCH_CONF_DIR"
            )
        chosen[option] = (folder or Path()) / path if asked else None
    return NutchUrlRules(**chosen) if normalize or filter else None


@command(
    delete_gone=("link.delete.gone", False),
    ignore_host=("link.ignore.internal.host", None),
    ignore_domain=("link.ignore.internal.domain", None),
    limit_page=("link.ignore.limit.page", None),
    limit_domain=("link.ignore.limit.domain", None),
)
@click.argument("sources", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--segment", "-segment", "segments", multiple=True, type=click.Path(path_type=Path),
    help="A segment of a Nutch crawl. Takes several values and may be repeated.",
)  # fmt: skip
@click.option(
    "--segment-dir", "-segmentDir", "segment_dirs", multiple=True, type=click.Path(path_type=Path),
    help="A folder of segments.",
)  # fmt: skip
@click.option(
    "--update", is_flag=True, help="Add to the existing web graph. The default with -webgraphdb, as in Nutch."
)
@click.option("--replace", is_flag=True, help="Replace the existing web graph.")
@switch(
    "--delete-gone",
    "delete_gone",
    True,
    "Drop the links of pages that are gone or redirected. [link.delete.gone]",
)
@switch("--keep-host", "ignore_host", False, "Keep links within a host. [link.ignore.internal.host=false]")
@switch(
    "--keep-domain", "ignore_domain", False, "Keep links within a domain. [link.ignore.internal.domain=false]"
)
@switch("--no-page-limit", "limit_page", False, "Keep all links to a page. [link.ignore.limit.page=false]")
@switch(
    "--no-domain-limit", "limit_domain", False, "Keep all links to a domain. [link.ignore.limit.domain=false]"
)
@click.option(
    "--normalize", "-normalize", is_flag=True,
    help="Change URLs by the rules of regex-normalize.xml. [urlnormalizer.regex.file]",
)  # fmt: skip
@click.option(
    "--filter", "-filter", "filter_", is_flag=True,
    help="Drop URLs by the rules of regex-urlfilter.txt. [urlfilter.regex.file]",
)  # fmt: skip
@click.option(
    "--conf-dir",
    type=click.Path(path_type=Path),
    envvar="NUTCH_CONF_DIR",
    help="Nutch's configuration folder. Default: $NUTCH_CONF_DIR, or the folder of --conf.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse damaged segments. Without this option, damaged records are left out and counted.",
)
def webgraph(
    sources: tuple[Path, ...],
    db: Path,
    segments: tuple[Path, ...],
    segment_dirs: tuple[Path, ...],
    update: bool,
    replace: bool,
    delete_gone: bool,
    normalize: bool,
    filter_: bool,
    conf_dir: Path | None,
    strict: bool,
    settings: dict[str, Any],
    **rules: bool | None,
) -> None:
    """Build the web graph of segments, and of SOURCES: crawls' folders and graphs of any format.

    If the web graph exists, give --update or --replace. With -webgraphdb it is updated, as in Nutch.
    """
    from inlink.nutch.webgraph import LinkRules
    from inlink.nutch.webgraph import webgraph as build

    chosen = {name: value for name, value in rules.items() if value is not None}
    if not (sources or segments or segment_dirs):
        raise click.UsageError("no source: name a segment, a folder of segments, a crawl or a graph")
    update = _updates(db, update, replace)
    urls = url_rules(normalize, filter_, conf_dir, settings)
    graph = build(
        [*segments, *sources],
        rules=LinkRules(**chosen) if chosen or not update else None,
        delete_gone=delete_gone,
        update=update,
        segment_dirs=segment_dirs,
        urls=urls,
        strict=strict,
        into=db,
    )
    if urls is not None:
        say(f"URL rules: {urls.changed:,} changed, {urls.dropped:,} dropped")
    say(f"{summary(graph, str(db))}, of {graph.meta['nutch']['fetched']:,} fetched pages")
    for reason, number in graph.meta.get("skipped", {}).items():
        say(f"skipped {number:,}: {printable(reason)}")


def _updates(db: Path, update: bool, replace: bool) -> bool:
    """Return whether to update the web graph. Refuse to replace it without --replace."""
    from inlink.errors import OutputError

    if update and replace:
        raise click.UsageError("--update and --replace cannot be combined: give one of them")
    if update or replace or not (db.is_dir() and any(db.iterdir())):
        return update
    if given("-webgraphdb"):
        return True
    raise OutputError(f"{db} exists. Add to this web graph with --update, or replace it with --replace.")


@command(depth=("link.loops.depth", 2))
@click.option("--depth", type=int, help="Number of links that may lead back. Default: 2. [link.loops.depth]")
@click.option("--threads", type=int, help="Number of threads. Default: all processors.")
def loops(db: Path, depth: int, threads: int | None, **_: Any) -> None:
    """Find the links on short cycles, which linkrank leaves out."""
    from inlink.rank.loops import loops as find

    graph = _open(db)
    found = find(graph, depth=depth, threads=threads)
    found.save()
    say(f"{db}: {len(found):,} of {graph.num_arcs:,} links are loops of depth {depth}")


@command(
    damping=("link.analyze.damping.factor", 0.85),
    start=("link.analyze.initial.score", 1.0),
    limit_page=("link.ignore.limit.page", True),
    limit_domain=("link.ignore.limit.domain", True),
)
@click.option("--max-iter", type=int, help="Number of rounds. Default: 10. [link.analyze.num.iterations]")
@click.option("--tol", type=float, help="Iterate until the mean error of a score is at most this.")
@click.option("--damping", type=float, help="Damping. Default: 0.85. [link.analyze.damping.factor]")
@click.option("--start", type=float, help="Initial score. Default: 1. [link.analyze.initial.score]")
@switch(
    "--no-page-limit", "limit_page", False, "Count all inlinks from a page. [link.ignore.limit.page=false]"
)
@switch(
    "--no-domain-limit",
    "limit_domain",
    False,
    "Count all inlinks from a domain. [link.ignore.limit.domain=false]",
)
@click.option(
    "--no-loops", is_flag=True, help="Count links that are loops, even if `inlink nutch loops` found them."
)
@click.option("--threads", type=int, help="Number of threads. Default: all processors.")
def linkrank(
    db: Path,
    max_iter: int | None,
    tol: float | None,
    no_loops: bool,
    settings: dict[str, Any],
    **options: Any,
) -> None:
    """Rank the web graph, and save the scores in it as the ranking ``linkrank``."""
    from inlink.errors import FolderError
    from inlink.rank.linkrank import linkrank as rank
    from inlink.rank.loops import Loops

    graph = _open(db)
    found = None
    if not no_loops and (db / "loops").exists():
        try:
            found = Loops.load(graph)
        except FolderError as error:
            raise FolderError(f"{error}, or rank with --no-loops") from None
    if max_iter is None and tol is None:
        max_iter = settings.get("link.analyze.num.iterations", 10)
    ranking = rank(graph, max_iter=max_iter, tol=tol, loops=found, **options)
    ranking.save(graph, "linkrank")
    without = "" if found is None else f", without {counted(len(found), 'loop')}"
    if tol is None:
        say(
            f"linkrank: {counted(ranking.iterations, 'round')}{without}; {ranking.note or 'no bound on the error'}"
        )
    else:
        say(f"linkrank: {ranking.verdict()}{without}")


@command(clear=("link.score.updater.clear.score", 0.0))
@click.option("--crawl", type=click.Path(path_type=Path), help="A crawl's folder, for its ranking linkrank.")
@click.option(
    "--crawldb",
    "-crawldb",
    type=click.Path(path_type=Path),
    help="Nutch's crawl database, or its dump as text or CSV.",
)
@click.option(
    "--nodes",
    type=Output(),
    help="A folder to write: Nutch's node database, the folder `nodes` of its own web graph.",
)
@click.option("--output", "-o", type=Output(), help="The copy of the crawl database to write.")
@click.option(
    "--format", "-format", "format_", type=click.Choice(["crawldb", "csv", "text", "seeds"]),
    help="Format of the copy of a database. Default: by the output's name, .csv or .txt, else a crawl database. "
    "`seeds` are for Nutch's Injector. A dump keeps its format.",
)  # fmt: skip
@click.option(
    "--clear",
    type=float,
    help="Score of URLs that are not in the web graph. Default: 0. [link.score.updater.clear.score]",
)
@click.option(
    "--allow-unmatched", is_flag=True, help="Accept a dump even if most of its URLs are not in the web graph."
)
@click.option(
    "--strict/--skip-damaged",
    default=True,
    help="Refuse a damaged crawl database, or leave damaged records out and count them. Default: refuse.",
)
def scoreupdate(
    db: Path,
    crawl: Path | None,
    crawldb: Path | None,
    nodes: Path | None,
    output: Path | None,
    format_: Any,
    clear: float,
    allow_unmatched: bool,
    strict: bool,
    **_: Any,
) -> None:
    """Copy LinkRank's scores into a crawl, a copy of Nutch's crawl database, or Nutch's node database."""
    from inlink.base.damage import Tally
    from inlink.nutch.crawldb import update_crawl, update_crawldb
    from inlink.nutch.dumps import write_nodes
    from inlink.store.reader import is_crawl

    if sum(place is not None for place in (crawl, crawldb, nodes)) != 1:
        raise click.UsageError("expected one of --crawl, --crawldb and --nodes")
    if crawldb is not None and is_crawl(crawldb):
        crawl = crawldb
    if (crawldb is None or crawl is not None) and (output is not None or format_ is not None):
        raise click.UsageError("--output and --format apply only to --crawldb with Nutch's crawl database")
    if nodes is not None:
        say(f"{nodes}: {counted(write_nodes(_open(db), nodes), 'node')} with their scores")
        return
    graph = _open(db)
    if crawl is not None:
        found, place = update_crawl(graph, crawl, clear=clear), crawl
    else:
        assert crawldb is not None
        if output is None:
            raise click.UsageError("--output is missing: Nutch's crawl database itself is never changed")
        tally = Tally(strict)
        found = update_crawldb(
            graph,
            crawldb,
            output,
            clear=clear,
            format=format_,
            allow_unmatched=allow_unmatched,
            tally=tally,
        )
        place = output
        for line in tally.lines():
            say(printable(line))
    scored = f"{counted(found.scored, 'URL')} got a score"
    say(f"{place}: {scored}, {found.cleared:,} are not in the web graph and got {clear:g}")


@command()
@click.option("--inlinks", "-inlinks", "what", flag_value="inlinks", help="Sort by the number of inlinks.")
@click.option(
    "--outlinks", "-outlinks", "what", flag_value="outlinks", help="Sort by the number of outlinks."
)
@click.option(
    "--scores",
    "-scores",
    "what",
    flag_value="scores",
    default=True,
    help="Sort by score. This is the default.",
)
@click.option("--topn", "-topn", "-n", "count", type=click.IntRange(0), help="Number of lines. Default: all.")
@click.option(
    "--group", "-group", type=(click.Choice(["host", "domain"]), click.Choice(["sum", "max"])),
    help="Print hosts or domains, with the sum or the maximum of their values.",
)  # fmt: skip
@click.option(
    "--eff", "-asEff", "eff", is_flag=True, help="Print NAME=VALUE lines, as for Solr's ExternalFileField."
)
@click.option(
    "--output",
    "-output",
    "-o",
    type=Output(dash=True),
    help="The file to write. Default: - (standard output).",
)
def nodedump(
    db: Path,
    what: Any,
    count: int | None,
    group: Any,
    eff: bool,
    output: Path | None,
    **_: Any,
) -> None:
    """Print the best nodes: URL, host or domain, and value."""
    from inlink.base.folder import atomic_file
    from inlink.nutch.dumps import dump_nodes

    lines = dump_nodes(_open(db), what, count=count, group=group, separator="=" if eff else "\t")
    if output is None or str(output) == "-":
        for line in lines:
            say("\t".join(map(printable, line.decode("utf-8", "surrogateescape").split("\t"))))
        return
    with atomic_file(output) as work, work.open("wb") as file:
        for line in lines:
            file.write(line + b"\n")


@command()
@url_option
def nodereader(db: Path, url: str, **_: Any) -> None:
    """Print the scores and degrees of one URL."""
    from inlink.nutch.dumps import read_node

    for line in read_node(_open(db), url):
        say(printable(line))


@command()
@url_option
def linkdump(db: Path, url: str, **_: Any) -> None:
    """Print the pages that link to one URL, each with its scores and degrees."""
    from inlink.nutch.dumps import read_links

    line = None
    for line in read_links(_open(db), url):
        say(printable(line))
    if line is None:
        note(f"no page links to {url}")
