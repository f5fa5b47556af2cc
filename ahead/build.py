"""Makes the libraries of machine code, one for each level of the processor."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["build", "build_level"]


def build(folder: Path) -> None:
    """Write a library for each level to a folder. Each is made in a process of its own.

    Libraries that are up to date are not made again: those in the folder itself, and those in the folder that
    ``INLINK_MACHINE_CODE`` names, which are copied.

    Raises
    ------
    RuntimeError
        If a library cannot be made.
    """
    from inlink.base.machinecode import LEVELS

    given = os.environ.get("INLINK_MACHINE_CODE") or "off"
    for ready in (folder, Path(given)):
        libraries = [ready / f"{level}.so" for level in LEVELS]
        if all(map(_is_current, libraries)):
            for library in libraries if ready != folder else []:
                shutil.copy2(library, folder)
            return
    # Numba has to compile the kernels there, whatever machine code an installed inlink has.
    environment = os.environ | {"INLINK_MACHINE_CODE": "off"}
    command = [sys.executable, "-m", "ahead", "level"]
    running = {level: subprocess.Popen([*command, level, str(folder)], env=environment) for level in LEVELS}
    failed = [level for level, process in running.items() if process.wait()]
    if failed:
        raise RuntimeError(f"no machine code could be made for {', '.join(failed)}: the reason is above")


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

    machine_code, kernels = compiled(signatures.read(), level)
    path = folder / f"{level}.so"
    link(stubs.source(kernels, stamp()), machine_code, path)
    print(f"{path}: {path.stat().st_size:,} bytes, {len(kernels)} kernels", file=sys.stderr)
