"""The loop that finds URLs that are in canonical form already, so that most URLs need no parser."""

import numpy as np

from inlink.base.arrays import BoolArray, UInt8Array
from inlink.base.jit import U0, U1, kernel

__all__ = ["CLASSES", "plain_lines"]


HOST, PATH, QUERY = 1, 2, 4


def _classes() -> UInt8Array:
    table = np.zeros(256, np.uint8)
    lower, digits = b"abcdefghijklmnopqrstuvwxyz", b"0123456789"
    for byte in lower + digits + b"-.":
        table[byte] |= HOST
    for byte in lower + lower.upper() + digits + b"-_~!$&()*+,;=:@/.%":
        table[byte] |= PATH | QUERY
    table[ord("?")] |= QUERY
    return table


CLASSES = _classes()
"""uint8[256]: the parts of a URL in which a byte stays unchanged. The standard leaves more bytes unchanged."""

_U3 = np.uint64(3)
_NEWLINE, _SLASH, _DOT, _DASH, _PERCENT, _QUESTION, _TWO = (np.uint8(b) for b in b"\n/.-%?2")
_A, _Z, _X, _N = (np.uint8(b) for b in b"azxn")


@kernel
def plain_lines(text: bytes, most: int, classes: UInt8Array, plain: BoolArray) -> bool:
    """Find the lines that are certainly their own canonical form: http or https, a host of plain labels, the last of
    which begins with a letter (so that it is not a number), no port, user, dot segment, or byte to be encoded.

    Write a result for each line to ``plain``. Return whether all lines are in canonical form and at most ``most`` bytes
    long. The result is also False if there are more lines than places in ``plain``.
    """
    at, length, every = U0, np.uint64(len(text)), True
    for line in range(U0, np.uint64(len(plain))):
        start = at
        good = True
        # "http://" or "https://"
        if (
            at + np.uint64(9) < length
            and text[at] == 104
            and text[at + U1] == 116
            and text[at + np.uint64(2)] == 116
            and text[at + _U3] == 112
        ):
            at += np.uint64(4)
            if text[at] == 115:
                at += U1
            if text[at] == 58 and text[at + U1] == _SLASH and text[at + np.uint64(2)] == _SLASH:
                at += _U3
            else:
                good = False
        else:
            good = False
        if good:
            label = at
            begin = at
            while (classes[text[at]] & HOST) != 0:
                if text[at] == _DOT:
                    if at == label:
                        # An empty label.
                        good = False
                    label = at + U1
                elif (
                    text[at] == _X
                    and at == label
                    and text[at + U1] == _N
                    and text[at + np.uint64(2)] == _DASH
                ):
                    # An internationalised label: its encoding must be checked.
                    good = False
                at += U1
            if at == label or text[label] < _A or text[label] > _Z or at - begin > np.uint64(253):
                good = False
            if text[at] != _SLASH:
                good = False
        if good:
            allowed = PATH
            while (classes[text[at]] & allowed) != 0 or text[at] == _QUESTION:
                byte = text[at]
                if byte == _QUESTION:
                    allowed = QUERY
                elif allowed == PATH and byte == _SLASH:
                    after = text[at + U1]
                    if after == _DOT or (after == _PERCENT and text[at + np.uint64(2)] == _TWO):
                        # Possibly a dot segment.
                        good = False
                at += U1
            if text[at] != _NEWLINE or at - start > np.uint64(most):
                good = False
        while text[at] != _NEWLINE:
            at += U1
        at += U1
        plain[line] = good
        every &= good
    return every and at == length
