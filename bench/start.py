"""``python -m bench start``: CPU time and memory of short commands, with cold and warm caches, and install sizes.

Each product has an environment of its own, made by ``pip install`` in a work folder. All commands of all products run
in turn, round by round. A cold run has no compiled modules and no cache of Numba's. A warm run follows it, and
has all that the same command has compiled.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import threading
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from bench import markdown, results

__all__ = ["main", "start_table"]

EDGES = "a\tb\nb\tc\nc\ta\n"
SPIDER = """
import scrapy

class One(scrapy.Spider):
    name = "one"
    start_urls = ["URL"]
    custom_settings = {SETTINGS}

    def parse(self, response):
        pass
"""
QUIET = "'LOG_ENABLED': False, 'TELNETCONSOLE_ENABLED': False, 'ROBOTSTXT_OBEY': False"
CRAWL = """
import inlink
with inlink.Crawl("crawl", clock=inlink.VirtualClock()) as crawl:
    crawl.seed(["https://example.org/"])
    for lease in crawl.next(1):
        crawl.crawled(lease, ["https://example.org/a", "https://example.com/"])
"""
RUSTWORKX = """
import rustworkx
graph = rustworkx.PyDiGraph()
graph.extend_from_edge_list({arcs})
rustworkx.pagerank(graph)
"""
URL = "https://example.org/"
COUNT = "SELECT column1, count(*) FROM read_csv('edges.tsv', header = false, delim = '\\t') GROUP BY column1"


class Task(NamedTuple):
    """A command of a product, with the text of its standard input."""

    product: str
    name: str
    command: list[str]
    text: str = ""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>page</title>")

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def site() -> Iterator[str]:
    """Serve one page on loopback; gives its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def tasks(url: str) -> list[Task]:
    """Return all commands, in the order of a round."""

    def python(code: str) -> list[str]:
        return ["python", "-c", code]

    run_spider = ["sh", "-c", "rm -rf job; cat > one.py; exec scrapy runspider one.py"]

    def spider(settings: str) -> str:
        return SPIDER.replace("URL", url).replace("SETTINGS", settings)

    three = "[(0, 1), (1, 2), (2, 0)]"
    own = "'SCHEDULER': 'inlink.scrapy.Scheduler', 'INLINK_CRAWL': 'job', " + QUIET
    return [
        Task("inlink", "import", python("import inlink")),
        Task("inlink", "build, three nodes", ["inlink", "-q", "build", "edges.tsv", "-o", "graph"]),
        Task("inlink", "rank, three nodes", ["inlink", "-q", "rank", "graph"]),
        Task("inlink", "top", ["inlink", "-q", "top", "graph"]),
        Task("inlink", "info", ["inlink", "-q", "info", "graph"]),
        Task("inlink", "links", ["inlink", "-q", "links", "graph", "a"]),
        Task("inlink", "new crawl, one page", python(CRAWL)),
        Task("inlink", "page of a crawl", ["inlink", "-q", "page", "crawl", URL]),
        Task("inlink", "why", ["inlink", "-q", "why", "crawl", URL + "a"]),
        Task("inlink", "next --peek", ["inlink", "-q", "next", "crawl", "--peek"]),
        Task("networkx", "PageRank, three nodes", python(f"import networkx as n; n.pagerank(n.DiGraph({three}))")),
        Task("igraph", "PageRank, three nodes", python(f"import igraph as i; i.Graph(3, {three}, True).pagerank()")),
        Task("rustworkx", "PageRank, three nodes", python(RUSTWORKX.format(arcs=three))),
        Task("duckdb", "count of inlinks", python(f"import duckdb; duckdb.sql({COUNT!r}).fetchall()")),
        Task("scrapy", "crawl of one page", run_spider, spider(QUIET)),
        Task("inlink[scrapy]", "crawl of one page", run_spider, spider(own)),
    ]  # fmt: skip


REQUIREMENTS = {
    "inlink": ["{wheel}"],
    "networkx": ["networkx", "scipy"],
    "igraph": ["igraph"],
    "rustworkx": ["rustworkx"],
    "duckdb": ["duckdb"],
    "scrapy": ["scrapy"],
    "inlink[scrapy]": ["{wheel}[scrapy]"],
}


def install(product: str, folder: Path, wheel: Path) -> None:
    """Make the environment of a product, unless it is there."""
    if not (folder / "bin" / "pip").exists():
        venv.create(folder, with_pip=True)
    packages = [text.format(wheel=wheel) for text in REQUIREMENTS[product]]
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", "--no-compile", *packages], check=True)


