"""A crawl as it was at an earlier event: a temporary copy of its folder that ends there.

The log holds every page, link, answer, lease and changed setting that ever was, so all of these are exact. It names
each ranking that the crawl adopted, so the ranking that held then can be computed again (:mod:`.adopted`). The checksum
shows whether it is the same. If it is not, :class:`AsOf` says so.
"""

import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inlink.base.folder import Folder
from inlink.base.table import counted
from inlink.base.unfinished import unfinished_folder
from inlink.crawl.adopted import Adopted, adopted_rankings, event_places, extend, ranking_options, restored
from inlink.crawl.settings import FILE, encoded, from_data, stored
from inlink.errors import FolderError, ParameterError
from inlink.frontier.policies import POLICIES
from inlink.frontier.ranked import RANKINGS, STORED, by_stored_ranking
from inlink.reranking.process import Ranker
from inlink.store.backup import copy_folder
from inlink.store.format import SETTINGS, Head, struct_of
from inlink.store.log import EVENTS, RANKS, URLS
from inlink.store.pages import Pages
from inlink.store.prior import DISTRUST, PRIOR, kept_folder
from inlink.store.reader import crawl_folder, open_pages

_EVENT = re.compile(r"#([1-9][0-9]{0,17})")
_HEAD = struct_of(Head)
_UNKNOWN = "the log lacks the ranking that held then, so ranks are computed as of this event"
_SAME_EVENTS = (
    "the ranking that held then could not be computed again bit by bit; it has the same events and tolerance"
)


@dataclass(frozen=True)
class AsOf:
    """A crawl as it was.

    Attributes
    ----------
    folder : Path
        The copy.
    event : int
        The number of events that had happened.
    time : float
        When the last of them happened, Unix time.
    approximate : str
        What is not exact, as a sentence; empty if all is.
    """

    folder: Path
    event: int
    time: float
    approximate: str


def moment_of(text: str) -> int | float:
    """Return the moment that a text names: the number of an event (``#1200``) as int, or a Unix time as float.

    A time is a number of seconds, or a date as in ISO 8601 (``2026-11-22``, ``2026-11-22T16:00:00``). It is in UTC if
    it names no time zone.

    Raises
    ------
    inlink.errors.ParameterError
        If it is neither.
    """
    if found := _EVENT.fullmatch(text):
        return int(found[1])
    try:
        value = float(text)
        if np.isfinite(value):
            return value
    except ValueError:
        pass
    try:
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ParameterError(
            f"--as-of takes a time (2026-11-22T16:00:00 in UTC, or Unix seconds) or an event (#1200); got {text!r}"
        ) from None


@contextmanager
def as_of(
    folder: str | os.PathLike[str], moment: int | float, temporary: Path, *, order: bool = True
) -> Iterator[AsOf]:
    """A copy of a crawl's folder as it was at an event or a time, for the block. The folder itself is only read.

    Parameters
    ----------
    folder : path-like
        Another process may be writing it.
    moment : int or float
        As :func:`moment_of` returns it. At a time, all events up to it have happened; infinity is now.
    temporary : Path
        Where the copy is made.
    order : bool
        Whether the order of waiting pages is needed. If it is not, the ranking of that time is not computed.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or it is damaged.
    inlink.errors.ParameterError
        If the crawl has no event of that number, or none up to that time.
    """
    path = Path(folder)
    header = crawl_folder(path).header
    pages = open_pages(path, with_urls=False)
    try:
        pages.recover()
        place, event = _last(pages, path, moment)
        head = Head._make(_HEAD.unpack_from(pages.frames.log.data, place))
        settings, lists = _settings(pages, place)
        rankings = adopted_rankings(pages) if order else []
    finally:
        pages.close()
    with unfinished_folder(temporary / "inlink-as-of") as room:
        copy = room / path.resolve().name
        copy.mkdir()
        header.meta = header.meta | {"as_of": f"{path} (crawl, as of event #{event})"}
        header.check = header.checksum()
        (copy / "header.json").write_bytes(msgspec.json.encode(header))
        extend(path / URLS, copy / URLS, head.text_place + head.text_size)
        known = settings if settings is not None else stored(path)
        (copy / FILE).write_bytes(encoded(known))
        approximate: list[str] = []
        if order:
            if settings is None:
                approximate.append("the log has no settings from before, so today's hold")
            approximate += _order(path, copy, known, rankings, place)
            approximate += _put_lists(path, copy, known, lists)
        extend(path / EVENTS, copy / EVENTS, head.place + head.length)
        if order and _UNKNOWN in approximate:
            _rank(copy, known)
        yield AsOf(copy, event, float(head.time), "; ".join(approximate))


