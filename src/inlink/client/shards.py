"""A crawl that several servers share, with the methods of a crawl on one server.

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
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar, Unpack, cast

from msgspec.structs import replace

from inlink.base.declare import keywords
from inlink.base.table import counted
from inlink.client.channel import AwayError
from inlink.client.remote import LONGEST_WAIT, RemoteCrawl, RemoteView, own_name
from inlink.crawl.arguments import HostLimits, argument, host_name
from inlink.crawl.intake import checked_answers, checked_entries
from inlink.crawl.links import listed, split_links
from inlink.crawl.view import QUESTIONS
from inlink.errors import FolderError, InlinkError, ParameterError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.rules import host_of
from inlink.frontier.settings import Settings
from inlink.protocol import Answer, AnyLink, Begun, HostDelay, Link, Receipt, Seeded, ShardOf, Task, Tasks
from inlink.urls.canonical import canonical
from inlink.urls.shards import owner_of

K = TypeVar("K")
P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("inlink.client")

PROMPT_SECONDS = 0.1
"""Seconds for which a request for tasks waits for a shard. The tasks of a later reply are handed out next time."""

IDLE_SECONDS = 0.5
"""Seconds after which idle shards are asked again, which may get pages of each other."""

LOOK_SECONDS = 10.0
"""Seconds within which shards must answer a question that can do without some of them."""

MOST_TASKS = 1000
"""Maximum number of tasks that a shard hands out at once."""

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


class _Question:
    """A question to all shards: see :class:`inlink.crawl.questions.whole.Shards`."""

    def __init__(self, crawl: "RemoteShards") -> None:
        self._crawl, self.count = crawl, len(crawl.shards)
        self.missing: dict[int, str] = {}

    @property
    def is_complete(self) -> bool:
        return not self.missing

    def ask(self, shard: int, question: str, arguments: Mapping[str, Any]) -> Any:
        return self._crawl.at(shard, lambda crawl: crawl.ask(question, arguments))

    def ask_each(
        self, question: str, requests: Mapping[int, Mapping[str, Any]], *, needed: bool = False
    ) -> dict[int, Any]:
        crawl = self._crawl
        strangers = crawl.meet(at_once=not needed)

        def work(shard: int) -> Any:
            place = crawl.places.get(shard)
            if place is None:
                raise AwayError("; ".join(map(str, strangers.values())))
            return crawl.shards[place].ask(question, requests[shard], at_once=not needed)

        answers: dict[int, Any] = {}
        for shard, answer in each(requests, work, None if needed else LOOK_SECONDS).items():
            if isinstance(answer, UnknownNodeError):
                answers[shard] = None
            elif isinstance(answer, AwayError):
                if needed:
                    raise crawl.needs(shard, answer)
                self.missing[shard] = str(answer)
            elif isinstance(answer, InlinkError):
                raise answer
            else:
                answers[shard] = answer
        if len(self.missing) == self.count:
            # No shard is there, so the question is repeated as long as the client's patience lasts.
            self.missing = {}
            return self.ask_each(question, requests, needed=True)
        return answers


class RemoteShards(RemoteView):
    """A crawl that several servers share: the methods of :class:`.remote.RemoteCrawl`.

    If a shard is away, answers that can do without it are given without it, and :attr:`missing` names the shard. A call
    that needs the shard is repeated until the patience ends, and then raises an error. The numbers of pages have the
    shard in their upper 32 bits.

    Parameters
    ----------
    urls : sequence of str
        The URLs of all shards, which ``inlink serve`` prints, in any order.
    owner : str or None
        Owner of the sessions; None is a name that no other spider has.
    patience : float or None
        Seconds for which a call is repeated while a shard is away that it needs; None is for ever.
    note : callable
        Called with one line each time that another shard is missing. Default: a warning in the log.

    Attributes
    ----------
    shards : list of RemoteCrawl
        The shards, in the order of the URLs.
    places : dict of int to int
        The number of each shard that has answered, and its place in that list.
    missing : dict of int to str
        The shards that the latest answer to a question lacks, each with the reason.

    Raises
    ------
    inlink.errors.ParameterError
        If a URL is not that of a crawl, or a token would be sent to another machine without TLS.
    """

    def __init__(
        self,
        urls: Sequence[str],
        owner: str | None = None,
        patience: float | None = 60.0,
        note: Callable[[str], object] = log.warning,
    ) -> None:
        owner = owner or own_name()
        self.shards = [RemoteCrawl(url, owner, patience) for url in urls]
        self.missing: dict[int, str] = {}
        self._note = note
        self.places: dict[int, int] = {}
        self._lock, self._asking = Lock(), Lock()
        self._asks: dict[int, _Ask] = {}
        self._faults: dict[int, AwayError] = {}
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

    def close(self) -> None:
        """Give back the unanswered tasks, and close the connections. The tasks of a shard that is away are lost."""
        _all(self.shards, RemoteCrawl.close)

    def leave(self) -> None:
        """Close the connections without ending the sessions or giving back their tasks."""
        for shard in self.shards:
            shard.leave()

    # -- which URL is which shard -------------------------------------------------------------------------------------

    def _identify(self, place: int, *, at_once: bool = False) -> None:
        """Ask the server at a place of the list which shard it is, unless it has answered before."""
        with self._lock:
            if place in self.places.values():
                return
        crawl, count = self.shards[place], len(self.shards)
        try:
            shard = crawl.shard(at_once=at_once)
        except FolderError:
            raise ParameterError(
                f"{crawl.url} is not a shard: give one URL, or serve each of the {count} crawls with --shard K/{count}"
            ) from None
        if shard.count != count:
            raise ParameterError(
                f"{crawl.url} is shard {shard.number}/{shard.count}, and the list has {counted(count, 'URL')}: "
                f"give the URLs of all {counted(shard.count, 'shard')}"
            )
        with self._lock:
            other = self.places.setdefault(shard.number, place)
        if other != place:
            raise ParameterError(
                f"{crawl.url} and {self.shards[other].url} are both shard {shard.number}/{count}: "
                "give the URL of each shard once"
            )

    def meet(self, *, at_once: bool = True) -> dict[int, AwayError]:
        """Ask the servers that have not answered yet which shards they are; return the errors of those that are away.

        Raises
        ------
        inlink.errors.ParameterError
            If the URLs are not those of all shards of one crawl.
        """
        with self._lock:
            strangers = {*range(len(self.shards))} - {*self.places.values()}
        results = each(
            strangers,
            lambda place: self._identify(place, at_once=at_once),
            LOOK_SECONDS if at_once else None,
        )
        faults: dict[int, AwayError] = {}
        for place, fault in results.items():
            if isinstance(fault, AwayError):
                faults[place] = fault
            elif fault is not None:
                raise fault
        return faults

    def _place(self, shard: int) -> int:
        """The place of a shard in the list."""
        for at_once in (True, False):
            faults = {} if shard in self.places else self.meet(at_once=at_once)
            if shard in self.places:
                return self.places[shard]
        raise AwayError("; ".join(map(str, faults.values())))

    def _owner(self, url: str) -> int:
        """The shard that owns a URL. Any shard refuses an invalid URL, and says why."""
        form = canonical(url)
        return 1 if form is None else owner_of(host_of(form), len(self.shards))

    # -- calls to several shards --------------------------------------------------------------------------------------

    def at(self, shard: int, call: Callable[[RemoteCrawl], T]) -> T:
        """Call for a shard, which must be there.

        Raises
        ------
        AwayError
            If the shard is still away when the patience has ended.
        inlink.errors.InlinkError
            The error that the shard raised.
        """
        try:
            return call(self.shards[self._place(shard)])
        except AwayError as error:
            raise self.needs(shard, error) from None

    def needs(self, shard: int, error: AwayError) -> AwayError:
        """The error of a call that cannot do without a shard."""
        return AwayError(f"this needs shard {shard} of {len(self.shards)}, which is away: {error}")

    def _everywhere(self, call: Callable[[RemoteCrawl], T]) -> list[T]:
        self.meet()
        return _all(self.shards, call)

    # -- sessions -----------------------------------------------------------------------------------------------------

    def begin(self, *, at_once: bool = False) -> Begun:
        """Begin the sessions; return the data of the first shard that answers.

        With ``at_once``, it suffices if one shard answers. The sessions with the others begin when they are back.

        Raises
        ------
        inlink.errors.ParameterError
            If the URLs are not those of all shards of one crawl.
        """

        def work(place: int) -> Begun:
            self._identify(place, at_once=at_once)
            return self.shards[place].begin(at_once=at_once)

        results = each(range(len(self.shards)), work).values()
        replies = [reply for reply in results if isinstance(reply, Begun)]
        faults = [fault for fault in results if isinstance(fault, InlinkError)]
        serious = [fault for fault in faults if not (at_once and isinstance(fault, AwayError))]
        if serious or not replies:
            raise (serious or faults)[0]
        session = replace(replies[0].session, lost=sum(reply.session.lost for reply in replies))
        return replace(replies[0], session=session)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def next(self, count: int = 1, wait: float = 0.0, *, lost: bool = True) -> Tasks:
        """At most ``count`` tasks, of all shards in turn; wait for up to ``wait`` seconds until there is a task.

        Parameters
        ----------
        count : int
        wait : float
            Seconds.
        lost : bool
            Whether the sessions may get lost pages.

        Raises
        ------
        inlink.errors.ServerError
            If no shard can be reached, and the patience has ended.
        """
        count, until = argument("count", count), time.monotonic() + float(argument("wait", wait))
        while True:
            left = max(until - time.monotonic(), 0.0)
            with self._asking:
                reply = self._round(count, min(left, LONGEST_WAIT), lost)
            is_end = reply.due_in is None and not (reply.out_elsewhere or reply.paused)
            if reply.tasks or is_end or left <= IDLE_SECONDS:
                return reply
            time.sleep(IDLE_SECONDS)

    def _round(self, count: int, wait: float, lost: bool) -> Tasks:
        until = time.monotonic() + (wait or PROMPT_SECONDS)
        replies: dict[int, Tasks] = {}
        # Shards that may have tasks beyond those that they were asked for.
        rich = set(range(len(self.shards)))
        while True:
            self._collect(replies, rich)
            now = time.monotonic()
            self._ask(count - len(self._ready), wait, lost, rich, now)
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

    def _ask(self, room: int, wait: float, lost: bool, rich: set[int], now: float) -> None:
        """Ask shards for tasks, each for an equal share of the room; begin at another shard each time."""
        n = len(self.shards)
        room -= sum(ask.count for ask in self._asks.values() if ask.began + PROMPT_SECONDS > now)
        turns = [place % n for place in range(self._first, self._first + n)]
        places = [place for place in turns if place in rich and place not in self._asks]
        if room <= 0 or not places:
            return
        self._first = (self._first + 1) % n
        for k, place in enumerate(places):
            share = min(room // len(places) + (k < room % len(places)) or int(wait > 0), MOST_TASKS)
            if share:
                rich.discard(place)
                reply = spawn(self._next, place, share, wait, lost)
                self._asks[place] = _Ask(share, reply, wait > 0, now, self._looks)

    def _next(self, place: int, count: int, wait: float, lost: bool) -> Tasks:
        self._identify(place)
        return self.shards[place].next(count, wait, lost=lost)

    def _collect(self, replies: dict[int, Tasks], rich: set[int]) -> None:
        """Take the replies that have come."""
        for place, ask in list(self._asks.items()):
            if not ask.reply.done():
                continue
            del self._asks[place]
            try:
                reply = ask.reply.result()
            except AwayError as error:
                self._faults[place] = error
                if len(self._faults) == len(self.shards):
                    self._faults = {}
                    raise
                continue
            self._faults.pop(place, None)
            self._ready += [self._task(place, task) for task in reply.tasks]
            replies[place] = reply
            if len(reply.tasks) == ask.count:
                rich.add(place)
            if reply.tasks or reply.out_elsewhere or reply.paused:
                self._before, self._idle, self._idle_since = None, {}, None
            elif ask.look == self._looks:
                self._idle[place] = reply

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
        """Return whether the crawl has ended: all shards were idle after the last look, and no page is on its way."""
        before, self._before, self._idle = self._before, None, {}
        self._looks += 1
        looks = each(self.shards, lambda shard: shard.shard(at_once=True), LOOK_SECONDS).values()
        now = [look for look in looks if isinstance(look, ShardOf)]
        if len(now) < len(self.shards):
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

        Raises
        ------
        inlink.errors.ServerError
            If a shard is still away when the patience has ended. The answers for the other shards have been taken.
        """
        rows = checked_answers(answers)
        parts = self._by_shard(rows)
        receipts = [Receipt(False)] * len(rows)
        results = each(parts, lambda place: self._report(place, [rows[k] for k in parts[place]]))
        try:
            outcomes = _values(results)
        except InlinkError:
            # The caller gets no receipts. The next call of `next` returns the tasks in them.
            taken = [part for part in results.values() if not isinstance(part, InlinkError)]
            self._ready += [receipt.task for part in taken for receipt in part if receipt.task is not None]
            raise
        for places, part in zip(parts.values(), outcomes, strict=True):
            for k, receipt in zip(places, part, strict=True):
                receipts[k] = receipt
        return receipts

    def _by_shard(self, answers: Sequence[Answer]) -> dict[int, list[int]]:
        parts: defaultdict[int, list[int]] = defaultdict(list)
        for k, answer in enumerate(answers):
            if isinstance(answer, HostDelay):
                place = self.places.get(self._owner(answer.url), 0)
            else:
                place = answer.lease % len(self.shards)
            parts[place].append(k)
        return parts

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
        links = listed(urls)
        split_links(links)
        return self._add(
            links,
            lambda link: link if isinstance(link, str) else link.url if isinstance(link, Link) else link[0],
            self._seed,
        )

    def _seed(self, shard: int, links: list[AnyLink]) -> Seeded:
        if shard not in self.places:
            self.meet()
        owner = self.places.get(shard, 0)
        for crawl in sorted(self.shards[owner:] + self.shards[:owner], key=lambda crawl: crawl.is_away):
            try:
                return crawl.seed(links, at_once=True)
            except AwayError:
                continue
        return self.at(shard, lambda crawl: crawl.seed(links))

    def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> Seeded:
        """Take in a sitemap's entries, each at its owner, because only the owner can crawl a changed page again.

        Raises
        ------
        inlink.errors.ServerError
            If a shard is still away when the patience has ended. The entries of the other shards have been taken.
        """
        return self._add(
            checked_entries(listed(entries, "entries")),
            lambda entry: entry[0],
            lambda shard, part: self.at(shard, lambda crawl: crawl.sitemap(part)),
        )

    def _add(
        self, rows: Sequence[T], url_of: Callable[[T], str], add: Callable[[int, list[T]], Seeded]
    ) -> Seeded:
        if not self.places:
            self.meet()
        parts: defaultdict[int, list[T]] = defaultdict(list)
        for row in rows:
            parts[self._owner(url_of(row))].append(row)
        replies = _all(parts, lambda shard: add(shard, parts[shard]))
        refused = sum((Counter(reply.refused) for reply in replies), Counter[str]())
        return Seeded(sum(reply.new for reply in replies), dict(refused))

    # -- for operators ------------------------------------------------------------------------------------------------

    def pause(self) -> bool:
        """Stop handing out tasks at all shards until the crawl is resumed; return whether all are paused."""
        return all(self._everywhere(RemoteCrawl.pause))

    def resume(self) -> bool:
        """End a pause at all shards; return whether one of them is paused."""
        return any(self._everywhere(RemoteCrawl.resume))

    def reload(self, *states: str) -> int:
        """Let pages of these states wait again at all shards: see :meth:`inlink.Crawl.reload`. Return their number."""
        return sum(self._everywhere(lambda crawl: crawl.reload(*states)))

    def rerank(self) -> bool:
        """Start a new ranking at all shards; return whether one is being computed."""
        return any(self._everywhere(RemoteCrawl.rerank))

    def change_settings(self, **changes: Any) -> Settings:
        """Change settings at all shards: see :meth:`inlink.Crawl.change_settings`. Return those of the first."""
        return self._everywhere(lambda crawl: crawl.change_settings(**changes))[0]

    @keywords(HostLimits, {})
    def set_host(self, host: str, **limits: Unpack[HostLimits]) -> HostState:
        """Set what holds for a host, at its owner: see :meth:`inlink.Crawl.set_host`."""
        shard = owner_of(host_name(host), len(self.shards))
        return self.at(shard, lambda crawl: crawl.set_host(host, **limits))

    # -- looking ------------------------------------------------------------------------------------------------------

    def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Ask a view's question by its name. The answer is made from those of the shards."""
        question = _Question(self)
        answer = QUESTIONS[name].way(question, arguments)
        before, self.missing = self.missing, question.missing
        for shard, reason in self.missing.items():
            place = self.places.get(shard)
            # The log has a line already if another call is being repeated.
            if shard not in before and (place is None or not self.shards[place].is_away):
                self._note(f"shard {shard} of {len(self.shards)} is away and missing in the answer: {reason}")
        return answer


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


