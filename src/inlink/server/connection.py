"""A client's connection: slow clients are cut off, and a reply goes out in one piece.

uvicorn waits for ever for a request that has begun, and for a client that does not read. It also writes the head and
the body of a reply one after the other, which is two system calls, two wake-ups of the client, and two records of TLS.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["Connection"]

WHOLE_SECONDS = 35.0
"""Seconds within which a whole request must arrive; a body that is waited for is refused a little earlier."""

READ_SECONDS = 30.0
"""Seconds within which a client must read on when its reply does not fit into the buffers."""


class _Joined:
    """A transport that writes together what was given to it in one turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._call_soon = transport, loop.call_soon
        self._held: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Write at the end of this turn."""
        if not self._held:
            self._call_soon(self._flush)
        self._held.append(data)

    def close(self) -> None:
        """Write what is held, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, []
            self._transport.write(b"".join(held))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol for one connection, with limits on how slow a client may be."""

    _cut: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _is_whole = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; the first request must come soon."""
        super().connection_made(cast(asyncio.Transport, _Joined(transport, self.loop)))
        self._cut = self.loop.call_later(WHOLE_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        for timer in (self._cut, self._unread):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Take bytes in. A timer runs only while a request is not whole, which is seldom."""
        super().data_received(data)
        if self._is_whole:
            if self._cut is not None:
                self._cut.cancel()
                self._cut = None
        elif self._cut is None:
            self._cut = self.loop.call_later(WHOLE_SECONDS, self.transport.abort)

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self._is_whole = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._is_whole = True
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Wait for a client that does not read, but not for ever."""
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
