"""A crawl in several threads and in forked processes: one call at a time, in the process that opened it."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawlstrategies import EAGER
from gatecalls import A, B, clocked, refusals
from inlink.crawl import folder as folders
from inlink.crawl.crawl import Crawl
from inlink.crawl.view import CrawlView
from inlink.errors import InlinkError, InUseError
from inlink.frontier.policies import Policy
from inlink.store import log as logs
from patience import wait_until


class Slow(Policy):
    """A policy that waits until the test lets it go on."""

    inside, go_on = threading.Event(), threading.Event()
    waits = False

    def priority(self, pages: Any) -> Any:
        if Slow.waits:
            Slow.waits = False
            Slow.inside.set()
            Slow.go_on.wait()
        return np.zeros(len(pages), np.float32)


def test_a_second_thread_is_refused_at_once(tmp_path):
    crawl = clocked(tmp_path / "c", policy=Slow)
    crawl.seed([A])
    Slow.waits = True
    thread = threading.Thread(target=crawl.seed, args=([B],))
    thread.start()
    Slow.inside.wait()
    said = refusals(crawl)
    with pytest.raises(InUseError, match="has not returned"):
        crawl.close()
    Slow.go_on.set()
    thread.join()
    assert said == {
        (
            "InUseError",
            f"{tmp_path / 'c'}: another call on this crawl has not returned: use a crawl from one thread at a time, "
            "with a threading.Lock of your own around each call",
        )
    }
    assert crawl.page(B) is not None
    crawl.close()


@pytest.mark.slow
def test_many_threads_on_one_crawl_are_refused_or_served(tmp_path):
    """The process survives, and every URL that was acknowledged is there with its own links."""
    crawl = Crawl(tmp_path / "c", policy="best-first", politeness=EAGER)
    known: list[list[str]] = [[] for _ in range(4)]
    refused = [0] * 4
    begin = threading.Barrier(4)

    def work(which: int) -> None:
        begin.wait()
        for turn in range(400):
            url = f"http://h{which}.com/{turn}/"
            calls: list[tuple[Callable[..., Any], bool]] = [
                (partial(crawl.seed, [url]), True),
                (partial(crawl.crawled, url, [f"{url}{k}" for k in range(3)]), True),
                (partial(crawl.next, 1), False),
                (partial(crawl.why, url), False),
            ]
            for call, names_it in calls:
                try:
                    call()
                except InUseError:
                    refused[which] += 1
                except InlinkError:
                    pass
                else:
                    if names_it:
                        known[which].append(url)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sum(refused) > 0
    for _ in range(2):
        for url in {url for some in known for url in some}:
            page = crawl.page(url)
            assert page is not None
            links = {row.url for row in crawl.view.links(url).rows}
            assert links <= {f"{url}{k}" for k in range(3)}
        crawl.close()
        crawl = Crawl(tmp_path / "c")
    crawl.close()


def test_a_view_of_a_folder_is_for_one_thread_at_a_time_too(tmp_path):
    with clocked(tmp_path / "c") as crawl:
        crawl.seed([A])
    view = CrawlView.open(tmp_path / "c")
    said: list[str] = []

    def look() -> None:
        try:
            view.page(A)
        except InUseError as error:
            said.append(str(error))

    with view._gate:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert "has not returned" in said[0]
    assert view.page(A) is not None


# -- forks ------------------------------------------------------------------------------------------------------------


def in_fork(work: Callable[[], Any]) -> Any:
    """Call ``work`` in the child of a fork, and return its result, by way of JSON."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(work()).encode())
        except BaseException as error:
            os.write(writing, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def test_a_forked_child_is_refused_and_writes_nothing(tmp_path):
    crawl = clocked(tmp_path / "c")
    crawl.seed([A])
    size = (tmp_path / "c" / logs.EVENTS).stat().st_size

    def child() -> list[list[str]]:
        said = [list(one) for one in refusals(crawl)]
        crawl.close()
        return said

    said = in_fork(child)
    assert [kind for kind, _ in said] == ["InUseError"]
    assert f"is a fork of process {os.getpid()}" in said[0][1]
    assert (tmp_path / "c" / logs.EVENTS).stat().st_size == size
    # The parent goes on, and still holds the folder.
    assert crawl.seed([B]) == 1
    with pytest.raises(InUseError, match=f"process {os.getpid()}"):
        clocked(tmp_path / "c")
    crawl.close()
    with clocked(tmp_path / "c") as crawl:
        assert [lease.url for lease in crawl.next(3)] == [A, B]


def test_a_child_can_open_the_crawl_once_its_parent_has_closed_it(tmp_path):
    crawl = clocked(tmp_path / "c")
    crawl.seed([A])
    crawl.close()

    def child() -> int:
        with clocked(tmp_path / "c") as own:
            return own.seed([B])

    assert in_fork(child) == 1
    with clocked(tmp_path / "c") as crawl:
        assert crawl.page(B) is not None


PARENT = """
    import os, sys, time
    from inlink.crawl.crawl import Crawl

    crawl = Crawl(sys.argv[1], rerank_share=0.1)
    crawl.seed(["http://a.com/"])
    crawl.rerank()
    child = os.fork()
    if child:
        print(child, crawl._upkeep.reranker._process.pid, flush=True)
    time.sleep(10_000)
"""


@pytest.mark.slow
def test_the_death_of_the_parent_frees_the_folder_though_a_child_lives(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path / "c")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert parent.stdout is not None
    child, ranking = map(int, parent.stdout.readline().split())
    try:
        with pytest.raises(InUseError, match=f"process {parent.pid}"):
            Crawl(tmp_path / "c")
        parent.kill()
        parent.wait()
        wait_until(lambda: not Path(f"/proc/{ranking}").exists(), "the ranking process to end")
        with Crawl(tmp_path / "c") as crawl:
            assert crawl.page(A) is not None
        os.kill(child, 0)  # it lives
    finally:
        os.kill(child, signal.SIGKILL)
        parent.kill()
        parent.stdout.close()


@pytest.mark.slow
def test_one_of_several_makers_of_a_crawl_wins(tmp_path):
    """The others are refused in one line, and the folder is that of the winner."""

    def make(folder: Path, barrier: threading.Barrier, crawls: list[Crawl], refused: list[Exception]) -> None:
        barrier.wait()
        try:
            crawls.append(Crawl(folder))
        except Exception as error:
            refused.append(error)

    for k in range(8):
        folder, barrier = tmp_path / str(k), threading.Barrier(4)
        crawls: list[Crawl] = []
        refused: list[Exception] = []

        threads = [threading.Thread(target=make, args=(folder, barrier, crawls, refused)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (crawl,) = crawls
        assert [type(error) for error in refused] == [InUseError] * 3
        assert {str(error) for error in refused} == {
            f"{folder} is being crawled by process {os.getpid()}: stop that process, or wait until it ends"
        }
        crawl.seed([A])
        crawl.close()
        with Crawl(folder) as again:
            assert again.page(A)


def test_a_crawl_made_in_the_meantime_is_not_replaced(tmp_path, monkeypatch):
    """Whenever another process makes the folder, its hash seed stays, which all its pages depend on."""
    folder, real = tmp_path / "c", folders.encoded

    def meanwhile(settings: Any) -> bytes:
        monkeypatch.setattr(folders, "encoded", real)
        with Crawl(folder) as other:
            other.seed([A])
        return real(settings)

    monkeypatch.setattr(folders, "encoded", meanwhile)
    with Crawl(folder) as crawl:
        assert crawl.seed([A, B]) == 1
    with Crawl(folder) as crawl:
        assert crawl.page(A)
        assert crawl.page(B)
    assert json.loads((folder / "header.json").read_text())["generation"] == 1