def each(
    keys: Iterable[K], call: Callable[[K], T], seconds: float | None = None
) -> "dict[K, T | InlinkError]":
    """Call for several keys at a time; return the results or errors. A call that takes longer is an AwayError."""
    calls = {key: spawn(call, key) for key in keys}
    futures.wait(calls.values(), seconds)
    results: dict[K, T | InlinkError] = {}
    for key, future in calls.items():
        try:
            results[key] = future.result() if future.done() else AwayError(f"no reply within {seconds:g} s")
        except InlinkError as error:
            results[key] = error
    return results


def _all(keys: Iterable[K], call: Callable[[K], T]) -> list[T]:
    """Call for several shards at a time; return the results. If some fail, the error says how many have done it."""
    return _values(each(keys, call))


def _values(results: Mapping[K, T | InlinkError]) -> list[T]:
    faults = [result for result in results.values() if isinstance(result, InlinkError)]
    if not faults:
        return cast(list[T], list(results.values()))
    fault, done = faults[0], len(results) - len(faults)
    raise type(fault)(f"{fault} (done at {done} of {len(results)} shards)") if done else fault


def connect(url: str, owner: str | None = None, patience: float | None = 60.0) -> RemoteCrawl | RemoteShards:
    """Return a crawl on a server, which ``inlink serve`` runs, or a crawl of several shards.

    The token comes from the environment: ``INLINK_TOKEN``, or the file that ``INLINK_TOKEN_FILE`` names. No request is
    sent before the first call of a method.

    Parameters
    ----------
    url : str
        The URL that ``inlink serve`` prints: ``http://127.0.0.1:8000/v1/crawls/mycrawl``. For a crawl of several
        shards, the URLs of all of them, separated by commas.
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
    urls = url.split(",")
    return RemoteCrawl(url, owner, patience) if len(urls) == 1 else RemoteShards(urls, owner, patience)
