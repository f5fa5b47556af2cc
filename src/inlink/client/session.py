"""A spider's session on a server. It numbers requests, renews tasks, and begins again if the server has ended it."""

import itertools
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from inlink.base.table import counted, printable
from inlink.client.batches import answer_batches
from inlink.client.channel import AwayError, Channel
from inlink.errors import InlinkError, SessionError
from inlink.protocol import OWNER, Answer, Ask, Begun, Changed, Hello, HostDelay, Receipt, Receipts, Tasks

__all__ = ["LONGEST_WAIT", "RemoteSession", "own_name"]

log = logging.getLogger("inlink.client")

LONGEST_WAIT = 20.0
"""Maximum number of seconds for which a server lets a request for tasks wait."""

SILENT_AFTER = 120.0
"""Seconds without a request after which a session ends."""

FIGHT_SECONDS = 600.0
"""If two sessions in a row end within this time although the spider sends requests, another spider has its name."""

LONGEST_OWNER = 119
"""Maximum number of bytes of a name made here. A server takes 200, with the name of the client's token in front."""

_serial = itertools.count(1)


def own_name(name: str = OWNER) -> str:
    """Make an owner's name that no other spider has: it contains the machine, the process, and a number."""
    end = f"@{printable(socket.gethostname())[:60]}:{os.getpid()}.{next(_serial)}{secrets.token_hex(2)}"
    return printable(name).encode()[: LONGEST_OWNER - len(end.encode())].decode("utf-8", "ignore") + end


@dataclass
class _Life:
    """One session: its number, the ids of its last requests, and its open leases."""

    number: int
    begun: float = field(default_factory=time.monotonic)
    heard: float = field(default_factory=time.monotonic)
    asked: int = 0
    reported: int = 0
    leases: set[int] = field(default_factory=set)


