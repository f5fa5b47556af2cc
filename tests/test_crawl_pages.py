"""The pages of a crawl: rules, merging, odd input, folders; live and after reopening."""

import contextlib
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlstrategies import Clock, opened
from crawlworld import A, B, C
from inlink.crawl.crawl import Crawl
from inlink.errors import FolderError, InUseError, ParameterError
from inlink.frontier.rules import Rules
from inlink.store import log as logs
from inlink.store.format import EXCLUDE
from inlink.store.reader import Reader

# -- rules ----------------------------------------------------------------------------------------------------------


def test_rules_exclude(world):
    crawl = world.open(rules=Rules(deny=[r"[.]png$", "host:b.com"], max_depth=1))
    crawl.seed([A, B])
    assert world.state(B) == "excluded"
    crawl.crawled(crawl.next(9)[0], ["/x", "/y.png", "http://b.com/z"])
    assert [world.state(url) for url in ("http://a.com/x", "http://a.com/y.png", "http://b.com/z")] == [
        "discovered", "excluded", "excluded",
    ]  # fmt: skip
    crawl = world.again()
    crawl.crawled(crawl.next(9)[0], ["/deep"])
    assert world.state("http://a.com/deep") == "excluded"
    assert crawl.next(9) == []
    assert crawl.due_in() is None


def test_a_crash_between_two_events_lets_nothing_forbidden_through(world):
    """The last event, which says what is excluded, did not come through; the one before, with the links, did."""
    rules = Rules(deny=["/no"])
    crawl = world.open(rules=rules)
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/no", "/yes"])
    place = crawl._pages.frames_of_kind(EXCLUDE)[-1]
    world.close()
    events = world.folder / logs.EVENTS
    events.write_bytes(events.read_bytes()[:place])
    # After a sync, a log without this event would be damaged.
    (world.folder / logs.END).unlink()
    world.again()
    assert world.urls() == ["http://a.com/yes"]


# -- merging --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["redirected_to", "canonical_link"])
def test_merged_pages_keep_their_inlinks(world, how):
    crawl = world.open(policy="pagerank")
    crawl.seed([A])
    crawl.crawled(crawl.next(1)[0], ["/old", "/new", "/other"])
    old, new, other = crawl._pages.find([A + "old", A + "new", A + "other"]).tolist()
    shares = crawl._frontier.policy.shares
    had = float(shares[new]) + 0.85 * (0.15 + float(shares[old]))  # in the graph, a page with one link
    assert crawl.crawled(A + "old", ["/other"], **{how: "/new"})
    if how == "canonical_link":
        # The canonical page is fetched before pages are merged.
        assert world.state(A + "old") == "crawled"
        assert crawl.crawled(A + "new", ["/other"])
    page = crawl.page(A + "old")
    assert (page.state, page.merged_into) == ("merged", A + "new")
    page = crawl.page(A + "new")
    assert (page.state, page.crawls) == ("crawled", 1)
    assert float(shares[new]) == pytest.approx(had)
    assert crawl._pages.survivor(old) == new
    assert crawl._pages.inlinks(new).tolist() == [0, old]
    assert crawl._pages.links(new).tolist() == [other]
    assert crawl._pages.links(old).tolist() == []
    assert world.urls() == [A + "other"]
    crawl = world.again()
    assert crawl.page(A + "old").merged_into == A + "new"
    assert float(crawl._frontier.policy.shares[new]) == pytest.approx(had)
    assert crawl.next(9) == []


def test_redirects_to_new_pages_chains_and_loops(world):
    crawl = world.open()
    crawl.seed([A, B, C])
    a, b, c = crawl.next(3)
    assert crawl.crawled(a, redirected_to=B)  # b is merged into nothing, though it is leased
    assert not crawl.crawled(b)  # its visit was a's
    assert crawl.crawled(c, redirected_to=A)  # a is merged: its survivor is meant
    assert crawl.page(C).merged_into == B
    assert crawl.page(B).crawls == 2
    assert crawl.crawled(B, redirected_to=A)  # a loop: b stays what it is
    assert (world.state(B), crawl.page(B).crawls) == ("crawled", 3)
    assert crawl.crawled(B, redirected_to=B)
    assert crawl.crawled(B, redirected_to="http://d.com/x", links=["y"])
    assert crawl.page(A).merged_into == crawl.page(B).merged_into == "http://d.com/x"
    assert crawl.page("http://d.com/y").state == "discovered"
    crawl = world.again()
    assert crawl.page(C).merged_into == "http://d.com/x"
    assert world.urls() == ["http://d.com/y"]


