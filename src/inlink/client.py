"""What a spider needs of a frontier, wherever that is: in a folder, or one day behind a server.

A spider asks for tasks, and answers for each of them with one of the answers below. :func:`connect` gives the client.
That of a folder, :class:`FolderClient`, gives the crawl to a thread of its own: a call never holds up the event loop.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from inlink.crawl import Crawl
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.intake import Link
from inlink.frontier.leases import Lease
from inlink.frontier.standing import Standing

__all__ = [
    "Answer",
    "Client",
    "Crawled",
    "Excluded",
    "Failed",
    "FolderClient",
    "HostDelay",
    "Redirected",
    "Released",
    "Task",
    "connect",
]

T = TypeVar("T")


class Task(msgspec.Struct, frozen=True):
    """A page to be fetched, by its lease.

    ``crawls`` is how often it was crawled before, ``failures`` how often it failed since; ``linked_from`` the URL of
    the page that made it known; ``carried`` what the link to it carried.
    """

    lease: int
    url: str
    depth: int
    crawls: int
    failures: int
    linked_from: str | None
    carried: bytes | None


class Crawled(msgspec.Struct):
    """A page was fetched: see :meth:`inlink.Crawl.crawled`. With an ``error``, it was so to no use."""

    lease: int
    links: list[Link] = []
    score: float = 0.0
    content_hash: bytes = b""
    status: int = 200
    redirected_to: str | None = None
    canonical_link: str | None = None
    noindex: bool = False
    nofollow: bool = False
    error: str | None = None


class Failed(msgspec.Struct):
    """A page could not be fetched: see :meth:`inlink.Crawl.failed`."""

    lease: int
    error: str
    status: int | None = None
    retry: bool | None = None
    retry_after: str | None = None


class Excluded(msgspec.Struct):
    """A page must not be fetched: see :meth:`inlink.Crawl.exclude`."""

    lease: int
    reason: str


class Redirected(msgspec.Struct):
    """A page redirects, and the target is to be fetched at once: see :meth:`inlink.Crawl.redirected`."""

    lease: int
    to: str
    carried: bytes | None = None
    again: bool = False


class Released(msgspec.Struct):
    """A page was not fetched, and waits again."""

    lease: int


class HostDelay(msgspec.Struct):
    """The host of a URL asks for seconds between two fetches: see :meth:`inlink.Crawl.host_delay`. Ends no lease."""

    url: str
    seconds: float


Answer = Crawled | Failed | Excluded | Redirected | Released | HostDelay


class Client(Protocol):
    """A frontier, as a spider sees it. Errors are those of :class:`inlink.Crawl`."""

    async def seed(self, urls: Iterable[Link]) -> int:
        """Make URLs known; returns how many are new."""

    async def next(self, count: int) -> tuple[list[Task], float | None]:
        """At most ``count`` tasks, and seconds until there may be more: None if nothing waits and nothing is out."""

    async def report(self, answers: Sequence[Answer]) -> list[Task | bool]:
        """What came of tasks: for each answer whether it counted, for a redirect the task that it leads to."""

    async def standing(self, hosts: int = 5) -> Standing:
        """How far the crawl has come."""

    async def close(self) -> None:
        """Let go; tasks that were not answered for are not lost."""


class FolderClient:
    """The frontier in a folder, for the one process that crawls there.

    Leases that a dead predecessor left behind are given back at once: nobody else can hold any.

    Parameters
    ----------
    folder : path-like
    **settings
        Of :class:`inlink.Crawl`.
    """

    def __init__(self, folder: str | os.PathLike[str], **settings: Any) -> None:
        self.folder, self._settings = Path(folder), settings
        self._thread = ThreadPoolExecutor(1, "inlink-crawl")
        self._leases: dict[int, Lease] = {}
        self._held: dict[int, int] = {}  # by page the lease that the spider has of it
        self._crawl: Crawl | None = None

    async def open(self) -> str:
        """Open the crawl; returns one line on what was found."""
        return await self._run(self._open)

    async def seed(self, urls: Iterable[Link]) -> int:
        """See :class:`Client`."""
        return await self._run(lambda crawl: crawl.seed(urls))

    async def next(self, count: int) -> tuple[list[Task], float | None]:
        """See :class:`Client`."""
        return await self._run(lambda crawl: self._next(crawl, count))

    async def report(self, answers: Sequence[Answer]) -> list[Task | bool]:
        """See :class:`Client`."""
        return await self._run(lambda crawl: [self._answer(crawl, answer) for answer in answers])

    async def standing(self, hosts: int = 5) -> Standing:
        """See :class:`Client`."""
        return await self._run(lambda crawl: crawl.standing(hosts))

    async def close(self) -> None:
        """See :class:`Client`."""
        try:
            if self._crawl is not None:
                await self._run(self._close)
        finally:
            self._thread.shutdown()

    async def _run(self, work: Callable[[Crawl], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._opened()))

    def _opened(self) -> Crawl:
        if self._crawl is None:
            self._crawl = Crawl(self.folder, **self._settings)
        return self._crawl

    def _open(self, crawl: Crawl) -> str:
        back = crawl.release_all()
        return crawl.recovered + (
            f"; {back:,} leases of a process that is gone were given back" if back else ""
        )

    def _close(self, crawl: Crawl) -> None:
        self._crawl = None
        try:
            crawl.release_all()
        finally:
            crawl.close()

    def _next(self, crawl: Crawl, count: int) -> tuple[list[Task], float | None]:
        tasks = []
        for lease in crawl.next(count):
            held = self._held.get(lease.page)
            if held is None:
                tasks.append(self._task(crawl, lease))
            else:  # it ran out while the spider is still busy with the page
                self._leases[held] = lease
        return tasks, crawl.due_in()

    def _task(self, crawl: Crawl, lease: Lease) -> Task:
        self._leases[lease.number] = lease
        self._held[lease.page] = lease.number
        return Task(
            lease.number,
            lease.url,
            lease.depth,
            lease.crawls,
            lease.failures,
            crawl.pages.linked_from(lease.page),
            lease.carried,
        )

    def _answer(self, crawl: Crawl, answer: Answer) -> Task | bool:
        if isinstance(answer, HostDelay):
            try:
                return crawl.host_delay(answer.url, answer.seconds)
            except UnknownNodeError:  # no page of it is known
                return False
        lease = self._leases.pop(answer.lease, None)
        if lease is None:
            return False
        if self._held.get(lease.page) == answer.lease:
            del self._held[lease.page]
        if isinstance(answer, Crawled):
            return self._crawled(crawl, lease, answer)
        if isinstance(answer, Failed):
            return crawl.failed(
                lease,
                answer.error,
                status=answer.status,
                retry=answer.retry,
                retry_after=answer.retry_after,
            )
        if isinstance(answer, Excluded):
            return crawl.exclude(lease, answer.reason)
        if isinstance(answer, Released):
            return crawl.release(lease)
        found = crawl.redirected(lease, answer.to, carried=answer.carried, again=answer.again)
        return False if found is None else self._task(crawl, found)

    def _crawled(self, crawl: Crawl, lease: Lease, answer: Crawled) -> bool:
        try:
            counted = crawl.crawled(
                lease,
                answer.links,
                score=answer.score,
                content_hash=answer.content_hash,
                status=answer.status,
                redirected_to=answer.redirected_to,
                canonical_link=answer.canonical_link,
                noindex=answer.noindex,
                nofollow=answer.nofollow,
            )
        except (
            ParameterError
        ) as error:  # a link that is none, or carries too much: the spider's fault, and told
            if not answer.links:
                raise
            return self._crawled(crawl, lease, msgspec.structs.replace(answer, links=[], error=str(error)))
        if counted and answer.error is not None:
            crawl.failed(lease.url, answer.error, status=answer.status, retry=False)
        return counted


async def connect(where: str, **settings: Any) -> tuple[Client, str]:
    """A client of the frontier that ``where`` names, and one line on what was found there.

    Raises
    ------
    inlink.errors.ParameterError
        If it is a URL: servers are not there yet.
    inlink.errors.InUseError
        If another process crawls in that folder.
    """
    if "://" in where:
        raise ParameterError(f"{where}: a crawl is a folder: servers cannot be asked yet")
    client = FolderClient(where, **settings)
    try:
        return client, await client.open()
    except BaseException:
        await client.close()
        raise
