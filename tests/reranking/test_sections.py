"""Sections of seeds: against plain loops over all visits, in closed form, and in crawls that are opened again."""

import random
from collections import Counter
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inlink
from crawlstrategies import EAGER, frontier_in, opened, publish_ranking
from inlink.base.clock import VirtualClock
from inlink.base.folder import Folder, building
from inlink.crawl.asof import as_of
from inlink.factors.parts import combined
from inlink.frontier.adoption import adopt
from inlink.frontier.ranked import HostDiverse
from inlink.reranking.sections import TURN

BOOKS, CHAPTERS = 4, 12
POOL = [f"http://{host}.com/{k}" for host in "ab" for k in range(8)]


class Twin:
    """The history of a crawl, as plain lists and dicts."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.seed_of: list[int] = []
        self.visits: dict[int, tuple[list[int], int]] = {}

    def know(self, urls, seed=None) -> None:
        for url in sorted(set(urls), key=urls.index):
            if url not in self.number:
                self.number[url] = len(self.number)
                self.seed_of.append(self.number[url] if seed is None else seed)

    def visit(self, url, links) -> None:
        page, known = self.number[url], len(self.number)
        self.know(links, self.seed_of[page])
        self.visits.pop(page, None)
        self.visits[page] = sorted({self.number[link] for link in links}), known

    def values(self) -> list[float]:
        """The value of each page, visit by visit and link by link."""
        hosts = [urlsplit(url).netloc for url in self.number]
        seeds = sorted(set(self.seed_of))
        seeds_of = Counter(hosts[seed] for seed in seeds)
        if max(seeds_of.values(), default=0) < 2:
            return [0.0] * len(hosts)
        m, num_seeds = 1.0, 0
        for page, (links, known) in self.visits.items():
            if page in seeds:
                num_seeds += 1
                news = sum(link >= known and hosts[link] == hosts[page] for link in links)
                both = news + sum(link < known for link in links)
                if num_seeds > 1 and both:
                    m = 0.6 * m + 0.4 * news / both
        values = []
        for page in range(len(hosts)):
            seed = self.seed_of[page]
            taken = sum(self.seed_of[visited] == seed for visited in self.visits)
            quality = self.quality(hosts, hosts[seed], m) if seeds_of[hosts[seed]] > 1 else 0.0
            values.append((1 + taken) ** (round(8 * quality**4) / 32) - 1)
        waiting = [seed for seed in seeds if seed not in self.visits and seeds_of[hosts[seed]] > 1]
        had = sum(seed in self.visits and seeds_of[hosts[seed]] > 1 for seed in seeds) - 1
        count = len(self.visits)
        most = int(min(0.3 * count + 1e-9, 17.5 + count / 8)) if m >= 0.5 else count // 64
        for seed in waiting[: max(most - had, 0)]:
            values[seed] = TURN
        return values

    def quality(self, hosts, host, m) -> float:
        shares, sections = [], []
        for page, (links, known) in self.visits.items():
            counted = [
                link
                for link in links
                if link < known
                and link != page
                and hosts[self.seed_of[link]] == host == hosts[self.seed_of[page]]
            ]
            if counted:
                sections.append(self.seed_of[page])
                shares.append(Counter(self.seed_of[link] for link in counted))
        n = len(shares)
        same = sum(share[own] / share.total() for share, own in zip(shares, sections, strict=True)) / max(
            n, 1
        )
        chance = sum(
            sections.count(g) / n * sum(share[g] / share.total() for share in shares) / n
            for g in set(sections)
        )
        if chance == 0 or chance > 0.999:
            return float(m >= 0.5)
        return min(max((same - chance) / (1 - chance), 0.0), 1.0)


@pytest.mark.slow
@settings(max_examples=14, deadline=None)
@given(st.data())
def test_the_values_are_those_of_the_definition(tmp_path_factory, data):
    twin, folder = Twin(), tmp_path_factory.mktemp("sections") / "c"
    some = st.lists(st.sampled_from(POOL), max_size=6)
    with opened(folder, VirtualClock(), politeness=EAGER, rerank_share=None, rerank_seconds=None) as crawl:
        for _ in range(data.draw(st.integers(1, 25))):
            if data.draw(st.integers(0, 4)) == 0:
                seeds = data.draw(some)
                crawl.seed(seeds)
                twin.know(seeds)
            else:
                for lease in crawl.next(data.draw(st.integers(1, 2))):
                    links = data.draw(some)
                    crawl.crawled(lease, links)
                    twin.visit(lease.url, [link for link in links if link != lease.url])
            if data.draw(st.booleans()):
                crawl.rerank(wait=True)
        if twin.visits:
            crawl.rerank(wait=True)
            assert [crawl.page(url).id for url in twin.number] == list(twin.number.values())
            assert sections_in(folder, len(twin.number)) == pytest.approx(twin.values(), rel=1e-6)


def sections_in(folder, count) -> list[float]:
    ranks = Folder(folder / "ranks", "ranks", 1)
    if not ranks.header.meta["sections"]:
        return [0.0] * count
    return ranks.array("sections").tolist()


def library(books: int = BOOKS, chapters: int = CHAPTERS) -> dict[str, list[str]]:
    """Books without links between them, whose chapters link to each other."""
    chance, links = random.Random(3), {}
    for book in range(books):
        pages = [f"http://l.com/{book}/{k}" for k in range(chapters)]
        for k, page in enumerate(pages):
            links[page] = sorted({pages[0], *chance.sample(pages, 4), pages[(k + 1) % chapters]} - {page})
    return links


def fetch(crawl, links, count: int) -> list[str]:
    """Fetch pages one at a time; return their URLs."""
    urls = []
    for _ in range(count):
        for lease in crawl.next(1):
            crawl.crawled(lease, links[lease.url])
            urls.append(lease.url)
    return urls


def test_all_books_are_begun_early(tmp_path):
    links = library(chapters=40)
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=0.1) as crawl:
        crawl.seed([f"http://l.com/{book}/5" for book in range(BOOKS)])
        order = fetch(crawl, links, len(links))
    half = Counter(url.split("/")[3] for url in order[: len(order) // 2])
    assert len(half) == BOOKS
    assert min(half.values()) >= 10
    assert len(set(order)) == len(links)


def test_why_names_the_divisor_and_the_turn(tmp_path):
    links = library()
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=None) as crawl:
        crawl.seed([f"http://l.com/{book}/5" for book in range(BOOKS)])
        fetched = fetch(crawl, links, 5)
        waiting = next(
            url for url in links if crawl.page(url) and url not in fetched and url.split("/")[3] == "0"
        )
        assert not any("section" in part.name for part in crawl.why(waiting).parts)
        crawl.rerank(wait=True)
        # One book is begun, so Q is 1, and the fourth root of 1 + 5 is rounded to 6^(8/32).
        why, turn = crawl.why(waiting), crawl.why("http://l.com/1/5")
        assert (why.parts[-1].operation, why.parts[-1].value) == ("÷", pytest.approx(6**0.25, rel=1e-6))
        assert "section" in why.parts[-1].name
        assert (turn.parts[-1].operation, turn.parts[-1].value) == ("×", 1e6)
        assert turn.place == 1
        for told in (why, turn):
            assert told.priority == pytest.approx(combined(told.parts), rel=1e-6)
        # A page that is found later has the divisor of the page that made it known, but no turn.
        (lease,) = crawl.next(1)
        assert lease.url == "http://l.com/1/5"
        crawl.crawled(lease, [*links[lease.url], "http://l.com/new"])
        assert not any("turn" in part.name for part in crawl.why("http://l.com/new").parts)
        (lease,) = crawl.next(1)
        crawl.crawled(lease, ["http://l.com/newer"])
        assert crawl.why("http://l.com/newer").parts[-1].value == crawl.why(waiting).parts[-1].value


def order_of(crawl) -> list[tuple[str, float]]:
    return [(row.url, row.priority) for row in crawl.view.order(100).rows]


@pytest.mark.slow
@settings(max_examples=7, deadline=None)
@given(
    st.integers(2, 6), st.lists(st.integers(1, 15), min_size=2, max_size=5), st.randoms(use_true_random=False)
)
def test_reopened_crawls_and_those_as_of_an_event_have_the_same_order(tmp_path_factory, books, steps, chance):
    """Seeds are added while the crawl runs, and it is opened again after each step, with and without a checkpoint."""
    links, folder = library(books), tmp_path_factory.mktemp("again") / "c"
    orders, more = {}, {"politeness": EAGER, "rerank_share": 0.1}
    for step in steps:
        with opened(folder, VirtualClock(), **more) as crawl:
            crawl.seed(
                [f"http://l.com/{chance.randrange(books)}/{chance.randrange(CHAPTERS)}" for _ in range(3)]
            )
            fetch(crawl, links, step)
            orders[crawl.view.info().events] = order_of(crawl)
        with opened(folder, VirtualClock(), **more) as crawl:
            assert order_of(crawl) == list(orders.values())[-1]
    for event, order in orders.items():
        with as_of(folder, event, folder.parent) as was:
            assert was.approximate == ""
            found = inlink.CrawlView.open(was.folder, lambda: 1e6).order(100).rows
            assert [(row.url, row.priority) for row in found] == order


@pytest.mark.slow
@pytest.mark.parametrize("reveal", [True, False], ids=["seeds reveal new pages", "they do not"])
def test_no_seed_waits_for_ever(tmp_path, reveal):
    """Hundreds of seeds that nobody links to, beside pages that have ever more links."""
    seeds = [f"http://l.com/seed{k}" for k in range(300)]
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=0.1) as crawl:
        crawl.seed(["http://l.com/", *seeds])
        order = []
        for count in range(900):
            (lease,) = crawl.next(1)
            order.append(lease.url)
            links = [f"http://l.com/{k}" for k in range(count // 2, 3 * count + 30)]
            if lease.url in seeds:
                links = [f"{lease.url}/{k}" for k in range(9)] if reveal else links[:3]
            crawl.crawled(lease, links)
    fetched = [url for url in order if url in seeds]
    assert len(fetched) >= (100 if reveal else 10)
    assert fetched == seeds[: len(fetched)], "the oldest come first"


def test_a_crawl_of_a_single_seed_has_no_sections(tmp_path):
    links = library(1)
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=0.1) as crawl:
        crawl.seed(["http://l.com/0/5", "http://elsewhere.com/"])
        for lease in crawl.next(2):
            crawl.crawled(lease, links.get(lease.url, []))
        fetch(crawl, links, 9)
        crawl.rerank(wait=True)
        assert Folder(crawl.folder / "ranks", "ranks", 1).header.meta["sections"] == 0
        assert not frontier_in(crawl).policy.has_sections


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (np.full(100, -2, np.float32), "negative or not finite"),
        (np.full(100, np.inf, np.float32), "negative or not finite"),
        (np.zeros(5, np.float32), "shape"),
        (np.zeros(100, np.float64), "float64"),
    ],
    ids=["negative", "infinite", "short", "wide"],
)
def test_unsound_sections_are_not_used(tmp_path, wrong, fault):
    links = library()
    with opened(tmp_path / "c", VirtualClock(), politeness=EAGER, rerank_share=None) as crawl:
        crawl.seed([f"http://l.com/{book}/5" for book in range(BOOKS)])
        fetch(crawl, links, 5)
        publish_ranking(crawl)
        count = crawl.view.info().pages
        replace_sections(crawl.folder, wrong[:count])
        before = order_of(crawl)
        assert not adopt(frontier_in(crawl))
        assert fault in frontier_in(crawl).ranking_fault
        assert order_of(crawl) == before
        # A ranking of an earlier version has no sections.
        replace_sections(crawl.folder, None)
        assert adopt(frontier_in(crawl))


def replace_sections(folder, sections: np.ndarray | None) -> None:
    """Write the published ranking again, with other sections or none."""
    old = Folder(folder / "ranks", "ranks", 1)
    arrays, meta = {name: np.array(old.array(name)) for name in ("rank", "expected")}, dict(old.header.meta)
    with building(folder / "ranks", "ranks", 1) as writer:
        for name, values in arrays.items():
            writer.write(name, values)
        if sections is not None:
            writer.write("sections", sections)
        writer.header.meta = meta | {"sections": int(sections is not None)}


class OnlyRank(HostDiverse):
    takes_expected = takes_sections = False


def test_a_subclass_that_takes_neither_sections_nor_expected_rank_has_rank_divided_by_depth(tmp_path):
    """The kernel of the class reads both columns."""
    with inlink.Crawl(tmp_path / "c", policy=OnlyRank, politeness=EAGER) as crawl:
        crawl.seed([f"http://a.example/{k}/" for k in range(6)])
        for number in range(6):
            lease = crawl.next(1)[0]
            crawl.crawled(lease, [f"{lease.url}{k}" for k in range(number, number + 9)])
        crawl.rerank(wait=True)
        policy = crawl._frontier.policy
        pages = np.arange(crawl._frontier.pages.num_pages, dtype=np.uint32)
        rank = policy.shares[pages] + policy.rest
        wanted = rank / (1 + crawl._frontier.pages.depths[pages].astype(np.float64)) ** 0.125
        assert policy.priority(pages) == pytest.approx(wanted, rel=1e-5)
