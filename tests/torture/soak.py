"""``python -m torture.soak --minutes 10``: a server among clients that work, die, hang, send rubbish and come back.

Two good spiders crawl a web whose pages are due again every ten seconds, so that there is always something to fetch.
The other clients do what clients must not do. In the end everything that was acknowledged is looked for, and the
server's memory is told.
"""

import argparse
import contextlib
import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from inlink import Crawl
from inlink.client.shards import connect
from inlink.errors import InlinkError
from inlink.protocol import Crawled
from patience import wait_until
from torture.servers import links_of

PAGES = 5000
PATHS = (
    "sessions",
    "next",
    "answers",
    "seeds",
    "sitemap",
    "find",
    "why",
    "standing",
    "rules",
    "settings",
    "x" * 3000,
)


class Soak:
    """The clients of one server, and what they saw."""

    def __init__(self, port: int, seed: int) -> None:
        self.port, self.seed = port, seed
        self.over = threading.Event()
        self.seen: Counter[str] = Counter()
        self.acknowledged: Counter[str] = Counter()
        self.faults: list[str] = []

    def run(self, name: str, work: Callable[[Random], None]) -> threading.Thread:
        """Let a client work again and again in a thread of its own."""

        def loop() -> None:
            random = Random(f"{self.seed} {name}")
            while not self.over.is_set():
                try:
                    work(random)
                except (OSError, InlinkError) as error:
                    self.seen[f"{name}: {type(error).__name__}"] += 1
                except Exception as error:
                    self.faults.append(f"{name}: {error!r}")
                    return
                self.seen[name] += 1

        thread = threading.Thread(target=loop, name=name, daemon=True)
        thread.start()
        return thread

    def spider(self, random: Random) -> None:
        """Crawl for a while as one should, and end the session, or leave without a word."""
        owner = threading.current_thread().name
        with connect(f"http://127.0.0.1:{self.port}/v1/crawls/soaked", owner=owner) as crawl:
            crawl.seed(["http://h0.example/0"])
            for _ in range(random.randrange(20, 200)):
                tasks = crawl.next(5, wait=1.0).tasks
                answers = [Crawled(task.lease, list(links_of(task.url, PAGES))) for task in tasks]
                receipts = crawl.report(answers) if answers else []
                for task, receipt in zip(tasks, receipts, strict=True):
                    self.acknowledged[task.url] += receipt.counted
                if self.over.is_set():
                    return

    def _send(self, raw: bytes, wait: float) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as to:
            to.settimeout(max(wait, 0.01))
            to.sendall(raw)
            with contextlib.suppress(TimeoutError):
                return to.recv(1 << 16)
        return b""

    def rubbish(self, random: Random) -> None:
        """Send bytes that are no request, or a request that is none of the crawl's."""
        if random.random() < 0.3:
            self._send(random.randbytes(random.randrange(1, 5000)), 0.2)
            return
        body = random.choice([
            random.randbytes(200),
            b"[" * 50_000,
            gzip.compress(bytes(1 << 26)),
            json.dumps({"session": random.randrange(-2, 5), "n": random.choice([0, 1, 10**9, "x"])}).encode(),
            json.dumps({"session": 1, "answers": [{"type": "crawled", "lease": random.randrange(99)}]}).encode(),
            json.dumps({"urls": ["http://h0.example/" + "x" * 3000] * 200}).encode(),
        ])  # fmt: skip
        path, method = random.choice(PATHS), random.choice(["GET", "POST", "PUT", "PATCH", "DELETE"])
        kind = "gzip" if body[:2] == b"\x1f\x8b" else "identity"
        head = (
            f"{method} /v1/crawls/soaked/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Encoding: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        reply = self._send(head.encode() + body, 5)
        status = reply[9:12].decode("latin-1")
        self.seen[f"rubbish was answered with {status or 'nothing'}"] += 1
        if status.startswith("5") and status != "503":
            self.faults.append(f"{method} {path} was answered with {status}: {reply[-300:]!r}")

    def dies(self, random: Random) -> None:
        """Send a part of a request, and close."""
        whole = b'POST /v1/crawls/soaked/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"session": 1'
        self._send(whole[: random.randrange(1, len(whole))], 0.01)
        time.sleep(0.02)

    def hangs(self, random: Random) -> None:
        """Send a part of a request, and wait; or listen to the events, and never read."""
        raw = b"GET /v1/crawls/soaked/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as to:
            to.sendall(raw if random.random() < 0.5 else raw[:-3])
            self.over.wait(random.uniform(1, 40))


def memory(process: int) -> int:
    """The private memory of a process, in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) // 1024


def main() -> int:
    """Run; return 1 if something was lost, counted twice, or answered with a 500."""
    parser = argparse.ArgumentParser(prog="torture.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "soaked"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "inlink", "-q", "serve", str(folder), "--port", str(port)]
        command += ["--set", "politeness.delay=0", "--set", "max_losses=200", "--set", "retry_seconds=0.1"]
        command += ["--set", "policy=breadth-first"]
        command += ["--set", 'revisit={"schedule": "FixedInterval", "seconds": 10}']
        environment = os.environ | {"XDG_CONFIG_HOME": place}
        with (Path(place) / "log").open("w") as log:
            server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        wait_until(lambda: (Path(place) / "log").read_text().count("http://"), "the server to listen")
        soak = Soak(port, options.seed)
        threads = [soak.run(f"spider-{k}", soak.spider) for k in range(2)]
        threads += [soak.run("rubbish", soak.rubbish), soak.run("dies", soak.dies)]
        threads += [soak.run(f"hangs-{k}", soak.hangs) for k in range(8)]
        held = []
        for _ in range(4):
            time.sleep(options.minutes * 15)
            held.append(memory(server.pid))
        soak.over.set()
        for thread in threads:
            thread.join(60)
        server.terminate()
        if server.wait(60):
            soak.faults.append(f"the server ended with {server.returncode}")
        text = (Path(place) / "log").read_text()
        if "Traceback" in text:
            soak.faults.append(f"the server's log has a traceback: {text[text.index('Traceback') :][:2000]}")
        with Crawl(folder) as crawl:
            for url, count in soak.acknowledged.items():
                page = crawl.page(url)
                if count and (page is None or page.crawls != count):
                    soak.faults.append(
                        f"{url} was acknowledged {count} times and crawled {page and page.crawls}"
                    )
            crawled = crawl.standing().crawled
    for name, count in sorted(soak.seen.items()):
        sys.stdout.write(f"{name}: {count:,}\n")
    sys.stdout.write(f"pages crawled: {crawled:,}; acknowledged: {sum(soak.acknowledged.values()):,}\n")
    sys.stdout.write(f"memory of the server at each quarter: {', '.join(f'{one} MB' for one in held)}\n")
    sys.stdout.writelines(f"FAULT {fault}\n" for fault in soak.faults[:40])
    return int(bool(soak.faults))


if __name__ == "__main__":
    sys.exit(main())
