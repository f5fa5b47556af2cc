"""Questions to a crawl of several shards: the answers of one crawl that fetched the same site in the same order."""

import inspect
import itertools
import random
from collections import Counter
from contextlib import ExitStack

import pytest

from crawlstrategies import Clock, opened
from inlink.crawl.certificate import Certifier, certify
from inlink.crawl.questions import whole
from inlink.crawl.questions.table import Question, parts, question
from inlink.crawl.view import QUESTIONS
from inlink.errors import ParameterError, ServerError, UnknownNodeError
from inlink.frontier.standing import HarvestPoint
from inlink.store.backup import backup
from inlink.urls.shards import owner_of
from shardworld import SETTINGS, Site, Views, crawl_all, exchanged, ranked, reached, shards_at

COUNT = 3


def host(url: str) -> str:
    return url.split("/")[2]


class Worlds:
    """One crawl and the shards of another, of one site."""

    def __init__(self, folder, seed, count=COUNT):
        self.site, self.stack = Site(seed), ExitStack()
        self.one = self.stack.enter_context(opened(folder / "one", Clock(), **SETTINGS))
        self.shards = [self.stack.enter_context(crawl) for crawl in shards_at(folder, count)]
        self.views, self.view = Views(self.shards), self.one.view

    def seed(self):
        self.one.seed(self.site.seeds)
        # A shard takes any seed, and its owner asks for it.
        self.shards[0].seed(self.site.seeds)
        exchanged(self.shards)

    def crawl(self, most=100):
        crawl_all(self.site, [self.one], most)
        crawl_all(self.site, self.shards, most)

    def rows(self, name, **arguments):
        """All rows of an answer in parts, of the shards."""
        return [
            row
            for part in parts(lambda cursor: self.views.whole(name, cursor=cursor, **arguments))
            for row in part.rows
        ]


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.soak)])
def worlds(request, tmp_path_factory):
    worlds = Worlds(tmp_path_factory.mktemp("worlds"), request.param)
    with worlds.stack:
        worlds.seed()
        worlds.crawl()
        yield worlds


def test_the_site_is_divided(worlds):
    assert {owner_of(host(url), COUNT) for url in worlds.site.urls} == {1, 2, 3}
    assert worlds.view.info().crawled > 40


def test_each_question_says_how_shards_answer_it():
    assert {name: question.way for name, question in QUESTIONS.items()} == {
        name: getattr(whole, name) for name in QUESTIONS
    }
    assert inspect.signature(question).parameters["way"].default is inspect.Parameter.empty
    assert inspect.signature(Question).parameters["way"].default is inspect.Parameter.empty


@pytest.mark.slow
def test_pages_are_the_same(worlds):
    for url in worlds.site.urls:
        there, here = worlds.views.whole("page", url), worlds.view.page(url)
        if here is None:
            assert there is None
            with pytest.raises(UnknownNodeError):
                worlds.views.whole("why", url)
            continue
        assert (there.state, there.crawls, there.error, there.status) == (
            here.state,
            here.crawls,
            here.error,
            here.status,
        )
        assert there.depth == here.depth
        # The number that it has in the answer names it too, as a number and as 16 digits.
        for name in (there.id, f"{there.id:016x}", url.upper().replace("HTTP://WWW.", "http://www.")):
            assert worlds.views.whole("page", name).url == url
        why = worlds.views.whole("why", url)
        assert (why.url, why.state, why.depth, why.page) == (url, here.state, here.depth, there.id)
    assert worlds.views.whole("page", "http://nobody.example/") is None
    for wrong in (7, "0000000000000007", 9 << 32, "no url"):
        assert worlds.views.whole("page", wrong) is None
        with pytest.raises(UnknownNodeError):
            worlds.views.whole("links", wrong)
    with pytest.raises(ParameterError, match="named by its URL or its number"):
        worlds.views.whole("page", 1.5)


