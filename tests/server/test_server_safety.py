"""A server and those who mean ill: names, origins, tokens, bodies, odd requests, TLS."""

import contextlib
import gzip
import http.client
import itertools
import json
import re
import socket
import subprocess
import sys
import time
from unittest.mock import ANY

import pytest

from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError, InputError, ParameterError, StoreError
from inlink.server import bodies, connection
from inlink.server.app import ENDPOINTS
from inlink.server.keeper import MOST_QUEUED
from inlink.server.people import PAGES
from inlink.server.run import Options, serve
from inlink.server.tokens import Tokens
from patience import PATIENCE, wait_until
from served import served

SEEDS = "/v1/crawls/c/seeds"
A = "http://a.example/"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("safe") / "c") as running:
        yield running


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("localhost.", 200),
        ("[::1]:8000", 200),
        ("127.0.0.1:1", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8000", 421),
        ("127.0.0.2", 421),
        ("", 421),
    ],
)
def test_only_its_own_names_are_answered(server, host, status):
    found, raw, headers = server.raw("GET", "/healthz", headers={"Host": host})
    assert found == status
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    if status == 421:
        assert "--name" in json.loads(raw)["error"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
def test_the_address_of_the_connection_is_a_name_of_the_server(tmp_path):
    with served(tmp_path / "c", host="127.0.0.2") as running:
        for host, status in (("127.0.0.2", 200), ("127.0.0.2:8000", 200), ("127.0.0.3", 421)):
            with contextlib.closing(
                http.client.HTTPConnection("127.0.0.2", running.port, timeout=PATIENCE)
            ) as to:
                to.request("GET", "/healthz", headers={"Host": host})
                assert to.getresponse().status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
    ],
)
def test_pages_of_other_sites_change_nothing(server, headers, status):
    headers = {name: value.format(port=server.port) for name, value in headers.items()}
    found, told = server.ask("POST", SEEDS, {"urls": []}, headers)
    assert found == status, told


@pytest.mark.slow
def test_a_link_from_another_site_may_be_followed(server):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert server.ask("GET", "/v1/crawls", None, headers)[0] == 200
    assert server.ask("GET", "/v1/crawls", None, headers | {"Sec-Fetch-Dest": "iframe"})[0] == 403


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"", {}, 400),
        (b"\xff\xfe", {}, 400),
        (b'{"urls": ["\xff"]}', {}, 400),
        (b"[" * 100_000, {}, 422),
        (b'{"urls": ' + b"[" * 100_000, {}, 422),
        (b"[]", {}, 422),
        (b'{"urls": [], "more": 1}', {}, 422),
        (b'{"urls": [["http://a.example/", NaN]]}', {}, 400),
        (b'{"urls": [["http://a.example/", 1e999]]}', {}, 422),
        (b'{"urls": [["http://a.example/", 1e39]]}', {}, 422),
        (b'{"urls": []}', {"Content-Type": "text/plain"}, 415),
        (b'{"urls": []}', {"Content-Encoding": "br"}, 415),
        (b'{"urls": []}', {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b'{"urls": []}', mtime=0), {"Content-Encoding": "gzip"}, 200),
        (gzip.compress(b'{"urls": []}', mtime=0)[:-3], {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b'{"urls": []}', mtime=0) * 2, {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(bytes(bodies.MOST_INFLATED + 1), 1, mtime=0), {"Content-Encoding": "gzip"}, 413),
    ],
)
def test_bodies_that_are_not_taken(server, body, headers, status):
    found, raw, _ = server.raw("POST", SEEDS, body, {"Content-Type": "application/json"} | headers)
    assert found == status, raw
    if status != 200:
        told = json.loads(raw)["error"]
        assert told
        assert "\n" not in told


@pytest.mark.parametrize(
    ("content_type", "is_json"),
    [
        (None, False),
        ("", False),
        ("text/plain", False),
        ("text/plain; application/json", False),
        ("application/x-www-form-urlencoded", False),
        ("multipart/form-data; boundary=x", False),
        ("application/jsonp", False),
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
    ],
)
def test_every_change_is_taken_as_json_only(server, content_type, is_json):
    changes = [one for one in (*ENDPOINTS, *PAGES.all) if one.method != "GET"]
    assert len(changes) > 15
    headers = {} if content_type is None else {"Content-Type": content_type}
    for change in changes:
        path = change.path.format(name="c", session="0", host="a.example")
        status, raw, _ = server.raw(change.method, path, None, headers)
        # Aduana's client names no type.
        taken = is_json or (content_type is None and path == "/crawled")
        assert (status != 415) == taken, (change.method, path, raw)
    assert server.crawl("POST", "resume")[0] == 200


