"""URLFrontier's server and clients that send rubbish, go away, or ask for too much."""

import asyncio
import contextlib
import queue
import socket
import threading
import time

import grpc
import pytest

import inlink
from frontiered import Frontier, frontier
from inlink.server.selfsigned import make
from inlink.server.urlfrontier import door, intake, puts
from inlink.server.urlfrontier.door import MOST_BYTES
from inlink.server.urlfrontier.wire import SERVICE
from patience import PATIENCE, wait_until

OK, SKIPPED, FAIL = 0, 1, 2
URL = "http://a.example/"


def tasks(client: Frontier) -> int:
    async def count() -> int:
        return len(asyncio.all_tasks())

    return asyncio.run_coroutine_threadsafe(count(), client.loop).result(PATIENCE)


def code(call) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert "\n" not in caught.value.details()
    return caught.value.code().name


@pytest.mark.slow
def test_rubbish_is_refused_and_leaves_nothing_behind(tmp_path):
    with frontier(tmp_path / "crawl") as client:
        calls = client.calls
        assert client.put(client.discovered(URL)) == [(URL, OK)]
        before = tasks(client)
        for raw in (b"\xff\xff\xff", b"\x0a\x02\xff\xfe", b"\x0a\x7f"):
            assert code(lambda raw=raw: calls["GetURLStatus"](raw, timeout=PATIENCE)) == "INVALID_ARGUMENT"
            assert code(lambda raw=raw: list(calls["PutURLs"](iter([raw])))) == "INVALID_ARGUMENT"
            assert code(lambda raw=raw: list(calls["PutDiscovered"](iter([raw])))) == "INVALID_ARGUMENT"
        assert code(lambda: list(calls["GetURLs"](b"\x1a\x02\xff\xfe"))) == "INVALID_ARGUMENT"
        huge = b"\x0a" + bytes([0x80, 0x80, 0x80, 0x08]) + b"x" * (MOST_BYTES * 2)
        assert code(lambda: calls["GetURLStatus"](huge, timeout=PATIENCE)) == "RESOURCE_EXHAUSTED"
        # Too much metadata, URLs of all kinds, numbers at their ends.
        many = client.info(f"{URL}many")
        for k in range(200_000):
            many.metadata[str(k)].SetInParent()
        assert client.put_batch(many) == [SKIPPED]
        odd = [
            "",
            "x",
            "http://",
            "http://[::1]:99999/",
            "http://a.example/\n\x00",
            "javascript:1",
            "h" * 10_000,
        ]
        assert client.put_batch(*map(client.info, odd)) == [SKIPPED] * len(odd)
        assert client.put(client.known(f"{URL}y", 2**64 - 1), client.known("x")) == [
            (f"{URL}y", OK),
            ("x", SKIPPED),
        ]
        most = 2**32 - 1
        client.ask("BlockQueueUntil", key="a.example", time=2**64 - 1)
        assert client.ask("GetURLs") == []
        client.ask("BlockQueueUntil", key="a.example", time=1)
        assert [info.url for info in client.ask("GetURLs", delay_requestable=most)] == [URL]
        assert code(lambda: client.ask("SetDelay", delay_requestable=most)) == "INVALID_ARGUMENT"
        assert client.ask("PurgeURLs", key="a.example", days=most).value == 0
        assert client.ask("ListURLs", start=most, size=most) == []
        assert list(client.ask("ListQueues", start=most, size=most).values) == []
        bad = {"fetch_statusCode": ["9" * 400], "_redirTo": ["nowhere"]}
        assert client.put(client.known(URL, 0, **bad)) == [(URL, OK)]
        wait_until(lambda: tasks(client) <= before, "tasks to end")


def test_streams_that_are_cancelled_leave_nothing_behind(tmp_path):
    with frontier(tmp_path / "crawl") as client:
        client.put_batch(*(client.info(f"http://h{k}.example/") for k in range(3000)))
        before = tasks(client)
        for name, made in (
            ("PutURLs", client.discovered(URL)),
            ("PutDiscovered", client.make("DiscoveredBatch", ID="b")),
        ):
            items: queue.Queue = queue.Queue()
            items.put(made)
            stream = client.calls[name](iter(items.get, None))
            next(stream)
            stream.cancel()
            items.put(None)
        # URLs that were not read go back.
        stream = client.calls["GetURLs"](client.make("GetParams", delay_requestable=3600))
        for _ in range(5):
            next(stream)
        stream.cancel()
        wait_until(lambda: tasks(client) <= before, "tasks to end")
        wait_until(lambda: client.ask("GetStats").size + client.ask("GetStats").inProcess == 3001, "the rest")
        assert client.put(client.discovered(f"{URL}z")) == [(f"{URL}z", OK)]