def test_links_are_the_same_in_both_directions(worlds):
    for url in [row.url for row in worlds.view.find(".", count=1000).rows]:
        for direction in ("from", "to"):
            here = Counter(row.url for row in worlds.view.links(url, direction, 1000).rows)
            for count in (1, 2, 1000):
                rows = worlds.rows("links", page=url, direction=direction, count=count)
                assert Counter(row.url for row in rows) == here, (url, direction, count)
            for row in rows:
                assert worlds.views.whole("page", row.page).url == row.url
    for direction in ("from", "to"):
        with pytest.raises(UnknownNodeError):
            worlds.views.whole("links", "http://nobody.example/", direction, count=1)


def test_the_best_links_of_a_page_come_from_all_shards(worlds):
    for url in [row.url for row in worlds.view.find(".", count=1000).rows]:
        here, there = worlds.view.why(url), worlds.views.whole("why", url)
        assert there.inlinks_complete
        linkers = {row.url for row in worlds.rows("links", page=url, direction="to")}
        assert {row.url for row in there.inlinks} <= linkers
        assert len(there.inlinks) == len(here.inlinks)


def test_paths_have_the_same_length_and_follow_links_to_a_seed(worlds):
    crossed = False
    for url in [row.url for row in worlds.view.find(".", count=1000).rows]:
        here = worlds.view.path(url).rows
        for count in (1, 2, 3, 1000):
            there = [row.url for row in worlds.rows("path", page=url, count=count)]
            assert len(there) == len(here)
            assert there[0] == url
            assert there[-1] in worlds.site.seeds
            for page, linker in itertools.pairwise(there):
                assert page in worlds.site.links[linker]
        crossed = crossed or len({owner_of(host(page), COUNT) for page in there}) > 1
    assert crossed


def test_pages_are_found_once(worlds):
    for expression, kind in ((".", "regex"), ("d[1-4].*/[0-3]$", "regex"), ("*5", "glob"), ("D2", "text")):
        here = sorted(row.url for row in worlds.view.find(expression, kind, 1000).rows)
        assert here
        for count in (1, 2, 5, 1000):
            there = worlds.rows("find", expression=expression, kind=kind, count=count)
            assert sorted(row.url for row in there) == here
        part = worlds.views.whole("find", expression, kind, 1000)
        assert (part.searched, part.cursor) == (part.known, None)


def test_figures_are_sums(worlds):
    here, there = worlds.view.info(), worlds.views.whole("info")
    assert (there.pages, there.states, there.crawled, there.hosts, there.links, there.began) == (
        here.pages,
        here.states,
        here.crawled,
        here.hosts,
        here.links,
        here.began,
    )
    here, there = worlds.view.standing(), worlds.views.whole("standing")
    for name in ("known", "crawled", "waiting", "leased", "states", "planned"):
        assert getattr(there, name) == getattr(here, name), name
    about = worlds.views.whole("about")
    assert about.policy == "pagerank"
    assert about.bytes["events.log"] == sum(crawl.view.about().bytes["events.log"] for crawl in worlds.shards)


def test_hosts_are_the_same(worlds):
    here = worlds.view.hosts(1000)
    for count in (1, 2, 1000):
        rows = worlds.rows("hosts", count=count)
        assert sorted((row.name, row.taken) for row in rows) == sorted(
            (row.name, row.taken) for row in here.rows
        )
    assert worlds.views.whole("hosts", 1000).known == here.known


def test_errors_are_counted_once(worlds):
    here, there = worlds.view.errors(), worlds.views.whole("errors")
    assert [(row.cause, row.count) for row in there.causes] == [(row.cause, row.count) for row in here.causes]
    assert (there.total, there.cursor) == (here.total, None)
    assert all(len(row.examples) == min(row.count, 3) for row in there.causes)
    assert {row.url for cause in there.causes for row in cause.examples} <= worlds.site.failing


def lines(parts_of_dump):
    return "".join(part.text for part in parts_of_dump).splitlines()


def table(rows):
    head, *rest = (row.split("\t") for row in rows)
    return [dict(zip(head, cells, strict=True)) for cells in rest]


