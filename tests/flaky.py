"""A server on this machine that fails now and then, for tests of files behind URLs."""

import http.server
from pathlib import Path

import pytest

from inlink.base import urlfiles
from loopback import loopback

__all__ = ["Flaky", "flaky_server"]


class Flaky(http.server.BaseHTTPRequestHandler):
    """Serves files of a folder, after answers that the test wants first, and cuts bodies."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        size = (self.server.folder / self.path.lstrip("/")).stat().st_size
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()

    def do_GET(self) -> None:
        server = self.server
        server.signed = self.headers.get("Authorization", "").partition("/")[0]
        server.asked.append((self.path, self.headers.get("Range")))
        if server.answers:
            code = server.answers.pop(0)
            if code is None:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(code)
            self.send_header("Content-Length", "0")
            if code == 429:
                self.send_header("Retry-After", server.retry_after)
            self.end_headers()
            return
        path = server.folder / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        start, size = 0, len(data)
        etag = server.etags.pop(0) if server.etags else '"1"'
        if self.headers.get("If-Match", etag) != etag:
            self.send_error(412)
            return
        if self.headers.get("Range") and server.ranges:
            first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
            start, data = int(first), data[: int(last or len(data)) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", etag)
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.end_headers()
        if server.cuts:
            self.wfile.write(data[start : start + server.cuts.pop(0)])
            self.close_connection = True
            return
        self.wfile.write(data[start:])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(name="server")
def flaky_server(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    waits: list[float] = []
    monkeypatch.setattr(urlfiles, "_wait", waits.append)
    with loopback(Flaky) as made:
        made.folder, made.asked, made.answers, made.cuts = tmp_path, [], [], []
        made.etags, made.ranges, made.waits, made.retry_after = [], True, waits, "7"
        made.url = f"http://127.0.0.1:{made.server_port}"
        yield made
