"""The table of formats that inlink reads or writes, and the options that each of them takes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from inlink.errors import ParameterError

__all__ = [
    "ARCHIVES",
    "FOLDERS",
    "FORMATS",
    "SITES",
    "Format",
    "Option",
    "check_options",
    "format_named",
    "implementation",
]


@dataclass(frozen=True)
class Option:
    """An option of reading or writing, as functions and commands take it. None always means "not given".

    Attributes
    ----------
    name : str
        Its name in Python.
    kind : {"flag", "text", "texts", "number"}
        True or False, a string, several strings, or an integer.
    help : str
        One line for the help of the command.
    default : str
        Description of the default, for help.
    choices : tuple of str
        The values that a text may have; empty means any.
    flag : str
        The option of the command, if it is not ``--name``. A flag called ``--no-…`` or ``--drop-…`` means False. Two
        flags with a slash between them mean True and False.
    """

    name: str
    kind: Literal["flag", "text", "texts", "number"]
    help: str
    default: str = ""
    choices: tuple[str, ...] = ()
    flag: str = ""

    @property
    def label(self) -> str:
        """The name for messages, with the command's spelling where that differs."""
        return f"`{self.name}`" + (f" ({self.flag})" if self.flag else "")

    def check(self, value: object) -> None:
        """Refuse a value of another type or outside the choices.

        Raises
        ------
        inlink.errors.ParameterError
            Naming the option and the value.
        """
        if self.kind == "flag":
            fits, wanted = isinstance(value, bool), "True or False"
        elif self.kind == "texts":
            fits = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
            wanted = "a list of strings"
        elif self.kind == "number":
            fits, wanted = isinstance(value, int) and not isinstance(value, bool), "an integer"
        else:
            fits = isinstance(value, str) and (not self.choices or value in self.choices)
            wanted = " or ".join(map(repr, self.choices)) if self.choices else "a string"
        if not fits:
            raise ParameterError(f"{self.label} must be {wanted}; got {value!r}")


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
        ``module:function``, imported when needed. A reader takes a path and options and returns a Source.
    options : tuple of Option
        Options of reading that only some formats have.
    write_options : tuple of Option
        The options of writing.
    """

    name: str
    description: str
    extensions: tuple[str, ...] = ()
    reader: str | None = None
    writer: str | None = None
    options: tuple[Option, ...] = ()
    write_options: tuple[Option, ...] = ()


_ARCHIVE = (
    Option("links", "text", "Anchors, or every tag that Common Crawl counts.", "a", ("a", "all")),
    Option("nofollow", "flag", "Leave out links marked nofollow.", flag="--drop-nofollow"),
    Option("like", "text", "WAT: take links by the rules of Common Crawl's graphs.", "", ("commoncrawl",)),
    Option(
        "any_status",
        "flag",
        "WAT: take links of pages with any HTTP status, or of successful fetches only.",
        "successful fetches; any with --like",
        flag="--any-status/--success-only",
    ),
    Option(
        "location",
        "flag",
        "WAT: with --links all, take the header Location as a link, or not.",
        "taken; not with --like",
        flag="--location/--no-location",
    ),
    Option(
        "exact_schemes",
        "flag",
        "WAT: with --links all, texts in <meta> and <style> are URLs only with a scheme in lower case, or in any case.",
        "any case; lower case with --like",
        flag="--exact-schemes/--any-schemes",
    ),
    Option("self_links", "flag", "Keep links to a place on the page itself (#top), as self-loops."),
)
_EDGE_LIST = (
    Option("nodes", "text", "What the columns hold: node numbers or names.", "detected", ("ids", "names")),
    Option(
        "separator", "text", "A character, or tab, comma, semicolon, space (any run of blanks).", "detected"
    ),
    Option("weights", "flag", "Do not read the third column as weights.", flag="--no-weights"),
    Option(
        "header",
        "flag",
        "The first line names the columns, or it is an arc.",
        "a header if it names source and target",
        flag="--header/--no-header",
    ),
)
_COLUMNS = Option("columns", "texts", "Columns of source, target and, if wanted, weight.", "detected")
_SQLITE = (
    Option("table", "text", "The table with an arc in each row. Its nodes are the only ones.", "detected"),
    _COLUMNS,
)
_BVGRAPH = (
    Option("window", "number", "How many nodes back a list may be copied from; 0: none is copied.", "7"),
    Option("max_references", "number", "The most lists that decoding one list may lead through.", "3"),
    Option("min_interval", "number", "The shortest run of successors that is an interval; 0: none is.", "4"),
    Option("zeta_k", "number", "The parameter of ζ codes.", "3"),
    Option("codes", "texts", "Codes other than WebGraph's, such as RESIDUALS_GAMMA.", "WebGraph's"),
)
_PAGE = (
    Option("around", "text", "HTML: the node at the centre, by name or number.", "the best node"),
    Option("most", "number", "HTML: the most nodes on the page, from 1 to 1000.", "100"),
)

SITES = (
    Option(
        "hosts",
        "text",
        "Nodes that are no URLs are hosts: com.example.www (reversed) or www.example.com (plain).",
        "detected",
        ("reversed", "plain"),
    ),
    Option("strip_www", "flag", "Drop www. from hosts, as Common Crawl did before the end of 2025."),
    Option("private_suffixes", "flag", "Use the private section of the suffix list too (github.io)."),
)
"""The options for folding pages to hosts and domains, with any format."""

_HERE = "inlink.sources"
_TEXT_ENDINGS = tuple(f".{name}{packed}" for packed in ("", ".gz", ".zst") for name in ("tsv", "csv", "txt"))

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format("graph", "a graph's folder that inlink built", (), f"{_HERE}.graphs:graph_source"),
        Format("crawl", "a crawl's folder, also while it is crawled", (), f"{_HERE}.crawlarcs:crawl_source"),
        *(
            Format(
                name,
                description,
                (f".{name}", f".{name}.gz"),
                f"{_HERE}.archive:archive_source",
                None,
                _ARCHIVE,
            )
            for name, description in (
                ("warc", "WARC archive, plain or gzip"),
                ("arc", "ARC archive (before 2009), plain or gzip"),
                ("wat", "WAT: links extracted by Common Crawl"),
            )
        ),
        Format(
            "bvgraph",
            "WebGraph's BVGraph: .graph and .properties",
            (".graph", ".properties"),
            f"{_HERE}.bvgraph:bvgraph",
            f"{_HERE}.write_bvgraph:write_bvgraph",
            write_options=_BVGRAPH,
        ),
        Format(
            "edgelist",
            "edge list, separated by tabs, commas, semicolons or blanks; also gzip and zstd",
            _TEXT_ENDINGS,
            f"{_HERE}.edgelist:edge_list",
            f"{_HERE}.write:write_edge_list",
            _EDGE_LIST,
        ),
        Format(
            "commoncrawl",
            "Common Crawl's vertices, edges and ranks: a folder, one of the files, or a pattern",
            (),
            f"{_HERE}.commoncrawl:common_crawl",
            f"{_HERE}.write_commoncrawl:write_common_crawl",
        ),
        Format(
            "kleinberg", "Kleinberg's 'n ID URL' and 'e FROM TO' lines", (), f"{_HERE}.kleinberg:kleinberg"
        ),
        Format(
            "parquet",
            "Parquet: an arc in each row",
            (".parquet",),
            f"{_HERE}.tables:parquet",
            f"{_HERE}.write:write_parquet",
            (_COLUMNS,),
        ),
        Format(
            "sqlite",
            "SQLite: a table with an arc in each row",
            (".sqlite", ".sqlite3", ".db"),
            f"{_HERE}.tables:sqlite",
            f"{_HERE}.write:write_sqlite",
            _SQLITE,
        ),
        Format(
            "matrixmarket",
            "Matrix Market, plain or gzip",
            (".mtx", ".mtx.gz"),
            f"{_HERE}.matrixmarket:matrix_market",
            f"{_HERE}.write:write_matrix_market",
        ),
        Format(
            "npz",
            "SciPy's sparse matrices, as save_npz writes them",
            (".npz",),
            f"{_HERE}.matrixmarket:scipy_npz",
        ),
        Format(
            "graphml",
            "GraphML",
            (".graphml",),
            f"{_HERE}.markup:graphml",
            f"{_HERE}.write_markup:write_graphml",
        ),
        Format(
            "gexf", "GEXF (Gephi)", (".gexf",), f"{_HERE}.markup:gexf", f"{_HERE}.write_markup:write_gexf"
        ),
        Format("gml", "GML", (".gml",), f"{_HERE}.markup:gml", f"{_HERE}.write_networks:write_gml"),
        Format(
            "json",
            "JSON for D3: nodes and links",
            (".json",),
            writer=f"{_HERE}.write_networks:write_json",
        ),
        Format("pajek", "Pajek", (".net",), writer=f"{_HERE}.write_networks:write_pajek"),
        Format("dot", "DOT (Graphviz)", (".dot", ".gv"), writer=f"{_HERE}.write_networks:write_dot"),
        Format(
            "html",
            "a page with a neighbourhood that can be dragged and searched",
            (".html",),
            writer=f"{_HERE}.write_page:write_page",
            write_options=_PAGE,
        ),
    )
}

FOLDERS = ("graph", "crawl")
"""The folders that inlink makes."""

ARCHIVES = ("warc", "arc", "wat")
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
    given = {name: value for name, value in options.items() if value is not None}
    known = {option.name: option for option in (entry.write_options if writing else entry.options)}
    if entry.name in ARCHIVES:
        known |= {option.name: option for option in SITES if option.name != "hosts"}
    every = {
        option.name: option
        for other in FORMATS.values()
        for option in (*other.options, *SITES, *other.write_options)
    }
    for name, value in given.items():
        if name not in known:
            label = every[name].label if name in every else f"`{name}`"
            takes = ", ".join(f"`{other}`" for other in known) or "no options"
            raise ParameterError(
                f"{os.fspath(path)}: format {entry.name} has no option {label}; it takes {takes}"
            )
        known[name].check(value)
    return given


def implementation(where: str) -> Any:
    """Import and return the function that ``module:function`` names."""
    module, _, function = where.partition(":")
    return getattr(import_module(module), function)
