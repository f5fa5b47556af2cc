"""Requests to a server of crawls: JSON over HTTP, repeated while the server is away.

Each request may be sent twice without harm. Requests that read change nothing. Requests for tasks and reports have a
number by which the server recognises a repeat.
"""

import http.client
import ipaddress
import logging
import os
import random
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from inlink import errors
from inlink.base.decoding import decoded
from inlink.base.table import printable
from inlink.errors import InlinkError, InputError, ParameterError, ServerError
from inlink.protocol import Refusal

T = TypeVar("T")

log = logging.getLogger("inlink.client")

CONNECT_SECONDS = 10.0
REPLY_SECONDS = 40.0
"""Seconds to wait for a reply, in addition to the wait that the request asks for. A server gives up after 30."""

MOST_REPLY = 128 << 20
"""Maximum number of bytes of a reply."""

GZIP_FROM = 4096
"""Number of bytes from which a body is compressed, if the server is on another machine."""

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
"""Seconds before a request is repeated; they double each time."""

MOST_TOKEN = 4096
MOST_MESSAGE = 2000


class AwayError(ServerError):
    """The server cannot be reached now, or is too busy."""


def is_url(where: str) -> bool:
    """Return whether a crawl is named by the URL of a server rather than by its folder."""
    return "://" in where


class Place:
    """The address of a crawl on a server.

    Parameters
    ----------
    url : str
        The URL that ``inlink serve`` prints: ``http://127.0.0.1:8000/v1/crawls/mycrawl``.

    Raises
    ------
    inlink.errors.ParameterError
        If ``url`` is not the URL of a crawl, or contains a password.

    Attributes
    ----------
    url : str
    host : str
    port : int
    path : str
    secure : bool
        Whether it is reached by TLS.
    loopback : bool
        Whether it is on this machine.
    """

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url.strip())
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ParameterError(f"{printable(url)[:200]} is no URL: {error}") from None
        if parts.username is not None or parts.password is not None:
            raise ParameterError(
                f"the URL of {host or 'the server'} must not contain a user or password: put the token into "
                "INLINK_TOKEN, or into a file that INLINK_TOKEN_FILE names"
            )
        path = parts.path.rstrip("/")
        is_crawl = re.search(r"/v1/crawls/[^/]+$", path) is not None
        if parts.scheme not in ("http", "https") or not host or not is_crawl or parts.query or parts.fragment:
            raise ParameterError(
                f"{printable(url)[:200]} is not the URL of a crawl: give it as `inlink serve` prints it, as "
                "http://127.0.0.1:8000/v1/crawls/mycrawl"
            )
        self.secure = parts.scheme == "https"
        self.host, self.port = host, port or (443 if self.secure else 80)
        self.path = quote(path, safe="/%:@!$&'()*+,;=~")
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{parts.scheme}://{shown}:{self.port}{self.path}"
        self.loopback = is_loopback(host)


