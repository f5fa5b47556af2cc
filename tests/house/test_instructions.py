"""How many instructions some kernels take on fixed input, counted by Valgrind. Unlike a time, this hardly varies.

A change of a figure must be meant: ``python tests/house/test_instructions.py`` writes the figures of this machine into
`instructions.json`. They hold for one version of Python and of Numba, and for one kind of processor.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

from inlink.base import machinecode

HERE = Path(__file__).parent
FILE = HERE / "instructions.json"
VERSIONS = f"Python {sys.version_info.major}.{sys.version_info.minor}, Numba {version('numba')}"
WITHIN = 0.05
KERNELS = (
    "archives_kernels_forms_page_forms",
    "archives_kernels_links_host_links",
    "archives_kernels_links_keep_hosts",
    "archives_kernels_members_frame_members",
    "frontier_kernels_queue_place_pages",
    "frontier_kernels_shares_give_shares",
    "rank_kernels_pagerank_sweep",
    "store_kernels_fold_fold",
    "store_kernels_labels_encode_labels",
    "store_kernels_linking_take_links",
)
_ROW = re.compile(r"^ *([\d,]+) .*:inlink_(\w+?)_\d+ \[.*/([\w-]+)\.so\]", re.M)


def figures() -> tuple[str, dict[str, int]]:
    """The key of the figures, and thousands of instructions of each kernel, with the kernels that it calls.

    The key names the versions, and the level of the machine code that was used.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/out"
        watch = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no"]
        # The C library chooses its `__memcpy` and others by the processor, so their instructions are not counted.
        watch += ["--instr-atstart=no", "--toggle-collect=inlink_*", "--toggle-collect=__mem*"]
        watch += [sys.executable, str(HERE / "kernelwork.py")]
        environment = os.environ | {
            "PYTHONHASHSEED": "0",
            # Names are bound at the start, not within the kernel that is the first to call a function.
            "LD_BIND_NOW": "1",
            "INLINK_THREADS": "1",
            "PYTHONPATH": f"{HERE.parents[1] / 'src'}{os.pathsep}{HERE.parent}",
        }
        done = subprocess.run(
            watch, env=environment, check=False, capture_output=True, text=True, timeout=1200
        )
        assert done.returncode == 0, done.stderr
        annotate = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", out]
        table = subprocess.run(annotate, check=True, capture_output=True, text=True, timeout=300).stdout
    counts, levels = dict.fromkeys(KERNELS, 0), set[str]()
    for count, name, level in _ROW.findall(table):
        levels.add(level)
        if name in counts:
            counts[name] += int(count.replace(",", ""))
    (level,) = levels
    return f"{VERSIONS}, {level}", {name: round(count / 1000) for name, count in counts.items()}


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="Valgrind is not installed: apt-get install valgrind"
)
@pytest.mark.skipif(bool(machinecode.missing), reason="Numba compiles kernels here: make machinecode")
def test_no_kernel_takes_more_instructions():
    noted = json.loads(FILE.read_text())
    reason = f"{FILE.name} has no figures of this Python, Numba and processor: python tests/house/test_instructions.py"
    if not any(key.startswith(f"{VERSIONS},") for key in noted):
        pytest.skip(reason)
    key, counted = figures()
    if key not in noted:
        pytest.skip(reason)
    assert all(counted.values()), "a kernel is not called any more"
    assert counted == {name: pytest.approx(count, rel=WITHIN) for name, count in noted[key].items()}


if __name__ == "__main__":
    there = json.loads(FILE.read_text()) if FILE.exists() else {}
    FILE.write_text(json.dumps(there | dict([figures()]), indent=1) + "\n")
