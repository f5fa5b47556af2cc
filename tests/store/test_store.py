"""The store against what is obvious: a dict for the URL table, lists for the log, a fresh opening for every column."""

import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkpoints import inside
from crawlstrategies import (
    SEEDED,
    STATIC,
    Clock,
    columns,
    differences,
    histories,
    opened,
    perform,
    stored_pages,
    whole,
)
from inlink.crawl.journal import encoded_list
from inlink.errors import UnknownNodeError
from inlink.frontier.revisit import FixedInterval
from inlink.store import format as kinds
from inlink.store import log as logs
from inlink.store import urls as urls_module
from inlink.store.checks import last_whole
from inlink.store.events import Events
from inlink.store.format import NO_PAGE
from inlink.store.kernels import frames as kernels
from inlink.store.log import Log
from inlink.store.reader import known_pages
from storefolders import folder

# -- frames -------------------------------------------------------------------------------------------------------

PAGE_IDS = st.one_of(st.integers(0, 300), st.integers(0, NO_PAGE - 1))


def coded(pages: list[int], scores: list[float]) -> tuple[int, bytes]:
    return encoded_list(np.array(pages, np.uint32), np.array(scores, np.float32))


@given(
    st.lists(st.tuples(PAGE_IDS, st.floats(-1, 1, width=32)), max_size=130),
    st.booleans(),
    st.binary(max_size=255),
)
@example([(5, 0.25), (5, 0.75), (5, 0.5), (3, -1.0), (3, -0.5)], True, b"")
@example([(k % 7, k / 256) for k in range(130)], True, b"hash")
@example([(127, 0), (255, 0), (NO_PAGE - 1, 0)], False, b"")
@example([(k << 28, 0) for k in range(15)], False, b"")
def test_links_round_trip(links, scored, content_hash):
    best: dict[int, float] = {}
    for page, score in links:
        best[page] = max(best.get(page, -2.0), score)
    count, raw = coded([page for page, _ in links], [score for _, score in links] if scored else [])
    with folder() as place:
        log = Log(place)
        log.append(kinds.GIVEN, 0.0, payload=b"so that the frame does not begin at 0")
        at, frame = log.append(
            kinds.VISIT,
            1.5,
            9,
            flags=kinds.HAS_SCORES if scored and links else 0,
            listed=count,
            payload=kinds.struct_of(kinds.VisitRecord).pack(1.0, 2, 3, 4, 5, 0, len(content_hash))
            + content_hash
            + raw,
        )
        log.close()
        raw_log = np.fromfile(place / logs.EVENTS, np.uint8)
    assert raw_log[at : at + len(frame)].tobytes() == frame
    assert kernels.link_count(raw_log, np.uint64(at)) == len(best)
    pages, scores = np.empty(len(best), np.uint32), np.empty(len(best), np.float32)
    assert kernels.links_at(raw_log, np.uint64(at), pages) == len(best)
    assert pages.tolist() == sorted(best)
    assert kernels.link_scores_at(raw_log, np.uint64(at), scores) == (scored and bool(links))
    if scored and links:
        assert scores.tolist() == [best[page] for page in sorted(best)]
    for page in [*list(best)[:5], 0, 77]:
        rows = kernels.rows_with(raw_log, np.array([at], np.uint64), np.uint64(page))
        assert rows.tolist() == ([0] if page in best else [])


PAGE_LISTS = st.lists(st.integers(0, 1000), min_size=1, max_size=20, unique=True).map(sorted)
FRAMES = st.tuples(
    st.sampled_from(
        [
            kinds.SEED,
            kinds.VISIT,
            kinds.MERGE,
            kinds.LEASE,
            kinds.RELEASE,
            kinds.LOST,
            kinds.RELOAD,
            kinds.EXCLUDE,
            kinds.HOST,
        ]
    ),
    st.floats(0, 2e9),
    PAGE_LISTS,
    st.booleans(),
    st.integers(0, 999),
    st.floats(0, 1, width=32),
    st.lists(st.sampled_from(["http://a.com/", "http://b.com/x"]), max_size=2),
)