def _order(path: Path, copy: Path, settings: Any, rankings: Sequence[Adopted], place: int) -> list[str]:
    """Add the rankings of an earlier moment to a copy. Return a sentence for each approximation."""
    approximate = []
    if settings.policy.startswith(STORED):
        # The log may come from anybody, so the name is checked before it is a part of a path.
        by_stored_ranking(settings.policy)
        name = settings.policy.removeprefix(STORED)
        copy_folder(path / RANKINGS / name, copy / RANKINGS / name, "ranking")
        approximate.append(f"the values of ranking {name} are those that were stored last")
    before = [ranking for ranking in rankings if ranking.place <= place]
    if not before:
        if _algorithm(settings) is not None and _lacks_rankings(path, rankings):
            approximate.append(_UNKNOWN)
    elif _may_use(settings, before[-1]) and not restored(path, copy, before):
        approximate.append(_SAME_EVENTS if (copy / RANKS).exists() else _UNKNOWN)
    return approximate


def _put_lists(path: Path, copy: Path, settings: Any, lists: Mapping[str, int]) -> list[str]:
    """Add the lists of hosts of an earlier moment to a copy. Return a sentence for each approximation."""
    approximate = []
    for name, what in ((PRIOR, "places of hosts"), (DISTRUST, "distrusted hosts")):
        shutil.rmtree(copy / name, ignore_errors=True)
        if getattr(settings, name) is None:
            continue
        kept = kept_folder(path, name, lists.get(name, 0))
        if kept is None or not copy_folder(kept, copy / name, name):
            copy_folder(path / name, copy / name, name)
            approximate.append(f"{what} are those that were given last")
    return approximate


def _may_use(settings: Any, ranking: Adopted) -> bool:
    """Return True if a crawl with these settings may use a ranking; a policy of the user's own may use any."""
    if settings.policy not in POLICIES:
        return not settings.policy.startswith(STORED)
    algorithm = _algorithm(settings)
    # The event of a ranking whose parameters cannot be read has no algorithm.
    fits = ranking.algorithm in ("", algorithm)
    return algorithm is not None and fits and ranking.parameters.use_scores == settings.use_scores


def _lacks_rankings(path: Path, rankings: Sequence[Adopted]) -> bool:
    """Return True if the crawl may have had a ranking before the first that its log names."""
    if rankings:
        return rankings[0].parameters.before is not None
    try:
        # A version that writes no rankings into the log has left this one.
        return "before" not in Folder(path / RANKS, RANKS, 1).header.meta
    except FolderError:
        return False


def _last(pages: Pages, path: Path, moment: int | float) -> tuple[int, int]:
    """The place of the last event that had happened, and the number of events up to it."""
    places = event_places(pages)
    if isinstance(moment, int):
        if not 0 < moment <= len(places):
            raise ParameterError(
                f"{path}: there is no event #{moment:,}; the crawl has {counted(len(places), 'event')}"
            )
        return int(places[moment - 1]), moment
    # Time never goes back in a log, so the place can be bisected.
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if Head._make(_HEAD.unpack_from(pages.frames.log.data, int(places[middle]))).time <= moment:
            low = middle + 1
        else:
            high = middle
    if not low:
        began = datetime.fromtimestamp(pages.started, UTC)
        raise ParameterError(
            f"{path}: nothing had happened by then; the crawl began at {began:%Y-%m-%dT%H:%M:%S}Z"
        )
    return int(places[low - 1]), low


def _settings(pages: Pages, place: int) -> tuple[Any, dict[str, int]]:
    """The settings that were in force at an event, and the checksums of the lists of hosts by setting.

    The settings are None if the log has none from before. A list whose checksum the log lacks is left out.
    """
    before = [at for at in pages.frames.of_kind(SETTINGS) if at <= place]
    if not before:
        return None, {}
    try:
        data = msgspec.json.decode(pages.frames.frame(before[-1]).payload, type=dict[str, Any])
        return from_data(data), msgspec.convert(data.get("lists", {}), dict[str, int])
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise FolderError(f"{pages.folder}: the settings in the log cannot be read ({error})") from None


def _algorithm(settings: Any) -> str | None:
    """Return the ranking algorithm of a crawl's policy; None for a policy without rankings, or a user's own policy."""
    policy = POLICIES.get(settings.policy)
    return None if policy is None else policy.algorithm


def _rank(copy: Path, settings: Any) -> None:
    """Rank the copy as its policy does."""
    if _algorithm(settings) is None:
        return
    ranker = Ranker(copy, ranking_options(settings, POLICIES[settings.policy]), threading.Event())
    try:
        ranker.rank()
    finally:
        ranker.pages.close()
