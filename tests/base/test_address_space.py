"""A crawl gives its address space back when it is closed, whatever happened to it and whoever keeps its objects."""

import gc
import re
import resource
import subprocess
import sys
import weakref
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import inlink
from crawlstrategies import EAGER
from inlink.base import columns
from inlink.base.clock import VirtualClock
from inlink.base.columns import reserve
from inlink.crawl import crawl as opening
from inlink.crawl.checkpointing import save
from inlink.errors import InlinkError, ParameterError, StoreError
from inlink.store.log import Log
from served import served
from torture.trial import scratch

STATUS = Path("/proc/self/status")
SLACK = 2 << 30
"""Bytes of threads' stacks and the allocator's arenas. A crawl takes three times that, also on the smallest machine."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not STATUS.exists(), reason="the system does not tell the size of a process"),
]


def size() -> int:
    """The address space of this process in bytes."""
    return 1024 * int(re.search(r"VmSize:\s*(\d+) kB", STATUS.read_text())[1])


@contextmanager
def nothing_left():
    """Compare the address space before and after, without any help of the garbage collector.

    Older garbage counts before and after. To collect it would take a third of a second among all tests.
    """
    gc.disable()
    before = size()
    try:
        yield before
        assert size() - before < SLACK
    finally:
        gc.enable()


def work(crawl):
    crawl.seed([f"http://h{number % 5}.example/{number}" for number in range(40)])
    for lease in crawl.next(4):
        crawl.crawled(lease, ["/a", "http://b.example/"], fingerprint=7)
    crawl.desk.next(crawl.desk.hello("one").number, 2)


def look(view):
    for call in (view.standing, view.harvest, view.info, view.order, view.hosts, view.errors, view.dump):
        call()
    view.find("a")
    view.links("http://b.example/", "to")
    view.why("http://h1.example/1")
    view.page("http://h1.example/1")


def interrupt(crawl):
    with patch.object(Log, "append", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
        crawl.seed(["http://new.example/"])


def certify(crawl):
    crawl.standing(top=5)


CHANGES = {
    "work": work,
    "look": lambda crawl: look(crawl.view),
    "rank": lambda crawl: crawl.rerank(wait=True),
    "ask for a ranking": lambda crawl: crawl.rerank(),
    "interrupt": interrupt,
    "certify": certify,
    "refuse": lambda crawl: crawl.crawled("http://nowhere.example/"),
    "save": lambda crawl: save(crawl._frontier, crawl._journal.log),
}
ENDS = ("close", "keep", "leave", "keep its parts")
SETTINGS = st.sampled_from(
    [{}, {"policy": "hits"}, {"policy": "opic"}, {"sink_duplicates": True}, {"clock": VirtualClock}]
)


@given(st.lists(st.sampled_from([*CHANGES]), max_size=4), st.sampled_from(ENDS), SETTINGS)
@example(["work", "rank", "interrupt", "look"], "keep", {})
@example(["work", "certify", "look"], "keep its parts", {})
@example(["work", "rank", "look"], "leave", {"clock": VirtualClock})
def test_whatever_happens_to_a_crawl_its_address_space_comes_back(changes, end, settings):
    settings = {name: value() if value is VirtualClock else value for name, value in settings.items()}
    with scratch() as place, nothing_left() as before:
        crawl = inlink.Crawl(place / "c", politeness=EAGER, rerank_share=None, **settings)
        for name in ["work", *changes]:
            # Without a close, the ranking process would run on.
            if end != "leave" or name != "ask for a ranking":
                with suppress(InlinkError):
                    CHANGES[name](crawl)
        if end == "leave":
            # Its thread keeps the files of the log, but no columns.
            log = crawl._journal.log
            del crawl
            assert size() - before < SLACK
            log.close()
        else:
            kept = [crawl.desk, crawl.view, crawl.settings, crawl.refused]
            crawl.close()
            if end == "keep":
                kept.append(crawl)
            elif end == "close":
                kept.clear()
            del crawl


@given(st.sampled_from(["close", "leave"]), st.booleans(), st.booleans())
def test_a_view_gives_its_address_space_back(end, one_page, lazily):
    with scratch() as place:
        with inlink.Crawl(place / "c", politeness=EAGER) as crawl:
            work(crawl)
            if lazily:
                # From a checkpoint, columns are read when they are first used.
                save(crawl._frontier, crawl._journal.log)
        with nothing_left():
            view = inlink.CrawlView.open(place / "c")
            if one_page:
                view.page("http://h1.example/1")
            else:
                look(view)
            kept = [view]
            del view
            if end == "close":
                kept[0].close()
            else:
                kept.clear()


STEPS = ("Log", "open_pages", "recover", "Frontier", "Upkeep", "restore", "save", "Desk", "CrawlView")


@pytest.mark.parametrize("fault", [ParameterError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("step", STEPS)
def test_an_opening_that_fails_leaves_nothing(tmp_path, monkeypatch, step, fault):
    def fails(*_arguments, **_named):
        raise fault

    monkeypatch.setattr(opening, step, fails)
    refusals = list[str]()
    with nothing_left():
        try:
            inlink.Crawl(tmp_path / "c")
        except (fault, StoreError) as error:
            refusals.append(str(error))
    assert len(refusals) == 1
    assert ("ulimit -v" in refusals[0]) == (fault is MemoryError)
    assert not (tmp_path / "c").exists()


def test_without_address_space_an_opening_is_refused_and_leaves_nothing(tmp_path):
    inlink.Crawl(tmp_path / "c").close()
    left, space = [0], columns._Space

    def limited(*arguments, **named):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(12, "Cannot allocate memory")
        return space(*arguments, **named)

    number, refusals = 0, list[str]()
    # A refusal collects garbage, which would hide space that is not given back.
    with patch.object(columns, "_Space", limited), patch.object(columns, "gc"):
        while True:
            left[0] = number
            with nothing_left():
                try:
                    inlink.Crawl(tmp_path / "c").close()
                    break
                except StoreError as error:
                    refusals.append(str(error))
            number += 7
    assert len(refusals) > 3
    assert all("address space" in refusal and "ulimit -v" in refusal for refusal in refusals)
    inlink.Crawl(tmp_path / "c").close()


# The first request that the system refuses differs between machines.
@pytest.mark.soak
def test_a_limit_of_address_space_is_an_error_with_a_remedy(tmp_path):
    code = (
        "import inlink, sys; kept = []\nwhile True: kept.append(inlink.Crawl(f'{sys.argv[1]}/{len(kept)}'))"
    )
    limit = 24 << 30
    run = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    assert "inlink.errors.StoreError: " in run.stderr
    assert "ulimit -v" in run.stderr
    assert (tmp_path / "0").exists()
    # The folder of the crawl that was not opened is gone.
    assert all((folder / "header.json").exists() for folder in tmp_path.iterdir())


def test_closed_crawls_are_kept_as_objects(tmp_path):
    # `python -m torture.many` keeps 5,000.
    with nothing_left():
        kept = []
        for number in range(60):
            crawl = inlink.Crawl(tmp_path / str(number % 3))
            crawl.seed([f"http://a.example/{number}"])
            crawl.close()
            kept.append((crawl, crawl.desk, crawl.view))
    # test_crawl_gate asks a closed crawl all questions.
    with pytest.raises(StoreError, match="closed"):
        assert kept[0][0].paused


def test_a_server_gives_the_address_space_of_its_crawls_back(tmp_path):
    # `python -m torture.many` serves 500.
    folders = [tmp_path / f"c{number}" for number in range(12)]
    with nothing_left(), served(*folders) as server:
        for name in ("c0", "c11"):
            assert server.ask("POST", f"/v1/crawls/{name}/seeds", {"urls": ["http://a.example/"]})[0] == 200
        with patch.object(Log, "append", side_effect=StoreError("the disk is full")):
            assert server.ask("POST", "/v1/crawls/c3/seeds", {"urls": ["http://a.example/"]})[0] >= 500


def test_a_result_outlives_its_crawl(tmp_path):
    with inlink.Crawl(tmp_path / "c", politeness=EAGER) as crawl:
        work(crawl)
        shown = crawl.page("http://h1.example/1"), crawl.why("http://h1.example/1"), crawl.view.order(5)
    assert shown[0].state in ("discovered", "crawled", "leased")
    assert len(shown[2].rows) == 5


def test_columns_hold_their_address_space_only_as_long_as_they_live():
    with nothing_left():
        column = reserve(np.uint64, 1 << 33)
        column[7] = 1
        part = column[7:8]
        del column
        assert part[0] == 1
        del part


def test_space_that_a_reference_cycle_keeps_is_taken_back_before_there_is_less(monkeypatch):
    class Space(columns._Space):
        def __new__(cls, *arguments, **named):
            if cycle() is not None:
                raise OSError(12, "Cannot allocate memory")
            return super().__new__(cls, *arguments, **named)

    kept = [reserve(np.uint8, 1 << 20)]
    kept.append(kept)
    cycle = weakref.ref(kept[0])
    monkeypatch.setattr(columns, "_Space", Space)
    gc.disable()
    try:
        del kept
        assert len(reserve(np.uint8, 1 << 20)) == 1 << 20
    finally:
        gc.enable()
