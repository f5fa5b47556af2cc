"""From C and object files to a shared library, by the C compiler that PyPI's ``ziglang`` brings along."""

import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["link"]

# The oldest C library on which wheels run: that of Debian 10 and RHEL 8.
_LIBRARY = "linux-gnu.2.28"


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
        The machine that runs it, as ``uname -m`` prints it.

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
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            "-target",
            f"{machine}-{_LIBRARY}",
            "-shared",
            "-fPIC",
            "-O2",
            "-s",
        ]
        command += ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-function", "-fvisibility=hidden"]
        command += [
            "-fno-sanitize=all",
            "-Wl,--allow-shlib-undefined",
            "-Wl,-z,lazy",
            "-o",
            str(folder / "made.so"),
        ]
        command += [str(folder / "stubs.c"), *map(str, files), "-lm"]
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
