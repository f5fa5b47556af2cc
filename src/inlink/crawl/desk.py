"""The desk: the one way in for all spiders, wherever they run.

A spider belongs to an *owner*, a name that stays, and works in a *session*, one life of it. The desk hands out leases
to sessions and takes their answers by lease number. It looks each number up in its own book of leases, and believes
nothing else that an answer says about its lease.

**Repeats.** A spider numbers its requests for tasks, and its reports, with increasing integers. It has at most one
request for tasks and one report under way. If it gets no reply, it repeats the request under the same number. The
repeat returns the outcomes of the first time and the tasks that are still out. This holds even if the crawl's process
died in between, because the events of leases and reports hold these numbers, and each answer's event holds its lease.

**Losses.** A lease is lost if it expires, if a new session of its owner begins, or if its session is silent for too
long. :mod:`inlink.frontier.lost` describes what happens to the page. While the crawl is closed, no lease expires.
"""

import math
import time
from collections.abc import Generator, Sequence
from typing import cast

import numpy as np
from msgspec.structs import replace

from inlink.crawl.arguments import argument, check_flags
from inlink.crawl.intake import checked_answers
from inlink.crawl.leasing import BY_SPIDER, BY_SUCCESSOR, Leasing
from inlink.crawl.links import split_links
from inlink.errors import ParameterError, SessionError, UnknownNodeError
from inlink.frontier.leases import lease_of
from inlink.frontier.sessions import SpiderSession
from inlink.protocol import (
    Answer,
    Crawled,
    Excluded,
    Failed,
    HostDelay,
    Receipt,
    Released,
    Session,
    Task,
    Tasks,
)
from inlink.store import format as kinds
from inlink.store.format import (
    LeaseRecord,
    OutcomeRecord,
    RenewedRecord,
    ReportedRecord,
    dtype_of,
    struct_of,
)

LONGEST_RENEWAL = 3600.0
"""Seconds after which a lease is not renewed any more."""

LONGEST_OWNER = 200
"""Maximum number of bytes of an owner's name."""


