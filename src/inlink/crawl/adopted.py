"""The rankings that a crawl adopted, as events of its log, and how to compute them again.

The log does not hold the values of a ranking. It holds the algorithm, the parameters, the byte of the log that the
ranking covers, a checksum of the values, and the ranking that the computation started from. Rankings are computed on
one thread, so the same events give the same bits. A ranking therefore can be computed again from the beginning of its
chain, and the checksums show whether the values are those that were adopted.
"""

import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from inlink.base.arrays import UInt64Array
from inlink.base.decoding import decoded
from inlink.base.folder import Folder, Header
from inlink.base.progress import track
from inlink.crawl.settings import shard_of
from inlink.errors import FolderError
from inlink.factors.table import HOST_FACTORS, factors_given
from inlink.frontier.policy import Policy
from inlink.frontier.settings import Settings
from inlink.reranking.live import LEAST_TOL
from inlink.reranking.process import ALGORITHMS, KIND, NAME, VERSION, Ranker, RankingOptions
from inlink.store.backup import copy_folder
from inlink.store.format import KINDS, RANKING, SYNCED, RankingRecord, size_of, struct_of
from inlink.store.log import EVENTS
from inlink.store.pages import Pages
from inlink.store.prior import DISTRUST, kept_folder

COLUMNS = (
    "event", "time", "algorithm", "damping", "tol", "use_scores", "cross_domain_only", "trusted", "pages", "covers",
    "checksum",
)  # fmt: skip
"""The columns of :func:`ranking_rows`."""

_RECORD = struct_of(RankingRecord)
_BLOCK = 1 << 22
_NOT_TOLD = -1
_ALL = tuple(kind for kind in range(1, len(KINDS)) if kind != SYNCED)


class Parameters(msgspec.Struct, frozen=True):
    """The parameters of a ranking, as the header of ``ranks`` and the log hold them.

    Attributes
    ----------
    damping, tol : float
    max_iter : int
    use_scores, cross_domain_only : bool
    trust : int
        The place of the event that names the trusted pages, plus 1; 0 if there are none.
    distrust : int
        The checksum of the list of known spam whose distrust the ranking brought; 0 if there is none, -1 if this is not
        known.
    trusted_share : int
        1 if the ranking brought the spam mass of hosts, else 0.
    expected : int
        1 if the ranking brought the ranks that pages can expect, else 0.
    sections : int
        1 if the ranking brought divisors of sections, else 0.
    pages : int
        The number of pages that have a value.
    before : (int, int) or None
        Byte covered and checksum of the ranking from which the computation started; None if it started from nothing.
        (-1, -1) if this is not known.
    anew : bool
        Whether the computation started from the float32 values of that ranking, in place of the state in memory.
    """

    damping: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.85
    tol: Annotated[float, msgspec.Meta(ge=LEAST_TOL, lt=1)] = 1e-4
    max_iter: Annotated[int, msgspec.Meta(ge=1)] = 100
    use_scores: bool = False
    cross_domain_only: bool = False
    trust: int = 0
    distrust: int = _NOT_TOLD
    trusted_share: int = 0
    expected: int = 0
    sections: int = 0
    pages: int = 0
    before: tuple[int, int] | None = (_NOT_TOLD, _NOT_TOLD)
    anew: bool = True


class Adopted(msgspec.Struct, frozen=True):
    """A ranking that a crawl adopted.

    Attributes
    ----------
    place : int
        The byte of the log at which its event begins.
    time : float
        When it was adopted, Unix time.
    covers : int
        It covers the log up to this byte.
    check : int
        CRC-32 of its values.
    algorithm : str
        Empty if the event cannot be read.
    parameters : Parameters
    """

    place: int
    time: float
    covers: int
    check: int
    algorithm: str
    parameters: Parameters

    @property
    def identity(self) -> tuple[int, int]:
        """The byte that it covers, and its checksum."""
        return self.covers, self.check


