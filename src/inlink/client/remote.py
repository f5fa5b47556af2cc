"""A crawl on a server, for programs and commands, with the methods of a crawl's desk and view.

The client numbers its requests, renews its tasks, and begins another session if the server has ended its own.
"""

import itertools
import logging
import math
import os
import secrets
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast
from urllib.parse import quote

import msgspec

from inlink.base.declare import keywords
from inlink.base.table import counted, printable
from inlink.client.batches import answer_batches, seed_batches, sitemap_batches
from inlink.client.channel import AwayError, Channel
from inlink.crawl.arguments import HostLimits, argument, checked_limits, checked_states, host_name
from inlink.crawl.questions.source import unknown
from inlink.crawl.settings import as_data, changed, from_data
from inlink.crawl.view import QUESTIONS, CrawlView
from inlink.errors import InlinkError, ParameterError, SessionError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.settings import GROUPS, Settings
from inlink.protocol import (
    OWNER,
    Answer,
    AnyLink,
    Ask,
    Begun,
    Changed,
    Hello,
    HostDelay,
    Receipt,
    Receipts,
    Seeded,
    ShardOf,
    Tasks,
)

A = TypeVar("A")
P = ParamSpec("P")

log = logging.getLogger("inlink.client")

LONGEST_WAIT = 20.0
"""Maximum number of seconds for which a server lets a request for tasks wait."""

SILENT_AFTER = 120.0
"""Seconds without a request after which a session ends."""

FIGHT_SECONDS = 600.0
"""If two sessions in a row end within this time although the spider sends requests, another spider has its name."""

LONGEST_OWNER = 119
"""Maximum number of bytes of a name made here. A server takes 200, with the name of the client's token in front."""

_serial = itertools.count(1)


def own_name(name: str = OWNER) -> str:
    """Make an owner's name that no other spider has: it contains the machine, the process, and a number."""
    end = f"@{printable(socket.gethostname())[:60]}:{os.getpid()}.{next(_serial)}{secrets.token_hex(2)}"
    return printable(name).encode()[: LONGEST_OWNER - len(end.encode())].decode("utf-8", "ignore") + end


@dataclass
class _Life:
    """One session: its number, the ids of its last requests, and its open leases."""

    number: int
    begun: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    asked: int = 0
    reported: int = 0
    leases: set[int] = field(default_factory=set)


def _asked(method: Callable[Concatenate[CrawlView, P], A]) -> "Callable[Concatenate[RemoteView, P], A]":
    """Make the method that asks a question to a view."""
    question = QUESTIONS[method.__name__]

    def ask(self: "RemoteView", /, *values: P.args, **named: P.kwargs) -> A:
        return cast(A, self.ask(method.__name__, question.arguments(*values, **named)))

    return update_wrapper(ask, method)


class RemoteView(ABC):
    """The methods of :class:`inlink.CrawlView`, for a crawl on one server or on several."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL of the crawl, or the URLs of its shards."""

    @abstractmethod
    def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Ask a view's question by its name."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    def __repr__(self) -> str:
        return f"<crawl at {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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


