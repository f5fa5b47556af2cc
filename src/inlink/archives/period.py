"""Dates of records, and the period of those that are read."""

import re
from datetime import UTC, datetime
from typing import NamedTuple, Self

from inlink.errors import ParameterError

_STAMP = re.compile("([0-9]{8})([0-9]{6})")
_SHORT = re.compile("[0-9]{4}(-[0-9]{2})?")


def moment(text: str | bytes) -> datetime:
    """Return the beginning of a date: an ISO date or time, a year, a month ``2026-01``, or 14 digits as in CDX and ARC.

    Raises
    ------
    ValueError
        If it is no date.
    """
    text = text if isinstance(text, str) else text.decode("ascii")
    if _STAMP.fullmatch(text):
        text = f"{text[:8]}T{text[8:]}"
    elif _SHORT.fullmatch(text):
        text += "-01-01"[len(text) - 4 :]
    time = datetime.fromisoformat(text)
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError(f"{text} is out of range") from None


class Period(NamedTuple):
    """The moments from `since` on and before `until`; None is no limit."""

    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of(cls, since: str | None, until: str | None) -> Self:
        """Return the period between two dates.

        Raises
        ------
        inlink.errors.ParameterError
            If a date is invalid, or the period is empty.
        """
        limits = []
        for name, text in (("`since` (--from)", since), ("`until` (--to)", until)):
            try:
                limits.append(None if text is None else moment(text))
            except (TypeError, ValueError):
                raise ParameterError(
                    f"{name} must be a date such as 2026, 2026-01, 2026-01-31 or 2026-01-31T12:00:00Z; got {text!r}"
                ) from None
        period = cls(*limits)
        if period.since and period.until and period.since >= period.until:
            raise ParameterError(
                f"`since` (--from) must be before `until` (--to); got {since!r} and {until!r}"
            )
        return period

    def holds(self, time: datetime) -> bool:
        """Return whether a moment is in the period."""
        return (self.since is None or time >= self.since) and (self.until is None or time < self.until)


ALWAYS = Period()
"""The period without limits."""
