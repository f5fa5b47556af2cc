"""``python -m bench server``: a crawl behind `inlink serve`, beside the same crawl embedded in one process.

Every run does the full cycle: tasks are asked for, and each is answered for with the links of a page of a generated
crawl (:mod:`bench.crawlweb`). The CPU time of the server's process is compared with that of the embedded crawl's calls,
in interleaved rounds. Then four clients work on one server while it is ranked, for the throughput and the waits.
"""

import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import cli, markdown, results
from bench.crawlweb import Web

__all__ = ["client", "embedded", "main", "served", "server_table"]

SEEDS = 20_000
PAGES, CLIENTS = 4000, 4
QUIET = ["--set", "politeness.delay=0", "--set", "rerank_share=none"]
RANKED = ["--set", "politeness.delay=0"]
TICKS = os.sysconf("SC_CLK_TCK")


def linked(first: int, count: int) -> list[list[str]]:
    """The links of pages of the generated crawl."""
    text = Web(SEEDS).text(first, count).decode()
    return [block.split()[1:] for block in text.split("\n\n") if block]


def answers(tasks: list[dict[str, Any]], pages: Iterator[list[str]]) -> list[dict[str, Any]]:
    """An answer for each task."""
    return [{"type": "crawled", "lease": task["lease"], "links": next(pages)} for task in tasks]


def embedded(folder: Path, batch: int, pages: int) -> dict[str, float]:
    """Crawl in this process; return CPU seconds of the crawl's calls, and links."""
    from inlink import Crawl
    from inlink.protocol import Crawled

    found, links, cpu = iter(linked(0, pages + 2 * batch)), 0, 0.0
    with Crawl(folder, politeness={"delay": 0.0}, rerank_share=None) as crawl:
        crawl.seed(Web(SEEDS).seeds())
        session = crawl.desk.hello("bench").number
        warm = crawl.desk.next(session, batch).tasks
        crawl.desk.report(session, [Crawled(task.lease, list(next(found))) for task in warm])
        done = 0
        while done < pages:
            began = time.process_time()
            tasks = crawl.desk.next(session, batch).tasks
            cpu += time.process_time() - began
            figures = [Crawled(task.lease, list(next(found))) for task in tasks]
            began = time.process_time()
            crawl.desk.report(session, figures)
            cpu += time.process_time() - began
            links += sum(len(one.links) for one in figures)
            done += len(figures)
    return {"cpu": cpu, "links": links, "pages": done}


class Connection:
    """A client of a server: JSON over one connection."""

    def __init__(self, port: int, certificate: str = "") -> None:
        if certificate:
            import ssl

            context = ssl.create_default_context(cafile=certificate)
            self._http: http.client.HTTPConnection = http.client.HTTPSConnection(
                "127.0.0.1", port, context=context
            )
        else:
            self._http = http.client.HTTPConnection("127.0.0.1", port)

    def ask(self, path: str, body: Any) -> Any:
        """Send a request, and return what the reply holds."""
        import msgspec

        self._http.request(
            "POST",
            f"/v1/crawls/crawl/{path}",
            msgspec.json.encode(body),
            {"Content-Type": "application/json"},
        )
        reply = self._http.getresponse()
        raw = reply.read()
        if reply.status >= 300:
            raise RuntimeError(f"{path}: {reply.status} {raw[:200]!r}")
        return msgspec.json.decode(raw)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def client(port: int, number: int, batch: int, pages: int, certificate: str = "") -> dict[str, Any]:
    """One client's share of a run; return links, seconds and what each request for tasks took."""
    found = iter(linked(number * (pages + batch), pages + batch))
    to = Connection(port, certificate)
    session = to.ask("sessions", {"owner": f"bench-{number}"})["session"]["number"]
    waits, links, done, request = [], 0, 0, 0
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    began = time.perf_counter()
    while done < pages:
        request += 1
        asked = time.perf_counter()
        tasks = to.ask("next", {"session": session, "n": batch, "request": request, "wait": 5})["tasks"]
        waits.append(time.perf_counter() - asked)
        figures = answers(tasks, found)
        to.ask("answers", {"session": session, "request": request, "answers": figures})
        links += sum(len(one["links"]) for one in figures)
        done += len(figures)
    return {"links": links, "pages": done, "began": began, "ended": time.perf_counter(), "waits": waits}


