"""Machine code of kernels that came with the package, so that they run without Numba.

A wheel has a library for each level of its processors: `machinecode/x86-64-v3.so` and others beside this module. The
directory ``ahead`` of the source tree makes them. A source tree and an editable install have none.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

__all__ = ["CHECKED", "FOLDER", "LEVELS", "load", "missing", "stamp"]

CHECKED = os.environ.get("INLINK_CHECK_BOUNDS", "") not in ("", "0")
"""Whether kernels raise IndexError for an index outside of its array, as ``INLINK_CHECK_BOUNDS=1`` asks for.

Tests of kernels run in this mode (``make bounds``). Otherwise kernels check nothing, because a check costs time.
"""

# The modules from which a kernels module takes constants and record layouts.
_IMPORTED = re.compile(rb"\nfrom inlink\.([\w.]+) import (\w+)")


def _sources() -> dict[str, bytes]:
    """Return the source texts that the machine code depends on, by file: kernels, their imports, and the compiler."""
    package = Path(__file__).parents[1]
    files = [str(Path(__file__).with_name(name)) for name in ("jit.py", "compiling.py")]
    files += [*map(str, package.glob("*/kernels/*.py")), *map(str, package.glob("*/kernels.py"))]
    texts = {file: Path(file).read_bytes() for file in files}
    for module, name in {pair for text in texts.values() for pair in _IMPORTED.findall(text)}:
        place = os.path.join(package, *module.decode().split("."))  # noqa: PTH118
        for file in (f"{place}.py", f"{place}/{name.decode()}.py"):
            with suppress(OSError):
                texts[file] = Path(file).read_bytes()
    return texts


@cache
def stamp() -> str:
    """Return a checksum of the sources of all kernels, and their length. Code that checks bounds has another one."""
    texts = _sources()
    whole = b"\0".join([*(texts[file] for file in sorted(texts)), b"checked" * CHECKED])
    return f"{crc32(whole):08x}-{len(whole):x}"


FOLDER = Path(__file__).with_name("machinecode")

_FLAGS_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_FLAGS_V3 = _FLAGS_V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}

LEVELS = {
    "x86-64-v3": ("x86_64", _FLAGS_V3),
    "x86-64-v2": ("x86_64", _FLAGS_V2),
    "aarch64": ("aarch64", frozenset[str]()),
    "macos-arm64": ("macos-arm64", frozenset[str]()),
    "macos-x86_64": ("macos-x86_64", frozenset[str]()),
}
"""The kinds of processors that have machine code, best first: the machine, and the CPU flags that it needs."""

missing = ""
"""Why :func:`load` found no machine code, and what to do."""


def load(other: Callable[[str], Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return the kernels that have machine code, by ``module:name``. The dictionary is empty in a source tree.

    The variable ``INLINK_MACHINE_CODE`` of the environment turns machine code off (``off``), or names another folder of
    libraries, such as one that ``make machinecode`` made in a source tree.

    Parameters
    ----------
    other : function of a kernel's place
        Returns the function to call for arguments of types that the machine code cannot take.
    """
    setting = os.environ.get("INLINK_MACHINE_CODE")
    folder = Path(setting) if setting else FOLDER
    if setting == "off":
        return _none("INLINK_MACHINE_CODE=off turns the machine code off")
    if not folder.is_dir():
        if setting:
            return _none(f"INLINK_MACHINE_CODE names no folder: {folder}")
        return _none(
            "this inlink was built without machine code (editable, not on Linux, or with INLINK_MACHINE_CODE=off)",
            ", or install it on Linux without --editable",
        )
    machine = f"macos-{os.uname().machine}" if sys.platform == "darwin" else os.uname().machine
    path = _library(folder, machine, _processor_flags())
    if path is None:
        return _none(f"{folder} has no machine code for this processor ({machine})", level="INFO")
    try:
        module = _module(path)
        about = json.loads(module.about)
        if about["stamp"] != stamp():
            return _none(
                f"{path} belongs to another version of inlink (install inlink again)", level="WARNING"
            )
        places: list[str] = about["kernels"]
        records = tuple(map(_record, about["records"]))
        functions = module.load((tuple(map(other, places)), records))
    except ImportError as error:
        return _none(f"{path} cannot be loaded ({error})", level="WARNING")
    return dict(zip(places, functions, strict=True))


def _none(reason: str, remedy: str = "", level: str = "") -> dict[str, Callable[..., Any]]:
    """Note why there is no machine code. With a level, log it too."""
    global missing
    missing = f"{reason}: pip install 'inlink[jit]'{remedy}"
    if level:
        # This module is imported by most commands, and there is rarely something to log.
        import logging

        message = "%s: loops are compiled here, which takes up to a minute"
        logging.getLogger("inlink.compiling").log(getattr(logging, level), message, reason)
    return {}


def _processor_flags() -> frozenset[str]:
    """Return the flags of the first processor. Empty if the system reports no flags."""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            for line in file:
                if line.startswith(b"flags"):
                    return frozenset(line.decode("ascii", "replace").split())
    except OSError:
        pass
    return frozenset()


def _library(folder: Path, machine: str, flags: frozenset[str]) -> Path | None:
    """Return the best library of a folder that a machine with these flags can run."""
    for level, (built_for, needed) in LEVELS.items():
        path = folder / f"{level}.so"
        if built_for == machine and needed <= flags and path.is_file():
            return path
    return None


def _module(path: Path) -> Any:
    loader = ExtensionFileLoader("_machinecode", str(path))
    spec = spec_from_file_location("_machinecode", path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _record(text: Sequence[Any]) -> np.dtype[Any]:
    fields, size = text
    names, formats, offsets = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
