"""Sessions: each is one life of a spider. Its owner's name stays the same for all its sessions.

The open sessions are folded from the log's events, with the last request for tasks and the last report of each. A
spider that got no reply repeats its request and gets the same reply.
"""

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import AnyArray, UInt64Array
from inlink.errors import SessionError
from inlink.store.format import (
    HEAD_SIZE,
    LEASE,
    REPORTED,
    SESSION,
    LeaseRecord,
    OutcomeRecord,
    ReportedRecord,
    SessionRecord,
    dtype_of,
    size_of,
    struct_of,
)
from inlink.store.pages import Pages

__all__ = ["MOST_SESSIONS", "SessionLimitError", "SpiderSession", "SpiderSessions"]

MOST_SESSIONS = 10_000
"""Maximum number of open sessions of a crawl. Each takes memory, and is looked at in each call."""


class SessionLimitError(SessionError):
    """A crawl has its maximum number of open sessions."""


class SpiderSession(msgspec.Struct):
    """An open session.

    Attributes
    ----------
    number : int
    owner : str
    silent_after : float
        Seconds without a call after which it ends; infinity is never.
    heard : float
        Unix time of its last call.
    asked : int
        Id of its last request for tasks; 0 if there was none.
    given : list of int
        Numbers of the leases that this request got.
    reported : int
        Id of its last report; 0 if there was none.
    outcomes : list of (int, bool)
        For each answer of this report, the number of the lease of a redirect's target, or 0, and whether the answer
        counted.
    begun : int
        Place in the log of the event that began it.
    since : int or None
        After the crawl was opened again, the place in the log of the session's last report, or ``begun``. None once
        this process has taken in a report.
    """

    number: int
    owner: str
    silent_after: float
    heard: float
    asked: int = 0
    given: list[int] = []
    reported: int = 0
    outcomes: list[tuple[int, bool]] = []
    begun: int = 0
    since: int | None = None


class SpiderSessions:
    """The open sessions. Each owner has at most one."""

    def __init__(self) -> None:
        self.next_number = 1
        self._by_number: dict[int, SpiderSession] = {}
        self._by_owner: dict[str, SpiderSession] = {}
        # No session was silent for too long before this Unix time.
        self.next_silence = math.inf

    def __iter__(self) -> Iterator[SpiderSession]:
        return iter(list(self._by_number.values()))

    def get(self, number: int) -> SpiderSession | None:
        """The session with a number; None if it is not open."""
        return self._by_number.get(number)

    def of_owner(self, owner: str) -> SpiderSession | None:
        """The open session of an owner; None if there is none."""
        return self._by_owner.get(owner)

    def check_room(self) -> None:
        """Refuse a further session if :data:`MOST_SESSIONS` are open.

        Raises
        ------
        SessionLimitError
        """
        if len(self._by_number) >= MOST_SESSIONS:
            raise SessionLimitError(
                f"this crawl has {len(self._by_number):,} open sessions, which is the maximum: end sessions that no "
                "spider uses, or begin again under the name of their owner"
            )

    def add(self, session: SpiderSession) -> None:
        """Add a session that begins."""
        self._by_number[session.number] = session
        self._by_owner[session.owner] = session
        self.next_silence = min(self.next_silence, session.heard + session.silent_after)
        self.next_number = max(self.next_number, session.number + 1)

    def remove(self, number: int) -> None:
        """Remove a session that has ended."""
        session = self._by_number.pop(number, None)
        if session is not None and self._by_owner.get(session.owner) is session:
            del self._by_owner[session.owner]

    def silent(self, now: float) -> list[SpiderSession]:
        """The sessions that were silent for too long. The caller must end them."""
        silent = []
        self.next_silence = math.inf
        for session in self._by_number.values():
            if now - session.heard >= session.silent_after:
                silent.append(session)
            else:
                self.next_silence = min(self.next_silence, session.heard + session.silent_after)
        return silent

    # -- restoring ----------------------------------------------------------------------------------------------------

    def restore(self, pages: Pages, now: float) -> None:
        """Restore the open sessions from the log. Their last call counts as of ``now``."""
        record = struct_of(SessionRecord)
        for place in pages.frames_of_kind(SESSION):
            payload = pages.frame(place).payload
            told = SessionRecord._make(record.unpack_from(payload))
            self.next_number = max(self.next_number, told.session + 1)
            if told.ended:
                self.remove(told.session)
            else:
                owner = payload[record.size :].decode("utf-8", "replace")
                self.add(SpiderSession(told.session, owner, told.silent_after, now, begun=place, since=place))
        if self._by_number:
            begin = min(session.begun for session in self)
            self._restore_requests(pages, begin)
            self._restore_reports(pages, begin)

    def leases_of(self, session: SpiderSession, pages: Pages) -> set[int]:
        """The numbers of all leases that a session ever got."""
        places = np.array(pages.frames_of_kind(LEASE, begin=session.begun), np.uint64)
        leased = _records(pages, places, LeaseRecord)
        found: set[int] = set()
        for row in np.flatnonzero(leased["session"] == session.number).tolist():
            first = int(leased[row]["first_lease"])
            found.update(range(first, first + pages.frame(int(places[row])).listed))
        return found

    def _restore_requests(self, pages: Pages, begin: int) -> None:
        places = np.array(pages.frames_of_kind(LEASE, begin=begin), np.uint64)
        leased = _records(pages, places, LeaseRecord)
        for session in self:
            rows = np.flatnonzero((leased["session"] == session.number) & (leased["request"] > 0))
            if len(rows):
                last = leased[rows[-1]]
                session.asked, first = int(last["request"]), int(last["first_lease"])
                session.given = list(range(first, first + pages.frame(int(places[rows[-1]])).listed))

    def _restore_reports(self, pages: Pages, begin: int) -> None:
        places = np.array(pages.frames_of_kind(REPORTED, begin=begin), np.uint64)
        reported = _records(pages, places, ReportedRecord)
        for session in self:
            rows = np.flatnonzero(reported["session"] == session.number)
            if len(rows):
                place = int(places[rows[-1]])
                payload = pages.frame(place).payload
                session.reported, session.since = int(reported[rows[-1]]["request"]), place
                outcomes = np.frombuffer(payload, dtype_of(OutcomeRecord), offset=size_of(ReportedRecord))
                session.outcomes = [(int(row["lease"]), bool(row["counted"])) for row in outcomes]


def _records(pages: Pages, places: UInt64Array, record: Any) -> AnyArray:
    """The beginnings of the payloads of frames, as records. ``places``, uint64[n], are the places of the frames."""
    begins = places.astype(np.int64) + HEAD_SIZE
    raw = pages.log_at(places)[begins[:, None] + np.arange(size_of(record))]
    return np.ascontiguousarray(raw).view(dtype_of(record)).reshape(-1)
