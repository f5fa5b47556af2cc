"""A server and hostile strangers: what they send and hold is bounded, and others are answered meanwhile."""

import asyncio
import contextlib
import http.client
import json
import resource
import socket
import ssl
import threading
import time
from functools import partial

import pytest

from inlink.errors import ParameterError
from inlink.server import connection, logins, run
from inlink.server.bodies import MOST_OF_STRANGERS
from inlink.server.connection import MOST_FIELDS, MOST_HEAD, Strangers, _Joined, peer_of
from inlink.server.run import Options, _tls, serve
from inlink.server.selfsigned import make
from inlink.server.tokens import Tokens
from patience import PATIENCE, wait_until
from served import served

HOST = b"Host: localhost\r\n"
GET = b"GET /healthz HTTP/1.1\r\n" + HOST
JSON = HOST + b"Content-Type: application/json\r\n"
POST = b"POST /v1/crawls/c/seeds HTTP/1.1\r\n" + JSON
LOGIN = b"POST /login HTTP/1.1\r\n" + JSON
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = b"Content-Length: 1000000000000\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edge")
    token = Tokens(folder / "tokens.json").add("one", "admin")
    with served(folder / "c", needs_token=True, edge={"peer_connections": 64}) as running:
        running.headers = {"Authorization": f"Bearer {token}"}
        yield running


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Tests that cut clients off connect again at once."""
    monkeypatch.setattr(connection, "DELAY_SECONDS", 0.0)


def connect(server, address="127.0.0.1") -> socket.socket:
    """A client with an address of its own: all of 127/8 is loopback."""
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE, (address, 0))


def read(client) -> bytes:
    """What the server says until it cuts the connection off."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(1 << 16):
            said += part
    return said


def send(client, data: bytes) -> None:
    """Send until the server has cut the connection off."""
    with contextlib.suppress(ConnectionError):
        client.sendall(data)


def send_often(client, data: bytes, times: int) -> None:
    """Send the same bytes again and again."""
    for _ in range(times):
        client.sendall(data)


def statuses(said: bytes) -> list[int]:
    """The statuses of replies, of which no body holds such a line."""
    return [int(part[:3]) for part in said.split(b"HTTP/1.1 ")[1:]]