@pytest.mark.parametrize(("page", "other"), [
    ("http://a.com/x", "http://b.com/"), ("http://10.0.0.1/x", "http://10.0.0.2/"),
    ("http://[::1]/x", "http://[2001:db8::1]/"), ("http://a.com/x", "mailto:me"), ("http://a.co.uk/", "http://b.co.uk/"),
])  # fmt: skip
def test_another_sites_word_for_canonical_does_not_count(world, page, other):
    crawl = world.open()
    crawl.seed([page])
    crawl.crawled(crawl.next(1)[0], canonical_link=other)
    if other.startswith("http"):
        crawl.crawled(crawl.next(1)[0])
        assert world.state(other) == "crawled"
    assert world.state(page) == "crawled"


def test_canonical_within_a_domain_counts(world):
    crawl = world.open()
    crawl.seed(["http://m.a.co.uk/x"])
    crawl.crawled(crawl.next(1)[0], canonical_link="https://www.a.co.uk/x")
    crawl.crawled(crawl.next(1)[0])
    assert crawl.page("http://m.a.co.uk/x").merged_into == "https://www.a.co.uk/x"


def test_links_are_relative_to_what_was_fetched(world):
    """A canonical link names the page; the base of its links is still the URL that answered."""
    crawl = world.open()
    crawl.seed([A + "print/x", B])
    a, b = crawl.next(2)
    crawl.crawled(a, ["y"], canonical_link="/story/x")
    assert crawl.page(A + "print/y") is not None
    assert crawl.page(A + "story/y") is None
    crawl.crawled(b, ["y"], redirected_to="/deep/x")
    assert crawl.page(B + "deep/y") is not None


# -- what is known of pages -----------------------------------------------------------------------------------------


def test_changes_are_counted_by_hash(world):
    crawl = world.open()
    crawl.seed([A])
    for number, (content, changes) in enumerate([(b"1", 0), (b"1", 0), (b"2", 1), (b"1", 2)]):
        world.clock.now += 10
        crawl.crawled(A, content_hash=content, status=206, score=0.5)
        page = crawl.page(A)
        assert (page.crawls, page.changes, page.content_hash, page.status) == (
            number + 1,
            changes,
            content,
            206,
        )
        assert page.last_crawl == world.clock.now
        assert page.first_crawl == 1_000_010
        if number == 1:
            crawl = world.again()


def test_a_long_hash_is_kept_as_far_as_it_goes(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, content_hash=b"x" * 300)
    crawl.crawled(A, content_hash=b"x" * 300)
    assert (crawl.page(A).changes, crawl.page(A).content_hash) == (0, b"x" * 255)


def test_a_second_crawl_replaces_the_links(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, ["/1", "/2", "/2"])
    assert crawl._pages.links(0).tolist() == [1, 2]
    crawl.crawled(A, ["/3", "/1"])
    assert crawl._pages.links(0).tolist() == [1, 3]
    assert crawl._pages.inlinks(2).tolist() == []
    crawl.crawled(A, [])
    assert crawl._pages.links(0).tolist() == []
    assert world.state(A + "2") == "discovered"


def test_scores_of_links_and_of_content(world):
    crawl = world.open(policy="best-first")
    crawl.seed([A, (B, 0.25)])
    assert crawl.page(A).score == 1.0
    crawl.crawled(A, [("/x", 0.5), ("/y", 0.75), ("/x", 0.625), "/z"])
    assert [crawl.page(A + path).score for path in "xyz"] == [0.625, 0.75, 0.0]
    crawl.crawled(B, [(A + "x", 0.875), (A + "y", 0.5), (A, 0.9)], score=0.125)
    assert [crawl.page(A + path).score for path in "xyz"] == [0.875, 0.75, 0.0]
    assert [crawl.page(url).score for url in (A, B)] == [0.0, 0.125]  # their content's
    crawl = world.again()
    assert world.urls() == [A + "x", A + "y", A + "z"]
    crawl.crawled(A + "x", score=0.375)
    assert crawl.page(A + "x").score == 0.375


def test_depth_and_where_it_was_linked_from(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, ["/1"])
    crawl.crawled(A + "1", ["/2", "/1"])
    crawl.crawled(A + "2", ["/1", "/"])
    for url, depth, source in ((A, 0, None), (A + "1", 1, A), (A + "2", 2, A + "1")):
        assert (crawl.page(url).depth, crawl.page(url).linked_from) == (depth, source)
    assert crawl.page("http://never.com/") is None


