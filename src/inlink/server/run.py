"""Run a server: addresses, TLS, signals, and an orderly end."""

import asyncio
import contextlib
import gc
import ipaddress
import logging
import resource
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import uvicorn
import uvloop

from inlink.client.channel import Place, is_loopback
from inlink.errors import InputError, MissingExtraError, OutputError, ParameterError
from inlink.server.app import application
from inlink.server.clientcrawls import ClientCrawls
from inlink.server.connection import Connection, Strangers
from inlink.server.site import MOST_FILES, Site, named
from inlink.server.tokens import Tokens, default_file

log = logging.getLogger("inlink.server")

DRAIN_SECONDS = 10
"""Seconds for which open requests may go on after a signal."""

BACKLOG = 512
"""Connections that may wait to be accepted."""

PEER_CONNECTIONS = 64
"""Default of the maximum number of connections of a peer without a token."""


@dataclass(frozen=True)
class Options:
    """Addresses, access and settings of a server: ``inlink serve --help`` describes an option for each.

    ``settings`` are those of :class:`inlink.Crawl`, for each crawl. ``tokens`` is None for the file of the user's
    account, ``grpc_port`` is None if URLFrontier is not served, and ``client_crawls`` is None if its clients can
    neither make nor delete crawls.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    names: Sequence[str] = ()
    tokens: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    self_signed: bool = False
    client_ca: Path | None = None
    insecure: bool = False
    peer_connections: int = PEER_CONNECTIONS
    proxies: Sequence[str] = ()
    grpc_port: int | None = None
    shard_urls: Sequence[str] = ()
    client_crawls: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def serve(folders: Sequence[Path], options: Options, say: Callable[[str], object] = print) -> None:
    """Serve crawls until a signal comes.

    Parameters
    ----------
    folders : sequence of Path
        Folders of crawls. A crawl that does not exist is made.
    options : Options
    say : callable
        Called with each line about the opened crawls and the addresses of the server.

    Raises
    ------
    inlink.errors.ParameterError
        If the options would let strangers in, two crawls have one name, or there is nothing to serve.
    inlink.errors.InputError
        If a file of tokens or of TLS cannot be read.
    inlink.errors.OutputError
        If the address cannot be listened on.
    inlink.errors.InlinkError
        If a crawl cannot be opened.
    """
    if not folders and options.client_crawls is None:
        raise ParameterError("there is no crawl to serve: name a folder, or give --client-crawls")
    if options.client_crawls is not None and options.grpc_port is None:
        raise ParameterError("only clients of URLFrontier make crawls: give --grpc-port with --client-crawls")
    if options.shard_urls and len(folders) != 1:
        raise ParameterError(
            "--shard-url needs exactly one crawl: start a server for each crawl that has shards"
        )
    for url in options.shard_urls:
        Place(url)
    crawls = named(list(folders))
    tokens = Tokens(options.tokens or default_file())
    on_loopback = is_loopback(options.host)
    if not on_loopback and not len(tokens):
        raise ParameterError(
            f"{options.host} is not loopback, so clients need a token, and there is none in {tokens.file}: "
            "make one by inlink token add NAME --role spider"
        )
    if options.self_signed:
        options = _self_signed(options, tokens.file.parent, say)
    if not on_loopback and options.cert is None and not options.insecure:
        raise ParameterError(
            f"{options.host} is not loopback, so tokens need TLS: give --tls-cert and --tls-key, or --self-signed "
            "for a try, or say --insecure"
        )
    context = _tls(options)
    for proxy in options.proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError as error:
            raise ParameterError(
                f"`proxies` must be addresses or networks, such as 10.0.0.0/8; {error}"
            ) from None
    with listening(options.host, options.port) as listener:
        clients = None if options.client_crawls is None else ClientCrawls(options.client_crawls)
        site = Site(tokens, on_loopback, clients)
        uvloop.run(_run(site, crawls, options, context, listener, say))


async def _run(
    site: Site,
    crawls: dict[str, Path],
    options: Options,
    context: ssl.SSLContext | None,
    listener: socket.socket,
    say: Callable[[str], object],
) -> None:
    told = await site.open(crawls, options.settings)
    try:
        for line in told:
            say(line)
        # All objects that exist now stay. A full collection would go through them: 70 ms of CPU without any reply.
        gc.collect()
        gc.freeze()
        server = Server(
            site, options.names, context, peer_connections=options.peer_connections, proxies=options.proxies
        )
        # A program that reads the address below may connect at once, and one that waits for the port may send a signal.
        with server.capture_signals():
            listener.listen(BACKLOG)
            scheme = "http" if context is None else "https"
            name, port = listener.getsockname()[:2]
            shown = f"[{name}]" if ":" in name else name
            for crawl in site.keepers:
                say(f"{scheme}://{shown}:{port}/v1/crawls/{quote(crawl, safe='')}")
            say(f"dashboard, for a browser: {scheme}://{shown}:{port}/")
            if options.grpc_port is not None:
                say(f"URLFrontier: {await _urlfrontier(site, options)}")
            if site.is_open:
                say(
                    "no token is needed: everybody on this machine may do everything here "
                    "(inlink token add changes that)"
                )
            if options.shard_urls:
                await site.join(next(iter(site.keepers)), options.shard_urls)
            await server.serve([listener])
    finally:
        await site.close()


async def _urlfrontier(site: Site, options: Options) -> str:
    """Start the server of URLFrontier; return its address."""
    try:
        from inlink.server.urlfrontier.door import Door
    except ImportError as error:
        raise MissingExtraError(
            f"--grpc-port needs {error.name}: install it with pip install 'inlink[grpc]'"
        ) from None
    assert options.grpc_port is not None
    return await Door(site).open(
        options.host, options.grpc_port, options.cert, options.key, options.client_ca
    )


class Server(uvicorn.Server):
    """uvicorn's server of an open site; its ``serve`` takes listening sockets and closes the site in the end.

    After a signal it ends the crawls, and leaves with exit code 0. It accepts connections of TLS itself: each one is
    counted before its handshake, which must end soon.
    """

    def __init__(
        self,
        site: Site,
        names: Sequence[str] = (),
        context: ssl.SSLContext | None = None,
        *,
        peer_connections: int = PEER_CONNECTIONS,
        proxies: Sequence[str] = (),
    ) -> None:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # Half of the files that the process may open is for connections.
        most = MOST_FILES if files == resource.RLIM_INFINITY else files
        self.strangers = Strangers(peer_connections, most // 2, proxies)
        config = uvicorn.Config(
            application(site, names),
            http=cast(Any, partial(Connection, self.strangers)),
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            backlog=BACKLOG,
        )
        super().__init__(config)
        self._site, self._context = site, context
        self._handshakes: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        if self._context is None:
            await super().startup(sockets)
            return
        await super().startup([])
        for listener in sockets or []:
            listener.setblocking(False)
            listener.listen(BACKLOG)
            self._listen(listener)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and let open requests end."""
        for listener in sockets or []:
            asyncio.get_running_loop().remove_reader(listener)
        self.strangers.end_handshakes()
        await super().shutdown(sockets)

    def _listen(self, listener: socket.socket) -> None:
        if not self.should_exit:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        loop, context = asyncio.get_running_loop(), self._context
        assert context is not None
        try:
            for _ in range(BACKLOG):
                accepted, address = listener.accept()
                connection: Connection = self.config.http_protocol_class(  # type: ignore[assignment, call-arg]
                    config=self.config, server_state=self.server_state, app_state=self.lifespan.state
                )
                handshake = loop.create_task(connection.secure(accepted, address[0], context))
                self._handshakes.add(handshake)
                handshake.add_done_callback(self._handshakes.discard)
        except (BlockingIOError, ConnectionAbortedError):
            pass
        except OSError as error:
            # There are too many open files. The listener stays readable, so asking again at once would be a busy loop.
            log.error("no connection can be accepted for a second: %s", error)
            loop.remove_reader(listener)
            loop.call_later(1.0, self._listen, listener)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGTERM and SIGINT while the server runs, and do not raise them again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        taken = (signal.SIGTERM, signal.SIGINT)
        for number in taken:
            loop.add_signal_handler(number, self.end)
        try:
            yield
        finally:
            for number in taken:
                loop.remove_signal_handler(number)

    def end(self) -> None:
        """Stop listening, let open requests end, and close the crawls. A second call does not wait for requests."""
        self._site.end()
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True


