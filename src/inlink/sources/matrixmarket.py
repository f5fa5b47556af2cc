"""Sparse matrices in files: Matrix Market and SciPy's ``.npz``. A[i, j] is the arc i → j."""

import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from inlink.errors import DamageError, FormatError, InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.graph import Level
from inlink.graph.names import Names
from inlink.sources.edgelist import MAX_NODES
from inlink.sources.opening import head
from inlink.sources.source import Source
from inlink.sources.tables import check_weights

__all__ = ["matrix_market", "names_beside", "scipy_npz"]

_ARCS = 1 << 20
_MOST = 1 << 30  # bytes that a small .npz may unpack to


def names_beside(path: Path) -> Path:
    """Where the names of a matrix's rows lie, one a line: ``links.mtx`` → ``links.names.txt``."""
    name = path.name.removesuffix(".gz")
    return path.with_name(f"{name.removesuffix('.mtx').removesuffix('.npz')}.names.txt")


def matrix_market(path: str | os.PathLike[str], *, level: Level | None = None) -> Source:
    """Read a square matrix in Matrix Market form, plain or gzip, by SciPy.

    A symmetric matrix gives arcs both ways. Entries that are all 1, or a pattern, give no weights; entries of 0 are
    no arcs. Where ``links.names.txt`` lies beside ``links.mtx``, its lines are the nodes' names.

    Raises
    ------
    inlink.errors.InputError
        If the matrix is not square, has complex or negative entries, or as many names as rows are not there.
    inlink.errors.DamageError
        If it is cut or damaged.
    """
    import scipy.io

    path = Path(path)
    start = head(path, 1 << 20)
    size = next(
        (line for line in start.splitlines() if line.strip() and not line.startswith(b"%")), b""
    ).split()
    # a header may promise anything, and what it promises is allocated: an entry takes two bytes at least
    room = path.stat().st_size * (1100 if path.suffix == ".gz" else 1)
    dense = b" array " in start[:200].lower()
    if len(size) < 2 or not all(part.isdigit() for part in size):
        raise FormatError(f"{path}: no size line after the Matrix Market header")
    entries = int(size[0]) * int(size[1]) if dense else int(size[-1])
    if 2 * entries > 2 * room or max(int(size[0]), int(size[1])) > MAX_NODES:
        raise DamageError(
            f"{path}: promises {entries:,} entries, more than a file of its size can hold: cut or damaged"
        )
    try:
        matrix = scipy.io.mmread(path, spmatrix=False)
    except (ValueError, OverflowError, OSError, EOFError, zlib.error, MemoryError) as error:
        raise DamageError(f"{path}: cut or damaged ({error})") from None
    return _source(path, matrix, level)


def scipy_npz(path: str | os.PathLike[str], *, level: Level | None = None) -> Source:
    """Read a square sparse matrix that SciPy's ``save_npz`` wrote; nothing in it is ever unpickled.

    Raises
    ------
    inlink.errors.InputError
        If the matrix is not square, or has complex or negative entries.
    inlink.errors.DamageError
        If it is cut or damaged, its numbers do not fit together, or it unpacks to more than 200 times its size.
    """
    import scipy.sparse

    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > max(_MOST, 200 * path.stat().st_size):
            raise DamageError(f"{path}: would unpack to {unpacked:,} bytes, more than 200 times its size")
        matrix = scipy.sparse.load_npz(path)
        if matrix.format in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)  # SciPy's loops trust indices
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError, OSError, EOFError,
            zipfile.BadZipFile, NotImplementedError, zlib.error) as error:  # fmt: skip
        raise DamageError(f"{path}: no sparse matrix of SciPy's save_npz, or damaged ({error})") from None
    return _source(path, matrix, level)


def _source(path: Path, matrix: Any, level: Level | None) -> Source:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{path}: an adjacency matrix is square, not {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{path}: entries of type {matrix.dtype} are no weights")
    n = int(matrix.shape[0])
    if n > MAX_NODES:
        raise InputError(f"{path}: {n:,} nodes are too many (at most {MAX_NODES:,})")
    names = None
    beside = names_beside(path)
    if beside.is_file():
        found = beside.read_bytes().removesuffix(b"\n").split(b"\n") if n else []
        if len(found) != n:
            raise InputError(f"{beside}: {len(found):,} names for {n:,} nodes: remove it, or give one a line")
        names = Names.of(found)
    return Source(_batches(path, matrix), names, n, level)


def _batches(path: Path, matrix: Any) -> Iterator[ArcBatch]:
    if isinstance(matrix, np.ndarray):
        rows, columns = np.nonzero(matrix)
        values = matrix[rows, columns]
    else:
        coo = matrix.tocoo()
        rows, columns, values = coo.row, coo.col, coo.data
        if len(values) and not values.all():
            rows, columns, values = rows[values != 0], columns[values != 0], values[values != 0]
    weighted = len(values) and not (values == 1).all()
    if weighted:
        check_weights(values, f"{path}")
    for low in range(0, len(rows), _ARCS):
        part = slice(low, low + _ARCS)
        weights = values[part].astype(np.float64) if weighted else None
        yield ArcBatch(rows[part].astype(np.uint32), columns[part].astype(np.uint32), None, weights)
