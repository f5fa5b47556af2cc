"""Look-ups in a graph or a crawl: ``inlink find``, ``links``, ``path``, ``near``, ``page`` and ``why``."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, TypeVar

import click
import msgspec

from inlink.base.table import printable
from inlink.cli.changes import change_row, described, without_link
from inlink.cli.options import as_of_option, crawl_argument, json_option, set_option, settings_given
from inlink.cli.remote import FolderOrUrl, is_crawl, is_url, refuse_url, view_of
from inlink.cli.show import note, say, say_fields, say_rows, show_answer, show_json, show_reading, show_table
from inlink.errors import FolderError, ParameterError, UnknownNodeError

if TYPE_CHECKING:
    from inlink.audit.templates import LinkKinds
    from inlink.client.remote import RemoteCrawl
    from inlink.client.shards import RemoteShards
    from inlink.crawl.view import CrawlView
    from inlink.graph.graph import Graph
    from inlink.sources.lookups import LookUps
    from inlink.store.page import Page
    from inlink.urls.matching import Kind

    Search = Callable[[str, Kind], "Matches"]


Answer = TypeVar("Answer")
Row = dict[str, Any]
"""A page of a crawl, ``page`` and ``url``, or a node of a graph, ``node`` and ``name``."""

SECONDS = 10.0
"""Time limit of a search for URLs that end with a text."""

place_argument = click.argument("folder", metavar="DIR|GRAPH|URL", type=FolderOrUrl())

local_argument = click.argument(
    "folder",
    metavar="DIR|GRAPH",
    type=FolderOrUrl("this command reads a folder: run it on the machine where the folder is"),
)

node_argument = click.argument("page", metavar="NAME")

template_option = click.option(
    "--template",
    is_flag=True,
    help="Also print whether each link is a template link (of a menu or footer) or a content link. Reads all visits.",
)


def kinds_of(place: Path | str, moment: str | None = None) -> "LinkKinds":
    """The kinds of a crawl's links.

    Raises
    ------
    inlink.errors.ParameterError
        If the place is a graph, or a crawl on a server.
    """
    from inlink.audit.templates import LinkKinds
    from inlink.cli.remote import then
    from inlink.sources.dataset import may_be_published

    refuse_url(place, "--template reads all visits: run it on the machine where the crawl's folder is")
    if names_graph(place) or may_be_published(place):
        raise ParameterError(f"{place} is a graph: --template applies only to crawls")
    return LinkKinds(place if moment is None else then(place, moment).folder)


def graph_at(place: Path, *, verify: bool = False) -> "Graph":
    """The graph in a folder, of a crawl's folder, or of a file, which is read into a temporary folder.

    Raises
    ------
    inlink.errors.InlinkError
        If there is none, or it cannot be read.
    """
    from inlink.sources.crawlgraph import graph_in

    if not is_source(place):
        return graph_in(place, verify=verify)
    from inlink.sources.read import read

    return show_reading(lambda: read(str(place)), f"{place}, read for this command only", err=True)


def is_source(place: Path) -> bool:
    """Return whether a place is a file or standard input, and no folder."""
    return place.is_file() or str(place) == "-"


def names_graph(place: Path | str) -> TypeGuard[Path]:
    """Return whether a place is a graph's folder or a file, and no crawl."""
    from inlink.graph.graph import is_graph

    return isinstance(place, Path) and (is_graph(place) or is_source(place))


def lookups_at(place: Path | str) -> "LookUps | None":
    """The look-ups of a graph, a file, which is read into a temporary folder, or a published graph; else None.

    Then the place can only be a crawl.

    Raises
    ------
    inlink.errors.InlinkError
        If it cannot be read.
    """
    from inlink.sources.dataset import may_be_published

    if may_be_published(place) and not is_crawl(str(place)):
        from inlink.sources.published import PublishedGraph

        try:
            return PublishedGraph.open(place)
        except FolderError as error:
            if is_url(place):
                raise FolderError(f"{error}. The URL of a crawl ends with /v1/crawls/NAME.") from None
            raise
    if names_graph(place):
        from inlink.sources.lookups import GraphLookUps

        return GraphLookUps(graph_at(place))
    return None


def label(graph: "Graph", node: int) -> str:
    """The name of a node, or its number in a graph without names, with control characters escaped."""
    return str(node) if graph.names is None else printable(graph.names[node])


def node_rows(graph: "Graph", nodes: Iterable[int]) -> Iterator[Row]:
    """Rows of nodes."""
    return ({"node": node, "name": None if graph.names is None else graph.names[node]} for node in nodes)


