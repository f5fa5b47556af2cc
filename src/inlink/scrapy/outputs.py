"""The files that ``inlink crawl`` writes beside the crawl: lines, a WARC, and the tables of a wiki.

**A file of records.** Each run appends complete records. The next run removes an incomplete record.

**A WARC** has each response and its request, as they went over the wire. The format is WARC 1.1 (ISO 28500:2017), with
a gzip member for each record. The record of a response is followed by the record of its request. Both are written at
once, before the crawl's own log takes the page in. So after a crash a page may be in the file twice, but no page is
missing. A record that was cut is removed when the file is opened again.

Bodies are as the server sent them, with their content encoding. Two things differ, because Twisted does not tell them:
chunks are joined (and ``Transfer-Encoding`` is dropped), and header fields have Scrapy's order and spelling.
``Content-Length`` is that of the body.

The file has everything that the crawl downloads: redirects, errors and robots.txt too. Downloads that were aborted
(too large, too slow) are missing. An oversized robots.txt is marked with ``WARC-Truncated``.

A body that an earlier response of the file has, or one of an earlier crawl's archives, is not written again: its record
is a ``revisit`` that names the earlier record. The index of the file is made from its records: at each start those of
earlier runs are read anyway, so an index that a crash left behind is never used.

**A wiki's pages and links in SQLite** are two tables. ``WikiLinks(link, title, crawled)`` has a row for each known
article, and ``WikiGraph(fromLink, toLink)`` a row for each link between two articles, repeats included. Both contain
canonical URLs. The preset for Wikipedia is based on the crawler that introduced these tables (C. Carter, "Random
Walkers and Web Crawlers", 2019). The rows of a page are written in one transaction, before the crawl's own log takes
the page in. So every page that the log knows as crawled is in the tables, and writing it twice after a crash changes
nothing.
"""

import base64
import fcntl
import hashlib
import io
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import BinaryIO, Self, cast
from urllib.parse import urlsplit

from isal import isal_zlib
from scrapy import Request
from scrapy.http import Headers, Response
from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from inlink import __version__
from inlink.archives.cdxj import index_line, read_line
from inlink.archives.period import moment
from inlink.archives.records import FaultError, records, warc_header
from inlink.archives.revisits import Contents
from inlink.archives.warc import parse_http
from inlink.base.damage import Tally
from inlink.base.folder import atomic_file
from inlink.base.opening import Stream, lines
from inlink.base.progress import track
from inlink.errors import InputError, InUseError, OutputError
from inlink.sources.archive import archives_in
from inlink.sources.recognise import recognise


