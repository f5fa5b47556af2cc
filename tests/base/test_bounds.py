"""Kernels that check bounds: what they refuse. ``make bounds`` runs the tests of kernels in this mode."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import inlink
from inlink.base import jit, machinecode
from inlink.graph import part
from inlink.rank.kernels import gather
from torture.mutants import mutants, python_mutants

ROOT = Path(__file__).parents[2]

KERNELS = """
import numpy as np
from inlink.base.jit import add_lanes, array_at, inlined, item_at, keep_larger, kernel, prefetch

HEAD = np.dtype([("size", "<u4"), ("place", "<u8")])

@inlined
def element(x, at):
    return x[at]

@kernel(allocates=False)
def inside(x, at):
    return element(x, at)

@kernel
def through_another(x, at):
    return inside(x, at)

@kernel
def write(x, at):
    x[at] = 7

@kernel
def field(heads, at):
    return heads[at].place

@kernel
def cell(x, at):
    return x[np.uint64(0), at]

@kernel
def number(raw, at):
    return item_at(raw, at, np.uint32)

@kernel
def record(raw, at):
    return item_at(raw, at, HEAD).place

@kernel
def from_table(table, at):
    return array_at(table, 1, np.uint32)[at]

@kernel
def wrongly_from_table(table, at):
    return array_at(table, 1, np.uint64)[at]

@kernel
def add_to(x, at):
    add_lanes(x, at, x, np.uint64(0), np.uint64(1))

@kernel
def add_from(x, at):
    add_lanes(x, np.uint64(0), x, at, np.uint64(1))

@kernel
def raised(raw, at):
    keep_larger(raw, at, raw, np.uint64(0), 4)

@kernel
def ask_for(x, at):
    prefetch(x, at)
"""

RUN = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import somekernels as k
from inlink.base import jit

assert jit.CHECKED
x = np.arange(5, dtype=np.uint32)
heads = np.zeros(5, k.HEAD)
raw = np.zeros(16, np.uint8)
table = jit.addresses([np.zeros(2, np.uint8), x])

def ended(kernel, *given):
    try:
        kernel(*given)
    except IndexError:
        return "IndexError"
    return "right"

for name, given, last in (
    ("inside", x, 4), ("through_another", x, 4), ("write", x, 4), ("field", heads, 4), ("cell", x.reshape(1, 5), 4),
    ("number", raw, 12), ("record", raw, 4), ("from_table", table, 4), ("add_to", np.zeros(12), 4),
    ("add_from", np.zeros(12), 4), ("raised", raw, 12),
):
    kernel = getattr(k, name)
    places = (0, last, last + 1, last + 100, 2**63, 2**64 - 1)
    print(name, *(ended(kernel, given, np.uint64(place)) for place in places))
print("empty", ended(k.inside, x[:0], np.uint64(0)), ended(k.number, raw[:3], np.uint64(0)))
print("dtype", ended(k.wrongly_from_table, table, np.uint64(0)))
print("prefetch", ended(k.ask_for, x, np.uint64(100)))
with ThreadPoolExecutor(2) as pool:
    print("thread", ended(jit.on_threads, lambda low, high: k.inside(x, high), np.array([0, 4, 5], np.uint64), pool))
"""


