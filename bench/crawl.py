"""``python -m bench crawl``: a generated crawl taken in, at more and more known URLs, inlink beside its peers.

Each run is a process of its own, which takes in one stream of pages (:mod:`bench.crawlweb`) and is measured whenever
so many URLs are known: a window of pages, requests for URLs, bytes on disk and in memory, opening again. Rounds are
interleaved, so that noise meets everybody. :mod:`bench.crawlers.base` tells how a crawler is spoken to.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from bench import cli, crawltable, results
from bench.crawlers import base
from bench.crawlweb import Web

__all__ = ["Program", "compare", "files", "main", "run"]

KNOWN = [100_000, 1_000_000, 10_000_000]
SEEDS = 1024
ORDERS = ["scattered", "breadth-first"]
# Number of links.
WINDOW = 200_000
BATCHES, BATCH = 1000, 100
# Pages at a time between the windows.
PIECE = 300
RANKING_PAGES, RANKING_BATCHES = 3000, 1_000_000


class Program:
    """A crawler's process: commands in, figures out.

    Parameters
    ----------
    command : list of str
        The program and its arguments.
    limit : float
        Seconds after which it is killed.

    Raises
    ------
    RuntimeError
        If the process ends before it answers, with the last line of its error output.
    """

    def __init__(self, command: list[str], limit: float) -> None:
        path = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))},
        )
        self._stop = threading.Timer(limit, self._process.kill)
        self._stop.daemon = True
        self._stop.start()
        self.opened: float = self.answer()["open"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """End it as a crash would."""
        self._stop.cancel()
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def send(self, command: str, text: bytes | None = None) -> None:
        """Give a command, the bytes of a text behind it; the answer is to be fetched before the next one."""
        source = cast(IO[bytes], self._process.stdin)
        line = command if text is None else f"{command} {len(text)}"
        try:
            source.write(line.encode() + b"\n" + (text or b""))
            source.flush()
        except BrokenPipeError:
            # The missing answer will tell why.
            pass

    def answer(self) -> dict[str, Any]:
        """The figures of the command given last."""
        line = cast(IO[bytes], self._process.stdout).readline()
        if not line:
            code = self._process.wait()
            self._errors.seek(0)
            last = (self._errors.read().strip().splitlines() or [f"ended with exit code {code}"])[-1]
            self.kill()
            raise RuntimeError(f"failed: {last[:200]}")
        return cast(dict[str, Any], json.loads(line))

    def tell(self, command: str, text: bytes | None = None) -> dict[str, Any]:
        """Give a command and wait for its figures."""
        self.send(command, text)
        return self.answer()

    def memory(self) -> dict[str, int]:
        """Bytes of the process: its own, and with the files that it has mapped."""
        process = self._process.pid
        return {
            "own": results.memory("RssAnon", process),
            "with files": results.memory("VmRSS", process),
        }


def files(folder: Path) -> dict[str, int]:
    """The bytes that each file takes on disk, by its path below the folder; empty files are left out."""
    sizes = {
        str(path.relative_to(folder)): path.stat().st_blocks * 512
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return {name: size for name, size in sizes.items() if size}


def fill(program: Program, web: Web, first: int, end: int) -> dict[str, Any]:
    """Take in the pages from ``first`` up to ``end``; the next ones are made while the crawler works."""
    figures: list[dict[str, Any]] = []
    for start in range(first, end, PIECE):
        count = min(PIECE, end - start)
        text = web.text(start, count)
        if start > first:
            figures.append(program.answer())
        program.send(f"take plain {count}", text)
    if first < end:
        figures.append(program.answer())
    sums: dict[str, Any] = {
        field: sum(one[field] for one in figures) for field in ("pages", "links", "cpu", "wall")
    }
    return sums | {"slowest": max((one["slowest"] for one in figures), default=0.0)}


def run(
    name: str, sizes: list[int], folder: Path, window: int, batches: int, limit: float, web: Web
) -> dict[str, Any]:
    """Run one crawler in an empty folder; return the measurements at each size."""
    peer = base.peer(name)
    measured: dict[str, Any] = {}
    page = 0
    with Program(peer.command(folder), limit) as program:
        program.tell("settle")
        idle = program.memory()
        program.tell("seed", "".join(f"{url}\n" for url in web.seeds()).encode())
        links, cpu = 0, 0.0
        for size in sizes:
            if size > peer.LARGEST:
                continue
            filled = fill(program, web, page, max(page, web.pages_for(size)))
            page += filled["pages"]
            links, cpu = links + filled["links"], cpu + filled["cpu"]
            program.tell("settle")
            at: dict[str, Any] = {
                "known": web.known(page),
                "so far": cpu / links,
                "slowest": filled["slowest"],
            }
            at["memory"] = {field: value - idle[field] for field, value in program.memory().items()}
            at["take"], at["next"] = {}, {}
            for mode, (_, share) in peer.MODES.items():
                count = max(round(window * share / 35), 1)
                text = web.text(page, count)
                page += count
                at["take"][mode] = program.tell(f"take {mode} {count}", text)
                if mode in peer.NEXT:
                    # a twentieth of all URLs at most, or polite crawls run out of hosts
                    asked = max(round(min(batches, size // 20 // BATCH) * peer.NEXT[mode]), 1)
                    at["next"][mode] = program.tell(f"next {mode} {asked} {BATCH}")
            if hasattr(peer, "lookup"):
                try:
                    at["lookup"] = peer.lookup(folder, web.url(size // 2))
                # The other figures stand without it.
                except RuntimeError as error:
                    cli.note(f"{peer.NAME}: {error}")
                at["ranking"] = program.tell(
                    f"rerank {RANKING_BATCHES} {BATCH} {RANKING_PAGES}", web.text(page, RANKING_PAGES)
                )
                page += min(RANKING_PAGES, at["ranking"]["batches"])
                at["open"] = program.tell("reopen")["open"]
            at["disk"] = files(folder)
            at["disk known"] = web.known(page)
            measured[str(size)] = at
            print(
                f"{peer.NAME}, {size:,} known: {at['take']['plain']['cpu'] / at['take']['plain']['links'] * 1e6:.2f} "
                "µs of CPU a link",
                file=sys.stderr,
                flush=True,
            )
    figures: dict[str, Any] = {"idle": idle, "sizes": measured}
    if hasattr(peer, "lookup"):
        # The last one was killed.
        with Program(peer.command(folder), limit) as program:
            figures["opened after kill"] = program.opened
            program.tell("settle")
            figures["memory after kill"] = program.memory()["own"] - idle["own"]
    return figures


def compare(
    names: list[str],
    sizes: list[int],
    data: Path,
    rounds: int,
    window: int,
    batches: int,
    limit: float,
    order: str = "scattered",
) -> dict[str, Any]:
    """Measure crawlers in interleaved rounds; what the tables are made of."""
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        peer = base.peer(name)
        rows[name] = {
            "name": peer.NAME,
            "computes": peer.COMPUTES,
            "modes": {mode: label for mode, (label, _) in peer.MODES.items()},
            "runs": [],
        }
        reason = peer.available()
        if reason is None and min(sizes) > peer.LARGEST:
            reason = f"not tried above {peer.LARGEST:,} known URLs"
        if reason is not None:
            rows[name]["skipped"] = reason
    web = Web(SEEDS, scattered=order == "scattered")
    load = [os.getloadavg()[0]]
    for _ in range(rounds):
        for name, row in rows.items():
            if "skipped" in row:
                continue
            work = Path(tempfile.mkdtemp(prefix="crawl-", dir=data))
            try:
                (work / "files").mkdir()
                row["runs"].append(run(name, sizes, work / "files", window, batches, limit, web))
            except RuntimeError as error:
                row["skipped"], row["runs"] = str(error), []
                cli.note(f"{row['name']}: {error}")
            finally:
                shutil.rmtree(work)
        load.append(os.getloadavg()[0])
    return {
        "known": sizes,
        "window": window,
        "order": order,
        "load": load,
        "machine": results.machine(),
        "rows": rows,
    }


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench crawl``."""
    parser = cli.parser("crawl", __doc__, rounds=3, peers=base.ALL, limit=7200)
    parser.add_argument(
        "--known", type=int, nargs="+", default=KNOWN, help="at how many known URLs to measure"
    )
    parser.add_argument("--window", type=int, default=WINDOW, help="links taken in for one figure")
    parser.add_argument(
        "--batches", type=int, default=BATCHES, help=f"requests for {BATCH} URLs for one figure"
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default=ORDERS[0],
        help="of the pages: as politeness makes it, or siblings in a row",
    )
    options = parser.parse_args(arguments)
    sizes = sorted(options.known)
    figures = compare(
        options.peers,
        sizes,
        options.data,
        options.rounds,
        options.window,
        options.batches,
        options.limit,
        options.order,
    )
    results.keep(options.results, f"crawl-{options.order}-{sizes[-1]}", figures)
    print(crawltable.crawl_table(figures))