@given(st.lists(FRAMES, max_size=12), st.integers(0, 50))
def test_events_are_what_was_appended(frames, known):
    expected = []
    first = known
    with folder() as place:
        log = Log(place)
        for kind, time, pages, scored, status, score, urls in frames:
            if kind == kinds.MERGE:
                pages, scored = pages[:1], False
            scores = [page / 1024 for page in pages] if scored and kind in (kinds.SEED, kinds.VISIT) else []
            flags = kinds.HAS_SCORES if scores else 0
            if kind in (kinds.SEED, kinds.VISIT, kinds.MERGE):
                count, payload = coded(pages, scores)
                if kind == kinds.VISIT:
                    payload = kinds.struct_of(kinds.VisitRecord).pack(0, 1, 0, 0, 0, 0, 2) + b"hh" + payload
            elif kind == kinds.HOST:
                count, payload, pages = 0, kinds.struct_of(kinds.HostRecord).pack(1, 2, 3), []
            else:
                count = len(pages)
                payload = np.array(pages, "<u4").tobytes()
                if kind == kinds.LEASE:
                    payload = kinds.struct_of(kinds.LeaseRecord).pack(5, 6.5, 0, 0) + payload
                elif kind == kinds.EXCLUDE:
                    payload = kinds.struct_of(kinds.ExcludedRecord).pack(3) + b"why" + payload
                elif kind == kinds.RELEASE:
                    record = kinds.struct_of(kinds.ReleasedRecord)
                    payload = b"".join(record.pack(7 + page, page) for page in pages)
                elif kind == kinds.LOST:
                    record = kinds.struct_of(kinds.LostRecord)
                    payload = b"".join(record.pack(7 + page, 5.5, page, page % 2) for page in pages)
            page = pages[-1] if pages and kind in (kinds.VISIT, kinds.MERGE) else NO_PAGE
            text = "".join(url + "\n" for url in urls).encode()
            at, _ = log.append(
                kind, time, page, flags=flags, status=status, score=score, listed=count, payload=payload,
                lease=status, first=first, new=len(urls), urls=text,
            )  # fmt: skip
            expected.append((
                time, None if page == NO_PAGE else page, score, status, flags, first, len(urls), pages,
                scores or None, at, status,
            ))  # fmt: skip
            first += len(urls)
        log.close()
        raw = np.fromfile(place / logs.EVENTS, np.uint8)
    found = [
        (
            one.time, one.page, one.score, one.status, one.flags, one.first, one.new, one.pages.tolist(),
            None if one.scores is None else one.scores.tolist(), one.place, one.lease,
        )
        for one in Events(raw)
    ]  # fmt: skip
    assert found == expected
    assert [event.kind for event in Events(raw)] == [kinds.KINDS[kind] for kind, *_ in frames]
    if len(found) > 2:  # from the middle, as after a ranking
        part = list(Events(raw[found[2][9] :]))
        assert [one.place for one in part] == [one[9] for one in expected[2:]]
        assert [one.first for one in part] == [one[5] for one in expected[2:]]


def small_log(place: Path) -> tuple[bytes, bytes, list[tuple[int, int]]]:
    """A log of five frames and the mark of a sync: its files, and where each frame ends in both."""
    log, ends = Log(place), [(0, 0)]
    for urls, payload in (
        (b"http://a.com/\n", b""),
        (b"", b"x"),
        (b"http://b.com/\nhttp://c.com/\n", b"abc"),
        (b"", b""),
        (b"http://d.com/\n", b"0123456789"),
    ):
        first, new = ends[-1][0] // len(b"http://a.com/\n"), urls.count(b"\n")
        log.append(kinds.SETTINGS, 5.0, payload=payload, first=first, new=new, urls=urls)
        ends.append((log.urls_end, log.events_end))
    log.close()
    ends.append((log.urls_end, log.events_end))
    return (place / logs.URLS).read_bytes(), (place / logs.EVENTS).read_bytes(), ends


def last(urls: bytes, events: bytes) -> tuple[int, int, int]:
    reached = last_whole(np.frombuffer(urls, np.uint8), np.frombuffer(events, np.uint8), kinds.salt_of(0))
    return reached.text_place, reached.place, reached.frames


