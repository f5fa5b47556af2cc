"""Checksums of the blocks of a file of the log.

They are made while the file is written, and kept in a checkpoint. Then no byte before the checkpoint's extent needs to
be read when the crawl is opened: each block is compared with its checksum before it is first used.
"""

import os
from array import array
from pathlib import Path

import numpy as np
from isal.isal_zlib import crc32

from inlink.base.arrays import Int64Array, UInt8Array, UInt32Array
from inlink.errors import FolderError

BLOCK = 1 << 16
"""Bytes of a block."""

_AT_A_TIME = 16 * BLOCK


def num_blocks(end: int) -> int:
    """The number of blocks of a file of ``end`` bytes."""
    return -(-end // BLOCK)


class BlockSums:
    """CRC-32 of each block of a file, as far as it was written.

    Parameters
    ----------
    sums : uint32[⌈end / BLOCK⌉]
        Those of the first ``end`` bytes. The last block may be incomplete.
    end : int
        Number of bytes.
    """

    def __init__(self, sums: UInt32Array | None = None, end: int = 0) -> None:
        self.end, self._last = end, 0
        self._whole = array("I", [] if sums is None else sums.astype(np.uint32).tobytes())
        if end % BLOCK:
            self._last = self._whole.pop()

    def add(self, data: bytes | memoryview, size: int) -> None:
        """Take in the ``size`` bytes that follow, which are all of the data."""
        if self.end % BLOCK + size < BLOCK:
            self._last = crc32(data, self._last)
            self.end += size
            return
        view, at = memoryview(data), 0
        while at < size:
            part = view[at : at + BLOCK - self.end % BLOCK]
            self._last = crc32(part, self._last)
            self.end += len(part)
            at += len(part)
            if self.end % BLOCK == 0:
                self._whole.append(self._last)
                self._last = 0

    def add_file(self, file: int, end: int) -> None:
        """Take in the bytes of an open file that follow, up to byte ``end``."""
        buffer = np.empty(_AT_A_TIME, np.uint8)
        while self.end < end:
            size = os.preadv(file, [buffer[: end - self.end].data], self.end)
            if not size:
                break
            self.add(buffer[:size].data, size)

    def all(self) -> UInt32Array:
        """The checksums of all blocks, uint32[⌈end / BLOCK⌉]."""
        found = np.frombuffer(self._whole.tobytes(), np.uint32)
        return np.append(found, np.uint32(self._last)) if self.end % BLOCK else found


class BlockGuard:
    """Compares blocks of a file with their checksums before they are first used.

    Parameters
    ----------
    path : Path
        The file, for messages.
    sums : uint32[⌈end / BLOCK⌉]
        See :class:`BlockSums`.
    end : int
        Number of guarded bytes. Later bytes are checked otherwise.
    """

    def __init__(self, path: Path, sums: UInt32Array, end: int) -> None:
        self.path, self.sums, self.end = path, sums, end
        self._unseen = np.ones(len(sums), bool)
        self._left = len(sums)

    def check(self, raw: UInt8Array, begin: int, end: int) -> None:
        """Compare the blocks that hold bytes ``begin`` … ``end`` - 1.

        Parameters
        ----------
        raw : uint8[…]
            The file from its beginning on.
        begin, end : int
            Bytes beyond the guarded ones are ignored.

        Raises
        ------
        inlink.errors.FolderError
            If a block is damaged.
        """
        if self._left and begin < self.end and begin < end:
            first, last = max(begin, 0) // BLOCK, (min(end, self.end) - 1) // BLOCK
            self._compare(raw, np.flatnonzero(self._unseen[first : last + 1]) + first)

    def check_each(self, raw: UInt8Array, begins: Int64Array, ends: Int64Array) -> None:
        """Do the same as :meth:`check` for many stretches: int64[n], int64[n]."""
        guarded = begins < self.end
        if not self._left or not guarded.any():
            return
        stop = len(self.sums) + 1
        first, last = begins[guarded] // BLOCK, np.minimum((ends[guarded] - 1) // BLOCK + 1, stop - 1)
        opened = np.bincount(first, minlength=stop) - np.bincount(last, minlength=stop)
        self._compare(raw, np.flatnonzero((opened.cumsum()[:-1] > 0) & self._unseen))

    def _compare(self, raw: UInt8Array, blocks: Int64Array) -> None:
        sums = self.sums
        for block in blocks.tolist():
            begin, end = block * BLOCK, min((block + 1) * BLOCK, self.end)
            if crc32(raw[begin:end].data) != sums[block]:
                raise FolderError(
                    f"{self.path} is damaged between bytes {begin:,} and {end:,}, which were safe on disk: run "
                    f"`inlink repair {self.path.parent}`, or take the folder from a backup"
                )
        self._unseen[blocks] = False
        self._left -= len(blocks)
