"""Any byte of any file of a crawl's folder flipped, the index included: the right answer, or an error in one line."""

import itertools
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from crawlstrategies import Clock, opened
from inlink.base.folder import Folder, building
from inlink.errors import FolderError, InlinkError
from inlink.store import urls as urls_module
from inlink.store.events import Events
from inlink.store.log import END, EVENTS, INDEX, URLS
from inlink.store.reader import known_pages
from storefolders import look_up

PAGES = 330


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A crawl of 330 pages, most of them in an index."""
    monkeypatch.setattr(urls_module, "_FEW", 64)
    with opened(tmp_path / "c", Clock(), policy="hosts-in-turns") as crawl:
        crawl.seed([f"http://a.com/{k}" for k in range(300)])
        for k in range(300):
            crawl.crawled(f"http://a.com/{k}", [f"http://b.com/{k % 30}"])
    # What this one adds stands behind the index.
    monkeypatch.setattr(urls_module, "_FEW", 1 << 20)
    assert (tmp_path / "c" / INDEX).is_dir()
    return tmp_path / "c"


def urls_of(folder: Path) -> list[str]:
    with closing(known_pages(folder)) as pages:
        found = [pages.url(page) for page in range(pages.num_pages)]
        assert pages.table.find(found).tolist() == list(range(len(found)))
        assert pages.table.page_of("http://a.com/none") == 0xFFFFFFFF
        return found


def names(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return sorted(str(path.relative_to(folder)) for path in files)


@pytest.mark.slow
def test_any_byte_of_any_file(folder: Path):
    right = urls_of(folder)
    assert len(right) == PAGES
    wanted = [right[k] for k in (0, 32, 299, PAGES - 1)]
    pages = {url: look_up(folder, url) for url in wanted}
    assert {"checks.bin", "counts.bin", "marks.bin", "slots.bin"} <= {
        Path(name).name for name in names(folder)
    }
    for name in names(folder):
        file = folder / name
        raw = file.read_bytes()
        refused = tried = 0
        for byte in range(0, len(raw), max(len(raw) // 4, 1)):
            file.write_bytes(raw[:byte] + bytes([raw[byte] ^ 2]) + raw[byte + 1 :])
            tried += 1
            try:
                assert urls_of(folder) == right, (name, byte)
            except FolderError as error:
                refused += "\n" not in str(error)
            for number, (url, page) in enumerate(pages.items()):
                for given in (url, page.id):
                    try:
                        assert look_up(folder, given) == page, (name, byte, number)
                    except FolderError:
                        continue
            try:
                assert look_up(folder, "http://a.com/none") is None
            except FolderError:
                continue
        file.write_bytes(raw)
        # Only the index can be done without. A mark of a sync at the end of the log may be torn.
        if name.startswith(INDEX):
            assert refused == 0, name
        elif name in (URLS, EVENTS):
            assert refused >= tried - 2, name


def test_a_damaged_url_behind_an_index_is_refused_where_it_is(folder: Path):
    raw = (folder / URLS).read_bytes()
    (folder / URLS).write_bytes(raw[:40] + bytes([raw[40] ^ 1]) + raw[41:])
    for way in (lambda: opened(folder, Clock()), lambda: known_pages(folder)):
        with pytest.raises(FolderError, match=f"{URLS} is damaged at byte 0 "):
            way()
    with pytest.raises(FolderError, match=r"damaged.*URLs"):
        look_up(folder, 3)
    with pytest.raises(InlinkError, match="damaged"):
        look_up(folder, "http://a.com/3")


def wild_index(folder: Path, change) -> None:
    """Replace slots and counts of the index; the checksums are right."""
    old = Folder(folder / INDEX, INDEX, urls_module.INDEX_VERSION)
    arrays = {name: old.array(name).copy() for name in old.header.files}
    meta = old.header.meta
    shutil.rmtree(folder / INDEX)
    change(arrays)
    with building(folder / INDEX, INDEX, urls_module.INDEX_VERSION) as writer:
        for name, array in arrays.items():
            writer.write(name, array)
        writer.header.meta = meta


def page_beyond_all(arrays):
    arrays["slots"][7] |= np.uint64(0xFFFFFF00)


def page_0(arrays):
    arrays["slots"][7] &= np.uint64(0xFFFFFFFF00000000)


def tags_out_of_order(arrays):
    # This sends about 200 entries to the last place of one shard, which has room for 64.
    arrays["slots"][int(arrays["counts"][:100].sum()) :] |= np.uint64(0xFFFFFFFF00000000)
    arrays["counts"][100] += arrays["counts"][101:].sum()
    arrays["counts"][101:] = 0


def counts_that_wrap(arrays):
    arrays["counts"][0] += np.uint64(1 << 63)
    arrays["counts"][1] += np.uint64(1 << 63)


@pytest.mark.parametrize("change", [page_beyond_all, page_0, tags_out_of_order, counts_that_wrap])
def test_a_wild_index_with_right_checksums_is_not_used(folder: Path, change):
    right = urls_of(folder)
    wild_index(folder, lambda arrays: None)
    reader = known_pages(folder)
    assert reader.table.indexed
    reader.close()
    wild_index(folder, change)
    assert urls_of(folder) == right
    reader = known_pages(folder)
    assert not reader.table.indexed
    reader.close()


def test_an_index_of_an_earlier_version_is_made_anew(folder: Path, monkeypatch):
    header = folder / INDEX / "header.json"
    right = urls_of(folder)
    shutil.rmtree(folder / INDEX)
    assert urls_of(folder) == right
    with building(folder / INDEX, INDEX, 1) as writer:
        writer.header.meta = {"pages": 7}
    assert urls_of(folder) == right
    assert look_up(folder, right[5]).id == 5
    monkeypatch.setattr(urls_module, "_FEW", 64)
    with opened(folder, Clock()):
        pass
    assert b'"version": 2' in header.read_bytes()


def test_an_index_of_more_than_a_shortened_log_does_not_outlive_the_opening(folder: Path):
    """A power cut took events that the index covers; other URLs take their place in the log."""
    (folder / END).unlink()
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    index = folder.parent / INDEX
    shutil.copytree(folder / INDEX, index)
    events = Events(np.fromfile(folder / EVENTS, np.uint8))
    with (folder / EVENTS).open("rb+") as file:
        file.truncate(next(itertools.islice(events, 1, None)).place)
    with opened(folder, Clock()) as crawl:
        crawl.seed([f"http://other.com/{k}/{'x' * 60}" for k in range(2_000)])
    assert not (folder / INDEX).exists()
    assert len(urls_of(folder)) == 2_000
    with opened(folder, Clock()) as crawl:
        assert crawl.page("http://other.com/1999/" + "x" * 60).state == "discovered"
    # Such an index, had it stayed, is refused rather than believed.
    shutil.copytree(index, folder / INDEX)
    with pytest.raises(FolderError, match="does not belong to the URLs"):
        urls_of(folder)
