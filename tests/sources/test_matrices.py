"""Graphs in Matrix Market and NPZ."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from graphfiles import content, read
from inlink.errors import DamageError, InputError


def test_matrices(tmp_path):
    matrix = scipy.sparse.csr_array(np.array([[0, 2.5, 0], [0, 0, 1], [1, 0, 0]]))
    wanted = ({0, 1, 2}, {(0, 1): 2.5, (1, 2): 1.0, (2, 0): 1.0})
    scipy.io.mmwrite(tmp_path / "m.mtx", matrix)
    assert content(read(tmp_path / "m.mtx")) == wanted
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        scipy.sparse.save_npz(tmp_path / "m.npz", matrix.asformat(kind))
        assert content(read(tmp_path / "m.npz")) == wanted
    scipy.sparse.save_npz(tmp_path / "z.npz", scipy.sparse.csr_array(([0.0, 3.0], ([0, 1], [1, 0])), (2, 2)))
    assert content(read(tmp_path / "z.npz")) == ({0, 1}, {(1, 0): 3})
    (tmp_path / "s.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern symmetric\n% x\n3 3 2\n2 1\n3 3\n"
    )
    assert content(read(tmp_path / "s.mtx")) == ({0, 1, 2}, {(0, 1): 1, (1, 0): 1, (2, 2): 1})
    (tmp_path / "z.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n%-- x\n\n2 2 2\n1 2 0\n2 1 3e0\n"
    )
    assert content(read(tmp_path / "z.mtx")) == ({0, 1}, {(1, 0): 3})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("coordinate real general\n2 3 1\n1 2 1\n", r"must be square; its shape is \(2, 3\)"),
        (
            "coordinate real general\n2 2 1\n1 2 -1\n",
            r"line 3: weight must be a finite number above 0; got '-1'",
        ),
        ("coordinate complex general\n2 2 1\n1 2 1 1\n", r"got coordinate complex"),
        ("array real general\n1 1\n0\n", r"got array real"),
        ("coordinate real skew-symmetric\n1 1 0\n", r"got skew-symmetric"),
        (
            "coordinate real general\n2 2 2\n1 2 1\n",
            r"truncated or damaged: it has 1 entry, but its header says 2",
        ),
        (
            "coordinate real general\n% x\n2 2 1\n1 3 1\n",
            r"m\.mtx, line 4: node number must be below 3; got 3",
        ),
        ("coordinate real general\n2 2 1\n0 1 1\n", r"row or column 0"),
        ("coordinate real general\n2 2 1\n1 1\n", r"line 3: expected a weight.* got '1 1'"),
        ("coordinate real general\n2 2 1\n1 2\x009 1\n", r"line 3: expected a node number.* got '2\\x009'"),
        ("coordinate real general\n", r"not followed by a size line"),
    ],
)
def test_wrong_matrix_market(tmp_path, at, text, message):
    (tmp_path / "m.mtx").write_text(f"%%MatrixMarket matrix {text}")
    with pytest.raises(InputError, match=message):
        read(at(tmp_path / "m.mtx"))


def test_wrong_npz(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(
        path,
        data=np.ones(1),
        indices=np.array([9]),
        indptr=np.array([0, 1, 1]),
        shape=np.array([2, 2]),
        format=b"csr",
    )
    with pytest.raises(DamageError, match=r"m\.npz"):
        read(path)
    np.savez(path, data=np.array([{}], object), format=b"csr")  # would need pickle
    with pytest.raises(DamageError, match=r"m\.npz"):
        read(path)
    scipy.sparse.save_npz(path, scipy.sparse.csr_array(np.array([[0, -1.0], [2.5, 0]])))
    with pytest.raises(InputError, match=r"m\.npz: weight must be a finite number above 0; got -1\.0"):
        read(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DamageError, match=r"m\.npz"):
        read(path)
