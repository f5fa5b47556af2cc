"""Recognise which format a file is in.

The content decides. The name decides only where contents look alike, such as the separator of a CSV file.
"""

import os
import re
from pathlib import Path

from inlink.errors import FolderError, FormatError, InputError
from inlink.sources.formats import FORMATS

__all__ = ["recognise"]


def recognise(path: str | os.PathLike[str]) -> str:
    """Return the name, in :data:`inlink.sources.formats.FORMATS`, of the format that a path is in.

    Raises
    ------
    inlink.errors.InputError
        If the path does not exist.
    inlink.errors.FormatError
        If the format is not known, or holds no links (WET).
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
            raise InputError(
                f"{path}: a BVGraph is a .graph and a .properties file, and one of them is missing"
            )
        raise InputError(f"{path} does not exist")
    return _recognise_content(path)


def _recognise_folder(path: Path) -> str:
    from inlink.base.folder import Folder
    from inlink.graph.graph import FORMAT, KIND
    from inlink.sources.commoncrawl import find_parts
    from inlink.store.reader import KIND as CRAWL
    from inlink.store.reader import crawl_folder, is_crawl

    if (path / "header.json").exists():
        try:
            if is_crawl(path):
                crawl_folder(path)
                return CRAWL
            Folder(path, KIND, FORMAT)
        except FolderError as error:
            raise FormatError(f"{error}") from None
        return KIND
    if all(find_parts(path)):
        return "commoncrawl"
    if any(path.glob("*.parquet")):
        return "parquet"
    raise FormatError(
        f"{path}: this folder was not made by inlink, and holds neither Common Crawl's vertices and edges nor .parquet "
        "files. Name a file instead."
    )


def _recognise_content(path: Path) -> str:
    from inlink.base.opening import head

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
        # The last line may be cut.
        lines.pop()
    if not lines:
        # A file of nothing but comments is an edge list without arcs.
        if start.strip():
            return "edgelist"
        raise FormatError(f"{path} is empty. {_NAMES}")
    if _GML.match(text):
        return "gml"
    if all(line.split(b" ")[0] in (b"n", b"e") and len(line.split()) > 2 for line in lines[:50]):
        return "kleinberg"
    if b"\0" not in lines[0] and any(_cuts(line) for line in lines[:50]):
        return "edgelist"
    raise FormatError(
        f"{path}: format not recognised (looked for archives, SQLite, Parquet, matrices, GraphML, GEXF, GML, "
        f"Kleinberg's, lines of two fields). {_NAMES}"
    )


# Before "graph [" there may only be comments and simple keys, such as Creator "yFiles".
_GML = re.compile(
    rb'(?:\s*+(?:#[^\n]*+\n|(?!graph)[A-Za-z]\w*+[ \t]++(?:"[^"]*+"|[\d.]++)))*+\s*+graph\s*+\['
)
_NAMES = f"Name the format with --format ({', '.join(name for name in FORMATS if name not in ('graph', 'crawl'))})."


def _cuts(line: bytes) -> bool:
    return any(separator in line.strip(b"\r") for separator in (b"\t", b",", b";")) or len(line.split()) > 1


def _recognise_archive(path: Path) -> str:
    """Tell WARC, WAT and WET apart by their records: all three are WARC files."""
    from inlink.sources.archive import kind_of

    kind = kind_of(path) or "warc"
    if kind == "wet":
        raise FormatError(
            f"{path}: WET archives hold text without links. Use the WARC or WAT archive of the same name."
        )
    return kind


def _recognise_xml(path: Path, text: bytes) -> str:
    for name, tag in (("graphml", b"<graphml"), ("gexf", b"<gexf")):
        if tag in text[: 1 << 14].lower():
            return name
    raise FormatError(f"{path} is XML or HTML, but neither GraphML nor GEXF. {_NAMES}")