def payload_of(header: Header) -> bytes:
    """The payload of the event for the ranking whose folder has this header."""
    meta = header.meta
    entry = header.files["rank"]
    parameters = {name: meta[name] for name in Parameters.__struct_fields__ if name in meta}
    text = msgspec.json.encode([meta["algorithm"], parameters | {"pages": entry.length}])
    return _RECORD.pack(meta["covers"], entry.crc32) + text


def ranking_options(settings: Settings, policy: type[Policy] | Policy) -> RankingOptions:
    """Return the options of the ranking process for a crawl with these settings."""
    return RankingOptions(
        algorithm=policy.algorithm or "",
        damping=settings.damping,
        use_scores=settings.use_scores,
        cross_domain_only=settings.cross_domain_only,
        trust=settings.trust is not None,
        factors=factors_given(settings),
        expected=policy.takes_expected,
        sections=policy.takes_sections,
        shard=shard_of(settings) is not None,
    )


def adopted_rankings(pages: Pages, begin: int = 0) -> list[Adopted]:
    """The rankings that a crawl adopted, in their order, from byte ``begin`` of its log on."""
    return [_read(pages, place) for place in pages.frames.of_kind(RANKING, begin=begin)]


def _read(pages: Pages, place: int) -> Adopted:
    frame = pages.frames.frame(place)
    record = RankingRecord._make(_RECORD.unpack_from(frame.payload))
    algorithm, parameters = "", Parameters()
    try:
        text = frame.payload[size_of(RankingRecord) :]
        algorithm, parameters = decoded(text, tuple[str, Parameters])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    return Adopted(place, frame.time, record.covers, record.check, algorithm, parameters)


def event_places(pages: Pages) -> UInt64Array:
    """The place of each event in the log, uint64[events]; event #1 comes first."""
    return np.array(pages.frames.of_kind(*_ALL), np.uint64)


def ranking_rows(pages: Pages) -> list[tuple[object, ...]]:
    """The rankings that a crawl adopted as rows, with the columns :data:`COLUMNS`.

    The time is a Unix time in seconds, ``covers`` the number of bytes of the log that the ranking covers, and the
    checksum is in hexadecimal digits. If the parameters cannot be read, their cells are empty.
    """
    rankings = adopted_rankings(pages)
    events = np.searchsorted(event_places(pages), [ranking.place for ranking in rankings], "right").tolist()
    rows: list[tuple[object, ...]] = []
    for event, ranking in zip(events, rankings, strict=True):
        given = ranking.parameters
        flags = [int(flag) for flag in (given.use_scores, given.cross_domain_only, given.trust > 0)]
        said: tuple[object, ...] = (ranking.algorithm, given.damping, given.tol, *flags, given.pages)
        if not ranking.algorithm:
            said = ("",) * len(said)
        rows.append((event, ranking.time, *said, ranking.covers, f"{ranking.check:08x}"))
    return rows


def chain_of(rankings: Sequence[Adopted]) -> list[Adopted] | None:
    """The rankings to compute, one after the other, to get the last one of a sequence; None if the log lacks one.

    Parameters
    ----------
    rankings : sequence of Adopted
        All rankings that the crawl adopted up to the last one, in the order of the log.
    """
    # A ranking that was adopted twice counts from the first time.
    known = {ranking.identity: ranking for ranking in reversed(rankings)}
    chain = [rankings[-1]]
    while (before := chain[-1].parameters.before) is not None:
        last, earlier = chain[-1], known.get(before)
        # The log may come from anybody, so a chain must not be a circle.
        if earlier is None or earlier.place >= last.place or earlier.covers > last.covers:
            return None
        chain.append(earlier)
    if any(ranking.algorithm not in ALGORITHMS or ranking.covers > ranking.place for ranking in chain):
        return None
    return chain[::-1]


