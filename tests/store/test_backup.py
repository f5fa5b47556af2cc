"""``inlink backup``: a consistent copy of a crawl that another process is writing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import inlink
from crawlstrategies import Clock, opened, stored_pages
from inlink.base.folder import building
from inlink.cli import commands
from inlink.errors import FolderError, OutputError
from inlink.store.backup import backup
from inlink.store.inbox import SEED, pending, post
from inlink.store.log import EVENTS, RANKS, URLS
from inlink.store.reader import known_pages
from inlink.store.repair import examine
from patience import finish, wait_until

CHILD = """
import sys
from pathlib import Path
import inlink
folder, stop = Path(sys.argv[1]), Path(sys.argv[2])
with inlink.Crawl(folder, politeness={"delay": 0, "in_flight": 1000}, rerank_share=None) as crawl:
    crawl.seed([f"http://h{k}.com/" for k in range(20)])
    while not stop.exists():
        for lease in crawl.next(5):
            crawl.crawled(lease, [f"/{lease.number}/{k}" for k in range(10)])
"""


@pytest.mark.slow
def test_a_running_crawl_is_copied(tmp_path: Path):
    folder, stop = tmp_path / "c", tmp_path / "stop"
    child = subprocess.Popen([sys.executable, "-c", CHILD, folder, stop], text=True, stderr=subprocess.PIPE)
    copies = []
    try:
        wait_until(
            lambda: (
                child.poll() is not None
                or ((folder / URLS).exists() and (folder / URLS).stat().st_size > 5000)
            ),
            "the crawl to begin",
        )
        for number in range(5):
            size = (folder / EVENTS).stat().st_size
            copies.append(tmp_path / f"copy-{number}")
            done = backup(folder, copies[-1])
            assert done.size >= size
            wait_until(lambda size=size: (folder / EVENTS).stat().st_size > size + 5000, "the crawl to go on")
    finally:
        stop.touch()
        _, error = finish(child)
    assert child.returncode == 0, error
    whole = {name: (folder / name).read_bytes() for name in (URLS, EVENTS)}
    for copy in copies:
        assert not (copy / "lock").exists()
        report = examine(copy)
        assert (report.damages, report.tail) == ([], 0)
        for name, raw in whole.items():
            assert raw.startswith((copy / name).read_bytes())
        pages = report.pages
        with inlink.Crawl(copy) as crawl:
            assert "cut off" not in crawl.recovered
            assert stored_pages(crawl).num_pages == pages
            assert crawl.settings.politeness.delay == 0
            crawl.seed(["http://new.com/"])
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def crawl_folder(folder: Path) -> Path:
    with opened(folder, Clock(), policy="pagerank") as crawl:
        crawl.seed(["http://a.com/"])
        crawl.crawled("http://a.com/", ["/1", "/2"])
        crawl.rerank(wait=True)
    return folder


def test_the_ranking_settings_and_inbox_are_in_the_copy(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    if not (folder / RANKS).exists():
        with building(folder / RANKS, RANKS, 1) as writer:
            writer.header.meta = {"covers": 1}
    post(folder, SEED, "http://wanted.com/")
    (folder / "torn").mkdir()
    done = CliRunner().invoke(commands, ["-q", "backup", str(folder), "-o", str(tmp_path / "copy")])
    assert done.exit_code == 0, done.output
    assert "3 pages" in done.output
    copy = tmp_path / "copy"
    for name in (URLS, EVENTS, "header.json", "settings.json", f"{RANKS}/header.json"):
        assert (copy / name).read_bytes() == (folder / name).read_bytes()
    assert [text for _, _, text in pending(copy)] == ["http://wanted.com/"]
    assert not (copy / "lock").exists()
    assert not (copy / "torn").exists()
    with pytest.raises(OutputError, match="exists"):
        backup(folder, copy)
    with pytest.raises(OutputError, match="exists"):
        backup(folder, folder)


def test_the_tail_that_is_being_written_is_left_out(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    sizes = {name: (folder / name).stat().st_size for name in (URLS, EVENTS)}
    for name in (URLS, EVENTS):
        with (folder / name).open("ab") as file:
            file.write(b"half of it")
    backup(folder, tmp_path / "copy")
    assert sizes == {name: (tmp_path / "copy" / name).stat().st_size for name in (URLS, EVENTS)}


@pytest.mark.parametrize("name", [URLS, EVENTS, "header.json"])
def test_a_damaged_crawl_is_not_copied(tmp_path: Path, name: str):
    folder = crawl_folder(tmp_path / "c")
    raw = bytearray((folder / name).read_bytes())
    raw[10] ^= 4
    (folder / name).write_bytes(raw)
    with pytest.raises(FolderError, match=str(folder)):
        backup(folder, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_damaged_ranking_is_left_out(tmp_path: Path):
    folder = crawl_folder(tmp_path / "c")
    shutil.rmtree(folder / RANKS, ignore_errors=True)
    with building(folder / RANKS, RANKS, 1) as writer:
        writer.header.meta = {"covers": 1}
    raw = bytearray((folder / RANKS / "header.json").read_bytes())
    raw[20] ^= 1
    (folder / RANKS / "header.json").write_bytes(raw)
    backup(folder, tmp_path / "copy")
    assert not (tmp_path / "copy" / RANKS).exists()
    known_pages(tmp_path / "copy").close()