class Appended:
    """A regular file that this process alone appends to; a context manager.

    Parameters
    ----------
    path : path-like
        The file, made if it does not exist.
    whole : callable
        Called with the file, open for reading at its beginning. Returns the position after its last complete record;
        the rest is removed. Raises OutputError if the file is of another kind.

    Attributes
    ----------
    size : int
        Size of the file in bytes.

    Raises
    ------
    inlink.errors.OutputError
        If the file cannot be written, or is not a regular file.
    inlink.errors.InUseError
        If another process appends to it.
    """

    def __init__(self, path: str | os.PathLike[str], whole: Callable[[BinaryIO], int]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_file():
            raise OutputError(f"{self.path} is not a regular file: name another file")
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise OutputError(
                f"{self.path}: cannot be written ({error.strerror}): name another file"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with self.path.open("rb") as file:
                self.size = whole(file)
            os.ftruncate(self._file, self.size)
        except BlockingIOError:
            os.close(self._file)
            raise InUseError(f"{self.path} is being written by another process: name another file") from None
        except BaseException as error:
            os.close(self._file)
            if isinstance(error, OSError):
                raise OutputError(f"{self.path}: {error.strerror}: name another file") from None
            raise

    def append(self, record: bytes) -> None:
        """Append a record. When this returns, the operating system has the data.

        Raises
        ------
        inlink.errors.OutputError
            If the record cannot be written. Then no part of it is in the file.
        """
        done = 0
        try:
            while done < len(record):
                done += os.write(self._file, memoryview(record)[done:])
        except OSError as error:
            os.ftruncate(self._file, self.size)
            raise OutputError(
                f"{self.path}: cannot be written ({error.strerror}): free some space, and run the command again"
            ) from None
        self.size += done

    def close(self) -> None:
        """Sync the file to disk, and close it."""
        try:
            os.fsync(self._file)
        except OSError:
            # The operating system has all bytes.
            pass
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# The crawl waits while a page is written. Level 3 of isal takes a seventh of the time of zlib's level 6, and the files
# are a tenth larger.
_LEVEL = 3
_CHUNK = 1 << 16
# zlib's `wbits` for a gzip member with the largest window.
_GZIP = 31
# The stub declares the class as an instance.
_BadDeflateError = cast(type[Exception], isal_zlib.error)


# The bytes of a record that its index line is made from.
_START = 1 << 16
# The revisit record of a shorter body would be no smaller than the response.
_SHORTEST = 256


class WarcFile(Appended):
    """Appends to a WARC. A ``warcinfo`` record begins each run, and :meth:`close` writes the index.

    Parameters
    ----------
    path : path-like
        Its name ends with ``.warc.gz``. The index has the same name with ``.cdxj``.
    agent : str
        The crawl's User-Agent.
    seen : sequence of path-like
        Archives or indexes of earlier crawls, whose responses revisit records may refer to.

    Raises
    ------
    inlink.errors.OutputError
        If the file cannot be written, or is not a WARC with a gzip member for each record.
    inlink.errors.InUseError
        If another process appends to it.
    inlink.errors.InputError
        If an earlier archive or index cannot be read.
    """

    def __init__(
        self, path: str | os.PathLike[str], agent: str, seen: Sequence[str | os.PathLike[str]] = ()
    ) -> None:
        path = Path(path)
        if not path.name.endswith(".warc.gz"):
            raise OutputError(f"{path}: name a file that ends with .warc.gz")
        self.index = path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj")
        if self.index.is_dir():
            raise OutputError(
                f"{self.index}, where the index belongs, is a folder: name another .warc.gz file"
            )
        # The date and the URL of the first response with each content, in this file and in earlier ones.
        self._contents, self._seen = Contents(), Contents()
        for earlier in seen:
            for digest, date, url in _responses(earlier):
                # These texts become fields of records.
                if url.isprintable() and " " not in url:
                    self._seen.add(digest, f"{date} {url}")
        # SQLite sorts more lines than fit in memory.
        self._lines = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        # `close` is not called if the archive cannot be opened.
        weakref.finalize(self, self._lines.close)
        self._lines.execute("PRAGMA journal_mode = OFF")
        self._lines.execute("CREATE TABLE lines (line TEXT)")
        self._lines.execute("BEGIN")
        super().__init__(path, partial(_whole, path, self._note))
        self._block = io.BytesIO()
        # The beginning of each record in the block, its length, and that of its gzip member.
        self._added: list[tuple[bytes, int, int]] = []
        self._writer = WARCWriter(self._block, gzip=False, warc_version="1.1")
        info = {
            "software": f"inlink/{__version__}",
            "format": "WARC File Format 1.1",
            "http-header-user-agent": agent,
            "robots": "obey",
        }
        self._add(self._writer.create_warcinfo_record(path.name, info))
        try:
            self._flush()
        except BaseException:
            super().close()
            raise

    def write(self, request: Request, response: Response) -> None:
        """Append a response and its request.

        Raises
        ------
        inlink.errors.OutputError
            If they cannot be written. Then the file does not change.
        """
        head, body, earlier = _answer_head(response), response.body, None
        digest = base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest())
        headers = {"WARC-Payload-Digest": f"sha1:{digest.decode()}"}
        if response.ip_address:
            headers["WARC-IP-Address"] = str(response.ip_address)
        if "download_stopped" in response.flags:
            # robots.txt is too large.
            headers["WARC-Truncated"] = "length"
        elif response.status == HTTPStatus.OK and len(body) >= _SHORTEST:
            earlier = self._contents.get(digest) or self._seen.get(digest)
        if earlier is None:
            answer = self._record("response", request.url, head, body, headers)
        else:
            answer = self._record("revisit", request.url, head, b"", headers)
            date, _, url = earlier.partition(" ")
            answer.rec_headers.add_header("WARC-Profile", self._writer.REVISIT_PROFILE_1_1)
            answer.rec_headers.add_header("WARC-Refers-To-Target-URI", url)
            answer.rec_headers.add_header("WARC-Refers-To-Date", date)
        question = self._record("request", request.url, _request_head(request), request.body, {})
        for name in ("WARC-Date", "WARC-Record-ID"):
            value = answer.rec_headers.get_header(name)
            question.rec_headers.replace_header("WARC-Concurrent-To" if name.endswith("ID") else name, value)
        self._add(answer)
        self._add(question)
        self._flush()

    def close(self) -> None:
        """Write the index, and close the file.

        Raises
        ------
        inlink.errors.OutputError
            If the index cannot be written.
        """
        try:
            with atomic_file(self.index) as work, work.open("w", encoding="utf-8") as file:
                file.writelines(
                    f"{line}\n" for (line,) in self._lines.execute("SELECT line FROM lines ORDER BY line")
                )
        except (OSError, sqlite3.Error) as error:
            raise OutputError(
                f"{self.index}: cannot be written ({error}): free some space, and run the command again"
            ) from None
        finally:
            self._lines.close()
            super().close()

    def _record(
        self, kind: str, url: str, head: bytes, body: bytes, headers: dict[str, str]
    ) -> ArcWarcRecord:
        return self._writer.create_warc_record(
            url.partition("#")[0],
            kind,
            payload=io.BytesIO(body),
            length=len(body),
            warc_headers_dict=headers,
            http_headers=_RawHeaders(head),
        )

    def _add(self, record: ArcWarcRecord) -> None:
        at = self._block.tell()
        self._writer.write_record(record)
        raw = self._block.getvalue()[at:]
        self._block.seek(at)
        self._block.truncate()
        length = self._block.write(isal_zlib.compress(raw, _LEVEL, _GZIP))
        self._added.append((raw[:_START], len(raw), length))

    def _flush(self) -> None:
        block, added, offset = self._block.getvalue(), self._added, self.size
        self._block.seek(0)
        self._block.truncate()
        self._added = []
        self.append(block)
        for start, size, length in added:
            self._note(start, size, offset, length)
            offset += length

    def _note(self, start: bytes, size: int, offset: int, length: int) -> None:
        """Keep the index line of a record that begins with `start`, and the content of a response."""
        head, _, body = start.partition(b"\r\n\r\n")
        try:
            record, content = warc_header(head, offset)
            record.body = body
            line = index_line(record, length, self.path.name)
        except (FaultError, ValueError):
            raise OutputError(
                f"{self.path} holds data that are not WARC records, at byte {offset:,}: name another file"
            ) from None
        if size > len(head) + content + 8:
            raise OutputError(
                f"{self.path} has several records in the gzip member at byte {offset:,}: name another file"
            )
        if line is not None:
            try:
                self._lines.execute("INSERT INTO lines VALUES (?)", (line,))
            except sqlite3.Error as error:
                raise OutputError(
                    f"no space for temporary files ({error}): set TMPDIR to a larger folder"
                ) from None
        http = parse_http(body) if record.kind == "response" else None
        if http is not None and http.status == b"200":
            self._contents.add(
                record.digest, f"{record.date.decode()} {record.url.decode('utf-8', 'replace')}"
            )


def _responses(path: str | os.PathLike[str]) -> Iterator[tuple[bytes, str, str]]:
    """The payload digest, the date and the URL of each successful response in an archive or an index."""
    kind = recognise(path)
    if kind == "cdxj":
        with Stream(path, f"reading {Path(path).name}") as stream:
            for number, line in lines(stream):
                pair = read_line(line)
                if pair is None:
                    raise InputError(f"{path}, line {number:,}: not a line of CDXJ: index the archive again")
                time, entry = pair
                if entry.mime != "warc/revisit" and str(entry.status) == "200" and entry.digest and entry.url:
                    yield entry.digest.encode(), f"{time:%Y-%m-%dT%H:%M:%SZ}", entry.url
        return
    if kind != "warc":
        raise InputError(
            f"{path}: neither a WARC nor CDXJ: name the archive of an earlier crawl, or its index"
        )
    tally = Tally()
    for name, file, size, _ in archives_in(path, tally):
        for record in records(file, tally, name=name, size=size):
            http = parse_http(record.body) if record.kind == "response" and record.digest else None
            if http is not None and http.status == b"200":
                # A record without a valid date cannot be referred to.
                with suppress(ValueError):
                    _ = moment(record.date)
                    yield record.digest, record.date.decode("ascii"), record.url.decode("utf-8", "replace")


class _RawHeaders(StatusAndHeaders):  # type: ignore[misc]
    """An HTTP header that is written unchanged; warcio would percent-encode bytes beyond ASCII."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw.partition(b"\r\n")[0].decode("latin-1"), [])
        self.headers_buff = raw

    def compute_headers_buffer(self, header_filter: object = None) -> None:
        """Do nothing: the bytes are there."""


def _answer_head(response: Response) -> bytes:
    try:
        reason = f" {HTTPStatus(response.status).phrase}"
    except ValueError:
        reason = " "
    line = f"{response.protocol or 'HTTP/1.1'} {response.status}{reason}"
    headers = response.headers.copy()
    if headers.get(b"Content-Length") is not None or response.body:
        headers[b"Content-Length"] = str(len(response.body))
    return _head(line, headers)


def _request_head(request: Request) -> bytes:
    parts = urlsplit(request.url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = Headers({"Host": parts.netloc.rpartition("@")[2]})
    headers.update(request.headers)
    if request.body:
        headers[b"Content-Length"] = str(len(request.body))
    return _head(f"{request.method} {path} HTTP/1.1", headers)


def _head(line: str, headers: Headers) -> bytes:
    fields = [
        name + b": " + b" ".join(value.splitlines()) for name in headers for value in headers.getlist(name)
    ]
    return b"\r\n".join([line.encode("latin-1", "replace"), *fields, b"", b""])


def _whole(path: Path, note: Callable[[bytes, int, int, int], None], file: BinaryIO) -> int:
    """The position after the last complete gzip member of a WARC.

    All members are unpacked, at about 500 MB of content a second. A member can be checked only by unpacking it. `note`
    gets the first bytes of each, its size unpacked, its place and its size.
    """
    end = at = size = 0
    start, unpacker = b"", None
    with track(f"checking {path.name}", os.fstat(file.fileno()).st_size, "B") as task:
        data = file.read(_CHUNK)
        while data:
            if unpacker is None:
                unpacker, start, size = isal_zlib.decompressobj(wbits=_GZIP), b"", 0
            try:
                out = unpacker.decompress(data)
            except _BadDeflateError:
                raise OutputError(
                    f"{path} is not a WARC of gzip members from byte {end:,}: name another file"
                ) from None
            size += len(out)
            start += out[: _START - len(start)]
            if not b"WARC/".startswith(start[:5]):
                raise OutputError(
                    f"{path} holds data that are not WARC records, at byte {end:,}: name another file"
                )
            at += len(data) - len(unpacker.unused_data)
            data = unpacker.unused_data
            if unpacker.eof:
                note(start, size, end, at - end)
                end, unpacker = at, None
            if not data:
                task.advance(file.tell() - task.done)
                data = file.read(_CHUNK)
    return end


_TABLES = {
    "WikiLinks": "CREATE TABLE WikiLinks (link TEXT PRIMARY KEY, title TEXT, crawled INTEGER)",
    "WikiGraph": "CREATE TABLE WikiGraph (fromLink TEXT, toLink TEXT)",
}
_COLUMNS = {"WikiLinks": ["link", "title", "crawled"], "WikiGraph": ["fromLink", "toLink"]}
# Seconds to wait for another process that is writing.
_BUSY = 5.0


class WikiTables:
    """The tables, made if they do not exist; a context manager.

    Parameters
    ----------
    path : path-like
        An SQLite database; other tables in it do not change.

    Raises
    ------
    inlink.errors.OutputError
        If the file is not a database, cannot be written, or has tables of these names with other columns.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._database = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None)
        except sqlite3.Error as error:
            raise OutputError(f"{self.path}: cannot be opened ({error}): name another file") from None
        try:
            self._database.execute("PRAGMA trusted_schema = OFF")
            # A commit does not wait for the disk, and readers do not wait for the writer.
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute("BEGIN IMMEDIATE")
            for table, columns in _COLUMNS.items():
                there = [row[1] for row in self._database.execute(f"PRAGMA table_info({table})")]
                if not there:
                    self._database.execute(_TABLES[table])
                elif there != columns:
                    raise OutputError(
                        f"{self.path}: its table {table} has the columns {', '.join(there)}, and not "
                        f"{', '.join(columns)}: name another file"
                    )
            self._database.execute("CREATE INDEX IF NOT EXISTS WikiGraphFrom ON WikiGraph (fromLink)")
            self._database.execute("COMMIT")
        except BaseException as error:
            self._database.close()
            if isinstance(error, sqlite3.Error):
                raise OutputError(f"{self.path}: cannot be written ({error}): name another file") from None
            raise

    def crawled(self, addresses: Iterable[tuple[str, str]], links: Iterable[tuple[str, str]]) -> None:
        """Write a page.

        Parameters
        ----------
        addresses : iterable of (str, str)
            The URLs of the page, each with its title. If the page was requested by an alias, the alias is among them
            and gets the same links.
        links : iterable of (str, str)
            The URL and the title of the target of each link, repeats included. They replace those of an earlier visit.

        Raises
        ------
        inlink.errors.OutputError
            If the database cannot be written. Then no row of the page is in the tables.
        """
        known, run = list(links), self._database.execute
        try:
            run("BEGIN IMMEDIATE")
            for url, title in addresses:
                run(
                    "INSERT INTO WikiLinks VALUES (?, ?, 1) ON CONFLICT (link) DO UPDATE SET crawled = 1",
                    (url, title),
                )
                run("DELETE FROM WikiGraph WHERE fromLink = ?", (url,))
                self._database.executemany(
                    "INSERT INTO WikiGraph VALUES (?, ?)", [(url, target) for target, _ in known]
                )
            self._database.executemany("INSERT OR IGNORE INTO WikiLinks VALUES (?, ?, 0)", known)
            run("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                run("ROLLBACK")
            raise OutputError(
                f"{self.path}: cannot be written ({error}): free some space, and run the command again"
            ) from None

    def close(self) -> None:
        """Merge the write-ahead log into the database file, and close it."""
        try:
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error:
            # Another process reads the database. It stays complete as it is.
            pass
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def whole_lines(file: BinaryIO) -> int:
    """The position in bytes after the last complete line of a file."""
    end = file.seek(0, 2)
    while end:
        start = max(end - 65_536, 0)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
