"""Pages beside near-duplicates sink in the order: mirrors and printer versions."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import Clock, frontier_in, opened
from factorcrawls import keep_checkpoint
from inlink.crawl.view import CrawlView
from inlink.errors import ParameterError
from inlink.factors.copies import NearIndex, section
from inlink.factors.parts import combined
from inlink.replaying.play import ReplayTask, play
from inlink.replaying.recording import web_of_crawl
from inlink.store.near import MOST_BITS

EAGER = {"delay": 0.0, "in_flight": 100}
EIGHT = [1 << bit for bit in (0, 15, 16, 31, 32, 47, 48, 63)]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sets(st.sampled_from(EIGHT), max_size=6)), max_size=60),
    st.sampled_from([1, 2, 5, 1000]),
)
def test_the_index_finds_what_a_comparison_with_all_finds(drawn, tail):
    """Fingerprints around four centres, at distances up to six, in blocks of the tables and between them."""
    centres = [0x0123456789ABCDEF, 0xFEDCBA9876543210, 0x00FF00FF00FF00FF, 0x0F0F0F0F0F0F0F0F]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inlink.factors.copies._TAIL", tail)
        index, before = NearIndex(), []
        for centre, flips in drawn:
            mark = centres[centre]
            for flip in flips:
                mark ^= flip
            assert index.add(mark) == any((mark ^ one).bit_count() <= MOST_BITS for one in before)
            before.append(mark)


def test_the_index_finds_near_fingerprints_among_many(monkeypatch):
    monkeypatch.setattr("inlink.factors.copies._TAIL", 512)
    dice = random.Random(7)
    index, marks = NearIndex(), [dice.getrandbits(64) | 1 for _ in range(3000)]
    assert sum(index.add(mark) for mark in marks) == 0
    for mark in dice.sample(marks, 200):
        flips = dice.sample(range(64), 4)
        near = mark ^ sum(1 << bit for bit in flips[:3])
        far = mark ^ sum(1 << bit for bit in flips)
        assert index.add(far) is False
        assert index.add(near) is True


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://a.com/", "http://a.com/…"),
        ("http://a.com/x.html", "http://a.com/…"),
        ("http://a.com/print/", "http://a.com/print/…"),
        ("http://a.com:81/print/a/b?x", "http://a.com:81/print/…?x"),
        ("https://a.com/?b=1&a=2&b=3", "https://a.com/…?a&b"),
        ("http://a.com/x/y?print=1#POST:1", "http://a.com/x/…?print"),
    ],
)
def test_a_section_is_the_first_folder_and_the_names_of_parameters(url, name):
    assert section(url) == name


def story(k: int) -> int:
    return random.Random(k).getrandbits(64) | 1


def fetch(crawl, url: str, links=()) -> None:
    """Fetch a page. Its text is that of the story with its number; printer versions and the mirror differ in a bit."""
    number = int(url.rpartition("/")[2] or 0)
    crawl.crawled(url, links, fingerprint=story(number) ^ (2 if "print" in url or "mirror" in url else 0))


def settled(crawl):
    """The crawl, once all waiting pages have their new priorities."""
    while crawl.ranking:
        crawl.next(0)
    return crawl


def printed(folder, sink: bool, count: int = 6, **more):
    """A crawl of stories, some of their printer versions, and nothing else; the rest waits."""
    crawl = opened(folder, Clock(), policy="breadth-first", politeness=EAGER, sink_duplicates=sink, **more)
    crawl.seed(
        [f"http://a.com/print/{k}" for k in range(20)] + [f"http://a.com/story/{k}" for k in range(20)]
    )
    for k in range(count):
        fetch(crawl, f"http://a.com/story/{k}")
    for k in range(count):
        fetch(crawl, f"http://a.com/print/{k}")
    crawl.seed([f"http://mirror.org/{k}" for k in range(9)] + ["http://b.com/1"])
    return settled(crawl)


def test_pages_of_a_section_of_copies_sink(tmp_path):
    with printed(tmp_path / "plain", False) as crawl:
        assert crawl.next(1)[0].url == "http://a.com/print/6"
    with printed(tmp_path / "sunk", True) as crawl:
        order = [row.url for row in crawl.view.order(60).rows]
        prints = [url for url in order if "/print/" in url]
        assert len(prints) == 14
        assert order[-14:] == prints
        host = 6 / (12 + 4)
        why = crawl.why("http://a.com/print/6")
        assert why.parts[-1].value == pytest.approx(1 - (6 + 4 * host) / (6 + 4))
        assert "6 of 6 in http://a.com/print/…, 6 of 12 in http://a.com/" in why.parts[-1].name
        assert crawl.why("http://a.com/story/6").parts[-1].value == pytest.approx(1 - 4 * host / (6 + 4))
        assert "near-duplicates" not in str(crawl.why("http://b.com/1"))


def test_parts_give_the_priority_with_the_factor(tmp_path):
    with printed(tmp_path / "c", True) as crawl:
        for row in crawl.view.order(60).rows:
            why = crawl.why(row.url)
            assert combined(why.parts) == pytest.approx(why.priority, rel=1e-5)


@pytest.mark.parametrize("policy", ["pagerank", "host-diverse", "breadth-first"])
def test_a_crawl_that_is_opened_again_has_the_same_priorities(tmp_path, policy):
    """Pages that are crawled again, with other texts, count by their first visits."""
    folder, clock = tmp_path / "c", Clock()
    given = {"policy": policy, "politeness": EAGER, "sink_duplicates": True}
    with opened(folder, clock, **given) as crawl:
        crawl.seed(["http://a.com/story/0"])
        for k in range(12):
            links = [f"/story/{k + 1}", f"/print/{k}", f"http://mirror.org/{k}", f"/print/{k + 20}"]
            fetch(crawl, f"http://a.com/story/{k}", links)
            fetch(crawl, f"http://a.com/print/{k}")
        crawl.crawled("http://a.com/story/3", ["/print/77"], fingerprint=story(5))
        crawl.crawled("http://a.com/print/4", ["/print/78"], fingerprint=story(99))
        crawl.rerank(wait=True)
        urls = [url for row in crawl.view.order(60).rows for url in [row.url]]
        before = {url: [part.value for part in crawl.why(url).parts] for url in urls}
        factors = frontier_in(crawl).copies.factors(
            np.arange(frontier_in(crawl).pages.num_pages, dtype=np.uint32)
        )
    with opened(folder, clock) as crawl:
        assert crawl.settings.sink_duplicates
        again = frontier_in(crawl).copies.factors(
            np.arange(frontier_in(crawl).pages.num_pages, dtype=np.uint32)
        )
        assert again.tolist() == factors.tolist()
        assert {url: [part.value for part in crawl.why(url).parts] for url in urls} == before
    view = CrawlView.open(folder, clock)
    assert {url: [part.value for part in view.why(url).parts] for url in urls} == before


def test_a_crawl_without_copies_has_the_same_order_with_the_setting(tmp_path):
    orders = []
    for sink in (False, True):
        with opened(
            tmp_path / str(sink), Clock(), policy="pagerank", sink_duplicates=sink, politeness=EAGER
        ) as crawl:
            crawl.seed(["http://a.com/0"])
            for _ in range(30):
                (lease,) = crawl.next(1)
                number = int(lease.url.rpartition("/")[2])
                links = [f"/{(7 * number + step) % 60}" for step in (1, 2, 3)] + [f"http://b.com/{number}"]
                crawl.crawled(lease, links, fingerprint=story(number + 100 * ("b.com" in lease.url)))
            orders.append([(row.url, row.priority) for row in crawl.view.order(60).rows])
    assert orders[0] == orders[1]


def test_new_priorities_reach_all_waiting_pages_without_a_ranking(tmp_path):
    """Printer versions that wait since before the first copy was found."""
    with opened(
        tmp_path / "c", Clock(), policy="breadth-first", sink_duplicates=True, politeness=EAGER
    ) as crawl:
        crawl.seed(
            [f"http://a.com/print/{k}" for k in range(40)] + [f"http://a.com/story/{k}" for k in range(40)]
        )
        for k in range(20):
            fetch(crawl, f"http://a.com/story/{k}")
            fetch(crawl, f"http://a.com/print/{k}")
        taken = [crawl.next(1)[0].url for _ in range(40)]
    assert all("/story/" in url for url in taken[1:20])


def test_a_replay_gives_pages_their_recorded_fingerprints(tmp_path):
    with opened(tmp_path / "c", Clock(), policy="breadth-first", politeness=EAGER) as crawl:
        crawl.seed(["http://a.com/story/0"])
        for k in range(20):
            fetch(crawl, f"http://a.com/story/{k}", [f"/print/{k}", f"/story/{k + 1}", f"/print/{k + 1}"])
            fetch(crawl, f"http://a.com/print/{k}", [f"/print/{k + 1}"])
    web = web_of_crawl(tmp_path / "c")
    assert web.fingerprints[web.urls.index("http://a.com/print/3")] == story(3) ^ 2
    wasted = []
    for sink in (False, True):
        played = play(web, ReplayTask("breadth-first", web.seeds, 25, {"sink_duplicates": sink}))
        wasted.append(sum("/print/" in web.urls[page] for page in played.fetched))
    assert wasted[1] < wasted[0] - 3


def test_the_setting_changes_when_a_crawl_is_opened(tmp_path):
    with printed(tmp_path / "c", False) as crawl, pytest.raises(ParameterError, match="sink_duplicates"):
        crawl.change_settings(sink_duplicates=True)
    with opened(tmp_path / "c", Clock(), sink_duplicates=True) as crawl:
        assert crawl.why("http://a.com/print/6").parts[-1].value < 0.4


def test_a_checkpoint_without_the_setting_is_not_the_order_with_it(tmp_path):
    folder = tmp_path / "c"
    with printed(folder, False) as crawl:
        keep_checkpoint(crawl, "live")
    for sink in (True, False, True):
        with opened(folder, Clock(), sink_duplicates=sink) as crawl:
            assert frontier_in(crawl).pages.checkpoint is not None
            for row in crawl.view.order(60).rows:
                assert combined(crawl.why(row.url).parts) == pytest.approx(row.priority, rel=1e-5)
            factors = crawl.why("http://a.com/print/7").parts
            assert any("near-duplicates" in part.name for part in factors) == sink
            keep_checkpoint(crawl, "live")
