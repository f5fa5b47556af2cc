"""``python -m bench fleet``: four Scrapy processes on one crawl, behind a server.

The site (:mod:`bench.spidersite`) has an end. Each server runs the crawl three times a round: undisturbed, with a
spider killed by SIGKILL on the way, and with the server killed. Whatever is killed is started again at once, with the
same command. The site counts: how many pages it sent, how often, and which pages nobody came back for.
"""

import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import IO, Any

from bench import cli, markdown, results
from bench.fleets import base
from bench.server import cpu_of
from bench.spidersite import CHILDREN, Site

__all__ = ["HOW", "Fleet", "compare", "crawl", "fleet_table", "main"]

SPIDERS = 4
DEEPEST = 3
QUIET_SECONDS = 20.0
"""A crawl is over if the site has sent nothing for so long, and nothing was started again meanwhile."""

HOW = ("undisturbed", "spider", "server")
"""The process that a run kills: none, a spider, or the server."""


class Fleet:
    """A server and its spiders; a context manager that ends them.

    Parameters
    ----------
    name : str
        Of the peer.
    folder : Path
        Where all is kept.
    port : int
        Of the server.
    spiders : int
    delay : float
        Seconds for which each reply of the server is held back.
    """

    def __init__(self, name: str, folder: Path, port: int, spiders: int, delay: float = 0.0) -> None:
        self._name, self._folder, self._port, self._delay = name, folder, port, delay
        # The spiders connect to this port: the server's, or that of a proxy.
        self._door = _free_port() if delay else port
        self._proxy: subprocess.Popen[bytes] | None = None
        self._count, self._said = spiders, (folder / "said").open("a")
        self._server: subprocess.Popen[bytes] | None = None
        self.spiders: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Fleet":
        return self

    def __exit__(self, *_: object) -> None:
        for process in [
            *self.spiders,
            *(process for process in (self._server, self._proxy) if process is not None),
        ]:
            process.kill()
            process.wait()
        self._said.close()

    def start(self, url: str, limit: float) -> None:
        """Start the server, give the first URL, and start the spiders."""
        self._server = self._listening(limit)
        base.peer(self._name).begin(self._port, url)
        if self._delay:
            numbers = map(str, (self._door, self._port, self._delay))
            self._proxy = subprocess.Popen(
                [sys.executable, "-m", "bench", "fleetdelay", *numbers], cwd=Path(__file__).parents[1]
            )
            if not _until_open(self._door, self._proxy, limit):
                raise RuntimeError("failed: the proxy that delays replies does not listen")
        self.spiders = [self._spider(number) for number in range(self._count)]

    def kill(self, how: str, limit: float) -> None:
        """End the server or a spider by SIGKILL, and start it again."""
        if how == "server":
            assert self._server is not None
            _killed(self._server)
            self._server = self._listening(limit)
        elif how == "spider":
            _killed(self.spiders[0])
            self.spiders[0] = self._spider(0)

    @property
    def cpu(self) -> float:
        """CPU seconds of the server and the spiders, those of killed ones and of ranking processes apart."""
        assert self._server is not None
        return sum(cpu_of(one.pid) for one in (self._server, *self.spiders))

    @property
    def at_work(self) -> bool:
        """Return whether a spider runs. Ended spiders stay zombies, so that their CPU time can be read."""
        return any(not _has_ended(one) for one in self.spiders)

    def said(self) -> list[str]:
        """The last lines that anybody wrote."""
        return (self._folder / "said").read_text(errors="replace").splitlines()[-3:]

    def _listening(self, limit: float) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            base.peer(self._name).server(self._folder, self._port),
            stdout=self._said,
            stderr=self._said,
            env=os.environ | {"XDG_CONFIG_HOME": str(self._folder)},
        )
        if not _until_open(self._port, process, limit):
            process.kill()
            raise RuntimeError(f"failed: the server does not listen: {self.said()}")
        return process

    def _spider(self, number: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "bench", "fleetrun", self._name, str(number), str(self._door)],
            stdout=self._said,
            stderr=self._said,
            cwd=Path(__file__).parents[1],
        )


def _until_open(port: int, process: "subprocess.Popen[bytes]", limit: float) -> bool:
    """Wait until a process listens at a port; return whether it does."""
    until = time.monotonic() + limit
    while time.monotonic() < until and process.poll() is None:
        with closing(socket.socket()) as to:
            if to.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.01)
    return False