class Desk:
    """Sessions of spiders on a crawl: they begin, get tasks, answer, renew, and end."""

    def __init__(self, leasing: Leasing) -> None:
        self._leasing, self._answers, self._intake = leasing, leasing.answers, leasing.intake
        self._journal, self._frontier = leasing.journal, leasing.frontier
        self._gate, self._pages = leasing.journal.gate, leasing.journal.pages
        self._sessions = self._frontier.sessions
        self._reopen()

    # -- sessions -----------------------------------------------------------------------------------------------------

    def hello(self, owner: str, *, silent_after: float | None = None, rejoin: bool = False) -> Session:
        """Begin a session. The owner's previous session ends, and its tasks are lost.

        Parameters
        ----------
        owner : str
            Name of at most 200 bytes.
        silent_after : float or None
            Seconds without a call after which the session ends; None is never, for a spider in the crawl's own process.
        rejoin : bool
            Go on with the owner's session instead, if it has a session.

        Raises
        ------
        inlink.errors.ParameterError
            If the name is empty, too long or not printable, or ``silent_after`` is not above 0.
        inlink.errors.SessionError
            If the crawl has 10,000 open sessions, and none is the owner's.
        """
        if not (isinstance(owner, str) and owner.strip() and owner.isprintable()):
            raise ParameterError(f"`owner` must be one line of printable text; got {owner!r}")
        if len(owner.encode("utf-8", "replace")) > LONGEST_OWNER:
            raise ParameterError(
                f"`owner` must have at most {LONGEST_OWNER} bytes; got {len(owner):,} characters"
            )
        check_flags(rejoin=rejoin)
        silent_after = argument("silent_after", silent_after)
        seconds = math.inf if silent_after is None else silent_after
        with self._gate:
            now, lost = self._journal.tick(), 0
            previous = self._sessions.of_owner(owner)
            if previous is not None:
                if rejoin:
                    previous.heard = now
                    return self._described(previous, 0)
                lost = self._leasing.end_session(previous, BY_SUCCESSOR)
            self._sessions.check_room()
            session = SpiderSession(self._sessions.next_number, owner, seconds, now)
            self._leasing.write_session(session)
            self._sessions.add(session)
            return self._described(session, lost)

    def owner_of(self, session: int) -> str | None:
        """The owner of a session; None if it has ended. Any thread may ask at any time."""
        state = self._sessions.get(session)
        return None if state is None else state.owner

    def renew(self, session: int) -> int:
        """Extend a session's tasks by another ``lease_seconds``; return the number of tasks that were extended.

        A task is not renewed beyond one hour after it was given.

        Raises
        ------
        inlink.errors.SessionError
            If the session has ended.
        """
        with self._gate:
            self._leasing.session(session)
            now = self._journal.now
            expires = now + self._frontier.settings.lease_seconds
            outs = [
                out
                for out in self._frontier.leases.held_by(session)
                if out.expires < expires <= out.given + LONGEST_RENEWAL
            ]
            if outs:
                numbers = np.array([out.number for out in outs], np.uint64)
                payload = struct_of(RenewedRecord).pack(expires, session) + numbers.tobytes()
                self._journal.append(kinds.RENEWED, listed=len(outs), payload=payload)
                self._frontier.leases.renew(outs, expires)
            return len(outs)

    def bye(self, session: int) -> int:
        """End a session and give its tasks back; return their number.

        Raises
        ------
        inlink.errors.SessionError
            If the session has ended.
        """
        with self._gate:
            state = self._leasing.session(session)
            released = self._answers.release_all(session)
            self._leasing.end_session(state, BY_SPIDER)
            return released

    # -- tasks and answers --------------------------------------------------------------------------------------------

    def next(self, session: int, count: int, request: int = 0, *, lost: bool = True) -> Tasks:
        """Hand out at most ``count`` tasks to a session.

        Parameters
        ----------
        session : int
        count : int
        request : int
            Id of the request, larger than the session's last id. A request with the last id again returns those of its
            tasks that are still out. 0 is for a spider that never repeats a request.
        lost : bool
            Whether the session may get lost pages. False is for a caller that does not answer.

        Raises
        ------
        inlink.errors.SessionError
            If the session has ended, or the id is smaller than the last.
        """
        count, request = argument("count", count), argument("request", request)
        check_flags(lost=lost)
        with self._gate:
            state = self._leasing.session(session)
            if request and self._is_repeat("next", request, state.asked):
                tasks = [self._task_of(number, session) for number in state.given]
            else:
                leases = self._leasing.hand_out(count, session, request, lost)
                tasks = [self._leasing.task(lease) for lease in leases]
                if request and leases:
                    state.asked, state.given = request, [lease.number for lease in leases]
            front, now = self._frontier, self._journal.now
            return Tasks(
                [task for task in tasks if task is not None],
                None if self._frontier.paused else front.due_in(now, session),
                len(front.leases) - front.leases.held(session),
                self._frontier.paused,
            )

    def lease_on(self, session: int, url: str) -> int | None:
        """The number of the lease that a session holds on a page; None if it holds none.

        Raises
        ------
        inlink.errors.SessionError
            If the session has ended.
        """
        with self._gate:
            self._leasing.session(session)
            try:
                out = self._frontier.leases.current(self._journal.page_of(url))
            except UnknownNodeError:
                return None
            return None if out is None or out.session != session else out.number

    def report(self, session: int, answers: Sequence[Answer], request: int = 0) -> list[Receipt]:
        """Take in a session's answers; return the outcome of each, in their order.

        Parameters
        ----------
        session : int
        answers : sequence of Answer
        request : int
            Id of the report, larger than the session's last id. A report with the last id again returns the outcomes of
            the first time. 0 is for a spider that never repeats a report.

        Raises
        ------
        inlink.errors.SessionError
            If the session has ended, or the id is smaller than the last.
        inlink.errors.ParameterError
            If an answer has a value out of range. In this case no answer was taken in.
        """
        steps = self.reporting(session, answers, request, math.inf)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(list[Receipt], end.value)

    def reporting(
        self, session: int, answers: Sequence[Answer], request: int = 0, seconds: float = 0.002
    ) -> Generator[None, None, list[Receipt]]:
        """Take in a session's answers in steps, between which other calls may come; see :meth:`report`.

        A session has one report at a time.

        Parameters
        ----------
        session : int
        answers : sequence of Answer
        request : int
        seconds : float
            A step ends after the first answer at whose end it has taken this long.

        Yields
        ------
        None
            After each step but the last.
        """
        request = argument("request", request)
        answers = checked_answers(answers)
        receipts: list[Receipt] = []
        before: dict[int, tuple[int, bool]] | None = None
        while True:
            with self._gate:
                state = self._leasing.session(session)
                if before is None:
                    if request and self._is_repeat("report", request, state.reported):
                        return [
                            Receipt(counted, self._task_of(lease, session))
                            for lease, counted in state.outcomes
                        ]
                    before = self._outcomes_before(state, answers, request)
                stop = time.perf_counter() + seconds
                try:
                    for answer in answers[len(receipts) :]:
                        if isinstance(answer, Crawled):
                            self._journal.gather()
                        else:
                            self._journal.exclude_gathered()
                        receipts.append(self._take_in(answer, session, before))
                        # Each answer is a complete change, so the report may be interrupted between two answers.
                        self._gate.changing = False
                        if time.perf_counter() > stop:
                            break
                finally:
                    if not self._gate.changing:
                        self._journal.exclude_gathered()
                if len(receipts) == len(answers):
                    if request:
                        self._note_outcomes(state, request, receipts)
                    return receipts
            yield

    def _outcomes_before(
        self, state: SpiderSession, answers: Sequence[Answer], request: int
    ) -> dict[int, tuple[int, bool]]:
        """Outcomes of the answers that were taken in before the crawl's process died."""
        before: dict[int, tuple[int, bool]] = {}
        if state.since is not None:
            if request and any(self._is_off_the_book(answer) for answer in answers):
                before = self._answered_before(state)
            state.since = None
        return before

    def _note_outcomes(self, state: SpiderSession, request: int, receipts: Sequence[Receipt]) -> None:
        outcomes = [
            (0 if receipt.task is None else receipt.task.lease, receipt.counted) for receipt in receipts
        ]
        payload = struct_of(ReportedRecord).pack(state.number, request)
        payload += np.array(outcomes, dtype_of(OutcomeRecord)).tobytes()
        self._journal.append(kinds.REPORTED, listed=len(outcomes), payload=payload)
        state.reported, state.outcomes = request, outcomes

    def _take_in(self, answer: Answer, session: int, before: dict[int, tuple[int, bool]]) -> Receipt:
        answers = self._answers
        self._journal.tick()
        if isinstance(answer, HostDelay):
            try:
                return Receipt(answers.host_delay(answer.url, answer.seconds))
            except UnknownNodeError:
                return Receipt(False)
        number = answer.lease
        out = self._frontier.leases.get(number)
        if out is None and number in before:
            lease, counted = before[number]
            return Receipt(counted, self._task_of(lease, session))
        if out is None or out.session != session:
            return Receipt(False)
        if isinstance(answer, Crawled):
            return Receipt(self._crawled(answer))
        if isinstance(answer, Failed):
            waits = self._frontier.hosts.waits
            waited = waits.get(out.slot, 0.0)
            counted = answers.failed(number, answer.error, answer.status, answer.retry, answer.retry_after)
            until = waits.get(out.slot, 0.0)
            return Receipt(counted, None, max(until - self._journal.now, 0.0) if until > waited else 0.0)
        if isinstance(answer, Excluded):
            return Receipt(answers.excluded(number, answer.reason))
        if isinstance(answer, Released):
            return Receipt(answers.release(number))
        counted, target = answers.redirected(number, answer.to, answer.carried, answer.again, answer.status)
        return Receipt(counted, None if target is None else self._leasing.task(target))

    def _crawled(self, answer: Crawled) -> bool:
        out = self._frontier.leases.get(answer.lease)
        # A page that could not be processed is not merged into another.
        visit = answer if answer.error is None else replace(answer, canonical_link=None)
        try:
            counted = self._intake.visit(answer.lease, visit, split_links(answer.links))
        except ParameterError as error:
            if not answer.links or self._gate.changing:
                raise
            # Invalid link: keep the page, drop its links, record the error.
            return self._crawled(replace(answer, links=[], error=str(error)))
        if counted and answer.error is not None and out is not None:
            url = self._pages.url(out.page)
            self._answers.failed(url, answer.error, answer.status, False, None)
        return counted

    # -- inside -------------------------------------------------------------------------------------------------------

    def _is_repeat(self, what: str, request: int, last: int) -> bool:
        if request < last:
            raise SessionError(
                f"{what}: request {request} is older than {last}, the last one of this session:"
                f" count requests upwards and send one at a time"
            )
        return request == last

    def _described(self, session: SpiderSession, lost: int) -> Session:
        silent_after = None if session.silent_after == math.inf else session.silent_after
        seconds = self._frontier.settings.lease_seconds
        return Session(session.number, session.owner, seconds, silent_after, lost)

    def _task_of(self, number: int, session: int) -> Task | None:
        """The task of a lease that a session still holds; None if it holds no such lease."""
        out = self._frontier.leases.get(number) if number else None
        if out is None or not out.current or out.session != session:
            return None
        return self._leasing.task(lease_of(self._journal.pages, out))

    # -- after opening ------------------------------------------------------------------------------------------------

    def _reopen(self) -> None:
        """Restore the sessions and leases of the process that had the crawl open before."""
        leases = self._frontier.leases
        down = self._journal.now - self._frontier.last_event
        if len(leases) and down > 0:
            self._journal.append(kinds.RENEWED, payload=struct_of(RenewedRecord).pack(down, 0))
            leases.move_on(down)
        gone = [
            out for out in leases.all_current() if out.session and self._sessions.get(out.session) is None
        ]
        # The process died between the end of these sessions and the loss of their tasks.
        if gone:
            self._answers.lost(gone)

    def _is_off_the_book(self, answer: Answer) -> bool:
        return not isinstance(answer, HostDelay) and self._frontier.leases.get(answer.lease) is None

    def _answered_before(self, session: SpiderSession) -> dict[int, tuple[int, bool]]:
        """Outcomes by lease, as in ``outcomes``, of a report that the death of the crawl's process cut short."""
        pages = self._pages
        own, outcomes = self._sessions.leases_of(session, pages), {}
        answers = (kinds.VISIT, kinds.FAILED, kinds.MERGE, kinds.RELEASE)
        assert session.since is not None
        for place in pages.frames.of_kind(*answers, kinds.LEASE, begin=session.since):
            frame = pages.frames.frame(place)
            if frame.lease not in own:
                continue
            if frame.kind == kinds.LEASE:
                leased = LeaseRecord._make(struct_of(LeaseRecord).unpack_from(frame.payload))
                if leased.session == session.number:
                    outcomes[frame.lease] = (leased.first_lease, True)
            else:
                outcomes[frame.lease] = (0, True)
        return outcomes