def test_refused_urls_are_counted_by_reason(world):
    crawl = world.open()
    crawl.seed([A, "mailto:x", "javascript:void(0)", "no url", "http://a.com/" + "x" * 3000, "http://a b/"])
    assert crawl.refused == {
        "link is not http": 2,
        "link is relative, with nothing to resolve it against": 1,
        "link is longer than 2,048 bytes": 1,
        "link is no valid URL": 1,
    }
    crawl.crawled(A, ["ftp://a.com/", "http://[/", "x"])
    assert crawl.refused["link is not http"] == 3
    assert crawl.refused["link is no valid URL"] == 2
    assert crawl._pages.num_pages == 2


def test_the_given_form_of_a_seed_is_kept(world):
    crawl = world.open()
    odd = "http://A.com/" + "\t" * 5000 + "ü"
    crawl.seed([odd, "HTTP://b.com/é"])
    before = dict(crawl._pages.given)
    assert before[1] == "HTTP://b.com/é"
    crawl = world.again()
    assert crawl._pages.given == before


def test_a_clock_that_goes_back_is_not_believed(world):
    crawl = world.open(lease_seconds=100)
    crawl.seed([A])
    lease = crawl.next(1)[0]
    world.clock.now -= 5000
    assert crawl.due_in() == 100
    crawl.crawled(lease)
    assert crawl.page(A).last_crawl == world.clock.now + 5000
    crawl = world.again()
    crawl.crawled(A)
    page = crawl.page(A)
    assert page.last_crawl >= page.first_crawl


# -- odd input ------------------------------------------------------------------------------------------------------

ODD = [
    "", " ", "#", "?", "/", "//", "///", "x", "../../..", "http:", "http://", "http:///", "https:x", "//b.com", "?q",
    "http://a.com/\ud800", "\udc80", "/\udfff/x", "http://a.com/new\nline", "\n", "a\nb\nc", "\thttp://b.com/\r\n",
    "http://a.com/" + "x" * 70_000, "x" * 70_000, "data:image/png;base64," + "A" * 70_000, "javascript:alert(1)",
    "http://a.com:99999/", "http://[::1", "http://[::1]:8/", "http://a.com\\b", "http://ü.com/ö?ä", "http://a.com/%zz",
    "/%e4%f6", "/\x00", "\x7f", "http://a..com/", "http://256.256.256.256/", "http://1.2/", "http://xn--/", "HTTP://A.COM",
    "http://user:pw@a.com/", "http://a.com:80", "http://a.com/a/./b/../c", "\ufeffhttp://a.com/", "http://a.com/\u202e",
    "http://a.com/ x y ", "http://" + "a" * 300 + ".com/", "http://a.com/#" + "f" * 5000,
]  # fmt: skip


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.sampled_from(ODD), st.text(st.characters(), max_size=12)), max_size=12),
    st.booleans(),
)
def test_no_link_breaks_a_crawl(tmp_path_factory, links, scored):
    folder, clock = tmp_path_factory.mktemp("odd") / "c", Clock()
    given_ = [(link, 0.5) if scored and k % 2 else link for k, link in enumerate(links)]
    with opened(folder, clock, policy="first-come") as crawl:
        crawl.seed([A])
        crawl.seed(given_)
        crawl.crawled(A, given_)
        crawl.crawled(A, given_[::-1])
        assert len(crawl._pages.links(0)) + sum(crawl.refused.values()) <= 3 * len(links) + 1
        urls = crawl._pages.urls(list(range(crawl._pages.num_pages)))
        assert len(set(urls)) == len(urls)
        assert crawl._pages.find(urls).tolist() == list(range(len(urls)))
        assert all(url.isascii() and " " not in url and "\n" not in url for url in urls)
        links_then = crawl._pages.links(0).tolist()
    with opened(folder, clock, policy="first-come") as crawl:
        assert crawl._pages.urls(list(range(crawl._pages.num_pages))) == urls
        assert crawl._pages.links(0).tolist() == links_then


