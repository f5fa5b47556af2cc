"""``python -m bench edge``: what a stranger's probe of ``/healthz`` waits while fifty hostile connections are open.

The server has a token, which the hostile clients do not know. They are a process of their own, and connect again at
once whenever they are cut off: all from one address, or each from its own, where the bound for each peer does not help.
Each probe is a new connection from another address. With ``--before SRC``, a server of the code in ``SRC`` runs in the
same rounds.
"""

import argparse
import contextlib
import errno
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import cli, markdown, results
from bench.server import cpu_of, served

__all__ = ["KINDS", "Kind", "edge_table", "hostile", "main"]

CONNECTIONS = 50
PROBES = 300
PROBE_SECONDS = 10.0
"""Seconds after which a probe is given up."""

ROW_SECONDS = 15.0
"""Seconds after which no further probe of a row begins."""

HOST = b"Host: localhost\r\n"
POST = b"POST /v1/crawls/crawl/seeds HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
SIZE = 1 << 16


@dataclass(frozen=True)
class Kind:
    """A kind of hostile connections: the bytes that it sends first, and those that it sends without end.

    ``pace`` is the number of seconds between two pieces; 0 is as fast as the client can. ``tls`` is true if the server
    has TLS. ``half_closed`` clients say after their first bytes that nothing more comes.
    """

    name: str
    first: bytes = b""
    more: bytes = b""
    pace: float = 0.0
    tls: bool = False
    half_closed: bool = False


