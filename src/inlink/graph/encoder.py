"""Successor lists as a BVGraph bit stream, encoded in blocks so that memory does not grow with the arcs."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from inlink.base.arrays import UInt64Array
from inlink.errors import ParameterError
from inlink.graph.rows import Rows

CODES = {"UNARY": 0, "GAMMA": 1, "DELTA": 2, "ZETA": 3, "NIBBLE": 4}
"""Codes by their names in WebGraph, numbered as in ``kernels/bits.py``."""

FIELDS = {
    "OUTDEGREES": ("GAMMA", ("GAMMA", "DELTA")),
    "REFERENCES": ("UNARY", ("UNARY", "GAMMA", "DELTA")),
    "BLOCK_COUNT": ("GAMMA", ("UNARY", "GAMMA", "DELTA")),
    "BLOCKS": ("GAMMA", ("GAMMA", "DELTA")),
    "RESIDUALS": ("ZETA", ("GAMMA", "DELTA", "ZETA", "NIBBLE")),
}
"""The default code and all codes of each field that may have several, in the order of ``kernels/bits.py``."""

# Number of nodes that are encoded, and of bytes that are written, at a time.
_NODES = 1 << 18
_BYTES = 1 << 20
_LARGEST = 2**31 - 1


class Coding(NamedTuple):
    """Parameters of the encoding of BVGraph's records. The defaults are WebGraph's.

    Attributes
    ----------
    window : int
        A list may be copied from one of this many nodes before it: from 0 (lists are not copied) to 2²⁰.
    max_references : int
        The largest number of lists that decoding one list may lead through, from 0 to 2³¹ − 1.
    min_interval : int
        Runs of consecutive successors of at least this length become intervals, from 0 (none do) to 2³¹ − 1.
    k : int
        The parameter of ζ codes, from 1 to 60.
    codes : tuple of str
        Codes other than the default, such as ``"RESIDUALS_GAMMA"``; see :data:`FIELDS`.
    """

    window: int = 7
    max_references: int = 3
    min_interval: int = 4
    k: int = 3
    codes: tuple[str, ...] = ()

    def chosen(self) -> dict[str, str]:
        """Return the code of each field in :data:`FIELDS`.

        Raises
        ------
        inlink.errors.ParameterError
            If a number is out of its range, or a field cannot have the code.
        """
        chosen = {field: default for field, (default, _) in FIELDS.items()}
        for text in self.codes:
            field, _, code = text.strip().upper().rpartition("_")
            if field not in FIELDS or code not in FIELDS[field][1]:
                allowed = ", ".join(f"{name}_{code}" for name, (_, codes) in FIELDS.items() for code in codes)
                raise ParameterError(f"`codes` must be some of {allowed}; got {text!r}")
            chosen[field] = code
        for name, value, least, most in (
            ("window", self.window, 0, 1 << 20),
            ("max_references", self.max_references, 0, _LARGEST),
            ("min_interval", self.min_interval, 0, _LARGEST),
            ("k", self.k, 1, 60),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ParameterError(f"`{name}` must be an integer from {least} to {most:,}; got {value!r}")
        return chosen


class BitBuffer:
    """A buffer of bits that returns whole bytes.

    Attributes
    ----------
    data : uint8[…]
        The bits; zeros from bit ``at`` on.
    at : int
        The number of bits in the buffer.
    """

    def __init__(self) -> None:
        self.data = np.zeros(_BYTES, np.uint8)
        self.at = 0

    def reserve(self, bits: int) -> None:
        """Make room for the given number of bits."""
        if self.at + bits > 8 * len(self.data):
            data = np.zeros((self.at + bits + 7) // 8 + _BYTES, np.uint8)
            data[: len(self.data)] = self.data
            self.data = data

    def take(self, last: bool = False) -> bytes:
        """Remove and return the whole bytes; if ``last`` is set, also the last, incomplete byte, padded with zeros."""
        whole = self.at // 8
        used = (self.at + 7) // 8
        taken = self.data[: used if last else whole].tobytes()
        begun = self.data[whole] if used > whole else np.uint8(0)
        self.data[:used] = 0
        self.at -= 8 * whole
        if last:
            self.at = 0
        else:
            self.data[0] = begun
        return taken


class Encoder:
    """Encodes successor lists in the order of their nodes.

    Parameters
    ----------
    coding : Coding
        Parameters of the encoding.
    longest : int
        The length of the longest list.
    block : int
        Lists are copied only within blocks of this many nodes, so that each block can be decoded alone.

    Attributes
    ----------
    statistics : inlink.graph.kernels.bvencode.Statistics
        Sums over the lists that were encoded so far.

    Raises
    ------
    inlink.errors.ParameterError
        See :meth:`Coding.chosen`.
    """

    def __init__(self, coding: Coding, longest: int, block: int = 1 << 62) -> None:
        from inlink.graph.kernels import bvencode as kernels

        codes = np.array([*(CODES[code] for code in coding.chosen().values()), CODES["GAMMA"]], np.int64)
        k, lengths = np.uint64(coding.k), np.zeros((len(codes), 1024), np.uint8)
        kernels.code_lengths(codes, k, lengths)
        window, references = np.uint64(coding.window), np.uint64(coding.max_references)
        intervals = np.uint64(coding.min_interval)
        self._how = kernels.Encoding(window, references, intervals, codes, k, lengths, np.uint64(block))
        self._chains = np.zeros(coding.window + 1, np.uint64)
        self.reserve(longest)
        self.statistics = kernels.Statistics(*(np.zeros(size, np.uint64) for size in (5, 3, 2, 64, 64)))
        self._bits = BitBuffer()

    def reserve(self, longest: int) -> None:
        """Make room for lists of at most ``longest`` nodes."""
        from inlink.graph.kernels import bvencode as kernels

        blocks, extras, intervals = (np.empty(longest + 1, np.uint32) for _ in range(3))
        self._parts = kernels.Parts(blocks, extras, intervals, self._chains)

    def encode(self, rows: Rows, base: int = 0) -> Iterator[tuple[bytes, UInt64Array]]:
        """Encode consecutive lists. Yield whole bytes of the stream, and the number of bits of each new record.

        Lists are copied only from lists of the same call, so that each call's records can be decoded alone.

        Parameters
        ----------
        rows : Rows
            Increasing lists, each node once in a list, none longer than ``longest``. Weights are ignored.
        base : int
            The number of the first list's node.

        Yields
        ------
        bytes, uint64[k]
            An incomplete byte stays in the encoder until more bits follow; :meth:`rest` returns the last one.
        """
        from inlink.graph.kernels import bvencode as kernels

        lists = kernels.Lists(
            np.ascontiguousarray(rows.offsets, np.uint64),
            np.ascontiguousarray(rows.nodes, np.uint32),
            np.uint64(base),
        )
        bits, low, end = self._bits, 0, len(rows.offsets) - 1
        while low < end:
            high = min(low + _NODES, end)
            lengths = np.empty(high - low, np.uint64)
            numbers = (np.uint64(base + low), np.uint64(base + high), np.uint64(bits.at))
            node, at, needed = kernels.encode(
                lists, self._how, self._parts, self.statistics, bits.data, lengths, *numbers
            )
            done, bits.at = int(node) - base, int(at)
            yield bits.take(), lengths[: done - low]
            bits.reserve(int(needed))
            low = done

    def rest(self) -> bytes:
        """Return the last bits of the stream, padded to a byte with zeros. The next list begins a new stream."""
        return self._bits.take(last=True)
