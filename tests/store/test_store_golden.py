"""The golden crawl folder: what is read from it, by every reader there is; folders of other versions are refused."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import inlink
from crawlstrategies import stored_pages
from goldencrawl import GOLDEN, GOLDEN_2, SETTINGS, make
from inlink.base.folder import Folder
from inlink.crawl.folder import look
from inlink.errors import FolderError, InUseError
from inlink.store import format as layout
from inlink.store.blocks import arcs_of, page_columns
from inlink.store.events import Events
from inlink.store.format import HEAD_SIZE
from inlink.store.log import EVENTS, UPGRADED, URLS, ends_in, lock
from inlink.store.reader import crawl_folder, known_pages
from inlink.store.repair import examine
from inlink.store.verify import verify
from storefolders import links_to, look_up

CRAWLED, WAITS, MERGED = "crawled", "discovered", "merged"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "c"))


def test_the_same_bytes_are_made_today(tmp_path: Path):
    make(tmp_path / "c")
    for name in (URLS, EVENTS):
        assert (tmp_path / "c" / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_every_kind_of_event_is_in_it():
    events = list(Events(np.fromfile(GOLDEN / EVENTS, np.uint8)))
    # Marks of a sync are no events: nobody who follows a crawl is given them. Only a repair writes repaired events.
    # This log is older than canonical pages, facts, items and shards.
    assert {event.kind for event in events} == set(layout.KINDS[1:]) - {
        "synced",
        "repaired",
        "canonical",
        "facts",
        "items",
        "received",
    }
    assert [event.time for event in events] == sorted(event.time for event in events)
    by_kind = {event.kind: event for event in events[:-2]}
    assert by_kind["seed"].pages.tolist() == [0]
    assert by_kind["lease"].pages.tolist() == [1, 2, 3]
    assert by_kind["release"].pages.tolist() == [2]
    assert by_kind["lost"].pages.tolist() == [3]
    assert by_kind["reload"].pages.tolist() == by_kind["exclude"].pages.tolist() == [4]
    assert by_kind["merge"].pages.tolist() == [4]
    assert by_kind["failed"].lease == 2
    visit = by_kind["visit"]
    assert (visit.pages.tolist(), visit.first, visit.new, visit.lease) == ([1, 2, 3], 1, 3, 1)
    assert visit.scores is not None
    assert visit.scores.tolist() == [0.25, 0.5, 0.0]


def test_the_pages_of_a_golden_folder_are_read(folder: Path):
    pages = known_pages(folder)
    assert [pages.url(page) for page in range(5)] == (folder / URLS).read_text().split()
    found = [pages.page(page) for page in range(5)]
    assert [page.state for page in found] == [CRAWLED, WAITS, MERGED, WAITS, WAITS]
    assert pages.state_counts.tolist() == [3, 0, 1, 0, 0, 0, 1]
    home = found[0]
    assert (home.first_crawl, home.last_crawl, home.crawls, home.changes) == (4.0, 19.0, 2, 1)
    assert (home.content_hash, home.status, home.score) == (b"\x08" * 16, 200, 0.5)
    # A merge costs no click. Logs of this version do not say why a page was merged.
    assert [page.depth for page in found] == [0, 1, 1, 1, 1]
    assert (found[2].merge_reason, found[2].status) == (None, 0)
    assert [page.linked_from for page in found] == [None, home.url, home.url, home.url, found[2].url]
    assert (found[1].error, found[1].errors, found[1].score) == ("connection refused", 1, 0.25)
    assert found[2].merged_into == found[4].url
    assert pages.given == {0: "HTTP://A.example"}
    assert [pages.carried(page) for page in range(4)] == [
        None,
        None,
        b"another request of c",
        b"request of d",
    ]
    assert pages.links(0).tolist() == [0, 1, 3]
    assert links_to(pages, 4).tolist() == []
    assert pages.losses[3] == 1
    leases = pages.frames.open_leases()
    assert (leases.numbers.tolist(), leases.following) == ([], 5)
    assert [look_up(folder, number) for number in range(5)] == found
    pages.close()


def test_settings_are_the_first_event(folder: Path):
    reader = known_pages(folder)
    place = reader.frames.of_kind(layout.SETTINGS)[0]
    assert reader.frames.frame(place).payload == SETTINGS
    reader.close()


def test_it_opens_as_a_crawl_as_a_graph_and_to_be_looked_at(folder: Path):
    frontier = look(folder, clock=lambda: 1000.0)
    assert frontier.pages.num_pages == 5
    frontier.pages.close()
    pages = known_pages(folder, with_urls=False)
    arcs = [
        (int(a), int(b))
        for sources, targets, _ in arcs_of(pages)
        for a, b in zip(sources, targets, strict=True)
    ]
    assert sorted(arcs) == [(0, 0), (0, 1), (0, 3)]
    columns, _ = page_columns(pages, 0, 5)
    assert columns["status"].tolist() == [200, 0, 0, 0, 0]
    assert columns["crawls"].tolist() == [2, 0, 0, 0, 0]
    pages.close()
    with inlink.Crawl(folder, clock=lambda: 1000.0, policy="hosts-in-turns") as crawl:
        assert crawl.settings.politeness.delay == 2.0  # as the log has it
        assert stored_pages(crawl).tally.events == 26
        # A page that was lost comes back alone.
        (lost,) = crawl.next(9)
        assert lost.url == "http://d.example/"
        crawl.crawled(lost, [])
        assert {lease.url for lease in crawl.next(9)} == {"http://a.example/b", "http://c.example/home"}


@pytest.mark.parametrize("version", [1, 4])
def test_other_versions_are_refused_in_one_line(folder: Path, version: int):
    header = folder / "header.json"
    header.write_text(json.dumps(json.loads(header.read_text()) | {"version": version, "check": None}))
    told = rf"format version {version}\b"
    for way in (known_pages, inlink.Crawl, inlink.read, look, lambda path: look_up(path, 0)):
        with pytest.raises((FolderError, inlink.errors.FormatError), match=told) as error:
            way(folder)
        assert "\n" not in str(error.value)
        assert "inlink" in str(error.value).split(":")[-1]


# -- upgrades -------------------------------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN_2, tmp_path / "old"))


def is_upgraded(folder: Path) -> None:
    """The folder is the golden folder of today, byte by byte, and its end is known."""
    for name in (URLS, EVENTS):
        assert (folder / name).read_bytes() == (GOLDEN / name).read_bytes()
    assert not (folder / UPGRADED).exists()
    (end,) = ends_in(folder)
    sizes = [(GOLDEN / name).stat().st_size for name in (URLS, EVENTS)]
    assert [end.urls_end, end.events_end, end.frames, end.pages] == [*sizes, 26, 5]
    verify(folder)


@pytest.mark.parametrize(
    "way", [known_pages, look, lambda path: look_up(path, 0), verify, inlink.read, examine]
)
def test_an_old_folder_is_upgraded_by_whoever_opens_it(old: Path, way):
    (old / "torn").mkdir()
    (old / "torn" / "kept").write_text("kept")
    uuid = Folder(old, "crawl", 9).header.uuid
    way(old)
    is_upgraded(old)
    assert Folder(old, "crawl", 9).header.uuid == uuid
    assert (old / "torn" / "kept").read_text() == "kept"


def test_an_old_folder_is_crawled_on(old: Path):
    with inlink.Crawl(old, clock=lambda: 1000.0, policy="hosts-in-turns") as crawl:
        assert stored_pages(crawl).tally.events == 26
        assert crawl.next(9)
    verify(old)


@pytest.mark.parametrize("at", [1500, 2890])
def test_damage_and_torn_tails_stay_what_they_are(old: Path, at: int):
    raw = bytearray((old / EVENTS).read_bytes())
    raw[at] ^= 1
    (old / EVENTS).write_bytes(raw)
    if at == 1500:
        with pytest.raises(FolderError, match=r"damaged at byte .* was safe on disk"):
            known_pages(old)
        assert len(examine(old).damages) == 1
    else:
        # The mark of the last sync itself was not synced.
        known_pages(old).close()
        assert examine(old).tail == HEAD_SIZE
    assert (old / EVENTS).stat().st_size == len(raw)


def test_a_killed_upgrade_leaves_a_whole_folder(old: Path, monkeypatch):
    """The process dies at each step that changes the folder: the folder is the old one, or the next opening ends it."""
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    steps = ("rename", "replace", "write_bytes", "fsync")

    class Killed(BaseException):
        pass

    def run(allowed: int) -> bool:
        """Upgrade with a number of steps; return whether that was enough."""
        left = [allowed]

        def stepping(real):
            def step(*given, **more):
                if not left[0]:
                    raise Killed
                left[0] -= 1
                return real(*given, **more)

            return step

        with monkeypatch.context() as patch:
            for name in steps[:3]:
                patch.setattr(Path, name, stepping(getattr(Path, name)))
            patch.setattr(os, "fsync", stepping(os.fsync))
            try:
                crawl_folder(old)
            except Killed:
                return False
        return True

    allowed = 0
    seen = set()
    while not run(allowed):
        header = Folder(old, "crawl", 9).header
        seen.add(header.version)
        if header.version == 2:
            # The inlink that made it still reads it.
            assert {name: (old / name).read_bytes() for name in before} == before
        known_pages(old).close()
        is_upgraded(old)
        shutil.rmtree(old)
        shutil.copytree(GOLDEN_2, old)
        allowed += 1
    assert seen == {2, 3}
    is_upgraded(old)


def test_an_old_folder_that_is_crawled_is_refused(old: Path):
    with lock(old), pytest.raises(InUseError, match="is being crawled by process") as refused:
        known_pages(old)
    assert "\n" not in str(refused.value)
    assert Folder(old, "crawl", 9).header.version == 2


def test_an_old_folder_that_cannot_be_written_is_refused(old: Path, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(
        FolderError, match=r"format version 2 and cannot be upgraded \(.*No space left"
    ) as refused:
        known_pages(old)
    assert "\n" not in str(refused.value)
    monkeypatch.undo()
    known_pages(old).close()
    is_upgraded(old)
