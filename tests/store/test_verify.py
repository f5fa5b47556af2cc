"""``inlink info --verify`` compares all checksums in a crawl's folder, and tells damage with the remedy."""

import shutil
from pathlib import Path

import pytest

from checkpoints import keep
from crawlstrategies import Clock, opened
from foldercommands import run
from inlink.crawl.crawl import Crawl
from inlink.errors import FolderError
from inlink.store import urls
from inlink.store.verify import verify


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A crawl's folder with an index, a checkpoint, a ranking of the crawl's, and a stored one."""
    monkeypatch.setattr(urls, "_FEW", 10)
    with opened(tmp_path / "crawl", Clock(), policy="pagerank") as crawl:
        crawl.seed(["http://a.com/"])
        for number in range(20):
            crawl.crawled(
                "http://a.com/" if not number else f"http://a.com/{number}", [f"http://a.com/{number + 1}"]
            )
        crawl.rerank(wait=True)
        keep(crawl)
    run("rank", tmp_path / "crawl")
    return tmp_path / "crawl"


def test_each_file_with_a_changed_byte_is_refused(folder):
    verify(folder)
    assert run("info", folder, "--verify") == run("crawl-info", folder)
    paths = [path for path in folder.rglob("*.bin") if path.stat().st_size]
    paths.remove(folder / "end.bin")
    kinds = {path.relative_to(folder).parts[0] for path in paths}
    assert kinds == {"index", "checkpoint", "ranks", "rankings"}
    for path in [*paths, folder / "urls.txt", folder / "events.log", folder / "checkpoint" / "header.json"]:
        raw = path.read_bytes()
        place = len(raw) // 2
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 4]) + raw[place + 1 :])
        with pytest.raises(FolderError) as caught:
            run("info", folder, "--verify")
        assert str(path) in str(caught.value)
        part = path.relative_to(folder).parts[0]
        remedy = {
            "rankings": "rank the crawl again",
            "urls.txt": "inlink repair",
            "events.log": "inlink repair",
        }
        assert remedy.get(part, "remove this folder, and the crawl makes it again") in str(caught.value)
        path.write_bytes(raw)
    verify(folder)


def test_a_running_crawl_and_one_without_the_folders_are_verified(folder):
    for name in ("index", "checkpoint", "ranks", "rankings"):
        shutil.rmtree(folder / name)
    with Crawl(folder, clock=Clock()) as crawl:
        crawl.seed(["http://later.com/"])
        verify(folder)


def test_a_folder_that_is_replaced_meanwhile_is_read_again(folder, monkeypatch):
    """The files of the first header are gone as soon as the crawl has written another generation."""
    replaced = []
    whole = urls.Folder.verify

    def late(self, names=None):
        if self.path.name == "checkpoint" and not replaced:
            replaced.append(self.path)
            with Crawl(folder, clock=Clock()) as crawl:
                keep(crawl)
        whole(self, names)

    monkeypatch.setattr(urls.Folder, "verify", late)
    verify(folder)
    assert replaced
