"""Aduana's C library (github.com/scrapinghub/aduana, 2015), built by whoever runs this; none of it is here.

    cmake -S aduana/lib -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_POLICY_VERSION_MINIMUM=3.5
    cmake --build build --target aduana
    export ADUANA_LIBRARY=$PWD/build/libaduana.so

``aduana.c`` beside this file drives it without Python, and is compiled by ``cc`` when it starts. What its users call
is ``bf_scheduler_add``, which adds the page to the page database (``page_db_add``) and its new links to the best-first
schedule, each in an LMDB transaction of its own.

Unfair to Aduana: it groups a page's links by whether they stay within the domain, as nobody asked it to here; and it
is written for random inserts into a disk-backed tree, which keeps its own memory small.

Unfair to the others: URLs are not made canonical, and parsed but for the host; LMDB is never synced
(``MDB_NOSYNC``), so that a power cut may ruin everything; a URL handed out has no lease, and is lost with its spider;
without a scorer all new links have the same score, and the order is that of URL hashes, host by host; pages are built
as its structures before the time begins, with no other language's binding in between. LMDB's pages belong to the page
cache: see the column of mapped files.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAME = "Aduana (C), no scorer"
COMPUTES = (
    "`bf_scheduler_add` and `bf_scheduler_request` on LMDB, never synced; URLs as given, no leases, "
    "no politeness"
)
LARGEST = 10_000_000
MODES = {"plain": ("", 1.0), "store": ("`page_db_add` alone", 1.0)}
NEXT = {"plain": 1.0}


def available() -> str | None:
    if not Path(os.environ.get("ADUANA_LIBRARY", "")).is_file():
        return "ADUANA_LIBRARY names no libaduana.so"
    return None if shutil.which("cc") else "there is no C compiler, cc"


def command(folder: Path, *options: str) -> list[str]:
    library = Path(os.environ["ADUANA_LIBRARY"]).resolve()
    driver = Path(tempfile.mkdtemp(prefix="inlink-aduana-", dir=folder.parent)) / "driver"
    source = Path(__file__).with_suffix(".c")
    flags = ["-O2", "-std=gnu99", f"-Wl,-rpath,{library.parent}"]
    subprocess.run(["cc", *flags, "-o", str(driver), str(source), str(library), "-lm"], check=True)
    return [str(driver), str(folder), *options]
