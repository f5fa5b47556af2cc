"""Archives by path: the door from a file to :mod:`inlink.archives`, which reads streams."""

import os
from collections.abc import Iterator
from typing import Any

from inlink.archives.batches import ArchiveKind, archive_batches, archive_kind
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
    tally: Tally | None = None,
    **options: Any,
) -> Source:
    """Return an archive as a source of a graph. The file is opened when the first batch is asked for.

    Parameters
    ----------
    path : path-like
        A WARC, ARC or WAT file, gzipped or not.
    level : {"page", "host", "domain"} or None
        The kind of the nodes; None means pages.
    tally : Tally or None
        Counts the records that were read and those that were skipped.
    **options
        As in :func:`inlink.archives.batches.archive_batches`, which also says what is raised. A damaged archive in
        which no record can be read raises a DamageError.
    """
    level = level or "page"
    tally = Tally() if tally is None else tally

    def batches() -> Iterator[ArcBatch]:
        before, damaged = tally.records, tally.damaged
        with open_binary(path) as file:
            yield from archive_batches(
                file, name=os.fspath(path), size=size_of(file), level=level, tally=tally, **options
            )
        if tally.records == before and tally.damaged > damaged:
            skipped = [entry for entry in tally.skipped.items() if entry[1].path == os.fspath(path)]
            place = "".join(f" ({reason}, at byte {entry.offset:,})" for reason, entry in skipped[:1])
            raise DamageError(f"{os.fspath(path)}: no record can be read{place}: fetch the file again")

    return Source(batches(), level=level)
