"""A second writer that bypasses the lock is refused, or the first one is told; nothing acknowledged is lost."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from crawlstrategies import Clock, opened
from inlink.crawl.crawl import Crawl
from inlink.errors import FolderError, InUseError, StoreError
from inlink.store.log import END, EVENTS, LOCK, URLS, ends_in
from inlink.store.reader import known_pages
from inlink.store.verify import verify

A, B = "http://a.com/", "http://b.com/"
FILES = (EVENTS, URLS, END)


def writer(folder: Path, **given: object) -> Crawl:
    return opened(folder, Clock(), policy="first-come", **given)


def hard_links(folder: Path, name: str = "copy") -> Path:
    return Path(shutil.copytree(folder, folder.parent / name, copy_function=os.link))


def crawled(folder: Path) -> set[str]:
    reader = known_pages(folder)
    found = {reader.url(page) for page in reader.crawled()[0].tolist()}
    reader.close()
    return found


@pytest.fixture
def no_locks(monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)


def one_line(error: BaseException, folder: Path) -> None:
    assert str(folder) in str(error)
    assert "\n" not in str(error)


def test_a_removed_lock_keeps_no_second_writer_in(tmp_path: Path):
    first = writer(tmp_path / "c")
    first.seed([A])
    (tmp_path / "c" / LOCK).unlink()
    with pytest.raises(InUseError, match="although its lock was removed") as refused:
        writer(tmp_path / "c")
    one_line(refused.value, tmp_path / "c")
    first.crawled(A, [])
    # The next sync sees that the lock was replaced.
    with pytest.raises(StoreError, match="lock was removed or replaced") as told:
        first.close()
    one_line(told.value, tmp_path / "c")
    assert crawled(tmp_path / "c") == {A}


@pytest.mark.usefixtures("no_locks")
def test_the_writer_that_finds_foreign_bytes_stops(tmp_path: Path):
    folder = tmp_path / "c"
    first = writer(folder)
    first.seed([A, B])
    second = writer(folder)
    assert second.crawled(A, ["/new"])
    before = {name: (folder / name).read_bytes() for name in (EVENTS, URLS)}
    with pytest.raises(StoreError, match=r"another process writes events\.log, which ends at byte") as told:
        first.crawled(B, [])
    one_line(told.value, folder)
    # Nothing was written, and nothing taken away.
    assert {name: (folder / name).read_bytes() for name in (EVENTS, URLS)} == before
    with pytest.raises(StoreError):
        first.seed([A])
    first.close()
    assert second.crawled(B, [])
    second.close()
    assert crawled(folder) == {A, B}
    verify(folder)


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize("name", [EVENTS, URLS])
@pytest.mark.parametrize("when", ["before", "after"])
def test_bytes_that_come_between_are_noticed_before_the_answer_is_acknowledged(
    tmp_path: Path, monkeypatch, name: str, when: str
):
    folder = tmp_path / "c"
    crawl = writer(folder)
    crawl.seed([A])
    log, write = crawl._journal.log, os.write

    def both(file: int, data: bytes) -> int:
        mine = {EVENTS: log._events, URLS: log._urls}[name] == file
        if mine and when == "before":
            write(file, b"foreign")
        written = write(file, data)
        if mine and when == "after":
            write(file, b"foreign")
        return written

    with monkeypatch.context() as patch:
        patch.setattr("os.write", both)
        with pytest.raises(StoreError, match="another process writes"):
            crawl.crawled(A, ["/new"])
    crawl.close()
    # What was not acknowledged is a torn tail.
    with writer(folder) as again:
        assert "cut off" in again.recovered
        assert again.crawled(A, [])


@pytest.mark.usefixtures("no_locks")
def test_a_tail_that_grows_is_not_cut(tmp_path: Path, monkeypatch):
    folder = tmp_path / "c"
    first = writer(folder)
    first.seed([A, B])
    with (folder / EVENTS).open("ab") as file:
        file.write(b"unfinished")
    # The other process goes on while this one opens the crawl.
    copy = "inlink.store.log._copy"

    def slowly(*given: object) -> None:
        with (folder / EVENTS).open("ab") as file:
            file.write(b" event")

    monkeypatch.setattr(copy, slowly)
    with pytest.raises(InUseError, match="is being written by another process") as refused:
        writer(folder)
    one_line(refused.value, folder)
    assert (folder / EVENTS).read_bytes().endswith(b"unfinished event")
    with pytest.raises(StoreError):
        first.crawled(A, [])
    first.close()


@pytest.mark.usefixtures("no_locks")
def test_a_writer_that_was_overtaken_is_told_at_the_next_sync(tmp_path: Path):
    """The log has the size that the first one knows, as after a pause in which another one cut and wrote."""
    first = writer(tmp_path / "c")
    first.seed([A])
    log = first._journal.log
    log.sync()
    newest = ends_in(tmp_path / "c")[0]
    second = writer(tmp_path / "c")
    second.seed([B])
    second._journal.log.sync()
    assert ends_in(tmp_path / "c")[0].writer != newest.writer
    with pytest.raises(StoreError, match="another process writes the crawl"):
        log.sync()
    for crawl in (first, second):
        crawl.close()


@pytest.mark.parametrize("open_", [True, False])
@pytest.mark.parametrize("lock", [True, False])
def test_a_copy_of_hard_links_gets_files_of_its_own(tmp_path: Path, open_: bool, lock: bool):
    folder = tmp_path / "c"
    first = writer(folder)
    first.seed([A, B])
    if not open_:
        first.close()
    copy = hard_links(folder)
    if not lock:
        (copy / LOCK).unlink()
    with writer(copy) as second:
        assert second.crawled(A, ["/copy"])
    if open_:
        assert first.crawled(B, ["/original"])
        first.close()
    with writer(folder) as again:
        assert again.page("http://a.com/copy") is None
    assert crawled(folder) == ({B} if open_ else set())
    assert crawled(copy) == {A}
    for name in FILES:
        assert (folder / name).stat().st_nlink == (copy / name).stat().st_nlink == 1
    for path in (folder, copy):
        verify(path)


def test_the_original_of_hard_links_leaves_the_copy_as_it_is(tmp_path: Path):
    folder = tmp_path / "c"
    with writer(folder) as crawl:
        crawl.seed([A])
    copy = hard_links(folder)
    before = {name: (copy / name).read_bytes() for name in FILES}
    with writer(folder) as crawl:
        assert crawl.crawled(A, ["/1"])
    assert {name: (copy / name).read_bytes() for name in FILES} == before
    verify(copy)


def test_a_linked_original_that_is_open_is_not_taken_for_the_copy(tmp_path: Path):
    folder = tmp_path / "c"
    with writer(folder) as first:
        first.seed([A])
        hard_links(folder)
        for _ in range(2):
            with pytest.raises(InUseError):
                writer(folder)
            (folder / LOCK).unlink(missing_ok=True)
        # It is told at the end that its lock is gone.
        first.crawled(A, [])
        (folder / LOCK).touch()
        with pytest.raises(StoreError, match="lock was removed or replaced"):
            first.close()
    assert crawled(folder) == {A}


@pytest.mark.parametrize("name", [EVENTS, URLS])
def test_a_file_that_is_removed_stops_the_writer(tmp_path: Path, name: str):
    crawl = writer(tmp_path / "c")
    crawl.seed([A])
    (tmp_path / "c" / name).unlink()
    with pytest.raises(StoreError, match=f"{name} was removed or replaced") as told:
        crawl.close()
    one_line(told.value, tmp_path / "c")


def test_a_folder_that_is_moved_is_written_on(tmp_path: Path):
    with writer(tmp_path / "c") as crawl:
        crawl.seed([A])
        (tmp_path / "c").rename(tmp_path / "d")
        assert crawl.crawled(A, [])
    assert crawled(tmp_path / "d") == {A}


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch):
    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(FolderError, match=r"lock cannot be locked \(Operation not supported\)") as refused:
        writer(tmp_path / "c")
    one_line(refused.value, tmp_path / "c")


@pytest.mark.usefixtures("no_locks")
def test_a_full_disk_takes_away_only_what_is_this_process_s(tmp_path: Path, monkeypatch):
    folder = tmp_path / "c"
    crawl = writer(folder)
    crawl.seed([A])
    log, write = crawl._journal.log, os.write

    def full(file: int, data: bytes) -> int:
        if file == log._events:
            write(file, data[:20])
            write(file, b"foreign")
            raise OSError(28, "No space left on device")
        return write(file, data)

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        with pytest.raises(StoreError, match="No space left on device"):
            crawl.crawled(A, ["/new"])
    assert (folder / EVENTS).read_bytes().endswith(b"foreign")
    assert b"/new" not in (folder / URLS).read_bytes()
    crawl.close()


def test_an_error_at_the_end_leaves_a_new_crawl_where_it_is(tmp_path: Path):
    """Until its opening has succeeded, a new folder is removed after an error, but not later."""
    folder = tmp_path / "c"
    crawl = writer(folder)
    crawl.seed([A])
    (folder / LOCK).unlink()
    with pytest.raises(StoreError):
        crawl.close()
    known_pages(folder).close()
