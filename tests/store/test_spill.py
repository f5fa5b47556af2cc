"""A crawl whose finished columns are in files is the crawl that keeps them in memory."""

import errno
import mmap
import os
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import from_checkpoint, inside, keep
from crawlstrategies import Clock, differences, histories, opened, perform
from inlink.base.columns import PAGE_SIZE, is_reserved, map_file, reserve
from inlink.base.folder import Folder
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.frontier.policies import POLICIES
from inlink.store import spill
from inlink.store.checkpoint import CHECKPOINT, VERSION
from inlink.store.spill import Spill

SEEDS = [f"http://h{number % 97}.com/{number}" for number in range(PAGE_SIZE + 100)]
"""So many that a column of one byte a page fills more than a page of memory."""


@pytest.fixture
def small(monkeypatch):
    """Stretches of one page of memory, which are looked for after each visit, and regions of two."""
    monkeypatch.setattr(spill, "STRETCH", PAGE_SIZE)
    monkeypatch.setattr(spill, "REGION", 2 * PAGE_SIZE)
    monkeypatch.setattr(spill, "LOOK", 1)


def spilled(crawl: Crawl) -> int:
    """Move all finished stretches of a crawl into the file; return the number of columns that are there."""
    upkeep, known = crawl._upkeep, inside(crawl).pages.num_pages
    while upkeep._spill.step(known, upkeep._finished):
        pass
    return len({column for column, _ in upkeep._spill._regions})


def everything(crawl: Crawl) -> dict[str, Any]:
    """The columns, the order, and the events without their places: marks of syncs depend on the time of day."""
    front = inside(crawl)
    pages, known = front.pages, front.pages.num_pages
    visits = [pages.visit(page) for page in pages.crawled()[0].tolist()]
    return {
        **{
            name: getattr(pages, name)[:known].tolist()
            for name in ("hosts", "depths", "states", "errors", "answers")
        },
        "urls": pages.urls(range(known)),
        "found": pages.table.find(pages.urls(range(known))).tolist(),
        "host names": [pages.table.host(host) for host in range(pages.tally.hosts)],
        "linkers": [pages.maker(page) for page in range(0, known, 7)],
        "visits": [visit._replace(place=0) for visit in visits if visit],
        "traps": front.traps[:known].tolist(),
        "order": front.queue.order(1000, crawl._journal.tick()),
        "waiting": len(front.queue),
        "events": [
            (one.kind, one.time, one.page, one.first, one.new, one.pages.tolist()) for one in front.events(0)
        ],
    }


