"""A crawl as it was at an earlier event: a temporary copy of its folder that ends there.

The log holds every page, link, answer, lease and changed setting that ever was, so all of these are exact. It does not
hold the values of rankings. A crawl whose policy ranks pages is ranked anew as of that event, so its order is
approximate: the crawl had a ranking of an earlier event then.
"""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inlink.base.unfinished import unfinished_folder
from inlink.crawl.settings import FILE, as_data, encoded, from_data, stored
from inlink.errors import FolderError, ParameterError
from inlink.reranking import process
from inlink.reranking.process import Ranker
from inlink.store.backup import copy_folder
from inlink.store.format import KINDS, SETTINGS, SYNCED, Head, struct_of
from inlink.store.log import EVENTS, URLS
from inlink.store.pages import Pages
from inlink.store.prior import PRIOR
from inlink.store.reader import crawl_folder, open_pages

__all__ = ["AsOf", "as_of", "moment_of"]

_EVENT = re.compile(r"#([1-9][0-9]{0,17})")
_HEAD = struct_of(Head)
_BLOCK = 1 << 22
_ALL = tuple(kind for kind in range(1, len(KINDS)) if kind != SYNCED)


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
    """What a text names: the number of an event (``#1200``) as int, or a Unix time as float.

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
def as_of(folder: str | os.PathLike[str], moment: int | float, temporary: Path) -> Iterator[AsOf]:
    """A copy of a crawl's folder as it was at an event or a time, for the block. The folder itself is only read.

    Parameters
    ----------
    folder : path-like
        Another process may be writing it.
    moment : int or float
        As :func:`moment_of` returns it. At a time, all events up to it have happened.
    temporary : Path
        Where the copy is made.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or it is damaged.
    inlink.errors.ParameterError
        If the crawl has not so many events, or none up to that time.
    """
    path = Path(folder)
    header = crawl_folder(path).header
    pages = open_pages(path, with_urls=False)
    try:
        pages.recover()
        place, event = _last(pages, path, moment)
        head = Head._make(_HEAD.unpack_from(pages.log.data, place))
        settings = _settings(pages, place)
    finally:
        pages.close()
    with unfinished_folder(temporary / "inlink-as-of") as room:
        copy = room / path.resolve().name
        copy.mkdir()
        header.meta = header.meta | {"as_of": f"{path} (crawl, as of event #{event})"}
        header.check = header.checksum()
        (copy / "header.json").write_bytes(msgspec.json.encode(header))
        _copy(path / EVENTS, copy / EVENTS, head.place + head.length)
        _copy(path / URLS, copy / URLS, head.text_place + head.text_size)
        known = settings if settings is not None else stored(path)
        (copy / FILE).write_bytes(encoded(known))
        approximate = [] if settings is not None else ["the log has no settings from before, so today's hold"]
        if known.prior is not None:
            copy_folder(path / PRIOR, copy / PRIOR, PRIOR)
            approximate.append("places of hosts are those that were given last")
        if _ranked(copy, known):
            approximate.append("ranks are computed as of this event")
        yield AsOf(copy, event, float(head.time), "; ".join(approximate))


def _last(pages: Pages, path: Path, moment: int | float) -> tuple[int, int]:
    """The place of the last event that had happened, and the number of events up to it."""
    places = np.array(pages.frames_of_kind(*_ALL), np.uint64)
    if isinstance(moment, int):
        if moment > len(places):
            raise ParameterError(
                f"{path}: there is no event #{moment:,}; the crawl has {len(places):,} events"
            )
        return int(places[moment - 1]), moment
    # Time never goes back in a log, so the place can be bisected.
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) // 2
        if Head._make(_HEAD.unpack_from(pages.log.data, int(places[middle]))).time <= moment:
            low = middle + 1
        else:
            high = middle
    if not low:
        began = datetime.fromtimestamp(pages.started, UTC)
        raise ParameterError(
            f"{path}: nothing had happened by then; the crawl began at {began:%Y-%m-%dT%H:%M:%S}Z"
        )
    return int(places[low - 1]), low


def _settings(pages: Pages, place: int) -> Any:
    """The settings that were in force at an event; None if the log has none from before."""
    before = [at for at in pages.frames_of_kind(SETTINGS) if at <= place]
    if not before:
        return None
    try:
        return from_data(msgspec.json.decode(pages.frame(before[-1]).payload, type=dict[str, Any]))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise FolderError(f"{pages.folder}: the settings in the log cannot be read ({error})") from None


def _copy(source: Path, target: Path, size: int) -> None:
    """Copy the first ``size`` bytes of a file."""
    with source.open("rb") as file, target.open("wb") as out:
        while size > 0 and (block := file.read(min(size, _BLOCK))):
            out.write(block)
            size -= len(block)
    if size > 0:
        raise FolderError(f"{source} was cut while it was read: try again")


def _ranked(copy: Path, settings: Any) -> bool:
    """Rank the copy if the policy ranks pages; return whether it does."""
    from inlink.frontier.policies import POLICIES

    policy = POLICIES.get(settings.policy)
    if policy is None or policy.algorithm is None:
        return False
    data = as_data(settings)
    options = [str(copy), "--algorithm", policy.algorithm, "--damping", str(settings.damping)]
    options += ["--use-scores"] * bool(data["use_scores"])
    options += ["--cross-domain-only"] * bool(data["cross_domain_only"])
    options += ["--trust"] * (settings.trust is not None)
    ranker = Ranker(copy, process.parsed(options), threading.Event())
    try:
        ranker.rank()
    finally:
        ranker.reader.close()
    return True
