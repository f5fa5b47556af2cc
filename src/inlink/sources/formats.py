"""The table of formats that inlink reads or writes, and the options that each of them takes."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Any, Literal, TypedDict

from inlink.base.declare import Parameter, parameters_of
from inlink.errors import ParameterError


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes
    ----------
    name : str
        The name for ``--format``.
    description : str
        One line for help and docs.
    extensions : tuple of str
        The usual endings of its files. A writer is chosen by them.
    reader, writer : str or None
        ``module:function`` in this package, imported when needed. A reader takes a path and options, and returns a
        Source.
    options : dict of str to Parameter
        Options of reading that only some formats have, by name.
    write_options : dict of str to Parameter
        The options of writing, by name.
    """

    name: str
    description: str
    extensions: tuple[str, ...] = ()
    reader: str | None = None
    writer: str | None = None
    options: Mapping[str, Parameter] = field(default_factory=dict)
    write_options: Mapping[str, Parameter] = field(default_factory=dict)


class ArchiveOptions(TypedDict, total=False):
    """Options of reading archives. None is an option that is not given, here and below."""

    links: Annotated[
        Literal["a", "all"] | None,
        Parameter("Anchors, or every tag that Common Crawl counts. Default: a."),
    ]
    nofollow: Annotated[bool | None, Parameter("Leave out links marked nofollow.", option="--drop-nofollow")]
    like: Annotated[
        Literal["commoncrawl"] | None, Parameter("WAT: take links by the rules of Common Crawl's graphs.")
    ]
    any_status: Annotated[
        bool | None,
        Parameter(
            "WAT: take links of pages with any HTTP status, or of successful fetches only. "
            "Default: successful fetches; any with --like.",
            option="--any-status/--success-only",
        ),
    ]
    location: Annotated[
        bool | None,
        Parameter(
            "WAT: with --links all, take the header Location as a link, or not. Default: taken; not with --like.",
            option="--location/--no-location",
        ),
    ]
    exact_schemes: Annotated[
        bool | None,
        Parameter(
            "WAT: with --links all, texts in <meta> and <style> are URLs only with a scheme in lower case, or in any "
            "case. Default: any case; lower case with --like.",
            option="--exact-schemes/--any-schemes",
        ),
    ]
    self_links: Annotated[
        bool | None, Parameter("Keep links to a place on the page itself (#top), as self-loops.")
    ]
    since: Annotated[
        str | None,
        Parameter(
            "Take only pages archived from this date on: 2026, 2026-01, 2026-01-31 or a UTC time.",
            option="--from",
        ),
    ]
    until: Annotated[str | None, Parameter("Take only pages archived before this date.", option="--to")]


class EdgeListOptions(TypedDict, total=False):
    """Options of reading edge lists."""

    nodes: Annotated[
        Literal["ids", "names"] | None,
        Parameter("What the columns hold: node numbers or names. Default: detected."),
    ]
    separator: Annotated[
        str | None,
        Parameter("A character, or tab, comma, semicolon, space (any run of blanks). Default: detected."),
    ]
    weights: Annotated[
        bool | None, Parameter("Do not read the third column as weights.", option="--no-weights")
    ]
    header: Annotated[
        bool | None,
        Parameter(
            "The first line names the columns, or it is an arc. Default: a header if it names source and target.",
            option="--header/--no-header",
        ),
    ]


class ColumnOptions(TypedDict, total=False):
    """Options of reading tables."""

    columns: Annotated[
        Sequence[str] | None,
        Parameter("Columns of source, target and, if wanted, weight. Default: detected.", commas=True),
    ]


class SqliteOptions(ColumnOptions, total=False):
    """Options of reading SQLite."""

    table: Annotated[
        str | None,
        Parameter("The table with an arc in each row. Its nodes are the only ones. Default: detected."),
    ]


