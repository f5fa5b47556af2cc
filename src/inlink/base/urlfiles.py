"""Streams of files behind ``https://``, ``http://`` and ``s3://``, which go on after a cut connection.

A server that is busy, or refuses for a while, is asked again, each time later. Nothing is kept on disk.
"""

import contextlib
import http.client
import io
import os
import random
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

from inlink.base.extras import load
from inlink.base.remote import Stamp, UnreachableError, restored
from inlink.errors import InputError, OutputError

TRIES = 8
"""Number of failed requests in a row after which a file is given up."""

# Seconds: of waiting for bytes; of the first pause, which doubles each time; of the longest pause.
_PATIENCE = 60.0
_PAUSE = 1.0
_LONGEST = 120.0
# Common Crawl answers 403 or 503 to clients that send requests too fast.
_BUSY = (403, 408, 429, 500, 502, 503, 504)
_BLOCK = 1 << 20
_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# A part of a file on S3 is a request, so parts are larger.
_S3_BLOCK = 8 << 20
# Larger files are uploaded in pieces. S3 takes up to 5 GiB in a request, which is in memory.
_LARGEST_PUT = 1 << 30

_wait = time.sleep


class HttpStream(io.RawIOBase):
    """The body of a URL, or a span of it. A cut connection is opened again at the byte where it was cut.

    Parameters
    ----------
    url : str
    span : range or None
        The bytes to read, which are at least one. None: all.
    """

    def __init__(self, url: str, span: range | None = None) -> None:
        self.name = url
        self._span = span
        self._at = self._first = 0 if span is None else span.start
        self._answer: Any = None
        self._failures = 0
        self.stamp = Stamp(-1, "")
        self._connect()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as bytes have come, and return their number; 0 at the end."""
        if self._span is not None:
            buffer = memoryview(buffer)[: self._span.stop - self._at]
            if not len(buffer):
                return 0
        while True:
            if self._answer is None:
                self._connect()
                continue
            try:
                count: int = self._answer.readinto(buffer)
            except (OSError, http.client.HTTPException) as error:
                self._failed(f"{error or type(error).__name__}", None)
                continue
            if not count and self._at < self.stamp.size:
                self._failed(f"the connection was cut after {self._at:,} of {self.stamp.size:,} bytes", None)
                continue
            self._at += count
            self._failures = 0
            return count

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            self._hang_up()
        super().close()

    def _hang_up(self) -> None:
        if self._answer is not None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._answer.close()
            self._answer = None

    def _failed(self, why: str, pause: float | None) -> None:
        """Wait before the next try; give up after the last."""
        self._hang_up()
        self._failures += 1
        if self._failures >= TRIES:
            raise UnreachableError(f"{self.name}: cannot be read ({why}; tried {TRIES} times)")
        if pause is None:
            # Readers that failed at the same time come back at different times.
            pause = _PAUSE * 2 ** (self._failures - 1) * random.uniform(0.5, 1.5)
        _wait(min(pause, _LONGEST))

    def _connect(self) -> None:
        headers = {"User-Agent": "inlink", "Accept-Encoding": "identity"}
        if self._span is not None:
            headers["Range"] = f"bytes={self._at}-{self._span.stop - 1}"
        elif self._at:
            headers["Range"] = f"bytes={self._at}-"
        while self._answer is None:
            try:
                request = urllib.request.Request(self.name, headers=headers)
                self._answer = urllib.request.urlopen(request, timeout=_PATIENCE)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code not in _BUSY:
                    raise InputError(f"{self.name}: the server answers {error.code} {error.reason}") from None
                self._failed(f"the server answers {error.code} {error.reason}", _seconds(error.headers))
            except (ValueError, http.client.InvalidURL) as error:
                raise InputError(f"{self.name} is no URL that can be read ({error})") from None
            except (OSError, http.client.HTTPException) as error:
                reason = error.reason if isinstance(error, urllib.error.URLError) else error
                self._failed(f"{reason or type(error).__name__}", None)
        self._begin()

    def _begin(self) -> None:
        """Take the first answer's stamp, or check that a later answer goes on with the same file."""
        head = self._answer.headers
        version = head.get("ETag") or head.get("Last-Modified") or ""
        if self._span is not None and self._answer.status != 206:
            self._hang_up()
            raise InputError(
                f"{self.name}: the server sends whole files only, no ranges: download them and name the folder"
            )
        if self._at == self._first:
            size = head.get("Content-Length", "")
            if self._span is not None:
                size = head.get("Content-Range", "").rpartition("/")[2]
            self.stamp = Stamp(_number(size), version)
            if self._span is None:
                return
        if version != self.stamp.version:
            self._hang_up()
            raise InputError(f"{self.name} was replaced on the server while it was read: read it again")
        if self._answer.status == 206:
            first = head.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
            if _number(first) != self._at:
                self._hang_up()
                raise InputError(
                    f"{self.name}: the server sends another range than it was asked for: download the file"
                )
            return
        # This server sends everything again.
        left = self._at
        while left:
            try:
                part = len(self._answer.read(min(left, _BLOCK)))
            except (OSError, http.client.HTTPException):
                part = 0
            if not part:
                self._failed("the connection was cut again", None)
                return
            left -= part


