"""Common Crawl's releases of web graphs by name, such as ``cc-main-2026-apr-may-jun/domain``."""

import os
import re
from pathlib import Path

from inlink.base.remote import is_remote, restored
from inlink.sources.inputs import Location, expand

DATA = "https://data.commoncrawl.org/"
"""Address of Common Crawl's files."""

MOST_RANKS = 1_000_000
"""The number of ranks that are read of a release or a URL. Files on this machine are read to their end."""

# Releases have two or three months, and two years if they span the end of one.
_RELEASE = re.compile(r"(cc-main-\d{4}(?:-\d\d)?(?:-[a-z]{3}){2,3})(?:[/-](host|domain))?/?")


def rank_file(source: str | os.PathLike[str]) -> Location:
    """Return the file or URL of a list of ranks.

    Parameters
    ----------
    source : path-like
        A file or folder, which stays as it is; a URL; or the name of one of Common Crawl's releases, with ``/host`` or
        ``/domain`` behind it. Without it, hosts are meant. A file or folder of that name comes first.

    Examples
    --------
    >>> rank_file("cc-main-2026-apr-may-jun/domain").rpartition("/")[2]
    'cc-main-2026-apr-may-jun-domain-ranks.txt.gz'
    >>> rank_file("ranks.txt.gz")
    PosixPath('ranks.txt.gz')
    """
    text = os.fspath(source)
    if is_remote(text):
        return restored(text)
    return f"{_start(text)}-ranks.txt.gz" if is_release(text) else Path(text)


def is_release(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is the name of a release. A file or folder of that name comes first."""
    return _RELEASE.fullmatch(os.fspath(source)) is not None and not Path(source).exists()


def graph_files(release: str | os.PathLike[str]) -> tuple[list[Location], list[Location]]:
    """Return the URLs of the files of vertices and of edges of a release's graph.

    The URLs for hosts are in lists of paths on the server, which are read here.

    Raises
    ------
    inlink.errors.InputError
        If the server does not answer, or has no such release.
    """
    start = _start(os.fspath(release))
    if start.endswith("-domain"):
        return [f"{start}-vertices.txt.gz"], [f"{start}-edges.txt.gz"]
    return expand([f"@{start}-vertices.paths.gz"], DATA), expand([f"@{start}-edges.paths.gz"], DATA)


def _start(release: str) -> str:
    """Return the beginning of the URLs of a release's files."""
    named = _RELEASE.fullmatch(release)
    assert named is not None
    name, level = named[1], named[2] or "host"
    return f"{DATA}projects/hyperlinkgraph/{name}/{level}/{name}-{level}"
