"""The settings of an operator for a host: a block, a delay, a budget.

A wish holds until the operator takes it back, after reopening too. It is above what the settings, robots.txt and the
host itself say of the same thing.
"""

from dataclasses import dataclass

import numpy as np

from inlink.store.format import NO_LIMIT, HostSetRecord, struct_of

__all__ = ["NO_WISH", "Wish"]

_RECORD = struct_of(HostSetRecord)
_BLOCK, _DELAY, _BUDGET = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Wish:
    """All that an operator wants of a host, or with ``by="domain"`` of a registered domain. None is no wish.

    Parameters
    ----------
    blocked_until : float or None
        Unix time before which the host is not asked; infinity is for ever.
    delay : float or None
        Seconds between two fetches, a float32.
    limit : int or None
        Pages that may be taken in all, those taken before included; ``NO_LIMIT`` is no limit.
    """

    blocked_until: float | None = None
    delay: float | None = None
    limit: int | None = None

    def packed(self) -> bytes:
        """The payload of its event."""
        fields = _BLOCK * (self.blocked_until is not None)
        fields |= _DELAY * (self.delay is not None) | _BUDGET * (self.limit is not None)
        return _RECORD.pack(self.blocked_until or 0.0, self.delay or 0.0, self.limit or 0, fields)

    @classmethod
    def of(cls, payload: bytes) -> "Wish":
        """The wish that :meth:`packed` packed."""
        told = HostSetRecord._make(_RECORD.unpack(payload))
        return cls(
            told.blocked_until if told.fields & _BLOCK else None,
            told.delay if told.fields & _DELAY else None,
            told.budget if told.fields & _BUDGET else None,
        )

    def blocks(self, now: float) -> bool:
        """Whether the host must not be asked at ``now``."""
        return self.blocked_until is not None and self.blocked_until > now

    def names(self, now: float) -> tuple[str, ...]:
        """What is wanted at ``now``, among block, delay and budget."""
        held = (
            ("block", self.blocks(now)),
            ("delay", self.delay is not None),
            ("budget", self.limit is not None),
        )
        return tuple(name for name, holds in held if holds)

    @staticmethod
    def until(seconds: float, now: float) -> float | None:
        """The end of a block of so many seconds; None if there are none."""
        return now + seconds if seconds > 0 else None

    @staticmethod
    def seconds(delay: float | None) -> float | None:
        """A delay as the log can hold it."""
        return None if delay is None else float(np.float32(delay))

    @staticmethod
    def pages(budget: int | None, taken: int) -> int:
        """The limit by which ``budget`` more pages may be taken; None is no limit."""
        return NO_LIMIT if budget is None else min(taken + budget, NO_LIMIT - 1)


NO_WISH = Wish()
"""Nothing is wanted."""
