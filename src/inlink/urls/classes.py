"""What the parser of URLs does with each byte, for the loops of :mod:`inlink.urls.kernels`."""

from functools import cache

import numpy as np

from inlink.base.arrays import UInt8Array
from inlink.urls.canonical import canonical
from inlink.urls.kernels import ENCODE, HOST, PATH, QUERY, QUERY_ENCODE


@cache
def byte_classes() -> UInt8Array:
    """Return the class of each byte, uint8[256]: what the parser does with it in a host, a path and a query."""
    classes = np.zeros(256, np.uint8)
    classes[list(b"abcdefghijklmnopqrstuvwxyz0123456789-.")] = HOST
    # Bytes above 127 are parts of characters, and are always encoded.
    classes[128:] = ENCODE | QUERY_ENCODE
    for start, keep, encode in (("http://a.com/", PATH, ENCODE), ("http://a.com/?", QUERY, QUERY_ENCODE)):
        for byte in range(32, 128):
            form = canonical(f"{start}x{chr(byte)}y")
            if form == f"{start}x{chr(byte)}y" and (byte != 63 or keep == QUERY):
                classes[byte] |= keep
            elif form == f"{start}x%{byte:02X}y":
                classes[byte] |= encode
    return classes
