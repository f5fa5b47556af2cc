"""The client of a server: what a spider does with it, and what it makes of a server that is away or forgets."""

import asyncio
import contextlib
import http.client
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np
import pytest

from crawlstrategies import EAGER
from inlink.client import batches, channel
from inlink.client.remote import own_name
from inlink.client.server import ServerClient
from inlink.client.spider import connect
from inlink.errors import ParameterError, ServerError, SessionError
from inlink.protocol import Crawled, Failed, HostDelay, Link, Receipt, Released
from loopback import loopback
from patience import wait_until
from served import Served, served

A, B, C = (f"http://a.com/{name}" for name in "abc")
COUNTED = [Receipt(True)]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name in ("INLINK_TOKEN", "INLINK_TOKEN_FILE", "INLINK_CA", "INLINK_CERT", "INLINK_INSECURE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(channel, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(channel, "LONGEST_PAUSE", 0.1)


def serving(place: Any, **more: Any) -> contextlib.AbstractContextManager[Served]:
    return served(place / "c", policy="first-come", politeness=EAGER, **more)


def spider(url: str, work: Callable[[ServerClient], Awaitable[Any]], owner: str | None = None) -> str:
    """Do some work with a client; returns what it was told."""

    async def run() -> str:
        client, told = await connect(url, owner=owner)
        assert isinstance(client, ServerClient)
        try:
            await work(client)
        finally:
            await client.close()
        return told

    return asyncio.run(run())


def crawl_of(server: Served) -> str:
    return f"{server.url}/v1/crawls/c"


@contextlib.contextmanager
def lossy(server: Served, loses: Callable[[str], bool]) -> Iterator[str]:
    """A way to a server on which some replies get lost: the URL of the crawl there."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            way = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            way.request(self.command, self.path, body, dict(self.headers.items()))
            reply = way.getresponse()
            content = reply.read()
            way.close()
            if loses(f"{self.command} {self.path.rpartition('/')[2]}"):
                self.close_connection = True
                return
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with loopback(Handler) as between:
        yield f"http://127.0.0.1:{between.server_port}/v1/crawls/c"


def test_texts_that_json_cannot_hold_and_sitemaps(tmp_path):
    async def work(client: ServerClient) -> None:
        assert await client.seed([Link(A, 1.0, b"\x00carried"), "mailto:x", "http://a.com/\udc80"]) == 1
        (task,) = (await client.next(9)).tasks
        assert (task.url, task.carried) == (A, b"\x00carried")
        links = [B, (C, np.float32(0.5)), ("/d", 1), Link("/f", 1.0, b"more", "POST:1", "\udc80"), "/\udc80"]
        assert await client.report([Crawled(task.lease, links, 0.25, b"\xff")]) == COUNTED
        (first, *_, last) = (await client.next(9)).tasks
        assert await client.report([Failed(first.lease, "no \udc80", 404)]) == COUNTED
        assert (last.url, last.carried) == ("http://a.com/f#POST:1", b"more")
        assert await client.sitemap([("http://a.com/map", None, 0.5), ("/\udc80", 1.0, None)]) == 1
        with pytest.raises(ParameterError, match="triples"):
            await client.sitemap([("http://a.com/map",)])  # type: ignore[list-item]

    with serving(tmp_path) as server:
        assert spider(crawl_of(server), work).startswith(f"{crawl_of(server)}: ")
        # Closing gives back the tasks that are out.
        assert server.crawl("GET", "standing")[1]["leased"] == 0


def test_replies_that_are_lost_change_nothing(tmp_path):
    """Each request's first two replies get lost, and no page is lost or answered for twice."""
    seen: dict[str, int] = {}
    drops = threading.Lock()

    def loses(what: str) -> bool:
        if what.startswith("DELETE"):
            return False
        with drops:
            seen[what] = seen.get(what, 0) + 1
            return seen[what] % 3 != 0 and what != "POST sessions"

    async def work(client: ServerClient) -> None:
        assert await client.seed([f"http://a.com/{k}" for k in range(6)]) in (0, 6)
        fetched = []
        for _ in range(3):
            tasks = (await client.next(2)).tasks
            fetched += [task.url for task in tasks]
            assert await client.report([Crawled(task.lease) for task in tasks]) == COUNTED * 2
        assert sorted(fetched) == [f"http://a.com/{k}" for k in range(6)]

    with serving(tmp_path) as server, lossy(server, loses) as url:
        spider(url, work)
        assert server.crawl("GET", "standing")[1]["states"] == {"crawled": 6}
    assert seen["POST next"] == seen["POST answers"] == 9


def test_a_server_that_goes_away_and_comes_back_is_waited_for(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "inlink.client")

    async def run(first: Served, stack: contextlib.ExitStack) -> None:
        client, _ = await connect(crawl_of(first))
        await client.seed([A, B])
        (one,) = (await client.next(1)).tasks
        await asyncio.to_thread(stack.close)
        report = asyncio.ensure_future(client.report([Crawled(one.lease, [C])]))
        asked = asyncio.ensure_future(client.next(9))
        await asyncio.to_thread(wait_until, lambda: "is away" in caplog.text, "the client to notice")
        assert not report.done()
        with serving(tmp_path, port=first.port) as again:
            assert await report == COUNTED
            found = [task.url for task in (await asked).tasks]
            found += [task.url for task in (await client.next(9)).tasks]
            assert sorted(found) == [B, C]
            assert again.crawl("GET", "standing")[1]["leased"] == 2
            await client.close()
            assert again.crawl("GET", "standing")[1]["leased"] == 0

    with contextlib.ExitStack() as stack:
        asyncio.run(run(stack.enter_context(serving(tmp_path)), stack))
    said = [one.getMessage() for one in caplog.records if one.name == "inlink.client"]
    assert len(said) == 2, said
    assert said[0].startswith("the server is away")
    assert "is back after" in said[1]


def test_a_client_that_closes_while_the_server_is_away_does_not_wait(tmp_path, caplog):
    async def run(first: Served, stack: contextlib.ExitStack) -> None:
        client, _ = await connect(crawl_of(first))
        await client.seed([A])
        assert len((await client.next(1)).tasks) == 1
        await asyncio.to_thread(stack.close)
        asked = asyncio.ensure_future(client.next(1))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(ServerError):
            await asked

    with contextlib.ExitStack() as stack:
        asyncio.run(run(stack.enter_context(serving(tmp_path)), stack))
    assert "1 task was not given back" in caplog.text


def test_a_session_that_ended_is_followed_by_another(tmp_path, caplog):
    async def work(client: ServerClient) -> None:
        await client.seed([A, B, C])
        one, two = (await client.next(2)).tasks
        (session,) = server.crawl("GET", "events")[1]["activity"]["sessions"]
        assert server.crawl("DELETE", f"sessions/{session['session']}")[0] == 200
        (other,) = (await client.next(1)).tasks
        answers = [Crawled(one.lease), HostDelay(A, 0.0), Crawled(other.lease)]
        assert [one.counted for one in await client.report(answers)] == [False, False, True]
        assert await client.report([Crawled(two.lease)]) == [Receipt(False)]
        left = {task.url for task in (await client.next(9)).tasks}
        assert left == {A, B, C} - {other.url}

    with serving(tmp_path) as server:
        spider(crawl_of(server), work)
    assert "without 2 lost tasks, to be handed out again later" in caplog.text
    assert caplog.text.count("dropped 1 answer for tasks of the session that ended") == 2


def test_two_spiders_of_one_name_do_not_fight_for_ever(tmp_path):
    async def work(client: ServerClient) -> None:
        for _ in range(2):
            other, _ = await connect(crawl_of(server), owner="same")
            try:
                await client.next(1)
            finally:
                await other.close()

    with (
        serving(tmp_path) as server,
        pytest.raises(SessionError, match="another spider works under the name 'same'"),
    ):
        spider(crawl_of(server), work, owner="same")
    assert own_name("x") != own_name("x")
    assert len(own_name("ü" * 300).encode()) <= 200


@pytest.mark.slow
def test_a_spider_that_works_long_keeps_its_tasks(tmp_path):
    async def work(client: ServerClient) -> None:
        await client.seed([A])
        (task,) = (await client.next(1)).tasks
        renewed = ("POST", "/v1/crawls/{name}/sessions/{session}", 200)
        await asyncio.to_thread(wait_until, lambda: server.site.requests[renewed] > 8, "renewals")
        assert (await client.next(1)).tasks == []
        assert await client.report([Crawled(task.lease)]) == COUNTED

    # Eight renewals take more than twice as long as a lease runs.
    with serving(tmp_path, lease_seconds=0.6) as server:
        spider(crawl_of(server), work)


def test_large_reports_go_in_parts(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(batches, "BATCH_BYTES", 5_000)
    monkeypatch.setattr(batches, "MOST_BYTES", 50_000)

    async def work(client: ServerClient) -> None:
        await client.seed([A, B, C])
        one, two, three = (await client.next(3)).tasks
        answers = [
            Crawled(one.lease, [f"/{k:0100d}" for k in range(40)]),
            Crawled(two.lease, [f"/{k:0200d}" for k in range(1000)]),
            Crawled(three.lease, ["/"] * 10_001),
        ]
        assert await client.report(answers + [Released(9)] * 1100) == COUNTED * 3 + [Receipt(False)] * 1100
        assert await client.seed([f"http://b.com/{k}" for k in range(10_010)]) == 10_010

    with serving(tmp_path) as server:
        spider(crawl_of(server), work)
        # Of the second page those links are kept that fit in.
        assert 3 + 40 + 200 < server.crawl("GET", "info")[1]["pages"] - 10_010 < 3 + 40 + 300
    assert "has 10,001 links: a server takes the first 10000" in caplog.text
    assert "of 1,000 links" in caplog.text


def test_a_body_for_another_machine_is_compressed(tmp_path, monkeypatch):
    sent: list[str | None] = []

    async def work(client: ServerClient) -> None:
        await client.seed([f"http://b.com/{k}" for k in range(1000)])

    request = http.client.HTTPConnection.request

    def noted(self, method, url, body=None, headers=None, **more):
        if url.endswith("seeds"):
            sent.append(headers.get("Content-Encoding"))
        return request(self, method, url, body, headers or {}, **more)

    with serving(tmp_path) as server:
        monkeypatch.setattr(http.client.HTTPConnection, "request", noted)
        monkeypatch.setattr(channel, "is_loopback", lambda _: False)
        spider(crawl_of(server), work)
        assert server.crawl("GET", "standing")[1]["known"] == 1000
    assert sent == ["gzip"]


def test_settings_that_the_server_decides_are_refused():
    with pytest.raises(ParameterError, match="remove damping, politeness here") as refused:
        asyncio.run(connect("http://127.0.0.1:1/v1/crawls/c", politeness={"delay": 1}, damping=0.5))
    assert "\n" not in str(refused.value)
