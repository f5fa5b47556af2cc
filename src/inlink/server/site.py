"""A server: its crawls, the access to them, and counts of requests."""

import asyncio
import base64
import binascii
import contextlib
import logging
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.types import Scope

from inlink.errors import InputError, ParameterError, UnknownNodeError
from inlink.server.clientcrawls import ClientCrawls
from inlink.server.guard import StatusError, header
from inlink.server.keeper import BusyError, Keeper, warm_up
from inlink.server.logins import Logins
from inlink.server.overview import Overview
from inlink.server.shards import Peers
from inlink.server.snapshots import Snapshots
from inlink.server.tokens import ROLES, Role, Token, Tokens

log = logging.getLogger("inlink.server")

TOKENS_SECONDS = 1.0
"""Seconds after which a changed file of tokens is noticed."""

MOST_FILES = 1 << 16
"""Files and connections that a server may have open, if the system allows so many."""


class UnknownCrawlError(UnknownNodeError):
    """The server has no crawl of a name."""


class AccessError(StatusError):
    """A request without the necessary access: status 401 without a known token, 403 with one of a lower role."""


@dataclass(frozen=True)
class Caller:
    """The sender of a request.

    Parameters
    ----------
    scope : ASGI scope
    token : Token or None
    is_open : bool
        Whether no token is needed.
    """

    scope: Scope
    token: Token | None
    is_open: bool

    def may(self, role: Role, crawl: str | None) -> bool:
        """Return whether the caller may do what a role may, on a crawl."""
        return self.is_open or (self.token is not None and self.token.opens(role, crawl))

    def accepts(self, kind: bytes) -> bool:
        """Return whether the caller names a type of replies among those that it accepts."""
        return kind in (header(self.scope, b"accept") or b"")

    def role(self, crawl: str | None) -> Role | None:
        """The caller's role on a crawl; None if there is none."""
        return next((role for role in reversed(ROLES) if self.may(role, crawl)), None)


