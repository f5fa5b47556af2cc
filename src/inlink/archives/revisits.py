"""Revisit records of WARC archives, which stand for a payload that an earlier record has.

WARC 1.1, section 6.7 (https://iipc.github.io/warc-specifications/). The earlier record is looked up by its payload
digest, because old archives name neither its URL nor its date.
"""

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Self

from inlink.archives.records import Record, records_at
from inlink.archives.warc import parse_http
from inlink.base.damage import Tally
from inlink.errors import OutputError

UNKNOWN_CONTENT = "revisit record whose content is not in the archive before it"


class Contents:
    """Values by payload digest, in a temporary database: 2 MB of memory, and about 100 bytes of disk for a digest."""

    def __init__(self) -> None:
        import sqlite3

        self._errors = sqlite3.Error
        # SQLite removes the file of a database without a name when it is closed, and after a kill too.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._database.close)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE contents (digest BLOB PRIMARY KEY, value) WITHOUT ROWID")
        # A transaction that never ends takes a third of the time of one for each row.
        self._database.execute("BEGIN")

    def add(self, digest: bytes, value: str) -> None:
        """Keep the value of a digest, unless it has a value.

        Raises
        ------
        inlink.errors.OutputError
            If the temporary folder is full.
        """
        try:
            self._database.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (_plain(digest), value))
        except self._errors as error:
            raise OutputError(
                f"no space for temporary files ({error}): set TMPDIR to a larger folder"
            ) from None

    def get(self, digest: bytes) -> str | None:
        """Return the value of a digest, or None."""
        row = self._database.execute(
            "SELECT value FROM contents WHERE digest = ?", (_plain(digest),)
        ).fetchone()
        return None if row is None else row[0]


def _plain(digest: bytes) -> bytes:
    """Return a digest without the name of its algorithm, which Common Crawl's indexes leave out."""
    return digest.removeprefix(b"sha1:")


class Originals:
    """The responses of archives, to be read again when revisit records refer to them.

    Parameters
    ----------
    opening : callable
        Returns a context with the archive of a name as a stream. None, or a stream that cannot seek: it cannot be read
        again.
    """

    def __init__(self, opening: Callable[[str], AbstractContextManager[Any]]) -> None:
        self._opening = opening
        self._contents: Contents | None = None

    @classmethod
    def of_stream(cls, stream: Any) -> Self:
        """The responses of a stream that is at its beginning."""
        usable = getattr(stream, "seekable", bool)() and stream.tell() == 0
        return cls(lambda _: nullcontext(stream if usable else None))

    def add(self, digest: bytes, offset: int, name: str) -> None:
        """Remember the place of a response: the byte offset in the archive of a name."""
        if digest:
            self._contents = self._contents or Contents()
            self._contents.add(digest, f"{offset} {name}")

    def response(self, revisit: Record) -> Record | None:
        """Return a revisit record as a response, with the payload of the record that it refers to."""
        place = self._contents.get(revisit.digest) if self._contents else None
        if place is None:
            return None
        offset, _, name = place.partition(" ")
        with self._opening(name) as stream:
            if stream is None or not stream.seekable():
                return None
            here = stream.tell()
            original = next(records_at(stream, [int(offset)], Tally(), name), None)
            stream.seek(here)
        if original is None or original.digest != revisit.digest:
            return None
        own, http = parse_http(revisit.body), parse_http(original.body)
        body = original.body
        # A status of 304 is an answer to the archiver, and says nothing of the page.
        if http is not None and own is not None and own.status != b"304":
            body = revisit.body.rstrip(b"\r\n") + b"\r\n\r\n" + http.body
        return replace(revisit, kind="response", content_type=original.content_type, body=body)
