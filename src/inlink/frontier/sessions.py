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
from inlink.store.frames import fields_at
from inlink.store.pages import Pages

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
                f"this crawl has the maximum of {len(self._by_number):,} open sessions: end sessions that no spider "
                "uses, or begin again under the name of their owner"
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
        for place in pages.frames.of_kind(SESSION):
            payload = pages.frames.frame(place).payload
            number, silent_after, ended = record.unpack_from(payload)
            self.next_number = max(self.next_number, number + 1)
            if ended:
                self.remove(number)
            else:
                owner = payload[record.size :].decode("utf-8", "replace")
                self.add(SpiderSession(number, owner, silent_after, now, begun=place, since=place))
        if self._by_number:
            begin = min(session.begun for session in self)
            leased, leasing = _places(pages, LEASE, LeaseRecord, begin)
            reported, reporting = _places(pages, REPORTED, ReportedRecord, begin)
            for session in self:
                for place in reversed(leased[leasing == session.number].tolist()):
                    session.asked, numbers = _request(pages, place)
                    if session.asked:
                        session.given = list(numbers)
                        break
                for place in reported[reporting == session.number][-1:].tolist():
                    payload = pages.frames.frame(place).payload
                    (_, session.reported), session.since = (
                        struct_of(ReportedRecord).unpack_from(payload),
                        place,
                    )
                    outcomes = np.frombuffer(payload, dtype_of(OutcomeRecord), offset=size_of(ReportedRecord))
                    session.outcomes = [(int(row["lease"]), bool(row["counted"])) for row in outcomes]

    def leases_of(self, session: SpiderSession, pages: Pages) -> set[int]:
        """The numbers of all leases that a session ever got."""
        places, sessions = _places(pages, LEASE, LeaseRecord, session.begun)
        places = places[sessions == session.number]
        return {number for place in places.tolist() for number in _request(pages, place)[1]}


def _places(pages: Pages, kind: int, record: Any, begin: int) -> tuple[UInt64Array, AnyArray]:
    """The places of the frames of a kind from byte ``begin`` of the log on, and the session of each."""
    places = np.array(pages.frames.of_kind(kind, begin=begin), np.uint64)
    return places, fields_at(pages.frames.at(places), places + np.uint64(HEAD_SIZE), record, "session")


def _request(pages: Pages, place: int) -> tuple[int, range]:
    """The id of the request that a lease event answered, 0 if there was none, and the numbers of its leases."""
    frame = pages.frames.frame(place)
    leased = LeaseRecord._make(struct_of(LeaseRecord).unpack_from(frame.payload))
    return leased.request, range(leased.first_lease, leased.first_lease + frame.listed)