class Site:
    """A server.

    Parameters
    ----------
    tokens : Tokens
    open_without_token : bool
        Whether every caller may do everything as long as there is no token, as on loopback.
    clients : ClientCrawls or None
        The crawls that clients make and delete; None if they can do neither.

    Attributes
    ----------
    keepers : dict of str to Keeper
        The crawls by name. A change makes a new dict, so that others can iterate over the old dict.
    snapshots : dict of str to Snapshots
        The snapshots of each crawl.
    overviews : dict of str to Overview
        For each crawl that is a shard: the state of all shards.
    default : str or None
        The first crawl that the operator named; None if the operator named none.
    logins : Logins
    started : float
        Time of the start, from :func:`time.monotonic`.
    requests : Counter
        Number of requests by method, path in the table of endpoints, and status.
    seconds : dict
        Seconds of these requests, by method and path.
    ready : bool
        Whether the server takes new work.
    beside : list of coroutine functions
        Called to close the servers besides the HTTP server, before the crawls are closed.
    """

    def __init__(self, tokens: Tokens, open_without_token: bool, clients: ClientCrawls | None = None) -> None:
        self.tokens, self._open, self.clients = tokens, open_without_token, clients
        self.logins = Logins(tokens)
        self.keepers: dict[str, Keeper] = {}
        self.snapshots: dict[str, Snapshots] = {}
        self.overviews: dict[str, Overview] = {}
        self.started = time.monotonic()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.ready = False
        self.beside: list[Callable[[], Awaitable[None]]] = []
        self._checked_at = 0.0
        self.default: str | None = None
        self._settings: dict[str, Any] = {}
        self._changing = asyncio.Lock()

    async def open(self, folders: dict[str, Path], settings: dict[str, Any]) -> list[str]:
        """Open the crawls in ``folders``, and those of clients; return one line on each.

        Raises
        ------
        inlink.errors.InlinkError
            If a crawl cannot be opened, or two crawls have one name. Then the crawls that were opened are closed.
        """
        told = []
        self._settings, self.default = settings, next(iter(folders), None)
        if self.clients is not None:
            folders = named([*folders.values(), *map(self.clients.place, sorted(self.clients.names))])
        _allow_files()
        await asyncio.to_thread(warm_up)
        try:
            for name, folder in folders.items():
                told.append(f"{name}: {await self._open_crawl(name, folder)}")
        except BaseException:
            await self.close()
            raise
        self.ready = True
        return told

    async def _open_crawl(self, name: str, folder: Path) -> str:
        keeper = Keeper(name, folder, **self._settings)
        line = await keeper.open()
        self.keepers = self.keepers | {name: keeper}
        self.snapshots = self.snapshots | {name: Snapshots(keeper)}
        return line

    async def join(self, name: str, urls: Sequence[str]) -> None:
        """Let a crawl take in pages and ranks of the other shards, and show their state.

        Raises
        ------
        inlink.errors.ParameterError
            If a URL is not that of a crawl.
        """
        peers = Peers(self.keepers[name], urls)
        self.overviews[name] = Overview(self.snapshots[name], urls)
        self.beside += [peers.close, self.overviews[name].close]
        peers.start()

    async def make(self, name: str) -> Keeper:
        """Return the keeper of a crawl. Make the crawl if it does not exist and clients can make crawls.

        Raises
        ------
        inlink.errors.InlinkError
            If there is no crawl of that name, and it cannot be made.
        """
        if name in self.keepers or self.clients is None:
            return self.keeper(name)
        # A client that goes away must not leave a crawl that is open without a keeper.
        return await asyncio.shield(self._make(name, self.clients))

    async def _make(self, name: str, clients: ClientCrawls) -> Keeper:
        async with self._changing:
            if name not in self.keepers:
                folder = clients.place(name)
                if not self.ready:
                    raise BusyError("the server is shutting down: try again later")
                await self._open_crawl(name, folder)
                clients.names.add(name)
            return self.keepers[name]

    async def delete(self, name: str) -> int:
        """Delete a crawl that clients have made; return the number of its URLs.

        Raises
        ------
        inlink.errors.InlinkError
            If there is no such crawl, or its folder cannot be removed.
        """
        return await asyncio.shield(self._delete(name))

    async def _delete(self, name: str) -> int:
        async with self._changing:
            keeper = self.keeper(name)
            assert self.clients is not None
            count = 0 if keeper.fault else await keeper.run(lambda opened: opened.view.info().pages)
            self.keepers = {other: kept for other, kept in self.keepers.items() if other != name}
            self.snapshots = {other: kept for other, kept in self.snapshots.items() if other != name}
            await keeper.close()
            await asyncio.to_thread(self.clients.remove, name)
            return count

    def end(self) -> None:
        """Refuse new work, and end the waiting requests."""
        self.ready = False
        for keeper in self.keepers.values():
            keeper.end()

    async def close(self) -> None:
        """Close the crawls."""
        while self.beside:
            await self.beside.pop()()
        self.end()
        async with self._changing:
            for keeper in self.keepers.values():
                await keeper.close()

    @property
    def faults(self) -> dict[str, str]:
        """The faults of the crawls that cannot be used now, by name."""
        return {name: keeper.fault for name, keeper in self.keepers.items() if keeper.fault is not None}

    def keeper(self, name: str) -> Keeper:
        """The keeper of a crawl.

        Raises
        ------
        UnknownCrawlError
            If there is no crawl of that name.
        """
        if name not in self.keepers:
            there = f"; there are: {', '.join(self.keepers)}" if self.keepers else ""
            raise UnknownCrawlError(f"there is no crawl {name[:100]!r} on this server{there}")
        return self.keepers[name]

    def bearer(self, scope: Scope) -> Token | None:
        """The token of a request: a bearer token, the password of Basic authentication, or the token of a login."""
        sent = header(scope, b"authorization")
        if sent is None:
            return self.logins.token(scope)
        scheme, _, value = sent.strip().partition(b" ")
        text = value.strip()
        if scheme.lower() == b"basic":
            try:
                text = base64.b64decode(text, validate=True).partition(b":")[2]
            except binascii.Error:
                return None
        elif scheme.lower() != b"bearer":
            return None
        return self.tokens.with_text(text.decode("utf-8", "surrogateescape"))

    @property
    def is_open(self) -> bool:
        """True if no token is needed."""
        now = time.monotonic()
        if now - self._checked_at >= TOKENS_SECONDS:
            self._checked_at = now
            try:
                self.tokens.refresh()
            except InputError as error:
                # The caller has not shown a token yet, so only the log may name the file.
                log.error("%s; until then the tokens that were read before are in force", error)
        return self._open and not len(self.tokens)

    def caller(self, scope: Scope) -> Caller:
        """The sender of a request."""
        return Caller(scope, is_open=self.is_open, token=self.bearer(scope))

    def admit(self, scope: Scope, role: Role | None, crawl: str | None) -> None:
        """Let a request pass if its bearer may do what a role may, on a crawl.

        Raises
        ------
        AccessError
            If the caller may not.
        """
        if role is None or self.is_open:
            return
        token = self.bearer(scope)
        if token is None:
            raise AccessError(
                401,
                "this server requires a token: ask its operator for a token, which `inlink token add` makes",
            )
        if not token.opens(role, crawl):
            raise AccessError(
                403, f"the token {token.name!r} does not open this: it takes the role {role!r} here"
            )


def named(folders: list[Path]) -> dict[str, Path]:
    """Crawls by the names of their folders.

    Raises
    ------
    inlink.errors.ParameterError
        If two crawls have the same name, or a folder's name cannot be part of a path.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        name = folder.resolve().name
        if not name or not name.isprintable() or name.startswith("."):
            raise ParameterError(
                f"{folder}: a crawl has its folder's name, and this one cannot be part of a URL: rename the folder"
            )
        if name in found:
            raise ParameterError(
                f"{folder}: there is a crawl {name!r} already, {found[name]}: rename a folder"
            )
        found[name] = folder
    return found


def _allow_files() -> None:
    """Raise the soft limit of open files. A crawl needs about five, and many systems start with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