class SiteOptions(TypedDict, total=False):
    """Options of folding pages to hosts and domains, with any format."""

    hosts: Annotated[
        Literal["reversed", "plain"] | None,
        Parameter(
            "Nodes that are no URLs are hosts: com.example.www (reversed) or www.example.com (plain). "
            "Default: detected."
        ),
    ]
    strip_www: Annotated[
        bool | None, Parameter("Drop www. from hosts, as Common Crawl did before the end of 2025.")
    ]
    private_suffixes: Annotated[
        bool | None, Parameter("Use the private section of the suffix list too (github.io).")
    ]


class BVGraphOptions(TypedDict, total=False):
    """Options of writing BVGraphs."""

    window: Annotated[
        int | None, Parameter("How many nodes back a list may be copied from; 0: none is copied. Default: 7.")
    ]
    max_references: Annotated[
        int | None, Parameter("The most lists that decoding one list may lead through. Default: 3.")
    ]
    min_interval: Annotated[
        int | None,
        Parameter("The shortest run of successors that is an interval; 0: none is. Default: 4."),
    ]
    zeta_k: Annotated[int | None, Parameter("The parameter of ζ codes. Default: 3.")]
    codes: Annotated[
        Sequence[str] | None,
        Parameter("Codes other than WebGraph's, such as RESIDUALS_GAMMA. Default: WebGraph's.", commas=True),
    ]


class CellOptions(TypedDict, total=False):
    """Options of writing text for spreadsheets."""

    safe_cells: Annotated[
        bool | None,
        Parameter(
            "Write ' before texts that spreadsheets would read as a formula (=, +, -, @, tab, line end)."
        ),
    ]


class AnchorOptions(TypedDict, total=False):
    """Options of writing the arcs of a crawl as a table."""

    anchors: Annotated[bool | None, Parameter("For a crawl: write the text of each link.")]


class PageOptions(TypedDict, total=False):
    """Options of writing HTML pages."""

    around: Annotated[
        str | None,
        Parameter(
            "HTML: show what is around this node, by name or number. Default: the best nodes of the whole graph."
        ),
    ]
    most: Annotated[int | None, Parameter("HTML: the most nodes on the page, from 1 to 1000. Default: 200.")]


SITES = parameters_of(SiteOptions)
"""The options for folding pages to hosts and domains, with any format."""

CELLS = parameters_of(CellOptions) | parameters_of(AnchorOptions)
"""The options of text for spreadsheets."""

