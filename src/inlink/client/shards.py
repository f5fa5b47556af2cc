"""A crawl that several servers share: a session with each of them, used as one.

Requests to the shards run beside each other, and no shard waits for another. A shard that is away costs its own tasks
only. The answers for them are repeated until it is back.

**Leases.** Shards number their leases independently. A lease here is ``number · n + place``, where ``n`` is the number
of shards and ``place`` is that of the shard in the list of URLs.

**The end.** A shard without tasks may get pages that another has just discovered. So the client looks at figures of all
shards: how many pages each has numbered, and how many numbers of each other shard it has looked through. It then asks
all shards for tasks. If none has a task, and no other session holds a task, it looks at the figures again. The crawl
has ended if the figures of both looks are equal and each shard has looked through all numbers of the others: no page
was under way between the two looks, and each shard was idle at a moment between them. A shard that is away may have
tasks, so the crawl has not ended.
"""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any, ParamSpec, Self, TypeVar

from msgspec.structs import replace

from inlink.base.table import counted
from inlink.client.channel import AwayError, Place
from inlink.client.remote import LONGEST_WAIT, RemoteCrawl, own_name
from inlink.crawl.arguments import argument
from inlink.crawl.intake import checked_answers, checked_entries
from inlink.crawl.links import listed, split_links
from inlink.crawl.settings import from_data
from inlink.errors import InlinkError, ParameterError
from inlink.frontier.rules import host_of
from inlink.protocol import (
    Answer,
    AnyLink,
    Begun,
    HostDelay,
    HostStanding,
    Link,
    Receipt,
    Seeded,
    ShardOf,
    Standing,
    Task,
    Tasks,
)
from inlink.urls.canonical import UrlRules, canonical
from inlink.urls.shards import owner_of

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("inlink.client")

PROMPT_SECONDS = 0.1
"""Seconds for which a request for tasks waits for a shard. The tasks of a later reply are handed out next time."""

LOOK_SECONDS = 10.0
"""Seconds within which shards must reply to be part of a standing."""

STUCK_SECONDS = 60.0
"""Seconds after which a warning says which shard does not take in the pages of another."""


@dataclass
class _Ask:
    """A request for tasks that is under way."""

    count: int
    reply: "Future[Tasks]"
    is_patient: bool
    """Whether the server may delay its reply."""
    began: float
    look: int
    """The number of looks at the figures of all shards before it was sent."""


