"""``inlink nutch``: Nutch's link analysis, by Nutch's names for it and ours."""

from pathlib import Path
from typing import Any

import click

from inlink.cli.nutch_options import (
    Command,
    Group,
    database,
    properties,
    read_settings,
    switched_off,
    url_option,
)
from inlink.cli.show import printable, say, summary

__all__ = ["nutch"]


@click.group(cls=Group)
def nutch() -> None:
    """Nutch's link analysis: web graph, loops, LinkRank, scores back into the crawl, and the dumps.

    \b
    inlink nutch webgraph --segment-dir crawl/segments --db web
    inlink nutch loops --db web --depth 2             (if you want it)
    inlink nutch linkrank --db web
    inlink nutch scoreupdate --db web --crawl mycrawl
    inlink nutch nodedump --db web --scores --topn 10

    Nutch's own flags (-webgraphdb, -segment, …), its properties (-D name=value) and its nutch-site.xml (-conf) are
    taken.
    """  # noqa: D301


@nutch.command(cls=Command)
@click.argument("sources", nargs=-1, type=click.Path(path_type=Path))
@database
@click.option(
    "--segment", "-segment", "segments", multiple=True, type=click.Path(path_type=Path),
    help="A segment of Nutch's; may be given again, and takes several.",
)  # fmt: skip
@click.option(
    "--segment-dir", "-segmentDir", "segment_dirs", multiple=True, type=click.Path(path_type=Path),
    help="A folder of segments.",
)  # fmt: skip
@click.option(
    "--update", is_flag=True, help="Go on from the web graph that is there, instead of replacing it."
)
@click.option(
    "--delete-gone",
    is_flag=True,
    help="Drop the links of pages that are gone or redirected by now. [link.delete.gone]",
)
@click.option("--keep-host", is_flag=True, help="Keep links within a host. [link.ignore.internal.host=false]")
@click.option(
    "--keep-domain", is_flag=True, help="Keep links within a domain. [link.ignore.internal.domain=false]"
)
@click.option(
    "--no-page-limit", is_flag=True, help="Keep all links to a page. [link.ignore.limit.page=false]"
)
@click.option(
    "--no-domain-limit", is_flag=True, help="Keep all links to a domain. [link.ignore.limit.domain=false]"
)
@click.option(
    "--strict", is_flag=True, help="Refuse damaged segments, instead of leaving out what is damaged."
)
@properties
def webgraph(
    sources: tuple[Path, ...],
    db: Path,
    segments: tuple[Path, ...],
    segment_dirs: tuple[Path, ...],
    update: bool,
    delete_gone: bool,
    keep_host: bool,
    keep_domain: bool,
    no_page_limit: bool,
    no_domain_limit: bool,
    strict: bool,
    **given: Any,
) -> None:
    """Build the web graph of segments, and of SOURCES: crawls' folders and graphs of any format."""
    from inlink.sources.nutch import LinkRules
    from inlink.sources.nutch import webgraph as build

    settings = read_settings(given)
    switched_off(
        settings,
        {
            "link.ignore.internal.host": keep_host,
            "link.ignore.internal.domain": keep_domain,
            "link.ignore.limit.page": no_page_limit,
            "link.ignore.limit.domain": no_domain_limit,
        },
    )
    names = {
        "ignore_host": "link.ignore.internal.host",
        "ignore_domain": "link.ignore.internal.domain",
        "limit_page": "link.ignore.limit.page",
        "limit_domain": "link.ignore.limit.domain",
    }
    chosen = {ours: bool(settings[theirs]) for ours, theirs in names.items() if theirs in settings}
    if not (sources or segments or segment_dirs):
        raise click.UsageError("name a segment, a folder of segments, a crawl or a graph")
    graph = build(
        [*segments, *sources],
        rules=LinkRules(**chosen) if chosen or not update else None,
        delete_gone=delete_gone or bool(settings.get("link.delete.gone", False)),
        update=update,
        segment_dirs=segment_dirs,
        strict=strict,
        into=db,
    )
    say(f"{summary(graph, str(db))}, of {graph.meta['nutch']['fetched']:,} fetched pages")
    for reason, number in graph.meta.get("skipped", {}).items():
        say(f"skipped {number:,}: {printable(reason)}")