_TEXT_ENDINGS = tuple(f".{name}{packed}" for packed in ("", ".gz", ".zst") for name in ("tsv", "csv", "txt"))

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format("graph", "a graph's folder that inlink built", (), "graphs:graph_source"),
        Format("crawl", "a crawl's folder, also while it is crawled", (), "crawlgraph:crawl_source"),
        *(
            Format(
                name,
                description,
                (f".{name}", f".{name}.gz", *more),
                "archive:index_source" if name == "cdxj" else "archive:archive_source",
                None,
                parameters_of(ArchiveOptions),
            )
            for name, description, *more in (
                ("warc", "WARC archive, plain or gzip, or WACZ", ".wacz"),
                ("arc", "ARC archive (before 2009), plain or gzip"),
                ("wat", "WAT: links extracted by Common Crawl"),
                ("cdxj", "CDXJ: index of the WARC or ARC files beside it"),
            )
        ),
        Format(
            "bvgraph",
            "WebGraph's BVGraph: .graph and .properties",
            (".graph", ".properties"),
            "bvgraph:bvgraph",
            "write_bvgraph:write_bvgraph",
            write_options=parameters_of(BVGraphOptions),
        ),
        Format(
            "edgelist",
            "edge list, separated by tabs, commas, semicolons or blanks; also gzip and zstd",
            _TEXT_ENDINGS,
            "edgelist:edge_list",
            "write:write_edge_list",
            parameters_of(EdgeListOptions),
            CELLS,
        ),
        Format(
            "commoncrawl",
            "Common Crawl's vertices, edges and ranks: a folder, one of the files, or a pattern",
            (),
            "commoncrawl:common_crawl",
            "write_commoncrawl:write_common_crawl",
        ),
        Format("kleinberg", "Kleinberg's 'n ID URL' and 'e FROM TO' lines", (), "kleinberg:kleinberg"),
        Format(
            "parquet",
            "Parquet: an arc in each row",
            (".parquet",),
            "tables:parquet",
            "write:write_parquet",
            parameters_of(ColumnOptions),
            parameters_of(AnchorOptions),
        ),
        Format(
            "sqlite",
            "SQLite: a table with an arc in each row",
            (".sqlite", ".sqlite3", ".db"),
            "tables:sqlite",
            "write:write_sqlite",
            parameters_of(SqliteOptions),
            parameters_of(AnchorOptions),
        ),
        Format(
            "matrixmarket",
            "Matrix Market, plain or gzip",
            (".mtx", ".mtx.gz"),
            "matrixmarket:matrix_market",
            "write:write_matrix_market",
        ),
        Format(
            "npz",
            "SciPy's sparse matrices, as save_npz writes them",
            (".npz",),
            "matrixmarket:scipy_npz",
        ),
        Format(
            "graphml",
            "GraphML",
            (".graphml",),
            "markup:graphml",
            "write_text:write_graphml",
        ),
        Format("gexf", "GEXF (Gephi)", (".gexf",), "markup:gexf", "write_text:write_gexf"),
        Format("gml", "GML", (".gml",), "markup:gml", "write_text:write_gml"),
        Format(
            "json",
            "JSON for D3: nodes and links",
            (".json",),
            writer="write_text:write_json",
        ),
        Format("pajek", "Pajek", (".net",), writer="write_text:write_pajek"),
        Format("dot", "DOT (Graphviz)", (".dot", ".gv"), writer="write_text:write_dot"),
        Format(
            "html",
            "a page with a map of the best nodes, and a table that can be searched",
            (".html",),
            writer="write_page:write_page",
            write_options=parameters_of(PageOptions),
        ),
    )
}

FOLDERS = ("graph", "crawl")
"""The folders that inlink makes."""

ARCHIVES = ("warc", "arc", "wat", "cdxj")
"""The formats that hold pages. Graphs of hosts and domains are built from them without a graph of pages."""


def format_named(name: str) -> Format:
    """Return the format of a name.

    Raises
    ------
    inlink.errors.ParameterError
        If no format has the name.
    """
    if name not in FORMATS:
        raise ParameterError(f"no format is called {name!r}; choose from {', '.join(FORMATS)}")
    return FORMATS[name]


def check_options(
    path: str | os.PathLike[str], entry: Format, options: Mapping[str, Any], *, writing: bool = False
) -> dict[str, Any]:
    """Return the options that are given, that is, not None.

    Raises
    ------
    inlink.errors.ParameterError
        If the format has no such option, or the option cannot have the value.
    """
    declared = dict(entry.write_options if writing else entry.options)
    if entry.name in ARCHIVES:
        declared |= {name: option for name, option in SITES.items() if name != "hosts"}
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name not in declared:
            called = {other.name: label(other) for other in _all_options()}.get(name, f"`{name}`")
            takes = ", ".join(f"`{other}`" for other in declared) or "no options"
            raise ParameterError(
                f"{os.fspath(path)}: format {entry.name} has no option {called}; it takes {takes}"
            )
        declared[name].check(value, label(declared[name]))
    return given


def label(option: Parameter) -> str:
    """Return an option's name for messages, with the command's spelling where that differs."""
    return f"`{option.name}`" + (f" ({option.option})" if option.option else "")


def _all_options() -> Iterator[Parameter]:
    for entry in FORMATS.values():
        yield from (*entry.options.values(), *entry.write_options.values())
    yield from SITES.values()


def implementation(where: str) -> Any:
    """Import and return the function that ``module:function`` names in this package."""
    module, _, function = where.partition(":")
    return getattr(import_module(f"inlink.sources.{module}"), function)