@pytest.mark.parametrize("columns", [{}, {"anchors": True}, {"raw": True}])
def test_links_are_dumped_once(worlds, columns):
    there = lines(parts(lambda cursor: worlds.views.whole("dump", "links", cursor, **columns)))
    here = lines(parts(lambda cursor: worlds.view.dump("links", cursor, urls=True, **columns)))
    assert there[0] == here[0]
    assert sorted(there[1:]) == sorted(here[1:]) != []
    expected = Counter(
        (url, target)
        for url in worlds.site.urls
        if worlds.view.page(url) and url not in worlds.site.failing
        for target in worlds.site.links[url]
    )
    assert Counter((row["from"], row["to"]) for row in table(there)) == expected


def test_pages_are_dumped_once_and_name_others_by_url(worlds):
    there = table(lines(parts(lambda cursor: worlds.views.whole("dump", "pages", cursor))))
    here = table(lines(parts(lambda cursor: worlds.view.dump("pages", cursor, urls=True))))
    by_number = table(lines(parts(lambda cursor: worlds.view.dump("pages", cursor))))
    names = ("url", "state", "depth", "crawls", "status", "content_hash", "error", "merged_into")
    assert sorted([row[name] for name in names] for row in there) == sorted(
        [row[name] for name in names] for row in here
    )
    urls = {row["page"]: row["url"] for row in by_number}
    assert (
        [row["linked_from"] for row in here]
        == [urls.get(row["linked_from"], "") for row in by_number]
        != [""] * len(here)
    )
    for row in there:
        assert worlds.views.whole("page", int(row["page"])).url == row["url"]


def test_ranks_and_harvest_are_those_of_one_crawl(tmp_path):
    worlds = Worlds(tmp_path, 3)
    with worlds.stack:
        worlds.seed()
        # Some pages are not fetched yet.
        worlds.crawl(3)
        worlds.one.rerank(wait=True)
        ranked(worlds.shards)
        here, there = worlds.view.top(None, 1000), worlds.views.whole("top", None, 1000)
        values = {row.url: row.value for row in there.rows}
        # The bound of each ranking is 1e-4 of all rank. Each shard has its own.
        total = sum(row.value for row in here.rows)
        assert values.keys() == {row.url for row in here.rows}
        assert sum(abs(values[row.url] - row.value) for row in here.rows) <= 3e-4 * total
        assert [row.place for row in there.rows] == list(range(1, len(values) + 1))
        assert [row.value for row in there.rows] == sorted(values.values(), reverse=True)
        assert (there.searched, there.cursor) == (there.known, None)
        best = worlds.views.whole("top", None, 5, foreign=False, uncrawled=False).rows
        assert [row.url for row in best] == [
            row.url for row in there.rows if worlds.view.page(row.url).state == "crawled"
        ][:5]
        one, shards = worlds.view.standing(), worlds.views.whole("standing")
        assert one.harvest is not None
        assert 0.3 < one.harvest < 0.99
        assert shards.harvest == pytest.approx(one.harvest, abs=3e-4)
        assert shards.rank == pytest.approx(one.rank, rel=3e-4)
        assert (shards.known, shards.waiting) == (one.known, one.waiting)
        assert one.waiting
        curve = worlds.views.whole("harvest")
        while curve.cursor is not None:
            curve = worlds.views.whole("harvest")
        end = worlds.view.harvest().points[-1]
        assert curve.points[-1].fetched == end.fetched
        assert curve.points[-1].share == pytest.approx(end.share, abs=3e-4)
        fetched = [point.fetched for point in curve.points]
        assert fetched == sorted(set(fetched))
        assert len(fetched) > 2
        shares = [point.share for point in curve.points]
        assert shares == sorted(shares)