@nutch.command(cls=Command)
@database
@click.option("--depth", type=int, help="How many links may lead back; 2 if not given. [link.loops.depth]")
@click.option("--threads", type=int, help="How many; all processors if not given.")
@properties
def loops(db: Path, depth: int | None, threads: int | None, **given: Any) -> None:
    """Find the links that lie on short cycles, for linkrank to leave out."""
    from inlink.graph.graph import Graph
    from inlink.rank.loops import loops as find

    settings = read_settings(given)
    if depth is None:
        depth = int(settings.get("link.loops.depth", 2))
    graph = Graph.open(db)
    found = find(graph, depth=depth, threads=threads)
    found.save()
    say(f"{db}: {len(found):,} of {graph.num_arcs:,} links are loops of depth {depth}")


@nutch.command(cls=Command)
@database
@click.option(
    "--iterations", type=int, help="How many rounds; 10 if not given. [link.analyze.num.iterations]"
)
@click.option("--tol", type=float, help="Go on until the mean error of a score is at most this.")
@click.option("--damping", type=float, help="0.85 if not given. [link.analyze.damping.factor]")
@click.option(
    "--initial", type=float, help="The score to begin with; 1 if not given. [link.analyze.initial.score]"
)
@click.option(
    "--no-page-limit", is_flag=True, help="Count all inlinks from a page. [link.ignore.limit.page=false]"
)
@click.option(
    "--no-domain-limit",
    is_flag=True,
    help="Count all inlinks from a domain. [link.ignore.limit.domain=false]",
)
@click.option("--no-loops", is_flag=True, help="Count loops too, although they were found.")
@click.option("--threads", type=int, help="How many; all processors if not given.")
@properties
def linkrank(
    db: Path,
    iterations: int | None,
    tol: float | None,
    damping: float | None,
    initial: float | None,
    no_page_limit: bool,
    no_domain_limit: bool,
    no_loops: bool,
    threads: int | None,
    **given: Any,
) -> None:
    """Rank the web graph, and keep the scores in it as the ranking ``linkrank``."""
    from inlink.errors import FolderError
    from inlink.graph.graph import Graph
    from inlink.rank.linkrank import linkrank as rank
    from inlink.rank.loops import Loops

    settings = read_settings(given)
    switched_off(
        settings, {"link.ignore.limit.page": no_page_limit, "link.ignore.limit.domain": no_domain_limit}
    )
    graph = Graph.open(db)
    found = None
    if not no_loops and (db / "loops").exists():
        try:
            found = Loops.load(graph)
        except FolderError as error:
            raise FolderError(f"{error}, or rank with --no-loops") from None
    if iterations is None and tol is None:
        iterations = int(settings.get("link.analyze.num.iterations", 10))
    ranking = rank(
        graph,
        iterations=iterations,
        tol=tol,
        damping=float(settings.get("link.analyze.damping.factor", 0.85)) if damping is None else damping,
        initial=float(settings.get("link.analyze.initial.score", 1.0)) if initial is None else initial,
        limit_page=bool(settings.get("link.ignore.limit.page", True)),
        limit_domain=bool(settings.get("link.ignore.limit.domain", True)),
        loops=found,
        threads=threads,
    )
    ranking.save(graph, "linkrank")
    without = "" if found is None else f", without {len(found):,} loops"
    if tol is None:
        say(f"linkrank: {ranking.iterations:,} rounds{without}; {ranking.note or 'no bound on the error'}")
    else:
        say(f"linkrank: {ranking.verdict()}{without}")


