"""A client's connection: bounds on what strangers send and hold, and replies that go out in one piece.

A stranger is a connection that has shown no token yet. uvicorn and httptools bound neither a head nor the time that it
takes: they copy a value again with each packet of it, and wait for ever for the rest. So bytes are counted here before
the parser gets them. The parser gets at most one head at a time, and a stranger's at most one in a turn of the event
loop. A request that is answered before its body has come ends the connection, so the body is never parsed.

uvicorn also writes the head and the body of a reply one after the other, which is two system calls, two wake-ups of the
client, and two records of TLS.
"""

import asyncio
import contextlib
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, cast

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from inlink.protocol import Refusal
from inlink.server.bodies import MOST_BYTES

MOST_HEAD = 64 << 10
"""Maximum number of bytes of a request's head, and of what a stranger may send ahead."""

MOST_FIELDS = 100
"""Maximum number of header fields of a request."""

HEAD_SECONDS = 10.0
"""Seconds within which the head of a request must arrive, the handshake of TLS included."""

WHOLE_SECONDS = 35.0
"""Seconds within which the body must follow; a body that is waited for is refused a little earlier."""

READ_SECONDS = 30.0
"""Seconds within which a client must read on when its reply does not fit into the buffers."""

LINGER_SECONDS = 2.0
"""Seconds for which bytes are discarded after a refusal. Closed at once, the client might not see the refusal."""

DELAY_SECONDS = 1.0
"""Seconds for which the server does not read from further strangers of a peer after it cut one off. So a client that
connects again at once costs little, and others behind its address are only served later."""

MOST_STRANGERS = 1000
"""Maximum number of strangers, and of peers whose strangers wait."""


class Strangers:
    """The connections that have shown no token, with a bound for each peer and bounds for all.

    A further stranger ends the oldest one. So a client that shows its token at once finds a place, and then keeps it.

    Parameters
    ----------
    most_of_peer : int
        Maximum number of strangers of a peer.
    most_in_all : int
        Number of connections beyond which a further one ends a stranger.
    proxies : iterable of str
        Addresses and networks of proxies. Their requests count for the address that the proxy names.
    """

    def __init__(self, most_of_peer: int, most_in_all: int, proxies: Iterable[str] = ()) -> None:
        self._most_of_peer, self._most_in_all = most_of_peer, most_in_all
        self._proxies = [ip_network(proxy) for proxy in proxies]
        self._peers: dict[Connection, str] = {}
        self._of_peer: dict[str, dict[Connection, None]] = {}
        # When the server reads from further strangers of a peer.
        self._delayed: dict[str, float] = {}
        self._turns: deque[Callable[[], None]] = deque()
        self.connections = 0

    def __len__(self) -> int:
        return len(self._peers)

    def is_proxy(self, address: str) -> bool:
        """Return whether an address is that of a proxy."""
        try:
            return any(ip_address(address) in network for network in self._proxies)
        except ValueError:
            return False

    def enter(self, connection: "Connection", address: str) -> None:
        """Count a connection for the peer of an address, and end the oldest stranger if there are too many."""
        peer = peer_of(address)
        self.leave(connection)
        self._peers[connection] = peer
        siblings = self._of_peer.setdefault(peer, {})
        siblings[connection] = None
        if len(siblings) > self._most_of_peer:
            next(iter(siblings)).abort()
        elif len(self) > MOST_STRANGERS or self.connections > self._most_in_all:
            next(iter(self._peers)).abort()

    def leave(self, connection: "Connection") -> None:
        """Count a connection no longer."""
        peer = self._peers.pop(connection, None)
        if peer is not None:
            siblings = self._of_peer[peer]
            del siblings[connection]
            if not siblings:
                del self._of_peer[peer]

    def delay(self, connection: "Connection") -> None:
        """Let further strangers of a connection's peer wait."""
        peer = self._peers.get(connection)
        if peer is not None:
            self._delayed.pop(peer, None)
            self._delayed[peer] = time.monotonic() + DELAY_SECONDS
            if len(self._delayed) > MOST_STRANGERS:
                del self._delayed[next(iter(self._delayed))]

    def wait(self, connection: "Connection") -> float:
        """Seconds for which the server does not read from a connection."""
        return max(self._delayed.get(self._peers.get(connection, "-"), 0.0) - time.monotonic(), 0.0)

    def take_turn(self, work: Callable[[], None]) -> None:
        """Do the work of a stranger after that of others, one in a turn of the event loop. So a turn stays short."""
        self._turns.append(work)
        if len(self._turns) == 1:
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        work = self._turns.popleft()
        if self._turns:
            asyncio.get_running_loop().call_soon(self._next_turn)
        work()

    def end_handshakes(self) -> None:
        """End the connections that are not secured yet."""
        for connection in [one for one in self._peers if one.flow is None]:
            connection.abort()


