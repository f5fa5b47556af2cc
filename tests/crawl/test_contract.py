"""One contract for the doors to a crawl: the clients of a folder, of a server and in memory answer alike.

``tests/client/test_client.py`` has the examples that hold for a folder and for a server.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import EAGER
from inlink.client.spider import Client, connect
from inlink.crawl.view import CrawlView
from inlink.protocol import (
    Answer,
    Crawled,
    Excluded,
    Failed,
    Receipt,
    Redirected,
    Released,
    Task,
)
from memoryclient import MemoryClient
from served import served

URLS = [f"http://a.com/{name}" for name in "abcdef"]
A, B, C = URLS[:3]


def spider(door: str, folder: Path, work: Callable[[Client], Awaitable[Any]]) -> Any:
    """Let a spider work through a door; return the result of its work."""

    async def run(*where: str, **settings: Any) -> Any:
        client = (await connect(*where, **settings))[0] if where else MemoryClient()
        try:
            return await work(client)
        finally:
            await client.close()

    given = {"policy": "first-come", "politeness": EAGER}
    if door == "server":
        with served(folder, **given) as server:
            return asyncio.run(run(f"{server.url}/v1/crawls/{folder.name}"))
    return asyncio.run(run(str(folder), **given) if door == "folder" else run())


both = pytest.mark.parametrize("door", ["folder", "server"])


STEPS = st.one_of(
    st.tuples(st.just("seed"), st.lists(st.sampled_from(URLS), max_size=3)),
    st.tuples(st.just("next"), st.integers(1, 3)),
    st.tuples(st.just("crawled"), st.integers(0, 3), st.lists(st.sampled_from(URLS), max_size=3)),
    st.tuples(st.just("failed"), st.integers(0, 3)),
    st.tuples(st.just("excluded"), st.integers(0, 3)),
    st.tuples(st.just("redirected"), st.integers(0, 3), st.sampled_from(URLS)),
)


def answer(kind: str, lease: int, rest: list[Any]) -> Answer:
    if kind == "crawled":
        return Crawled(lease, rest[1])
    if kind == "failed":
        return Failed(lease, "no", retry=False)
    return Excluded(lease, "no") if kind == "excluded" else Redirected(lease, rest[1])


def replies(steps: list[tuple[Any, ...]]) -> Callable[[Client], Awaitable[list[Any]]]:
    """A spider that does these steps and returns the replies; leases are named by their place in the order of tasks."""

    async def work(client: Client) -> list[Any]:
        heard: list[Any] = []
        leases: list[int] = []
        for kind, *rest in steps:
            tasks: list[Task | None] = []
            if kind == "seed":
                heard.append(await client.seed(rest[0]))
            elif kind == "next":
                tasks += (await client.next(rest[0])).tasks
            elif rest[0] < len(leases):
                for receipt in await client.report([answer(kind, leases[-1 - rest[0]], rest)]):
                    heard.append(receipt.counted)
                    tasks.append(receipt.task)
            leases += [task.lease for task in tasks if task is not None]
            heard.append([task and (task.url, task.depth) for task in tasks])
            standing = await client.standing()
            heard.append((standing.known, standing.crawled, standing.waiting, standing.leased))
        return heard

    return work


@pytest.mark.slow
@both
@settings(max_examples=25)
@given(st.lists(STEPS, max_size=12))
def test_whatever_a_spider_does_the_client_in_memory_answers_alike(door, steps):
    work = replies(steps)
    with tempfile.TemporaryDirectory() as place:
        assert spider(door, Path(place) / "c", work) == spider("memory", Path(), work)


@pytest.mark.parametrize("door", ["folder", "server", "memory"])
def test_open_tasks_come_back_when_a_client_closes(door, tmp_path):
    async def work(client: Client) -> Client:
        await client.seed([A, B])
        (task,) = (await client.next(1)).tasks
        assert await client.report([Released(task.lease), Released(task.lease)]) == [
            Receipt(True),
            Receipt(False),
        ]
        assert len((await client.next(5)).tasks) == 2
        return client

    client = spider(door, tmp_path / "c", work)
    if door == "memory":
        assert (len(client.waiting), client.out) == (2, {})
    else:
        assert CrawlView.open(tmp_path / "c").standing().states == {"discovered": 2}