def page_rows(ask: Callable[[str | None], Any]) -> Iterator[Row]:
    """Rows of pages, from all parts of a view's answer; ``ask`` takes the cursor of a part."""
    from inlink.crawl.questions.table import parts

    for part in parts(ask):
        yield from ({"page": row.page, "url": row.url} for row in part.rows)


def node_in(graph: "Graph", name: str, place: Path) -> int:
    """Look up a node, by the end of its name too."""
    from inlink.sources.lookups import GraphLookUps

    return node_at(GraphLookUps(graph), name, place)


def node_at(nodes: "LookUps", name: str, place: Path | str) -> int:
    """Look up a node, by the end of its name too if that is cheap."""
    return _asked(nodes.node, partial(_nodes, nodes) if nodes.suggests else None, name, place)


def asked(
    view: "CrawlView | RemoteCrawl | RemoteShards", ask: Callable[[str], Answer], page: str, place: Path | str
) -> Answer:
    """Ask about a page of a crawl, by the end of its URL too."""
    return _asked(ask, partial(_pages, view, _MOST), page, place)


_MOST = 4
"""Number of candidates after which a search ends."""


def _asked(ask: Callable[[str], Answer], search: "Search | None", name: str, place: Path | str) -> Answer:
    """Ask about a page or node. If no page has that name, ask about the only page whose URL ends with it.

    Without ``search``, no other names are searched. Whole parts of a path come first: ``a.html`` is
    ``https://example.org/a.html``, even if there is a ``…/data.html``.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If there is none, or several. The message names a few whose URLs end with the name, or contain it.
    """
    try:
        return ask(name)
    except UnknownNodeError:
        names, is_end = ([], True) if search is None else _candidates(search, name)
        if len(names) == 1 and is_end:
            note(f"{name} is {names[0]}")
            return ask(names[0])
        raise _unclear(name, names, is_end, place) from None


def _candidates(search: "Search", name: str, *, whole_parts: bool = False) -> tuple[list[str], bool]:
    """Return the first names that end with a name or else contain it, and whether these are all names that end with it.

    ``whole_parts``: only names that end with whole parts of a path.
    """
    forms = [(f"/{name}", True), (name, True), (name, False)] if name else []
    for text, ends in forms[:1] if whole_parts else forms:
        names, searched = _first(search, text, ends)
        if names or not searched:
            return names, ends and searched
    return [], True


def _unclear(name: str, names: list[str], is_end: bool, place: Path | str) -> UnknownNodeError:
    """Return the error for a name that is not known. It suggests other names."""
    some = ", ".join(map(printable, names[: _MOST - 1])) + (", …" if len(names) == _MOST else "")
    if is_end and len(names) > 1:
        return UnknownNodeError(
            f"{name!r} is not known in {place}, and is the end of several names: did you mean {some}?"
        )
    advice = f"did you mean {some}?" if names else "search with `inlink find`"
    return UnknownNodeError(f"{name!r} is not known in {place}: {advice}")


def resolver(graph: "Graph", place: Path) -> Callable[[str, bool], str]:
    """Return a function that looks up the full name of a node by its name, its hash or the end of its name.

    The second argument of the function says whether the node may be new. If so, the function returns an unknown name
    unchanged, searches only for names that end with whole parts of a path, and does not search for parts of URLs.
    """
    from inlink.graph.neighbours import node_of
    from inlink.sources.lookups import GraphLookUps

    @cache
    def full_name(name: str, may_be_new: bool) -> str:
        assert graph.names is not None
        try:
            return graph.names[node_of(graph, name)]
        except UnknownNodeError:
            if may_be_new and "://" in name:
                return name
            names, is_end = _candidates(partial(_nodes, GraphLookUps(graph)), name, whole_parts=may_be_new)
            if len(names) == 1 and is_end:
                note(f"{name} is {names[0]}")
                return names[0]
            if may_be_new and not names and is_end:
                return name
            raise _unclear(name, names, is_end, place) from None

    return full_name


def _first(search: "Search", text: str, ends: bool) -> tuple[list[str], bool]:
    """The first names that end with a text, or contain it, and whether all names were searched for so many.

    They are at most :data:`_MOST`.
    """
    stop = time.monotonic() + SECONDS
    first: list[str] = []
    try:
        for rows, _, _ in search(f"*{text}", "glob") if ends else search(text, "text"):
            names = (name for _, name in map(dict.values, rows))
            # * and ? in the text stand for other characters too.
            first += [name for name in names if not ends or name.endswith(text)]
            if len(first) >= _MOST or time.monotonic() > stop:
                return first[:_MOST], len(first) >= _MOST
    except ParameterError:
        # The text is too long for a search, or the nodes have no names.
        return [], True
    return first, True


