"""The loop that takes in the links of a page: canonical URLs, the numbers of their pages, and the list of a frame."""

import numpy as np
from numpy import int64, uint32, uint64

from inlink.base.arrays import Float32Array, UInt8Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, kernel
from inlink.store.kernels.frames import encode_links
from inlink.store.kernels.table import PADDING, number_urls
from inlink.urls.kernels import FULL, READY, join_lines

__all__ = ["NO_ROOM", "take_links"]

NO_ROOM = -4
"""Answer of :func:`take_links`: there is no address space for more pages."""

_PADDING = uint64(len(PADDING))


@kernel
def take_links(
    at: UInt64Array,
    text: UInt8Array,
    base: UInt8Array,
    options: int,
    classes: UInt8Array,
    seed: uint64,
    lines: UInt8Array,
    odd: UInt32Array,
    linked: UInt32Array,
    num_links: int,
    scores: Float32Array,
    coded: UInt8Array,
    new_text: UInt8Array,
) -> tuple[int, int, int, UInt32Array, int, int]:
    """Join the links of a page with its URL, number the pages that they name, and code them as a list.

    Parameters
    ----------
    at : uint64[...]
        A table of addresses, see :func:`.columns.table_at`.
    text, base, options, classes, lines, odd
        See :func:`inlink.urls.kernels.join_lines`. With :data:`~inlink.urls.kernels.READY`, ``text`` has canonical
        URLs or empty lines, and there are no odd links.
    seed : uint64
        The seed of hashes.
    linked : uint32[at least n]
        Filled: the page of each link; ``NO_PAGE`` for a link that is left out.
    num_links : int
        Number of links, n.
    scores : float32[n] or float32[0]
        The score of each link. Replaced by the best score of each distinct page.
    coded : uint8[9 * n]
        Filled: pages and scores, see :func:`.frames.encode_links`.
    new_text : uint8[len(lines)]
        Filled: the lines of new URLs.

    Returns
    -------
    odds : int
        0 if the links were taken in. Otherwise nothing was changed but ``lines`` and ``odd``: the number of odd links,
        an answer of :func:`inlink.urls.kernels.join_lines`, or :data:`NO_ROOM`, after which some pages are numbered.
    used, foreign : int
        Bytes of ``lines``, and number of links that are not http.
    pages : uint32[k]
        The distinct pages, increasing.
    size, written : int
        Number of bytes in ``coded`` and ``new_text``.
    """
    n, pages = uint64(num_links), np.empty(uint64(num_links), uint32)
    if uint64(options) & uint64(READY) != U0:
        odds, used, foreign = int64(0), uint64(len(text)), U0
        if used + _PADDING > uint64(len(lines)):
            return int64(FULL), used, foreign, pages, U0, U0
        for k in range(U0, used):
            lines[k] = text[k]
    else:
        odds, used, foreign = join_lines(text, base, options, classes, lines, odd, n)
        if odds == 0 and used + _PADDING > uint64(len(lines)):
            odds = int64(FULL)
        if odds != 0:
            return odds, used, foreign, pages, U0, U0
    for k in range(used, used + _PADDING):
        lines[k] = 0
    written, done = number_urls(at, lines, seed, linked[:n], new_text)
    if done < n:
        return int64(NO_ROOM), used, foreign, pages, U0, U0
    pages[:] = linked[:n]
    count, size = encode_links(pages, scores, coded)
    return int64(0), used, foreign, pages[:count].copy(), size, written