def test_the_next_pages_of_all_shards_come_in_the_order_of_their_priorities(tmp_path):
    worlds = Worlds(tmp_path, 5)
    with worlds.stack:
        worlds.seed()
        worlds.crawl(1)
        rows = worlds.views.whole("order", 100).rows
        assert len(rows) > 9
        assert {row.url for row in rows} == {row.url for row in worlds.view.order(100).rows}
        assert [row.place for row in rows] == list(range(1, len(rows) + 1))
        assert [row.url for row in worlds.views.whole("order", 3).rows] == [row.url for row in rows[:3]]
        for crawl in worlds.shards:
            own = [row.url for row in crawl.view.order(100).rows]
            assert [row.url for row in rows if row.url in own] == own
        fullest = worlds.views.whole("hosts", 3, fullest=True).rows
        waiting = Counter(host(row.url) for row in rows)
        assert [row.waiting for row in fullest] == [count for _, count in waiting.most_common(3)]
        assert [row.waiting for row in worlds.views.whole("standing", 3).hosts] == [
            row.waiting for row in fullest
        ]


def test_a_shard_that_is_away_is_left_out_or_named(worlds):
    views = Views(worlds.shards)
    views.away = {2}
    own = {
        number: [url for url in worlds.site.urls if owner_of(host(url), COUNT) == number]
        for number in (1, 2, 3)
    }
    known = {row.url for row in worlds.view.find(".", count=1000).rows}
    for url in own[2]:
        for name in ("page", "why", "path"):
            with pytest.raises(ServerError, match="shard 2 is away"):
                views.whole(name, url)
    for name in ("pages", "links"):
        with pytest.raises(ServerError, match="shard 2 is away"):
            views.whole("dump", name)
    there = {row.url for row in views.whole("find", ".", count=1000).rows}
    assert there == known.difference(own[2])
    assert views.missing == {2}
    assert {row.url for row in views.whole("top", None, 1000).rows} == there
    standing = views.whole("standing")
    assert standing.harvest is standing.rank is None
    assert standing.known == len(there)
    assert views.whole("harvest").points == []
    assert views.whole("info").pages == len(there)
    url = next(url for url in own[1] if worlds.view.links(url, "to", 1000).rows)
    assert {row.url for row in views.whole("links", url, "to", 1000).rows} == {
        row.url for row in worlds.view.links(url, "to", 1000).rows
    }.difference(own[2])
    assert {row.name for row in views.whole("hosts", 1000).rows} == set(map(host, there))
    assert {host(row.url) for cause in views.whole("errors").causes for row in cause.examples} <= set(
        map(host, own[1] + own[3])
    )
    assert views.whole("about").bytes["events.log"] > 0


def test_nothing_is_certain_in_a_shard(worlds):
    for crawl in worlds.shards:
        for claim in (
            lambda crawl=crawl: crawl.standing(top=3),
            lambda crawl=crawl: certify(crawl.folder, 3),
            lambda crawl=crawl: Certifier(crawl.folder, 3, 0.1),
        ):
            with pytest.raises(ParameterError, match="a shard knows only the links of its own pages"):
                claim()
    with pytest.raises(ParameterError, match="a shard knows only"):
        worlds.views.whole("standing", top=3)
    assert worlds.one.standing(top=3).certificate is None


def test_an_error_bound_of_a_shard_is_not_told(tmp_path):
    worlds = Worlds(tmp_path, 5)
    with worlds.stack:
        worlds.seed()
        worlds.crawl(3)
        for crawl in (worlds.one, *worlds.shards):
            crawl.rerank(wait=True)
        assert worlds.view.about().ranking.error is not None
        assert [crawl.view.about().ranking.error for crawl in worlds.shards] == [None] * COUNT
        about = worlds.views.whole("about")
        assert (about.ranking.algorithm, about.ranking.error, about.ranking.converged) == (
            "pagerank",
            None,
            True,
        )