KINDS: dict[str, Kind] = {
    "none": Kind("no hostile connection"),
    "idle": Kind("says nothing"),
    "value": Kind("endless header value", b"GET / HTTP/1.1\r\n" + HOST + b"X: ", b"a" * SIZE),
    "url": Kind("endless URL", b"GET /", b"a" * SIZE),
    "fields": Kind("endless header fields", b"GET / HTTP/1.1\r\n" + HOST, b"a:\r\n" * (SIZE // 4)),
    "lines": Kind("endless empty lines", b"", b"\r\n" * (SIZE // 2)),
    "slow": Kind(
        "header value, a byte a tenth of a second", b"GET / HTTP/1.1\r\n" + HOST + b"X: ", b"a", 0.1
    ),
    "garbage": Kind("bytes that are not HTTP", b"", bytes(range(256)) * (SIZE // 256)),
    "pipelined": Kind("endless requests", b"", (b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") * 1000),
    "nothings": Kind("endless requests without a host", b"", b"GET / HTTP/1.1\r\n\r\n" * 3000),
    "body": Kind("endless body", POST + b"Content-Length: 1000000000000\r\n\r\n", b"a" * SIZE),
    "login": Kind(
        "endless body of a login",
        POST.replace(b"/v1/crawls/crawl/seeds", b"/login") + b"Content-Length: 1000000000000\r\n\r\n",
        b"a" * SIZE,
    ),
    "chunks": Kind("endless chunks of one byte", CHUNKED, b"1\r\na\r\n" * (SIZE // 6)),
    "extensions": Kind("endless chunk extension", CHUNKED + b"1;a=", b"a" * SIZE),
    "trailers": Kind("endless trailers", CHUNKED + b"0\r\n", b"a:\r\n" * (SIZE // 4)),
    "websocket": Kind(
        "upgrades to WebSocket",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"a" * SIZE,
    ),
    "events": Kind(
        "event streams without a token", b"GET /v1/crawls/crawl/events HTTP/1.1\r\n" + HOST + b"\r\n", b""
    ),
    "tokens": Kind(
        "wrong tokens",
        b"",
        (POST.replace(b"/v1/crawls/crawl/seeds", b"/login") + b'Content-Length: 13\r\n\r\n{"token":"x"}')
        * 100,
    ),
    "halves": Kind("half-closed sockets", b"GET / HTTP/1.1\r\n" + HOST, half_closed=True),
    "handshake": Kind("handshake of TLS that never ends", b"\x16\x03\x01\x02\x00\x01", tls=True),
    "handshakes": Kind(
        "endless bytes in a handshake of TLS", b"", b"\x16\x03\x01\x40\x00" + b"\x01" * 0x4000, tls=True
    ),
}


class _Client:
    """One hostile connection, which begins again when it is cut off."""

    def __init__(self, kind: Kind, selector: selectors.BaseSelector, port: int, address: str) -> None:
        self.kind, self._selector, self._to, self._from = kind, selector, port, address
        self.connect()

    def connect(self) -> None:
        """Begin."""
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.bind((self._from, 0))
        self._left, self._is_first = self.kind.first, True
        if self.socket.connect_ex(("127.0.0.1", self._to)) not in (0, errno.EINPROGRESS):
            raise ConnectionError("the server does not listen")
        self._selector.register(self.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self)

    def serve(self, events: int) -> None:
        """Read and write."""
        try:
            if events & selectors.EVENT_READ and not self.socket.recv(1 << 18):
                raise ConnectionResetError
            if events & selectors.EVENT_WRITE:
                self.write()
        except BlockingIOError:
            pass
        except OSError:
            self._selector.unregister(self.socket)
            self.socket.close()
            self.connect()

    def write(self) -> None:
        """Send a piece."""
        kind = self.kind
        if not self._left and not self._is_first:
            self._left = kind.more
        self._left = self._left[self.socket.send(self._left) :] if self._left else b""
        if not self._left:
            if kind.half_closed and self._is_first:
                self.socket.shutdown(socket.SHUT_WR)
            self._is_first = False
            if kind.pace or not kind.more:
                self._selector.modify(self.socket, selectors.EVENT_READ, self)


def hostile(name: str, port: int, one_address: bool) -> None:
    """Be hostile until the process is ended."""
    kind, selector = KINDS[name], selectors.DefaultSelector()
    clients = [
        _Client(kind, selector, port, "127.0.0.2" if one_address else f"127.0.1.{number + 1}")
        for number in range(CONNECTIONS if name != "none" else 0)
    ]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    due = time.monotonic() + kind.pace
    while True:
        for key, events in selector.select(0.05):
            key.data.serve(events)
        if kind.pace and time.monotonic() >= due:
            due += kind.pace
            for client in clients:
                client.serve(selectors.EVENT_WRITE)


def _probe(port: int, certificate: str) -> float:
    """Milliseconds from connecting to the whole reply."""
    began = time.perf_counter()
    try:
        with contextlib.ExitStack() as stack:
            to: socket.socket = stack.enter_context(
                socket.create_connection(("127.0.0.1", port), PROBE_SECONDS)
            )
            if certificate:
                import ssl

                context = ssl.create_default_context(cafile=certificate)
                began = time.perf_counter()
                to = stack.enter_context(context.wrap_socket(to, server_hostname="127.0.0.1"))
            to.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            reply = b""
            while part := to.recv(1 << 16):
                reply += part
        if not reply.startswith(b"HTTP/1.1 200 "):
            return PROBE_SECONDS * 1e3
    except OSError:
        return PROBE_SECONDS * 1e3
    return (time.perf_counter() - began) * 1e3


def run(name: str, source: str, one_address: bool, probes: int) -> dict[str, float]:
    """Probe a server beside hostile connections: milliseconds, and the share of a processor that the server used."""
    from inlink.server.tokens import Tokens

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        Tokens(Path(folder, "config", "inlink", "tokens.json")).add("operator", "admin")
        server, port, certificate = stack.enter_context(
            served(Path(folder), tls=KINDS[name].tls, source=source)
        )
        enemy = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "bench", "edge", "--hostile", name, str(port), str(int(one_address))],
                stdout=subprocess.PIPE,
            )
        )
        try:
            assert enemy.stdout is not None
            if enemy.stdout.readline() != b"ready\n":
                raise RuntimeError("the hostile clients did not begin")
            time.sleep(0.5)
            took: list[float] = []
            began, cpu = time.monotonic(), cpu_of(server.pid)
            while len(took) < probes and time.monotonic() - began < ROW_SECONDS:
                took.append(_probe(port, certificate))
                time.sleep(0.005)
            share = (cpu_of(server.pid) - cpu) / (time.monotonic() - began)
        finally:
            enemy.kill()
    took.sort()
    return {
        "median": statistics.median(took),
        "p99": took[min(int(len(took) * 0.99), len(took) - 1)],
        "probes": len(took),
        "share": share,
    }


def edge_table(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    columns = list(next(iter(figures["rows"].values()))["runs"][0])
    lines = [
        markdown.line("fifty connections that send", *columns),
        markdown.line("---", *["---:"] * len(columns)),
    ]
    for row in figures["rows"].values():
        cells = [
            f"{statistics.median(one[column]['median'] for one in row['runs']):.1f}, "
            f"{statistics.median(one[column]['p99'] for one in row['runs']):.1f}"
            for column in columns
        ]
        lines.append(markdown.line(row["name"], *cells))
    about = f"Milliseconds of a probe: median, 99th percentile of {figures['probes']:,}. {markdown.machine(figures)}."
    return "\n".join([*lines, "", about])


def main(arguments: list[str]) -> None:
    """Run and keep the figures."""
    parser = cli.parser("edge", __doc__, rounds=3)
    parser.add_argument("--hostile", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--probes", type=int, default=PROBES, help="probes a row and round")
    parser.add_argument("--rows", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--before", default="", help="a folder src of other code, to be compared")
    options = parser.parse_args(arguments)
    if options.hostile:
        name, port, one_address = options.hostile
        hostile(name, int(port), one_address == "1")
    columns = {"one address": ("", True), "fifty addresses": ("", False)}
    if options.before:
        columns["before, one address"] = (options.before, True)
    rows: dict[str, Any] = {name: {"name": KINDS[name].name, "runs": []} for name in options.rows}
    load = []
    for _ in range(options.rounds):
        for name in options.rows:
            load.append(os.getloadavg()[0])
            found = {column: run(name, *how, options.probes) for column, how in columns.items()}
            rows[name]["runs"].append(found)
            print(name, found, file=sys.stderr)
    figures = {"machine": results.machine(), "load": load, "probes": options.probes, "rows": rows}
    results.keep(options.results, "edge", figures)
    print(edge_table(figures))
