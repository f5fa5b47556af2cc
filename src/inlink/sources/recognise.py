"""Every format that inlink reads or writes, in one table, and which of them a file is in.

A file's content decides; its name only where contents look alike (a CSV file's separator).
"""

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from inlink.errors import FolderError, FormatError, InputError, ParameterError
from inlink.sources.source import Source

__all__ = ["FORMATS", "Format", "format_named", "read_source", "recognise"]


@dataclass(frozen=True)
class Format:
    """One format.

    Attributes
    ----------
    name : str
        What ``--format`` calls it.
    description : str
        One line for help and docs.
    extensions : tuple of str
        By which its files are usually known; a writer is chosen by them.
    reader, writer : str or None
        ``module:function``, imported when needed. A reader takes a path and options and gives a Source.
    """

    name: str
    description: str
    extensions: tuple[str, ...] = ()
    reader: str | None = None
    writer: str | None = None


_HERE = "inlink.sources"

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format("graph", "a graph's folder that inlink built"),
        Format("crawl", "a crawl's folder, also while it is crawled", (), f"{_HERE}.crawl:crawl_source"),
        Format(
            "warc", "WARC archive, plain or gzip", (".warc", ".warc.gz"), f"{_HERE}.archives:archive_source"
        ),
        Format(
            "arc",
            "ARC archive (before 2009), plain or gzip",
            (".arc", ".arc.gz"),
            f"{_HERE}.archives:archive_source",
        ),
        Format(
            "wat",
            "WAT: links extracted by Common Crawl",
            (".wat", ".wat.gz"),
            f"{_HERE}.archives:archive_source",
        ),
        Format(
            "bvgraph",
            "WebGraph's BVGraph: .graph and .properties",
            (".graph", ".properties"),
            f"{_HERE}.bvgraph:bvgraph",
        ),
        Format(
            "edgelist",
            "edge list: tab, comma, semicolon or blank separated; gzip and zstd",
            (".tsv", ".csv", ".txt", ".tsv.gz", ".csv.gz", ".txt.gz", ".tsv.zst", ".csv.zst", ".txt.zst"),
            f"{_HERE}.edgelist:edge_list",
            f"{_HERE}.write:write_edge_list",
        ),
        Format(
            "commoncrawl",
            "Common Crawl's vertices and edges: a folder, one of the files, or a pattern",
            (),
            f"{_HERE}.commoncrawl:common_crawl",
            f"{_HERE}.write:write_common_crawl",
        ),
        Format(
            "kleinberg", "Kleinberg's 'n ID URL' and 'e FROM TO' lines", (), f"{_HERE}.kleinberg:kleinberg"
        ),
        Format(
            "parquet",
            "Parquet: a row an arc",
            (".parquet",),
            f"{_HERE}.tables:parquet",
            f"{_HERE}.write:write_parquet",
        ),
        Format(
            "sqlite",
            "SQLite: a table with a row an arc",
            (".sqlite", ".sqlite3", ".db"),
            f"{_HERE}.tables:sqlite",
            f"{_HERE}.write:write_sqlite",
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
        Format("gml", "GML", (".gml",), f"{_HERE}.markup:gml"),
    )
}


def format_named(name: str) -> Format:
    """A format by its name.

    Raises
    ------
    inlink.errors.ParameterError
        If there is none of that name.
    """
    if name not in FORMATS:
        raise ParameterError(f"no format is called {name!r}: choose from {', '.join(FORMATS)}")
    return FORMATS[name]


def implementation(where: str) -> Callable[..., Any]:
    """The function that ``module:function`` names."""
    module, _, function = where.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found


