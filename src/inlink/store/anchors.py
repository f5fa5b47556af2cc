"""Encode and read anchor texts: the words of a page's links, kept with its visit.

The texts are behind the scores of the visit's links. For each link, in the order of the list, they hold one byte of
length and that many bytes of UTF-8. A link without a text has the length 0.
"""

from collections.abc import Iterable
from operator import methodcaller

import numpy as np

from inlink.base.arrays import UInt32Array
from inlink.store.kernels import labels
from inlink.store.kernels.labels import LONGEST_ANCHOR, MOST_ANCHOR_BYTES

__all__ = ["LONGEST_ANCHOR", "MOST_ANCHOR_BYTES", "anchors_in", "encode_labels"]

_utf8 = methodcaller("encode", "utf-8", "surrogatepass")


def encode_labels(
    linked: UInt32Array, texts: Iterable[str], codes: bytes, pages: UInt32Array
) -> tuple[bytes, int, bytes]:
    """Encode the texts of links, and their places in the page; empty if no link has any.

    If a page has several links to the same page, the place is the last of them in :data:`inlink.protocol.PLACES`, so
    that a link in the main part takes precedence over one in the menu. The text is the first one in that place. White
    space in texts is collapsed, and long texts are cut.

    Parameters
    ----------
    linked : uint32[n or more]
        The page of each link; NO_PAGE for a link without a page.
    texts : iterable of str
        The text of each link, which may be empty.
    codes : bytes
        The place of each link: 0 if it is not known, else 1 + its number.
    pages : uint32[k]
        The linked pages, in the order of the visit's list.

    Returns
    -------
    bytes, int, bytes
        The texts, their size, and a byte for each page: 0, or 1 + the number of its place.
    """
    encoded = list(map(_utf8, texts))
    sizes_and_codes = np.array((*map(len, encoded), *codes), np.uint32)
    text = np.frombuffer(b"".join(encoded), np.uint8)
    coded = labels.encode_labels(linked, pages, text, sizes_and_codes)
    raw, behind = coded.tobytes(), 1 + pages.size
    return raw[behind:], coded.size - behind, raw[1:behind] if raw[0] else b""


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
