"""The client of a crawl on a server. Each call runs in a thread, so that no call blocks the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from inlink.client.batches import seed_batches, sitemap_batches
from inlink.client.channel import Channel
from inlink.client.session import RemoteSession, own_name
from inlink.crawl.settings import from_data
from inlink.errors import ParameterError, ServerError
from inlink.frontier.settings import Settings
from inlink.protocol import Answer, AnyLink, Receipt, Seeded, Standing, Tasks

__all__ = ["ServerClient"]

T = TypeVar("T")


class ServerClient:
    """A crawl on a server, for one spider among others.

    While the server is away, calls wait until it is back. No answer is lost.

    Parameters
    ----------
    url : str
        URL of the crawl; see :class:`inlink.client.channel.Channel`.
    owner : str or None
        The spider's name, which owns the session. If the owner's previous session did not end, its tasks are lost.
        None: a name that no other spider has.
    **settings
        Must be empty, because the server decides the settings.

    Attributes
    ----------
    settings : Settings
        Settings of the crawl, once it is open.

    Raises
    ------
    inlink.errors.ParameterError
        If a setting is given, or the URL is not that of a crawl.
    """

    def __init__(self, url: str, owner: str | None = None, **settings: Any) -> None:
        if settings:
            raise ParameterError(
                f"{url}: the server decides the crawl's settings: remove {', '.join(sorted(settings))} here, or set "
                "it with `inlink serve --set`"
            )
        self.settings = Settings()
        self._channel = Channel(url)
        self._session = RemoteSession(self._channel, owner or own_name())

    async def open(self) -> str:
        """Begin a session; return one line about the crawl. Raise an error at once if the server cannot be reached."""
        begun = await _in_thread(lambda: self._session.begin(at_once=True))
        try:
            self.settings = from_data(begun.settings)
        except (TypeError, ValueError) as error:
            raise ServerError(
                f"{self._channel.place.url}: the crawl's settings are not known here ({error}): are client and server "
                "of the same version?"
            ) from None
        told = f"{self._channel.place.url}: {begun.told}"
        if begun.session.lost:
            told += (
                f"; the last session of {begun.session.owner!r} broke off: {begun.session.lost:,} of its tasks come "
                "back later"
            )
        return told

    async def seed(self, urls: Iterable[AnyLink]) -> int:
        """See :class:`inlink.client.spider.Client`."""
        bodies = [b'{"urls":%s}' % part for part in seed_batches(urls)]
        return await _in_thread(
            lambda: sum(self._channel.call("POST", "seeds", Seeded, body).new for body in bodies)
        )

    async def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        """See :class:`inlink.client.spider.Client`."""
        bodies = [b'{"entries":%s}' % part for part in sitemap_batches(entries)]
        return await _in_thread(
            lambda: sum(self._channel.call("POST", "sitemap", Seeded, body).new for body in bodies)
        )

    async def next(self, count: int, wait: float = 0.0) -> Tasks:
        """See :class:`inlink.client.spider.Client`."""
        return await _in_thread(lambda: self._session.next(count, wait))

    async def report(self, answers: Sequence[Answer]) -> list[Receipt]:
        """See :class:`inlink.client.spider.Client`."""
        return await _in_thread(lambda: self._session.report(answers))

    async def standing(self, hosts: int = 5) -> Standing:
        """See :class:`inlink.client.spider.Client`."""
        return await _in_thread(
            lambda: self._channel.call("GET", "standing", Standing, query={"hosts": hosts})
        )

    async def close(self) -> None:
        """See :class:`inlink.client.spider.Client`."""
        try:
            await _in_thread(self._session.end)
        finally:
            self._channel.close()


async def _in_thread(work: Callable[[], T]) -> T:
    """Call ``work`` in a daemon thread, which does not keep the process from ending as the threads of a pool do."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        # RuntimeError: the loop is closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name="inlink-server", daemon=True).start()
    return await future