def test_a_large_body_is_refused_while_it_streams(server):
    def endless():
        for _ in range(1 << 20):
            yield b" " * (1 << 16)

    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    with contextlib.closing(connection), pytest.raises((ConnectionError, http.client.BadStatusLine)):
        # The server closes the connection long before 64 GiB.
        connection.request("POST", SEEDS, endless(), {"Content-Type": "application/json"})
    status, raw, _ = server.raw(
        "POST", SEEDS, b"{}", {"Content-Type": "application/json", "Content-Length": str(9 << 20)}
    )
    assert (status, b"9,437,184" in raw) == (413, True)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1/crawls/c/", 404),
        ("GET", "/v1/crawls/..%2f..%2fetc/info", 404),
        ("DELETE", "/v1/crawls/c/info", 405),
        ("GET", "/v1/crawls/c/find", 422),
        ("GET", "/v1/crawls/c/find?expression=(", 422),
        ("GET", "/v1/crawls/c/find?expression=a&count=0", 422),
        ("GET", "/v1/crawls/c/find?expression=a&count=1001", 422),
        ("GET", "/v1/crawls/c/find?expression=a&expression=b", 422),
        ("GET", "/v1/crawls/c/find?expression=%ff", 422),
        ("GET", "/v1/crawls/c/find?expression=a&cursor=zz", 422),
        ("GET", "/v1/crawls/c/hosts?count=x", 422),
        ("GET", "/v1/crawls/c/top?ranking=../../x", 422),
        ("GET", "/v1/crawls/c/page?url=http://unknown.example/", 404),
        ("DELETE", "/v1/crawls/c/sessions/x", 404),
        ("DELETE", "/v1/crawls/c/sessions/99999999999999999999999", 404),
        ("DELETE", "/v1/crawls/c/sessions/9223372036854775808", 422),
    ],
)
def test_odd_requests_get_one_line(server, method, path, status):
    found, refusal = server.ask(method, path)
    assert found == status, refusal
    assert refusal["error"]
    assert "\n" not in refusal["error"]
    assert str(server.site.keepers["c"].folder.parent) not in refusal["error"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "hosts/unknown.example/block", {"seconds": 1}, 404),
        ("PUT", "hosts/a.example/block", {"seconds": -1}, 422),
        ("PUT", "hosts/a.example/block", {}, 422),
        ("PUT", "hosts/a.example/delay", {"seconds": 1e300}, 422),
        ("PUT", "hosts/a.example/budget", {"pages": -1}, 422),
        ("PUT", "hosts/a.example/budget", {"pages": 1.5}, 422),
        ("PUT", "rules", {"deny": ["("]}, 422),
        ("PUT", "rules", {"denied": []}, 422),
        ("PATCH", "settings", {"policy": "hits"}, 422),
        ("PATCH", "settings", {"max_retrys": 1}, 422),
        ("PATCH", "settings", {"revisit": "os:system"}, 422),
        ("PATCH", "settings", {"max_retries": 2, "lease_seconds": -1}, 422),
        ("PATCH", "settings", [], 422),
        ("POST", "next", {"session": 1, "n": 0}, 422),
        ("POST", "next", {"session": 1, "n": 1001}, 422),
        ("POST", "next", {"session": 1, "wait": 21}, 422),
        ("POST", "next", {"session": 1, "wait": -1}, 422),
        ("POST", "next", {"session": 1, "wat": 1}, 422),
        ("POST", "next", {"session": "x"}, 422),
        ("POST", "next", {"session": 77}, 409),
        ("POST", "answers", {"session": 1, "answers": [{"type": "wild", "lease": 1}]}, 422),
        ("POST", "answers", {"session": 1, "answers": [{"type": "crawled", "lease": -1}]}, 422),
        ("POST", "answers", {"session": 1, "answers": [{"type": "crawled", "lease": 1, "links": [A] * 10_001}]}, 422),
        ("POST", "answers", {"session": 1, "answers": [{"type": "failed", "lease": 1}] * 1001}, 422),
        ("POST", "seeds", {"urls": [A] * 10_001}, 422),
        ("POST", "seeds", {"urls": [1]}, 422),
        ("POST", "sitemap", {"entries": [[A, None, 3.0]]}, 422),
        ("POST", "sessions", {"owner": ""}, 422),
        ("POST", "sessions", {"owner": "x" * 201}, 422),
        ("POST", "sessions", {"owner": "x", "silent_after": 0}, 422),
    ],
    ids=itertools.count(),
)  # fmt: skip
def test_impossible_values_are_refused_and_change_nothing(server, method, path, body, status):
    if server.crawl("POST", "sessions", {"owner": "one", "rejoin": True})[1]["session"]["number"] == 1:
        server.crawl("POST", "seeds", {"urls": [A]})
    before = server.crawl("GET", "settings")[1], server.crawl("GET", "hosts")[1]
    found, refusal = server.crawl(method, path, body)
    assert found == status, refusal
    assert refusal["error"]
    assert "\n" not in refusal["error"]
    assert (server.crawl("GET", "settings")[1], server.crawl("GET", "hosts")[1]) == before


