"""How the answer of a crawl of several shards is made from the answers of its shards.

Each question names one of the functions below, its *way*: see :func:`inlink.crawl.questions.table.question`. A way gets
the shards and the arguments of the question, and returns an answer of the type that one crawl returns.

**Numbers.** The number of a page is one of the shard that answered. In an answer of the whole, the shard is in the
upper 32 bits: page 7 of shard 2 is 0x0000000200000007. A page that several shards know has several numbers. Each of
them names it in a question.

**Cursors** have a part for each shard, separated by commas: the shard's own cursor, nothing before the first part, and
``-`` with a number after the last part. The shard adds this number to the sums of later parts.

**Ranks** of shards can be compared and added, because PageRank in a shard is not normalised: see
:mod:`inlink.reranking.live`. Only the owner of a page has its whole rank.

**A shard that is away.** A way that needs the shard raises the error of its server. The others leave it out, and
``Shards.is_complete`` is false until the next answer.
"""

import heapq
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import msgspec

from inlink.crawl.questions import answers
from inlink.crawl.questions.about import About, RankingInfo
from inlink.crawl.questions.source import unknown
from inlink.errors import ParameterError, UnknownNodeError
from inlink.frontier.explain import Why
from inlink.frontier.hosts import HostState
from inlink.frontier.inlinks import KEPT_LINKERS
from inlink.frontier.rules import host_of
from inlink.frontier.standing import POINTS, Harvest, HarvestPoint
from inlink.protocol import Standing
from inlink.store.page import Page
from inlink.urls.canonical import canonical
from inlink.urls.shards import owner_of

Row = TypeVar("Row", bound=msgspec.Struct)
Arguments = Mapping[str, Any]

NO_BOUND = (
    "a shard knows only the links of its own pages, so in a crawl of several shards no place is certain before the "
    "end: leave out the number of certain places"
)
"""The refusal of certificates."""

MOST_HOPS = 10_000
"""Maximum number of changes between shards on a path. Only shards with contradictory logs reach it."""

_HASH = re.compile(r"[0-9a-fA-F]{16}")
_STATE = re.compile(r"-?[0-9]{1,19}|")


class Shards(Protocol):
    """The shards of a crawl. They are numbered from 1 to ``count``.

    Attributes
    ----------
    is_complete : bool
        Whether no shard was left out since the question was asked.
    """

    @property
    def count(self) -> int:
        """Number of shards."""

    @property
    def is_complete(self) -> bool:
        """Whether no shard was left out since the question was asked."""

    def ask(self, shard: int, question: str, arguments: Arguments) -> Any:
        """Ask a shard, which must be there."""

    def ask_each(
        self, question: str, requests: Mapping[int, Arguments], *, needed: bool = False
    ) -> dict[int, Any]:
        """Ask several shards at a time. Those that do not know the page answer None.

        Shards that are away are left out, or raise an error if they are ``needed``.
        """


Way = Callable[[Shards, Arguments], Any]
"""How an answer is made from the shards' answers to a question."""


def number_at(shard: int, page: int) -> int:
    """The number, in an answer of the whole, of the page that has the number ``page`` at a shard."""
    return shard << 32 | page


def owner(shards: Shards, page: str | int) -> tuple[int, str]:
    """The shard that owns a page, and the page's URL, from its URL in any form or its number in an answer of the whole.

    Raises
    ------
    inlink.errors.UnknownNodeError
        If no page has that name.
    inlink.errors.ParameterError
        If the page is named by something else.
    """
    if isinstance(page, bool) or not isinstance(page, str | int):
        raise ParameterError(f"a page is named by its URL or its number; got {page!r:.200}")
    if isinstance(page, int) or _HASH.fullmatch(page):
        shard, number = divmod(int(page, 16) if isinstance(page, str) else page, 1 << 32)
        if not 1 <= shard <= shards.count:
            raise UnknownNodeError(
                f"{page!r} is no page's number in a crawl of {shards.count} shards: in their answers, the shard is in "
                "the upper 32 bits"
            )
        known: Page | None = shards.ask(shard, "page", {"page": number})
        if known is None:
            raise unknown("the crawl", page)
        page = known.url
    form = canonical(page)
    if form is None:
        raise unknown("the crawl", page)
    return owner_of(host_of(form), shards.count), page