def restored(source: Path, copy: Path, rankings: Sequence[Adopted]) -> bool:
    """Put the last ranking of a sequence into a copy of a crawl's folder; return True if it is the same bit by bit.

    Parameters
    ----------
    source : Path
        The crawl's folder.
    copy : Path
        A folder with the crawl's header and URLs. Its log is extended up to the byte that the ranking covers.
    rankings : sequence of Adopted
        All rankings that the crawl adopted up to the last one. The copy may get the list of known spam that the last
        one was made with. If its values cannot be computed again, the copy gets a
        ranking of the same events with the same parameters, whose error is within the tolerance too.
    """
    last = rankings[-1]
    if _holds(source, last) and copy_folder(source / NAME, copy / NAME, KIND) and _holds(copy, last):
        return True
    told = last.parameters.distrust
    spam = source / DISTRUST if told == _NOT_TOLD else kept_folder(source, DISTRUST, told)
    if spam is not None:
        copy_folder(spam, copy / DISTRUST, DISTRUST)
    chain = chain_of(rankings)
    if chain is not None and _computed(source, copy, chain):
        return True
    shutil.rmtree(copy / NAME, ignore_errors=True)
    if last.algorithm in ALGORITHMS and last.covers <= last.place:
        extend(source / EVENTS, copy / EVENTS, last.covers)
        ranker = _ranker(copy, last)
        try:
            ranker.rank()
        finally:
            ranker.pages.close()
    return False


def _published(folder: Path, ranking: Adopted) -> bool:
    """Return True if the ranking in a crawl's folder is this one, by its header."""
    try:
        header = Folder(folder / NAME, KIND, VERSION).header
    except FolderError:
        return False
    entry = header.files.get("rank")
    return entry is not None and (header.meta.get("covers"), entry.crc32) == ranking.identity


def _holds(folder: Path, ranking: Adopted) -> bool:
    """Return True if the ranking in a crawl's folder is this one, with the factors of hosts that it brought."""
    if not _published(folder, ranking):
        return False
    meta, given = Folder(folder / NAME, KIND, VERSION).header.meta, ranking.parameters
    shares = given.distrust in (_NOT_TOLD, meta.get("distrust", 0))
    return shares and given.trusted_share == meta.get("trusted_share", 0)


def _computed(source: Path, copy: Path, chain: Sequence[Adopted]) -> bool:
    """Compute a chain of rankings in the copy; return True if each has the checksum that the log names."""
    ranker: Ranker | None = None
    try:
        with track("computing earlier rankings", len(chain), "rankings") as progress:
            for ranking in chain:
                extend(source / EVENTS, copy / EVENTS, ranking.covers)
                if ranker is None or ranking.parameters.anew:
                    if ranker is not None:
                        ranker.pages.close()
                    ranker = _ranker(copy, ranking)
                ranker.rank()
                if not _published(copy, ranking):
                    return False
                progress.advance(1)
    finally:
        if ranker is not None:
            ranker.pages.close()
    return True


def _ranker(folder: Path, ranking: Adopted) -> Ranker:
    parameters = ranking.parameters
    factors = [kind.setting for kind in HOST_FACTORS if getattr(parameters, kind.name)]
    if not (folder / DISTRUST).exists():
        factors = [name for name in factors if name != DISTRUST]
    options = RankingOptions(
        algorithm=ranking.algorithm,
        damping=parameters.damping,
        tol=parameters.tol,
        max_iter=parameters.max_iter,
        use_scores=parameters.use_scores,
        cross_domain_only=parameters.cross_domain_only,
        trust=parameters.trust > 0,
        factors=factors,
        expected=parameters.expected > 0,
        sections=parameters.sections > 0,
    )
    return Ranker(folder, options, threading.Event())


def extend(source: Path, target: Path, size: int) -> None:
    """Append bytes of a file to a copy of its beginning, until the copy has ``size`` bytes.

    Raises
    ------
    inlink.errors.FolderError
        If the file has fewer bytes.
    """
    with source.open("rb") as file, target.open("ab") as out:
        left = size - file.seek(os.fstat(out.fileno()).st_size)
        while left > 0 and (block := file.read(min(left, _BLOCK))):
            out.write(block)
            left -= len(block)
    if left > 0:
        raise FolderError(f"{source} was cut while it was read: try again")