def test_too_many_requests_at_a_time_are_told_to_come_later(server, monkeypatch):
    keeper = server.site.keepers["c"]
    monkeypatch.setattr(keeper, "_queued", MOST_QUEUED)
    status, _, headers = server.raw("GET", "/v1/crawls/c/info")
    assert (status, headers["Retry-After"]) == (503, "1")


@pytest.mark.slow
def test_roles(tmp_path, monkeypatch):
    monkeypatch.setattr("inlink.server.site.TOKENS_SECONDS", 0.0)
    tokens = Tokens(tmp_path / "tokens.json")
    texts = {role: tokens.add(role, role) for role in ("reader", "spider", "admin")}
    texts["other"] = tokens.add("other", "admin", crawl="another")
    assert not any(text in tokens.file.read_text() for text in texts.values())
    assert tokens.file.stat().st_mode & 0o077 == 0
    asked = [("GET", "info", None), ("POST", "seeds", {"urls": []}), ("POST", "pause", None)]
    with served(tmp_path / "c", tokens=tokens.file) as server:
        for name, expected in (
            (None, [401, 401, 401]),
            ("reader", [200, 403, 403]),
            ("spider", [200, 200, 403]),
            ("admin", [200, 200, 200]),
            ("other", [403, 403, 403]),
        ):
            server.headers = {} if name is None else {"Authorization": f"Bearer {texts[name]}"}
            assert [server.crawl(*one)[0] for one in asked] == expected, name
        server.headers = {"Authorization": "Bearer nothing"}
        assert server.crawl("GET", "info")[0] == 401
        assert server.ask("GET", "/healthz")[0] == 200
        # a token that is removed opens nothing any more
        tokens.remove("admin")
        server.headers = {"Authorization": f"Bearer {texts['admin']}"}
        assert server.crawl("GET", "info")[0] == 401


def test_tokens_are_named_once_and_files_are_checked(tmp_path):
    tokens = Tokens(tmp_path / "t.json")
    tokens.add("one", "reader")
    for name in ("one", "", "../x", "a b", "x" * 81):
        with pytest.raises(ParameterError):
            tokens.add(name, "reader")
    with pytest.raises(ParameterError):
        tokens.remove("two")
    for text in (b"{", b"[]", b'{"tokens": [{"name": "x"}]}', b"\xff"):
        (tmp_path / "bad.json").write_bytes(text)
        with pytest.raises(InputError, match="no file of tokens"):
            Tokens(tmp_path / "bad.json")


