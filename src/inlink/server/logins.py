"""Logins of people: a browser sends its token once, and then has a cookie with a random number.

Logins are kept in memory, each with the digest of its token. They end when the token is removed, or when the server
ends.
"""

import asyncio
import secrets
import time
from collections import Counter
from http.cookies import CookieError, SimpleCookie

from starlette.types import Scope

from inlink.server.connection import peer_of
from inlink.server.guard import address_of, header
from inlink.server.keeper import BusyError
from inlink.server.tokens import Token, Tokens, digest

SECONDS = 12 * 3600.0
"""Seconds without a request after which a login ends."""

MOST_LOGINS = 1000
"""Maximum number of logins. Beyond it, the login that was used the longest ago ends."""

WRONG_SECONDS = 1.0
"""Seconds before a wrong token is refused."""

MOST_WRONG = 4
"""Maximum number of wrong tokens of a peer that wait at a time. It limits the number of attempts a second."""

MOST_WAITING = 1000
"""Maximum number of wrong tokens that wait at a time. Further ones are refused at once."""


class Logins:
    """The logins of a server's people.

    Attributes
    ----------
    waiting : Counter
        The number of wrong tokens that wait, by peer.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        # The digest of the token and the time of the last use, by the digest of the cookie.
        self._kept: dict[str, tuple[str, float]] = {}
        self.waiting: Counter[str] = Counter()

    async def begin(self, scope: Scope, text: str) -> bytes | None:
        """Return the ``Set-Cookie`` of a new login; None, after a delay, if there is no such token.

        Raises
        ------
        BusyError
            If too many wrong tokens of the same peer are waiting, or this one is wrong and too many wait in all. The
            connection ends with the refusal, and further ones of the peer wait.
        """
        peer = peer_of(address_of(scope))
        if self.waiting[peer] >= MOST_WRONG:
            scope["state"]["connection"].end_after_reply()
            raise BusyError("too many wrong tokens came from your address just now: try again in a second")
        token = self._tokens.with_text(text)
        if token is None:
            if self.waiting.total() >= MOST_WAITING:
                scope["state"]["connection"].end_after_reply()
                raise BusyError("too many wrong tokens came just now: try again in a second")
            self.waiting[peer] += 1
            try:
                await asyncio.sleep(WRONG_SECONDS)
            finally:
                self.waiting[peer] -= 1
                # Unary plus drops peers without a waiting token.
                self.waiting = +self.waiting
            return None
        cookie = secrets.token_urlsafe(32)
        if len(self._kept) >= MOST_LOGINS:
            del self._kept[min(self._kept, key=lambda place: self._kept[place][1])]
        self._kept[digest(cookie)] = (token.sha256, time.monotonic())
        return _set_cookie(scope, cookie, int(SECONDS))

    def end(self, scope: Scope) -> bytes:
        """End the login of a request; return the ``Set-Cookie`` that removes its cookie."""
        cookie = _cookie(scope)
        if cookie is not None:
            self._kept.pop(digest(cookie), None)
        return _set_cookie(scope, "", 0)

    def token(self, scope: Scope) -> Token | None:
        """The token with which a request's browser has logged in."""
        cookie = _cookie(scope)
        place = "" if cookie is None else digest(cookie)
        kept = self._kept.get(place)
        if kept is None:
            return None
        token, now = self._tokens.with_digest(kept[0]), time.monotonic()
        if token is None or now - kept[1] > SECONDS:
            del self._kept[place]
            return None
        self._kept[place] = (kept[0], now)
        return token


def _name(scope: Scope) -> str:
    """The cookie's name. It contains the port, because servers on other ports of this host get the cookie too."""
    port = (scope.get("server") or ("", 0))[1]
    return f"__Host-inlink-{port}" if scope["scheme"] == "https" else f"inlink-{port}"


def _cookie(scope: Scope) -> str | None:
    raw = header(scope, b"cookie")
    if raw is None:
        return None
    try:
        found = SimpleCookie(raw.decode("latin-1")).get(_name(scope))
    except CookieError:
        return None
    return None if found is None else found.value


def _set_cookie(scope: Scope, value: str, seconds: int) -> bytes:
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{_name(scope)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}".encode()
