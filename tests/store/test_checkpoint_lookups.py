"""Look-ups through a checkpoint show what the log says, and damage is found before it is used."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal.isal_zlib import crc32

from checkpoints import crawl_some, everything, from_checkpoint, keep, without
from crawlstrategies import Clock, differences, histories, opened, perform, stored_pages
from inlink import Crawl, CrawlView
from inlink.base.checked import remember
from inlink.base.folder import Folder
from inlink.crawl.folder import look
from inlink.errors import FolderError
from inlink.store import blocksums
from inlink.store.blocksums import BlockGuard, BlockSums
from inlink.store.checkpoint import CHECKPOINT, VERSION
from inlink.store.log import RANKS
from inlink.store.page import Page
from inlink.store.verify import verify
from storefolders import flip

SMALL = 256
"""Bytes of a block, so that small logs have many."""

Look = Callable[[CrawlView], Any]


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocksums, "BLOCK", SMALL)
        yield


def all_parts(call: Callable[[str | None], Any]) -> list[Any]:
    found = [call(None)]
    while found[-1].cursor is not None:
        found.append(call(found[-1].cursor))
    return found


def whole_reasons(view: CrawlView, page: int) -> Any:
    reasons = view.why(page)
    while not reasons.inlinks_complete:
        reasons = view.why(page)
    return reasons


def counted(view: CrawlView) -> Any:
    found = view.info()
    while found.links is None:
        found = view.info()
    return found


def whole_page(view: CrawlView, page: int) -> Page | None:
    found = view.page(page)
    while found is not None and not found.searched:
        found = view.page(page)
    return found


LOOKS: dict[str, Look] = {
    "page 0": lambda view: whole_page(view, 0),
    "page 20": lambda view: whole_page(view, 20),
    "by URL": lambda view: view.number("http://h1.com/1"),
    "unknown": lambda view: view.page("http://nowhere.com/"),
    "why": lambda view: whole_reasons(view, 9),
    "links to": lambda view: all_parts(lambda cursor: view.links(9, "to", 1000, cursor)),
    "links from": lambda view: view.links(3, "from"),
    "order": lambda view: view.order(50),
    "info": counted,
    "path": lambda view: view.path(20),
    "hosts": lambda view: view.hosts(),
    "find": lambda view: all_parts(lambda cursor: view.find("h1", "text", cursor=cursor)),
    "errors": lambda view: all_parts(lambda cursor: view.errors(cursor)),
    "pages": lambda view: all_parts(lambda cursor: view.dump("pages", cursor)),
    "links": lambda view: all_parts(lambda cursor: view.dump("links", cursor)),
}


def seen(folder: Path, name: str, now: float) -> Any:
    """The result of one look-up by a new view, as data. The view closes its files."""
    files = len(list(Path("/dev/fd").iterdir()))
    with CrawlView.open(folder, lambda: now) as view:
        found = msgspec.to_builtins(LOOKS[name](view))
    assert len(list(Path("/dev/fd").iterdir())) <= files
    if name == "why":
        # An opening without a checkpoint gives all pages new keys a few at a time, if there is a ranking.
        del found["outdated"]
    return found


def outcome(folder: Path, name: str) -> Any:
    """The result of one look-up, or the error as text."""
    try:
        return seen(folder, name, Clock().now)
    except FolderError as error:
        return str(error)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(histories(15), histories(10), st.booleans(), st.sampled_from(["pagerank", "opic", "hits"]))
def test_look_ups_through_a_checkpoint_are_those_of_the_log(before, after, ranked, policy):
    with tempfile.TemporaryDirectory() as room:
        folder, clock, leases = Path(room) / "crawl", Clock(), []
        with opened(folder, clock, policy=policy, rerank_share=None) as crawl:
            crawl_some(crawl)
            for done in before:
                perform(crawl, clock, leases, done)
            if ranked:
                crawl.rerank(wait=True)
            keep(crawl)
            for done in after:
                perform(crawl, clock, leases, done)
        copy = without(folder, Path(room) / "folded")
        for name in LOOKS:
            assert seen(folder, name, clock.now) == seen(copy, name, clock.now), name


def crawl_with_failures(folder: Path) -> None:
    clock = Clock()
    with opened(folder, clock, policy="pagerank", rerank_share=None) as crawl:
        crawl_some(crawl, 0, 20)
        crawl.failed(crawl.next(1)[0], "it broke", status=500)
        crawl.rerank(wait=True)
        crawl_some(crawl, 20, 10)
        keep(crawl)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept") / "crawl"
    crawl_with_failures(folder)
    return folder, {name: seen(folder, name, Clock().now) for name in LOOKS}


@pytest.fixture(scope="module")
def folded(kept, tmp_path_factory):
    """The state of the crawl, folded from all its events."""
    with Crawl(without(kept[0], tmp_path_factory.mktemp("folded") / "crawl"), clock=Clock()) as crawl:
        return everything(crawl)


def copied(folder: Path, room: Path) -> Path:
    """A copy of a crawl whose checkpoint is used, as if it had been made there."""
    copy = room / "copy"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("lock"))
    remembered(copy)
    return copy


def remembered(folder: Path) -> None:
    remember(Folder(folder / CHECKPOINT, CHECKPOINT, VERSION), VERSION, written=True)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_a_flipped_bit_of_the_checkpoint_is_refused_before_its_use(kept, folded, data):
    folder, told = kept
    files = sorted(
        path.relative_to(folder) for path in (folder / CHECKPOINT).rglob("*.bin") if path.stat().st_size
    )
    name = data.draw(st.sampled_from(files))
    place = data.draw(st.integers(0, (folder / name).stat().st_size - 1))
    with tempfile.TemporaryDirectory() as room:
        copy = copied(folder, Path(room))
        flip(copy / name, place, 1 << data.draw(st.integers(0, 7)))
        remembered(copy)
        for look, wanted in told.items():
            found = outcome(copy, look)
            refused = (
                isinstance(found, str) and "is damaged: remove this folder, and it is made again" in found
            )
            assert found == wanted or refused, look
        with pytest.raises(FolderError, match="checkpoint"):
            verify(copy)
        # A crawl folds all events instead.
        with Crawl(copy, clock=Clock()) as crawl:
            assert not from_checkpoint(crawl)
            assert not differences(everything(crawl), folded)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_a_flipped_bit_of_the_log_is_refused_before_its_use(kept, data):
    folder, told = kept
    extent = Folder(folder / CHECKPOINT, CHECKPOINT, VERSION).header.meta["extent"]
    name, end = data.draw(st.sampled_from([("urls.txt", "urls_end"), ("events.log", "events_end")]))
    place = data.draw(st.integers(0, extent[end] - 1))
    with tempfile.TemporaryDirectory() as room:
        copy = copied(folder, Path(room))
        flip(copy / name, place, 1 << data.draw(st.integers(0, 7)))
        refused = 0
        for look, wanted in told.items():
            found = outcome(copy, look)
            if found != wanted:
                assert isinstance(found, str), look
                assert "is damaged" in found
                assert "backup" in found
                refused += 1
        # No look-up above reads an event that is neither a visit nor a failure.
        assert refused or name == "events.log"
        with pytest.raises(FolderError, match=name):
            verify(copy)
        with pytest.raises(FolderError, match="is damaged"):
            read_all(copy)


def read_all(folder: Path) -> None:
    """Open a crawl, and read all URLs and all events."""
    front = look(folder, Clock())
    front.pages.table.text(0, front.pages.tally.url_bytes)
    list(front.events(0))


def test_an_opening_reads_no_old_block_of_the_log(kept, tmp_path, caplog):
    copy = copied(kept[0], tmp_path)
    flip(copy / "urls.txt", 10, 1)
    flip(copy / "events.log", 10, 1)
    with Crawl(copy, clock=Clock()) as crawl:
        assert from_checkpoint(crawl)
        with pytest.raises(FolderError, match=r"urls.txt is damaged between bytes 0 and 256.*inlink repair"):
            stored_pages(crawl).url(0)
        with pytest.raises(FolderError, match=r"events.log is damaged between bytes 0 and 256.*backup"):
            stored_pages(crawl).frames.frame(0)
        keep(crawl)
    (line,) = caplog.messages
    assert "cannot write a checkpoint" in line
    assert "between bytes 0 and 256" in line
    with pytest.raises(FolderError, match="between bytes 0 and 256"):
        CrawlView.open(copy).page(0)


def test_the_log_of_another_history_is_refused(kept, tmp_path):
    copy, other = copied(kept[0], tmp_path), tmp_path / "other"
    other.mkdir()
    # The same seed, so that only the events differ.
    for name in ("header.json", "settings.json"):
        shutil.copy(copy / name, other)
    for name in ("urls.txt", "events.log"):
        (other / name).touch()
    with opened(other, Clock(), policy="pagerank") as crawl:
        crawl_some(crawl, 1000, 90)
    for name in ("urls.txt", "events.log", "end.bin"):
        (copy / name).write_bytes((other / name).read_bytes())
    shutil.rmtree(copy / RANKS)
    with Crawl(copy, clock=Clock()) as crawl:
        assert not from_checkpoint(crawl)
        assert stored_pages(crawl).url(0) == "http://h6.com/1000"


@pytest.mark.parametrize("name", ["states", "policy_shares", "slots", "log.urls.txt"])
def test_a_cut_file_of_a_checkpoint_is_not_used(kept, tmp_path, name):
    copy = copied(kept[0], tmp_path)
    path = next((copy / CHECKPOINT).rglob(f"{name}.bin"))
    path.write_bytes(path.read_bytes()[:-1])
    assert seen(copy, "order", Clock().now) == kept[1]["order"]
    with Crawl(copy, clock=Clock()) as crawl:
        assert not from_checkpoint(crawl)


# -- blocks -----------------------------------------------------------------------------------------------------------

PIECES = st.lists(st.binary(max_size=3 * SMALL), max_size=8)


def sums_of(raw: bytes) -> list[int]:
    return [crc32(raw[begin : begin + SMALL]) for begin in range(0, len(raw), SMALL)]


@given(PIECES, PIECES)
def test_the_checksums_of_blocks_do_not_depend_on_the_pieces(first, later):
    sums = BlockSums()
    for piece in first:
        sums.add(piece, len(piece))
    assert sums.all().tolist() == sums_of(b"".join(first))
    again = BlockSums(sums.all(), sums.end)
    with tempfile.TemporaryFile() as file:
        file.write(b"".join([*first, *later]))
        file.flush()
        again.add_file(file.fileno(), len(b"".join([*first, *later])))
    for piece in later:
        sums.add(piece, len(piece))
    assert again.all().tolist() == sums.all().tolist() == sums_of(b"".join([*first, *later]))
    assert again.end == sums.end


@given(st.binary(min_size=1, max_size=8 * SMALL), st.data())
def test_a_guard_compares_exactly_the_blocks_that_are_needed(raw, data):
    place = st.integers(0, len(raw) + SMALL)
    spans = data.draw(st.lists(st.tuples(place, st.integers(1, 3 * SMALL)), max_size=5))
    damaged = data.draw(st.integers(0, len(raw) - 1))
    end = data.draw(st.integers(1, len(raw)))
    bad = bytearray(raw)
    bad[damaged] ^= 1
    begins, ends = [begin for begin, _ in spans], [begin + size for begin, size in spans]
    hit = any(
        damaged < end and begin < end and begin // SMALL <= damaged // SMALL <= (min(stop, end) - 1) // SMALL
        for begin, stop in zip(begins, ends, strict=True)
    )
    guards = [BlockGuard(Path("d/file"), np.array(sums_of(raw[:end]), np.uint32), end) for _ in range(2)]
    for guard, check in zip(guards, (_one_by_one, BlockGuard.check_each), strict=True):
        read = np.frombuffer(bytes(bad), np.uint8)
        if not hit:
            check(guard, read, np.array(begins, np.int64), np.array(ends, np.int64))
        else:
            with pytest.raises(FolderError, match=r"d/file is damaged between bytes"):
                check(guard, read, np.array(begins, np.int64), np.array(ends, np.int64))


def _one_by_one(guard: BlockGuard, raw: Any, begins: Any, ends: Any) -> None:
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        guard.check(raw, begin, end)
