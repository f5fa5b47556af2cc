"""A small site on loopback for tests of ``inlink crawl``, and the command run in a process of its own."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

INLINK = [sys.executable, "-m", "inlink"]


@dataclass
class Page:
    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/html; charset=utf-8"})
    wait: float = 0.0
    gate: threading.Event | None = None  # waits for it


def linking(*hrefs: str, title: str = "", text: str = "") -> str:
    links = " ".join(f'<a href="{href}">{href}</a>' for href in hrefs)
    return f"<!doctype html><title>{title}</title><body><p>{text}</p>{links}</body>"


class Site:
    """Pages by path; whatever is asked for is in ``log`` as (time, path, headers), answers in ``served`` by path."""

    def __init__(self, pages: dict[str, Page | str | bytes], address: str = "127.0.0.1") -> None:
        self.pages, self.address = pages, address
        self.log: list[tuple[float, str, dict[str, str]]] = []
        self.arrived = threading.Condition()

    def __enter__(self) -> Self:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # header and body are two writes

            def do_GET(self) -> None:
                with site.arrived:
                    site.log.append((time.monotonic(), self.path, dict(self.headers)))
                    site.arrived.notify_all()
                found = site.pages.get(self.path, Page("nothing here", 404))
                page = found if isinstance(found, Page) else Page(found)
                if page.gate is not None:
                    page.gate.wait(60)
                time.sleep(page.wait)
                body = page.body.encode() if isinstance(page.body, str) else page.body
                try:
                    self.send_response(page.status)
                    for name, value in page.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:  # whoever asked is gone
                    pass

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                pass

        self._server = Server((self.address, 0), Handler)
        self.url = f"http://{self.address}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def asked(self) -> list[str]:
        """Paths in the order in which they were asked for, without robots.txt."""
        return [path for _, path, _ in self.log if path != "/robots.txt"]

    def wait_for_path(self, path: str, seconds: float = 60.0) -> None:
        """Wait until a path was asked for."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: any(one == path for _, one, _ in self.log), seconds):
                raise TimeoutError(path)

    def wait_for(self, count: int, seconds: float = 60.0) -> None:
        """Wait until so many pages were asked for."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: len(self.asked()) >= count, seconds):
                raise TimeoutError(f"{len(self.asked())} of {count} requests")


def crawl(*given: object, cwd: Path, code: int = 0, quiet: bool = True) -> subprocess.CompletedProcess[str]:
    """``inlink crawl``, to its end."""
    done = subprocess.run(
        [*INLINK, *(["-q"] if quiet else []), "crawl", *map(str, given)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONWARNINGS": "error::ResourceWarning"},
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


@contextmanager
def begin(*given: object, cwd: Path, quiet: bool = True) -> "Iterator[subprocess.Popen[str]]":
    """``inlink crawl``, under way; it does not outlive the block."""
    with subprocess.Popen(
        [*INLINK, *(["-q"] if quiet else []), "crawl", *map(str, given)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()  # does nothing where it has ended


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
