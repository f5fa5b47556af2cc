"""``python -m bench truth``: what it costs to keep an event, in a log of two files or in LMDB.

The same events either way: a page's visit of some 150 bytes and the URLs that it made known, some 900. Each call
returns when its event would survive the death of the process. LMDB (``MDB_APPEND``, integer keys, no syncing) gets
one transaction a call, as that asks for; its figures for a transaction every hundred calls, which do not survive
it, stand beside.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import results

EVENT, URLS = b"e" * 150, b"https://www.host123.example.org/section/slug-words-1234.html\n" * 15


def with_log(folder: Path, events: int) -> float:
    """CPU seconds of that many events in inlink's log."""
    from inlink.store.format import VISIT
    from inlink.store.log import Log

    log = Log(folder)
    began = time.process_time()
    for number in range(events):
        log.append(VISIT, 0.0, number, payload=EVENT, first=15 * number, new=15, urls=URLS)
    took = time.process_time() - began
    log.close()
    return took


def with_lmdb(folder: Path, events: int, every: int = 1) -> float:
    """CPU seconds of that many events in LMDB, a transaction for every so many."""
    import lmdb  # type: ignore[import-not-found]

    with lmdb.open(str(folder), map_size=1 << 36, max_dbs=2, sync=False, metasync=False) as env:
        visits = env.open_db(b"visits", integerkey=True)
        urls = env.open_db(b"urls", integerkey=True)
        began = time.process_time()
        for start in range(0, events, every):
            with env.begin(write=True) as transaction:
                for number in range(start, min(start + every, events)):
                    key = number.to_bytes(8, "little")
                    transaction.put(key, EVENT, db=visits, append=True)
                    transaction.put(key, URLS, db=urls, append=True)
        return time.process_time() - began


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench truth``."""
    parser = argparse.ArgumentParser(prog="python -m bench truth", description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    ways: dict[str, Any] = {
        "log": with_log,
        "LMDB, a transaction each": with_lmdb,
        "LMDB, a transaction for 100": lambda folder, events: with_lmdb(folder, events, 100),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    sizes: dict[str, float] = {}
    for _ in range(options.rounds):
        for name, way in ways.items():
            folder = Path(tempfile.mkdtemp(prefix="inlink-truth-"))
            seconds[name].append(way(folder, options.events))
            used = sum(path.stat().st_blocks * 512 for path in folder.iterdir())
            sizes[name] = used / options.events
            shutil.rmtree(folder)
    for name, took in seconds.items():
        middle = sorted(took)[len(took) // 2] / options.events * 1e6
        print(f"{name}: {middle:.2f} µs of CPU an event, {sizes[name]:,.0f} bytes on disk an event")
    print(results.machine())
