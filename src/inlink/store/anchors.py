"""Encode and read anchor texts: the words of a page's links, kept with its visit.

The texts are behind the scores of the visit's links. For each link, in the order of the list, they hold one byte of
length and that many bytes of UTF-8. A link without a text has the length 0.
"""

from collections.abc import Mapping, Sequence
from itertools import repeat

from inlink.protocol import PLACES

LONGEST_ANCHOR = 80
"""Maximum number of characters of a text that are kept."""

MOST_ANCHOR_BYTES = 8192
"""Maximum number of bytes of all texts of a visit. Links after them are kept without a text."""

_LONGEST_BYTES = 255


def encode_labels(
    linked: Sequence[int], labels: Sequence[tuple[str, str]], pages: Sequence[int]
) -> tuple[bytes, bytes]:
    """Encode the texts of links, and their places in the page; empty if no link has any.

    If a page has several links to the same page, the place is the last of them in :data:`inlink.protocol.PLACES`, so
    that a link in the main part takes precedence over one in the menu. The text is the first one in that place.

    Parameters
    ----------
    linked : sequence of int
        The page of each link.
    labels : sequence of (str, str)
        Text and place of each link, each of which may be empty.
    pages : sequence of int
        The linked pages, in the order of the visit's list.

    Returns
    -------
    bytes, bytes
        The texts, and a byte for each page: 0, or 1 + the number of its place.
    """
    texts: dict[int, str] = {}
    places: dict[int, int] = {}
    for page, (text, place) in zip(linked, labels, strict=True):
        code = PLACES.index(place) + 1 if place else 0
        before = places.get(page, 0)
        if text and (page not in texts or code > before):
            texts[page] = text
        if code > before:
            places[page] = code
    return encode_anchors(texts, pages), bytes(map(places.get, pages, repeat(0))) if places else b""


def encode_anchors(texts: Mapping[int, str], pages: Sequence[int]) -> bytes:
    """Encode the texts of links; empty if no link has a text.

    Parameters
    ----------
    texts : mapping of int to str
        Text of each linked page that has one. White space is collapsed, and long texts are cut.
    pages : sequence of int
        The linked pages, in the order of the visit's list.
    """
    if not texts:
        return b""
    parts: list[bytes] = []
    left, kept = MOST_ANCHOR_BYTES, False
    for page in pages:
        raw = _encoded(texts[page]) if page in texts else b""
        if len(raw) > left:
            raw = b""
        left -= len(raw)
        kept = kept or bool(raw)
        parts.append(len(raw).to_bytes() + raw)
    return b"".join(parts) if kept else b""


def _encoded(text: str) -> bytes:
    """Return the part of a text that is kept: whole characters of at most 255 bytes."""
    raw = " ".join(text[: 8 * LONGEST_ANCHOR].split())[:LONGEST_ANCHOR].encode("utf-8", "replace")
    return raw[:_LONGEST_BYTES].decode("utf-8", "ignore").encode()


def anchors_in(payload: bytes, at: int, count: int) -> list[str]:
    """Return the texts of a visit's links in the list's order; empty ones for links without a text.

    Parameters
    ----------
    payload : bytes
        The payload of a visit with anchor texts.
    at : int
        The byte of the payload at which the anchor texts begin.
    count : int
        The number of links.
    """
    texts = []
    for _ in range(count):
        end = at + 1 + payload[at]
        texts.append(payload[at + 1 : end].decode("utf-8", "replace"))
        at = end
    return texts