def mapping(array: np.ndarray) -> str:
    """The line of the system's list of mappings that holds the first byte of an array."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(place, 16) for place in line.split()[0].split("-"))
        if begin <= array.ctypes.data < end:
            return line
    raise AssertionError("no mapping holds the array")


# -- mapping ----------------------------------------------------------------------------------------------------------


def test_only_the_beginning_of_a_reserved_array_is_reserved():
    array = reserve(np.uint32, 1000)
    assert is_reserved(array)
    assert is_reserved(array[:10])
    assert is_reserved(array[:10].view(np.uint64))
    assert not is_reserved(array[1:])
    assert not is_reserved(np.zeros(1 << 20, np.uint8))
    assert not is_reserved(np.frombuffer(mmap.mmap(-1, PAGE_SIZE), np.uint8))


def test_a_mapped_array_keeps_its_numbers_and_the_file_its_bytes():
    array = reserve(np.uint16, 4 * PAGE_SIZE)
    array[:] = np.arange(len(array)) % 997
    expected = array.copy()
    with tempfile.TemporaryFile() as file:
        file.write(array.tobytes())
        file.flush()
        for begin, end in pairwise([0, PAGE_SIZE, 3 * PAGE_SIZE]):
            map_file(array, begin, end, file.fileno(), begin)
            assert (array == expected).all()
        array[7], array[-1] = 1, 2
        file.seek(14)
        assert int.from_bytes(file.read(2), "little") == expected[7]
    expected[7], expected[-1] = 1, 2
    assert (array == expected).all()


def test_a_file_that_cannot_be_mapped_changes_nothing(tmp_path):
    array = reserve(np.uint8, 2 * PAGE_SIZE)
    array[:] = 3
    (tmp_path / "unreadable").touch()
    file = os.open(tmp_path / "unreadable", os.O_WRONLY)
    os.truncate(file, 2 * PAGE_SIZE)
    with pytest.raises(OSError, match="Permission denied"):
        map_file(array, 0, PAGE_SIZE, file, 0)
    os.close(file)
    with pytest.raises(OSError, match="Bad file descriptor"):
        map_file(array, 0, PAGE_SIZE, file, 0)
    assert (array == 3).all()


# -- the crawl --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
@settings(max_examples=settings.default.max_examples // 3, deadline=None)
@given(st.sampled_from(sorted(POLICIES)), histories(12), histories(12))
def test_a_crawl_with_columns_in_files_equals_one_in_memory(policy, before, after):
    with tempfile.TemporaryDirectory() as room:
        clock, found = Clock(), []
        began = clock.now
        for in_files in (True, False):
            folder, leases, clock.now, states = Path(room) / str(in_files), [], began, []
            for history in (before, after):
                with opened(folder, clock, policy=policy) as crawl:
                    if not in_files:
                        crawl._upkeep._spill.look_at = 1 << 60
                    crawl.seed(SEEDS)
                    for done in history:
                        assert (spilled(crawl) > 0) == in_files
                        perform(crawl, clock, leases, done)
                    states.append(everything(crawl) | {"leases": list(leases)})
            found.append(states)
        for mine, others in zip(*found, strict=True):
            assert not differences(mine, others)


@pytest.mark.usefixtures("small")
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not list mappings")
def test_finished_columns_are_mapped_from_a_file_without_a_name(tmp_path):
    with opened(tmp_path / "crawl", Clock()) as crawl:
        crawl.seed(SEEDS[:1])
        crawl.crawled(SEEDS[0], SEEDS)
        assert spilled(crawl)
        front = inside(crawl)
        table, pages = front.pages.table, front.pages
        for array in (table.checks, table.hosts, pages.depths):
            assert mapping(array).endswith("(deleted)"), mapping(array)
        # Zeros take no memory and no file.
        for array in (pages.carriers, front.traps):
            assert not array[: front.pages.num_pages].any()
            assert "deleted" not in mapping(array)
        # A kill leaves nothing behind.
        assert not list((tmp_path / "crawl").rglob(".*"))


@pytest.mark.usefixtures("small")
def test_a_full_disk_keeps_columns_in_memory_until_there_is_space(tmp_path, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with opened(tmp_path / "crawl", Clock()) as crawl, opened(tmp_path / "other", Clock()) as other:
        crawl.seed(SEEDS)
        other.seed(SEEDS)
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            spilled(crawl)
            spilled(crawl)
        (line,) = caplog.messages
        assert "cannot write a temporary file (No space left on device)" in line
        assert inside(crawl).queue.order(100, 0.0) == inside(other).queue.order(100, 0.0)
        more = [f"http://more.com/{number}" for number in range(len(SEEDS) // 4)]
        crawl.seed(more)
        other.seed(more)
        assert spilled(crawl)
        assert not differences(everything(crawl), everything(other))


def test_a_stretch_is_written_once_and_a_stretch_of_zeros_never(tmp_path, monkeypatch):
    monkeypatch.setattr(spill, "STRETCH", PAGE_SIZE)
    column, count = reserve(np.uint8, 8 * PAGE_SIZE), 5 * PAGE_SIZE + 17
    column[: 2 * PAGE_SIZE], column[3 * PAGE_SIZE : count] = 1, 2
    expected, written, pwrite = column.copy(), [], os.pwrite

    def noted(file, raw, begin):
        written.append(begin // PAGE_SIZE)
        return pwrite(file, raw, begin)

    def finished():
        return [(column, count)]

    monkeypatch.setattr(os, "pwrite", noted)
    store = Spill(tmp_path, {column.ctypes.data: PAGE_SIZE})
    steps = 0
    while store.step(spill.LOOK, finished):
        steps += 1
    assert written == [1, 3, 4]
    assert steps == 4
    count = 8 * PAGE_SIZE
    column[5 * PAGE_SIZE :] = expected[5 * PAGE_SIZE :] = 4
    # They are looked for again only when there are enough new pages.
    assert not store.step(2 * spill.LOOK - 1, finished)
    while store.step(2 * spill.LOOK, finished):
        pass
    store.close()
    assert written == [1, 3, 4, 5, 6, 7]
    assert (column == expected).all()


# -- the checkpoint ---------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_mapped_and_its_files_never_change(tmp_path):
    folder, clock = tmp_path / "crawl", Clock()
    with opened(folder, clock, policy="opic") as crawl:
        crawl.seed(SEEDS)
        keep(crawl)
        before = everything(crawl)
    files = sorted(Folder(folder / CHECKPOINT, CHECKPOINT, VERSION).data.iterdir())
    bytes_before = [path.read_bytes() for path in files]
    with opened(folder, clock) as crawl:
        front = inside(crawl)
        mapped = front.pages.checkpoint.mapped
        for array in (front.pages.hosts, front.pages.table.checks, front.policy.cash):
            assert mapped[array.ctypes.data] == len(SEEDS) * array.itemsize // PAGE_SIZE * PAGE_SIZE
        assert not differences(everything(crawl), before)
        for lease in crawl.next(50):
            crawl.crawled(lease, [f"{lease.url}/{number}" for number in range(5)])
        assert [path.read_bytes() for path in files] == bytes_before
        # A newer checkpoint replaces the files, and those that are mapped stay.
        keep(crawl)
        after = everything(crawl)
    front = look(folder, clock)
    assert front.pages.checkpoint is not None
    assert front.pages.num_pages == len(SEEDS) + 250
    front.pages.close()
    with opened(folder, clock) as crawl:
        assert not differences(everything(crawl), after)


def test_a_checkpoint_that_cannot_be_mapped_is_read(tmp_path, monkeypatch):
    with opened(tmp_path / "crawl", Clock()) as crawl:
        crawl.seed(SEEDS)
        keep(crawl)
        before = everything(crawl)

    def refused(*_):
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr("inlink.store.checkpoint.map_file", refused)
    with opened(tmp_path / "crawl", Clock()) as crawl:
        assert from_checkpoint(crawl)
        assert not inside(crawl).pages.checkpoint.mapped
        assert not differences(everything(crawl), before)