def test_a_file_of_tokens_that_becomes_unreadable_is_named_in_the_log_only(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("inlink.server.site.TOKENS_SECONDS", 0.0)
    file = tmp_path / "t.json"
    good = Tokens(file).add("one", "reader")
    with served(tmp_path / "c", tokens=file) as server:
        file.write_bytes(b"{")
        assert server.ask("GET", "/v1/crawls") == (401, ANY)
        server.headers = {"Authorization": f"Bearer {good}"}
        assert server.ask("GET", "/v1/crawls")[0] == 200
        assert "is no file of tokens" in caplog.text
        file.unlink()
        file.write_bytes(b'{"tokens": []}')
        server.headers = {"Authorization": "Bearer wrong"}
        assert server.ask("GET", "/v1/crawls")[0] == 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": "0.0.0.0"}, "inlink token add"),
        ({"host": "0.0.0.0", "with_token": True}, "--insecure"),
        ({"key": "k.pem"}, "--tls-cert"),
        ({"cert": "no.pem", "key": "no.pem"}, "no certificate"),
        ({"cert": "no.pem", "self_signed": True}, "not both"),
        ({"host": "no.such.name.invalid", "insecure": True, "with_token": True}, "another --host"),
    ],
)
def test_options_that_would_let_strangers_in_are_refused(tmp_path, options, said):
    options = dict(options)
    file = tmp_path / "tokens.json"
    if options.pop("with_token", False):
        Tokens(file).add("one", "admin")
    with pytest.raises(InlinkError, match=said):
        serve([tmp_path / "c"], Options(tokens=file, **options))
    assert not (tmp_path / "c").exists()


@pytest.mark.slow
def test_faults_of_a_crawl_do_not_name_its_folder(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise StoreError(f"{tmp_path / 'c'}: no space left")

    with served(tmp_path / "c") as server:
        monkeypatch.setattr("inlink.server.keeper.Crawl", refuse)
        monkeypatch.setattr(Crawl, "next", refuse)
        wait_until(lambda: server.ask("GET", "/v1/crawls")[1]["faults"], "the fault")
        for path in ("/v1/crawls", "/v1/crawls/c/standing", "/v1/crawls/c/events"):
            raw = server.raw("GET", path)[1]
            assert b"no space left" in raw
            assert str(tmp_path).encode() not in raw
        monkeypatch.undo()


@pytest.mark.slow
def test_the_server_says_its_addresses_and_closes_its_crawls_if_it_does_not_begin_to_serve(tmp_path):
    lines = []

    def say(line):
        lines.append(line)
        if line.startswith("dashboard"):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        serve([tmp_path / "c"], Options(port=0, tokens=tmp_path / "t"), say)
    assert re.fullmatch(r"(http://127\.0\.0\.1:\d+/)v1/crawls/c\n.*: \1", "\n".join(lines[-2:]))
    with Crawl(tmp_path / "c") as crawl:
        assert crawl.seed(["http://a.example/"]) == 1


def test_two_crawls_of_one_name_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="rename"):
        serve([tmp_path / "a" / "c", tmp_path / "b" / "c"], Options(tokens=tmp_path / "t"))


def test_a_session_belongs_to_the_token_that_began_it(tmp_path):
    tokens = Tokens(tmp_path / "tokens.json")
    headers = {
        name: {"Authorization": f"Bearer {tokens.add(name, 'spider')}"} for name in ("alice", "alice2")
    }

    def begin(server, name, **more):
        server.headers = headers[name]
        found = server.crawl("POST", "sessions", {"owner": "one", **more})[1]["session"]
        assert found["owner"] == "one"
        return found["number"]

    def uses(server, session):
        asked = {"session": session, "n": 1}
        answers = {"session": session, "answers": []}
        return [
            server.crawl("POST", "next", asked),
            server.crawl("POST", "answers", answers),
            server.crawl("POST", f"sessions/{session}"),
        ]

    with served(tmp_path / "c", tokens=tokens.file) as server:
        mine = begin(server, "alice")
        # The same name under another token is another owner, whose session ends nobody's.
        begin(server, "alice2")
        assert [status for status, _ in uses(server, mine)] == [409] * 3
        status, told = server.crawl("DELETE", f"sessions/{mine}")
        assert (status, told["kind"]) == (409, "SessionError")
        assert told["error"] == f"session {mine} belongs to another token: begin a new session"
        server.headers = headers["alice"]
        assert [status for status, _ in uses(server, mine)] == [200] * 3
    with served(tmp_path / "c", tokens=tokens.file) as server:
        server.headers = headers["alice2"]
        assert [status for status, _ in uses(server, mine)] == [409] * 3
        assert begin(server, "alice", rejoin=True) == mine
        assert server.crawl("DELETE", f"sessions/{mine}")[0] == 200
        server.headers = headers["alice2"]
        assert "has ended" in server.crawl("POST", "next", {"session": mine})[1]["error"]