class RemoteSession:
    """A session on a server, for the threads of one spider.

    A request that got no reply is repeated under its number. If the session has ended, another session begins, and the
    log says how many tasks are lost.

    Parameters
    ----------
    channel : Channel
    owner : str
    silent_after : float
        Seconds without a request after which the server ends the session.
    rejoin : bool
        Go on with the owner's session, if there is one, instead of a new one.
    renewing : bool
        Renew the tasks in a thread of its own.
    """

    def __init__(
        self,
        channel: Channel,
        owner: str,
        silent_after: float = SILENT_AFTER,
        *,
        rejoin: bool = False,
        renewing: bool = True,
    ) -> None:
        self.owner = owner
        self._channel = channel
        self._hello = Hello(owner, silent_after, rejoin)
        self._renewing = renewing
        self._lock, self._asking, self._telling = threading.RLock(), threading.Lock(), threading.Lock()
        self._life: _Life | None = None
        self._lost: set[int] = set()
        self._taken = False
        self._over = threading.Event()

    def begin(self, *, at_once: bool = False) -> Begun:
        """Begin a session.

        Raises
        ------
        inlink.errors.InlinkError
            If the server cannot be reached, or refuses.
        """
        with self._lock:
            begun = self._channel.call("POST", "sessions", Begun, self._hello, at_once=at_once)
            first, self._life = self._life is None, _Life(begun.session.number)
            if first and self._renewing:
                period = min(begun.session.lease_seconds, begun.session.silent_after or SILENT_AFTER) / 3
                threading.Thread(
                    target=self._renew, args=(period,), name="inlink-renewing", daemon=True
                ).start()
            return begun

    def next(self, count: int, wait: float = 0.0, *, lost: bool = True) -> Tasks:
        """At most ``count`` tasks; see :meth:`inlink.crawl.desk.Desk.next`.

        Parameters
        ----------
        count : int
        wait : float
            Seconds for which the reply may wait until there is a task.
        lost : bool
            Whether the session may get lost pages.

        Raises
        ------
        inlink.errors.InlinkError
            If the server refuses, or is away for too long.
        """
        wait = min(wait, LONGEST_WAIT)
        with self._asking:
            while True:
                life = self._now()
                # The id stays the same until a reply has tasks, because a reply that was lost may have had tasks.
                ask = Ask(life.number, count, wait, self._id(life.asked), lost)
                try:
                    found = self._channel.call("POST", "next", Tasks, ask, wait=wait)
                except SessionError as error:
                    self._again(life, error)
                    continue
                life.heard = time.monotonic()
                if found.tasks:
                    life.asked += 1
                    life.leases |= {task.lease for task in found.tasks}
                return found

    def report(self, answers: Iterable[Answer]) -> list[Receipt]:
        """Report answers; return the outcome of each, in their order.

        Answers for tasks of a session that has ended are dropped, and the log says so.

        Raises
        ------
        inlink.errors.ParameterError
            If an answer has a value out of its range.
        inlink.errors.InlinkError
            If the server refuses, or is away for too long.
        """
        receipts: list[Receipt] = []
        with self._telling:
            for part, encoded in answer_batches(list(answers)):
                receipts += self._report(part, encoded)
        return receipts

    def leave(self) -> None:
        """Stop renewing. The session goes on as long as the server lets it."""
        self._over.set()

    def end(self) -> None:
        """End the session and give its tasks back. If the server is away, the tasks are lost later."""
        self._over.set()
        life, self._life = self._life, None
        if life is None:
            return
        try:
            self._channel.call("DELETE", f"sessions/{life.number}", Changed, at_once=True)
        except SessionError:
            pass
        except AwayError as error:
            lost = counted(len(life.leases), "task was", "tasks were")
            log.warning("%s not given back, to be handed out again later: %s", lost, error)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _now(self) -> _Life:
        with self._lock:
            if self._life is None:
                self.begin()
            assert self._life is not None
            return self._life

    def _id(self, last: int) -> int:
        """The id of the next request; 0 in a session that others have begun, because their ids are not known here."""
        return 0 if self._hello.rejoin else last + 1

    def _report(self, answers: Sequence[Answer], encoded: Sequence[bytes]) -> list[Receipt]:
        while True:
            life = self._now()
            mine = [
                k
                for k, answer in enumerate(answers)
                if isinstance(answer, HostDelay) or answer.lease not in self._lost
            ]
            found: list[Receipt] = []
            if mine:
                body = b'{"session":%d,"request":%d,"answers":[%s]}' % (
                    life.number,
                    self._id(life.reported),
                    b",".join(encoded[k] for k in mine),
                )
                try:
                    found = self._channel.call("POST", "answers", Receipts, body).receipts
                except SessionError as error:
                    self._again(life, error)
                    continue
                life.reported += 1
                life.heard = time.monotonic()
            break
        receipts = [Receipt(False)] * len(answers)
        for k, receipt in zip(mine, found, strict=True):
            receipts[k] = receipt
            answer = answers[k]
            if not isinstance(answer, HostDelay):
                life.leases.discard(answer.lease)
            if receipt.task is not None:
                life.leases.add(receipt.task.lease)
        if len(mine) < len(answers):
            self._lost -= {answer.lease for answer in answers if not isinstance(answer, HostDelay)}
            log.warning(
                "dropped %s for tasks of the session that ended: their pages are fetched again",
                counted(len(answers) - len(mine), "answer"),
            )
        return receipts

    def _again(self, life: _Life, error: SessionError) -> None:
        """Begin a new session after the server has ended this one."""
        with self._lock:
            if self._life is not life:
                return
            now = time.monotonic()
            is_silent = now - life.heard >= self._hello.silent_after
            if self._taken and not is_silent and now - life.begun < FIGHT_SECONDS:
                raise SessionError(
                    f"{self._channel.place.url}: another spider works under the name {self.owner!r}: give each its own "
                    "by INLINK_OWNER"
                ) from None
            self._taken = not is_silent
            self._lost |= life.leases
            begun = self.begin()
            log.warning(
                "%s; session %d goes on without %s, to be handed out again later",
                error,
                begun.session.number,
                counted(len(life.leases), "lost task"),
            )

    def _renew(self, period: float) -> None:
        while not self._over.wait(period):
            life = self._life
            if life is None:
                continue
            try:
                self._channel.call("POST", f"sessions/{life.number}", Changed, at_once=True)
                life.heard = time.monotonic()
            except InlinkError:
                # The spider meets the same error in its next call.
                continue