def test_an_answer_waits_for_the_links_of_its_page(tmp_path, monkeypatch):
    other, first = "http://b.example/", [f"{URL}1", f"{URL}2"]
    monkeypatch.setattr(intake, "HOLD_SECONDS", 0.1)
    with frontier(tmp_path / "crawl") as client:
        client.put_batch(client.info(URL), client.info(other, url_path=["http://unknown.example/"]))
        client.ask("GetURLs")
        items: queue.Queue = queue.Queue()
        acks = client.calls["PutURLs"](iter(items.get, None), timeout=PATIENCE)
        items.put(client.known(other))
        assert other == next(acks).ID
        # From here on only the end of the stream ends the wait.
        monkeypatch.setattr(intake, "HOLD_SECONDS", PATIENCE)
        items.put(client.known(URL))
        items.put(client.discovered(first[0], url_path=[other, URL]))
        assert first[0] == next(acks).ID
        assert client.put_batch(client.info(first[1], url_path=[URL])) == [OK]
        items.put(None)
        assert [ack.ID for ack in acks] == [URL]
    with inlink.Crawl(tmp_path / "crawl") as crawl:
        assert [row.url for row in crawl.view.links(URL, "from").rows] == first
        assert crawl.page(URL).crawls == 1


@pytest.mark.slow
def test_many_streams_at_once_and_an_end_amid_them(tmp_path):
    told: list[tuple[str, int]] = []
    codes: set[str] = set()

    def put(client: Frontier, k: int) -> None:
        try:
            told.extend(client.put(*(client.discovered(f"http://h{k}.example/{i}") for i in range(500))))
        except grpc.RpcError as error:
            codes.add(error.code().name)

    with frontier(tmp_path / "crawl") as client:
        threads = [threading.Thread(target=put, args=(client, k)) for k in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(told) > 500, "the first streams")
    for thread in threads:
        thread.join()
    assert codes <= {"UNAVAILABLE", "CANCELLED"}
    with inlink.Crawl(tmp_path / "crawl") as crawl:
        assert all(crawl.page(url) is not None for url, status in told if status == OK)


def test_tls(tmp_path):
    with frontier(tmp_path / "crawl", tls=make(tmp_path / "tls", ["127.0.0.1"])) as client:
        assert client.put_batch(client.info(URL)) == [OK]


@pytest.mark.slow
def test_a_client_that_does_not_read_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(puts, "MOST_UNREAD", 10)
    name = "x" * 10_000
    with frontier(tmp_path / "crawl") as client:
        item, sent = client.discovered(URL), []
        item.ID = name

        def items():
            for k in range(20_000):
                sent.append(k)
                yield item

        acks = client.calls["PutURLs"](items(), timeout=PATIENCE)
        next(acks)
        # What is on its way fills the buffers of both sides, and then nothing moves.
        size = -1
        while size != len(sent):
            size = len(sent)
            time.sleep(0.5)
        assert size < 20_000
        acks.cancel()
        assert client.put(client.discovered(f"{URL}z")) == [(f"{URL}z", OK)]


def test_metadata_other_than_a_token_are_ignored(tmp_path):
    with frontier(tmp_path / "crawl", needs_token=True) as client:
        client.metadata = [("cookie", "inlink-0=x"), ("x-rubbish-bin", b"\xff\x00")]
        assert code(lambda: client.ask("GetStats")) == "UNAUTHENTICATED"


@pytest.mark.slow
def test_the_token_is_checked_before_the_arguments(tmp_path):
    with frontier(tmp_path / "crawl", needs_token=True) as client:
        good = client.site.tokens.add("one", "admin")
        rubbish, huge = b"\xff\xff\xff", b"x" * (MOST_BYTES * 2)
        assert set(client.calls) == set(SERVICE.methods_by_name)
        for token, raw, expected in (
            (None, rubbish, "UNAUTHENTICATED"),
            (None, huge, "UNAUTHENTICATED"),
            ("wrong", rubbish, "UNAUTHENTICATED"),
            (good, rubbish, "INVALID_ARGUMENT"),
            (good, huge, "RESOURCE_EXHAUSTED"),
        ):
            metadata = [] if token is None else [("authorization", f"Bearer {token}")]
            for method in client.service.method:
                sent = iter([raw]) if method.client_streaming else raw

                def call(method=method, sent=sent, metadata=metadata):
                    reply = client.calls[method.name](sent, metadata=metadata, timeout=PATIENCE)
                    return list(reply) if method.server_streaming else reply

                assert code(call) == expected, method.name


def test_connections_have_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(door, "MOST_CONNECTIONS", 5)
    with frontier(tmp_path / "crawl") as client, contextlib.ExitStack() as stack:
        client.ask("GetStats")
        host, _, port = client.where.rpartition(":")
        sockets = [
            stack.enter_context(socket.create_connection((host, int(port)), PATIENCE)) for _ in range(12)
        ]
        for one in sockets:
            one.setblocking(False)
        wait_until(lambda: sum(map(is_closed, sockets)) >= 12 - 4, "the others to be closed")
        client.ask("GetStats")


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed a connection."""
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_links_that_are_too_long_do_not_wait_for_their_page():
    async def run() -> int:
        waiting = intake.Intake(None)  # type: ignore[arg-type]
        waiting.link(URL, f"{URL}{'x' * 10_000}")
        waiting.link(f"{URL}{'x' * 10_000}", URL)
        waiting.link(URL, f"{URL}ok")
        return waiting.trailed

    assert asyncio.run(run()) == 1