Matches = Iterator[tuple[list[Row], int, int]]
"""Parts of a search: rows that match, the number of names that were searched so far, and the number of all names."""


@click.command()
@place_argument
@click.argument("expression", metavar="REGEX")
@click.option("-n", "--number", "count", type=click.IntRange(1), help="Stop after this many pages.")
@click.option(
    "--seconds", type=click.FloatRange(0), default=10.0, show_default=True, help="Time limit of the search."
)
@click.option("--glob", is_flag=True, help="REGEX is a pattern with * and ? for the whole URL.")
@click.option("--text", is_flag=True, help="REGEX is text that occurs in the URL, in upper or lower case.")
@json_option
def find(
    folder: Path | str,
    expression: str,
    count: int | None,
    seconds: float,
    glob: bool,
    text: bool,
    as_json: bool,
) -> None:
    """Print the hash and the URL or name of each page whose URL or name matches REGEX (RE2's syntax) anywhere."""
    if glob and text:
        raise click.UsageError("--glob and --text cannot be combined: give one of them")
    kind: Kind = "glob" if glob else "text" if text else "regex"
    nodes = lookups_at(folder)
    if nodes is not None:
        parts, names = _nodes(nodes, expression, kind), "names"
    else:
        from inlink.crawl.arguments import MOST_ROWS

        most = min(count or MOST_ROWS, MOST_ROWS)
        parts, names = _pages(view_of(folder), most, expression, kind), "URLs"
    show_answer(_rows(parts, names, expression, count, seconds), as_json, say_rows)


def _rows(parts: Matches, names: str, expression: str, count: int | None, seconds: float) -> Iterator[Row]:
    """Search for at most ``count`` rows within ``seconds``. Print a line on standard error if nothing matches."""
    stop, shown, known = time.monotonic() + seconds, 0, 0
    for rows, searched, known in parts:
        for row in rows:
            yield row
            shown += 1
            if shown == count:
                return
        if time.monotonic() > stop and searched < known:
            raise ParameterError(
                f"{expression!r}: searched {searched:,} of {known:,} {names} in {seconds:g} seconds: "
                "use --seconds to search longer"
            )
    if not shown:
        note(f"none of the {known:,} {names} matches {expression!r}")


def _pages(
    view: "CrawlView | RemoteCrawl | RemoteShards", most: int, expression: str, kind: "Kind"
) -> Matches:
    from inlink.crawl.questions.table import parts

    for part in parts(lambda cursor: view.find(expression, kind, most, cursor)):
        yield [{"page": row.page, "url": row.url} for row in part.rows], part.searched, part.known


def _nodes(nodes: "LookUps", expression: str, kind: "Kind") -> Matches:
    for matches, searched in nodes.find(expression, kind):
        yield [{"node": node, "name": name} for node, name in matches], searched, nodes.num_nodes


@click.command()
@place_argument
@node_argument
@template_option
@json_option
def links(folder: Path | str, page: str, template: bool, as_json: bool) -> None:
    """Print the pages that link to a page, and the pages that it links to. For a crawl: of each page's latest visit."""
    kinds = kinds_of(folder) if template else None
    nodes = lookups_at(folder)
    if nodes is not None:
        number = node_at(nodes, page, folder)
        answer: dict[str, Any] = {"node": number}
        for key, rows in (("inlinks", nodes.links(number, "in")), ("outlinks", nodes.links(number, "out"))):
            # As text, the links of a hub are printed as they are read.
            others = (row._asdict() for row in rows)
            answer[key] = list(others) if as_json else others
    else:
        answer = _of_page(folder, page)
        if kinds is not None:
            number = answer["page"]
            for row in answer["inlinks"]:
                row["kind"] = kinds.kind(row["page"], number)
            for row in answer["outlinks"]:
                row["kind"] = kinds.kind(number, row["page"])
    show_answer(answer, as_json, _show)


