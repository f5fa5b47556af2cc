"""Counts of what an archive held and of what was skipped, with the first place of each reason.

Archives of crawls are sometimes damaged, and hold much besides links to pages. Nothing is skipped silently: every
skipped record or link is counted under its reason.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from inlink.errors import DamageError

__all__ = ["Skipped", "Tally"]

# Reasons are a few fixed phrases. If one came from the input, this would bound the memory.
_MAX_REASONS = 200


@dataclass(slots=True)
class Skipped:
    """What was skipped for one reason.

    Attributes
    ----------
    count : int
        How many times.
    path : str
        The file where it happened first.
    offset : int
        Byte of that file at which the record, or its gzip member, begins.
    damage : bool
        Whether the input is damaged; False for what is intact and not a link to a page.
    size : int
        Number of bytes that were passed over, in all; 0 if unknown.
    """

    count: int
    path: str
    offset: int
    damage: bool
    size: int = 0

    @property
    def passed_over(self) -> str:
        """How many bytes were passed over, in words that follow a place; empty if unknown."""
        return f"; {self.size:,} bytes passed over" if self.size else ""


@dataclass
class Tally:
    """Counts of what archives held, and of what was skipped.

    Parameters
    ----------
    strict : bool
        Whether damage is an error; otherwise damaged records are skipped and counted.

    Attributes
    ----------
    records : int
        Intact records that were read, of any type.
    pages : int
        Pages: responses to a request for an http URL.
    links : int
        Links from pages to pages; repeated links count each time.
    skipped : dict of str to Skipped
        What was skipped, by reason.
    """

    strict: bool = False
    records: int = 0
    pages: int = 0
    links: int = 0
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def damage(self, path: str | os.PathLike[str], offset: int, what: str, *, size: int = 0) -> None:
        """Count a damaged record, or raise an error.

        Parameters
        ----------
        path : path-like
            The file.
        offset : int
            The byte at which the record, or the gzip member that holds it, begins.
        what : str
            What is wrong, in a few words.
        size : int
            Number of bytes that are passed over; 0 if unknown.

        Raises
        ------
        inlink.errors.DamageError
            If ``strict`` is set.
        """
        if self.strict:
            raise DamageError(
                f"{os.fspath(path)}: {what}, at byte {offset:,}: fetch the file again, or read it without strict "
                "to leave out what is damaged"
            )
        self._count(path, offset, what, 1, damage=True)
        if what in self.skipped:
            self.skipped[what].size += size

    def skip(self, path: str | os.PathLike[str], offset: int, why: str, count: int = 1) -> None:
        """Count an intact record or link that is skipped."""
        self._count(path, offset, why, count, damage=False)

    def skip_all(self, path: str | os.PathLike[str], offset: int, counts: Mapping[str, int]) -> None:
        """Count what was skipped in one record, by reason."""
        for why, count in counts.items():
            self.skip(path, offset, why, count)

    def _count(
        self, path: str | os.PathLike[str], offset: int, reason: str, count: int, *, damage: bool
    ) -> None:
        entry = self.skipped.get(reason)
        if entry is not None:
            entry.count += count
        elif len(self.skipped) < _MAX_REASONS:
            self.skipped[reason] = Skipped(count, os.fspath(path), offset, damage)

    @property
    def damaged(self) -> int:
        """How many records were skipped because the input is damaged."""
        return sum(entry.count for entry in self.skipped.values() if entry.damage)

    def lines(self) -> list[str]:
        """A line for each reason, damage first and then by count, for a log or a terminal."""
        order = sorted(self.skipped.items(), key=lambda item: (not item[1].damage, -item[1].count))
        return [
            f"left out: {entry.count:,} × {reason} (first: {entry.path}, byte {entry.offset:,}{entry.passed_over})"
            for reason, entry in order
        ]
