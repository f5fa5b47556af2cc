"""A crawl on a server, for programs and commands, with the methods of a crawl's desk and view."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast
from urllib.parse import quote

import msgspec

from inlink.base.declare import keywords
from inlink.client.batches import seed_batches, sitemap_batches
from inlink.client.channel import Channel
from inlink.client.session import LONGEST_WAIT, SILENT_AFTER, RemoteSession, own_name
from inlink.crawl.arguments import HostLimits, argument, checked_limits, checked_states, host_name
from inlink.crawl.questions.source import unknown
from inlink.crawl.settings import as_data, changed, from_data
from inlink.crawl.view import QUESTIONS, CrawlView
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.settings import GROUPS, Settings
from inlink.protocol import Answer, AnyLink, Begun, Changed, Receipt, Seeded, Tasks

__all__ = ["RemoteCrawl", "connect"]

A = TypeVar("A")
P = ParamSpec("P")


def _asked(method: Callable[Concatenate[CrawlView, P], A]) -> "Callable[Concatenate[RemoteCrawl, P], A]":
    """Make the method that asks the server a question to a view."""
    question = QUESTIONS[method.__name__]

    def ask(self: "RemoteCrawl", /, *values: P.args, **named: P.kwargs) -> A:
        try:
            query = question.sent(*values, **named)
            return cast(A, self._channel.call("GET", question.path, question.answer, query=query))
        except UnknownNodeError:
            if question.may_be_none:
                return cast(A, None)
            raise

    return update_wrapper(ask, method)


class RemoteCrawl:
    """A crawl on a server: the methods of :class:`inlink.CrawlView`, and those by which spiders and operators work.

    It can be used by several threads, and as a context manager. The session of a spider begins with the first call of
    :meth:`next` or :meth:`report`.

    Parameters
    ----------
    url : str
        URL of the crawl, which ``inlink serve`` prints.
    owner : str or None
        Owner of the session; None is a name that no other spider has.
    patience : float or None
        Seconds for which a call is repeated while the server is away; None is for ever.
    silent_after : float
        Seconds without a call after which the session ends.
    rejoin : bool
        Go on with the owner's session, if there is one, instead of a new one.
    renewing : bool
        Renew the session's tasks in a thread until the crawl is closed.
    """

    def __init__(
        self,
        url: str,
        owner: str | None = None,
        patience: float | None = 60.0,
        *,
        silent_after: float = SILENT_AFTER,
        rejoin: bool = False,
        renewing: bool = True,
    ) -> None:
        self._channel = Channel(url, patience)
        self._session = RemoteSession(
            self._channel, owner or own_name(), silent_after, rejoin=rejoin, renewing=renewing
        )

    @property
    def url(self) -> str:
        """The URL of the crawl."""
        return self._channel.place.url

    def __repr__(self) -> str:
        return f"<crawl at {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the unanswered tasks, and close the connections."""
        self._session.end()
        self.leave()

    def leave(self) -> None:
        """Close the connections without ending the session or giving back its tasks."""
        self._session.leave()
        self._channel.close()

    # -- for spiders --------------------------------------------------------------------------------------------------

    def begin(self, *, at_once: bool = False) -> Begun:
        """Begin the session; return the server's data on the session and on the crawl's settings.

        With ``at_once``, a server that is away is an error at once.
        """
        return self._session.begin(at_once=at_once)

    def next(self, count: int = 1, wait: float = 0.0, *, lost: bool = True) -> Tasks:
        """At most ``count`` tasks; the reply waits for up to ``wait`` seconds until there is one.

        Parameters
        ----------
        count : int
            1 … 1,000.
        wait : float
            Seconds.
        lost : bool
            Whether the session may get lost pages.
        """
        wait = float(argument("wait", wait))
        while True:
            found = self._session.next(argument("count", count), wait, lost=lost)
            is_end = found.due_in is None and not (found.out_elsewhere or found.paused)
            if found.tasks or is_end or wait <= LONGEST_WAIT:
                return found
            wait -= LONGEST_WAIT

    def report(self, answers: Iterable[Answer]) -> list[Receipt]:
        """Answer for tasks: see :meth:`inlink.crawl.desk.Desk.report`."""
        return self._session.report(answers)

    def seed(self, urls: Iterable[AnyLink]) -> Seeded:
        """Add URLs: see :meth:`inlink.Crawl.seed`. Return the numbers of new URLs, and of refused URLs by reason."""
        return self._add("seeds", b'{"urls":%s}', seed_batches(urls))

    def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> Seeded:
        """Take in a sitemap's entries: see :meth:`inlink.Crawl.sitemap`. Return numbers of URLs, as :meth:`seed`."""
        return self._add("sitemap", b'{"entries":%s}', sitemap_batches(entries))

    def _add(self, path: str, body: bytes, batches: Iterable[bytes]) -> Seeded:
        new, refused = 0, Counter[str]()
        # All batches are checked before the first is sent.
        for batch in list(batches):
            added = self._channel.call("POST", path, Seeded, body % batch)
            new += added.new
            refused.update(added.refused)
        return Seeded(new, dict(refused))

    # -- for operators ------------------------------------------------------------------------------------------------

    def pause(self) -> bool:
        """Stop handing out tasks until the crawl is resumed; return whether it is paused."""
        return self._channel.call("POST", "pause", dict[str, bool], {})["paused"]

    def resume(self) -> bool:
        """End a pause; return whether the crawl is paused."""
        return self._channel.call("POST", "resume", dict[str, bool], {})["paused"]

    def reload(self, *states: str) -> int:
        """Let pages of these states (failed, gone, excluded) wait again; without states, those that failed."""
        return self._channel.call("POST", "reload", Changed, {"states": checked_states(states)}).count

    def rerank(self) -> bool:
        """Start a new ranking; return whether a ranking is being computed."""
        return self._channel.call("POST", "rerank", dict[str, bool], {})["ranking"]

    @keywords(HostLimits, {})
    def set_host(self, host: str, **limits: Unpack[HostLimits]) -> HostState:
        """Set what holds for a host: see :meth:`inlink.Crawl.set_host`. Each value is a request of its own.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the crawl knows no such host.
        inlink.errors.ParameterError
            If nothing is given, or a value is outside its range. Then nothing has changed.
        """
        wishes = {
            name: {"pages" if name == "budget" else "seconds": None if value == math.inf else value}
            for name, value in checked_limits(limits).items()
        }
        place = f"hosts/{quote(host_name(host), safe='')}"
        if not wishes:
            raise ParameterError(f"give `block`, `delay` or `budget` for {host}")
        return [self._channel.call("PUT", f"{place}/{name}", HostState, wishes[name]) for name in wishes][-1]

    def change_settings(self, **given: Any) -> Settings:
        """Change settings of the crawl: see :meth:`inlink.Crawl.change_settings`. Returns those in force."""
        data = msgspec.to_builtins(as_data(changed(Settings(), given)))
        body = {
            name: {field: data[name][field] for field in value}
            if name in GROUPS and isinstance(value, Mapping)
            else data[name]
            for name, value in given.items()
        }
        return from_data(self._channel.call("PATCH", "settings", dict[str, Any], body))

    # -- looking ------------------------------------------------------------------------------------------------------

    def number(self, page: str | int) -> int:
        """See :meth:`inlink.CrawlView.number`."""
        found = self.page(page)
        if found is None:
            raise unknown(self.url, page)
        return found.id

    page = _asked(CrawlView.page)
    why = _asked(CrawlView.why)
    path = _asked(CrawlView.path)
    links = _asked(CrawlView.links)
    find = _asked(CrawlView.find)
    top = _asked(CrawlView.top)
    dump = _asked(CrawlView.dump)
    order = _asked(CrawlView.order)
    hosts = _asked(CrawlView.hosts)
    errors = _asked(CrawlView.errors)
    standing = _asked(CrawlView.standing)
    harvest = _asked(CrawlView.harvest)
    info = _asked(CrawlView.info)
    about = _asked(CrawlView.about)


def connect(url: str, owner: str | None = None, patience: float | None = 60.0) -> RemoteCrawl:
    """Return a crawl on a server, which ``inlink serve`` runs.

    The token comes from the environment: ``INLINK_TOKEN``, or the file that ``INLINK_TOKEN_FILE`` names. No request is
    sent before the first call of a method.

    Parameters
    ----------
    url : str
        The URL that ``inlink serve`` prints: ``http://127.0.0.1:8000/v1/crawls/mycrawl``.
    owner : str or None
        Name of the spider, for :meth:`RemoteCrawl.next`. None: a name that no other spider has.
    patience : float or None
        Seconds for which a call is repeated while the server is away; None is for ever.

    Raises
    ------
    inlink.errors.ParameterError
        If the URL is not that of a crawl, or a token would be sent to another machine without TLS.
    inlink.errors.InputError
        If a file that the environment names cannot be read.
    """
    return RemoteCrawl(url, owner, patience)