def _of_page(folder: Path | str, page: str) -> dict[str, Any]:
    """The number of a page, the pages that link to it, and the pages that it links to."""
    from inlink.crawl.arguments import MOST_ROWS

    view = view_of(folder)
    number = asked(view, view.number, page, folder)

    def rows(direction: Literal["from", "to"]) -> Iterator[Row]:
        return page_rows(lambda cursor: view.links(number, direction, MOST_ROWS, cursor))

    # A page that is crawled during the search may occur twice.
    inlinks = {row["page"]: row for row in rows("to")}
    return {
        "page": number,
        "inlinks": [inlinks[key] for key in sorted(inlinks)],
        "outlinks": list(rows("from")),
    }


def _show(answer: dict[str, Any]) -> None:
    number, inlinks, outlinks = answer.values()
    say(f"->{number:016x}")
    say_rows(inlinks, "    ")
    say(f"{number:016x}->")
    say_rows(outlinks, "    ")


@click.command()
@place_argument
@node_argument
@click.option("--from", "origin", metavar="NAME", help="Print a shortest path of links from this node.")
@json_option
def path(folder: Path | str, page: str, origin: str | None, as_json: bool) -> None:
    """Print the links through which a crawl discovered a page: the page, its first linking page, and so on to a seed.

    With --from, print a shortest path of links instead: the page, the page that links to it, and so on. For a graph,
    --from is required. If there is no path, the exit code is 1.
    """
    if origin is not None:
        refuse_url(folder, "--from needs the crawl's folder: run it on the machine where the folder is")
        rows = _shortest(Path(folder), page, origin)
    elif names_graph(folder):
        raise ParameterError(
            f"{folder} is a graph and has no seeds: use --from to name the node where the path begins"
        )
    else:
        rows = _discovery(folder, page)
    show_answer(rows, as_json, say_rows)


def _discovery(folder: Path | str, page: str) -> Iterator[Row]:
    """The page, the page whose links made it known, and so on to a seed."""
    view = view_of(folder)
    number = asked(view, lambda name: view.path(name, 1), page, folder).rows[0].page
    return page_rows(lambda cursor: view.path(number, cursor=cursor))


def _shortest(folder: Path, page: str, origin: str) -> Iterator[Row]:
    """A shortest chain of links to a node: the node, the node that links to it, and so on to the origin."""
    from inlink.graph.neighbours import chain

    graph = graph_at(folder)
    begin, end = node_in(graph, origin, folder), node_in(graph, page, folder)
    nodes = chain(graph, begin, end)
    if nodes is None:
        note(f"no links lead from {label(graph, begin)} to {label(graph, end)}")
        click.get_current_context().exit(1)
    return node_rows(graph, reversed(nodes))


@click.command()
@local_argument
@node_argument
@click.option("--hops", type=click.IntRange(1), help="Maximum number of links from the node. Default: 1.")
@click.option(
    "--direction",
    type=click.Choice(["both", "in", "out"]),
    help="Follow links in both directions (the default), backwards (in) or forwards (out).",
)
@click.option(
    "--sharing", is_flag=True, help="Show nodes that share inlinks with the node, instead of its neighbours."
)
@click.option(
    "--by", "ranking", help="Sort the nodes at each distance by this stored ranking, and show its values."
)
@click.option(
    "-n", "--number", "count", type=click.IntRange(1), default=100, show_default=True, help="Number of nodes."
)
@json_option
def near(
    folder: Path,
    page: str,
    hops: int | None,
    direction: str | None,
    sharing: bool,
    ranking: str | None,
    count: int,
    as_json: bool,
) -> None:
    """Show the nodes around a node: distances in links, and names. The output is tab-separated unless on a terminal.

    With --sharing, show the nodes that share inlinks with NAME (co-citation), each with the number of nodes that link
    to both. The graph of a crawl is built each time, in a temporary folder.
    """
    import numpy as np

    from inlink.graph import neighbours
    from inlink.sources.rankings import load_ranking, values_of

    if sharing and (hops or direction):
        raise click.UsageError("--sharing cannot be combined with --hops or --direction: leave them out")
    graph = graph_at(folder)
    node = node_in(graph, page, folder)
    figures: Any
    if sharing:
        nodes, figures = neighbours.sharing(graph, node)
    else:
        nodes, figures = neighbours.near(graph, node, hops or 1, direction or "both")  # type: ignore[arg-type]
    values = None
    if ranking is not None:
        values = values_of(load_ranking(graph, ranking), graph, 0.0)[nodes]
        order = np.lexsort((nodes, -values, -figures.astype(np.int64) if sharing else figures))
        nodes, figures, values = nodes[order], figures[order], values[order]
    head = "shared" if sharing else "hops"
    rows: list[Row] = [
        {head: int(figures[k]), **row} | ({} if values is None else {"value": float(values[k])})
        for k, row in enumerate(node_rows(graph, nodes[:count].tolist()))
    ]

    def show(_: object) -> None:
        table = [
            [
                row[head],
                *([] if values is None else [f"{row['value']:.6g}"]),
                row["node"] if row["name"] is None else row["name"],
            ]
            for row in rows
        ]
        columns = [head, *([] if ranking is None else [ranking]), "name"]
        show_table(columns, table, right=range(len(columns) - 1))
        if len(nodes) > count:
            note(f"{len(nodes) - count:,} more: use -n to see them")

    show_answer({"nodes": len(nodes), "rows": rows}, as_json, show)
    if not rows:
        note(
            f"{label(graph, node)} {'shares no inlinks with another node' if sharing else 'has no such neighbours'}"
        )