class RemoteCrawl(RemoteView):
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
        self._hello = Hello(owner or own_name(), silent_after, rejoin)
        self._renewing = renewing
        self._lock, self._asking, self._telling = threading.RLock(), threading.Lock(), threading.Lock()
        self._life: _Life | None = None
        self._lost: set[int] = set()
        self._taken = False
        self._over = threading.Event()

    @property
    def url(self) -> str:
        """The URL of the crawl."""
        return self._channel.place.url

    @property
    def is_away(self) -> bool:
        """Whether the server is away, and requests are being repeated."""
        return self._channel.is_away

    def close(self) -> None:
        """Give back the unanswered tasks, and close the connections. If the server is away, the tasks are lost."""
        self._over.set()
        life, self._life = self._life, None
        if life is not None:
            try:
                self._channel.call("DELETE", f"sessions/{life.number}", Changed, at_once=True)
            except SessionError:
                pass
            except AwayError as error:
                lost = counted(len(life.leases), "task was", "tasks were")
                log.warning("%s not given back, to be handed out again later: %s", lost, error)
        self.leave()

    def leave(self) -> None:
        """Close the connections without ending the session or giving back its tasks."""
        self._over.set()
        self._channel.close()

    # -- for spiders --------------------------------------------------------------------------------------------------

    def begin(self, *, at_once: bool = False) -> Begun:
        """Begin the session; return the server's data on the session and on the crawl's settings.

        With ``at_once``, a server that is away is an error at once.
        """
        with self._lock:
            begun = self._channel.call("POST", "sessions", Begun, self._hello, at_once=at_once)
            first, self._life = self._life is None, _Life(begun.session.number)
            if first and self._renewing:
                period = min(begun.session.lease_seconds, begun.session.silent_after or SILENT_AFTER) / 3
                threading.Thread(
                    target=self._renew, args=(period,), name="inlink-renewing", daemon=True
                ).start()
            return begun

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
            found = self._next(argument("count", count), min(wait, LONGEST_WAIT), lost)
            is_end = found.due_in is None and not (found.out_elsewhere or found.paused)
            if found.tasks or is_end or wait <= LONGEST_WAIT:
                return found
            wait -= LONGEST_WAIT

    def report(self, answers: Iterable[Answer]) -> list[Receipt]:
        """Answer for tasks: see :meth:`inlink.crawl.desk.Desk.report`.

        Answers for tasks of a session that has ended are dropped, and the log says so.
        """
        receipts: list[Receipt] = []
        with self._telling:
            for part, encoded in answer_batches(list(answers)):
                receipts += self._report(part, encoded)
        return receipts

    def split(self, answers: Sequence[Answer]) -> list[list[int]]:
        """The places of answers, by report: all are reported together."""
        return [list(range(len(answers)))]

    def seed(self, urls: Iterable[AnyLink], *, at_once: bool = False) -> Seeded:
        """Add URLs: see :meth:`inlink.Crawl.seed`. Return the numbers of new URLs, and of refused URLs by reason.

        With ``at_once``, a server that is away is an error at once.
        """
        return self._add("seeds", b'{"urls":%s}', seed_batches(urls), at_once)

    def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> Seeded:
        """Take in a sitemap's entries: see :meth:`inlink.Crawl.sitemap`. Return numbers of URLs, as :meth:`seed`."""
        return self._add("sitemap", b'{"entries":%s}', sitemap_batches(entries))

    def _add(self, path: str, body: bytes, batches: Iterable[bytes], at_once: bool = False) -> Seeded:
        new, refused = 0, Counter[str]()
        # All batches are checked before the first is sent.
        for batch in list(batches):
            added = self._channel.call("POST", path, Seeded, body % batch, at_once=at_once)
            new += added.new
            refused.update(added.refused)
        return Seeded(new, dict(refused))

    # -- the session --------------------------------------------------------------------------------------------------

    def _next(self, count: int, wait: float, lost: bool) -> Tasks:
        with self._asking:
            while True:
                life = self._now()
                # The id stays the same until a reply has tasks, because a reply that was lost may have had tasks.
                ask = Ask(life.number, count, wait, self._id(life.asked), lost)
                try:
                    found = self._channel.call("POST", "next", Tasks, ask, wait=wait)
                except SessionError as error:
                    self._again(life, error)
                    continue
                life.heard = time.monotonic()
                if found.tasks:
                    life.asked += 1
                    life.leases |= {task.lease for task in found.tasks}
                return found

    def _now(self) -> _Life:
        with self._lock:
            if self._life is None:
                self.begin()
            assert self._life is not None
            return self._life

    def _id(self, last: int) -> int:
        """The id of the next request; 0 in a session that others have begun, because their ids are not known here."""
        return 0 if self._hello.rejoin else last + 1

    def _report(self, answers: Sequence[Answer], encoded: Sequence[bytes]) -> list[Receipt]:
        while True:
            life = self._now()
            mine = [
                k
                for k, answer in enumerate(answers)
                if isinstance(answer, HostDelay) or answer.lease not in self._lost
            ]
            found: list[Receipt] = []
            if mine:
                body = b'{"session":%d,"request":%d,"answers":[%s]}' % (
                    life.number,
                    self._id(life.reported),
                    b",".join(encoded[k] for k in mine),
                )
                try:
                    found = self._channel.call("POST", "answers", Receipts, body).receipts
                except SessionError as error:
                    self._again(life, error)
                    continue
                life.reported += 1
                life.heard = time.monotonic()
            break
        receipts = [Receipt(False)] * len(answers)
        for k, receipt in zip(mine, found, strict=True):
            receipts[k] = receipt
            answer = answers[k]
            if not isinstance(answer, HostDelay):
                life.leases.discard(answer.lease)
            if receipt.task is not None:
                life.leases.add(receipt.task.lease)
        if len(mine) < len(answers):
            self._lost -= {answer.lease for answer in answers if not isinstance(answer, HostDelay)}
            log.warning(
                "dropped %s for tasks of the session that ended: their pages are fetched again",
                counted(len(answers) - len(mine), "answer"),
            )
        return receipts

    def _again(self, life: _Life, error: SessionError) -> None:
        """Begin a new session after the server has ended this one."""
        with self._lock:
            if self._life is not life:
                return
            now = time.monotonic()
            is_silent = now - life.heard >= self._hello.silent_after
            if self._taken and not is_silent and now - life.begun < FIGHT_SECONDS:
                raise SessionError(
                    f"{self.url}: another spider works under the name {self._hello.owner!r}: give each its own "
                    "by INLINK_OWNER"
                ) from None
            self._taken = not is_silent
            self._lost |= life.leases
            begun = self.begin()
            log.warning(
                "%s; session %d goes on without %s, to be handed out again later",
                error,
                begun.session.number,
                counted(len(life.leases), "lost task"),
            )

    def _renew(self, period: float) -> None:
        while not self._over.wait(period):
            life = self._life
            if life is None:
                continue
            try:
                self._channel.call("POST", f"sessions/{life.number}", Changed, at_once=True)
                life.heard = time.monotonic()
            except InlinkError:
                # The spider meets the same error in its next call.
                continue

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

    def ask(self, name: str, arguments: Mapping[str, Any], *, at_once: bool = False) -> Any:
        """Ask a view's question by its name. With ``at_once``, a server that is away is an error at once."""
        question = QUESTIONS[name]
        try:
            query = question.sent(**arguments)
            return self._channel.call("GET", question.path, question.answer, query=query, at_once=at_once)
        except UnknownNodeError:
            if question.may_be_none:
                return None
            raise

    def shard(self, *, at_once: bool = False) -> ShardOf:
        """Which shard of a crawl this is. With ``at_once``, a server that is away is an error at once.

        Raises
        ------
        inlink.errors.FolderError
            If it is no shard.
        """
        return self._channel.call("GET", "shard", ShardOf, at_once=at_once)
