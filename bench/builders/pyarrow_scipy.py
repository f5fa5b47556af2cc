"""PyArrow's dictionary encoding and a SciPy matrix, all in memory."""

from pathlib import Path

import numpy as np

NAME = "PyArrow + SciPy"
COMPUTES = "dictionary encoding of both columns, a CSR matrix; in memory, one direction"
LARGEST = 1 << 62


def available() -> str | None:
    return None


def run(path: Path, folder: Path) -> int:
    import pyarrow as pa
    import pyarrow.csv as csv
    import scipy.sparse

    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=["source", "target"], block_size=64 << 20),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(column_types={"source": pa.binary(), "target": pa.binary()}),
    )
    lines = table.num_rows
    both = pa.chunked_array(table["source"].chunks + table["target"].chunks)
    del table
    codes = both.dictionary_encode().unify_dictionaries()
    del both
    n = len(codes.chunk(0).dictionary)
    numbers = np.concatenate([chunk.indices.to_numpy() for chunk in codes.chunks])
    del codes
    matrix = scipy.sparse.csr_array(
        (np.ones(lines, np.int32), (numbers[:lines], numbers[lines:])), shape=(n, n)
    )
    matrix.sum_duplicates()
    return int(matrix.nnz)
