"""The way to a server: its URL, tokens and TLS, and servers that are none."""

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import msgspec
import pytest

from inlink.client import channel
from inlink.client.channel import AwayError, Channel, Place
from inlink.errors import InputError, ParameterError, ServerError, UnknownNodeError
from inlink.protocol import Standing
from inlink.server import selfsigned
from inlink.server.tokens import Tokens
from loopback import loopback
from served import Served, served


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("INLINK_TOKEN", "INLINK_TOKEN_FILE", "INLINK_CA", "INLINK_CERT", "INLINK_INSECURE"):
        monkeypatch.delenv(name, raising=False)


def standing(url: str) -> Standing:
    opened = Channel(url, patience=0)
    try:
        return opened.call("GET", "standing", Standing)
    finally:
        opened.close()


def crawl_of(server: Served, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{server.port}/v1/crawls/c"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://user:secret@a.com/v1/crawls/c", "must not contain a user or password"),
        ("http://user@a.com/v1/crawls/c", "must not contain a user or password"),
        ("ftp://a.com/v1/crawls/c", "not the URL of a crawl"),
        ("http://a.com/", "not the URL of a crawl"),
        ("http://a.com/v1/crawls/", "not the URL of a crawl"),
        ("http://a.com/v1/crawls/c/next", "not the URL of a crawl"),
        ("http://a.com/v1/crawls/c?x=1", "not the URL of a crawl"),
        ("http:///v1/crawls/c", "not the URL of a crawl"),
        ("http://a.com:x/v1/crawls/c", "is no URL"),
        ("http://[::1/v1/crawls/c", "is no URL"),
    ],
)
def test_urls_that_are_refused(url, said):
    with pytest.raises(ParameterError, match=said) as refused:
        Channel(url)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_places():
    place = Place(" https://[::1]/proxy/v1/crawls/my%20crawl/")
    assert (place.host, place.port, place.path, place.secure, place.loopback) == (
        "::1",
        443,
        "/proxy/v1/crawls/my%20crawl",
        True,
        True,
    )
    assert Place("http://localhost:8000/v1/crawls/ä").url == "http://localhost:8000/v1/crawls/%C3%A4"
    assert not Place("http://localhost.example.com/v1/crawls/c").loopback


def test_a_token_comes_from_the_environment_or_a_file(tmp_path, monkeypatch):
    tokens = tmp_path / "tokens.json"
    reader = Tokens(tokens).add("r", "reader")
    with served(tmp_path / "c", tokens=tokens) as server:
        with pytest.raises(ServerError, match=r"requires a token.*INLINK_TOKEN"):
            standing(crawl_of(server))
        monkeypatch.setenv("INLINK_TOKEN", "wrong")
        with pytest.raises(ServerError, match="token"):
            standing(crawl_of(server))
        monkeypatch.setenv("INLINK_TOKEN", reader)
        assert standing(crawl_of(server)).known == 0
        monkeypatch.delenv("INLINK_TOKEN")
        file = tmp_path / "token"
        file.write_text(reader + "\n")
        monkeypatch.setenv("INLINK_TOKEN_FILE", str(file))
        assert standing(crawl_of(server)).known == 0
        opened = Channel(crawl_of(server), patience=0)
        with pytest.raises(ServerError, match="takes the role 'admin'"):
            opened.call("POST", "pause", Standing, {})
        opened.close()
        for wrong in ("", "two words", "a\nb", "x" * 5000, "ä"):
            file.write_text(wrong)
            with pytest.raises(InputError, match="must hold one token"):
                standing(crawl_of(server))
        file.unlink()
        with pytest.raises(InputError, match="No such file"):
            standing(crawl_of(server))


def test_a_token_does_not_leave_the_machine_without_tls(monkeypatch):
    monkeypatch.setenv("INLINK_TOKEN", "secret")
    with pytest.raises(ParameterError, match="without TLS") as refused:
        Channel("http://a.example/v1/crawls/c")
    assert "secret" not in str(refused.value)
    Channel("https://a.example/v1/crawls/c").close()
    Channel("http://127.0.0.2/v1/crawls/c").close()
    monkeypatch.setenv("INLINK_INSECURE", "1")
    Channel("http://a.example/v1/crawls/c").close()


