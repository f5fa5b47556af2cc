"""Torn tails are kept, and who only looks at a crawl changes nothing in its folder."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import inlink
from checkpoints import crawl_with_checkpoint
from crawlstrategies import Clock, opened, stored_pages
from inlink.base.folder import building
from inlink.cli import commands
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.errors import FolderError, InlinkError, StoreError
from inlink.store import log as logs
from inlink.store import mapped
from inlink.store.log import END, EVENTS, INDEX, RANKS, TORN, URLS
from inlink.store.reader import is_crawl, known_pages
from storefolders import flip, look_up

A = "http://a.com/"


def crawl_folder(folder: Path) -> Path:
    with opened(folder, Clock(), policy="hosts-in-turns") as crawl:
        crawl.seed([A, "http://b.com/"])
        crawl.crawled(A, ["/1", "/2"], score=0.5)
    return folder


def tear(folder: Path) -> tuple[bytes, bytes]:
    """Append an unfinished tail to both files."""
    tails = (b"http://never.com/\nhttp://ne", b"\x40\0\0\0 half a frame")
    for name, tail in zip((URLS, EVENTS), tails, strict=True):
        with (folder / name).open("ab") as file:
            file.write(tail)
    return tails


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a folder with its bytes and its time, and every folder with its time."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in [folder, *folder.rglob("*")]
    }


def test_a_torn_tail_is_moved_aside_and_told_in_one_line(tmp_path: Path, caplog):
    folder = crawl_folder(tmp_path / "c")
    sizes = {name: (folder / name).stat().st_size for name in (URLS, EVENTS)}
    tails = dict(zip((URLS, EVENTS), tear(folder), strict=True))
    with caplog.at_level("INFO", "inlink.crawl"), opened(folder, Clock()) as crawl:
        told = crawl.recovered
    kept = sorted((folder / TORN).iterdir())
    assert len(kept) == 2
    for path in kept:
        time, _, rest = path.name.partition("Z.")
        name, _, begin = rest.rpartition(".")
        assert path.read_bytes() == tails[name]
        assert int(begin) == sizes[name]
        assert time.startswith("20")
        assert f"{TORN}/{path.name}" in told
    assert "\n" not in told
    assert told in caplog.messages
    with opened(folder, Clock()) as crawl:
        assert "cut off" not in crawl.recovered
    # Another tail is kept beside the first.
    tear(folder)
    with opened(folder, Clock()):
        assert len(list((folder / TORN).iterdir())) == 4


def test_tails_are_on_disk_before_anything_is_cut(tmp_path: Path, monkeypatch):
    folder = crawl_folder(tmp_path / "c")
    tear(folder)
    done: list[str] = []
    sync, cut = os.fsync, os.ftruncate

    def syncing(file: int) -> None:
        done.append("sync")
        sync(file)

    def cutting(file: int, size: int) -> None:
        # The lock's pid is cut too.
        if size:
            done.append("cut")
            assert len(list((folder / TORN).iterdir())) == 2
        cut(file, size)

    monkeypatch.setattr("os.fsync", syncing)
    monkeypatch.setattr("os.ftruncate", cutting)
    with opened(folder, Clock()):
        pass
    # A file and its folder, twice.
    assert done[:6] == ["sync"] * 4 + ["cut"] * 2


def test_a_tail_that_cannot_be_kept_is_not_cut(tmp_path: Path, monkeypatch):
    folder = crawl_folder(tmp_path / "c")
    tear(folder)
    before = {name: (folder / name).read_bytes() for name in (URLS, EVENTS)}

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=r"No space left on device.*free some space") as error:
        opened(folder, Clock())
    assert "\n" not in str(error.value)
    assert {name: (folder / name).read_bytes() for name in (URLS, EVENTS)} == before
    monkeypatch.undo()
    with opened(folder, Clock()) as crawl:
        assert crawl.page(A) is not None


def test_a_log_without_any_sound_event_is_a_tail_only_while_it_is_young(tmp_path: Path, monkeypatch):
    folder = crawl_folder(tmp_path / "c")
    events = (folder / EVENTS).read_bytes()
    (folder / EVENTS).write_bytes(bytes(byte ^ 1 for byte in events))
    # It tells that the log was safe on disk.
    (folder / END).unlink()

    def copy(name: str) -> Path:
        return Path(shutil.copytree(folder, tmp_path / name))

    young = copy("young")
    with opened(young, Clock()) as crawl:
        assert crawl.page(A) is None
        assert "were cut off" in crawl.recovered
    assert sum(path.stat().st_size for path in (young / TORN).iterdir()) > len(events)

    def refused(older: Path) -> None:
        before = {name: (older / name).read_bytes() for name in (URLS, EVENTS)}
        for way in (lambda path: opened(path, Clock()), known_pages, look, lambda path: look_up(path, 0)):
            with pytest.raises(FolderError, match="damaged at byte 0"):
                way(older)
        assert {name: (older / name).read_bytes() for name in (URLS, EVENTS)} == before
        assert not (older / TORN).exists()

    for name, field in ((INDEX, "events_end"), (RANKS, "covers")):
        older = copy(name)
        with building(older / name, name, 1) as writer:
            writer.header.meta = {field: 500}
        refused(older)
        (older / EVENTS).unlink()
        (older / EVENTS).touch()
        refused(older)
    large = copy("large")
    monkeypatch.setattr("inlink.store.checks._TAIL", 50)
    refused(large)


# -- who looks changes nothing ----------------------------------------------------------------------------------------

READING = {
    "crawl-info": [],
    "next": ["--peek"],
    "why": [A],
    "find": ["."],
    "links": [A],
    "page": [A],
    "path": [A],
    "dump": [],
    "build": [],
    "export": [],
}


@pytest.mark.parametrize("damage", ["none", "torn", "damaged", "header"])
@pytest.mark.parametrize("command", READING)
def test_reading_commands_change_nothing(tmp_path: Path, command: str, damage: str):
    folder = crawl_folder(tmp_path / "c")
    if damage == "torn":
        tear(folder)
    elif damage == "damaged":
        # A head: even who looks one page up meets it.
        flip(folder / EVENTS, 30)
    elif damage == "header":
        (folder / "header.json").write_bytes(b'{"kind": "crawl", "version": 2')
    before = state_of(folder)
    first = ["dump", "pages"] if command == "dump" else [command]
    out = {"build": "out", "export": "out.tsv"}.get(command)
    more = ["-o", str(tmp_path / out)] if out else READING[command]
    result = CliRunner().invoke(commands, ["-q", *first, str(folder), *more])
    assert state_of(folder) == before
    if damage in ("none", "torn"):
        assert result.exit_code == 0, result.output
    else:
        assert isinstance(result.exception, InlinkError), result.output
        assert "\n" not in str(result.exception)


# -- headers and files that cannot be read ----------------------------------------------------------------------------


def ways_in(folder: Path) -> list[str]:
    """The error of each way into a crawl's folder; none may succeed."""
    found = []
    for way in (
        lambda path: Crawl(path),
        known_pages,
        look,
        lambda path: look_up(path, A),
        lambda path: look_up(path, 0),
    ):
        with pytest.raises(InlinkError) as error:
            pytest.fail(f"{(folder / 'header.json').read_bytes()!r}: {way(folder)}")
        assert "\n" not in str(error.value)
        found.append(str(error.value))
    return found


