"""A crawl of several shards, for programs and commands: each shard is a crawl on a server of its own."""

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast

from inlink.base.declare import keywords
from inlink.base.table import counted
from inlink.client.channel import AwayError
from inlink.client.remote import RemoteCrawl
from inlink.crawl.arguments import HostLimits, checked_states, host_name
from inlink.crawl.links import listed
from inlink.crawl.questions.source import unknown
from inlink.crawl.settings import changed
from inlink.crawl.view import QUESTIONS, CrawlView
from inlink.errors import InlinkError, ParameterError, ServerError, UnknownNodeError
from inlink.frontier.hosts import HostState
from inlink.frontier.rules import host_of
from inlink.frontier.settings import Settings
from inlink.protocol import AnyLink, Link, Seeded, ShardOf
from inlink.urls.canonical import canonical
from inlink.urls.shards import owner_of

A = TypeVar("A")
K = TypeVar("K")
T = TypeVar("T")
P = ParamSpec("P")

log = logging.getLogger("inlink.client")


def urls_in(where: str) -> list[str]:
    """The URLs of a list that is separated by commas."""
    return [url for part in where.split(",") if (url := part.strip())]


def _asked(method: Callable[Concatenate[CrawlView, P], A]) -> "Callable[Concatenate[WholeCrawl, P], A]":
    """Make the method that asks all shards a question to a view."""
    question = QUESTIONS[method.__name__]

    def ask(self: "WholeCrawl", /, *values: P.args, **named: P.kwargs) -> A:
        arguments = question.arguments(*values, **named)
        self.missing = {}
        answer = question.way(self, arguments)
        self._tell()
        return cast(A, answer)

    return update_wrapper(ask, method)