# -- one page ---------------------------------------------------------------------------------------------------------


def page(shards: Shards, arguments: Arguments) -> Page | None:
    """The answer of the page's owner."""
    try:
        shard, url = owner(shards, arguments["page"])
        known: Page | None = shards.ask(shard, "page", {"page": url})
    except UnknownNodeError:
        return None
    return None if known is None else replace(known, id=number_at(shard, known.id))


def why(shards: Shards, arguments: Arguments) -> Why:
    """The answer of the page's owner, with the best links of all shards."""
    shard, url = owner(shards, arguments["page"])
    reasons: Why = shards.ask(shard, "why", {"page": url})
    others = {other: {"page": url} for other in range(1, shards.count + 1) if other != shard}
    parts = {shard: reasons, **_known(shards.ask_each("why", others))}
    inlinks = [row for number, part in parts.items() for row in _rows(number, part.inlinks)]
    inlinks.sort(key=lambda row: (-row.gives, row.page))
    return msgspec.structs.replace(
        reasons,
        page=number_at(shard, reasons.page),
        inlinks=inlinks[:KEPT_LINKERS],
        inlinks_complete=all(part.inlinks_complete for part in parts.values()),
    )


def path(shards: Shards, arguments: Arguments) -> answers.Path:
    """Follow the path from the page's owner to the shard that discovered the page, and so on.

    The cursor is the shard, the number of changes between shards, and the next page: its number at that shard, or the
    URL of a page that is the last row already.
    """
    count, cursor = arguments["count"], arguments["cursor"]
    at: str | int
    if cursor is None:
        shard, at = owner(shards, arguments["page"])
        hops, repeats = 0, False
    else:
        match = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,5})\.(?:([0-9]{1,10})|(.+))", str(cursor), re.ASCII)
        if match is None or not 1 <= int(match[1]) <= shards.count:
            raise _wrong_cursor(cursor)
        shard, hops, repeats = int(match[1]), int(match[2]), match[4] is not None
        at = match[4] if repeats else int(match[3])
    rows: list[answers.PageRow] = []
    while True:
        part: answers.Path = shards.ask(
            shard, "path", {"page": at, "count": min(count - len(rows) + repeats, 1000)}
        )
        rows += _rows(shard, part.rows[repeats:])
        if part.cursor is not None:
            at, repeats = int(part.cursor), False
        elif part.shard is not None and hops < MOST_HOPS:
            shard, at, hops, repeats = part.shard, part.rows[-1].url, hops + 1, True
        else:
            return answers.Path(rows)
        if len(rows) >= count:
            return answers.Path(rows, f"{shard}.{hops}.{at}")


def links(shards: Shards, arguments: Arguments) -> answers.PageList:
    """Links from the page: the answer of its owner. Links to it: the pages of all shards that link to it."""
    shard, url = owner(shards, arguments["page"])
    arguments = {**arguments, "page": url}
    if arguments["direction"] == "from":
        part: answers.PageList = shards.ask(shard, "links", arguments)
        return answers.PageList(_rows(shard, part.rows), part.cursor)
    is_known = arguments["cursor"] is not None
    while True:
        parts, _, cursor = _next_parts(shards, "links", arguments, lambda _: 0)
        is_known = is_known or bool(parts)
        if is_known or cursor is None:
            break
        arguments = {**arguments, "cursor": cursor}
    if not is_known:
        raise unknown("the crawl", url)
    return answers.PageList([row for shard, part in parts for row in _rows(shard, part.rows)], cursor)


# -- rows of all shards -----------------------------------------------------------------------------------------------


def find(shards: Shards, arguments: Arguments) -> answers.MatchedPages:
    """The matching pages of each shard's own hosts."""
    parts, done, cursor = _next_parts(shards, "find", arguments, lambda part: part.known)
    rows = [
        row
        for shard, part in parts
        for row in _rows(shard, part.rows)
        if owner_of(host_of(row.url), shards.count) == shard
    ]
    return answers.MatchedPages(
        rows,
        done + sum(part.searched for _, part in parts),
        done + sum(part.known for _, part in parts),
        cursor,
    )


