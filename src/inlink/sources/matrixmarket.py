"""Sparse matrices in files: Matrix Market and SciPy's ``.npz``. A[i, j] is the arc i → j."""

import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.arrays import slices
from inlink.base.extras import load
from inlink.base.opening import head, place_of
from inlink.base.table import counted
from inlink.errors import DamageError, FormatError, InputError
from inlink.graph.batches import ArcBatch
from inlink.graph.names import Names
from inlink.graph.source import Source
from inlink.sources.edgelist import MAX_NODES, number_batches
from inlink.sources.inputs import Location
from inlink.sources.tables import check_weights

_ARCS = 1 << 20
# The number of bytes at the beginning of a file that must contain the size line.
_HEADER = 1 << 20
# The number of bytes that even a small .npz may unpack to.
_MOST = 1 << 30


def names_beside(path: Path) -> Path:
    """Return the path of the names of a matrix's rows, one per line: ``links.mtx`` → ``links.names.txt``."""
    name = path.name.removesuffix(".gz")
    return path.with_name(f"{name.removesuffix('.mtx').removesuffix('.npz')}.names.txt")


def matrix_market(path: str | os.PathLike[str]) -> Source:
    """Read a square sparse matrix in Matrix Market format (coordinate; real, integer or pattern), plain or gzip.

    A symmetric matrix gives arcs in both directions. Entries of 0 are not arcs. If there is a ``links.names.txt``
    beside ``links.mtx``, its lines are the names of the nodes. SciPy's reader is not used: it crashes on damaged files.

    Raises
    ------
    inlink.errors.FormatError
        If the file is not a Matrix Market file, or the matrix is dense or complex.
    inlink.errors.InputError
        If the matrix is not square, has negative entries, or the number of names differs from the number of rows.
    inlink.errors.DamageError
        If the number of entries differs from the header.
    """
    path = place_of(path)
    start = head(path, _HEADER)
    kind = start.partition(b"\n")[0].decode("latin-1").lower().split()
    if len(kind) != 5 or kind[:2] != ["%%matrixmarket", "matrix"]:
        raise FormatError(f"{path}: must begin with '%%MatrixMarket matrix …'")
    if kind[2] != "coordinate" or kind[3] not in ("real", "double", "integer", "pattern"):
        raise FormatError(
            f"{path}: expected a matrix coordinate real, integer or pattern; got {' '.join(kind[2:4])}"
        )
    if kind[4] not in ("general", "symmetric"):
        raise FormatError(f"{path}: expected a general or symmetric matrix; got {kind[4]}")
    skip, size = 0, None
    for size_line, line in enumerate(start.splitlines(keepends=True), 1):  # noqa: B007
        skip += len(line)
        if line.strip() and not line.startswith(b"%"):
            size = line.split()
            break
    if size is None or len(size) != 3 or not all(part.isdigit() and len(part) < 19 for part in size):
        raise FormatError(f"{path}: the Matrix Market header is not followed by a size line")
    n, columns, entries = (int(part) for part in size)
    if n != columns:
        raise InputError(f"{path}: the matrix must be square; its shape is {(n, columns)}")
    if n > MAX_NODES:
        raise InputError(f"{path}: a graph has at most {MAX_NODES:,} nodes; got {n:,}")
    batches = number_batches(path, n + 1, separator=" ", weighted=kind[3] != "pattern", skip=skip)
    return Source(
        _from_one(path, batches, entries, kind[4] == "symmetric"),
        _names(path, n),
        n,
        stated=f"{path}, line {size_line:,}",
    )


def _from_one(
    path: Location, batches: Iterator[ArcBatch], entries: int, symmetric: bool
) -> Iterator[ArcBatch]:
    """Count nodes from 0 instead of 1, drop entries of 0, and mirror a symmetric matrix."""
    read = 0
    for batch in batches:
        sources, targets, weights = batch.sources, batch.targets, batch.weights
        read += len(sources)
        if not (sources.all() and targets.all()):
            raise DamageError(f"{path}: entry in row or column 0. Matrix Market counts from 1.")
        if weights is not None and not weights.all():
            sources, targets, weights = sources[weights > 0], targets[weights > 0], weights[weights > 0]
        sources, targets = sources - np.uint32(1), targets - np.uint32(1)
        yield ArcBatch(sources, targets, None, weights, size=batch.size)
        if symmetric:
            off = sources != targets
            yield ArcBatch(targets[off], sources[off], None, None if weights is None else weights[off])
    if read != entries:
        raise DamageError(
            f"{path}: truncated or damaged: it has {counted(read, 'entry', 'entries')}, but its header says {entries:,}"
        )


def scipy_npz(path: str | os.PathLike[str]) -> Source:
    """Read a square sparse matrix written by SciPy's ``save_npz``. Nothing in it is ever unpickled.

    Raises
    ------
    inlink.errors.InputError
        If the matrix is not square, or has complex or negative entries.
    inlink.errors.DamageError
        If the file is truncated, damaged or inconsistent, or unpacks to more than 200 times its size.
    """
    sparse = load("scipy.sparse", "scipy", "SciPy's format .npz")
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > max(_MOST, 200 * path.stat().st_size):
            raise DamageError(
                f"{path}: would unpack to {unpacked:,} bytes, more than 200 times its size. It is not read."
            )
        matrix = sparse.load_npz(path)
        if matrix.format in ("csr", "csc", "bsr"):
            # SciPy does not check indices when it uses them.
            matrix.check_format(full_check=True)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError, OSError, EOFError,
            zipfile.BadZipFile, NotImplementedError, zlib.error) as error:  # fmt: skip
        raise DamageError(
            f"{path}: not a sparse matrix written by SciPy's save_npz, or damaged ({error})"
        ) from None
    return _source(path, matrix)


def _source(path: Path, matrix: Any) -> Source:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{path}: the matrix must be square; its shape is {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{path}: entries must be real numbers; their type is {matrix.dtype}")
    n = int(matrix.shape[0])
    if n > MAX_NODES:
        raise InputError(f"{path}: a graph has at most {MAX_NODES:,} nodes; got {n:,}")
    # Row formats have an offset for each node. Other formats may claim any shape.
    stated = "" if hasattr(matrix, "indptr") else f"{path}: its shape"
    return Source(_batches(path, matrix), _names(path, n), n, stated=stated)


def _names(path: Location, n: int) -> Names | None:
    beside = names_beside(Path(path))
    if not beside.is_file():
        return None
    from inlink.sources.bvgraph import read_names

    return read_names(beside, n)


def _batches(path: Path, matrix: Any) -> Iterator[ArcBatch]:
    coo = matrix.tocoo()
    rows, columns, values = coo.row, coo.col, coo.data
    if len(values) and not values.all():
        rows, columns, values = rows[values != 0], columns[values != 0], values[values != 0]
    weighted = len(values) and not (values == 1).all()
    if weighted:
        check_weights(values, f"{path}")
    for part in slices(len(rows), _ARCS):
        weights = values[part].astype(np.float64) if weighted else None
        yield ArcBatch(rows[part].astype(np.uint32), columns[part].astype(np.uint32), None, weights)
