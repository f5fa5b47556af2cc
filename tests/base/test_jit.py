"""The gate to Numba: what is cached, and what is inlined."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import inlink
from inlink.base import jit, machinecode
from inlink.base.jit import add_lanes, item_at, keep_larger, prefetch
from patience import PATIENCE

MODULE = """
from inlink.base.jit import inlined, kernel

@inlined
def row(total, x, low, high):
    for k in range(low, high):
        total += x[k]
    return total

@kernel
def inside(x):
    total = 0.0
    for k in range(len(x)):
        total = row(total, x, k, k + 1) * 0.7
    return total

@kernel(allocates=False)
def written_out(x):
    total = 0.0
    for k in range(len(x)):
        total = (total + x[k]) * 0.7
    return total
"""


def load(path: Path):
    spec = importlib.util.spec_from_file_location("kernels_for_a_test", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import numba

    # Kernels that the test defines are compiled at once, even if inlink's own have machine code.
    monkeypatch.setattr(jit, "_machine_code", {})
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "kernels_for_a_test.py"
    path.write_text(MODULE)
    yield path
    sys.modules.pop("kernels_for_a_test", None)


@pytest.mark.slow
def test_inlined_loops_have_the_bits_of_the_same_lines_written_out(source: Path):
    module = load(source)
    x = np.random.default_rng(0).random(1000)
    assert module.inside(x) == module.written_out(x) == module.inside.py_func(x)


def test_the_sources_of_kernels_hold_what_they_import():
    package = Path(inlink.__file__).parent
    names = {str(Path(file).relative_to(package)) for file in machinecode._sources()}
    files = [*package.rglob("kernels/*.py"), *package.rglob("kernels.py")]
    kernels = {str(path.relative_to(package)) for path in files}
    assert {"base/jit.py", "base/arrays.py", "store/format.py"} | kernels <= names
    assert len(kernels) > 20
    assert "rank/pagerank.py" not in names


@pytest.mark.slow
def test_cached_code_is_stale_once_any_kernel_has_changed(source: Path, monkeypatch: pytest.MonkeyPatch):
    x = np.ones(3)

    def hits() -> int:
        kernel = load(source).inside
        kernel(x)
        return sum(kernel.stats.cache_hits.values())

    assert [hits(), hits()] == [0, 1]
    monkeypatch.setattr("inlink.base.compiling.stamp", lambda: "the source of another version")
    assert [hits(), hits()] == [0, 1]


RECORD = np.dtype([("a", "u1"), ("b", "<u8"), ("c", "<u2")])


@jit.kernel
def sums_from(raw, count):
    """The sums of a number and of a record's field, from each of the first bytes on."""
    numbers, fields = np.uint64(0), np.uint64(0)
    for k in range(np.uint64(0), count):
        numbers += np.uint64(item_at(raw, k, np.uint32))
        fields += np.uint64(item_at(raw, k, RECORD).b)
    return numbers, fields


def test_items_are_read_at_any_byte():
    raw = np.random.default_rng(5).integers(0, 256, 200, np.uint8)
    places = range(len(raw) - RECORD.itemsize + 1)
    numbers, fields = sums_from(raw, np.uint64(len(places)))
    assert numbers == sum(int.from_bytes(raw[k : k + 4].tobytes(), "little") for k in places)
    assert fields == sum(int.from_bytes(raw[k + 1 : k + 9].tobytes(), "little") for k in places) % 2**64


@jit.kernel
def sum_asked_for(numbers, ahead):
    """The sum of an array, each element asked for before it is read."""
    total = np.uint64(0)
    for k in range(np.uint64(0), np.uint64(len(numbers))):
        prefetch(numbers, k + ahead)
        total += numbers[k]
    return total


def test_elements_can_be_asked_for_outside_of_the_array():
    numbers = np.arange(1000, dtype=np.uint64)
    for ahead in (0, 1, 1000, 2**40):
        assert sum_asked_for(numbers, np.uint64(ahead)) == 499_500


@jit.kernel
def add_and_raise(numbers, others, lanes, raw, at):
    """Add to eight numbers from the third on, and raise 16 bytes that begin at ``at``."""
    add_lanes(numbers, np.uint64(2), others, np.uint64(1), lanes)
    keep_larger(raw, at, raw, np.uint64(0), 16)


def test_numbers_and_bytes_in_lanes():
    rng = np.random.default_rng(6)
    for lanes in (0, 1, 0b10100101, 255):
        # A number that is not added may be anything.
        others = np.where([0, *(lanes >> np.arange(8) & 1)], rng.random(9), np.nan)
        numbers, raw = rng.random(11), rng.integers(0, 256, 45, np.uint8)
        wanted, raised = numbers.copy(), raw.copy()
        wanted[2:10] += np.nan_to_num(others[1:], nan=0.0)
        raised[27:43] = np.maximum(raw[27:43], raw[:16])
        add_and_raise(numbers, others, np.uint64(lanes), raw, np.uint64(27))
        assert (numbers == wanted).all()
        assert (raw == raised).all()


def test_a_full_disk_does_not_stop_a_kernel(source: Path, monkeypatch: pytest.MonkeyPatch):
    from numba.core.caching import IndexDataCacheFile

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    assert load(source).inside(np.ones(3)) == load(source).written_out(np.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        (
            "",
            "this inlink was built without machine code (editable, not on Linux, or with INLINK_MACHINE_CODE=off)",
        ),
        ("off", "INLINK_MACHINE_CODE=off turns the machine code off"),
        ("nowhere", "INLINK_MACHINE_CODE names no folder: nowhere"),
        (".", ". has no machine code for this processor ("),
    ],
)
def test_without_numba_a_message_says_why_there_is_no_machine_code(setting: str, reason: str, tmp_path: Path):
    code = """
import sys
from pathlib import Path
sys.modules["numba"] = None
from inlink.base import machinecode
machinecode.FOLDER = Path("nowhere")
import inlink
inlink.Graph.from_arcs([(0, 1)])
"""
    environment = os.environ | {"INLINK_MACHINE_CODE": setting}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"inlink.errors.MissingExtraError: {reason}")
    assert ": pip install 'inlink[jit]'" in last


@pytest.mark.parametrize("module", ["_xxsubinterpreters", "_interpreters"])
def test_a_subinterpreter_is_refused(module: str):
    pytest.importorskip(module, reason="only some versions of Python have it")
    script = f"""
import {module} as interpreters
# From Python 3.13 on, NumPy cannot be imported by the default kind of subinterpreter, which has a GIL of its own.
number = interpreters.create({"'legacy'" * (module == "_interpreters")})
interpreters.run_string(number, '''
import warnings
warnings.simplefilter("ignore")
import inlink
try:
    inlink.Graph.from_arcs([("a", "b")])
except inlink.InlinkError as error:
    print(error, flush=True)
''')
interpreters.destroy(number)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "inlink cannot run in a subinterpreter of Python: use a thread or a process"
    )
