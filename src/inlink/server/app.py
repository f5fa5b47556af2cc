"""The ASGI application of a server: its routes, and its shutdown."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from inlink.server import admin, aduana, health, readers, spiders
from inlink.server.endpoints import Endpoint, Plain
from inlink.server.guard import Guard, send_refusal
from inlink.server.openapi import document
from inlink.server.people import PAGES
from inlink.server.site import Site

ENDPOINTS: tuple[Endpoint, ...] = (
    *spiders.ENDPOINTS.all,
    *readers.ENDPOINTS.all,
    *admin.ENDPOINTS.all,
    *aduana.ENDPOINTS.all,
    *health.ENDPOINTS.all,
)
"""All endpoints, in the order of the OpenAPI document."""


async def openapi() -> Plain:
    """The OpenAPI document of this server."""
    return Plain(document(ENDPOINTS), b"application/json")


class _ByMethod:
    """The endpoints of one path."""

    def __init__(self, site: Site, endpoints: Iterable[Endpoint]) -> None:
        self._site = site
        self._by_method = {endpoint.method: endpoint for endpoint in endpoints}
        self._allowed = ", ".join(sorted(self._by_method)).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request by its method."""
        endpoint = self._by_method.get(scope["method"])
        if endpoint is None:
            await send_refusal(
                send,
                405,
                f"{scope['method'][:20]} is not possible here: use {self._allowed.decode()}",
                "",
                [(b"allow", self._allowed)],
            )
            return
        await endpoint(self._site, scope, receive, send)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    await send_refusal(send, 404, f"there is nothing at {scope['path'][:200]!r}: see /openapi.json")


def application(site: Site, names: Iterable[str] = ()) -> ASGIApp:
    """The application of a server.

    Parameters
    ----------
    site : Site
        The open site. The caller closes it.
    names : iterable of str
        Host names that requests may use for the server.
    """
    endpoints = [*ENDPOINTS, Endpoint("GET", "/openapi.json", None, openapi, 200, {}), *PAGES.all]
    paths = dict.fromkeys(endpoint.path for endpoint in endpoints)
    routes = [
        Route(
            path, _ByMethod(site, [endpoint for endpoint in endpoints if endpoint.path == path]), methods=None
        )
        for path in paths
    ]

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        yield
        await site.close()

    # The router alone: Starlette's own handling of errors would cost a third as much again.
    router = Router(routes, redirect_slashes=False, default=_nowhere, lifespan=lifespan)
    return Guard(router, names)