def test_log_cut_at_any_byte(tmp_path):
    urls, events, ends = small_log(tmp_path)
    for size in range(len(events) + 1):
        frames = max(k for k, end in enumerate(ends) if end[1] <= size)
        assert last(urls, events[:size]) == (*ends[frames], frames)
        for garbage in (b"\0" * 100, b"\xff" * 100, events[:60]):
            bad = events[:size] + garbage
            same = next((k for k in range(len(events)) if bad[k : k + 1] != events[k : k + 1]), len(events))
            frames = max(k for k, end in enumerate(ends) if end[1] <= same)
            assert last(urls, bad) == (*ends[frames], frames)
    for size in range(len(urls) + 1):  # the frame came through, its URLs did not
        frames = max(k for k, end in enumerate(ends) if end[0] <= size)
        assert last(urls[:size], events) == (*ends[frames], frames)


def test_log_with_a_flipped_bit_anywhere(tmp_path):
    urls, events, ends = small_log(tmp_path)
    for at in range(len(events)):
        frames = max(k for k, end in enumerate(ends) if end[1] <= at)
        for bit in (1, 128):
            bad = events[:at] + bytes([events[at] ^ bit]) + events[at + 1 :]
            assert last(urls, bad) == (*ends[frames], frames), at
    for at in range(len(urls)):
        frames = max(k for k, end in enumerate(ends) if end[0] <= at)
        bad = urls[:at] + bytes([urls[at] ^ 1]) + urls[at + 1 :]
        assert last(bad, events) == (*ends[frames], frames), at


# -- columns are a fold -------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    histories(),
    st.sampled_from([*STATIC, "opic", "pagerank", "host-diverse"]),
    st.integers(0, 25),
)
def test_a_crawl_is_what_its_log_says(history, policy, halfway):
    """The central property: whatever is done, a fresh opening finds the crawl as it was, in every column."""
    clock, leases = Clock(), []
    with folder() as place:
        crawl = opened(place / "c", clock, policy=policy)
        reader = known_pages(place / "c")
        for number, done in enumerate(history):
            perform(crawl, clock, leases, done)
            if number == halfway:
                reader.refresh()
                crawl.close()
                crawl = opened(place / "c", clock, policy=policy)
        crawl.seed(["http://a.com/"])  # an event of now: no time passes while the crawl is closed
        live = whole(crawl)
        crawl.close()
        again = opened(place / "c", clock, policy=policy)
        assert differences(live, whole(again)) == {}
        again.close()
        reader.refresh()
        looked = known_pages(place / "c")
        assert differences(columns(looked), columns(reader)) == {}
        assert (looked.tally.events, looked.frames.end) == (reader.tally.events, reader.frames.end)
        assert [part.tolist() for part in looked.crawled()] == [part.tolist() for part in reader.crawled()]
        assert looked.hosts[: looked.num_pages].tolist() == live["host numbers"]
        assert looked.scores[: looked.num_pages].tolist() == live["scores"]
        looked.close()
        reader.close()


@settings(max_examples=10)
@given(histories(15), histories(15))
def test_an_index_changes_nothing(first, second):
    """Opening with the table's slots from disk, and with those of an earlier time, is as opening without."""
    clock, leases = Clock(), []
    with folder() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(urls_module, "_FEW", 1)
        with opened(place / "c", clock, policy="hosts-in-turns") as crawl:
            for done in first:
                perform(crawl, clock, leases, done)
        assert (place / "c" / urls_module.INDEX).is_dir()
        crawl = opened(place / "c", clock, policy="hosts-in-turns")
        for done in second:
            perform(crawl, clock, leases, done)
        crawl.seed(["http://a.com/"])  # an event of now: no time passes while the crawl is closed
        live = whole(crawl)
        patch.setattr(urls_module, "_FEW", 1 << 30)  # the index stays as it was before
        crawl.close()
        for few in (1 << 30, 1):
            patch.setattr(urls_module, "_FEW", few)
            with opened(place / "c", clock, policy="hosts-in-turns") as crawl:
                assert differences(live, whole(crawl)) == {}


