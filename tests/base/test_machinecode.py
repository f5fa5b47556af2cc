"""Machine code that is made ahead of time: the same results as Numba's, and nothing else than what was compiled."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from ahead import build
from ahead.__main__ import main

from inlink.base import machinecode
from inlink.base.machinecode import LEVELS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# A package of kernels of every kind of argument and result.
KERNELS = """
from typing import NamedTuple
import numpy as np
from inlink.base.jit import U1, inlined, item_at, kernel, prefetch

HEAD = np.dtype([("size", "<u4"), ("place", "<u8")])

class Rows(NamedTuple):
    offsets: np.ndarray
    nodes: np.ndarray
    scale: float

class Found(NamedTuple):
    sums: np.ndarray
    count: int

@inlined
def row(rows, x, low, high):
    total = 0.0
    for k in range(low, high):
        total += x[rows.nodes[k]]
    return total

@kernel
def inside(rows, x, i):
    return row(rows, x, rows.offsets[i], rows.offsets[i + U1]) * rows.scale

@kernel
def sums(rows, x):
    out = np.empty(len(rows.offsets) - 1, np.float64)
    for i in range(np.uint64(len(out))):
        prefetch(rows.offsets, i + U1)
        out[i] = inside(rows, x, i)
    return Found(out, len(out))

@kernel
def places(text, heads, sure):
    head = item_at(text, np.uint64(3), HEAD)
    heads[0].size = head.size
    heads[0].place = head.place if sure else np.uint64(0)
    return head.place, sure, np.float64(head.size)

@kernel
def letters(text):
    n = np.uint64(0)
    for letter in text:
        n += np.uint64(letter)
    return n

@kernel
def square(x):
    out = np.empty((2, len(x)), np.uint32)
    for k in range(len(x)):
        out[0, k] = x[k]
        out[1, k] = x[k] * x[k]
    return out

@kernel
def not_recorded(x):
    return x + 1.5
"""

RUN = """
import sys
import numpy as np
BLOCK
from inlink.base import jit, machinecode
import somekernels as k

rows = k.Rows(np.array([0, 2, 2, 3], np.uint64), np.array([1, 2, 0], np.uint32), 0.5)
x = np.array([1.0, 2.0, 3.0])
read_only = x.copy()
read_only.flags.writeable = False
text = np.frombuffer(b"abc" + np.array([(7, 11)], k.HEAD).tobytes(), np.uint8)
heads = np.zeros(1, k.HEAD)
wide = np.arange(6, dtype=np.uint32)

def call():
    found = k.sums(rows, x)
    yield type(found).__name__, found.sums.tolist(), found.count
    yield k.inside(rows, x, np.uint64(0))
    yield k.places(text, heads, True), heads.tolist(), k.places(text, heads, np.bool_(False)), heads.tolist()
    yield k.letters(b"abc"), k.letters(b"")
    yield k.square(wide).tolist(), str(k.square(wide).dtype), k.square(wide[:0]).shape
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernels, and with a library of their machine code."""
    pytest.importorskip("ziglang", reason="the C compiler of PyPI's ziglang is not installed")
    folder = tmp_path_factory.mktemp("machinecode")
    (folder / "somekernels.py").write_text(KERNELS)
    script = """
import sys
from ahead import compiling, linking, stubs
from inlink.base.jit import stamp
from pathlib import Path
rows = ["named", "somekernels:Rows", [["array", "<u8", 1, "C", "w"], ["array", "<u4", 1, "C", "w"], "float64"]]
x = ["array", "<f8", 1, "C", "w"]
head = [[["size", "<u4", 0], ["place", "<u8", 4]], 12]
recorded = {
    "somekernels:sums": [[rows, x]],
    "somekernels:inside": [[rows, x, "uint64"]],
    "somekernels:places": [[["array", "|u1", 1, "C", "r"], ["array", head, 1, "C", "w"], "bool"]],
    "somekernels:letters": [[["bytes"]]],
    "somekernels:square": [[["array", "<u4", 1, "C", "w"]]],
}
objects, kernels = compiling.compiled(recorded, ["x86-64-v2"])
linking.link(stubs.source(kernels, stamp()), objects, Path(sys.argv[1]))
"""
    done = _python(folder, script, str(folder / "code" / "x86-64-v2.so"), INLINK_MACHINE_CODE="off")
    assert done.returncode == 0, done.stderr
    return folder


def _python(
    folder: Path, script: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(map(str, (folder, ROOT, ROOT / "src")))
    given = os.environ | {"PYTHONPATH": paths, "INLINK_MACHINE_CODE": ""} | environment
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], env=given, capture_output=True, text=True
    )


def _with_code(folder: Path, script: str, numba: bool) -> subprocess.CompletedProcess[str]:
    """Run a script after RUN, with the library in place of the package's."""
    block = "" if numba else "sys.modules['numba'] = None\n"
    block += f"""
from pathlib import Path
from inlink.base import machinecode
machinecode.FOLDER = Path({str(folder / "code")!r})
"""
    return _python(folder, RUN.replace("BLOCK", block) + script)