@contextlib.contextmanager
def served(
    folder: Path, options: Sequence[str] = (), *, tls: bool = False, source: str = ""
) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A server of a new crawl, of the code in ``source`` if that is set; its port, and its certificate for TLS."""
    environment = os.environ | {"XDG_CONFIG_HOME": str(folder / "config")}
    if source:
        environment["PYTHONPATH"] = source
    command = [sys.executable, "-c", "from inlink.cli import main; main()", "-q", "serve"]
    command += [str(folder / "crawl"), "--port", "0", *options, *["--self-signed"] * tls]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        try:
            line = next(line for line in server.stdout if "/v1/crawls/" in line)
            port = int(line.split("://")[1].split("/")[0].rpartition(":")[2])
            yield server, port, str(folder / "config" / "inlink" / "self-signed.pem") if tls else ""
        finally:
            server.kill()


def serving(
    folder: Path, batch: int, pages: int, clients: int, options: list[str], *, tls: bool = False
) -> dict[str, Any]:
    """A run with a server of its own: its CPU seconds, links, wall seconds, and waits for tasks."""
    with served(folder, options, tls=tls) as (server, port, certificate):
        seeds = Web(SEEDS).seeds()
        first = Connection(port, certificate)
        for start in range(0, len(seeds), 10_000):
            first.ask("seeds", {"urls": seeds[start : start + 10_000]})
        first.close()
        share = [str(port), str(batch), str(pages // clients), certificate]
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "bench", "serverclient", str(k), *share],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for k in range(clients)
        ]
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        before = cpu_of(server.pid)
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        figures = [json.loads(worker.communicate()[0]) for worker in workers]
        cpu = cpu_of(server.pid) - before
    waits = sorted(wait for client in figures for wait in client["waits"])
    return {
        "cpu": cpu,
        "links": sum(client["links"] for client in figures),
        "pages": sum(client["pages"] for client in figures),
        "wall": max(client["ended"] for client in figures) - min(client["began"] for client in figures),
        "median": statistics.median(waits),
        "p99": waits[int(len(waits) * 0.99)],
    }


def cpu_of(process: int) -> float:
    """CPU seconds that a process has used, its children apart."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


ROWS: dict[str, tuple[str, Callable[[Path, int], dict[str, Any]]]] = {
    "embedded10": ("embedded, ten pages a call", lambda folder, pages: _embedded(folder, 10, pages)),
    "server10": ("server, ten pages a request", lambda folder, pages: serving(folder, 10, pages, 1, QUIET)),
    "server10tls": (
        "server with TLS, ten pages a request",
        lambda folder, pages: serving(folder, 10, pages, 1, QUIET, tls=True),
    ),
    "embedded1": ("embedded, one page a call", lambda folder, pages: _embedded(folder, 1, pages)),
    "server1": ("server, one page a request", lambda folder, pages: serving(folder, 1, pages, 1, QUIET)),
    "four": (
        "server, four clients, ten pages a request, ranked meanwhile",
        lambda folder, pages: serving(folder, 10, 4 * pages, CLIENTS, RANKED),
    ),
}
BASES = {"server10": "embedded10", "server10tls": "embedded10", "server1": "embedded1", "four": "embedded10"}


def _embedded(folder: Path, batch: int, pages: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench", "serverembedded", str(folder / "crawl"), str(batch), str(pages)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
    )
    return found


def server_table(figures: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        markdown.line(
            "", "CPU µs a link", "CPU ÷ embedded", "links/s", "ms for `next`: median, 99th percentile"
        ),
        markdown.line("---", "---:", "---:", "---:", "---:"),
    ]
    for name, row in figures["rows"].items():
        runs = row["runs"]
        cpu = [run["cpu"] / run["links"] * 1e6 for run in runs]
        base = figures["rows"].get(BASES.get(name, ""), {"runs": []})["runs"]
        ratios = [
            run["cpu"] / run["links"] / (other["cpu"] / other["links"])
            for run, other in zip(runs, base, strict=False)
        ]
        served = "wall" in runs[0]
        lines.append(
            markdown.line(
                row["name"],
                markdown.spread(cpu),
                markdown.spread(ratios) if ratios else "",
                f"{statistics.median(run['links'] / run['wall'] for run in runs):,.0f}" if served else "",
                f"{statistics.median(run['median'] for run in runs) * 1e3:.1f}, "
                f"{statistics.median(run['p99'] for run in runs) * 1e3:.1f}"
                if served
                else "",
            )
        )
    return "\n".join([*lines, "", markdown.where(figures)])


def main(arguments: list[str]) -> None:
    """Run and keep the figures."""
    parser = cli.parser("server", __doc__, rounds=5)
    parser.add_argument("--pages", type=int, default=PAGES, help="pages a run and client")
    parser.add_argument("--rows", nargs="*", choices=list(ROWS), default=list(ROWS))
    options = parser.parse_args(arguments)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in options.rows}
    load = []
    for _ in range(options.rounds):
        for name in options.rows:
            load.append(os.getloadavg()[0])
            with tempfile.TemporaryDirectory(dir=options.data) as folder:
                runs[name].append(ROWS[name][1](Path(folder), options.pages))
            print(name, runs[name][-1], file=sys.stderr)
    figures = {
        "machine": results.machine(),
        "load": load,
        "pages": options.pages,
        "rows": {name: {"name": ROWS[name][0], "runs": found} for name, found in runs.items()},
    }
    results.keep(options.results, "server", figures)
    print(server_table(figures))