def _self_signed(options: Options, folder: Path, say: Callable[[str], object]) -> Options:
    if options.cert is not None:
        raise ParameterError("give a certificate, or --self-signed, and not both")
    try:
        from inlink.server import selfsigned
    except ImportError:
        raise MissingExtraError(
            "--self-signed needs cryptography: install it with pip install 'inlink[server]'"
        ) from None
    names = [name for name in (options.host, *options.names) if name not in ("0.0.0.0", "::")]
    cert, key = selfsigned.make(folder, names)
    say(f"clients trust this server if INLINK_CA names a copy of {cert}")
    return replace(options, cert=cert, key=key)


def _tls(options: Options) -> ssl.SSLContext | None:
    if options.cert is None:
        if options.key is not None or options.client_ca is not None:
            raise ParameterError("a key or a client's CA needs a certificate: give --tls-cert too")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.cert, options.key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"{options.cert}: no certificate and key for TLS ({error}): give both as PEM"
        ) from None
    if options.client_ca is not None:
        try:
            context.load_verify_locations(options.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"{options.client_ca}: no CA's certificate ({error}): give it as PEM") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def listening(host: str, port: int) -> socket.socket:
    """A socket that a server can listen on.

    Raises
    ------
    inlink.errors.OutputError
        If the address cannot be used.
    """
    with contextlib.ExitStack() as stack:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit it. Without it a reply's body waits 40 ms for the acknowledgement of its head.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            listener.bind((host, port))
        except (OSError, OverflowError) as error:
            said = getattr(error, "strerror", None) or error
            raise OutputError(f"{host} port {port}: {said}: choose another --host or --port") from None
        stack.pop_all()
        return listener
