"""Files behind ``https://``, ``http://`` and ``s3://``, as streams that go on after a cut connection.

Nothing is kept on disk. A server that is busy, or refuses for a while, is asked again, each time later.
"""

import contextlib
import http.client
import io
import os
import random
import re
import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from inlink.errors import InputError, MissingExtraError, OutputError

__all__ = [
    "Stamp",
    "UnreachableError",
    "download",
    "is_remote",
    "open_remote",
    "remove_remote",
    "stamp_of",
    "upload",
]

TRIES = 8
"""Requests in a row that may fail before a file is given up."""

# Seconds: of waiting for bytes; of the first pause, which doubles each time; of the longest pause.
_PATIENCE = 60.0
_PAUSE = 1.0
_LONGEST = 120.0
# Common Crawl answers 403 and 503 to who asks too fast.
_BUSY = (403, 408, 429, 500, 502, 503, 504)
_BLOCK = 1 << 20

_wait = time.sleep


class UnreachableError(InputError):
    """A server does not answer, or refuses for now. The file may be there: trying again later may help."""


class Stamp(NamedTuple):
    """What tells a file from a later version of it: its size in bytes, -1 if unknown, and an ETag or time."""

    size: int
    version: str


# A path has one slash where a URL has two.
_URL = re.compile(r"(https?|s3):/+", re.I)


def is_remote(path: object) -> bool:
    """Whether a source is a URL that :func:`open_remote` opens, as text or as a path made of it."""
    return isinstance(path, str | os.PathLike) and _URL.match(os.fspath(path)) is not None


def open_remote(url: str) -> io.BufferedReader:
    """Open a URL for reading from front to back.

    Raises
    ------
    inlink.errors.InputError
        If there is no such file. :class:`UnreachableError` if the server does not answer.
    inlink.errors.MissingExtraError
        If S3 is not supported here.
    """
    url = _URL.sub(r"\1://", url, count=1)
    if url.lower().startswith("s3://"):
        return _s3_stream(url)
    return io.BufferedReader(_HttpStream(url), _BLOCK)


def stamp_of(url: str) -> Stamp:
    """Return what tells the present version of a remote file from others.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.MissingExtraError
        As :func:`open_remote`.
    """
    if url.lower().startswith("s3://"):
        return _s3_stamp(url)
    with _HttpStream(url) as stream:
        return stream.stamp


class _HttpStream(io.RawIOBase):
    """The body of a URL. A cut connection is opened again at the byte where it was cut."""

    def __init__(self, url: str) -> None:
        self.name = url
        self._at = 0
        self._answer: Any = None
        self._failures = 0
        self.stamp = Stamp(-1, "")
        self._connect()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
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
        if self._at:
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
            except (OSError, http.client.HTTPException) as error:
                reason = error.reason if isinstance(error, urllib.error.URLError) else error
                self._failed(f"{reason or type(error).__name__}", None)
            except ValueError as error:
                raise InputError(f"{self.name} is no URL that can be read ({error})") from None
        self._begin()

    def _begin(self) -> None:
        """Take the first answer's stamp, or check that a later answer goes on with the same file."""
        head = self._answer.headers
        version = head.get("ETag") or head.get("Last-Modified") or ""
        if not self._at:
            length = head.get("Content-Length", "")
            self.stamp = Stamp(int(length) if length.isdigit() else -1, version)
            return
        if version != self.stamp.version:
            self._hang_up()
            raise InputError(f"{self.name} was replaced on the server while it was read: read it again")
        begins = self._at
        if self._answer.status == 206:
            first = head.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
            begins = int(first) if first.isdigit() else -1
            if begins != self._at:
                raise InputError(f"{self.name}: the server sends another range than it was asked for")
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


def _seconds(headers: Any) -> float | None:
    """The pause that a server asks for."""
    value = headers.get("Retry-After", "")
    return float(value) if value.isdigit() and len(value) < 6 else None


def _s3(url: str) -> tuple[Any, str]:
    """Return the file system of S3, and the path of a file in it.

    The usual variables hold: ``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL``, ``AWS_REGION``, and credentials. Without
    credentials, requests are anonymous.
    """
    try:
        from pyarrow.fs import S3FileSystem
    except ImportError:
        raise MissingExtraError("s3:// needs pyarrow with S3: pip install 'inlink[s3]'") from None
    parts = urlsplit(url)
    if not parts.netloc or not parts.path.strip("/"):
        raise InputError(f"{url}: expected s3://BUCKET/KEY")
    known = any(os.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ROLE_ARN"))
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    system = S3FileSystem(anonymous=not known, endpoint_override=endpoint or None, region=region)
    return system, parts.netloc + url[url.index(parts.netloc) + len(parts.netloc) :]


def upload(path: Path, url: str) -> None:
    """Copy a file to ``s3://``. It appears there when it is complete.

    Raises
    ------
    inlink.errors.OutputError
        If it cannot be written.
    inlink.errors.MissingExtraError
        If S3 is not supported here.
    """
    system, key = _s3(url)
    try:
        with path.open("rb") as source, system.open_output_stream(key) as target:
            shutil.copyfileobj(source, target, _BLOCK)
    except OSError as error:
        raise OutputError(f"{url}: cannot be written ({error})") from None


def download(url: str, path: Path) -> None:
    """Copy a remote file to a path.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.MissingExtraError
        As :func:`open_remote`.
    """
    with open_remote(url) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target, _BLOCK)


def remove_remote(url: str) -> None:
    """Remove a file on ``s3://``, if that is allowed."""
    system, key = _s3(url)
    with contextlib.suppress(OSError):
        system.delete_file(key)


def _s3_stream(url: str) -> io.BufferedReader:
    system, key = _s3(url)
    try:
        return io.BufferedReader(system.open_input_stream(key), _BLOCK)
    except FileNotFoundError:
        raise InputError(f"{url} does not exist") from None
    except OSError as error:
        raise UnreachableError(f"{url}: cannot be read ({error})") from None


def _s3_stamp(url: str) -> Stamp:
    system, key = _s3(url)
    try:
        info = system.get_file_info(key)
    except OSError as error:
        raise UnreachableError(f"{url}: cannot be read ({error})") from None
    if info.size is None:
        raise InputError(f"{url} does not exist")
    return Stamp(info.size, str(info.mtime_ns))