def read_source(path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Source:
    """Open any file that holds a graph.

    Parameters
    ----------
    path : path-like
        A file or folder, or whatever else the format takes (a common beginning, a pattern).
    format : str or None
        A name in :data:`FORMATS`; None looks.
    **options
        Of the format's reader; None means not given.

    Raises
    ------
    inlink.errors.FormatError
        If the format is not known or cannot be read here.
    inlink.errors.ParameterError
        If the format has no such option.
    inlink.errors.InputError
        What the reader finds wrong.
    """
    entry = format_named(format or recognise(path))
    if entry.reader is None:
        raise FormatError(f"{path} is {entry.description}: open it with inlink.Graph.open")
    reader = implementation(entry.reader)
    given = {key: value for key, value in options.items() if value is not None}
    known = inspect.signature(reader).parameters
    for key in given:
        if key not in known:
            raise ParameterError(f"{path} is {entry.name}, and reading that takes no {key}")
    source: Source = reader(path, **given)
    return source


def recognise(path: str | os.PathLike[str]) -> str:
    """The name in :data:`FORMATS` of the format that a path is in.

    Raises
    ------
    inlink.errors.InputError
        If nothing is there.
    inlink.errors.FormatError
        If it is in none of the known formats, or in one that holds no links, such as WET.
    """
    path = Path(path)
    if path.is_dir():
        return _recognise_folder(path)
    from inlink.sources.bvgraph import is_bvgraph

    if is_bvgraph(path) and (path.suffix in (".graph", ".properties", ".offsets") or not path.exists()):
        return "bvgraph"
    from inlink.sources.commoncrawl import find_parts

    if all(find_parts(path)):
        return "commoncrawl"
    if not path.exists():
        if path.suffix == ".graph" or path.with_name(f"{path.name}.graph").exists():
            raise InputError(f"{path}: a BVGraph is a .graph and a .properties file, and one is missing")
        raise InputError(f"{path} does not exist")
    return _recognise_content(path)


def _recognise_folder(path: Path) -> str:
    from inlink.base.folder import Folder
    from inlink.graph.graph import FORMAT, KIND
    from inlink.sources.commoncrawl import find_parts
    from inlink.sources.crawl import CRAWL, CRAWL_VERSION, is_crawl

    if (path / "header.json").exists():
        kind, version = (CRAWL, CRAWL_VERSION) if is_crawl(path) else (KIND, FORMAT)
        try:
            Folder(path, kind, version)
        except FolderError as error:
            raise FormatError(f"{error}") from None
        return kind
    if all(find_parts(path)):
        return "commoncrawl"
    if any(path.glob("*.parquet")):
        return "parquet"
    raise FormatError(
        f"{path} is a folder, but none of inlink's, without Common Crawl's vertices and edges, without .parquet files: "
        "name the file"
    )


def _recognise_content(path: Path) -> str:
    from inlink.sources.opening import head

    start = head(path, 1 << 16)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, name in ((b"SQLite format 3\0", "sqlite"), (b"PAR1", "parquet"), (b"PK\x03\x04", "npz")):
        if start.startswith(magic):
            return name
    if start.startswith((b"WARC/", b"filedesc://")):
        return _recognise_archive(path)
    if text.startswith(b"# inlink: "):
        return "edgelist"
    if text.lower().startswith(b"%%matrixmarket"):
        return "matrixmarket"
    if text.startswith(b"<"):
        return _recognise_xml(path, text)
    lines = [line for line in text.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")]
    if len(start) == 1 << 16 and len(lines) > 1:
        lines.pop()  # cut
    if not lines:
        if start.strip():
            return "edgelist"  # nothing but comments
        raise FormatError(f"{path} is empty: {_NAMES}")
    if _GML.match(text):
        return "gml"
    if all(line.split(b" ")[0] in (b"n", b"e") and len(line.split()) > 2 for line in lines[:50]):
        return "kleinberg"
    if b"\0" not in lines[0] and any(_cuts(line) for line in lines[:50]):
        return "edgelist"
    raise FormatError(
        f"{path}: in no known format (looked for archives, SQLite, Parquet, matrices, GraphML, GEXF, GML, Kleinberg's, "
        f"lines of two fields): {_NAMES}"
    )


# before "graph [" only comments and simple keys, such as Creator "yFiles"
_GML = re.compile(
    rb'(?:\s*+(?:#[^\n]*+\n|(?!graph)[A-Za-z]\w*+[ \t]++(?:"[^"]*+"|[\d.]++)))*+\s*+graph\s*+\['
)
_NAMES = f"name one with --format ({', '.join(name for name in FORMATS if name not in ('graph', 'crawl'))})"


def _cuts(line: bytes) -> bool:
    return any(separator in line.strip(b"\r") for separator in (b"\t", b",", b";")) or len(line.split()) > 1


def _recognise_archive(path: Path) -> str:
    """WARC, WAT or WET: all are WARC files, told apart by what their records hold."""
    from inlink.sources.archives import archive_kind

    kind = archive_kind(path) or "warc"
    if kind == "wet":
        raise FormatError(
            f"{path} is a WET file, which holds text without links: take the WARC or the WAT file"
        )
    return kind


def _recognise_xml(path: Path, text: bytes) -> str:
    for name, tag in (("graphml", b"<graphml"), ("gexf", b"<gexf")):
        if tag in text[: 1 << 14].lower():
            return name
    raise FormatError(f"{path} is XML or HTML, but neither GraphML nor GEXF: {_NAMES}")