def _killed(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def crawl(
    name: str, how: str, site: Site, pages: int, data: Path, limit: float, delay: float = 0.0
) -> dict[str, Any]:
    """Crawl the site once; return the site's figures and the CPU seconds between its first page and the last.

    Raises
    ------
    RuntimeError
        If the server does not start, or the crawl does not end in ``limit`` seconds.
    """
    site.tell("forget")
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="fleet-", dir=data))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        fleet = stack.enter_context(Fleet(name, folder, _free_port(), SPIDERS, delay))
        fleet.start(site.url, limit)
        if not site.tell(f"wait 1 {limit}")["pages"]:
            raise RuntimeError(f"failed: no page was asked for: {fleet.said()}")
        before = fleet.cpu
        # A third of the pages is a moment at which all spiders are at work.
        if how != "undisturbed" and site.tell(f"wait {pages // 3} {limit}")["pages"] >= pages // 3:
            fleet.kill(how, limit)
        all_there = time.monotonic()
        until, cpu, sent = time.monotonic() + limit, before, 0
        while True:
            figures = site.tell("told")
            if figures["pages"] > sent:
                cpu, sent = fleet.cpu, figures["pages"]
            if not fleet.at_work or time.monotonic() - max(figures["last"], all_there) > QUIET_SECONDS:
                break
            if time.monotonic() > until:
                raise RuntimeError(f"failed: {figures['pages']:,} pages in {limit:.0f} s: {fleet.said()}")
            time.sleep(0.1)
        figures = site.tell("told")
    return figures | {"wall": figures["last"] - figures["first"], "cpu": cpu - before}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def compare(
    names: list[str],
    deepest: int,
    data: Path,
    rounds: int,
    limit: float,
    delay: float = 0.0,
    say: IO[str] = sys.stderr,
) -> dict[str, Any]:
    """Crawl in interleaved rounds; what the table is made of."""
    missing = {name: base.peer(name).missing() for name in names}
    rows: dict[str, dict[str, Any]] = {
        name: {how: [] for how in HOW} for name in names if missing[name] is None
    }
    pages, load = sum(CHILDREN**depth for depth in range(deepest + 1)), [os.getloadavg()[0]]
    with Site(deepest) as site:
        for _ in range(rounds):
            for how in HOW:
                for name, row in rows.items():
                    row[how].append(run := crawl(name, how, site, pages, data, limit, delay))
                    load.append(os.getloadavg()[0])
                    rate = (run["pages"] - 1) / max(run["wall"], 1e-9)
                    print(
                        f"{name}, {how}: {run['different']:,} of {pages:,} pages, {run['left']:,} left, "
                        f"{run['twice']:,} twice, {rate:.0f} a second, {run['cpu']:.1f} s of CPU",
                        file=say,
                        flush=True,
                    )
    return {
        "pages": pages,
        "spiders": SPIDERS,
        "delay": delay,
        "load": load,
        "machine": results.machine(),
        "peers": {
            name: {
                "name": base.peer(name).NAME,
                "computes": base.peer(name).COMPUTES,
                "missing": missing[name],
            }
            for name in names
        },
        "rows": rows,
    }


def fleet_table(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    slow = (
        f" Each reply of the server is held back for {figures['delay']:g} s." if figures.get("delay") else ""
    )
    lines = [
        f"{figures['spiders']} Scrapy processes, {figures['pages']:,} pages of 10 kB from 20 hosts on loopback.{slow} "
        f"{markdown.where(figures)}",
        "",
        markdown.line(
            "server",
            "killed",
            "pages/s",
            "CPU s for 1,000 pages",
            f"fetched of {figures['pages']:,}",
            "known, never fetched",
            "fetched twice",
        ),
        markdown.line("---", "---", *["---:"] * 5),
    ]
    for how in HOW:
        for name, row in figures["rows"].items():
            runs = row[how]
            disturbed = how != "undisturbed"
            rates = [(run["pages"] - 1) / run["wall"] for run in runs]
            cpus = [run["cpu"] / run["pages"] * 1000 for run in runs]
            lines.append(
                markdown.line(
                    figures["peers"][name]["name"],
                    how if disturbed else "–",
                    "" if disturbed else markdown.spread(rates, ".0f"),
                    "" if disturbed else markdown.spread(cpus),
                    f"{statistics.median(run['different'] for run in runs):,.0f}",
                    ", ".join(f"{run['left']:,}" for run in runs),
                    ", ".join(f"{run['twice']:,}" for run in runs),
                )
            )
    lines.append("")
    lines += [
        f"- {peer['name']}: {peer['computes']}." if peer["missing"] is None else
        f"- Not in the table, {peer['name']}: {peer['missing']}."
        for peer in figures["peers"].values()
    ]  # fmt: skip
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """The command line of ``python -m bench fleet``."""
    parser = cli.parser("fleet", __doc__, rounds=3, peers=base.ALL, limit=300)
    parser.add_argument("--deepest", type=int, default=DEEPEST, help="links from the first page to the last")
    parser.add_argument(
        "--delay", type=float, default=0.0, help="seconds for which each reply of the server is held back"
    )
    options = parser.parse_args(arguments)
    figures = compare(
        options.peers, options.deepest, options.data, options.rounds, options.limit, options.delay
    )
    results.keep(options.results, "fleet" if not options.delay else "fleet-delay", figures)
    print(fleet_table(figures))
