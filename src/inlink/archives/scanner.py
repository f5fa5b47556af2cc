"""Scan WAT records for links, many in a call, and decode only the few unusual links.

To decode a record (:mod:`inlink.archives.wat`) takes three times as long, and a Python loop over the links takes as
long again. The scanner (:mod:`inlink.archives.kernels.wat`) only finds the places of links. It gives up a record of
unusual form, which is then decoded. So the result is always that of decoding.
"""

import json

import numpy as np

from inlink.archives.records import Members, Record
from inlink.archives.wat import ENTITIES_UNTIL, WatRules, unescape_attribute
from inlink.base.arrays import UInt64Array

_PLACE = (1 << 28) - 1


class RecordBlock:
    """The JSON of WAT records, one after the other.

    Parameters
    ----------
    data : bytes
        Bytes that hold the records; at most 2**28.
    frames : uint64[records, 3] as uint64[3 * records]
        Begin and end of the JSON of each record, and whether entities in its links must be decoded.
    offsets : list of int
        The byte offset of each record in the archive, or of the gzip member that holds it.
    """

    def __init__(self, data: bytes, frames: UInt64Array, offsets: list[int]) -> None:
        self.data, self.frames, self.offsets = data, frames, offsets
        self.text = np.frombuffer(data, np.uint8)

    @classmethod
    def of_record(cls, record: Record, entities: bool) -> "RecordBlock":
        """A block of one record."""
        return cls(record.body, np.array([0, len(record.body), entities], np.uint64), [record.offset])

    @classmethod
    def of_members(cls, members: Members, entities: bool | None) -> "RecordBlock":
        """A block of gzip members, up to the first that is no plain record of JSON.

        Parameters
        ----------
        members : Members
            Its ``used`` is set to the number of members in the block.
        entities : bool or None
            Whether entities in links must be decoded; None: only in old records.
        """
        from inlink.archives.kernels.members import ALWAYS, frame_members

        frames = np.zeros(3 * len(members.ends), np.uint64)
        ends = np.array(members.ends, np.uint64)
        text = np.frombuffer(members.data, np.uint8)
        until = int(ENTITIES_UNTIL) if entities is None else ALWAYS if entities else 0
        members.used = int(frame_members(text, ends, until, frames))
        return cls(members.data, frames[: 3 * members.used], members.offsets)

    def __len__(self) -> int:
        return len(self.frames) // 3

    def record(self, place: int) -> Record:
        """Return a record, to be decoded."""
        begin, end = self.frames[3 * place : 3 * place + 2].tolist()
        return Record("metadata", b"", b"application/json", b"", self.data[begin:end], self.offsets[place])

    def entities(self, place: int) -> bool:
        """Return whether entities in the links of a record must be decoded."""
        return bool(self.frames[3 * place + 2])

    def href(self, entry: int, entities: bool) -> tuple[str, bool]:
        """Return a link as written, and whether it is from the HTTP header.

        Parameters
        ----------
        entry : int
            A link as :func:`inlink.archives.kernels.wat.scan_record` writes it.
        entities : bool
            Decode entities, unless the link is from the HTTP header.
        """
        begin = entry & _PLACE
        raw = self.data[begin : begin + (entry >> 28 & _PLACE)]
        href = json.loads(b'"' + raw + b'"') if entry >> 57 else raw.decode()
        header = bool(entry >> 56 & 1)
        return (unescape_attribute(href) if entities and not header else href), header


def rule_bits(every: bool, nofollow: bool, rules: WatRules) -> int:
    """Return the rules of :func:`inlink.archives.kernels.wat.scan_record` as bits of a number."""
    flags = (every, not nofollow, rules.exact_schemes, not rules.location, rules.any_status)
    return sum(flag << place for place, flag in enumerate(flags))