def test_a_log_shorter_than_its_index_is_read_without_it(tmp_path, monkeypatch):
    monkeypatch.setattr(urls_module, "_FEW", 1)
    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.seed(["http://a.com/"])
        crawl.seed(["http://b.com/"])
    events = tmp_path / "c" / logs.EVENTS
    events.write_bytes(events.read_bytes()[: -kinds.HEAD_SIZE - 1])
    # It tells that the log was longer.
    (tmp_path / "c" / logs.END).unlink()
    with opened(tmp_path / "c", Clock()) as crawl:
        assert crawl.page("http://b.com/") is None
        assert inside(crawl).pages.table.find(["http://a.com/", "http://b.com/"]).tolist() == [0, NO_PAGE]
        crawl.seed(["http://c.com/", "http://b.com/"])
        assert inside(crawl).pages.table.find(["http://c.com/", "http://b.com/"]).tolist() == [1, 2]


@example(SEEDED + [("next", 1), ("wait", 700.0), ("next", 0), ("failed", 0, None, None)])
@settings(max_examples=20)
@given(histories(20))
def test_revisits_are_a_fold_too(history):
    clock, leases = Clock(), []
    revisit = FixedInterval(300.0)
    with folder() as place:
        crawl = opened(place / "c", clock, policy="first-come", revisit=revisit)
        for done in history:
            perform(crawl, clock, leases, done)
        crawl.seed(["http://a.com/"])  # an event of now: no time passes while the crawl is closed
        live = whole(crawl)
        crawl.close()
        with opened(place / "c", clock, policy="first-come", revisit=revisit) as crawl:
            assert differences(live, whole(crawl)) == {}


@settings(max_examples=20)
@given(histories(20), st.integers(0, 20))
def test_pages_are_counted_by_state_and_by_host(history, counted_from):
    """Counts by state always, counts by host from the first call for them on."""
    clock, leases = Clock(), []
    with folder() as place:
        crawl = opened(place / "c", clock, policy="hosts-in-turns")
        pages = inside(crawl).pages
        for number, done in enumerate(history):
            if number == counted_from:
                pages.count_hosts()
            perform(crawl, clock, leases, done)
        if counted_from >= len(history):
            pages.count_hosts()
        states, hosts = pages.states[: pages.num_pages], pages.hosts[: pages.num_pages]
        assert pages.state_counts.tolist() == np.bincount(states, minlength=len(kinds.STATES)).tolist()
        for found, chosen in (
            (pages.host_pages, states >= 0),
            (pages.host_waiting, states == kinds.DISCOVERED),
            (pages.host_crawled, states == kinds.CRAWLED),
        ):
            expected = np.bincount(hosts[chosen], minlength=pages.tally.hosts)
            assert found[: pages.tally.hosts].tolist() == expected.tolist()
        crawl.close()


# -- readers ------------------------------------------------------------------------------------------------------


def test_a_page_that_is_not_there_has_no_url(tmp_path):
    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.seed(["http://a.com/"])
        assert stored_pages(crawl).url(0) == "http://a.com/"
        with pytest.raises(UnknownNodeError):
            stored_pages(crawl).url(1)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["slots", "marks"])
def test_an_index_that_cannot_be_written_does_not_stop_the_crawl(tmp_path, monkeypatch, caplog, when):
    """A disk that fills while the index is written: between two calls for the slots, on a thread for the rest."""
    from inlink.base.folder import ArrayWriter

    append = ArrayWriter.append

    def full(self, values):
        if self.path.stem == when:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, values)

    monkeypatch.setattr(urls_module, "_FEW", 1)
    monkeypatch.setattr(ArrayWriter, "append", full)
    with opened(tmp_path / "c", Clock()) as crawl:
        crawl.seed([f"http://a.com/{k}" for k in range(300)])
        for k in range(300):
            assert crawl.crawled(f"http://a.com/{k}", [f"http://b.com/{k}"])
    assert "cannot write an index (No space left on device)" in caplog.text
    assert not (tmp_path / "c" / urls_module.INDEX).exists()
    assert not list((tmp_path / "c").glob(".*"))
    monkeypatch.undo()
    with opened(tmp_path / "c", Clock()) as crawl:
        assert (stored_pages(crawl).num_pages, stored_pages(crawl).tally.crawled) == (600, 300)