@pytest.mark.slow
def test_tokens_that_two_processes_make_at_once_are_all_kept(tmp_path):
    code = (
        "import sys\nfrom pathlib import Path\nfrom inlink.server.tokens import Tokens\nsys.stdin.readline()\n"
        "for k in range(20):\n    Tokens(Path(sys.argv[1])).add(f'{sys.argv[2]}-{k}', 'reader')\n"
    )
    file = tmp_path / "new" / "tokens.json"
    makers = [
        subprocess.Popen([sys.executable, "-c", code, str(file), name], stdin=subprocess.PIPE, text=True)
        for name in "ab"
    ]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    for maker in makers:
        maker.communicate()
        assert maker.returncode == 0
    assert {one.name for one in Tokens(file).all()} == {f"{name}-{k}" for name in "ab" for k in range(20)}


def drips(sock, text):
    """Send byte after byte until the other side has closed the connection or replied; return what it said."""
    sock.settimeout(0.02)
    for byte in text:
        try:
            sock.sendall(bytes([byte]))
            return sock.recv(1 << 16)
        except TimeoutError:
            continue
        except ConnectionError:
            return b""
    raise AssertionError("the client was waited for")


HEAD = b"POST /v1/crawls/c/seeds HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.slow
def test_clients_that_drip_are_cut_off(server, monkeypatch):
    monkeypatch.setattr(bodies, "SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        assert drips(slow, b" " * 10_000).startswith(b"HTTP/1.1 408 ")
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(connection, "WHOLE_SECONDS", 0.2)
    for first in (b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            if first:
                slow.sendall(first)
                assert slow.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
            assert drips(slow, HEAD + b"X: " + b"x" * 10_000) == b""
    # Nothing at all is a request that drips, too; so is a body that nobody waits for.
    for text in (b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.settimeout(PATIENCE)
            slow.sendall(text)
            with contextlib.suppress(ConnectionError):
                while slow.recv(1 << 16):
                    pass


@pytest.mark.slow
def test_a_client_that_does_not_read_is_cut_off(server, monkeypatch):
    monkeypatch.setattr(connection, "READ_SECONDS", 0.2)
    with socket.create_connection(("127.0.0.1", server.port)) as deaf:
        deaf.settimeout(PATIENCE)
        deaf.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            deaf.send(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10_000)
        mine = deaf.getsockname()
        wait_until(
            lambda: mine not in [one.client for one in server.server.server_state.connections],
            "the server to close the connection",
        )


@pytest.mark.slow
def test_a_request_that_is_whole_in_time_is_served(server, monkeypatch):
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.settimeout(PATIENCE)
        for part in (HEAD[:20], HEAD[20:], b"Content-Length: 11\r\n\r\n", b'{"urls"', b":[]}"):
            slow.sendall(part)
            time.sleep(0.02)
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        # Head and body of a reply come together.
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.recv(1 << 16).endswith(b'{"ok":true,"faults":{}}')
        slow.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.recv(1 << 16).startswith(b"HTTP/1.1 405 ")


@pytest.mark.slow
def test_a_server_that_has_said_its_address_listens_and_has_little_garbage_to_look_through(tmp_path):
    code = (
        "import gc, os, socket, sys\nfrom pathlib import Path\nfrom inlink.server.run import Options, serve\n"
        "def say(line):\n"
        "    if line.startswith('http'):\n"
        "        socket.create_connection(('127.0.0.1', int(line.split(':')[2].split('/')[0])))\n"
        "        print(gc.get_freeze_count(), len(gc.get_objects()), flush=True)\n"
        "        os._exit(0)\n"
        "serve([Path(sys.argv[1]) / 'c'], Options(port=0, tokens=Path(sys.argv[1]) / 't'), say)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    frozen, others = map(int, run.stdout.split())
    assert frozen > 20 * others, run.stderr