@nutch.command(cls=Command)
@database
@click.option("--crawl", type=click.Path(path_type=Path), help="A crawl's folder, for its ranking linkrank.")
@click.option(
    "--crawldb",
    "-crawldb",
    type=click.Path(path_type=Path),
    help="Nutch's crawl database, or its dump as text or CSV.",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), help="The copy of the crawl database to write."
)
@click.option(
    "--format", "-format", "format_", type=click.Choice(["csv", "text"]),
    help="What to write of a database; CSV if not given.",
)  # fmt: skip
@click.option(
    "--clear",
    type=float,
    help="The score of URLs that are no node; 0 if not given. [link.score.updater.clear.score]",
)
@properties
def scoreupdate(
    db: Path,
    crawl: Path | None,
    crawldb: Path | None,
    output: Path | None,
    format_: str | None,
    clear: float | None,
    **given: Any,
) -> None:
    """Take LinkRank's scores into a crawl, or into a copy of Nutch's crawl database."""
    from inlink.graph.graph import Graph
    from inlink.sources.crawl import is_crawl
    from inlink.sources.damage import Tally
    from inlink.sources.nutch_crawldb import update_crawl, update_crawldb

    settings = read_settings(given)
    if (crawl is None) == (crawldb is None):
        raise click.UsageError("give either --crawl or --crawldb")
    if crawldb is not None and is_crawl(crawldb):
        crawl = crawldb
    value = float(settings.get("link.score.updater.clear.score", 0.0)) if clear is None else clear
    graph = Graph.open(db)
    if crawl is not None:
        if output is not None or format_ is not None:
            raise click.UsageError("--output and --format go with a crawl database of Nutch's")
        found, place = update_crawl(graph, crawl, clear=value), crawl
    else:
        assert crawldb is not None
        if output is None:
            raise click.UsageError("--output is needed: a crawl database of Nutch's is never changed itself")
        tally = Tally()
        found = update_crawldb(graph, crawldb, output, clear=value, format=format_, tally=tally)  # type: ignore[arg-type]
        place = output
        for line in tally.lines():
            say(printable(line))
    say(f"{place}: {found.scored:,} URLs took a score, {found.cleared:,} are no node and got {value:g}")


@nutch.command(cls=Command)
@database
@click.option("--inlinks", "-inlinks", "what", flag_value="inlinks", help="By the number of inlinks.")
@click.option("--outlinks", "-outlinks", "what", flag_value="outlinks", help="By the number of outlinks.")
@click.option(
    "--scores",
    "-scores",
    "what",
    flag_value="scores",
    default=True,
    help="By score, if nothing else is said.",
)
@click.option("--topn", "-topn", "-n", "count", type=click.IntRange(0), help="How many; all if not given.")
@click.option(
    "--group", "-group", type=(click.Choice(["host", "domain"]), click.Choice(["sum", "max"])),
    help="By host or domain, with the sum or the largest value.",
)  # fmt: skip
@click.option("--eff", "-asEff", "eff", is_flag=True, help="NAME=VALUE, as Solr's ExternalFileField.")
@click.option(
    "--output", "-output", "-o", type=click.Path(path_type=Path), help="A file, instead of the terminal."
)
@properties
def nodedump(
    db: Path,
    what: str,
    count: int | None,
    group: tuple[str, str] | None,
    eff: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Print the best nodes: URL, host or domain, and value."""
    from inlink.base.folder import atomic_file
    from inlink.graph.graph import Graph
    from inlink.sources.nutch_dumps import dump_nodes

    read_settings(given)
    lines = dump_nodes(
        Graph.open(db), what, count=count, group=group, separator="=" if eff else "\t"  # type: ignore[arg-type]
    )  # fmt: skip
    if output is None:
        for line in lines:
            say("\t".join(map(printable, line.decode("utf-8", "surrogateescape").split("\t"))))
        return
    with atomic_file(output) as work, work.open("wb") as file:
        for line in lines:
            file.write(line + b"\n")


@nutch.command(cls=Command)
@database
@url_option
@properties
def nodereader(db: Path, url: str, **given: Any) -> None:
    """Print the scores and degrees of one URL."""
    from inlink.graph.graph import Graph
    from inlink.sources.nutch_dumps import read_node

    read_settings(given)
    for line in read_node(Graph.open(db), url):
        say(printable(line))


@nutch.command(cls=Command)
@database
@url_option
@properties
def linkdump(db: Path, url: str, **given: Any) -> None:
    """Print what links to one URL, each with its scores and degrees."""
    from inlink.graph.graph import Graph
    from inlink.sources.nutch_dumps import read_links

    read_settings(given)
    for line in read_links(Graph.open(db), url):
        say(printable(line))