def top(shards: Shards, arguments: Arguments) -> answers.Top:
    """The best of all shards' own pages by the ranks that order the crawl."""
    if arguments["ranking"] is not None or arguments["hubs"]:
        raise ParameterError(
            "stored rankings and hub scores are of the links of one shard, so shards have no common order by them: "
            "leave them out, for the ranks that order the crawl"
        )
    parts = _ask_all(shards, "top", {**arguments, "cursor": None})
    rows = [row for shard, part in parts.items() for row in _rows(shard, part.rows)]
    rows.sort(key=lambda row: (-row.value, row.page))
    best = [
        msgspec.structs.replace(row, place=place, text=row.text if place <= answers.TEXTS else "")
        for place, row in enumerate(rows[: arguments["count"]], 1)
    ]
    searched, known = (sum(getattr(part, name) for part in parts.values()) for name in ("searched", "known"))
    whole = all(part.cursor is None for part in parts.values())
    return answers.Top(best, searched, known, None if whole else str(searched))


def order(shards: Shards, arguments: Arguments) -> answers.Order:
    """The next pages of all shards: first those that are due, best first. The order within each shard stays."""
    parts = _ask_all(shards, "order", arguments)
    merged = heapq.merge(
        *(_rows(shard, part.rows) for shard, part in parts.items()),
        key=lambda row: (row.due_in, -row.priority),
    )
    rows = [
        msgspec.structs.replace(row, place=place)
        for place, row in zip(range(1, arguments["count"] + 1), merged, strict=False)
    ]
    return answers.Order(rows)


def hosts(shards: Shards, arguments: Arguments) -> answers.Hosts:
    """The hosts of all shards; each shard shows its own."""
    if arguments["fullest"]:
        whole = _ask_all(shards, "hosts", arguments).values()
        rows: list[HostState] = sorted(
            (row for part in whole for row in part.rows), key=lambda row: (-row.waiting, row.name)
        )
        return answers.Hosts(rows[: arguments["count"]], sum(part.known for part in whole))
    parts, done, cursor = _next_parts(shards, "hosts", arguments, lambda part: part.known)
    rows = [row for _, part in parts for row in part.rows]
    return answers.Hosts(rows, done + sum(part.known for _, part in parts), cursor)


def dump(shards: Shards, arguments: Arguments) -> answers.Dump:
    """The lines of all shards, which must all be there: pages of a shard's own hosts, and the links of its pages.

    Other pages are named by URL, because numbers are a shard's own.
    """
    if arguments["aduana"]:
        raise ParameterError(
            "`aduana` names pages by numbers, which are a shard's own: leave it out, or ask one shard"
        )
    arguments = {**arguments, "urls": True}
    parts, done, cursor = _next_parts(shards, "dump", arguments, lambda part: part.total, needed=True)
    has_header, texts = arguments["cursor"] is None, list[str]()
    for shard, part in parts:
        lines = part.text.split("\n")[:-1]
        header = [lines.pop(0)] if arguments["cursor"] is None else []
        if arguments["what"] == "pages":
            cells = (line.split("\t", 2) for line in lines)
            lines = [
                f"{number_at(shard, int(number))}\t{url}\t{rest}"
                for number, url, rest in cells
                if owner_of(host_of(url), shards.count) == shard
            ]
        texts += (header if has_header else []) + lines
        has_header = False
    return answers.Dump(
        "".join(f"{line}\n" for line in texts),
        done + sum(part.done for _, part in parts),
        done + sum(part.total for _, part in parts),
        cursor,
    )


def errors(shards: Shards, arguments: Arguments) -> answers.Errors:
    """The causes of all shards: sums of their counts, and the latest examples."""
    parts = _ask_all(shards, "errors", {**arguments, "cursor": None})
    causes: dict[str, answers.ErrorCause] = {}
    for shard, part in parts.items():
        for cause in part.causes:
            before = causes.get(cause.cause)
            examples = [*(before.examples if before else []), *_rows(shard, cause.examples)]
            examples = sorted(examples, key=lambda row: row.seconds_ago)[:3]
            count = cause.count + (before.count if before else 0)
            causes[cause.cause] = answers.ErrorCause(cause.cause, count, examples)
    rows = sorted(causes.values(), key=lambda row: (-row.count, row.cause))
    total, searched, known = (
        sum(getattr(part, name) for part in parts.values()) for name in ("total", "searched", "known")
    )
    whole = all(part.cursor is None for part in parts.values())
    return answers.Errors(rows, total, searched, known, None if whole else str(searched))