class S3Stream(io.RawIOBase):
    """A file on S3, or a span of it. Each part is a request, which obstore repeats if it fails."""

    def __init__(self, url: str, span: range | None = None) -> None:
        self.name = url
        self._store, self._key = _s3(url)
        with _readable(url):
            meta = self._store.head(self._key)
        self.stamp = Stamp(meta["size"], meta["e_tag"] or "")
        self._at, self._stop = (0, self.stamp.size) if span is None else (span.start, span.stop)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the file goes, and return the number of bytes; 0 at the end."""
        end = min(self._at + len(buffer), self._stop, self.stamp.size)
        count = end - self._at
        if count > 0:
            options = {"range": (self._at, end), "if_match": self.stamp.version or None}
            with _readable(self.name):
                buffer[:count] = self._store.get(self._key, options=options).bytes()
            self._at = end
        return max(count, 0)

    def readall(self) -> bytes:
        """Return the rest of the file. The method of RawIOBase would make a request for each 8 KiB."""
        return b"".join(iter(lambda: self.read(_S3_BLOCK) or b"", b""))


def _s3(url: str) -> tuple[Any, str]:
    """Return the store of a bucket, and the key of a file in it."""
    store = load("obstore.store", "s3", "s3://").S3Store
    bucket, _, key = url[len("s3://") :].partition("/")
    if not bucket or not key.strip("/"):
        raise InputError(f"{url}: expected s3://BUCKET/KEY")
    keys = _keys_of_profile()
    signed = keys or any(os.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN"))
    # obstore reads the other variables of AWS.
    return store(bucket, skip_signature=not signed, client_options={"allow_http": True}, **keys), key


def _keys_of_profile() -> dict[str, str]:
    """Return the keys of the profile ``AWS_PROFILE`` in the credentials file; none if a key is in the environment."""
    name = os.environ.get("AWS_PROFILE")
    if not name or os.environ.get("AWS_ACCESS_KEY_ID"):
        return {}
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials"
    parser = RawConfigParser()
    parser.read(path)
    if not parser.has_option(name, "aws_access_key_id"):
        raise InputError(
            f"AWS_PROFILE: {path} has no keys of profile {name!r}. Set AWS_ACCESS_KEY_ID instead"
        )
    return {key: value for key, value in parser.items(name) if key in _KEYS}


@contextlib.contextmanager
def _readable(url: str) -> Iterator[None]:
    """Turn the errors of obstore into ours."""
    from obstore.exceptions import BaseError, PreconditionError

    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{url} does not exist") from None
    except PreconditionError:
        raise InputError(f"{url} was replaced on the server while it was read: read it again") from None
    except BaseError as error:
        raise UnreachableError(f"{url}: cannot be read ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _stream(url: str, span: range | None = None) -> HttpStream | S3Stream:
    url = restored(url)
    return S3Stream(url, span) if url.lower().startswith("s3://") else HttpStream(url, span)


def open_remote(url: str) -> io.BufferedReader:
    """Open a URL for reading from front to back.

    Raises
    ------
    inlink.errors.InputError
        If there is no such file. :class:`UnreachableError` if the server does not answer.
    inlink.errors.MissingExtraError
        If S3 is not supported here.
    """
    stream = _stream(url)
    return io.BufferedReader(stream, _S3_BLOCK if isinstance(stream, S3Stream) else _BLOCK)


def remote_span(url: str, span: range) -> tuple[bytes, Stamp]:
    """Return bytes of a remote file, fewer if the file ends before them, and the stamp of the file.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.MissingExtraError
        As :func:`open_remote`, and if the server sends no ranges.
    """
    with _stream(url, span) as stream:
        data = bytearray()
        while len(data) < len(span) and (part := stream.read(min(len(span) - len(data), _S3_BLOCK))):
            data += part
        return bytes(data), stream.stamp


def stamp_of(url: str) -> Stamp:
    """Return the stamp of a remote file, which differs between versions of the file.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.MissingExtraError
        As :func:`open_remote`.
    """
    with _stream(url) as stream:
        return stream.stamp


def upload(path: Path, url: str) -> None:
    """Copy a file to ``s3://``. It appears there when it is complete.

    Raises
    ------
    inlink.errors.OutputError
        If it cannot be written.
    inlink.errors.MissingExtraError
        If S3 is not supported here.
    """
    store, key = _s3(url)
    from obstore.exceptions import BaseError

    try:
        # A request of its own leaves nothing behind if it is cut. An upload in pieces would leave the pieces.
        store.put(key, path, use_multipart=path.stat().st_size > _LARGEST_PUT)
    except (OSError, BaseError) as error:
        raise OutputError(f"{url}: cannot be written ({_first_line(error)})") from None


def download(url: str, path: Path) -> None:
    """Copy a remote file to a path.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.MissingExtraError
        As :func:`open_remote`.
    """
    with open_remote(url) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target, _BLOCK)


def remove_remote(urls: Sequence[str]) -> None:
    """Remove files of a bucket on ``s3://``, if that is allowed. They need not exist."""
    if not urls:
        return
    store, _ = _s3(urls[0])
    from obstore.exceptions import BaseError

    with contextlib.suppress(OSError, BaseError):
        store.delete([_s3(url)[1] for url in urls])


def _seconds(headers: Any) -> float | None:
    """Return the pause in seconds that a server asks for, or None."""
    seconds = _number(headers.get("Retry-After", ""))
    return float(seconds) if 0 <= seconds < 100_000 else None


def _number(text: str) -> int:
    """Return the whole number that the text of a header is; -1 for other texts and for more than 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