class RemoteShards:
    """A crawl that several servers share: the methods of :class:`.remote.RemoteCrawl` by which spiders work.

    Parameters
    ----------
    urls : sequence of str
        The URLs of all shards, which ``inlink serve`` prints, in any order.
    owner : str or None
        Owner of the sessions; None is a name that no other spider has.
    patience : float or None
        Seconds for which a call is repeated while a shard is away; None is for ever.

    Attributes
    ----------
    shards : list of RemoteCrawl
        The shards, in the order of the URLs.

    Raises
    ------
    inlink.errors.ParameterError
        If a URL is not that of a crawl, or is given twice.
    """

    def __init__(self, urls: Sequence[str], owner: str | None = None, patience: float | None = 60.0) -> None:
        for url, count in Counter(Place(url).url for url in urls).items():
            if count > 1:
                raise ParameterError(f"{url} is given twice: give the URL of each shard once")
        owner = owner or own_name()
        self.shards = [RemoteCrawl(url, owner, patience) for url in urls]
        # The number of each shard that has answered, and its place in the list.
        self._numbers: dict[int, int] = {}
        self._url_rules: UrlRules | None = None
        self._lock, self._asking = Lock(), Lock()
        self._asks: dict[int, _Ask] = {}
        self._ready: deque[Task] = deque()
        self._first = self._looks = 0
        # The last figures of all shards, and the replies without tasks to requests that were sent after that look.
        self._before: list[ShardOf] | None = None
        self._idle: dict[int, Tasks] = {}
        self._idle_since: float | None = None

    @property
    def url(self) -> str:
        """The URLs of the shards, separated by commas."""
        return ",".join(shard.url for shard in self.shards)

    def __repr__(self) -> str:
        return f"<crawl at {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back the unanswered tasks, and close the connections. The tasks of a shard that is away are lost."""
        _results([spawn(shard.close) for shard in self.shards])

    # -- sessions -----------------------------------------------------------------------------------------------------

    def begin(self, *, at_once: bool = False) -> Begun:
        """Begin the sessions; return the data of the first shard that answers.

        With ``at_once``, it suffices if one shard answers. The sessions with the others begin when they are back.

        Raises
        ------
        inlink.errors.ParameterError
            If the URLs are not those of all shards of one crawl.
        """
        begun = [spawn(self._begin, k, at_once) for k in range(len(self.shards))]
        futures.wait(begun)
        faults = [fault for fault in (reply.exception() for reply in begun) if fault is not None]
        if len(faults) == len(begun) or not all(at_once and isinstance(fault, AwayError) for fault in faults):
            raise next((fault for fault in faults if not isinstance(fault, AwayError)), faults[0])
        replies = [reply.result() for reply in begun if reply.exception() is None]
        session = replace(replies[0].session, lost=sum(reply.session.lost for reply in replies))
        return replace(replies[0], session=session)

    def _begin(self, place: int, at_once: bool = False) -> Begun:
        begun = self.shards[place].begin(at_once=at_once)
        self._note(place, begun)
        return begun

    def _note(self, place: int, begun: Begun) -> None:
        """Check that the shard at a place of the list is a shard of this crawl, and note its number."""
        url, count = self.shards[place].url, len(self.shards)
        settings = from_data(begun.settings)
        part = None if settings.rules is None else settings.rules.part
        if part is None:
            raise ParameterError(
                f"{url} is not a shard: give one URL, or serve each of the {count} crawls with --shard K/{count}"
            )
        if part.count != count:
            raise ParameterError(
                f"{url} is shard {part.number}/{part.count}, and the list has {counted(count, 'URL')}: "
                f"give the URLs of all {counted(part.count, 'shard')}"
            )
        with self._lock:
            other = self._numbers.setdefault(part.number, place)
            self._url_rules = settings.url_rules
        if other != place:
            raise ParameterError(
                f"{url} and {self.shards[other].url} are both shard {part.number}/{count}: "
                "give the URL of each shard once"
            )

    def _is_noted(self, place: int) -> bool:
        return place in self._numbers.values()

    # -- tasks --------------------------------------------------------------------------------------------------------

    def next(self, count: int = 1, wait: float = 0.0) -> Tasks:
        """At most ``count`` tasks, of all shards in turn; wait for up to ``wait`` seconds until there is a task.

        Raises
        ------
        inlink.errors.ServerError
            If no shard can be reached, and the patience has ended.
        """
        count, wait = argument("count", count), min(float(argument("wait", wait)), LONGEST_WAIT)
        with self._asking:
            until = time.monotonic() + (wait or PROMPT_SECONDS)
            replies: dict[int, Tasks] = {}
            # Shards that may have tasks beyond those that they were asked for.
            rich = set(range(len(self.shards)))
            while True:
                self._collect(replies, rich)
                now = time.monotonic()
                self._ask(count - len(self._ready), wait, rich, now)
                pending = [
                    ask.reply
                    for ask in self._asks.values()
                    if wait or not (ask.is_patient or ask.began + PROMPT_SECONDS <= now)
                ]
                is_enough = len(self._ready) >= (1 if wait else count)
                if is_enough or not pending or now >= until:
                    break
                futures.wait(pending, until - now, futures.FIRST_COMPLETED)
            tasks = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
            return self._reply(tasks, replies)

    def _ask(self, room: int, wait: float, rich: set[int], now: float) -> None:
        """Ask shards for tasks, each for an equal share of the room; begin at another shard each time."""
        n = len(self.shards)
        room -= sum(ask.count for ask in self._asks.values() if ask.began + PROMPT_SECONDS > now)
        places = [
            place % n
            for place in range(self._first, self._first + n)
            if place % n in rich and place % n not in self._asks
        ]
        if room <= 0 or not places:
            return
        self._first = (self._first + 1) % n
        for k, place in enumerate(places):
            share = room // len(places) + (k < room % len(places)) or int(wait > 0)
            if share:
                rich.discard(place)
                reply = spawn(self._next, place, share, wait)
                self._asks[place] = _Ask(share, reply, wait > 0, now, self._looks)

    def _next(self, place: int, count: int, wait: float) -> Tasks:
        if not self._is_noted(place):
            self._begin(place)
        return self.shards[place].next(min(count, 1000), wait)

    def _collect(self, replies: dict[int, Tasks], rich: set[int]) -> None:
        """Take the replies that have come."""
        for place, ask in list(self._asks.items()):
            if not ask.reply.done():
                continue
            del self._asks[place]
            try:
                found = ask.reply.result()
            except AwayError:
                # With patience for ever, this comes only after close().
                if all(shard.is_away for shard in self.shards):
                    raise
                continue
            self._ready += [self._task(place, task) for task in found.tasks]
            replies[place] = found
            if len(found.tasks) == ask.count:
                rich.add(place)
            if found.tasks or found.out_elsewhere or found.paused:
                self._before, self._idle, self._idle_since = None, {}, None
            elif ask.look == self._looks:
                self._idle[place] = found

    def _reply(self, tasks: list[Task], replies: dict[int, Tasks]) -> Tasks:
        latest = {**self._idle, **replies}.values()
        due = [reply.due_in for reply in latest if reply.due_in is not None]
        elsewhere = sum(reply.out_elsewhere for reply in replies.values())
        if len(self._idle) < len(self.shards) or not self._is_over():
            # Another session, or the exchange, may bring tasks. The reply of a slow shard may come at any time.
            elsewhere += 1
            due += [PROMPT_SECONDS for place in self._asks if not self.shards[place].is_away]
            due += [0.0] * bool(self._ready)
        return Tasks(
            tasks, min(due, default=None), elsewhere, any(reply.paused for reply in replies.values())
        )

    def _is_over(self) -> bool:
        """Whether nothing is under way between the shards, all of which were idle after the last look."""
        before, self._before, self._idle = self._before, None, {}
        self._looks += 1
        try:
            now = _results([spawn(shard.shard) for shard in self.shards])
        except InlinkError:
            return False
        self._before = now
        late = [
            (shard.number, other.number)
            for shard in now
            for other in now
            if other is not shard and shard.ends[other.number - 1] < other.pages
        ]
        if late:
            self._tell_stuck(*late[0])
        return not late and before == now

    def _tell_stuck(self, shard: int, other: int) -> None:
        now = time.monotonic()
        if self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since > STUCK_SECONDS:
            self._idle_since = now
            log.warning(
                "shard %d has not taken in all pages that shard %d has discovered: is shard %d served with "
                "--shard-url for each other shard? Its log may say why",
                *(shard, other, shard),
            )

    def _task(self, place: int, task: Task) -> Task:
        return replace(task, lease=task.lease * len(self.shards) + place)

    # -- answers ------------------------------------------------------------------------------------------------------

    def split(self, answers: Sequence[Answer]) -> list[list[int]]:
        """The places of answers, by shard. A report for one shard does not wait for another shard."""
        return list(self._by_shard(answers).values())

    def report(self, answers: Iterable[Answer]) -> list[Receipt]:
        """Answer for tasks, each to its shard; return the outcomes after all shards have replied.

        Answers for tasks of a session that has ended are dropped, and the log says so.
        """
        listed_answers = list(checked_answers(list(answers)))
        parts = self._by_shard(listed_answers)
        reports = [
            spawn(self._report, place, [listed_answers[k] for k in places]) for place, places in parts.items()
        ]
        receipts = [Receipt(False)] * len(listed_answers)
        for places, outcomes in zip(parts.values(), _results(reports), strict=True):
            for k, receipt in zip(places, outcomes, strict=True):
                receipts[k] = receipt
        return receipts

    def _by_shard(self, answers: Sequence[Answer]) -> dict[int, list[int]]:
        parts: dict[int, list[int]] = {}
        for k, answer in enumerate(answers):
            parts.setdefault(self._place_of(answer), []).append(k)
        return parts

    def _place_of(self, answer: Answer) -> int:
        if isinstance(answer, HostDelay):
            return self._owner(answer.url) or 0
        return answer.lease % len(self.shards)

    def _report(self, place: int, answers: list[Answer]) -> list[Receipt]:
        n = len(self.shards)
        local = [
            answer if isinstance(answer, HostDelay) else replace(answer, lease=answer.lease // n)
            for answer in answers
        ]
        return [
            receipt if receipt.task is None else replace(receipt, task=self._task(place, receipt.task))
            for receipt in self.shards[place].report(local)
        ]

    # -- seeds --------------------------------------------------------------------------------------------------------

    def seed(self, urls: Iterable[AnyLink]) -> Seeded:
        """Add URLs, each at its owner. While the owner is away, another shard takes them, and hands them on later."""
        parts: dict[int, list[AnyLink]] = {}
        links = listed(urls)
        split_links(links)
        for link in links:
            place = self._owner(
                link.url if isinstance(link, Link) else link if isinstance(link, str) else link[0]
            )
            if place is None or self.shards[place].is_away:
                place = next((k for k, shard in enumerate(self.shards) if not shard.is_away), place or 0)
            parts.setdefault(place, []).append(link)
        return self._seeded([spawn(self.shards[k].seed, part) for k, part in parts.items()])

    def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> Seeded:
        """Take in a sitemap's entries, each at its owner, because only the owner can crawl a changed page again."""
        parts: dict[int, list[tuple[str, float | None, float | None]]] = {}
        for entry in checked_entries(listed(entries, "entries")):
            parts.setdefault(self._owner(entry[0]) or 0, []).append(entry)
        return self._seeded([spawn(self.shards[k].sitemap, part) for k, part in parts.items()])

    def _seeded(self, replies: "list[Future[Seeded]]") -> Seeded:
        new, refused = 0, Counter[str]()
        for reply in _results(replies):
            new += reply.new
            refused.update(reply.refused)
        return Seeded(new, dict(refused))

    def _owner(self, url: str) -> int | None:
        """The place of the shard that owns a URL; None if the URL is invalid, or the shard has never answered."""
        form = canonical(url, None, self._url_rules)
        return None if form is None else self._numbers.get(owner_of(host_of(form), len(self.shards)))

    # -- looking ------------------------------------------------------------------------------------------------------

    def standing(self, hosts: int = 5) -> Standing:
        """The sum of the shards that answer. A page counts as known at each shard that knows it."""
        looks = [spawn(shard.standing, hosts) for shard in self.shards if not shard.is_away]
        done = futures.wait(looks, LOOK_SECONDS).done
        parts = [look.result() for look in looks if look in done]

        def most(rows: Iterator[HostStanding]) -> list[HostStanding]:
            return sorted(rows, key=lambda row: -row.waiting)[:hosts]

        return Standing(
            sum(part.known for part in parts),
            sum(part.crawled for part in parts),
            sum(part.waiting for part in parts),
            sum(part.leased for part in parts),
            dict(sum((Counter(part.states) for part in parts), Counter[str]())),
            None,
            most(row for part in parts for row in part.hosts),
            sum(part.planned for part in parts),
            [row for part in parts for row in part.later],
        )


def spawn(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> "Future[T]":
    """Call ``work`` in a daemon thread, which does not keep the process from ending as the threads of a pool do."""
    future: Future[T] = Future()
    # A caller that no longer waits does not cancel the work.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work(*arguments, **named))
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="inlink-server", daemon=True).start()
    return future


def _results(replies: "Sequence[Future[Any]]") -> list[Any]:
    """Wait for all replies; return their results."""
    futures.wait(replies)
    return [reply.result() for reply in replies]
