"""A log that is written from front to back into a folder that is being made."""

import zlib
from pathlib import Path

from inlink.store.format import CHECKED, HEAD_SIZE, NO_PAGE, SYNCED, Head, head_check
from inlink.store.log import EVENTS, URLS, write_end

EMPTY = Head(0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, NO_PAGE, 0, 0.0, 0, 0, 0, 0, 0, 0)
"""A head about no page, whose other fields are 0."""


class NewLog:
    """The log of a folder that nobody uses yet; a context manager. The caller syncs the files at the end.

    Parameters
    ----------
    folder : Path
        The folder, without a log.
    salt : int
        The log's salt: see :func:`inlink.store.format.salt_of`.

    Attributes
    ----------
    place, pages : int
        The number of bytes of events.log, and the number of known pages.
    time : float
        Unix time of the last event.
    """

    def __init__(self, folder: Path, salt: int) -> None:
        self._folder, self._salt = folder, salt
        self._events, self._urls = (folder / EVENTS).open("wb"), (folder / URLS).open("wb")
        self.place = self.pages = self._text = self._number = 0
        self.time = 0.0

    def append(self, head: Head, payload: bytes, text: bytes = b"") -> int:
        """Write an event and the URLs that it makes known; return its place.

        Parameters
        ----------
        head : Head
            The fields that depend on the place, the payload or the URLs are replaced.
        payload : bytes
        text : bytes
            The URLs of the ``head.new`` pages, with a newline after each URL.
        """
        place = self.place
        head = head._replace(
            marker=self._salt & 0xFFFFFFFF,
            length=HEAD_SIZE + len(payload),
            place=place,
            number=self._number & 0xFFFFFFFF,
            text_place=self._text,
            first=self.pages,
            text_size=len(text),
            payload_check=zlib.crc32(payload),
            text_check=zlib.crc32(text),
        )
        checked = CHECKED.pack(*head[:-1])
        self._events.write(checked + head_check(checked, self._salt) + payload)
        self._urls.write(text)
        self.place, self._text = place + head.length, self._text + len(text)
        self.pages, self._number, self.time = self.pages + head.new, self._number + 1, head.time
        return place

    def flush(self) -> None:
        """Let readers of the files see all events."""
        self._urls.flush()
        self._events.flush()

    def finish(self) -> None:
        """Record that all is synced up to here."""
        if self.place:
            self.append(EMPTY._replace(kind=SYNCED, time=self.time), b"")
        self.flush()
        write_end(self._folder, self._text, self.place, self._number, self.pages)

    def __enter__(self) -> "NewLog":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._events.close()
        finally:
            self._urls.close()
