"""Archives by path: the door from a file to :mod:`inlink.archives`, which reads streams."""

import os
from collections.abc import Iterator
from typing import Literal

from inlink.archives.batches import ArchiveKind, archive_batches, archive_kind
from inlink.archives.html import LinkSet
from inlink.base.damage import Tally
from inlink.base.opening import open_binary, size_of
from inlink.errors import DamageError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.source import Source

__all__ = ["archive_source", "kind_of"]


def kind_of(path: str | os.PathLike[str]) -> ArchiveKind | None:
    """Return the kind of an archive; None for other files. See :func:`inlink.archives.batches.archive_kind`.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    """
    with open_binary(path) as file:
        return archive_kind(file, name=os.fspath(path))


def archive_source(
    path: str | os.PathLike[str],
    *,
    level: Level | None = None,
    links: LinkSet | None = None,
    nofollow: bool = True,
    self_links: bool = False,
    strip_www: bool = False,
    private_suffixes: bool = False,
    self_loops: bool = False,
    like: Literal["commoncrawl"] | None = None,
    any_status: bool | None = None,
    location: bool | None = None,
    exact_schemes: bool | None = None,
    repeats: bool = True,
    tally: Tally | None = None,
) -> Source:
    """Return an archive as a source of a graph. The file is opened when the first batch is asked for.

    Parameters
    ----------
    path : path-like
        A WARC, ARC or WAT file, gzipped or not.
    level : {"page", "host", "domain"} or None
        The kind of the nodes; None means pages.
    links, nofollow, self_links, strip_www, private_suffixes, self_loops, like, any_status, location, exact_schemes,
    repeats, tally
        As in :func:`inlink.archives.batches.archive_batches`, which also says what is raised. A damaged archive in
        which no record can be read raises a DamageError.
    """
    level = level or "page"
    tally = Tally() if tally is None else tally

    def batches() -> Iterator[ArcBatch]:
        before, damaged = tally.records, tally.damaged
        with open_binary(path) as file:
            yield from archive_batches(
                file,
                name=os.fspath(path),
                size=size_of(file),
                level=level,
                links=links,
                nofollow=nofollow,
                self_links=self_links,
                strip_www=strip_www,
                private_suffixes=private_suffixes,
                self_loops=self_loops,
                like=like,
                any_status=any_status,
                location=location,
                exact_schemes=exact_schemes,
                repeats=repeats,
                tally=tally,
            )
        if tally.records == before and tally.damaged > damaged:
            skipped = [entry for entry in tally.skipped.items() if entry[1].path == os.fspath(path)]
            place = "".join(f" ({reason}, at byte {entry.offset:,})" for reason, entry in skipped[:1])
            raise DamageError(f"{os.fspath(path)}: no record can be read{place}: fetch the file again")

    return Source(batches(), level=level)