# -- sums -------------------------------------------------------------------------------------------------------------


def standing(shards: Shards, arguments: Arguments) -> Standing:
    """Sums. The harvest and the bound on the error of the ranks need all shards."""
    if arguments["top"] is not None:
        raise ParameterError(NO_BOUND)
    parts = _ask_all(shards, "standing", arguments)
    whole = standing_of(list(parts.values()), arguments["hosts"], whole=shards.is_complete)
    errors = {shard: part.rank_error for shard, part in parts.items()}
    if whole.rank is None or None in errors.values():
        return whole
    # Shards answer at different times. If they all give the same bound again, the bounds held at one moment.
    again = _ask_all(shards, "standing", {**arguments, "hosts": 0})
    if errors != {shard: part.rank_error for shard, part in again.items()}:
        return whole
    return msgspec.structs.replace(whole, rank_error=sum(filter(None, errors.values())))


def standing_of(parts: Sequence[Standing], hosts: int, *, whole: bool) -> Standing:
    """The progress of a crawl, from that of its shards.

    Parameters
    ----------
    parts : sequence of Standing
    hosts : int
        Number of hosts to name.
    whole : bool
        Whether these are all shards. If not, there is no harvest.
    """
    ranks = [part.rank for part in parts if part.rank is not None]
    total, crawled = sum(ranks), sum(part.crawled for part in parts)
    # A shard without a crawled page has harvested nothing.
    fetched = sum((part.harvest or 0.0) * part.rank for part in parts if part.rank is not None)
    is_ranked = whole and len(ranks) == len(parts) and total > 0 and crawled > 0
    return Standing(
        sum(part.known for part in parts),
        crawled,
        sum(part.waiting for part in parts),
        sum(part.leased for part in parts),
        _added(part.states for part in parts),
        fetched / total if is_ranked else None,
        sorted((row for part in parts for row in part.hosts), key=lambda row: (-row.waiting, row.name))[
            :hosts
        ],
        sum(part.planned for part in parts),
        sorted((row for part in parts for row in part.later), key=lambda row: (row.due_in or 0.0, row.name))[
            :hosts
        ],
        rank=total if whole and len(ranks) == len(parts) else None,
    )


def harvest(shards: Shards, arguments: Arguments) -> Harvest:
    """The sum of all shards' curves, as if each had fetched its pages at an even pace. Without all shards, no points.

    The shards' own curves do not say when a page was fetched, so only the last point is exact.
    """
    parts = list(_ask_all(shards, "harvest", arguments).values())
    known, total = sum(part.known for part in parts), sum(part.rank for part in parts)
    cursors = [part.cursor for part in parts if part.cursor is not None]
    if not shards.is_complete or cursors or total <= 0:
        return Harvest([], known, cursors[0] if cursors and shards.is_complete else None, total)
    curves = [part for part in parts if part.points]
    points = list[HarvestPoint]()
    for step in range(1, POINTS + 1):
        at = [_at(part.points, step / POINTS) for part in curves]
        fetched = round(sum(point[0] for point in at))
        shares = [
            sum(point[k] * part.rank for point, part in zip(at, curves, strict=True)) / total for k in (1, 2)
        ]
        # Of several steps within a page, the last one counts.
        if points and points[-1].fetched == fetched:
            points.pop()
        if fetched:
            points.append(HarvestPoint(fetched, *shares))
    return Harvest(points, known, None, total)


def info(shards: Shards, arguments: Arguments) -> answers.Info:
    """Sums; the crawl began with its first shard."""
    parts = list(_ask_all(shards, "info", arguments).values())
    links = [part.links for part in parts]
    return answers.Info(
        sum(part.pages for part in parts),
        _added(part.states for part in parts),
        sum(part.crawled for part in parts),
        sum(part.hosts for part in parts),
        None if None in links else sum(links),
        sum(part.events for part in parts),
        sum(part.event_bytes for part in parts),
        min(part.began for part in parts),
    )