def is_loopback(host: str) -> bool:
    """Return whether a name or address can be reached only from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Channel:
    """A way to a crawl on a server, for any number of threads.

    The environment may set ``INLINK_TOKEN`` or ``INLINK_TOKEN_FILE``, and for TLS ``INLINK_CA`` and ``INLINK_CERT``.

    Parameters
    ----------
    url : str
        URL of the crawl; see :class:`Place`.
    patience : float or None
        Seconds for which a request is repeated while the server is away; None is for ever.

    Raises
    ------
    inlink.errors.ParameterError
        If the URL is not that of a crawl, or a token would be sent to another machine without TLS.
    inlink.errors.InputError
        If a file that the environment names cannot be read.
    """

    def __init__(self, url: str, patience: float | None = None) -> None:
        self.place, self.patience = Place(url), patience
        self._headers = {"Content-Type": "application/json", "User-Agent": "inlink"}
        token = _token()
        if token is not None:
            place = self.place
            if not (place.secure or place.loopback or os.environ.get("INLINK_INSECURE") == "1"):
                raise ParameterError(
                    f"{place.url}: without TLS, anybody on the way to {place.host} can read the token: use https, "
                    "or set INLINK_INSECURE=1"
                )
            self._headers["Authorization"] = f"Bearer {token}"
        self._tls = _tls() if self.place.secure else None
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._all: set[http.client.HTTPConnection] = set()
        self._closed = threading.Event()
        self._away_since: float | None = None

    def call(
        self,
        method: str,
        path: str,
        kind: type[T],
        body: object = None,
        query: Mapping[str, object] | None = None,
        *,
        wait: float = 0.0,
        at_once: bool = False,
    ) -> T:
        """Send a request and return its reply; repeat it while the server is away.

        Parameters
        ----------
        method : str
        path : str
            Path of the request, relative to the crawl's URL.
        kind : type
            The type to which the reply is decoded.
        body : object
            The body, which is encoded as JSON. Bytes are taken as JSON.
        query : mapping or None
            Values that are None are left out.
        wait : float
            Seconds for which the request asks the server to wait.
        at_once : bool
            Do not repeat the request.

        Raises
        ------
        AwayError
            If the server is still away when the patience has ended.
        inlink.errors.ServerError
            If the server cannot be used, or the channel is closed.
        inlink.errors.InlinkError
            The error that the crawl raised.
        """
        target = f"{self.place.path}/{path}"
        given = {name: value for name, value in (query or {}).items() if value is not None}
        if given:
            target += "?" + urlencode(given)
        raw = body if isinstance(body, bytes) else None if body is None else msgspec.json.encode(body)
        patience = 0.0 if at_once else self.patience
        began, pause = time.monotonic(), FIRST_PAUSE
        while True:
            try:
                status, reply = self._send(method, target, raw, wait)
                found = self._decoded(status, reply, kind)
            except AwayError as error:
                if patience is not None and time.monotonic() - began + pause > patience:
                    raise
                self._tell_away(error)
                # Spiders that wait for one server must not all come back at the same moment.
                if self._closed.wait(pause * random.uniform(0.5, 1.0)):
                    raise
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self._tell_back()
                return found

    @property
    def is_away(self) -> bool:
        """Whether the last reply was missed, and the request is being repeated."""
        return self._away_since is not None

    def close(self) -> None:
        """Close all connections; calls that are under way fail."""
        self._closed.set()
        with self._lock:
            idle, self._idle = self._idle, []
            busy, self._all = self._all.difference(idle), set()
        for connection in idle:
            connection.close()
        for connection in busy:
            # The thread that waits for a reply wakes up, and closes the connection itself.
            try:
                if connection.sock is not None:
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
            except OSError:
                pass

    # -- one request --------------------------------------------------------------------------------------------------

    def _send(self, method: str, target: str, raw: bytes | None, wait: float) -> tuple[int, bytes]:
        headers = self._headers
        if raw is not None and len(raw) >= GZIP_FROM and not self.place.loopback:
            raw, headers = _gzipped(raw), {**headers, "Content-Encoding": "gzip"}
        while True:
            connection, is_used = self._connection()
            try:
                if connection.sock is None:
                    connection.connect()
                # http.client has switched Nagle's algorithm off.
                connection.sock.settimeout(REPLY_SECONDS + wait)
                connection.request(method, target, raw, headers)
                with connection.getresponse() as reply:
                    content = reply.read(MOST_REPLY + 1)
                    if reply.length and len(content) <= MOST_REPLY:
                        # The server died while it sent its reply. read() with a limit does not report this.
                        raise http.client.IncompleteRead(content, reply.length)
            except ssl.SSLCertVerificationError as error:
                self._drop(connection)
                raise ServerError(
                    f"{self.place.url}: its certificate is not trusted ({error.verify_message}): let INLINK_CA name "
                    "a file with the CA's certificate"
                ) from None
            except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
                # Another thread may call close(), which ends the socket of this connection.
                self._drop(connection)
                if self._closed.is_set():
                    raise AwayError(f"{self.place.url}: this client was closed: connect again") from None
                # The server may have closed a connection that nobody used for a while.
                if is_used and not isinstance(error, TimeoutError):
                    continue
                raise AwayError(f"{self.place.url} cannot be reached: {_said(error)}") from None
            except BaseException:
                self._drop(connection)
                raise
            if len(content) > MOST_REPLY:
                self._drop(connection)
                raise ServerError(
                    f"{self.place.url}: a reply of more than {MOST_REPLY:,} bytes: ask for less"
                )
            self._keep(connection, reply.will_close)
            return reply.status, content

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            if self._closed.is_set():
                raise AwayError(f"{self.place.url}: this client was closed: connect again")
            if self._idle:
                return self._idle.pop(), True
            place = self.place
            connection = (
                http.client.HTTPConnection(place.host, place.port, timeout=CONNECT_SECONDS)
                if self._tls is None
                else http.client.HTTPSConnection(
                    place.host, place.port, timeout=CONNECT_SECONDS, context=self._tls
                )
            )
            self._all.add(connection)
            return connection, False

    def _keep(self, connection: http.client.HTTPConnection, is_over: bool) -> None:
        with self._lock:
            if not is_over and connection in self._all:
                self._idle.append(connection)
                return
        self._drop(connection)

    def _drop(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._all.discard(connection)
        connection.close()

    # -- replies ------------------------------------------------------------------------------------------------------

    def _decoded(self, status: int, raw: bytes, kind: type[T]) -> T:
        if 200 <= status < 300:
            try:
                return decoded(raw, kind)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise ServerError(
                    f"{self.place.url}: the reply is not one of inlink's ({printable(error)}): are client and server "
                    "of the same version?"
                ) from None
        raise self._refusal(status, raw)

    def _refusal(self, status: int, raw: bytes) -> InlinkError:
        if 300 <= status < 400:
            return ServerError(f"{self.place.url} redirects (HTTP {status}): give the crawl's own URL")
        try:
            refusal = decoded(raw, Refusal)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            refusal = Refusal("")
        line = printable(" ".join(refusal.error.split()))[:MOST_MESSAGE]
        if status in (502, 503, 504):
            return AwayError(line or f"{self.place.url}: HTTP {status}")
        if status in (401, 403) and refusal.kind == "AccessError":
            return ServerError(f"{self.place.url}: {line} (INLINK_TOKEN, or INLINK_TOKEN_FILE)")
        if not line:
            return ServerError(
                f"{self.place.url}: HTTP {status}: is this the URL of a crawl, as `inlink serve` prints it?"
            )
        error = getattr(errors, refusal.kind, None) if refusal.kind in errors.__all__ else None
        if isinstance(error, type) and issubclass(error, InlinkError):
            return error(line)
        return ServerError(f"{self.place.url}: {line}")

    # -- away and back ------------------------------------------------------------------------------------------------

    def _tell_away(self, error: AwayError) -> None:
        with self._lock:
            if self._away_since is not None:
                return
            self._away_since = time.monotonic()
        log.warning("the server is away, and is asked again until it is back: %s", error)

    def _tell_back(self) -> None:
        if self._away_since is None:
            return
        with self._lock:
            since, self._away_since = self._away_since, None
        if since is not None:
            log.warning("%s is back after %.1f s", self.place.url, time.monotonic() - since)


def _said(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no reply in time"
    if isinstance(error, OSError) and error.strerror:
        return printable(error.strerror)
    return printable(error) or type(error).__name__


def _gzipped(raw: bytes) -> bytes:
    deflate = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return deflate.compress(raw) + deflate.flush()


def _token() -> str | None:
    token = os.environ.get("INLINK_TOKEN")
    if not token:
        file = os.environ.get("INLINK_TOKEN_FILE")
        if not file:
            return None
        try:
            with Path(file).open("rb") as opened:
                token = opened.read(MOST_TOKEN + 1).decode("utf-8", "replace")
        except OSError as error:
            raise InputError(f"INLINK_TOKEN_FILE: {file}: {error.strerror}") from None
    token = token.strip()
    if len(token) > MOST_TOKEN or not re.fullmatch("[!-~]+", token):
        raise InputError(
            "INLINK_TOKEN, or the file that INLINK_TOKEN_FILE names, must hold one token, as `inlink token add` "
            "prints it"
        )
    return token


def _tls() -> ssl.SSLContext:
    authority, cert = os.environ.get("INLINK_CA"), os.environ.get("INLINK_CERT")
    try:
        context = ssl.create_default_context(cafile=authority or None)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"INLINK_CA: {authority}: no CA's certificate ({error}): give it as PEM") from None
    if cert:
        try:
            context.load_cert_chain(cert)
        except (OSError, ssl.SSLError) as error:
            raise InputError(
                f"INLINK_CERT: {cert}: no certificate with its key ({error}): give both in one PEM file"
            ) from None
    return context
