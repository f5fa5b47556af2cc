"""Read the pages of WAT records by a scanner, which decodes only their few unusual links.

To decode a record (:mod:`inlink.archives.wat`) takes three times as long, and a Python loop over the links takes as
long again. The scanner (:mod:`inlink.archives.kernels.wat`) only finds the places of links. It gives up a record of
unusual form, which is then decoded. So the result is always that of decoding.
"""

import json
from typing import Any, Literal, NamedTuple

import numpy as np

from inlink.archives.wat import WatRules, unescape_attribute
from inlink.base.arrays import UInt8Array, UInt64Array

_LONGEST = 1 << 28
_PLACE = _LONGEST - 1


class ScannedPage(NamedTuple):
    """A page whose links are places in its record. It is valid until the next record is scanned.

    Attributes
    ----------
    url : str
        The page's URL, as written.
    base : str or None
        Its ``<base href>``.
    body : bytes
        The record.
    text : uint8[n]
        The record as an array.
    links : uint64[m]
        The places, as :func:`inlink.archives.kernels.wat.scan_record` writes them. The first ``number`` are valid.
    number : int
        The number of links.
    entities : bool
        Whether entities in links have to be decoded.
    offset : int
        Byte offset of the record, or of the gzip member that holds it.
    """

    url: str
    base: str | None
    body: bytes
    text: UInt8Array
    links: UInt64Array
    number: int
    entities: bool
    offset: int

    def href(self, place: int) -> tuple[str, bool]:
        """Return a link as written, and whether it is from the HTTP header."""
        entry = int(self.links[place])
        begin = entry & _PLACE
        raw = self.body[begin : begin + (entry >> 28 & _PLACE)]
        href = json.loads(b'"' + raw + b'"') if entry >> 57 else raw.decode()
        header = bool(entry >> 56 & 1)
        return (unescape_attribute(href) if self.entities and not header else href), header


def rule_bits(every: bool, nofollow: bool, rules: WatRules) -> int:
    """Return the rules of :func:`inlink.archives.kernels.wat.scan_record` as bits of a number."""
    flags = (every, not nofollow, rules.exact_schemes, not rules.location, rules.any_status)
    return sum(flag << place for place, flag in enumerate(flags))


class Scanner:
    """Scans records.

    Parameters
    ----------
    rules : int
        As in :func:`inlink.archives.kernels.wat.scan_record`.
    """

    def __init__(self, rules: int) -> None:
        self._rules = rules
        self._kernels: Any = None
        self._work: UInt64Array | None = None
        self._links = np.zeros(1 << 12, np.uint64)

    def page(self, body: bytes, offset: int, entities: bool) -> ScannedPage | Literal[False] | None:
        """Return the page that a record describes; None if it describes no page; False if it must be decoded."""
        if self._work is None:
            # Numba is not imported for archives of other kinds.
            from inlink.archives.kernels import wat

            self._kernels, self._work = wat, np.zeros(wat.WORK, np.uint64)
        kernels = self._kernels
        text = np.frombuffer(body, np.uint8)
        answer = kernels.scan_record(text, self._rules, self._work, self._links)
        while answer == kernels.FULL:
            self._links = np.zeros(2 * len(self._links), np.uint64)
            answer = kernels.scan_record(text, self._rules, self._work, self._links)
        if answer != kernels.PAGE:
            return None if answer == kernels.OTHER else False
        count, url, url_end, base, base_end = self._work[:5].tolist()
        href = body[base:base_end].decode() if base else None
        if entities and href is not None:
            href = unescape_attribute(href)
        return ScannedPage(body[url:url_end].decode(), href, body, text, self._links, count, entities, offset)