@pytest.mark.slow
def test_tls_with_a_ca_of_ones_own(tmp_path, monkeypatch):
    cert, key = selfsigned.make(tmp_path / "new" / "folder", ["127.0.0.1"])
    assert key.stat().st_mode & 0o077 == 0
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with served(tmp_path / "c", context=context) as server:
        with pytest.raises(ServerError, match=r"certificate is not trusted.*INLINK_CA"):
            standing(crawl_of(server, "https"))
        with pytest.raises(AwayError):
            standing(crawl_of(server))
        monkeypatch.setenv("INLINK_CA", str(cert))
        assert standing(crawl_of(server, "https")).known == 0
    monkeypatch.setenv("INLINK_CA", str(tmp_path / "none"))
    with pytest.raises(InputError, match="INLINK_CA"):
        Channel("https://127.0.0.1/v1/crawls/c")
    monkeypatch.setenv("INLINK_CA", str(cert))
    monkeypatch.setenv("INLINK_CERT", str(cert))
    with pytest.raises(InputError, match="INLINK_CERT"):
        Channel("https://127.0.0.1/v1/crawls/c")


@contextlib.contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[str]:
    """A server that says the same to everybody: the URL of a crawl there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with loopback(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}/v1/crawls/c"


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (200, b"<html>", ServerError, "not one of inlink's"),
        (200, b"[" * 100_000, ServerError, "not one of inlink's"),
        (200, b'{"known": "\xff"}', ServerError, "not one of inlink's"),
        (404, b"<html>", ServerError, "is this the URL of a crawl"),
        (404, b'{"error": "no such page", "kind": "UnknownNodeError"}', UnknownNodeError, "no such page"),
        (400, b'{"error": "x", "kind": "__all__"}', ServerError, "x"),
        (400, b'{"error": "a\\u001b[31m\\nb", "kind": "SystemExit"}', ServerError, r"a\\x1b\[31m b"),
        (502, b"", AwayError, "HTTP 502"),
        (503, b'{"error": "busy", "kind": "BusyError"}', AwayError, "busy"),
        (500, b'{"error": "the server failed", "kind": ""}', ServerError, "the server failed"),
        (200, b" " * 2000, ServerError, "more than 1,000 bytes"),
    ],
)
def test_replies_that_are_none(monkeypatch, status, body, kind, said):
    if said.startswith("more"):
        monkeypatch.setattr(channel, "MOST_REPLY", 1000)
    with answering(status, body) as url, pytest.raises(kind, match=said) as refused:
        standing(url)
    assert "\n" not in str(refused.value)


def test_redirects_are_not_followed(monkeypatch):
    monkeypatch.setenv("INLINK_TOKEN", "secret")
    with (
        answering(200, msgspec.json.encode({"stolen": 1})) as other,
        answering(302, b"", Location=other) as url,
        pytest.raises(ServerError, match="redirects"),
    ):
        standing(url)


def test_connections_are_kept_until_they_are_closed(tmp_path, monkeypatch):
    connections: list[http.client.HTTPConnection] = []
    connect = http.client.HTTPConnection.connect
    monkeypatch.setattr(
        http.client.HTTPConnection, "connect", lambda self: (connections.append(self), connect(self))[1]
    )
    with served(tmp_path / "c") as server:
        opened = Channel(crawl_of(server), patience=0)
        for _ in range(5):
            opened.call("GET", "standing", Standing)
        (connection,) = connections
        # A reply is two writes: Nagle's algorithm would hold back the second one for 40 ms.
        (accepted,) = server.server.server_state.connections
        assert accepted.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        connection.sock.shutdown(socket.SHUT_RDWR)
        opened.call("GET", "standing", Standing)
        assert len(connections) == 2
        opened.close()
        with pytest.raises(AwayError, match="was closed: connect again"):
            opened.call("GET", "standing", Standing)


def test_nobody_is_there():
    with answering(200, b"") as url:
        pass
    with pytest.raises(AwayError, match="refused"):
        standing(url)


def test_a_reply_that_is_cut_off_is_asked_for_again():
    whole = b'{"known":0,"crawled":0,"waiting":0,"leased":0,"states":{},"harvest":null,"hosts":[]}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(whole)
    replies = [head, head + whole[:40], head + whole]

    def serve() -> None:
        for reply in replies:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        opened = Channel(f"http://127.0.0.1:{listener.getsockname()[1]}/v1/crawls/c")
        try:
            assert opened.call("GET", "standing", Standing).states == {}
        finally:
            opened.close()
            thread.join()
