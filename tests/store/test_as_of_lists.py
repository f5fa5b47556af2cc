"""Lists of hosts that were replaced: time travel uses those that held then."""

import shutil

import msgspec
import pytest

import inlink
from crawlstrategies import stored_pages
from inlink.crawl import upkeep
from inlink.crawl.asof import as_of
from inlink.store.backup import backup
from inlink.store.format import SETTINGS
from inlink.store.prior import DISTRUST, LISTS, PRIOR, kept_checksum, kept_places

EASY = inlink.Politeness(delay=0, in_flight=1000)


@pytest.fixture(autouse=True)
def _many_rankings(monkeypatch):
    monkeypatch.setattr(upkeep, "FIRST_PAGES", 5)
    monkeypatch.setattr(upkeep, "LEAST_GROWTH", 4)


def order(folder):
    return [(row.url, row.priority) for row in inlink.CrawlView.open(folder, lambda: 1e6).order(50).rows]


def crawled(folder, first, **given):
    """Crawl a part of a web, and return the number of events and the order of the waiting pages."""
    clock = inlink.VirtualClock(1_000.0)
    with inlink.Crawl(
        folder, politeness=EASY, policy="pagerank", rerank_share=0.2, clock=clock, **given
    ) as crawl:
        if not first:
            crawl.seed(["http://h0.example/"])
        for k in range(first, first + 12):
            for lease in crawl.next(1):
                crawl.crawled(lease, [f"http://h{(k * j) % 5}.example/{(k * j) % 37}" for j in range(1, 7)])
        events = stored_pages(crawl).tally.events
    return events, order(folder)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "crawl"


@pytest.fixture
def moments(folder, tmp_path):
    """Moments of a crawl whose lists were replaced three times under one name: number of events, and order."""
    spam, hosts = tmp_path / "spam.txt", tmp_path / "hosts.txt"
    found = []
    for k, (listed, places) in enumerate(
        [
            ("h1.example", "h2.example\t5\n"),
            ("h3.example", "h2.example\t5\n"),
            ("h3.example", "h4.example\t2\n"),
        ]
    ):
        spam.write_text(listed + "\n")
        hosts.write_text(places + "h0.example\t1\n")
        found.append(crawled(folder, 12 * k, distrust=str(spam), prior=str(hosts)))
    found.append(crawled(folder, 36, distrust=None, prior=None))
    return found


@pytest.mark.slow
def test_each_moment_has_the_lists_that_held_then(folder, moments, tmp_path):
    copied = tmp_path / "copied"
    backup(folder, copied)
    assert len({str(found) for _, found in moments}) == len(moments)
    for place in (folder, copied):
        for event, found in moments:
            with as_of(place, event, tmp_path) as was:
                assert was.approximate == ""
                assert order(was.folder) == found


@pytest.mark.slow
def test_each_list_is_kept_once(folder, moments, tmp_path):
    names = sorted(one.name for one in (folder / LISTS).iterdir())
    assert [name.partition("-")[0] for name in names] == [DISTRUST, PRIOR]
    (tmp_path / "spam.txt").write_text("h1.example\n")
    crawled(folder, 48, distrust=str(tmp_path / "spam.txt"))
    crawled(folder, 60)
    assert len(list((folder / LISTS).iterdir())) == 3
    assert f"distrust-{kept_checksum(folder, DISTRUST):08x}" in names
    assert kept_places(folder, DISTRUST).checksum == kept_checksum(folder, DISTRUST)


@pytest.mark.slow
def test_a_list_that_is_gone_or_damaged_is_told(folder, moments, tmp_path):
    for path in (folder / LISTS).glob("distrust-*/*/places.bin"):
        path.write_bytes(b"\xff" * path.stat().st_size)
    with as_of(folder, moments[0][0], tmp_path) as was:
        assert "distrusted hosts are those that were given last" in was.approximate
    shutil.rmtree(folder / LISTS)
    with as_of(folder, moments[0][0], tmp_path) as was:
        assert "places of hosts are those that were given last" in was.approximate
    with as_of(folder, moments[2][0], tmp_path) as was:
        assert was.approximate == ""


def test_a_log_that_names_no_lists_is_approximate(folder, moments, tmp_path):
    with inlink.Crawl(folder, clock=inlink.VirtualClock(1_000.0)) as crawl:
        (place, *_) = stored_pages(crawl).frames.of_kind(SETTINGS)
        data = msgspec.json.decode(stored_pages(crawl).frames.frame(place).payload)
        del data["lists"]
        crawl._journal.append(SETTINGS, payload=msgspec.json.encode(data))
    with as_of(folder, float("inf"), tmp_path) as was:
        assert "places of hosts are those that were given last" in was.approximate
        assert "distrusted hosts are those that were given last" in was.approximate


@pytest.mark.slow
def test_a_list_is_named_after_a_crash_between_its_writing_and_its_event(
    folder, moments, tmp_path, monkeypatch
):
    class StopError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StopError

    (tmp_path / "spam.txt").write_text("h0.example\n")
    with monkeypatch.context() as patch:
        patch.setattr("inlink.crawl.crawl.restore", stop)
        with pytest.raises(StopError):
            inlink.Crawl(folder, distrust=str(tmp_path / "spam.txt"), clock=inlink.VirtualClock(1_000.0))
    found = crawled(folder, 48, distrust=str(tmp_path / "spam.txt"))
    with as_of(folder, found[0], tmp_path) as was:
        assert (was.approximate, order(was.folder)) == ("", found[1])