def test_machine_code_gives_what_numba_gives_and_does_not_load_it(made: Path):
    show = "for result in call():\n    print(result)\n"
    ahead = _with_code(made, show, numba=False)
    assert ahead.returncode == 0, ahead.stderr
    off = _python(made, RUN.replace("BLOCK", "") + show, INLINK_MACHINE_CODE="off")
    assert off.returncode == 0, off.stderr
    assert ahead.stdout == off.stdout
    assert "('Found', [2.5, 0.0, 0.5], 3)" in ahead.stdout


@pytest.mark.soak
def test_two_folders_and_processors_give_the_same_library_and_it_names_no_folder(tmp_path: Path):
    """A short form of the two builds of a release: one module, with exceptions that name source files."""
    pytest.importorskip("ziglang", reason="the C compiler of PyPI's ziglang is not installed")
    module = "inlink.store.kernels.touched"
    script = f"""
import json
import sys
from pathlib import Path
from ahead.__main__ import main
assert main(["modules", "x86_64", sys.argv[1], {module!r}]) == 0
from ahead import compiling, linking, stubs
from inlink.base.jit import stamp
folder = Path(sys.argv[1])
named = json.loads((folder / "{module}.json").read_text())
kernels = {{place: [compiling.Native(*native) for native in natives] for place, natives in named.items()}}
made = (folder / "{module}.x86-64-v2.o").read_bytes()
linking.link(stubs.source(kernels, stamp()), [made], folder / "library.so", "x86_64")
"""
    libraries = []
    for name, processor in (("first", "znver3"), ("another-folder", "sapphirerapids")):
        folder = tmp_path / name
        (folder / "tmp").mkdir(parents=True)
        for part in ("ahead", "src/inlink"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        paths = os.pathsep.join([str(folder), str(folder / "src")])
        given = os.environ | {
            "PYTHONPATH": paths, "INLINK_MACHINE_CODE": "off", "PYTHONHASHSEED": "0", "TMPDIR": str(folder / "tmp"),
            "NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "",
        }  # fmt: skip
        subprocess.run([sys.executable, "-c", script, str(folder)], env=given, check=True)
        libraries.append((folder / "library.so").read_bytes())
    first, another = libraries
    assert first == another
    for place in (str(tmp_path), str(ROOT), sys.prefix, "site-packages"):
        assert place.encode() not in first
    assert b"numba/np/arrayobj.py" in first


CALLS_WITHOUT_CODE = [
    "k.inside(rows, x, 0)",
    "k.inside(rows, x.astype(np.float32), np.uint64(0))",
    "k.inside(rows, x[::2], np.uint64(0))",
    "k.inside(rows, read_only, np.uint64(0))",
    "k.inside(rows, x.astype('>f8'), np.uint64(0))",
    "k.inside(tuple(rows), x, np.uint64(0))",
    "k.inside(rows._replace(scale=2), x, np.uint64(0))",
    "k.inside(rows._replace(nodes=rows.nodes.astype(np.int32)), x, np.uint64(0))",
    "k.places(text, heads.astype([('size', '<u4'), ('sites', '<u8')]), True)",
    "k.places(text, heads, 1)",
    "k.letters(bytearray(b'abc'))",
    "k.square(wide.astype(np.uint64))",
    "k.square(wide.reshape(2, 3))",
    "k.square(wide, wide)",
    "k.square()",
    "k.square(None)",
    "k.square('wide')",
    "k.not_recorded(1.0)",
]


def test_calls_without_machine_code_are_left_to_numba(made: Path):
    script = "".join(
        f"try:\n    {call}\nexcept ImportError as error:\n    print(error)\n" for call in CALLS_WITHOUT_CODE
    )
    done = _with_code(made, script, numba=False)
    assert done.returncode == 0, done.stderr
    for call, message in zip(CALLS_WITHOUT_CODE, done.stdout.splitlines(), strict=True):
        kernel = call.removeprefix("k.").partition("(")[0]
        assert f"no machine code of `{kernel}` for arguments of these types" in message, call
        assert "pip install 'inlink[jit]'" in message


def test_numba_compiles_what_is_missing_from_the_same_source(made: Path):
    done = _with_code(
        made,
        """
print(k.inside(rows, x.astype(np.float32), np.uint64(0)), k.inside(rows, x[::2], np.uint64(1)))
print(k.not_recorded(1.0), k.square(wide.astype(np.uint64)).tolist())
print(k.places(text.copy(), heads, True))
""",
        numba=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == [
        "2.5 0.0",
        "2.5 [[0, 1, 2, 3, 4, 5], [0, 1, 4, 9, 16, 25]]",
        "(11, True, 7.0)",
    ]


@pytest.mark.parametrize(
    ("machine", "flags", "chosen"),
    [
        ("x86_64", LEVELS["x86-64-v3"][1], "x86-64-v3"),
        ("x86_64", LEVELS["x86-64-v3"][1] - {"avx2"}, "x86-64-v2"),
        ("x86_64", frozenset(), None),
        ("aarch64", frozenset(), "aarch64"),
        ("aarch64", LEVELS["x86-64-v3"][1], "aarch64"),
        ("macos-arm64", frozenset(), "macos-arm64"),
        ("macos-x86_64", frozenset(), "macos-x86_64"),
        ("riscv64", frozenset(), None),
    ],
)
def test_the_best_library_of_the_machine_is_chosen(
    machine: str, flags: frozenset[str], chosen: str | None, tmp_path: Path
):
    for level in LEVELS:
        (tmp_path / f"{level}.so").touch()
    found = machinecode._library(tmp_path, machine, flags)
    assert found == (None if chosen is None else tmp_path / f"{chosen}.so")


@pytest.mark.parametrize(
    ("machine", "cpu", "head", "code", "place"),
    [
        # In ELF the machine is at byte 18: 183 is AArch64. In Mach-O it is at byte 4.
        pytest.param("aarch64", "generic", b"\x7fELF", 183, 18, marks=pytest.mark.soak),
        pytest.param("macos-arm64", "apple-m1", b"\xcf\xfa\xed\xfe", 0x100000C, 4, marks=pytest.mark.soak),
        pytest.param("macos-x86_64", "x86-64-v2", b"\xcf\xfa\xed\xfe", 0x1000007, 4, marks=pytest.mark.soak),
    ],
)
def test_code_for_another_machine_is_a_library_of_that_machine(
    machine: str, cpu: str, head: bytes, code: int, place: int, made: Path
):
    script = """
import sys
from ahead import compiling, linking, stubs
from pathlib import Path
recorded = {"somekernels:square": [[["array", "<u4", 1, "C", "w"]]], "somekernels:letters": [[["bytes"]]]}
library, machine, cpu = sys.argv[1:]
objects, kernels = compiling.compiled(recorded, [cpu], machine)
linking.link(stubs.source(kernels, "0"), objects, Path(library), machine)
"""
    library = made / f"{machine}.so"
    done = _python(made, script, str(library), machine, cpu, INLINK_MACHINE_CODE="off")
    assert done.returncode == 0, done.stderr
    written = library.read_bytes()
    assert written[:4] == head
    assert b"/made.so" not in written
    assert int.from_bytes(written[place:].ljust(4)[: 2 if place == 18 else 4], "little") == code


@pytest.mark.parametrize(
    ("setting", "machine", "tag"),
    [
        ("off", "x86_64", "any"),
        ("", "x86_64", "manylinux_2_28_x86_64.musllinux_1_2_x86_64"),
        pytest.param("", "macos-arm64", "macosx_11_0_arm64", marks=pytest.mark.soak),
        pytest.param("", "aarch64", "manylinux_2_28_aarch64.musllinux_1_2_aarch64", marks=pytest.mark.soak),
        pytest.param("", "macos-x86_64", "macosx_11_0_x86_64", marks=pytest.mark.soak),
    ],
)
def test_a_wheel_is_for_the_machine_that_its_libraries_are_for(
    setting: str, machine: str, tag: str, tmp_path: Path
):
    levels = [level for level, (built_for, _) in LEVELS.items() if built_for == machine]
    (tmp_path / "code").mkdir()
    for level in levels:
        (tmp_path / "code" / f"{level}.so").write_text(machinecode.stamp())
    script = """
import sys
from ahead import hook
print(hook.build_wheel(sys.argv[1]), hook.get_requires_for_build_wheel())
"""
    variables = {"INLINK_MACHINE_CODE": setting or str(tmp_path / "code"), "INLINK_WHEEL_MACHINE": machine}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    wheel, _, required = done.stdout.strip().partition(" ")
    assert wheel == f"inlink-0.1.0-py3-none-{tag}.whl", done.stderr
    assert "numpy" in required
    assert "numba" not in required
    with ZipFile(tmp_path / wheel) as file:
        names = sorted(name for name in file.namelist() if "/machinecode/" in name)
    assert names == sorted(f"inlink/base/machinecode/{level}.so" for level in levels if not setting)


def test_an_editable_install_needs_no_compiler_and_another_build_the_tested_versions():
    script = "from ahead import hook as h\nprint(h.get_requires_for_build_editable(), h.get_requires_for_build_wheel())"
    variables = os.environ | {"INLINK_MACHINE_CODE": "", "INLINK_WHEEL_MACHINE": "aarch64"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=variables, capture_output=True, text=True
    )
    editable, _, wheel = done.stdout.partition(" ")
    assert editable == "['editables~=0.3']", done.stderr
    assert {"'numba==0.68.*'", "'ziglang>=0.13'"} <= set(wheel.strip(" []\n").split(", "))


def test_references_are_counted_right(made: Path):
    done = _with_code(
        made,
        """
import gc
def counts():
    gc.collect()
    return [sys.getrefcount(value) for value in (rows, x, text, heads, wide, k.HEAD, k.Rows, k.Found, None, True)]
for _ in range(3):
    list(call())
before = counts()
for _ in range(1000):
    list(call())
after = counts()
print(max(abs(a - b) for a, b in zip(before, after)))
""",
        numba=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100


def test_only_arrays_that_a_kernel_writes_stay_writable(made: Path):
    """Machine code for a read-only array accepts both kinds, so the recorded access does not matter."""
    script = """
import json
from ahead.writing import with_read_only
array = lambda item, access="w": ["array", item, 1, "C", access]
rows = ["named", "somekernels:Rows", [array("<u8"), array("<u4", "r"), "float64"]]
head = [[["size", "<u4", 0], ["place", "<u8", 4]], 12]
recorded = {
    "somekernels:sums": [[rows, array("<f8")]],
    "somekernels:places": [[array("|u1"), array(head), "bool"]],
}
declared = with_read_only(recorded)
print('"w"' in json.dumps(declared["somekernels:sums"]), [text[4] for text in declared["somekernels:places"][0][:2]])
print(json.dumps(recorded).count('"w"'))
"""
    done = _python(made, script, INLINK_MACHINE_CODE="off")
    assert done.stdout == "False ['r', 'w']\n4\n", done.stderr


def test_signatures_that_differ_in_read_only_arrays_are_merged():
    from ahead import signatures

    def array(item: str, access: str) -> list[object]:
        return ["array", item, 1, "C", access]

    def rows(offsets: str, nodes: str, item: str = "<u4") -> list[object]:
        return ["named", "m:Rows", [array("<u8", offsets), ["tuple", [array(item, nodes), "none"]]]]

    calls = [[rows("w", "r"), "uint64"], [rows("r", "w"), "uint64"], [rows("w", "w"), "uint64"]]
    others = [[rows("w", "w"), "int64"], [rows("w", "w", "<u8"), "uint64"]]
    merged = signatures.merged({"m:f": [*calls, *others], "m:g": calls[2:]})
    assert merged == {"m:f": [[rows("r", "r"), "uint64"], *others], "m:g": calls[2:]}


def test_versions_of_numba_that_are_not_tested_are_refused_in_one_line(monkeypatch, capsys):
    monkeypatch.setitem(build.TESTED, "numba", "0.1")
    assert main(["versions"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("ahead: machine code is tested with numba 0.1, and ")
    assert error.count("\n") == 1
