"""The client in memory is a true twin: a folder's client answers alike, whatever a spider does."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import EAGER
from inlink.client.folder import FolderClient
from inlink.client.spider import Client, connect
from inlink.protocol import Answer, Crawled, Excluded, Failed, Receipt, Redirected, Released, Tasks
from memoryclient import MemoryClient
from served import served

URLS = [f"http://a.com/{name}" for name in "abcdef"]
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


async def told(client: Client, steps: list[tuple[Any, ...]]) -> list[Any]:
    """A client's replies to a spider that does these steps; leases are named by their place in the order of tasks."""
    said: list[Any] = []
    leases: list[int] = []

    def tasks(found: Tasks) -> list[tuple[str, int]]:
        leases.extend(task.lease for task in found.tasks)
        return [(task.url, task.depth) for task in found.tasks]

    def receipt(one: Receipt) -> Any:
        if one.task is not None:
            leases.append(one.task.lease)
        return one.counted, one.task and one.task.url

    for kind, *rest in steps:
        if kind == "seed":
            said.append(await client.seed(rest[0]))
        elif kind == "next":
            said.append(tasks(await client.next(rest[0])))
        elif rest[0] < len(leases):
            said += [receipt(one) for one in await client.report([answer(kind, leases[-1 - rest[0]], rest)])]
        standing = await client.standing()
        said.append((standing.known, standing.crawled, standing.waiting, standing.leased))
    return said


@pytest.mark.slow
@given(st.lists(STEPS, max_size=12))
def test_both_clients_say_the_same(steps):
    async def run() -> None:
        with tempfile.TemporaryDirectory() as place:
            real = FolderClient(Path(place) / "c", policy="first-come", politeness=EAGER)
            await real.open()
            try:
                expected = await told(real, steps)
            finally:
                await real.close()
        assert await told(MemoryClient(), steps) == expected

    asyncio.run(run())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_a_servers_client_says_the_same(steps):
    async def run(url: str) -> None:
        client, _ = await connect(url)
        try:
            said = await told(client, steps)
        finally:
            await client.close()
        assert await told(MemoryClient(), steps) == said

    with tempfile.TemporaryDirectory() as place:
        given = {"policy": "first-come", "politeness": EAGER}
        with served(Path(place) / "c", **given) as server:
            asyncio.run(run(f"{server.url}/v1/crawls/c"))


def test_open_tasks_come_back_when_a_client_closes():
    async def run() -> None:
        client = MemoryClient()
        await client.seed(URLS[:2])
        (task,) = (await client.next(1)).tasks
        assert await client.report([Released(task.lease), Released(task.lease)]) == [
            Receipt(True),
            Receipt(False),
        ]
        assert len((await client.next(5)).tasks) == 2
        await client.close()
        assert (len(client.waiting), client.out) == (2, {})

    asyncio.run(run())
