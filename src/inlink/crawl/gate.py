"""The gate of a crawl: one call at a time, in the process that opened it, and no call after an interrupted change.

A :class:`inlink.Crawl` keeps arrays in memory that agree with its log, and they are not safe for two threads. So each
public method shuts the gate behind itself while it works. A call that finds the gate shut is refused at once.

**Interrupted changes.** New URLs get their numbers in memory before their event is written. If an exception came
between the two and the crawl went on, later events would name the wrong pages. So a change sets :attr:`Gate.changing`
before it begins. A call that ends by an exception during a change leaves the gate shut. The log holds all that was
acknowledged, so the crawl can be opened again.

**Forks.** The child of a fork shares the files of its parent. It closes them, so that the lock on the folder ends with
the parent, and its gate stays shut.
"""

import contextlib
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType, MethodType
from typing import Any, NoReturn, TypeVar, cast

from inlink.base.disk import described
from inlink.errors import InlinkError, InUseError, StoreError

Method = TypeVar("Method", bound=Callable[..., Any])

_gates: "weakref.WeakSet[Gate]" = weakref.WeakSet()
"""The gates of the crawls that this process has open."""


class Gate:
    """Lets one call in at a time; a context manager.

    Parameters
    ----------
    what : str
        The crawl's folder, as messages call it.

    Attributes
    ----------
    changing : bool
        Whether the call that is inside has begun a change.

    Raises
    ------
    inlink.errors.InUseError
        On entering, if another call is inside, or in the child of a fork.
    inlink.errors.StoreError
        On entering, if the crawl is closed, or if a change was interrupted. On leaving, in place of an OSError.
    """

    def __init__(self, what: str) -> None:
        # An RLock knows its thread. An interruption may come between its acquisition and the call that it is for.
        lock = threading.RLock()
        self._acquire, self._release = lock.acquire, lock.release
        self.what, self._pid = what, os.getpid()
        # True while a call is inside, and for good after an interrupted change, a fork, or the end.
        self._shut = False
        self._closed = self._forked = self.changing = False
        # The thread that closes the crawl.
        self._closer = 0
        # Why the last change was not completed: a text, because an exception would keep all frames that it left.
        self._cause: str | None = None
        self._in_child: list[Callable[[], Callable[[], object] | None]] = []

    def __enter__(self) -> None:
        if not self._acquire(False):
            raise self._refusal(True)
        if self._shut:
            self._ask(sys._getframe(1))
        self._shut = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self.changing:
            if kind is not None:
                self._cause = _cause(self.what, error)
                self._release()
                if isinstance(error, OSError):
                    raise StoreError(self._cause) from error
                return
            self.changing = False
        self._shut = False
        self._release()
        if error is not None and isinstance(error, OSError):
            raise StoreError(described(error, self.what)) from error

    def in_child(self, work: Callable[[], object]) -> None:
        """Register ``work``, which each later fork calls in the child to close files that it must not keep open.

        A method is forgotten with its object.
        """
        self._in_child.append(weakref.WeakMethod(work) if isinstance(work, MethodType) else lambda: work)
        _gates.add(self)

    def close(self) -> bool:
        """Shut the gate for good; return whether this process may close the crawl, which is False after a fork.

        A second call returns True in the same thread, because the first may have been interrupted. In another thread it
        returns False, because the first may still be at work.

        Raises
        ------
        inlink.errors.InUseError
            If a call is inside.
        """
        if self._forked:
            return False
        if self._closed:
            return self._closer == threading.get_ident()
        if not self._acquire(False):
            raise self._refusal(True)
        try:
            if self._shut and self._is_inside(sys._getframe(1)):
                raise self._refusal(True)
            self._closer = threading.get_ident()
            self._closed = self._shut = True
        finally:
            self._release()
        _gates.discard(self)
        self._in_child.clear()
        return True

    @property
    def closed(self) -> bool:
        """True after :meth:`close`."""
        return self._closed

    def empty(self, holder: object, *names: str) -> None:
        """Let the attributes of an object that hold columns go, after :meth:`close`. Any use of them is refused."""
        vars(holder).update(dict.fromkeys(names, _ClosedPart(self)))

    @property
    def broken_off(self) -> bool:
        """True if memory may differ from the log because a change was interrupted."""
        return self.changing

    def _ask(self, caller: FrameType) -> None:
        """Refuse a call that found the gate shut, unless an interruption outside any change left it shut."""
        inside = self._cause is None and self._is_inside(caller)
        if inside or self._closed or self._forked or self.changing:
            self._release()
            raise self._refusal(inside)

    def _refusal(self, inside: bool) -> InlinkError:
        """Return the error that says why the gate is shut. ``inside`` is True if a call is inside."""
        if self._closed:
            return StoreError(f"{self.what}: this crawl is closed: open it again")
        if self._forked:
            return InUseError(
                f"{self.what}: process {os.getpid()} is a fork of process {self._pid}, which opened this crawl: "
                f"use the crawl in process {self._pid} only, or open it after the fork"
            )
        if inside:
            return InUseError(
                f"{self.what}: another call on this crawl has not returned: use a crawl from one thread at a time, "
                "with a threading.Lock of your own around each call"
            )
        return StoreError(self._cause or _cause(self.what, None))

    def _is_inside(self, caller: FrameType) -> bool:
        """Return whether an earlier call of this thread led to ``caller``. A user's own policy may make such calls."""
        frame: FrameType | None = caller
        while frame is not None and self._is_of(frame):
            # The methods that lead to the call that asks.
            frame = frame.f_back
        while frame is not None and not self._is_of(frame):
            frame = frame.f_back
        return frame is not None

    def _is_of(self, frame: FrameType) -> bool:
        return getattr(frame.f_locals.get("self"), "_gate", None) is self

    def _after_fork(self) -> None:
        """Shut the gate for good in the child, and close what it shares with its parent."""
        self._forked = self._shut = True
        for registered in self._in_child:
            with contextlib.suppress(OSError, ValueError):
                if (work := registered()) is not None:
                    work()


def inside(method: Method) -> Method:
    """Decorate a method, so that it enters the gate ``_gate`` of its object."""

    @functools.wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        with self._gate:
            return method(self, *arguments, **named)

    return cast(Method, call)


class _ClosedPart:
    """A part of a crawl after its end."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __getattr__(self, name: str) -> NoReturn:
        raise self._gate._refusal(False)


def _cause(what: str, error: BaseException | None) -> str:
    """What the gate says after a change that ``error`` interrupted; None if its error is not known."""
    if isinstance(error, StoreError):
        return str(error)
    cause = "an interruption" if error is None else _named(error, what)
    return (
        f"{what}: the last change was not completed ({cause}): close this crawl and open it again; "
        "all acknowledged changes are kept"
    )


def _named(error: BaseException, what: str) -> str:
    if isinstance(error, OSError):
        return described(error, what)
    said = " ".join(str(error).split())
    name = "" if isinstance(error, InlinkError) else type(error).__name__
    return f"{name} ({said})" if name and said else name or said


def _leave_to_the_parent() -> None:
    for gate in list(_gates):
        gate._after_fork()
    _gates.clear()


os.register_at_fork(after_in_child=_leave_to_the_parent)
