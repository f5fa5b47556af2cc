"""A file behind ``https://`` or ``http://`` as a stream that goes on after a cut connection.

A server that is busy, or refuses for a while, is asked again, each time later.
"""

import contextlib
import http.client
import io
import random
import time
import urllib.error
import urllib.request
from typing import Any

from inlink.base.remote import Stamp, UnreachableError
from inlink.errors import InputError

__all__ = ["TRIES", "HttpStream"]

TRIES = 8
"""Number of failed requests in a row after which a file is given up."""

# Seconds: of waiting for bytes; of the first pause, which doubles each time; of the longest pause.
_PATIENCE = 60.0
_PAUSE = 1.0
_LONGEST = 120.0
# Common Crawl answers 403 and 503 to who asks too fast.
_BUSY = (403, 408, 429, 500, 502, 503, 504)
_BLOCK = 1 << 20

_wait = time.sleep


class HttpStream(io.RawIOBase):
    """The body of a URL. A cut connection is opened again at the byte where it was cut."""

    def __init__(self, url: str) -> None:
        self.name = url
        self._at = 0
        self._answer: Any = None
        self._failures = 0
        self.stamp = Stamp(-1, "")
        self._connect()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as bytes have come, and return their number; 0 at the end."""
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
        if not self._at:
            self.stamp = Stamp(_number(head.get("Content-Length", "")), version)
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


def _seconds(headers: Any) -> float | None:
    """Return the pause in seconds that a server asks for, or None."""
    seconds = _number(headers.get("Retry-After", ""))
    return float(seconds) if 0 <= seconds < 100_000 else None


def _number(text: str) -> int:
    """Return the whole number that the text of a header is; -1 for other texts and for more than 18 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
