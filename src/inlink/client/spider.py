"""The requests of a spider to a crawl, in a folder or on a server.

A spider asks for tasks and answers for each of them, in the types of :mod:`inlink.protocol`. :func:`connect` returns a
client.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from inlink.client.channel import is_url
from inlink.client.folder import FolderClient
from inlink.protocol import OWNER, Answer, AnyLink, Receipt, Standing, Tasks

if TYPE_CHECKING:
    from inlink.client.server import ServerClient


class Client(Protocol):
    """A spider's access to a crawl. Its methods raise the errors of :class:`inlink.Crawl`."""

    async def seed(self, urls: Iterable[AnyLink]) -> int:
        """Add URLs; return the number of new URLs."""

    async def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> int:
        """Take in a sitemap's entries: URL, lastmod, priority; return the number of new URLs."""

    async def next(self, count: int, wait: float = 0.0) -> Tasks:
        """Get at most ``count`` tasks. A server waits up to ``wait`` seconds for a task; a folder replies at once."""

    async def report(self, answers: Sequence[Answer]) -> list[Receipt]:
        """Report answers; return the outcome of each, in their order."""

    def split(self, answers: Sequence[Answer]) -> list[list[int]]:
        """The places of answers, by report. A report need not wait for another: each goes to a server of its own."""

    async def standing(self, hosts: int = 5) -> Standing:
        """The crawl's progress."""

    async def close(self) -> None:
        """Give back the unanswered tasks, and close the crawl."""


async def connect(
    where: str, *, owner: str | None = None, name: str = OWNER, **settings: Any
) -> "tuple[FolderClient | ServerClient, str]":
    """Return a client of the crawl that ``where`` names, and one line about the crawl.

    Parameters
    ----------
    where : str
        A folder, the URL of a crawl on a server, or the URLs of all its shards, separated by commas.
    owner : str or None
        Owner of the session. None: "spider" in a folder, which has one spider at a time; on a server a name that no
        other spider has, which begins with `name`. If the owner's previous session did not end, its tasks are lost.
    name : str
        The spider's name.
    **settings
        Settings of :class:`inlink.Crawl`. They must be empty for a server, because the server decides the settings.

    Raises
    ------
    inlink.errors.ParameterError
        If a setting is outside its range, or is given for a crawl on a server.
    inlink.errors.ServerError
        If the server cannot be reached, or refuses.
    inlink.errors.InUseError
        If another process crawls in that folder.
    """
    if is_url(where):
        from inlink.client.remote import own_name
        from inlink.client.server import ServerClient

        client: FolderClient | ServerClient = ServerClient(where, owner or own_name(name), **settings)
    else:
        client = FolderClient(where, owner or OWNER, **settings)
    try:
        return client, await client.open()
    except BaseException:
        await client.close()
        raise
