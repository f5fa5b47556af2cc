"""Hatch's build hook: puts machine code and manual pages into a wheel. ``make wheel`` turns it on."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["MachineCode"]

# Stable ABI, no version of Python in it: one wheel for all from 3.11 on. The variable names the machine of `uname -m`.
MACHINE = os.environ.get("INLINK_WHEEL_MACHINE") or os.uname().machine
TAG = f"py3-none-manylinux_2_28_{MACHINE}"


class MachineCode(BuildHookInterface[Any]):
    """Compiles the kernels and writes the manual pages while a wheel is built."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what the build needs: inlink's own dependencies, Numba for the kernels, and a C compiler."""
        core = self.build_config.builder.metadata.core
        return [*core.dependencies, *core.optional_dependencies["jit"], "ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the libraries and the pages, and add them to the wheel. An editable install has none."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        root, code, manual = Path(self.root), Path(self._folder.name, "code"), Path(self._folder.name, "man")
        paths = os.pathsep.join([str(root), str(root / "src"), *sys.path])
        code.mkdir()
        for command in (["ahead", "build", str(code), MACHINE], ["website.man", str(manual)]):
            subprocess.run(
                [sys.executable, "-m", *command], check=True, env=os.environ | {"PYTHONPATH": paths}
            )
        build_data["shared_data"][str(manual)] = "share/man/man1"
        if not any(code.iterdir()):
            # A machine without machine code gets a plain wheel.
            return
        build_data["force_include"][str(code)] = "inlink/base/machinecode"
        build_data["pure_python"] = False
        build_data["tag"] = TAG

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made outside of the wheel."""
        if version != "editable":
            self._folder.cleanup()