def test_all_odd_links_at_once(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.crawled(A, ODD)
    known = crawl._pages.num_pages
    assert sum(crawl.refused.values()) >= 10
    crawl.crawled(A, iter([(link, 0.5) for link in ODD]))
    assert crawl._pages.num_pages == known
    assert crawl.page("http://a.com/newline") is not None  # as browsers have it
    assert crawl.page("http://a.com/abc") is not None


def test_a_million_links_on_one_page(world):
    crawl = world.open()
    crawl.seed([A])
    links = [f"http://a.com/{k}" for k in range(1_000_000)]
    assert crawl.crawled(crawl.next(1)[0], links)
    assert crawl._pages.num_pages == 1_000_001
    assert len(crawl._pages.links(0)) == 1_000_000
    assert crawl.crawled(A, [(links[k], 0.5) for k in (999_999, 0, 500_000)])
    assert crawl._pages.links(0).tolist() == [1, 500_001, 1_000_000]
    assert crawl.page(links[777_777]).linked_from == A
    crawl = world.again()
    assert crawl._pages.find([links[999_999]]).tolist() == [1_000_000]
    assert len(crawl.next(1000)) == 1000


BAD = [
    {"score": 1e300},
    {"score": None},
    {"score": "0.5"},
    {"status": -1},
    {"status": 70_000},
    {"status": None},
    {"content_hash": "text"},
    {"links": [("/x", "high")]},
    {"links": [("/x", None)]},
    {"links": [5]},
    {"links": [("/x", 1.0, 2.0)]},
]


def in_the_folder(world):
    """The folder holds all pages that the crawl knows, and no others."""
    reader = Reader(world.folder)
    assert reader.num_pages == world.crawl._pages.num_pages
    assert reader.pages.urls_end == world.crawl._pages.urls_end
    reader.close()


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_argument_does_no_harm(world, bad):
    """A caller may catch the error and go on, page by page: numbers and URLs must still agree."""
    crawl = world.open()
    crawl.seed([A, B])
    with contextlib.suppress(Exception):  # whether it is refused, and how, is not this test's business
        crawl.crawled(A, **{"links": ["/1", "/2"], **bad})
    crawl.crawled(B, ["/3", "/4"])
    crawl.crawled(A, ["/5", "http://b.com/4"])
    in_the_folder(world)
    urls = crawl._pages.urls(list(range(crawl._pages.num_pages)))
    assert crawl._pages.find(urls).tolist() == list(range(len(urls)))
    crawl = world.again()
    assert crawl._pages.urls(list(range(crawl._pages.num_pages))) == urls
    assert crawl._pages.urls(crawl._pages.links(1)) == [B + "3", B + "4"]


@pytest.mark.parametrize("bad", [(B, "high"), (B, None)], ids=str)
def test_a_bad_seed_does_no_harm(world, bad):
    crawl = world.open()
    with contextlib.suppress(Exception):
        crawl.seed([A, bad])
    crawl.seed([C])
    in_the_folder(world)
    crawl.crawled(C, ["/x"])
    assert crawl._pages.urls(crawl._pages.links(int(crawl._pages.find([C])[0]))) == [C + "x"]


def test_a_score_that_is_no_number_spoils_no_order(world):
    crawl = world.open(policy="pagerank", use_scores=True)
    crawl.seed([A])
    try:
        crawl.crawled(A, [(A + str(k), k / 8) for k in range(8)], score=math.nan)
    except ParameterError:
        crawl.crawled(A, [(A + str(k), k / 8) for k in range(8)])
    assert world.urls() == [A + str(k) for k in reversed(range(8))]


def test_failed_takes_any_text(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.failed(A, "ü\ud800" * 1000, retry_after="\ud800 never")
    error = crawl.page(A).error
    assert error.startswith("ü?ü?")
    assert len(error) <= 500
    crawl = world.again()
    assert crawl.page(A).error == error


# -- folders --------------------------------------------------------------------------------------------------------


def test_a_second_crawl_is_refused(world):
    crawl = world.open()
    with pytest.raises(InUseError, match=rf"is being crawled by process {os.getpid()}:"):
        opened(world.folder, world.clock)
    crawl.seed([A])
    assert world.urls() == [A]


def test_closing_twice_is_no_harm(world):
    crawl = world.open()
    crawl.seed([A])
    crawl.close()
    crawl.close()
    world.again()


def test_another_folder_is_left_as_it_is(tmp_path):
    from inlink.base.folder import building

    with building(tmp_path / "graph", "graph", 1) as writer:
        writer.write("offsets", np.zeros(1, np.uint64))
    before = sorted(path.name for path in (tmp_path / "graph").rglob("*"))
    with pytest.raises(FolderError):
        Crawl(tmp_path / "graph")
    assert sorted(path.name for path in (tmp_path / "graph").rglob("*")) == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FolderError):
        Crawl(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
