"""The pump: seeds, answers and tasks between Scrapy and a crawl, which is one in memory here."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from inlink.errors import StoreError
from inlink.protocol import Crawled, HostDelay, Receipt, Task
from inlink.scrapy.pump import LONGEST_LOOK, Pump, Told
from memoryclient import MemoryClient
from patience import PATIENCE

A, B, C = (f"http://a.com/{name}" for name in "abc")


class Door:
    """The other side of a pump: the tasks that are ready, and the answers that were taken in."""

    def __init__(self, client: MemoryClient, ahead: int = 2) -> None:
        self.client = client
        self.ready: list[Task] = []
        self.receipts: list[tuple[Told, Receipt]] = []
        self.broken = 0
        self.pump = Pump(
            client, ahead, lambda: len(self.ready), self.ready.extend,
            lambda told, receipt: self.receipts.append((told, receipt)), self.failed,
        )  # fmt: skip

    def failed(self) -> None:
        self.broken += 1

    async def settled(self) -> None:
        """Wait until no round is to come."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.sleep(0)
            while self.pump.busy:
                await asyncio.sleep(0.001)


def pumping(
    work: Callable[[Door], Awaitable[None]], client: MemoryClient | None = None, ahead: int = 2
) -> Door:
    async def run() -> Door:
        door = Door(client or MemoryClient(), ahead)
        await work(door)
        return door

    return asyncio.run(run())


def test_a_round_hands_in_seeds_then_answers_then_asks_for_what_there_is_room_for():
    async def work(door: Door) -> None:
        await door.settled()
        door.client.calls.clear()
        door.pump.seed(A, B)
        door.pump.seed(C)
        await door.settled()
        assert door.client.calls == [("seed", [A, B, C]), ("next", 2)]
        assert [task.url for task in door.ready] == [A, B]
        door.client.calls.clear()
        answer = Crawled(door.ready.pop(0).lease, [C])
        door.pump.tell(Told(answer))
        await door.settled()
        assert door.client.calls == [("report", [answer]), ("next", 1)]
        assert door.receipts == [(Told(answer), Receipt(counted=True))]
        assert [task.url for task in door.ready] == [B, C]
        await door.pump.close()

    pumping(work)


def test_no_tasks_are_asked_for_without_room():
    async def work(door: Door) -> None:
        door.pump.seed(A, B, C)
        await door.settled()
        assert len(door.ready) == 2
        door.client.calls.clear()
        door.pump.ask()
        await door.settled()
        assert door.client.calls == []
        await door.pump.close()

    pumping(work)


@pytest.mark.slow
def test_a_crawl_that_has_nothing_is_asked_again_by_itself():
    """Another process may have seeded it."""

    async def work(door: Door) -> None:
        await door.settled()
        assert door.ready == []
        await door.client.seed([A])
        async with asyncio.timeout(PATIENCE):
            while not door.ready:
                await asyncio.sleep(0.01)
        await door.pump.close()

    pumping(work)


def test_a_dry_crawl_is_not_asked_at_each_turn():
    async def work(door: Door) -> None:
        await door.settled()
        door.client.calls.clear()
        for _ in range(100):
            door.pump.ask()
        assert not door.pump.busy
        await door.pump.close()

    pumping(work)


@pytest.mark.parametrize(("elsewhere", "delayed"), [(0, 0.0), (1, LONGEST_LOOK)])
def test_a_reply_is_delayed_only_for_work_of_others_and_while_no_task_is_held(elsewhere, delayed):
    waits = []

    class Shared(MemoryClient):
        async def next(self, count, wait=0.0):
            waits.append(wait)
            return msgspec.structs.replace(await super().next(count), out_elsewhere=elsewhere)

    async def work(door: Door) -> None:
        await door.settled()
        for url in (A, B):
            door.pump.seed(url)
            await door.settled()
        await door.pump.close()

    pumping(work, Shared(), ahead=3)
    assert waits == [0.0, delayed, 0.0]


def test_closing_hands_in_what_is_left_and_asks_for_nothing():
    async def work(door: Door) -> None:
        door.pump.seed(A)
        await door.settled()
        door.client.calls.clear()
        answer = Crawled(door.ready.pop().lease, [B])
        door.pump.tell(Told(answer))
        door.pump.seed(C)
        await door.pump.close()
        assert door.client.calls == [("seed", [C]), ("report", [answer])]

    assert pumping(work).client.states == {A: "crawled", B: "discovered", C: "discovered"}


def test_a_hosts_delay_is_handed_in_and_nobody_is_told():
    async def work(door: Door) -> None:
        door.pump.tell(Told(HostDelay("http://a.com/", 5.0)))
        await door.settled()
        await door.pump.close()

    assert pumping(work).receipts == []


@pytest.mark.parametrize("error", [StoreError("the disk is full"), ValueError("a fault of ours")])
def test_a_crawl_that_cannot_go_on_is_told_once_and_nothing_is_kept(caplog, error):
    class Broken(MemoryClient):
        async def seed(self, urls):
            raise error

    async def work(door: Door) -> None:
        await door.settled()
        door.pump.tell(Told(Crawled(7)))
        door.pump.seed(A)
        async with asyncio.timeout(PATIENCE):
            while not door.broken:
                await asyncio.sleep(0.001)
        assert not door.pump.busy
        assert door.pump.due_in is None
        await door.pump.close()

    caplog.set_level(logging.ERROR)
    assert pumping(work, Broken()).broken == 1
    assert str(error) in caplog.text
    assert ("Traceback" in caplog.text) == isinstance(error, ValueError)
