"""From C and object files to a shared library, by the C compiler that PyPI's ``ziglang`` brings along."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

__all__ = ["TARGETS", "link"]


class Target(NamedTuple):
    """A kind of machine: its names in LLVM, in the C compiler and in the file names of wheels."""

    triple: str
    zig: str
    tag: str


# The oldest C library on which wheels run is that of Debian 10 and RHEL 8. The libraries also load with musl: it takes
# the names of glibc's files for its own, and has all functions that they call.
TARGETS = {
    "x86_64": Target(
        "x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64.musllinux_1_2_x86_64"
    ),
    "aarch64": Target(
        "aarch64-unknown-linux-gnu", "aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64.musllinux_1_2_aarch64"
    ),
    "macos-arm64": Target("arm64-apple-macosx11.0", "aarch64-macos.11.0", "macosx_11_0_arm64"),
    "macos-x86_64": Target("x86_64-apple-macosx11.0", "x86_64-macos.11.0", "macosx_11_0_x86_64"),
}
"""The machines that machine code can be made for: those of Linux by the name of ``uname -m``."""


def link(source: str, objects: list[bytes], library: Path, machine: str = "x86_64") -> None:
    """Compile C source, and link it with object files to a shared library.

    Parameters
    ----------
    source : str
        The C source.
    objects : list of bytes
        The object files.
    library : Path
        The file to write.
    machine : str
        The machine that runs it, a key of :data:`TARGETS`.

    Raises
    ------
    RuntimeError
        If the compiler refuses.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stubs.c").write_text(source)
        files = [folder / f"kernels{number}.o" for number in range(len(objects))]
        for file, machine_code in zip(files, objects, strict=True):
            file.write_bytes(machine_code)
        command = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[machine].zig, "-shared", "-fPIC"]
        command += [
            "-O2",
            "-s",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wno-unused-function",
            "-fvisibility=hidden",
        ]
        command += ["-fno-sanitize=all", "-o", str(folder / "made.so"), str(folder / "stubs.c")]
        # Python has the functions that are missing.
        missing = "--allow-shlib-undefined,-z,lazy"
        if "macos" in machine:
            # Without a name, the library would have that of the temporary folder.
            missing = f"-undefined,dynamic_lookup,-install_name,@rpath/{library.name}"
        command += [f"-Wl,{missing}", *map(str, files), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(
                f"the C compiler failed with exit code {done.returncode}:\n{done.stderr[-4000:]}"
            )
        library.parent.mkdir(parents=True, exist_ok=True)
        # A process may have mapped the library that is replaced.
        made = library.with_name(f".{library.name}.made")
        made.write_bytes((folder / "made.so").read_bytes())
        made.replace(library)
