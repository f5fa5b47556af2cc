"""Makes the libraries of machine code, one for each level of the processor."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["build", "build_level"]


def build(folder: Path, machine: str = "") -> None:
    """Write a library for each level of a machine to a folder. Each is made in a process of its own.

    The machine is that of ``uname -m``, by default this one. Nothing is written for a machine without levels.
    Libraries that are up to date are not made again: those in the folder itself, and those in the folder that
    ``INLINK_MACHINE_CODE`` names, which are copied.

    Raises
    ------
    RuntimeError
        If a library cannot be made.
    """
    machine = machine or os.uname().machine
    levels = levels_of(machine)
    if not levels:
        print(f"no machine code is made for {machine}: Numba compiles kernels there", file=sys.stderr)
        return
    given = os.environ.get("INLINK_MACHINE_CODE") or "off"
    for ready in (folder, Path(given)):
        libraries = [ready / f"{level}.so" for level in levels]
        if all(map(_is_current, libraries)):
            for library in libraries if ready != folder else []:
                shutil.copy2(library, folder)
            return
    # Numba has to compile the kernels there, whatever machine code an installed inlink has.
    environment = os.environ | {"INLINK_MACHINE_CODE": "off"}
    command = [sys.executable, "-m", "ahead", "level"]
    running = {level: subprocess.Popen([*command, level, str(folder)], env=environment) for level in levels}
    failed = [level for level, process in running.items() if process.wait()]
    if failed:
        raise RuntimeError(f"no machine code could be made for {', '.join(failed)}: the reason is above")


def levels_of(machine: str) -> list[str]:
    """Return the levels of a machine. Systems other than Linux have none, because they cannot load the libraries."""
    from inlink.base.machinecode import LEVELS

    return [
        level for level, (built_for, _) in LEVELS.items() if built_for == machine and sys.platform == "linux"
    ]


def _is_current(library: Path) -> bool:
    """Return True for a library of the present kernels, made after the latest change of the programs that make it."""
    from inlink.base.jit import stamp

    if not library.is_file() or stamp().encode() not in library.read_bytes():
        return False
    makers = [path for path in Path(__file__).parent.iterdir() if path.is_file()]
    return library.stat().st_mtime >= max(path.stat().st_mtime for path in makers)


def build_level(level: str, folder: Path) -> None:
    """Write the library for one level to a folder."""
    from ahead import signatures, stubs
    from ahead.compiling import compiled
    from ahead.linking import link
    from inlink.base.jit import stamp
    from inlink.base.machinecode import LEVELS

    machine = LEVELS[level][0]
    cpu = level if level.startswith("x86") else "generic"
    machine_code, kernels = compiled(signatures.read(), cpu, machine)
    path = folder / f"{level}.so"
    link(stubs.source(kernels, stamp()), machine_code, path, machine)
    print(f"{path}: {path.stat().st_size:,} bytes, {len(kernels)} kernels", file=sys.stderr)
