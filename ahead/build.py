"""Makes the libraries of machine code, one for each level of the processor."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

from ahead.linking import TARGETS

__all__ = ["TESTED", "build", "build_modules", "check_versions"]

TESTED = {"numba": "0.68", "llvmlite": "0.50", "numpy": "2.4"}
"""The versions that machine code is tested with: this program uses private classes of Numba, and copies of layouts."""


def check_versions() -> None:
    """Refuse libraries that machine code was not tested with.

    Raises
    ------
    RuntimeError
        If one of them is missing, or has another version than :data:`TESTED` says.
    """
    for name, tested in TESTED.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            raise RuntimeError(
                f"{name} is not installed, and INLINK_MACHINE_CODE names no folder with machine code of these sources: "
                f"pip install '{name}=={tested}.*'"
            ) from None
        if not f"{installed}.".startswith(f"{tested}."):
            raise RuntimeError(
                f"machine code is tested with {name} {tested}, and {installed} is installed: run "
                "INLINK_ANY_NUMBA=1 make machinecode and tests/base/test_machinecode.py, then change ahead/build.py"
            )


def build(folder: Path, machine: str = "") -> None:
    """Write a library for each level of a machine to a folder.

    The machine is a key of :data:`ahead.linking.TARGETS`, by default this one. Nothing is written if this one is not
    there. Libraries that are up to date are not made again: those in the folder itself, and those in the folder that
    ``INLINK_MACHINE_CODE`` names, which are copied.

    Raises
    ------
    RuntimeError
        If a library cannot be made, the machine is unknown, or Numba or NumPy has a version that is not tested.
        ``INLINK_ANY_NUMBA=1`` allows any version.
    """
    here = os.uname().machine if sys.platform == "linux" else sys.platform
    if not machine and here not in TARGETS:
        print(f"no machine code is made for {here}: Numba compiles kernels there", file=sys.stderr)
        return
    machine = machine or here
    if machine not in TARGETS:
        raise RuntimeError(f"no machine code can be made for {machine!r}, only for {', '.join(TARGETS)}")
    levels = levels_of(machine)
    libraries = [folder / f"{level}.so" for level in levels]
    makers = max(path.stat().st_mtime for path in Path(__file__).parent.iterdir() if path.is_file())
    if all(_is_current(library) and library.stat().st_mtime >= makers for library in libraries):
        return
    ready = Path(os.environ.get("INLINK_MACHINE_CODE") or "off")
    if ready != folder and all(_is_current(ready / library.name) for library in libraries):
        for library in libraries:
            shutil.copy2(ready / library.name, library)
        return
    if not os.environ.get("INLINK_ANY_NUMBA"):
        check_versions()
    from ahead.signatures import read

    modules = [place.partition(":")[0] for place, calls in read().items() for _ in calls]
    # Numba has to compile the kernels there, whatever machine code an installed inlink has, and to the same bytes.
    environment = os.environ | {"INLINK_MACHINE_CODE": "off", "PYTHONHASHSEED": "0"}
    with tempfile.TemporaryDirectory() as name:
        # Modules with many signatures come first, so that no long one is left at the end.
        names = sorted(set(modules), key=lambda module: (-modules.count(module), module))
        command = [sys.executable, "-m", "ahead", "modules", machine, name, *names]
        if code := subprocess.run(command, env=environment).returncode:
            raise RuntimeError(f"the compiler ended with code {code}: the reason is above")
        _link(Path(name), sorted(names), levels, machine, folder)


def levels_of(machine: str) -> list[str]:
    """Return the levels of a machine.

    Code that checks bounds is for tests, so it is made for the level that all processors have.
    """
    from inlink.base.machinecode import CHECKED, LEVELS

    levels = [level for level, (built_for, _) in LEVELS.items() if built_for == machine]
    return levels[-1:] if CHECKED else levels


def _is_current(library: Path) -> bool:
    """Return True for a library of the present kernels."""
    from inlink.base.machinecode import stamp

    return library.is_file() and stamp().encode() in library.read_bytes()


def build_modules(modules: list[str], machine: str, folder: Path) -> None:
    """Write to a folder an object file for each module and level of a machine, and each module's list of functions.

    Numba takes longer than twice the time for twice the code, so each module is compiled in a process of its own. These
    are forks of a process that has imported Numba and compiled a function, which takes as long as a small module.

    Raises
    ------
    RuntimeError
        If a module cannot be compiled.
    """
    # Numba optimises the functions that kernels call for the machine that it runs on. Without these names, libraries
    # that were built on different processors would differ in bytes and in speed.
    os.environ["NUMBA_CPU_NAME"] = "x86-64-v3" if os.uname().machine == "x86_64" else "generic"
    os.environ["NUMBA_CPU_FEATURES"] = ""
    import numba

    _hide_folders()
    # This function is compiled but does not run, because this processor may be older.
    numba.njit("int64(int64)")(lambda number: number + 1)
    processes = multiprocessing.get_context("fork")
    running: list[ForkProcess] = []
    waiting, failed = list(modules), []
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            module = waiting.pop(0)
            running.append(
                processes.Process(target=_build_module, args=(module, machine, folder), name=module)
            )
            running[-1].start()
        wait([process.sentinel for process in running])
        failed += [process.name for process in running if process.exitcode]
        running = [process for process in running if process.exitcode is None]
    if failed:
        raise RuntimeError(f"no machine code could be made for {', '.join(failed)}: the reason is above")


def _build_module(module: str, machine: str, folder: Path) -> None:
    from ahead.compiling import compiled
    from ahead.signatures import read

    levels = levels_of(machine)
    signatures = {place: calls for place, calls in read().items() if place.partition(":")[0] == module}
    # NumPy does not run on older processors under macOS either.
    older = {"macos-x86_64": "x86-64-v2", "macos-arm64": "apple-m1"}
    cpus = [older.get(level, level if level.startswith("x86") else "generic") for level in levels]
    objects, kernels = compiled(signatures, cpus, machine)
    for level, machine_code in zip(levels, objects, strict=True):
        (folder / f"{module}.{level}.o").write_bytes(machine_code)
    (folder / f"{module}.json").write_text(json.dumps(kernels))


def _hide_folders() -> None:
    """Let Numba name source files from their package on.

    It writes the file of each ``raise`` into the object file. With whole paths, wheels would show where they were
    built, and a build in another folder would give other bytes.
    """
    from numba.core.ir import Loc

    begin = Loc.__init__
    # The environment may be a symbolic link, and Numba's own files keep that link in their paths.
    places = {place for folder in sys.path for place in (Path(folder).absolute(), Path(folder).resolve())}
    folders = sorted((f"{place}/" for place in places), key=len, reverse=True)

    def shortened(location: Loc, filename: str, *args: Any, **more: Any) -> None:
        within = next((folder for folder in folders if filename.startswith(folder)), "")
        begin(location, filename.removeprefix(within), *args, **more)

    Loc.__init__ = shortened  # type: ignore[method-assign,assignment]


def _link(made: Path, modules: list[str], levels: list[str], machine: str, folder: Path) -> None:
    """Write the libraries, from what :func:`build_modules` has written for each module."""
    from ahead import stubs
    from ahead.compiling import Native
    from ahead.linking import link
    from inlink.base.jit import stamp

    kernels: dict[str, list[Native]] = {}
    for module in modules:
        for place, natives in json.loads((made / f"{module}.json").read_text()).items():
            kernels[place] = [Native(*native) for native in natives]
    source = stubs.source(kernels, stamp())

    def write(level: str) -> None:
        path = folder / f"{level}.so"
        link(source, [(made / f"{module}.{level}.o").read_bytes() for module in modules], path, machine)
        print(f"{path}: {path.stat().st_size:,} bytes, {len(kernels)} kernels", file=sys.stderr)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(write, levels))
