"""The names of sources: files, URLs, patterns, and lists of paths."""

import glob
import os
import re
from collections.abc import Iterable
from pathlib import Path

from inlink.base.opening import Stream, lines
from inlink.base.remote import is_remote
from inlink.errors import InputError, ParameterError

Location = Path | str
"""A file or folder on this machine, or the URL of a file."""


def expand(sources: Iterable[str | os.PathLike[str]], base: str | None = None) -> list[Location]:
    """Return the files that sources name.

    Parameters
    ----------
    sources : iterable of path-like
        Files, folders, URLs, patterns such as ``"*.wat.gz"``, or lists of paths: ``@FILE``. A list may be packed, and
        may be a URL. A line of a list is a path or URL, or a key, a tab, and a path or URL.
    base : str or None
        A folder or URL that is put before the relative paths of lists.

    Raises
    ------
    inlink.errors.InputError
        If a list cannot be read, is empty, or has a line that is no path or whose file does not exist.
    inlink.errors.ParameterError
        If a source is no path, or `base` is given and no source is a list.
    """
    files: list[Location] = []
    lists = 0
    for source in sources:
        if not isinstance(source, str | os.PathLike):
            raise ParameterError(
                f"a list of sources must hold paths; got {type(source).__name__}. inlink.Graph.from_arcs takes arcs."
            )
        text = os.fspath(source)
        if text.startswith("@"):
            lists += 1
            files += _listed(text[1:], base)
        elif is_remote(source):
            files.append(text)
        else:
            files += _matching(text)
    if base is not None and not lists:
        raise ParameterError("`base` applies only to lists of paths (@FILE): leave it out")
    return files


def _matching(text: str) -> list[Location]:
    """Return the files that a pattern matches, in order. Common Crawl's own patterns stay as they are."""
    path = Path(text)
    if re.search(r"[*?\[]", text) and not path.exists() and not all(find_parts(path)):
        return [Path(name) for name in sorted(glob.glob(text, recursive=True))] or [path]
    return [path]


def find_parts(path: str | os.PathLike[str]) -> tuple[list[Path], list[Path]]:
    """Return the files of vertices and of edges of a graph in Common Crawl's form. Either list may be empty."""
    path = Path(path)
    if path.is_dir():
        candidates = [file for pattern in ("*", "*/*") for file in path.glob(pattern)]
    elif "vertices" in path.name or "edges" in path.name or path.is_file():
        if not path.exists():
            return [], []
        turned = path.name.replace("edges", "\0").replace("vertices", "edges").replace("\0", "vertices")
        candidates = [path, path.with_name(turned)] if turned != path.name else []
    else:
        pattern = str(path) if re.search(r"[*?\[]", str(path)) else f"{glob.escape(str(path))}[-_.]*"
        candidates = [Path(name) for name in glob.glob(pattern)]
    files = [file for file in candidates if file.is_file() and re.search(r"\.(txt|tsv|gz|zst)$", file.name)]
    sides = []
    for side in ("vertices", "edges"):
        # The name of the folder counts only for parts: host/vertices/part-00000.gz
        named = [file for file in files if side in file.name or file.parent.name == side]
        sides.append(sorted((f for f in named if ".paths" not in f.name), key=_natural))
    return sides[0], sides[1]


def _natural(path: Path) -> list[tuple[int, str]]:
    """Return a sort key that puts part-9 before part-10."""
    return [(int(piece), "") if piece.isdecimal() else (0, piece) for piece in re.split(r"(\d+)", str(path))]


def _listed(name: str, base: str | None) -> list[Location]:
    """Return the files that a list names."""
    files: list[Location] = []
    with Stream(name) as stream:
        for number, line in lines(stream):
            place = f"{name}, line {number:,}"
            key, tab, rest = line.partition(b"\t")
            raw = rest if tab else key
            if not line.strip():
                continue
            try:
                path = raw.decode()
            except UnicodeDecodeError:
                path = ""
            if not path.strip() or "\t" in path or not path.isprintable():
                raise InputError(f"{place}: expected a path, or a key, a tab and a path; got {line[:80]!r}")
            files.append(_located(path, base, place))
    if not files:
        raise InputError(f"{name} is a list without paths: each line must have one")
    return files


def _located(path: str, base: str | None, place: str) -> Location:
    if base is not None and not is_remote(path) and not path.startswith("/"):
        path = f"{base.rstrip('/')}/{path}"
    if is_remote(path):
        return path
    if not Path(path).exists():
        hint = "" if base is not None else ". If paths are relative to another place, name it with --base"
        raise InputError(f"{place}: {path} does not exist{hint}")
    return Path(path)
