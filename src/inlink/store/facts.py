"""Facts of a page, stored in an event that follows the event of the visit.

The payload is a :class:`StoredFacts` as a MessagePack array. Crawls of earlier versions, and spiders that read no
facts, have no such event. Earlier versions ignore it.
"""

from operator import attrgetter
from typing import Any

import msgspec

from inlink.protocol import PLACES, PageFacts

__all__ = ["LONGEST_TEXT", "MOST_BYTES", "StoredFacts", "decode_facts", "encode_facts", "place_named"]

LONGEST_TEXT = 200
"""Maximum number of characters of a text that is kept: a title, a heading, a language."""

MOST_BYTES = 8192
"""Maximum number of bytes of the URLs and texts of each list of facts. Entries after them are dropped."""

_TEXTS = ("title", "heading", "robots", "language", "content_type")
_LISTS = ("alternates", "canonicals", "insecure", "nofollow_links")
_texts, _lists = attrgetter(*_TEXTS), attrgetter(*_LISTS)


class StoredFacts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The payload of an event with facts.

    ``places`` has a byte for each link of the visit, in the order of its list: 0 if the place is not known, else k + 1
    for place k of :data:`inlink.protocol.PLACES`. It is empty if no place is known.
    """

    facts: PageFacts
    places: bytes = b""


_encoder, _decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(StoredFacts)


def encode_facts(facts: PageFacts, places: bytes = b"") -> bytes:
    """Encode the facts of a page. Texts are cut, and lists are cut at :data:`MOST_BYTES`; then ``cut`` is True."""
    changed: dict[str, Any] = {}
    texts = _texts(facts)
    # Most texts stay as they are.
    if max(map(len, texts)) > LONGEST_TEXT or not "".join(texts).isascii():
        changed |= {name: _utf8(text[:LONGEST_TEXT]) for name, text in zip(_TEXTS, texts, strict=True)}
    if any(_lists(facts)):
        for name, rows in zip(_LISTS, _lists(facts), strict=True):
            if rows:
                changed[name] = _within(rows)
                if len(changed[name]) < len(rows):
                    changed["cut"] = True
    facts = msgspec.structs.replace(facts, **changed) if changed else facts
    return _encoder.encode(StoredFacts(facts, places))


def decode_facts(payload: bytes) -> StoredFacts | None:
    """Decode the payload of an event; None if a later version of inlink wrote it in another form."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def place_named(code: int) -> str:
    """Return the place that a byte of :attr:`StoredFacts.places` stands for; empty if it is not known."""
    return PLACES[code - 1] if 0 < code <= len(PLACES) else ""


def _within(rows: list[Any]) -> list[Any]:
    """Return the first rows with at most :data:`MOST_BYTES` bytes of text. A row is a text, or a tuple of texts."""
    kept, left = [], MOST_BYTES
    for row in rows:
        clean = _utf8(row) if isinstance(row, str) else tuple(map(_utf8, row))
        left -= sum(len(text.encode()) for text in ([clean] if isinstance(clean, str) else clean))
        if left < 0:
            break
        kept.append(clean)
    return kept


def _utf8(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