def test_a_damaged_header_is_one_line(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    header = folder / "header.json"
    good = header.read_bytes()
    for size in range(0, len(good), 7):
        header.write_bytes(good[:size])
        assert all("header.json" in said for said in ways_in(folder))
    data = json.loads(good)
    del data["check"]
    for key, value in (
        ("kind", 7),
        ("version", "2"),
        ("uuid", None),
        ("generation", 1.5),
        ("files", []),
        ("files", {"x": {}}),
        ("files", {"\0": {"dtype": "<u4", "length": 1, "crc32": 0}}),
        ("files", {"x": {"dtype": "x4", "length": 1, "crc32": 0}}),
        ("meta", []),
        ("meta", {}),
        ("meta", {"hash_seed": "7"}),
        ("meta", {"hash_seed": 7, "started": 1.0}),
        ("meta", {"hash_seed": "seven", "started": 1.0}),
        ("meta", {"hash_seed": "9" * 30, "started": 1.0}),
        ("meta", {"hash_seed": "7", "started": "now"}),
        ("meta", {"hash_seed": "7", "started": 1e300}),
        ("meta", {"hash_seed": "7", "started": 1.0, "url_rules": {"sort": True}}),
        ("meta", {"hash_seed": "7", "started": 1.0, "url_rules": {"drop_parameters": 7}}),
    ):
        header.write_text(json.dumps({**data, key: value}))
        assert all("header.json" in said for said in ways_in(folder)), (key, value)
    for raw in (b"\xff" + good, good.replace(b"crawl", b"cr\xe4wl"), b"[" * 100_000, b"null", b"\0" * 500):
        header.write_bytes(raw)
        assert all("header.json" in said for said in ways_in(folder))
        assert not is_crawl(folder)


@pytest.mark.parametrize(("old", "new"), [(b"/1\n", b"/1x"), (b"/12", b"/\n2"), (b"/39\n", b"/39x")])
def test_a_page_behind_a_damaged_line_is_refused(tmp_path: Path, old: bytes, new: bytes):
    """A line that is lost or added before a URL would give it the number of another page."""
    urls = [f"http://a.com/{k}" for k in range(40)]
    with Crawl(tmp_path / "c") as crawl:
        for url in urls:
            crawl.seed([url])
    path = tmp_path / "c" / URLS
    path.write_bytes(path.read_bytes().replace(b"http://a.com" + old, b"http://a.com" + new, 1))
    with inlink.CrawlView.open(tmp_path / "c") as view:
        for question in (view.page, view.path):
            with pytest.raises(FolderError, match="is damaged"):
                question(urls[39])


def test_any_flipped_bit_of_a_header_is_found(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    header = folder / "header.json"
    good = header.read_bytes()
    right = look_up(folder, A)
    for byte in range(len(good)):
        for bit in (1, 4, 32):
            header.write_bytes(good[:byte] + bytes([good[byte] ^ bit]) + good[byte + 1 :])
            try:
                found = look_up(folder, A)
            except FolderError:
                continue
            assert found == right
            # Only the checksum's own name may change without being missed.
            assert good.index(b'"check"') <= byte


@pytest.mark.parametrize("name", [URLS, EVENTS, "header.json", "settings.json", "lock"])
def test_a_file_that_is_missing_or_a_folder_is_one_line(tmp_path: Path, name: str):
    folder = crawl_folder(tmp_path / "c")
    (folder / name).unlink()
    if name in (URLS, EVENTS):
        for way in (known_pages, look, lambda path: look_up(path, A)):
            with pytest.raises(FolderError, match=name):
                way(folder)
    (folder / name).mkdir()
    with pytest.raises(InlinkError, match=name) as error:
        Crawl(folder)
    assert "\n" not in str(error.value)
    if name in (URLS, EVENTS):
        ways_in(folder)


def test_a_full_disk_on_opening_is_one_line(tmp_path: Path, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = crawl_folder(tmp_path / "c")
    for place, target in (("new", tmp_path / "new"), ("old", folder)):
        with monkeypatch.context() as patch:
            patch.setattr("pathlib.Path.write_bytes", full)
            with pytest.raises(InlinkError, match="No space left on device") as error:
                Crawl(target, policy="random")
            assert "\n" not in str(error.value), place
    assert not (tmp_path / "new").exists()
    with monkeypatch.context() as patch:
        patch.setattr(logs, "_write", full)
        with pytest.raises(StoreError, match="No space left on device"):
            Crawl(tmp_path / "newer")
    with Crawl(folder) as crawl:
        assert crawl.page(A) is not None


@pytest.mark.slow
def test_a_view_of_files_that_were_cut_in_place_refuses_and_its_process_lives(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    with opened(folder, Clock()) as crawl:
        for number in range(400):
            crawl.seed([f"http://c.com/{number}-{'x' * 90}"])
    code = """
import sys
from pathlib import Path
import inlink
folder = Path(sys.argv[1])
views = [inlink.CrawlView.open(folder) for _ in range(2)]
views[0].order(9)
views[1].page(0)
for name in ("events.log", "urls.txt"):
    with (folder / name).open("r+b") as file:
        file.truncate(100)
    for view in views:
        for ask in (lambda: view.page(350), lambda: view.links(0), lambda: view.find("c"), lambda: view.dump("links")):
            try:
                ask()
            except inlink.errors.InlinkError as error:
                print(error)
"""
    run = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert f"{folder / EVENTS} is shorter than" in run.stdout
    assert f"{folder / URLS}" in run.stdout


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOMEM, "Cannot allocate memory"), ValueError("mmap length")]
)
def test_a_file_that_cannot_be_mapped_or_read_is_named_with_a_remedy(tmp_path: Path, monkeypatch, fault):
    folder = crawl_folder(tmp_path / "c")

    def fails(*_arguments, **_named):
        raise fault

    with inlink.CrawlView.open(folder) as view:
        monkeypatch.setattr(mapped.mmap, "mmap", fails)
        with pytest.raises(FolderError, match=r"events\.log.*: (free some memory|it is a part of the crawl)"):
            view.order(3)
        monkeypatch.undo()
        view.order(3)
        monkeypatch.setattr(os, "pread", fails if isinstance(fault, OSError) else os.pread)
        if isinstance(fault, OSError):
            with pytest.raises(
                FolderError, match=r"(events\.log|urls\.txt): Cannot allocate memory: free some memory"
            ):
                view.page(A)


def test_a_folder_whose_header_cannot_be_read_for_a_moment_is_not_taken_for_a_new_one(
    tmp_path: Path, monkeypatch
):
    for _ in range(2):
        with building(tmp_path / "r", "ranks", 1) as writer:
            writer.write("rank", np.zeros(3, np.float32))
    before, read = state_of(tmp_path / "r"), Path.read_bytes

    def fails(path: Path) -> bytes:
        if path.name == "header.json":
            raise OSError(errno.EIO, "Input/output error")
        return read(path)

    with (
        pytest.raises(FolderError, match=r"header\.json: cannot be read \(Input/output error\)"),
        building(tmp_path / "r", "ranks", 1),
    ):
        monkeypatch.setattr(Path, "read_bytes", fails)
    monkeypatch.undo()
    assert state_of(tmp_path / "r").keys() == before.keys()


def test_a_torn_tail_behind_a_checkpoint_is_cut_and_urls_are_read(tmp_path: Path):
    folder = crawl_with_checkpoint(tmp_path / "c")
    with (folder / URLS).open("ab") as file:
        file.write(b"http://never.com/\n" * 400)
    with opened(folder, Clock()) as crawl:
        pages = stored_pages(crawl)
        assert all(pages.url(page) for page in range(pages.num_pages))