class WholeCrawl:
    """A crawl of several shards: the methods of :class:`inlink.CrawlView`, and those by which operators work.

    If a shard is away, answers that can do without it are given without it, and :attr:`missing` names the shard. A call
    that needs the shard raises an error. The numbers of pages have the shard in their upper 32 bits.

    Parameters
    ----------
    urls : sequence of str
        The URLs of all shards, in any order.
    patience : float or None
        Seconds for which a call is repeated while a shard is away that it needs; None is for ever.
    note : callable
        Called with one line each time that another shard is missing. Default: a warning in the log.

    Raises
    ------
    inlink.errors.ParameterError
        If a URL is not that of a crawl, or a token would be sent to another machine without TLS.

    Attributes
    ----------
    missing : dict of int to str
        The shards that the latest answer lacks, each with the reason.
    """

    def __init__(
        self, urls: Sequence[str], patience: float | None = 60.0, note: Callable[[str], object] = log.warning
    ) -> None:
        self._crawls = [RemoteCrawl(url, None, patience, renewing=False) for url in urls]
        self._shards: dict[int, RemoteCrawl] = {}
        self._count, self._lock, self._is_closed = 0, threading.Lock(), False
        self._note, self._noted = note, set[int]()
        self.missing: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"<crawl at {', '.join(crawl.url for crawl in self._crawls)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        for crawl in self._crawls:
            crawl.leave()
        self._is_closed = True
        if "_threads" in vars(self):
            self._threads.shutdown()

    leave = close

    # -- the shards ---------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of shards.

        Raises
        ------
        inlink.errors.InlinkError
            If no shard can be asked, or the URLs are not those of all shards of one crawl.
        """
        if not self._count:
            self._meet()
        return self._count

    @property
    def is_complete(self) -> bool:
        """Whether the latest answer has all shards."""
        return not self.missing

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(self._crawls), "inlink-shards")

    def _meet(self) -> list[tuple[RemoteCrawl, AwayError]]:
        """Ask the servers that are not known yet which shard they are; return those that are away."""
        with self._lock:
            known = set(map(id, self._shards.values()))
            strangers = {crawl: crawl for crawl in self._crawls if id(crawl) not in known}
            away: list[tuple[RemoteCrawl, AwayError]] = []
            for crawl, shard in self._each(strangers, lambda crawl, _: crawl.shard(at_once=True)).items():
                if isinstance(shard, AwayError):
                    away.append((crawl, shard))
                elif isinstance(shard, InlinkError):
                    raise shard
                else:
                    self._take(crawl, shard)
            if not self._count:
                self._take(away[0][0], away[0][0].shard())
                del away[0]
            return away

    def _take(self, crawl: RemoteCrawl, shard: ShardOf) -> None:
        urls, count = len(self._crawls), self._count or shard.count
        if shard.count != count:
            raise ParameterError(
                f"{crawl.url} is a shard of {shard.count}, and another of {count}: give the URLs of one crawl"
            )
        if shard.number in self._shards:
            other = self._shards[shard.number].url
            raise ParameterError(
                f"{crawl.url} and {other} are both shard {shard.number}: give the URL of each shard once"
            )
        if count != urls:
            raise ParameterError(
                f"{crawl.url} is a shard of {count}, and the list has {counted(urls, 'URL')}: give the URLs of all "
                "shards"
            )
        self._shards[shard.number], self._count = crawl, count

    def _at(self, shard: int, away: Sequence[tuple[RemoteCrawl, AwayError]]) -> RemoteCrawl:
        """The crawl of a shard. If it was never met, it is the only one that is away.

        Raises
        ------
        AwayError
            If several are away, so that it is not known which of them is the shard.
        """
        if shard in self._shards:
            return self._shards[shard]
        if len(away) > 1:
            raise AwayError("; ".join(str(error) for _, error in away))
        return away[0][0]

    def _needed(self, shard: int) -> RemoteCrawl:
        try:
            return self._at(shard, [] if shard in self._shards else self._meet())
        except AwayError as error:
            raise self._needs(shard, error) from None

    def _needs(self, shard: int, error: AwayError) -> AwayError:
        return AwayError(f"this needs shard {shard} of {self._count}, which is away: {error}")

    def _each(
        self, crawls: Mapping[K, RemoteCrawl], call: Callable[[RemoteCrawl, K], T]
    ) -> "dict[K, T | InlinkError]":
        """Call for several shards at a time; return the results, or their errors."""

        def safe(key: K) -> "T | InlinkError":
            try:
                return call(crawls[key], key)
            except InlinkError as error:
                return error

        if self._is_closed:
            raise ServerError(f"{self!r} was closed: connect again")
        return dict(zip(crawls, self._threads.map(safe, crawls), strict=True))

    # -- asking, as inlink.crawl.questions.whole.Shards ---------------------------------------------------------------

    def ask(self, shard: int, question: str, arguments: Mapping[str, Any]) -> Any:
        """Ask a shard, which must be there.

        Raises
        ------
        inlink.errors.ServerError
            If the shard is away.
        inlink.errors.InlinkError
            The error that the shard raised.
        """
        crawl = self._needed(shard)
        try:
            return crawl.ask(question, arguments)
        except AwayError as error:
            raise self._needs(shard, error) from None

    def ask_each(
        self, question: str, requests: Mapping[int, Mapping[str, Any]], *, needed: bool = False
    ) -> dict[int, Any]:
        """Ask several shards at a time. Those that do not know the page answer None.

        Shards that are away are left out, or raise an error if they are ``needed``.

        Raises
        ------
        inlink.errors.InlinkError
            The error that a shard raised.
        """
        away = self._meet()
        crawls, answers = dict[int, RemoteCrawl](), dict[int, Any]()
        for shard in requests:
            if shard in self._shards or needed:
                crawls[shard] = self._needed(shard)
            else:
                answers[shard] = AwayError("; ".join(str(error) for _, error in away))
        answers |= self._each(
            crawls, lambda crawl, shard: crawl.ask(question, requests[shard], at_once=not needed)
        )
        found: dict[int, Any] = {}
        for shard, answer in sorted(answers.items()):
            if isinstance(answer, AwayError):
                if needed:
                    raise self._needs(shard, answer)
                self.missing[shard] = str(answer)
            elif isinstance(answer, UnknownNodeError):
                found[shard] = None
            elif isinstance(answer, InlinkError):
                raise answer
            else:
                found[shard] = answer
        if not found and self.missing:
            raise AwayError(f"all shards are away: {next(iter(self.missing.values()))}")
        return found

    def _tell(self) -> None:
        """Note the shards that are missing since this answer."""
        for shard in self.missing.keys() - self._noted:
            self._note(
                f"shard {shard} of {self._count} is away and missing in the answer: {self.missing[shard]}"
            )
        self._noted = set(self.missing)

    # -- for operators ------------------------------------------------------------------------------------------------

    def seed(self, urls: Iterable[AnyLink]) -> Seeded:
        """Add URLs, each at its owner: see :meth:`inlink.Crawl.seed`. Return numbers of new and refused URLs.

        Raises
        ------
        inlink.errors.ServerError
            If a shard is away. The message says how many URLs were not added.
        """
        return self._add(
            listed(urls),
            lambda link: link if isinstance(link, str) else link.url if isinstance(link, Link) else link[0],
            RemoteCrawl.seed,
        )

    def sitemap(self, entries: Iterable[tuple[str, float | None, float | None]]) -> Seeded:
        """Take in a sitemap's entries, each at its owner: see :meth:`inlink.Crawl.sitemap`."""
        return self._add(listed(entries, "entries"), lambda entry: entry[0], RemoteCrawl.sitemap)

    def _add(
        self, rows: Sequence[T], url_of: Callable[[T], Any], add: Callable[[RemoteCrawl, list[T]], Seeded]
    ) -> Seeded:
        groups: defaultdict[int, list[T]] = defaultdict(list)
        for row in rows:
            try:
                form = canonical(url_of(row))
            except (TypeError, IndexError, AttributeError):
                form = None
            # Any shard refuses a URL that is not valid, and says why.
            groups[1 if form is None else owner_of(host_of(form), self.count)].append(row)
        new, refused = 0, Counter[str]()
        crawls = {shard: self._needed(shard) for shard in sorted(groups)}
        for shard, added in self._each(crawls, lambda crawl, shard: add(crawl, groups[shard])).items():
            if isinstance(added, AwayError):
                rest = counted(len(groups[shard]), "URL was", "URLs were")
                raise AwayError(
                    f"shard {shard} of {self._count} is away, and its {rest} not added. Repeat the call later: "
                    f"URLs that are known already do no harm ({added})"
                )
            if isinstance(added, InlinkError):
                raise added
            new += added.new
            refused.update(added.refused)
        return Seeded(new, dict(refused))

    def pause(self) -> bool:
        """Stop handing out tasks at all shards until the crawl is resumed; return whether all are paused."""
        return all(self._everywhere(RemoteCrawl.pause))

    def resume(self) -> bool:
        """End a pause at all shards; return whether one of them is paused."""
        return any(self._everywhere(RemoteCrawl.resume))

    def reload(self, *states: str) -> int:
        """Let pages of these states wait again at all shards: see :meth:`inlink.Crawl.reload`. Return their number."""
        checked_states(states)
        return sum(self._everywhere(lambda crawl: crawl.reload(*states)))

    def rerank(self) -> bool:
        """Start a new ranking at all shards; return whether one is being computed."""
        return any(self._everywhere(RemoteCrawl.rerank))

    def change_settings(self, **given: Any) -> Settings:
        """Change settings at all shards: see :meth:`inlink.Crawl.change_settings`. Return those of the first."""
        changed(Settings(), given)
        return self._everywhere(lambda crawl: crawl.change_settings(**given))[0]

    def _everywhere(self, call: Callable[[RemoteCrawl], T]) -> list[T]:
        """Call for each shard. If some fail, the others have done it, and the error says so."""
        results = self._each({crawl: crawl for crawl in self._crawls}, lambda crawl, _: call(crawl))
        faults = {crawl.url: fault for crawl, fault in results.items() if isinstance(fault, InlinkError)}
        if faults:
            url, fault = next(iter(faults.items()))
            where = "" if url in str(fault) else f"{url}: "
            raise type(fault)(
                f"{where}{fault} (done at {len(results) - len(faults)} of {len(results)} shards)"
            )
        return cast(list[T], list(results.values()))

    @keywords(HostLimits, {})
    def set_host(self, host: str, **limits: Unpack[HostLimits]) -> HostState:
        """Set what holds for a host, at its owner: see :meth:`inlink.Crawl.set_host`."""
        name = host_name(host)
        crawl = self._needed(owner_of(name, self.count))
        return crawl.set_host(name, **limits)

    # -- looking ------------------------------------------------------------------------------------------------------

    def number(self, page: str | int) -> int:
        """The number of a page at its owner, with the owner in the upper 32 bits.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If the page's owner does not know it.
        """
        known = self.page(page)
        if known is None:
            raise unknown("the crawl", page)
        return known.id

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


def connect(url: str, owner: str | None = None, patience: float | None = 60.0) -> RemoteCrawl | WholeCrawl:
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
    if "," in url:
        return WholeCrawl(urls_in(url), patience)
    return RemoteCrawl(url, owner, patience)