def fill(head: bytes, byte: bytes = b"a") -> bytes:
    """A head that is as large as the server takes, and does not end."""
    return head + byte * ((MOST_HEAD - len(head)) // len(byte))


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (fill(GET + b"X: "), [431]),
        (fill(b"GET /"), [414]),
        (fill(b"", b"\r\n"), [431]),
        (GET + b"a:\r\n" * (MOST_FIELDS + 1), [431]),
        (fill(GET, b"a: " + b"x" * 1000 + b"\r\n") + b"b: " + b"x" * 2000, [431]),
        (bytes(range(256)), [400]),
        (b"GET / HTTP/9.9\r\n\r\n", [400]),
        (b"GET http://[/ HTTP/1.1\r\n\r\n", [400]),
        (b"GET / HTTP/1.1\r\n\r\n" + bytes(range(256)), [421, 400]),
        # Refused before the body is read.
        (POST + ENDLESS + b"a" * 1000, [401]),
        (POST + CHUNKED + b"1\r\na\r\n" * 1000, [401]),
        (POST + CHUNKED + b"1;a=" + b"x" * 10_000, [401]),
        (POST + CHUNKED + b"0\r\n" + b"a:\r\n" * 1000, [401]),
        (POST + b"Expect: 100-continue\r\n" + ENDLESS, [401]),
        (LOGIN + ENDLESS + b"{", [413]),
        (LOGIN + b"Content-Length: %d\r\n\r\n{" % (MOST_OF_STRANGERS + 1), [413]),
        (LOGIN + CHUNKED + b"1\r\n{\r\n" * 1000, [411]),
        (GET + CHUNKED + b"zz\r\n", [200]),
        (b"POST /nothing HTTP/1.1\r\n" + HOST + ENDLESS, [404]),
        (b"PUT /healthz HTTP/1.1\r\n" + HOST + ENDLESS, [405]),
        (GET.replace(b"localhost", b"evil.example") + ENDLESS, [421]),
        (GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + b"\x81\x00" * 100, [200]),
        (GET + b"\r\n" + GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + GET, [200, 200]),
        (GET + b"Connection: close\r\n\r\n" + GET, [200]),
    ],
)
def test_what_a_stranger_sends_is_refused_and_the_connection_cut(server, sent, expected):
    with connect(server) as client:
        send(client, sent)
        said = read(client)
    assert statuses(said) == expected, said
    if expected[-1] >= 400:
        assert json.loads(said.rpartition(b"\r\n\r\n")[2])["error"]


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (GET + b"X: ", b"a" * MOST_HEAD),
        (b"GET /", b"a" * MOST_HEAD),
        (b"", b"\r\n" * MOST_HEAD),
        (b"", (GET + b"\r\n") * 2000),
        (b"", b"GET / HTTP/1.1\r\n\r\n" * 5000),
        (b"", LOGIN + b'Content-Length: 13\r\n\r\n{"token":"x"}' + GET * 1000),
        (POST + ENDLESS, b"a" * MOST_HEAD),
        (LOGIN + ENDLESS, b"a" * MOST_HEAD),
        (POST + CHUNKED, b"1\r\na\r\n" * 10_000),
        (POST + CHUNKED + b"1;", b"a" * MOST_HEAD),
        (GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"a" * MOST_HEAD),
    ],
)
def test_what_has_no_end_is_cut_off_and_others_are_answered_meanwhile(server, first, more):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(server, f"127.0.0.{2 + k % 4}")) for k in range(20)]
        for client in clients:
            send(client, first)
        for _ in range(4):
            for client in clients:
                send(client, more)
            assert server.raw("GET", "/healthz")[0] == 200
        for client in clients:
            # The server reads no 256 MB of any client.
            with pytest.raises(ConnectionError):
                send_often(client, more, (256 << 20) // len(more))
    # Kilobytes. What 20 clients have sent so far, some 10 MB each, was not kept.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


@pytest.mark.slow
def test_a_request_of_a_stranger_that_comes_in_pieces_is_served(server):
    whole = LOGIN + b'Content-Length: 13\r\n\r\n{"token":"x"}'
    with connect(server) as client:
        for text in (GET + b"\r\n", b"\r\n" + GET + b"\r\n", fill(GET + b"X: ")[:-4] + b"\r\n\r\n"):
            for part in (text[:5], text[5:-3], text[-3:]):
                client.sendall(part)
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        # Several requests at once get a reply each.
        client.sendall((GET + b"\r\n") * 20 + whole + b"GET /healthz HTTP/1.0\r\n" + HOST + b"\r\n")
        assert statuses(read(client)) == [200] * 20 + [403, 200]


def test_requests_with_a_token_have_no_end_either(server, monkeypatch):
    head = POST + b"".join(
        b"%s: %s\r\n" % (name.encode(), text.encode()) for name, text in server.headers.items()
    )
    with connect(server) as client:
        client.sendall(head + b'Content-Length: 11\r\n\r\n{"urls":[]}')
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        # Fields after a body are no part of the request, and their number is limited too.
        trailers = b'b\r\n{"urls":[]}\r\n0\r\n%s\r\n'
        client.sendall(head + CHUNKED + trailers % b"Host: evil.example\r\nAuthorization: x\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        send(client, head + CHUNKED + trailers % (b"a:\r\n" * 200))
        assert statuses(read(client)) == [431]
    monkeypatch.setattr(connection, "MOST_BYTES", 1000)
    with connect(server) as client:
        send(client, head + CHUNKED + b"1\r\n \r\n" * 20_000)
        assert statuses(read(client)) == [413]
    with connect(server) as client:
        send(client, fill(head + b"X: "))
        assert statuses(read(client)) == [431]


def test_a_refusal_of_a_large_body_is_seen(server):
    """A spider whose token was removed must hear it. It reads when it has sent its report."""
    for length in (1 << 20, 7 << 20):
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        with contextlib.closing(client):
            client.request(
                "POST", "/v1/crawls/c/answers", b" " * length, {"Content-Type": "application/json"}
            )
            reply = client.getresponse()
            assert (reply.status, reply.will_close) == (401, True)


@pytest.mark.slow
def test_slow_and_silent_strangers_are_cut_off(server, monkeypatch):
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(connection, "LINGER_SECONDS", 0.2)
    for text in (b"", b"\r\n", b"GET", GET + b"X: a", GET + b"\r\n\r\n", GET + b"\r\n" + GET):
        with connect(server) as client:
            send(client, text)
            assert statuses(read(client)) == [200] * text.count(b"\r\n\r\n")
    # A client that does not close after its refusal, and one that says no more.
    for text in (POST + ENDLESS, POST + b"Content-Length: 100\r\n\r\n"):
        with connect(server) as client:
            send(client, text)
            assert statuses(read(client)) == [401]
            wait_until(partial(is_gone, server, client.getsockname()), "the server to close")
    for text in (b"", GET, GET + b"X: "):
        with connect(server) as client:
            send(client, text)
            client.shutdown(socket.SHUT_WR)
            assert read(client) == b""
    wait_until(lambda: len(server.server.strangers) == 0, "the strangers to be gone")


def is_gone(server, client) -> bool:
    return client not in [one.client for one in list(server.server.server_state.connections)]


def test_a_peer_that_was_cut_off_waits_and_others_do_not(server, monkeypatch):
    monkeypatch.setattr(connection, "DELAY_SECONDS", 60.0)
    with connect(server, "127.0.3.1") as client:
        send(client, b"rubbish\r\n\r\n")
        assert statuses(read(client)) == [400]
    with connect(server, "127.0.3.1") as client, connect(server, "127.0.3.2") as other:
        for one in (client, other):
            one.sendall(GET + b"\r\n")
        assert other.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(1)
    monkeypatch.setattr(connection, "DELAY_SECONDS", 0.2)
    with connect(server, "127.0.3.3") as client:
        send(client, b"rubbish\r\n\r\n")
        assert statuses(read(client)) == [400]
    with connect(server, "127.0.3.3") as client:
        client.sendall(GET)
        time.sleep(0.01)
        client.sendall(b"Connection: close\r\n\r\n")
        assert statuses(read(client)) == [200]


def test_a_reply_to_a_client_that_has_gone_is_no_error(server, monkeypatch, caplog):
    """A reply is written in a later turn of the event loop than the one in which it was given."""
    write, written = _Joined.write, threading.Event()

    def write_later(transport, data):
        transport.abort()
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, write, transport, data)
        loop.call_later(0.02, written.set)

    with monkeypatch.context() as patch, connect(server, "127.0.3.4") as client:
        patch.setattr(_Joined, "write", write_later)
        client.sendall(GET + b"\r\n")
        assert read(client) == b""
        assert written.wait(PATIENCE)
    with connect(server, "127.0.3.4") as client:
        client.sendall(GET + b"Connection: close\r\n\r\n")
        assert statuses(read(client)) == [200]
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_event_streams_need_a_token(server):
    with connect(server) as client:
        for _ in range(100):
            client.sendall(b"GET /v1/crawls/c/events HTTP/1.1\r\n" + HOST + b"\r\n")
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 401 ")


def test_a_further_stranger_of_a_peer_ends_the_oldest(tmp_path):
    token = Tokens(tmp_path / "tokens.json").add("one", "reader")
    bearer = b"Authorization: Bearer " + token.encode() + b"\r\n"
    with (
        served(tmp_path / "c", needs_token=True, edge={"peer_connections": 3}) as server,
        contextlib.ExitStack() as stack,
    ):
        known = stack.enter_context(connect(server))
        asked = b"GET /v1/crawls HTTP/1.1\r\n" + HOST + bearer + b"\r\n"
        known.sendall(asked)
        assert known.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        other = stack.enter_context(connect(server, "127.0.0.2"))
        clients = [stack.enter_context(connect(server)) for _ in range(6)]
        for client in clients[:3]:
            assert read(client) == b""
        for client in (*clients[3:], other):
            client.sendall(GET + b"\r\n")
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        known.sendall(asked)
        assert known.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert len(server.server.strangers) == 4


def test_strangers_have_a_bound_in_all_and_spiders_keep_their_place(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "MOST_STRANGERS", 5)
    token = Tokens(tmp_path / "tokens.json").add("one", "reader")
    with served(tmp_path / "c", needs_token=True) as server, contextlib.ExitStack() as stack:
        asked = (
            b"GET /v1/crawls HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + token.encode() + b"\r\n\r\n"
        )
        spiders = []
        for _ in range(10):
            spiders.append(stack.enter_context(connect(server)))
            spiders[-1].sendall(asked)
            assert spiders[-1].recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        strangers = [stack.enter_context(connect(server, f"127.0.1.{k + 1}")) for k in range(20)]
        for stranger in strangers[:15]:
            assert read(stranger) == b""
        # A spider that comes late shows its token at once.
        late = stack.enter_context(connect(server))
        for spider in (late, *spiders):
            spider.sendall(asked)
            assert spider.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert len(server.server.strangers) <= 5


def test_a_handshake_of_tls_has_a_bound(tmp_path, monkeypatch):
    cert, key = make(tmp_path / "tls", ["crawl.example"])
    trusting = ssl.create_default_context(cafile=cert)
    context = _tls(Options(cert=cert, key=key))
    edge = {"peer_connections": 5}
    with served(tmp_path / "c", context=context, edge=edge) as server, contextlib.ExitStack() as stack:

        def is_answered() -> bool:
            with (
                connect(server, "127.0.0.2") as plain,
                trusting.wrap_socket(plain, server_hostname="127.0.0.1") as client,
            ):
                client.sendall(GET + b"Connection: close\r\n\r\n")
                return client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")

        clients = [stack.enter_context(connect(server)) for _ in range(20)]
        for client in clients:
            send(client, b"\x16\x03\x01\x02\x00\x01")
        for client in clients[:15]:
            assert read(client) == b""
        assert is_answered()
        wait_until(lambda: len(server.server.strangers) == 5, "the others to be gone")
        for client in clients[15:]:
            send(client, b"x" * 100_000)
            read(client)
        wait_until(lambda: server.server.strangers.connections == 0, "all to be gone")
        monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
        for text in (b"", b"\x16\x03\x01\x02\x00\x01"):
            client = stack.enter_context(connect(server))
            send(client, text)
            assert read(client) == b""
        monkeypatch.undo()
        assert is_answered()
        wait_until(lambda: server.server.strangers.connections == 0, "all to be gone")
        # The server ends while a handshake is under way.
        stack.enter_context(connect(server))
        wait_until(lambda: server.server.strangers.connections == 1, "the client")


def guess(server, address, token="wrong", **headers) -> int:
    """The status of a login."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, PATIENCE, (address, 0))
    with contextlib.closing(client):
        body = json.dumps({"token": token})
        client.request("POST", "/login", body, {"Content-Type": "application/json"} | headers)
        return client.getresponse().status


def guess_many(server, addresses, **headers) -> list[int]:
    """Wrong tokens, all at once; the statuses, in order."""
    told: list[int] = []
    threads = [
        threading.Thread(target=lambda address=address: told.append(guess(server, address, **headers)))
        for address in addresses
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(told)


@pytest.mark.slow
def test_wrong_tokens_lock_out_nobody_else(tmp_path, monkeypatch):
    monkeypatch.setattr(logins, "WRONG_SECONDS", PATIENCE)
    monkeypatch.setattr(run, "DRAIN_SECONDS", 1)
    right = Tokens(tmp_path / "tokens.json").add("one", "reader")
    with served(tmp_path / "c", needs_token=True) as server, contextlib.ExitStack() as stack:
        wrong = LOGIN + b'Content-Length: 13\r\n\r\n{"token":"x"}'
        clients = [stack.enter_context(connect(server, "127.0.0.2")) for _ in range(8)]
        for client in clients[: logins.MOST_WRONG]:
            client.sendall(wrong)
        wait_until(lambda: server.site.logins.waiting.total() == logins.MOST_WRONG, "the guesses")
        for client in clients[logins.MOST_WRONG :]:
            client.sendall(wrong * 2)
            # The refusal ends the connection.
            assert statuses(read(client)) == [503]
        assert guess(server, "127.0.0.2", right) == 503
        assert guess(server, "127.0.0.1", right) == 200
        # The number of guesses that wait is bounded. Beyond it, a right token is taken as before.
        monkeypatch.setattr(logins, "MOST_WAITING", logins.MOST_WRONG)
        assert guess_many(server, ["127.0.0.3"] * 6) == [503] * 6
        assert guess(server, "127.0.0.3", right) == 200
        assert list(server.site.logins.waiting) == ["127.0.0.2"]


@pytest.mark.slow
def test_only_proxies_say_for_whom_they_ask(tmp_path, monkeypatch):
    monkeypatch.setattr(logins, "WRONG_SECONDS", 0.01)
    monkeypatch.setattr(run, "DRAIN_SECONDS", 1)
    peers = []
    begin = logins.Logins.begin

    async def noted(self, scope, text):
        peers.append(peer_of(scope["client"][0]))
        return await begin(self, scope, text)

    monkeypatch.setattr(logins.Logins, "begin", noted)
    edge = {"proxies": ["127.0.0.9", "127.1.0.0/16"], "peer_connections": 2}
    with served(tmp_path / "c", needs_token=True, edge=edge) as server:
        for address, forwarded, expected in (
            ("127.0.0.2", "203.0.113.5", "127.0.0.2"),
            ("127.0.0.9", "203.0.113.5", "203.0.113.5"),
            ("127.0.0.9", "203.0.113.1, 203.0.113.5", "203.0.113.5"),
            ("127.0.0.9", "203.0.113.1, 203.0.113.5, 127.1.2.3", "203.0.113.5"),
            ("127.1.2.3", "127.0.0.9, 203.0.113.5:1234", "203.0.113.5"),
            ("127.0.0.9", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("127.0.0.9", "nonsense" * 1000, ""),
            ("127.0.0.9", "", "127.0.0.9"),
        ):
            assert guess(server, address, **{"X-Forwarded-For": forwarded}) == 403
            assert peers.pop() == expected
        # A proxy's connections are bounded only while they serve a stranger.
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(connect(server, "127.0.0.9")) for _ in range(10)]
            for client in clients:
                client.sendall(GET + b"X-Forwarded-For: 203.0.113.5\r\n\r\n")
                assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
            assert len(server.server.strangers) == 0
            monkeypatch.setattr(logins, "WRONG_SECONDS", PATIENCE)
            for k, client in enumerate(clients[:4]):
                forwarded = b"X-Forwarded-For: 203.0.113.%d\r\n" % (5 if k else 6)
                client.sendall(LOGIN + forwarded + b'Content-Length: 13\r\n\r\n{"token":"x"}')
            assert read(clients[1]) == b""
            assert len(server.server.strangers) == 3
            # Other peers than proxies count as soon as they connect.
            other = stack.enter_context(connect(server, "127.0.0.2"))
            other.sendall(GET + b"\r\n")
            assert other.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
            assert len(server.server.strangers) == 4


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("203.0.113.5", "203.0.113.5"),
        ("::ffff:203.0.113.5", "203.0.113.5"),
        ("::FFFF:cb00:7105", "203.0.113.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("fe80::1%lo", "fe80::"),
        ("::1", "::"),
        ("", ""),
        ("unknown", ""),
        ("203.0.113.5:80", ""),
    ],
)
def test_a_peer_is_an_address_or_a_network_of_ipv6(address, peer):
    assert peer_of(address) == peer


def test_a_network_of_proxies_is_checked(tmp_path):
    for proxy in ("proxy.example", "10.0.0.1/8", "*", ""):
        with pytest.raises(ParameterError, match="such as 10"):
            serve([tmp_path / "c"], Options(tokens=tmp_path / "t", proxies=[proxy]))
    assert not (tmp_path / "c").exists()


def test_strangers_take_turns_and_others_come_between():
    async def run() -> list[str]:
        strangers, done, ended = Strangers(2, 1000), list[str](), asyncio.Event()
        for name in "abc":
            strangers.take_turn(partial(done.append, name))
        strangers.take_turn(ended.set)
        while not ended.is_set():
            done.append("-")
            await asyncio.sleep(0)
        return done

    assert "".join(asyncio.run(run())) == "-a-b-c-"


def test_what_is_counted_is_forgotten(monkeypatch):
    class One:
        aborted = False

        def abort(self):
            self.aborted = True
            strangers.leave(self)

    strangers = Strangers(2, 1000)
    clients = [One() for _ in range(300)]
    for k, one in enumerate(clients):
        strangers.enter(one, f"2001:db8::{k:x}" if k % 2 else f"203.0.113.{k % 256}")
    assert len(strangers) == 150 + 2
    assert sum(one.aborted for one in clients) == 148
    for one in clients:
        strangers.leave(one)
    assert len(strangers) == 0
    # The peers that wait have a bound too: the first of many waits no longer.
    monkeypatch.setattr(connection, "DELAY_SECONDS", 60.0)
    addresses = [f"10.0.{k // 256}.{k % 256}" for k in range(connection.MOST_STRANGERS + 1)]
    for address in addresses:
        strangers.enter(clients[0], address)
        strangers.delay(clients[0])
    for address, waits in zip(addresses[:2], (False, True), strict=True):
        strangers.enter(clients[0], address)
        assert (strangers.wait(clients[0]) > 0) == waits
    # With few files left, a stranger makes way for a connection that has shown its token.
    few = Strangers(10, 3)
    for one in clients[:3]:
        one.aborted = False
        few.connections += 1
        few.enter(one, "203.0.113.5")
    few.leave(clients[2])
    assert not clients[0].aborted
    few.connections += 1
    few.enter(clients[3], "203.0.113.6")
    assert clients[0].aborted