def test_rankings_by_the_links_of_one_shard_have_no_common_order(tmp_path):
    with ExitStack() as stack:
        shards = [stack.enter_context(crawl) for crawl in shards_at(tmp_path, 2, policy="hits")]
        views = Views(shards)
        with pytest.raises(ParameterError, match="ranks by the links of this shard only"):
            views.whole("top")
        for arguments in ({"ranking": "pagerank"}, {"hubs": True}):
            with pytest.raises(ParameterError, match="of one shard"):
                views.whole("top", **arguments)
        with pytest.raises(ParameterError, match="numbers, which are a shard's own"):
            views.whole("dump", aduana=True)


@pytest.mark.parametrize(
    "cursor", ["", "1", "1,2", "1,2,3,4", "a,b,c", ",,-x", "1.2", "9.0.1", "1.0.", "-1,-1,-", 3]
)
def test_a_wrong_cursor_is_refused(worlds, cursor):
    for name in ("find", "dump", "links", "hosts", "path"):
        arguments = {"find": {"expression": "."}, "links": {"direction": "to"}}.get(name, {})
        if name in ("links", "path"):
            arguments |= {"page": worlds.site.seeds[0]}
        with pytest.raises(ParameterError, match="cursor"):
            worlds.views.whole(name, cursor=cursor, **arguments)


def test_a_point_on_a_curve():
    points = [HarvestPoint(2, 0.5, 0.25), HarvestPoint(4, 0.6, 0.75)]
    assert whole._at(points, 1.0) == (4, pytest.approx(0.6), pytest.approx(0.75))
    assert whole._at(points, 0.25) == (1, pytest.approx(0.25), pytest.approx(0.125))
    assert whole._at(points, 0.75) == (3, pytest.approx(0.55), pytest.approx(0.5))


@pytest.mark.parametrize(
    "seed",
    [
        0,
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2)),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 8)),
    ],
)
def test_copies_of_shards_that_were_taken_at_any_moments_go_on_together(tmp_path, seed):
    dice = random.Random(seed)
    site = Site(seed)
    with ExitStack() as stack:
        shards = [stack.enter_context(crawl) for crawl in shards_at(tmp_path / "before", COUNT)]
        shards[0].seed(site.seeds)
        # The moment of each shard's copy; a shard without a copy goes on as it is.
        moments = {number: dice.randrange(8) for number in range(COUNT) if number == 0 or dice.random() < 0.6}
        for moment in range(9):
            for number in [number for number in moments if moments[number] == moment]:
                backup(shards[number].folder, tmp_path / "after" / str(number + 1))
            site.answer(dice.choice(shards), dice.choice([1, 3, 9]))
            exchanged(shards)
    for number in range(COUNT):
        if number not in moments:
            (tmp_path / "before" / str(number + 1)).rename(tmp_path / "after" / str(number + 1))
    with ExitStack() as stack:
        shards = [stack.enter_context(crawl) for crawl in shards_at(tmp_path / "after", COUNT)]
        # A shard that finds pages in another order numbers them otherwise, and may do so before others ask it.
        shards[0].seed(site.seeds)
        for _ in range(dice.randrange(4)):
            site.answer(dice.choice(shards), backwards=True)
        for _ in range(30):
            if not sum([site.answer(crawl, backwards=True) for crawl in shards]) + exchanged(shards):
                break
        views = Views(shards)
        known = {row.url for row in views.whole("find", ".", count=1000).rows}
        assert known == reached(site)
        assert views.whole("info").states == {
            state: count
            for state, count in (("crawled", len(known - site.failing)), ("gone", len(known & site.failing)))
            if count
        }
        # The exchange is at its end.
        assert exchanged(shards) == 0
        ranked(shards)
        with opened(tmp_path / "one", Clock(), **SETTINGS) as one:
            one.seed(site.seeds)
            crawl_all(site, [one])
            one.rerank(wait=True)
            values = {row.url: row.value for row in one.view.top(None, 1000).rows}
        there = {row.url: row.value for row in views.whole("top", None, 1000).rows}
        assert there.keys() == values.keys()
        assert sum(abs(there[url] - values[url]) for url in values) <= 3e-4 * sum(values.values())
