"""An operator's settings for a host: a block, a delay, a budget.

A wish holds until the operator takes it back, also after the crawl is opened again. It takes precedence over the same
value from the settings, from robots.txt and from the host itself.
"""

import msgspec
import numpy as np

from inlink.store.format import NO_LIMIT, HostSetRecord, struct_of

_RECORD = struct_of(HostSetRecord)
_BLOCK, _DELAY, _BUDGET = 1, 2, 4


class Wish(msgspec.Struct, frozen=True):
    """An operator's settings for a host, or with ``by="domain"`` for a registered domain. None is no wish.

    Parameters
    ----------
    blocked_until : float or None
        Unix time before which the host is not asked; infinity is for ever.
    delay : float or None
        Seconds between two fetches, a float32.
    limit : int or None
        Total number of pages that may be taken, including those taken before; ``NO_LIMIT`` is no limit.
    """

    blocked_until: float | None = None
    delay: float | None = None
    limit: int | None = None

    def packed(self) -> bytes:
        """The payload of the wish's event."""
        fields = _BLOCK * (self.blocked_until is not None)
        fields |= _DELAY * (self.delay is not None) | _BUDGET * (self.limit is not None)
        return _RECORD.pack(self.blocked_until or 0.0, self.delay or 0.0, self.limit or 0, fields)

    @classmethod
    def of(cls, payload: bytes) -> "Wish":
        """The wish in a payload made by :meth:`packed`."""
        told = HostSetRecord._make(_RECORD.unpack(payload))
        return cls(
            told.blocked_until if told.fields & _BLOCK else None,
            told.delay if told.fields & _DELAY else None,
            told.budget if told.fields & _BUDGET else None,
        )

    def blocks(self, now: float) -> bool:
        """Return whether the host must not be asked at ``now``."""
        return self.blocked_until is not None and self.blocked_until > now

    def names(self, now: float) -> tuple[str, ...]:
        """The names of the values that are set at ``now``, among block, delay and budget."""
        held = (
            ("block", self.blocks(now)),
            ("delay", self.delay is not None),
            ("budget", self.limit is not None),
        )
        return tuple(name for name, holds in held if holds)

    @staticmethod
    def until(seconds: float, now: float) -> float | None:
        """Unix time at which a block of ``seconds`` ends; None for 0 seconds."""
        return now + seconds if seconds > 0 else None

    @staticmethod
    def seconds(delay: float | None) -> float | None:
        """A delay, rounded to the float32 that the log holds."""
        return None if delay is None else float(np.float32(delay))

    @staticmethod
    def pages(budget: int | None, taken: int) -> int:
        """The total limit that allows ``budget`` further pages; None is no limit."""
        return NO_LIMIT if budget is None else min(taken + budget, NO_LIMIT - 1)


NO_WISH = Wish()
"""A wish that sets no value."""
