"""Count the records and links of an archive, and those that were skipped, with the first place of each reason.

Archives of crawls are sometimes damaged, and have other content than links to pages. Each skipped record or link is
counted under its reason.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from inlink.errors import DamageError

# Reasons are a few fixed phrases. This limit bounds the memory if a reason ever came from the input.
_MAX_REASONS = 200


@dataclass(slots=True)
class Skipped:
    """The records or links that were skipped for one reason.

    Attributes
    ----------
    count : int
        Number of skipped records or links.
    path : str
        The file of the first.
    offset : int
        Byte of that file at which the record, or its gzip member, begins.
    damage : bool
        Whether the input is damaged; False for intact content that is not a link to a page.
    size : int
        Total number of bytes that were skipped; 0 if unknown.
    """

    count: int
    path: str
    offset: int
    damage: bool
    size: int = 0

    @property
    def passed_over(self) -> str:
        """The number of skipped bytes, as the end of a message; empty if unknown."""
        return f"; {self.size:,} bytes passed over" if self.size else ""


@dataclass
class Tally:
    """Counts of the records and links of archives, and of those that were skipped.

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
        The skipped records and links, by reason.
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
            The fault, in a few words.
        size : int
            Number of bytes that are skipped; 0 if unknown.

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
        """Count the skipped links of one record, by reason."""
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
        """The number of records that were skipped because the input is damaged."""
        return sum(entry.count for entry in self.skipped.values() if entry.damage)

    def lines(self) -> list[str]:
        """A line for each reason, damage first and then by count, for a log or a terminal."""
        order = sorted(self.skipped.items(), key=lambda item: (not item[1].damage, -item[1].count))
        return [
            f"left out: {entry.count:,} × {reason} (first: {entry.path}, byte {entry.offset:,}{entry.passed_over})"
            for reason, entry in order
        ]
