"""The pages of a crawl: rules, merging, odd input, folders; live and after reopening."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlstrategies import Clock, differences, memory, opened, stored_pages
from crawlworld import A, B, C
from inlink.crawl.crawl import Crawl
from inlink.errors import FolderError
from inlink.factors.parts import combined
from inlink.frontier.rules import Rules
from inlink.protocol import Link, PageFacts
from inlink.store import log as logs
from inlink.store.format import EXCLUDE
from storefolders import inlinks

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
    place = stored_pages(crawl).frames.of_kind(EXCLUDE)[-1]
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

    def rank(name):
        return combined(crawl.why(A + name).parts)

    had = rank("new") + 0.85 * rank("old")  # in the graph, a page with one link
    assert crawl.crawled(A + "old", ["/other"], **{how: "/new"})
    if how == "canonical_link":
        # The canonical page is fetched before pages are merged.
        assert world.state(A + "old") == "crawled"
        assert crawl.crawled(A + "new", ["/other"])
    page = crawl.page(A + "old")
    assert (page.state, page.merged_into) == ("merged", A + "new")
    page = crawl.page(A + "new")
    assert (page.state, page.crawls) == ("crawled", 1)
    assert rank("new") == pytest.approx(had)
    pages = stored_pages(crawl)
    old, new, other = pages.table.find([A + "old", A + "new", A + "other"]).tolist()
    assert pages.survivor(old) == new
    assert inlinks(pages, new).tolist() == [0, old]
    assert pages.links(new).tolist() == [other]
    assert pages.links(old).tolist() == []
    assert world.urls() == [A + "other"]
    crawl = world.again()
    assert crawl.page(A + "old").merged_into == A + "new"
    assert rank("new") == pytest.approx(had)
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


@pytest.mark.parametrize(("page", "other", "state"), [
    ("http://m.a.co.uk/x", "https://www.a.co.uk/x", "merged"), ("http://a.com/x", "http://b.com/", "crawled"),
    ("http://10.0.0.1/x", "http://10.0.0.2/", "crawled"), ("http://[::1]/x", "http://[2001:db8::1]/", "crawled"),
    ("http://a.com/x", "mailto:me", "crawled"), ("http://a.co.uk/", "http://b.co.uk/", "crawled"),
])  # fmt: skip
def test_only_its_own_domain_says_what_is_canonical(world, page, other, state):
    crawl = world.open()
    crawl.seed([page])
    crawl.crawled(crawl.next(1)[0], canonical_link=other)
    if other.startswith("http"):
        crawl.crawled(crawl.next(1)[0])
        assert world.state(other) == "crawled"
    assert world.state(page) == state


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
    assert [row.page for row in crawl.view.links(A).rows] == [1, 2]
    crawl.crawled(A, ["/3", "/1"])
    assert [row.page for row in crawl.view.links(A).rows] == [1, 3]
    assert crawl.view.links(A + "2", "to").rows == []
    crawl.crawled(A, [])
    assert crawl.view.links(A).rows == []
    assert world.state(A + "2") == "discovered"


@pytest.mark.parametrize("status", [200, 304])
def test_an_answer_of_304_without_links_leaves_the_page_as_it_was(world, status):
    crawl = world.open()
    crawl.seed([A, B])
    links = [("/x", 0.25), Link("/y", 0.75, b"data", "v", "text", "nav"), C]
    facts = PageFacts(title="title", size=7)
    visit = {"score": 0.5, "fingerprint": 9, "noindex": True, "nofollow": True, "facts": facts}
    crawl.crawled(A, links, content_hash=b"a", **visit)
    before = stored_links(crawl, A)
    assert len(before[0]) == 3
    for _ in range(2):
        world.clock.now += 1
        crawl.crawled(A, status=status)
    expected = (b"a", 0, 0.5, 9, True, True, facts) if status == 304 else (b"", 1, 0.0, 0, False, False, None)
    for reopens in (False, True):
        each = world.again() if reopens else crawl
        page = each.page(A)
        assert (page.crawls, page.status) == (3, status)
        content = page.content_hash, page.changes, page.score, page.fingerprint
        assert (*content, page.noindex, page.nofollow, page.facts) == expected
        assert stored_links(each, A) == (before if status == 304 else ([], {}, b""))
        assert each.page(f"{A}y#v").state == "discovered"
    # New values of the answer count.
    world.crawl.crawled(A, ["/z"], status=304, content_hash=b"b", score=2.0)
    page = world.crawl.page(A)
    assert ([row.url for row in world.crawl.view.links(A).rows], page.score, page.content_hash) == (
        [f"{A}z"],
        2.0,
        b"b",
    )


def stored_links(crawl, url):
    """The links of a page's last visit, their texts, and their places."""
    pages = stored_pages(crawl)
    place = pages.visit(int(pages.table.find([url])[0])).place
    facts = pages.frames.facts(place)
    return pages.frames.list_at(place).tolist(), pages.frames.anchors(place), facts.places if facts else b""


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
    assert crawl.view.info().pages == 2


def test_the_given_form_of_a_seed_is_kept(world):
    crawl = world.open()
    odd = "http://A.com/" + "\t" * 5000 + "ü"
    crawl.seed([odd, "HTTP://b.com/é"])
    before = dict(stored_pages(crawl).given)
    assert before[1] == "HTTP://b.com/é"
    crawl = world.again()
    assert stored_pages(crawl).given == before


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
@example(ODD, False)
@example(ODD, True)
def test_no_link_breaks_a_crawl(tmp_path_factory, links, scored):
    folder, clock = tmp_path_factory.mktemp("odd") / "c", Clock()
    given_ = [(link, 0.5) if scored and k % 2 else link for k, link in enumerate(links)]
    with opened(folder, clock, policy="first-come") as crawl:
        crawl.seed([A])
        crawl.seed(given_)
        crawl.crawled(A, given_)
        crawl.crawled(A, given_[::-1])
        pages, before = stored_pages(crawl), memory(crawl)
        assert len(pages.links(0)) + sum(crawl.refused.values()) <= 3 * len(links) + 1
        urls = pages.urls(list(range(pages.num_pages)))
        assert len(set(urls)) == len(urls)
        assert pages.table.find(urls).tolist() == list(range(len(urls)))
        assert all(url.isascii() and " " not in url and "\n" not in url for url in urls)
    with opened(folder, clock, policy="first-come") as crawl:
        assert differences(before, memory(crawl)).keys() <= {"counts"}


def test_many_links_on_one_page(world):
    """More than 65,536."""
    crawl = world.open()
    crawl.seed([A])
    links = [f"http://a.com/{k}" for k in range(100_000)]
    assert crawl.crawled(crawl.next(1)[0], links)
    info = crawl.view.info()
    assert (info.pages, info.links) == (100_001, 100_000)
    assert crawl.crawled(A, [(links[k], 0.5) for k in (99_999, 0, 50_000)])
    assert [row.page for row in crawl.view.links(A).rows] == [1, 50_001, 100_000]
    assert crawl.page(links[77_777]).linked_from == A
    crawl = world.again()
    assert crawl.view.number(links[99_999]) == 100_000
    assert len(crawl.next(1000)) == 1000


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