def about(shards: Shards, arguments: Arguments) -> About:
    """Sums of sizes and requests; the other data are those of each shard, if they differ.

    The error of the ranking is that of the ranks of all shards.
    """
    parts = _ask_all(shards, "about", arguments)
    rankings = [part.ranking for part in parts.values() if part.ranking is not None]
    ranking = None
    if rankings and len(rankings) == len(parts):
        ranking = RankingInfo(
            _each({shard: part.ranking.algorithm for shard, part in parts.items()}),
            sum(row.pages for row in rankings),
            sum(row.behind for row in rankings),
            _relative_error(standing(shards, {"hosts": 0, "top": None, "within": 0.0})),
            all(row.converged for row in rankings),
        )
    faults = {shard: part.ranking_fault for shard, part in parts.items()}
    return About(
        _added(part.bytes for part in parts.values()),
        _each({shard: part.policy for shard, part in parts.items()}) or "",
        _each({shard: part.writer for shard, part in parts.items()}),
        sum(part.inbox for part in parts.values()),
        ranking,
        next(iter(parts.values())).addresses,
        _each(faults) if any(faults.values()) else None,
    )


def _relative_error(whole: Standing) -> float | None:
    """Return a bound on the relative L1 error of the ranks. None if it is not known, or not below 1."""
    rank, error = whole.rank, whole.rank_error
    return error / (rank - error) if rank is not None and error is not None and rank > 2 * error else None


# -- parts of answers -------------------------------------------------------------------------------------------------


def _ask_all(shards: Shards, question: str, arguments: Arguments) -> dict[int, Any]:
    return shards.ask_each(question, dict.fromkeys(range(1, shards.count + 1), arguments))


def _next_parts(
    shards: Shards, question: str, arguments: Arguments, size: Callable[[Any], int], *, needed: bool = False
) -> tuple[list[tuple[int, Any]], int, str | None]:
    """The next part of the answer of each shard that is not at its end.

    Once a shard is at its end, it adds ``size`` to the sums of later parts. The ``count`` of the arguments is divided
    among the shards.

    Returns
    -------
    (list of (int, answer), int, str or None)
        The parts by shard, the sum of the sizes of the shards that were at their end before, and the next cursor.
    """
    cursor = arguments["cursor"]
    states = [""] * shards.count if cursor is None else str(cursor).split(",")
    if len(states) != shards.count or not all(map(_STATE.fullmatch, states)):
        raise _wrong_cursor(cursor)
    going = [shard for shard, state in enumerate(states, 1) if not state.startswith("-")]
    done = sum(int(state[1:]) for state in states if state.startswith("-"))
    shares: dict[str, int] = {}
    if "count" in arguments:
        going = going[: max(arguments["count"], 1)]
        shares = {"count": max(arguments["count"] // max(len(going), 1), 1)}
    requests = {shard: {**arguments, "cursor": states[shard - 1] or None, **shares} for shard in going}
    parts = _known(shards.ask_each(question, requests, needed=needed))
    for shard in going:
        part = parts.get(shard)
        # A shard that is away, or does not know the page, adds nothing.
        states[shard - 1] = "-0" if part is None else part.cursor or f"-{size(part)}"
    over = all(state.startswith("-") for state in states)
    return sorted(parts.items()), done, None if over else ",".join(states)


def _known(parts: Mapping[int, Any]) -> dict[int, Any]:
    return {shard: part for shard, part in parts.items() if part is not None}


def _rows(shard: int, rows: Iterable[Row]) -> list[Row]:
    """Rows of a shard, with the numbers of the whole."""
    return [msgspec.structs.replace(row, page=number_at(shard, row.page)) for row in rows]  # type: ignore[attr-defined]


def _added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def _each(values: Mapping[int, str | None]) -> str | None:
    """The value that all shards have, or the value of each shard."""
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{shard}: {value or 'none'}" for shard, value in values.items())


def _at(points: Sequence[HarvestPoint], share: float) -> tuple[float, float, float]:
    """A point on a curve at a share of its fetched pages: fetched, share, by_discovery."""
    wanted, before = share * points[-1].fetched, (0.0, 0.0, 0.0)
    for point in points:
        after = float(point.fetched), point.share, point.by_discovery
        if point.fetched >= wanted:
            part = (wanted - before[0]) / (after[0] - before[0])
            return (
                wanted,
                *(low + part * (high - low) for low, high in zip(before[1:], after[1:], strict=True)),
            )  # type: ignore[return-value]
        before = after
    return before


def _wrong_cursor(cursor: object) -> ParameterError:
    return ParameterError(f"`cursor` must come from the result of the same call; got {cursor!r:.200}")
