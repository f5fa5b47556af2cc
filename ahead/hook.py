"""The build of wheels: Hatch's backend, with a hook that adds machine code of the kernels and manual pages.

``INLINK_MACHINE_CODE=off pip install .`` makes a wheel without machine code, which needs Numba. If the variable names a
folder of libraries that are ready, nothing is compiled.
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.build import *  # noqa: F403
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from ahead.build import TESTED
from ahead.linking import TARGETS

READY = os.environ.get("INLINK_MACHINE_CODE", "")


def _machine() -> str:
    """Return the machine to compile for, a key of TARGETS; empty for a wheel without machine code.

    Numba has no wheels for musl, and nothing was tested on macOS: there only the wheels of releases have machine code.
    """
    if READY == "off":
        return ""
    here = platform.machine() if platform.libc_ver()[0] == "glibc" else ""
    return os.environ.get("INLINK_WHEEL_MACHINE") or (here if here in TARGETS else "")


def get_requires_for_build_editable(  # type: ignore[no-redef]
    config_settings: dict[str, Any] | None = None,
) -> list[str]:
    """Return what an editable install needs to be built: no compiler, because Numba compiles its kernels."""
    return ["editables~=0.3"]


class MachineCode(BuildHookInterface[Any]):
    """Compiles the kernels and writes the manual pages while a wheel is built."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs: inlink's own dependencies, Numba for the kernels, and a C compiler."""
        compilers = [*(f"{name}=={tested}.*" for name, tested in TESTED.items()), "ziglang>=0.13"]
        core = self.build_config.builder.metadata.core.dependencies
        return [*core, *compilers] if _machine() and not READY else list(core)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the libraries and the pages, and add them to the wheel. An editable install has none."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        root, code, manual = Path(self.root), Path(self._folder.name, "code"), Path(self._folder.name, "man")
        paths = [str(root), str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        subprocess.run([sys.executable, "-m", "website.man", str(manual)], check=True, env=environment)
        build_data["shared_data"][str(manual)] = "share/man/man1"
        machine = _machine()
        if not machine:
            return
        code.mkdir()
        command = [sys.executable, "-m", "ahead", "build", str(code), machine]
        if subprocess.run(command, env=environment).returncode:
            raise SystemExit(
                "inlink: its loops were not compiled, for the reason above. To install it without machine code, set "
                "INLINK_MACHINE_CODE=off, and install inlink[jit]."
            )
        build_data["force_include"][str(code)] = "inlink/base/machinecode"
        build_data["pure_python"] = False
        # The kernels use only Python's stable ABI, so one wheel serves all versions.
        build_data["tag"] = f"py3-none-{TARGETS[machine].tag}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made outside of the wheel."""
        if version != "editable":
            self._folder.cleanup()