def size(folder: Path) -> int:
    """Return the bytes of an environment's packages, without pip and compiled modules."""
    packages = next((folder / "lib").glob("python*/site-packages"))
    return sum(
        file.lstat().st_size
        for file in packages.rglob("*")
        if file.is_file()
        and "__pycache__" not in file.parts
        and file.relative_to(packages).parts[0].partition("-")[0] not in ("pip", "setuptools")
    )


def run(task: Task, environment: Path, folder: Path, cache: Path) -> dict[str, float]:
    """Run a command, and return its CPU seconds and its largest memory in bytes."""
    variables = {
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONPYCACHEPREFIX": str(cache / "python"),
        "NUMBA_CACHE_DIR": str(cache / "numba"),
    }
    program = shutil.which(task.command[0], path=variables["PATH"])
    assert program is not None, f"{task.product} has no {task.command[0]}"
    child = subprocess.Popen(
        [program, *task.command[1:]],
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert child.stdin is not None
    child.stdin.write(task.text.encode())
    child.stdin.close()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{task.product}, {task.name}: exit code {child.returncode}")
    # Linux counts in KiB. This process is small, so the child's largest memory is its own.
    return {"cpu": used.ru_utime + used.ru_stime, "peak": float(used.ru_maxrss << 10)}


def measure(
    folder: Path, wheel: Path, rounds: int, products: list[str], say: Callable[[str], None]
) -> dict[str, Any]:
    """Return the figures of all commands of these products."""
    environments = {product: folder / product.replace("[", "-").strip("]") for product in products}
    for product, environment in environments.items():
        say(f"installing {product}")
        install(product, environment, wheel)
    load = [os.getloadavg()[0]]
    rows: dict[str, Any] = {}
    with site() as url:
        for number in range(rounds):
            for task in (task for task in tasks(url) if task.product in products):
                for temper in ("cold", "warm"):
                    work = folder / "work" / environments[task.product].name
                    cache = folder / "cache" / environments[task.product].name
                    if temper == "cold":
                        shutil.rmtree(cache, ignore_errors=True)
                    work.mkdir(parents=True, exist_ok=True)
                    (work / "edges.tsv").write_text(EDGES)
                    for made in {"build, three nodes": ["graph"], "new crawl, one page": ["crawl"]}.get(
                        task.name, []
                    ):
                        shutil.rmtree(work / made, ignore_errors=True)
                    row = rows.setdefault(
                        f"{task.product}: {task.name}", {"product": task.product, "cold": [], "warm": []}
                    )
                    row[temper].append(run(task, environments[task.product], work, cache))
            say(f"round {number + 1} of {rounds}")
            load.append(os.getloadavg()[0])
    sizes = {product: size(environment) for product, environment in environments.items()}
    return {"machine": results.machine(), "load": load, "sizes": sizes, "rows": rows}


def start_table(figures: dict[str, Any]) -> str:
    """The figures as a Markdown table."""
    lines = [
        f"{markdown.machine(figures)}. Medians (smallest–largest) of interleaved rounds.",
        "",
        markdown.line("command", "CPU s, cold", "CPU s, warm", "memory MB, warm", "install MB"),
        markdown.line("---", *["---:"] * 4),
    ]
    for name, row in figures["rows"].items():
        lines.append(
            markdown.line(
                name,
                markdown.spread([one["cpu"] for one in row["cold"]]),
                markdown.spread([one["cpu"] for one in row["warm"]]),
                f"{statistics.median(one['peak'] for one in row['warm']) / 1e6:,.0f}",
                f"{figures['sizes'][row['product']] / 1e6:,.0f}",
            )
        )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Run the benchmark, store its figures, and print its table."""
    parser = argparse.ArgumentParser(prog="python -m bench start", description=__doc__)
    parser.add_argument("--wheel", type=Path, help="inlink's wheel; by default the one in dist")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--products", default=",".join(REQUIREMENTS), help="which to run, separated by commas"
    )
    parser.add_argument(
        "--data", type=Path, default=Path(".cache/start"), help="the environments and work folders"
    )
    parser.add_argument("--results", type=Path, default=results.FOLDER)
    options = parser.parse_args(arguments)
    wheel = options.wheel or next(iter(sorted(Path("dist").glob("inlink-*.whl"))), None)
    products = options.products.split(",")
    if wheel is None and any(product.startswith("inlink") for product in products):
        sys.exit("there is no wheel in dist: run `make wheel`, or name one with --wheel")
    options.data.mkdir(parents=True, exist_ok=True)
    found = measure(
        options.data.resolve(),
        Path(wheel or "").resolve(),
        options.rounds,
        products,
        lambda text: print(text, file=sys.stderr),
    )
    results.keep(options.results, "start", found)
    print(start_table(found))