@pytest.mark.slow
def test_an_index_outside_of_its_array_is_an_error(tmp_path: Path):
    (tmp_path / "somekernels.py").write_text(KERNELS)
    paths = os.pathsep.join(map(str, (tmp_path, ROOT / "src")))
    environment = {"PYTHONPATH": paths, "INLINK_CHECK_BOUNDS": "1", "INLINK_MACHINE_CODE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert (lines.pop("empty"), lines.pop("dtype")) == ("IndexError IndexError", "IndexError")
    assert (lines.pop("prefetch"), lines.pop("thread")) == ("right", "IndexError")
    assert len(lines) == 11
    assert set(lines.values()) == {"right right IndexError IndexError IndexError IndexError"}


def test_code_that_checks_bounds_is_never_taken_for_other_code(monkeypatch: pytest.MonkeyPatch):
    stamps = set()
    for checked in (False, True):
        monkeypatch.setattr(machinecode, "CHECKED", checked)
        stamps.add(machinecode.stamp.__wrapped__())
    assert len(stamps) == 2
    assert not any(one != other and one in other for one in stamps for other in stamps)


checked = pytest.mark.skipif(not jit.CHECKED, reason="kernels check no bounds: run make bounds")


@checked
def test_a_buffer_that_is_too_small_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without the checks, long names overwrite other memory, and Python crashes."""
    sound = Path(part.__file__).read_text()
    wrong = sound.replace(
        "(5 * (high - low), 5 * (high - low), size)", "(5 * (high - low), 5 + high - low, size)"
    )
    assert wrong != sound
    names = [f"{k * 7919 % 4000:06d}"[::-1] + "y" * 300 + str(k) for k in range(4000)]
    for k in range(2):
        arcs = "".join(f"{names[i]}\t{names[(i * 3 + k) % 4000]}\n" for i in range(4000))
        (tmp_path / f"{k}.tsv").write_text(arcs)
    files = [tmp_path / "0.tsv", tmp_path / "1.tsv"]
    assert inlink.read(files).num_nodes == 4000
    changed = dict(vars(part))
    exec(wrong, changed)
    monkeypatch.setattr(part.PartWriter, "names", changed["PartWriter"].names)
    with pytest.raises(IndexError):
        inlink.read(files)


@checked
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("range(U0, uint64(len(at)))", "range(U0, uint64(len(at)) + U1)"),
        ("rest + t - linked", "rest + t + linked"),
        ("y[uint64(at[t])]", "y[uint64(at[t]) + U1]"),
    ],
)
def test_a_wrong_index_in_a_kernel_is_noticed(
    before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    sound = Path(gather.__file__).read_text()
    assert sound.count(before) == 1
    path = tmp_path / "gather_mutant.py"
    path.write_text(sound.replace(before, after))
    from inlink.base import compiling

    monkeypatch.setattr(jit, "_machine_code", {})
    # The module of the mutant is compiled by Numba, so it needs Numba's own function.
    monkeypatch.setattr(jit, "prefetch", compiling.prefetch)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    mutant = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, mutant)
    spec.loader.exec_module(mutant)
    # The rows of the linking nodes 0 and 4 come first; the other nodes have no arcs.
    offsets, nodes = np.array([0, 2, 4, 4, 4, 4], np.uint64), np.array([0, 1, 2, 3], np.uint32)
    rows = mutant.Inlinks(offsets, nodes, np.empty(0), np.array([0, 4], np.uint32))
    low, high = np.uint64(0), np.uint64(5)
    with pytest.raises(IndexError):
        mutant.pull(rows, np.ones(5), np.zeros(5), low, high)


def test_mutants_are_single_changes_of_kernels_and_of_buffers_for_them(tmp_path: Path):
    package = tmp_path / "src" / "inlink"
    package.mkdir(parents=True)
    (package / "kernels.py").write_text(
        "@kernel\ndef f(x, n):\n    for k in range(U0, n):\n        x[k] = k << 3\ndef g(x):\n    return x + 1\n"
    )
    door = "import numpy as np\nfrom inlink.kernels import f\na, b = (np.empty(n, np.uint8) for n in (5 * k, 5 + k))\n"
    door += "c = np.empty(0)\n"
    (package / "door.py").write_text(door)
    other = "import numpy as np\ndef f(n):\n    return [np.empty(n) for k in zip(range(n, 2 ** n, n), strict=True)]\n"
    (package / "other.py").write_text(other)
    inside = {mutant.after for made in mutants(tmp_path, kernels=True).values() for mutant in made}
    assert inside == {"(n + np.uint64(1))", "U1", "(k >> 3)", "4"}
    outside = [mutant for made in mutants(tmp_path, kernels=False).values() for mutant in made]
    assert {mutant.after for mutant in outside} == {"max(int(n) - 1, 0)", "(5 + k)", "(5 - k)", "6", "1"}
    for mutant in outside:
        assert door[mutant.begin : mutant.end] == mutant.before
    in_python = {mutant.after for made in python_mutants(tmp_path).values() for mutant in made}
    assert in_python == {"(2 ** n + 1)", "3", "None"}