@click.command()
@place_argument
@node_argument
@json_option
def page(folder: Path | str, page: str, as_json: bool) -> None:
    """Show the stored data of one page.

    For a page of a crawl: state, score, depth, crawls. For a node of a graph: links, and values in stored rankings.
    """
    nodes = lookups_at(folder)
    if nodes is not None:
        facts = nodes.facts(node_at(nodes, page, folder))
        show_answer(vars(facts) | {"damaged": list(facts.damaged)}, as_json, _say_node)
        # The other rankings are shown before the error of the first damaged one.
        if facts.damaged:
            raise next(iter(facts.damaged.values()))
        return
    view = view_of(folder)

    def known(name: str) -> "Page":
        while (data := view.page(name)) and not data.searched:
            pass
        if data is None:
            raise UnknownNodeError(name)
        return data

    data = asked(view, known, page, folder)
    fields = asdict(data)
    fields["content_hash"] = fields["content_hash"].hex()
    fields["fingerprint"] = f"{data.fingerprint:016x}" if data.fingerprint else ""
    del fields["searched"]
    show_answer(fields, as_json, _say_page)


def _say_page(fields: dict[str, Any]) -> None:
    times = {
        name: datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
        for name, value in fields.items()
        if name.endswith("_crawl") and value is not None
    }
    facts = fields.pop("facts")
    read = {} if facts is None else msgspec.to_builtins(facts)
    say_fields((fields | times | read).items(), 17)


def _say_node(answer: dict[str, Any]) -> None:
    values = {
        ranking: "  ".join(
            f"{'' if name == 'value' else f'{name} '}{value:.6g}" for name, value in columns.items()
        )
        for ranking, columns in answer["rankings"].items()
    }
    fields = {name: value for name, value in answer.items() if name not in ("rankings", "damaged")}
    say_fields([*fields.items(), *values.items()], 14)


@click.command()
@crawl_argument
@click.argument("page", metavar="URL|HASH")
@set_option
@click.option(
    "--without",
    "source",
    metavar="URL",
    help="Also print the page's PageRank and place among all pages without the link from this page.",
)
@template_option
@as_of_option
@json_option
def why(
    folder: Path | str,
    page: str,
    source: str | None,
    template: bool,
    moment: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Print the place of a page of DIR in the order, and why: priority, links, penalties, politeness, leases.

    With --template, further lines say which of the best inlinks are template links. With --without, a last line has the
    PageRank that the page would have without a link, as ``inlink whatif`` computes it.
    """
    if source is not None:
        refuse_url(folder, "--without needs the crawl's folder: run it on the machine where the folder is")
    kinds = kinds_of(folder, moment) if template else None
    given = settings_given(options)
    view = view_of(folder, given, moment)
    reasons = asked(view, lambda name: view.why(name, seconds=1.0), page, folder)
    while not reasons.inlinks_complete:
        reasons = view.why(reasons.page, seconds=1.0)
    more: dict[str, Any] = {}
    lines = []
    if kinds is not None:
        more["kinds"] = [kinds.kind(inlink.page, reasons.page) for inlink in reasons.inlinks]
        lines += [
            f"{kind} link from {row.url}" for kind, row in zip(more["kinds"], reasons.inlinks, strict=True)
        ]
    if source is not None:
        change = without_link(
            Path(folder), reasons.url, lambda graph: node_in(graph, source, Path(folder)), moment
        )
        more["without"] = change_row(change)
        lines.append(f"without the link from {source}: {described(change)}")
    if as_json:
        show_json({**msgspec.to_builtins(reasons), **more} if more else reasons)
        return
    for line in [*str(reasons).split("\n"), *(f"  {line}" for line in lines)]:
        say(printable(line))
