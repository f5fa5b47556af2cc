"""What reading an archive met: how much there was, what was left out, and where that began.

Archives of crawls are damaged now and then, and hold much that is no link to a page. Nothing is left out in
silence: each thing is counted under its reason, with the first place where it happened.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from inlink.errors import DamageError

__all__ = ["Skipped", "Tally"]

_MAX_REASONS = (
    200  # reasons are phrases of our own and few; were one made of input, this would bound the memory
)


@dataclass(slots=True)
class Skipped:
    """Something that was left out for one reason.

    Attributes
    ----------
    count : int
        How often.
    path : str
        The file where it happened first.
    offset : int
        The byte of that file at which the record, or the gzip member that holds it, begins.
    damage : bool
        Whether the input is at fault; False for what is whole and merely no link to a page.
    """

    count: int
    path: str
    offset: int
    damage: bool


@dataclass
class Tally:
    """Counts what archives held and what was left out of them.

    Parameters
    ----------
    strict : bool
        Whether damage is an error; else the damaged record is left out and counted.

    Attributes
    ----------
    records : int
        Whole records that were read, of any type.
    pages : int
        Pages: responses to a request for an http URL.
    links : int
        Links of pages, those that lead to a page; repeated ones count each time.
    skipped : dict of str to Skipped
        What was left out, by reason.
    """

    strict: bool = False
    records: int = 0
    pages: int = 0
    links: int = 0
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def damage(self, path: str | os.PathLike[str], offset: int, what: str) -> None:
        """Count a damaged record, or refuse it.

        Parameters
        ----------
        path : path-like
            The file.
        offset : int
            The byte at which the record, or the gzip member that holds it, begins.
        what : str
            What is wrong, in a few words.

        Raises
        ------
        inlink.errors.DamageError
            Where this tally is strict.
        """
        if self.strict:
            raise DamageError(
                f"{os.fspath(path)}: {what}, at byte {offset:,}: fetch the file again, or read it without strict "
                "to leave out what is damaged"
            )
        self._count(path, offset, what, 1, damage=True)

    def skip(self, path: str | os.PathLike[str], offset: int, why: str, count: int = 1) -> None:
        """Count something that is whole and is left out."""
        self._count(path, offset, why, count, damage=False)

    def skip_all(self, path: str | os.PathLike[str], offset: int, counts: Mapping[str, int]) -> None:
        """Count what one record made be left out, by reason."""
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
        """How often something was left out because the input is at fault."""
        return sum(entry.count for entry in self.skipped.values() if entry.damage)

    def lines(self) -> list[str]:
        """What was left out, a line a reason, damage first and then by count: for a log or a terminal."""
        order = sorted(self.skipped.items(), key=lambda item: (not item[1].damage, -item[1].count))
        return [
            f"left out: {entry.count:,} × {reason} (first: {entry.path}, byte {entry.offset:,})"
            for reason, entry in order
        ]