def peer_of(address: str) -> str:
    """The peer that has an address: an IPv4 address, or the first 64 bits of an IPv6 address.

    Texts that are no addresses are one peer, which is empty.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))
    return str(found)


def _unmapped(address: str) -> str:
    """The IPv4 address that an IPv6 address stands for, as on a socket that listens on ``::``; else the address."""
    return address.removeprefix("::ffff:") if "." in address else address


class _Joined:
    """A transport that writes together what was given to it in one turn of the event loop."""

    def __init__(self, transport: asyncio.Transport, connection: "Connection") -> None:
        self._transport, self._connection = transport, connection
        self._held: list[bytes] = []
        self._is_closing = False

    def write(self, data: bytes) -> None:
        """Write at the end of this turn."""
        if not self._held:
            self._connection.loop.call_soon(self._flush)
        self._held.append(data)

    def close(self) -> None:
        """Write the held bytes, and close: at once, or after bytes on the way were discarded."""
        if self.is_closing():
            return
        self._is_closing = True
        self._flush()
        if not self._connection.linger(self._transport):
            self._transport.close()

    def is_closing(self) -> bool:
        """Return whether nothing more is to be written."""
        return self._is_closing or self._transport.is_closing()

    def resume_reading(self) -> None:
        """Let the parser go on, first with bytes that have come."""
        self._connection.go_on()

    def _flush(self) -> None:
        held, self._held = self._held, []
        # The client may have gone since the bytes were given. Then uvloop raises an error.
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol for one connection, with bounds.

    Parameters
    ----------
    strangers : Strangers
    **uvicorn
        Passed by uvicorn.

    Attributes
    ----------
    is_deaf : bool
        Whether no further request is read, so that a reply is the last.
    """

    url = b""

    def __init__(self, strangers: Strangers, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._strangers = strangers
        self._socket: asyncio.Transport = None  # type: ignore[assignment]
        self._abort: Callable[[], object] | None = None
        self._is_proxy = self._is_trusted = self._is_lost = False
        # Bytes that came, and are not parsed yet from `_at` on; whether the next turn goes on with them.
        self._came, self._at, self._goes_on = b"", 0, False
        # The bytes of the head so far, and of the request; the number of its fields; the bytes that may be discarded.
        self._head = self._bytes = self._fields = self._spare = 0
        self._in_head, self._is_whole, self.is_deaf = True, False, False
        self._keep_alive = False
        self._cut: asyncio.TimerHandle | None = None
        self._cut_in_head = False
        self._unread: asyncio.TimerHandle | None = None

    # -- who it is ----------------------------------------------------------------------------------------------------

    def arrive(self, address: str, abort: Callable[[], object]) -> None:
        """Count the connection. Its first request must come soon."""
        self._abort = abort
        self._strangers.connections += 1
        self._limit(in_head=True)
        address = _unmapped(address)
        self._is_proxy = self._strangers.is_proxy(address)
        if not self._is_proxy:
            self._strangers.enter(self, address)

    async def secure(self, accepted: socket.socket, address: str, context: ssl.SSLContext) -> None:
        """Begin TLS on an accepted socket. A listener of uvicorn's would not show a connection before it is secured."""

        def abort() -> None:
            with contextlib.suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)

        self.arrive(address, abort)
        try:
            await asyncio.sleep(self._strangers.wait(self))
            turn = asyncio.Event()
            self._strangers.take_turn(turn.set)
            await turn.wait()
            await self.loop.connect_accepted_socket(
                lambda: self, accepted, ssl=context, ssl_handshake_timeout=HEAD_SECONDS
            )
        except (OSError, ssl.SSLError):
            self._strangers.delay(self)
            self._forget()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin."""
        if self._abort is None:
            self.arrive((transport.get_extra_info("peername") or ("",))[0], transport.abort)
        self._socket, self._abort = transport, transport.abort
        if self._is_lost:
            transport.abort()
        if not transport.is_closing():
            super().connection_made(cast(asyncio.Transport, _Joined(transport, self)))
            if self.client is not None:
                self.client = (_unmapped(self.client[0]), self.client[1])
            wait = self._strangers.wait(self)
            if wait:
                # uvloop reads once before reading can be paused.
                self._goes_on = True
                self.loop.call_later(wait, self._strangers.take_turn, self._parse_now)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._forget()
        if self.flow is not None:
            super().connection_lost(exc)

    def _forget(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._strangers.connections -= 1
            self._strangers.leave(self)
            self._stop_parsing()
            for timer in (self._cut, self._unread):
                if timer is not None:
                    timer.cancel()

    def serve_for(self, address: str) -> None:
        """Count a proxy's connection for an address until the reply is sent."""
        if self._is_proxy and not self._is_lost:
            self._strangers.enter(self, address)

    def trust(self) -> None:
        """The sender of a request has shown a token, or needs none."""
        self._strangers.leave(self)
        self._is_trusted = True

    def abort(self) -> None:
        """Close the connection without waiting for anything."""
        self._strangers.leave(self)
        if self._abort is not None:
            self._abort()

    # -- requests -----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take bytes in."""
        if self.is_deaf:
            self._discard(len(data))
            return
        self._came = self._came[self._at :] + data if self._came else data
        self._at = 0
        if self._goes_on:
            self._socket.pause_reading()
        else:
            self._parse()

    def go_on(self) -> None:
        """Parse the bytes that have come in the next turn, or read more."""
        if self._socket.is_closing():
            return
        if not self._came:
            self._socket.resume_reading()
        elif not self._goes_on:
            self._goes_on = True
            self._socket.pause_reading()
            if self._is_trusted:
                self.loop.call_soon(self._parse_now)
            else:
                self._strangers.take_turn(self._parse_of_stranger)

    def _parse_of_stranger(self) -> None:
        if not self.is_deaf and not self._is_trusted and len(self._came) - self._at > MOST_HEAD:
            self._refuse(431, f"more than {MOST_HEAD:,} bytes came without a token")
        self._parse_now()

    def _parse_now(self) -> None:
        self._goes_on = False
        if self.is_deaf:
            return
        if self._came:
            self._parse()
        if not self._came and not self.flow.read_paused and not self._socket.is_closing():
            self._socket.resume_reading()

    def _parse(self) -> None:
        """Give the parser one head after the other, as long as replies follow."""
        self._unset_keepalive_if_required()
        self._is_whole = False
        while self._came and not self.is_deaf and not self.flow.read_paused:
            self._parse_part()
            if self._at >= len(self._came):
                self._came, self._at = b"", 0
            elif not self._is_trusted and not self.is_deaf and not self.flow.read_paused:
                self.go_on()
                break
        if not self.is_deaf:
            self._limit(in_head=self._in_head)

    def _parse_part(self) -> None:
        most = self._at + MOST_HEAD - (self._head if self._in_head else 0)
        end = self._came.find(b"\r\n\r\n", self._at, most) + 4
        part = memoryview(self._came)[self._at : end if end > 3 else most]
        self._at += len(part)
        was_in_head = self._in_head
        self._bytes += len(part)
        try:
            self.parser.feed_data(part)
        except httptools.HttpParserUpgrade:
            # The server speaks no other protocol. The request is answered as any other, and nothing after it is read.
            self.end_after_reply()
            return
        except httptools.HttpParserError:
            if self._fields > MOST_FIELDS:
                self._refuse(431, f"a request has at most {MOST_FIELDS} header fields")
            else:
                self._refuse(400, "this is no HTTP request")
            return
        if was_in_head and self._in_head and not self._is_whole:
            self._head += len(part)
            if self._head >= MOST_HEAD:
                status = 414 if len(self.url) > MOST_HEAD // 2 else 431
                self._refuse(status, f"the head of a request has at most {MOST_HEAD:,} bytes")
        elif self._bytes > MOST_HEAD + 2 * MOST_BYTES:
            self._refuse(413, f"a request has at most {2 * MOST_BYTES:,} bytes with the marks of its chunks")

    def _refuse(self, status: int, error: str) -> None:
        """Refuse what cannot be parsed, and end the connection."""
        self._stop_parsing()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self._in_head:
                self.end_after_reply()
                return
            # The broken body is that of this request. Its endpoint takes this for the end of the connection.
            cycle.disconnected = True
            cycle.message_event.set()
        if cycle is None or cycle.response_complete or not cycle.response_started:
            body = msgspec.json.encode(Refusal(error))
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(
                body
            )
            self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()

    def end_after_reply(self) -> None:
        """Read nothing more, and close after the reply that is under way."""
        if not self.is_deaf:
            self._stop_parsing()
        self._keep_alive = self.cycle.keep_alive = False
        # The reply has a limit of its own.
        self._is_whole = True
        self._limit(in_head=False)
        if not self._socket.is_closing():
            self._socket.pause_reading()

    def _stop_parsing(self) -> None:
        self.is_deaf = True
        self._spare = MOST_HEAD - (len(self._came) - self._at)
        self._came, self._at = b"", 0

    def linger(self, transport: asyncio.Transport) -> bool:
        """Close later if the client may still be sending: a socket that is closed over unread bytes drops the reply."""
        is_idle = self._in_head and not self._head and not self._came and not self.is_deaf
        if is_idle or transport.is_closing():
            return False
        self._strangers.delay(self)
        if not self.is_deaf:
            self._stop_parsing()
        if not self._in_head:
            lengths = [value for name, value in self.headers if name == b"content-length" and value.isdigit()]
            self._spare += sum(int(value) for value in lengths if int(value) <= MOST_BYTES)
        if self._spare < 0:
            return False
        if transport.can_write_eof():
            transport.write_eof()
        transport.resume_reading()
        if self._cut is not None:
            self._cut.cancel()
        self._cut = self.loop.call_later(LINGER_SECONDS, transport.abort)
        return True

    def _discard(self, size: int) -> None:
        """Drop bytes, at most one packet in a turn."""
        self._spare -= size
        if self._spare < 0:
            self._socket.abort()
        elif not self._socket.is_closing():
            self._socket.pause_reading()
            self.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self._socket.is_closing():
            self._socket.resume_reading()

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self._is_whole = False
        self._fields = 0
        super().on_message_begin()
        self.scope["state"]["connection"] = self

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header field. Fields after the body are ignored: they were not there when the request was admitted."""
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise ValueError("too many fields")
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to serve the request. Unless its body comes before the reply, it is the connection's last."""
        super().on_headers_complete()
        self._in_head, self._bytes = False, 0
        self._keep_alive, self.cycle.keep_alive = self.cycle.keep_alive, False

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._in_head, self._is_whole, self._head = True, True, 0
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._keep_alive
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on after a reply."""
        if self._is_proxy:
            self._strangers.leave(self)
            self._is_trusted = False
        super().on_response_complete()

    def shutdown(self) -> None:
        """Close after the reply that is under way."""
        self._keep_alive = False
        super().shutdown()

    # -- time ---------------------------------------------------------------------------------------------------------

    def _limit(self, in_head: bool) -> None:
        """Set the time for the rest of a request. A timer runs only while a request is not whole, which is seldom."""
        if self._cut is not None and (self._is_whole or self._cut_in_head != in_head):
            self._cut.cancel()
            self._cut = None
        if self._cut is None and not self._is_whole:
            self._cut_in_head = in_head
            self._cut = self.loop.call_later(HEAD_SECONDS if in_head else WHOLE_SECONDS, self.abort)

    def pause_writing(self) -> None:
        """Wait for a client that does not read, but not for ever."""
        super().pause_writing()
        self._unread = self.loop.call_later(READ_SECONDS, self.abort)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
