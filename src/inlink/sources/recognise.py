"""Recognise the format of a file by its content.

The name counts only if contents look alike, such as the separator of a CSV file.
"""

import contextlib
import json
import os
import re
from pathlib import Path

from inlink.base.opening import STDIN
from inlink.base.remote import is_remote
from inlink.errors import DamageError, FolderError, FormatError, InputError
from inlink.sources.formats import ARCHIVES, FORMATS


def recognise(path: str | os.PathLike[str]) -> str:
    """Return the name of a path's format in :data:`inlink.sources.formats.FORMATS`.

    Raises
    ------
    inlink.errors.InputError
        If the path does not exist.
    inlink.errors.FormatError
        If the format is not known, or holds no links (WET).
    """
    if is_remote(path):
        # A release has 90,000 archives, which are recognised by their names.
        return _archive_by_name(path) or _recognise_content(str(path))
    path = Path(path)
    if os.fspath(path) == STDIN:
        return _recognise_content(path)
    if path.is_dir():
        return _recognise_folder(path)
    from inlink.sources.bvgraph import is_bvgraph, refuse_half

    if is_bvgraph(path) and (path.suffix in (".graph", ".properties", ".offsets") or not path.exists()):
        return "bvgraph"
    from inlink.sources.inputs import find_parts
    from inlink.sources.releases import is_release

    if is_release(path) or all(find_parts(path)):
        return "commoncrawl"
    if path.suffix == ".properties" or not path.exists():
        refuse_half(path)
    if not path.exists():
        raise InputError(f"{path} does not exist")
    return _recognise_content(path)


def _archive_by_name(path: str | os.PathLike[str]) -> str | None:
    """Return the format of archives whose files have such a name, or None."""
    name = os.fspath(path).partition("?")[0].lower()
    return next((format for format in ARCHIVES if name.endswith(FORMATS[format].extensions)), None)


def _recognise_folder(path: Path) -> str:
    from inlink.graph.graph import KIND, graph_folder
    from inlink.sources.inputs import find_parts
    from inlink.store.log import KIND as CRAWL
    from inlink.store.reader import crawl_folder, is_crawl

    if (path / "header.json").exists():
        try:
            if is_crawl(path):
                crawl_folder(path)
                return CRAWL
            graph_folder(path)
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


def _recognise_content(path: Path | str) -> str:
    from inlink.base.opening import head

    try:
        start = head(path, 1 << 16)
    except DamageError:
        from inlink.sources.archive import kind_of

        # The records of an archive can be read up to the damage.
        if kind_of(path) is not None:
            return _recognise_archive(path)
        # The damage may be in the first record.
        if format := _archive_by_name(path):
            return format
        raise
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, name in ((b"SQLite format 3\0", "sqlite"), (b"PAR1", "parquet")):
        if start.startswith(magic):
            return name
    if start.startswith(b"PK\x03\x04"):
        return _recognise_zip(path, start)
    if start.startswith((b"WARC/", b"filedesc://")):
        return _recognise_archive(path)
    if text.startswith(b"# inlink: "):
        return "edgelist"
    if _CDXJ.match(text):
        return "cdxj"
    if text.lower().startswith(b"%%matrixmarket"):
        return "matrixmarket"
    if text.startswith(b"<"):
        return _recognise_xml(path, text)
    _refuse_other_texts(path, text)
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
    if _is_text(lines[:50]) and any(_cuts(line) for line in lines[:50]):
        return "edgelist"
    if Path(path).suffix == ".graph":
        from inlink.sources.bvgraph import refuse_half

        refuse_half(Path(path))
    raise FormatError(
        f"{path}: format not recognised (looked for archives, SQLite, Parquet, matrices, GraphML, GEXF, GML, "
        f"Kleinberg's, lines of two fields). {_NAMES}"
    )


# The key is made of a URL.
_CDXJ = re.compile(rb"[^ \n]+ [0-9]{14} \{")
# Before "graph [" there may only be comments and simple keys, such as Creator "yFiles".
_GML = re.compile(
    rb'(?:\s*+(?:#[^\n]*+\n|(?!graph)[A-Za-z]\w*+[ \t]++(?:"[^"]*+"|[\d.]++)))*+\s*+graph\s*+\['
)
_READABLE = [name for name, entry in FORMATS.items() if entry.reader and name not in ("graph", "crawl")]
_NAMES = f"Name the format with --format ({', '.join(_READABLE)})."


# Lines of text have none of these bytes, except in names that are any bytes.
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f")) + b"\x7f"


def _is_text(lines: list[bytes]) -> bool:
    """Return whether bytes are lines of text: at most one byte in a hundred is a control character."""
    if b"\0" in lines[0]:
        return False
    controls = sum(len(line) - len(line.translate(None, _CONTROLS)) for line in lines)
    return lines[0].startswith(b"source,target") or 100 * controls <= sum(map(len, lines))


def _refuse_other_texts(path: Path | str, text: bytes) -> None:
    """Refuse texts that could be mistaken for an edge list: JSON, and files with the names of archives."""
    if text[:1] in (b"{", b"["):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(text)
            raise FormatError(f"{path} is JSON, not a graph that can be read: is it an error that was saved?")
    if name := _archive_by_name(path):
        raise FormatError(
            f"{path} is named as {name} and is no archive; it begins with {text[:40].decode('latin-1')!r}. "
            "Name the format with --format if it is another."
        )


def _cuts(line: bytes) -> bool:
    return any(separator in line.strip(b"\r") for separator in (b"\t", b",", b";")) or len(line.split()) > 1


def _recognise_archive(path: Path | str) -> str:
    """Return the kind of an archive by its records, because WARC, WAT and WET are all WARC files."""
    from inlink.sources.archive import kind_of

    kind = kind_of(path) or "warc"
    if kind == "wet":
        raise FormatError(
            f"{path}: WET archives hold text without links. Use the WARC or WAT archive of the same name."
        )
    return kind


def _recognise_zip(path: Path | str, start: bytes) -> str:
    from inlink.sources.archive import is_wacz

    """Recognise SciPy's matrices by the name of the first file in the zip archive, and WACZ by its WARC files."""
    name = start[30 : 30 + int.from_bytes(start[26:28], "little")]
    if name.endswith(b".npy"):
        return "npz"
    # A stream cannot be read from its end, where the names are.
    if isinstance(path, str) or os.fspath(path) == STDIN or is_wacz(path):
        return "warc"
    raise FormatError(f"{path} is a zip archive, which cannot be read: unpack it first.")


def _recognise_xml(path: Path | str, text: bytes) -> str:
    for name, tag in (("graphml", b"<graphml"), ("gexf", b"<gexf")):
        if tag in text[: 1 << 14].lower():
            return name
    raise FormatError(f"{path} is XML or HTML, but neither GraphML nor GEXF. {_NAMES}")
