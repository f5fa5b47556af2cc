"""Binary streams that are read forward, and can go back over a bounded number of bytes.

A stream is any object whose `read` returns bytes: an open file, a pipe, `io.BytesIO`, a body from S3. It need not
seek: the bytes since the beginning of the current gzip member are kept, so that a search after damage can begin there.
"""

from collections import deque
from typing import Protocol

from inlink.base.progress import Work
from inlink.errors import InputError, ParameterError

KEPT = 1 << 25
"""The largest number of bytes behind the reading position that are kept. A search after damage goes back no further."""


class Readable(Protocol):
    """A binary stream: an object with `read`."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; no bytes at the end of the stream."""
        ...


def name_of(stream: Readable, name: str | None) -> str:
    """Return the name of a stream in messages: `name`, the stream's own name (if it is a file), or ``<stream>``."""
    own = getattr(stream, "name", None)
    return name or (own if isinstance(own, str) else "<stream>")


class Rewindable:
    """A stream that can go back to a place that was not forgotten.

    Parameters
    ----------
    stream : Readable
        The bytes. It is not closed here.
    name : str
        The name of the stream in messages.
    task : Work or None
        The progress display. It advances by the bytes that are read from the stream.
    """

    def __init__(self, stream: Readable, name: str, task: Work | None = None) -> None:
        self.name = name
        self._stream, self._task = stream, task or Work("")
        self._behind: deque[bytes] = deque()
        # The place of the first byte that is kept.
        self._begin = 0
        # The place of the next byte.
        self._place = 0
        # Bytes to read again after a way back, and the number of them that were read again so far.
        self._ahead, self._used = b"", 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end of the stream.

        Raises
        ------
        inlink.errors.InputError
            If the stream cannot be read.
        inlink.errors.ParameterError
            If the stream gives something else than bytes.
        """
        data = self._ahead[self._used : self._used + size]
        self._used += len(data)
        if self._used == len(self._ahead):
            self._ahead, self._used = b"", 0
        while len(data) < size:
            part = self._fresh(size - len(data))
            if not part:
                break
            data = data + part if data else part
        if data:
            self._behind.append(data)
            self._place += len(data)
            self.forget(self._place - KEPT)
        return data

    def _fresh(self, size: int) -> bytes:
        try:
            part = self._stream.read(size)
        except OSError as error:
            raise InputError(f"{self.name}: cannot be read ({error.strerror or error})") from None
        if not isinstance(part, bytes):
            raise ParameterError(
                f"{self.name}: `read` must return bytes; got {type(part).__name__}. Open files in mode 'rb'."
            )
        self._task.advance(len(part))
        return part

    def forget(self, place: int) -> None:
        """Allow that bytes before `place` are dropped."""
        while self._behind and self._begin + len(self._behind[0]) <= place:
            self._begin += len(self._behind.popleft())

    def rewind(self, place: int) -> int:
        """Go back to a place, or as near to it as bytes are kept; return the place of the next byte."""
        place = min(max(place, self._begin), self._place)
        kept = b"".join(self._behind)
        cut = place - self._begin
        self._ahead, self._used = kept[cut:] + self._ahead[self._used :], 0
        self._behind = deque([kept[:cut]] if cut else [])
        self._place = place
        return place
