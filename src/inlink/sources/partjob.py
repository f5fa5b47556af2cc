"""Make the part of one archive: the work of one process, or of one task of a cluster."""

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from inlink.base.damage import Skipped, Tally
from inlink.base.disk import unwritable
from inlink.base.remote import is_remote
from inlink.base.unfinished import unfinished_folder
from inlink.errors import InputError
from inlink.graph.batches import ArcBatch, Level
from inlink.graph.collect import write_part
from inlink.graph.part import PartFile
from inlink.sources.files import read_source
from inlink.sources.inputs import Location

__all__ = ["PartJob", "SourceEntry", "make_part", "stamp"]


class SourceEntry(msgspec.Struct):
    """Description of a source file, stored in its part.

    Attributes
    ----------
    name : str
        The file, as it was named.
    time : int
        1 for the first time that this name was given, 2 for the second, …
    stamp : list of int and str
        The version of the file: size and time, or size and ETag.
    records, pages, links, skipped
        As in :class:`inlink.base.damage.Tally`.
    """

    name: str
    time: int
    stamp: list[int | str]
    records: int
    pages: int
    links: int
    skipped: dict[str, Skipped]

    def tally(self, strict: bool) -> Tally:
        """The counts of the file."""
        return Tally(strict, self.records, self.pages, self.links, self.skipped)


class PartJob(msgspec.Struct):
    """A part to be made.

    Attributes
    ----------
    place : int
        The place of the file among all.
    name : str
        The file, or its URL.
    format : str
        Its format.
    level, options, strict
        As in :func:`inlink.sources.files.read_source`.
    archive_loops : bool
        Keep the links within a host or domain.
    self_loops : bool
        Keep the arcs from a node to itself.
    count : bool
        Keep the number of times that each arc occurs in the file.
    time : int
        As in :class:`Entry`.
    part : str
        The file to write.
    """

    place: int
    name: str
    format: str
    level: Level | None
    options: dict[str, Any]
    strict: bool
    archive_loops: bool
    self_loops: bool
    count: bool
    time: int = 1
    part: str = ""


def stamp(path: Location) -> list[int | str]:
    """Return the stamp of a file, which differs between its versions: size and time, or size and ETag.

    Raises
    ------
    inlink.errors.InputError
        If the file is not there, or the server does not answer.
    """
    if is_remote(path):
        from inlink.base.urlfiles import stamp_of

        return list(stamp_of(str(path)))
    try:
        status = Path(path).stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    return [status.st_size, str(status.st_mtime_ns)]


def make_part(job: PartJob) -> PartFile:
    """Read an archive, and write its part. An existing part is replaced.

    Raises
    ------
    inlink.errors.InputError
        If the archive cannot be read, or changes while it is read.
    inlink.errors.OutputError
        If the part cannot be written.
    """
    path: Location = job.name if is_remote(job.name) else Path(job.name)
    before = stamp(path)
    tally = Tally(job.strict)
    source = read_source(
        path,
        job.format,
        level=job.level,
        tally=tally,
        self_loops=job.archive_loops,
        repeats=job.count,
        options=job.options,
    )
    meta: dict[str, Any] = {"level": source.level}

    def batches() -> Iterator[ArcBatch]:
        yield from source.batches
        if not is_remote(path) and stamp(path) != before:
            raise InputError(f"{path} was changed while it was read: read it again")
        entry = SourceEntry(
            job.name, job.time, before, tally.records, tally.pages, tally.links, tally.skipped
        )
        meta["inputs"] = [msgspec.to_builtins(entry)]

    try:
        with unfinished_folder(Path(job.part)) as scratch:
            return write_part(
                job.part,
                replace(source, batches=batches()),
                scratch,
                keep=job.count,
                self_loops=job.self_loops,
                meta=meta,
            )
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise unwritable(Path(job.part), error) from None
        raise InputError(
            f"{error.filename or job.name}: cannot be read ({error.strerror or error})"
        ) from None
