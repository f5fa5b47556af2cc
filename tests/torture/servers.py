"""A server and its two spiders, each killed with SIGKILL at random moments until the web is crawled."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from inlink import Crawl
from patience import PATIENCE
from torture.trial import until

__all__ = ["killed_server"]

HOSTS, START = 12, "http://h0.example/0"
SETTINGS = {"policy": "breadth-first", "politeness": {"delay": 0.0}, "retry_seconds": 0.05, "max_losses": 100}


def links_of(url: str, pages: int) -> list[str]:
    """The links of a page of a small web, of which every page can be reached."""
    number, random = int(url.rsplit("/", 1)[1]), Random(url)
    found = [2 * number + 1, 2 * number + 2, random.randrange(pages)]
    return [f"http://h{one % HOSTS}.example/{one}" for one in found if one < pages]


def killed_server(random: Random, place: Path) -> list[str]:
    """A web crawled by two spiders on one server: what was acknowledged holds, and no page counts twice."""
    folder, pages = place / "served", random.randrange(400, 1500)
    shutil.rmtree(folder, ignore_errors=True)
    told = [place / "told-0", place / "told-1"]
    for file in told:
        file.unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    roles: list[Callable[[], None]] = [
        lambda: _serve(folder, port),
        lambda: _crawl(port, 0, told[0], pages),
        lambda: _crawl(port, 1, told[1], pages),
    ]
    running = [_fork(roles[0])]
    _listens(port)
    running += [_fork(role) for role in roles[1:]]
    faults: list[str] = []
    for _ in range(random.randrange(3, 8)):
        time.sleep(random.uniform(0.02, 0.6))
        victim = random.choice([0, 0, 0, 1, 2])
        if _ended(running[victim]) is not None:
            break
        os.kill(running[victim], signal.SIGKILL)
        os.waitpid(running[victim], 0)
        running[victim] = _fork(roles[victim])
    over = until(PATIENCE)
    while (codes := [_ended(one) for one in running[1:]]).count(None) and not over():
        time.sleep(0.02)
    faults += [f"a spider ended with {code}" for code in codes if code != 0]
    # A server that was just started takes no signals yet.
    _listens(port)
    os.kill(running[0], signal.SIGTERM)
    code = os.waitstatus_to_exitcode(os.waitpid(running[0], 0)[1])
    if code:
        faults.append(f"the server ended with {code} after SIGTERM")
    return [*faults, *_compared(folder, pages, told)] or ["right"]


def _compared(folder: Path, pages: int, told: list[Path]) -> list[str]:
    """The differences between the crawl and the replies that the spiders got."""
    acknowledged = Counter(line for file in told if file.exists() for line in file.read_text().splitlines())
    faults = [f"{url} was acknowledged {count} times" for url, count in acknowledged.items() if count > 1]
    with Crawl(folder) as crawl:
        states = crawl.standing().states
        if states != {"crawled": pages}:
            faults.append(f"{pages} pages became {states}")
        for url in acknowledged:
            page = crawl.page(url)
            if page is None or page.crawls != 1:
                faults.append(f"{url} was acknowledged, and was crawled {page and page.crawls} times")
    return faults[:5]


def _serve(folder: Path, port: int) -> None:
    from inlink.server.run import Options, serve

    tokens = folder.with_name("no-tokens.json")
    serve([folder], Options(port=port, tokens=tokens, settings=SETTINGS), lambda line: None)


def _crawl(port: int, number: int, told: Path, pages: int) -> None:
    from inlink.client.server import ServerClient
    from inlink.protocol import Crawled

    async def run() -> None:
        client = ServerClient(f"http://127.0.0.1:{port}/v1/crawls/served", owner=f"spider-{number}")
        while True:
            # Opening does not wait for a server that is away.
            with contextlib.suppress(Exception):
                await client.open()
                break
            await asyncio.sleep(0.05)
        await client.seed([START])
        with told.open("a", buffering=1) as file:
            while True:
                found = await client.next(4, 1.0)
                answers = [Crawled(task.lease, list(links_of(task.url, pages))) for task in found.tasks]
                receipts = await client.report(answers) if answers else []
                for task, receipt in zip(found.tasks, receipts, strict=True):
                    if receipt.counted:
                        file.write(f"{task.url}\n")
                if not found.tasks and found.due_in is None and not found.out_elsewhere:
                    break
        await client.close()

    asyncio.run(run())


def _fork(work: Callable[[], None]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        code = 70
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def _ended(pid: int) -> int | None:
    """The exit code of a child; None while it runs. It stays a zombie, so that its number is not taken."""
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if found is None else found.si_status


def _listens(port: int) -> None:
    over = until(PATIENCE)
    while not over():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
