"""A system that starts no thread: crawls and rankings do without."""

import os
import signal
import threading

import pytest

import inlink
from inlink.base.threads import Threads
from inlink.cli import commands, main
from inlink.errors import ParameterError
from inlink.store import urls
from inlink.store.log import INDEX


@pytest.fixture(autouse=True)
def no_threads(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


def test_a_crawl_syncs_each_event_itself(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(file), sync(file)))
    with inlink.Crawl(tmp_path / "c", politeness={"delay": 0.0}, rerank_share=None) as crawl:
        for number in range(3):
            before = len(synced)
            crawl.seed([f"http://a.example/{number}"])
            assert len(synced) == before + 2
        crawl.crawled(crawl.next(1)[0], ["/b"])
    with inlink.Crawl(tmp_path / "c", rerank_share=None) as crawl:
        assert crawl.page("http://a.example/b").state == "discovered"


def test_an_index_is_written_by_the_calling_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(urls, "_FEW", 64)
    with inlink.Crawl(tmp_path / "c", rerank_share=None) as crawl:
        for number in range(300):
            crawl.seed([f"http://a.example/{number}"])
    assert (tmp_path / "c" / INDEX / "header.json").exists()


def test_a_command_says_so_in_one_line(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(commands, "main", lambda **_: threading.Thread().start())
        # The handler and the environment of the tests stay.
        patch.setattr(signal, "signal", lambda *_: None)
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("inlink: the system starts no further thread: raise")


def test_a_ranking_works_in_the_calling_thread_or_says_so_in_one_line(monkeypatch):
    graph = inlink.Graph.from_arcs([(number, (number * 7 + 1) % 70_000) for number in range(70_000)])
    assert inlink.pagerank(graph, threads=2).converged
    with Threads(1) as alone, pytest.raises(ZeroDivisionError):
        alone.submit(divmod, 1, 0)
    monkeypatch.undo()
    started, start = [], threading.Thread.start

    def start_one(self):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    wait = threading.Event()

    def fill(pool):
        for _ in range(3):
            pool.submit(wait.wait)

    with Threads(2) as pool:
        with pytest.raises(ParameterError, match="starts no further thread: use fewer"):
            fill(pool)
        wait.set()
