"""Fingerprints of texts: two texts with nearly the same words have fingerprints that differ in few bits.

The fingerprint is the simhash of M. S. Charikar, "Similarity estimation techniques from rounding algorithms", STOC
2002, with 64 bits. Texts count as near-duplicates if at most three bits differ, as in G. S. Manku, A. Jain,
A. Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007.

The features of a text are its shingles: each run of three words. A shingle's value is a hash of its words::

    value = mix((c₁·M + c₂)·M + c₃ mod 2⁶⁴)                                                                  (1)

cₖ is the CRC-32 of a word in UTF-8, and mix is the finalizer of SplitMix64. A bit of the fingerprint is 1 if it is 1
in more than half of the values. A shingle that occurs twice counts twice.
"""

from zlib import crc32

import numpy as np

from inlink.base.arrays import UInt64Array
from inlink.scoring.words import encoded_words

FEWEST_WORDS = 24
"""A text of fewer words has no fingerprint. The placeholder of a page that a script fills, for example, is the same on
pages with different content."""

SHINGLE = 3
"""Number of words of a shingle."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_PART = 1 << 16


def fingerprint(text: str) -> int:
    """Return the fingerprint of a text, from 1 to 2⁶⁴ − 1; 0 if the text has fewer than :data:`FEWEST_WORDS` words.

    Upper and lower case, punctuation and white space make no difference: see :func:`inlink.scoring.words.words`.

    Examples
    --------
    >>> poem = "the sea is calm to night the tide is full the moon lies fair upon the straits on the french coast "
    >>> poem += "the light gleams and is gone the cliffs of england stand glimmering and vast out in the tranquil bay"
    >>> fingerprint(poem) == fingerprint(poem.upper() + "!")
    True
    >>> (fingerprint(poem) ^ fingerprint("Print this page. " + poem)).bit_count()
    3
    >>> fingerprint("Please wait")
    0
    """
    encoded = encoded_words(text)
    if len(encoded) < FEWEST_WORDS:
        return 0
    codes = np.fromiter(map(crc32, encoded), np.uint64, len(encoded))
    ones = np.zeros(64, np.int64)
    # Long texts are counted in parts, because each shingle takes 64 bytes while it is counted.
    for begin in range(0, len(codes) - SHINGLE + 1, _PART):
        values = _shingles(codes[begin : begin + _PART + SHINGLE - 1]).astype("<u8")
        bits = np.unpackbits(values.view(np.uint8), bitorder="little").reshape(-1, 64)
        ones += bits.sum(axis=0, dtype=np.uint32)
    more = 2 * ones > len(codes) - SHINGLE + 1
    return int.from_bytes(np.packbits(more, bitorder="little").tobytes(), "little") or 1


def _shingles(codes: UInt64Array) -> UInt64Array:
    """The values (1) of the shingles of words with these codes, uint64[n - 2]."""
    values: UInt64Array = (codes[:-2] * _FACTOR + codes[1:-1]) * _FACTOR + codes[2:]
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))
