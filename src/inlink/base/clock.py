"""A clock whose time passes only when it is advanced."""

import math

from inlink.errors import ParameterError


class VirtualClock:
    """Unix time for ``Crawl(clock=…)`` that passes only when :meth:`advance` is called.

    Benchmarks, replays and tests step a crawl with it, so that they need not wait for politeness.

    Parameters
    ----------
    now : float
        Unix time to start at, in seconds.

    Attributes
    ----------
    now : float
        The present time. It may be set directly.

    Examples
    --------
    >>> clock = VirtualClock(1_000.0)
    >>> clock.advance(2.5)
    >>> clock()
    1002.5
    """

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The present time."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Add seconds to the time. If ``seconds`` is above 0, the time always increases, in spite of rounding.

        Raises
        ------
        inlink.errors.ParameterError
            If ``seconds`` is negative or not finite.
        """
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ParameterError(f"`seconds` must be at least 0 and finite; got {seconds!r}")
        if seconds > 0:
            self.now = max(self.now + seconds, math.nextafter(self.now, math.inf))
