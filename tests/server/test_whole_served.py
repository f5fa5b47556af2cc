"""A crawl of several shards on real servers: programs, commands, and the dashboard."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

import inlink
from browser import MISSING, browser, overflow
from crawlstrategies import EAGER, Clock, opened
from inlink.cli import commands
from inlink.client.remote import RemoteCrawl
from inlink.client.shards import RemoteShards
from inlink.crawl.view import QUESTIONS, CrawlView
from inlink.errors import InlinkError, ParameterError, ServerError, UnknownNodeError
from inlink.protocol import Crawled, Failed, Link
from inlink.server.site import Site as ServerSite
from inlink.server.tokens import Tokens
from inlink.store import log
from inlink.urls.shards import owner_of
from patience import wait_until
from served import Served, served
from shardworld import SETTINGS, Site, crawl_all, reached

COUNT = 3
SITE = Site(1)


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("INLINK_TOKEN", "INLINK_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    # A shard sends pages and ranks to other shards only after it has synced its log.
    monkeypatch.setattr(log, "SYNC_EVERY", 0.05)


def place(server: Served) -> str:
    return f"{server.url}/v1/crawls/c"


def join(site: ServerSite, server: Served, urls: list[str]) -> None:
    asyncio.run_coroutine_threadsafe(site.join("c", urls), server.loop).result()


class Fleet:
    """Servers of all shards. Each may be stopped, and stays away."""

    def __init__(self, folder: Path, **more) -> None:
        self.stacks = [ExitStack() for _ in range(COUNT)]
        self.servers = [
            stack.enter_context(
                served(
                    folder / str(k) / "c",
                    politeness=EAGER,
                    lease_seconds=1e6,
                    **{**SETTINGS, "rules": {"shard": f"{k}/{COUNT}"}, **more},
                )
            )
            for k, stack in enumerate(self.stacks, 1)
        ]
        self.urls = [place(server) for server in self.servers]
        # The order of the list says nothing.
        self.where = ",".join([self.urls[2], self.urls[0], self.urls[1]])
        for server in self.servers:
            join(server.site, server, self.urls)

    def stop(self, shard: int) -> None:
        self.stacks[shard - 1].close()

    def close(self) -> None:
        for stack in self.stacks:
            stack.close()


@contextmanager
def fleet_in(folder: Path, **more) -> Iterator[Fleet]:
    fleet = Fleet(folder, **more)
    try:
        yield fleet
    finally:
        fleet.close()


def crawl_with(fleet: Fleet, site: Site) -> None:
    """Let a spider at each shard fetch all pages."""
    count = len(reached(site))
    with ExitStack() as stack:
        spiders = [stack.enter_context(RemoteCrawl(url)) for url in fleet.urls]
        whole = stack.enter_context(RemoteShards(fleet.urls))

        def work() -> bool:
            for spider in spiders:
                spider.report(
                    Failed(task.lease, "not there", 404)
                    if task.url in site.failing
                    else Crawled(task.lease, list(site.links[task.url]))
                    for task in spider.next(100).tasks
                )
            states = whole.standing().states
            return states.get("crawled", 0) + states.get("gone", 0) == count

        wait_until(work, "all pages to be fetched")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    with fleet_in(tmp_path_factory.mktemp("fleet")) as fleet:
        with inlink.connect(fleet.where) as crawl:
            crawl.seed(SITE.seeds)
        crawl_with(fleet, SITE)
        yield fleet


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("one") / "c", Clock(), **SETTINGS) as crawl:
        crawl.seed(SITE.seeds)
        crawl_all(SITE, [crawl])
        yield crawl


def said(*args: str, **more) -> tuple[int, str, str]:
    """The exit code, the output, and the lines on standard error of a command."""
    try:
        done = CliRunner().invoke(commands, list(args), catch_exceptions=False, **more)
    except InlinkError as error:
        return 2, "", str(error)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.slow
def test_connect_returns_a_crawl_of_all_shards_with_the_questions_of_a_view(fleet):
    with inlink.connect(fleet.where) as crawl:
        assert isinstance(crawl, RemoteShards)
        assert repr(crawl) == f"<crawl at {fleet.where}>"
    for name in QUESTIONS:
        assert getattr(RemoteShards, name).__doc__ == getattr(CrawlView, name).__doc__


def test_a_crawl_of_several_shards_has_the_methods_of_a_crawl_on_one_server():
    def names(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert names(RemoteCrawl) - names(RemoteShards) == {"is_away", "shard"}


@pytest.mark.slow
def test_a_program_gets_the_answers_of_one_crawl(fleet, one):
    view = one.view
    with inlink.connect(fleet.where) as crawl:
        assert isinstance(crawl, RemoteShards)
        for url in sorted(reached(SITE)):
            page = crawl.page(url)
            assert page is not None
            assert page.state == view.page(url).state
            assert crawl.number(url) == page.id
            assert crawl.page(page.id) == page
            for direction in ("from", "to"):
                assert {row.url for row in crawl.links(url, direction).rows} == {
                    row.url for row in view.links(url, direction).rows
                }
            path = [row.url for row in crawl.path(page.id).rows]
            assert path[-1] in SITE.seeds
            assert len(path) == page.depth + 1
            assert crawl.why(url, seconds=1).url == url
        here, there = view.info(), crawl.info()
        assert (there.pages, there.states, there.hosts) == (here.pages, here.states, here.hosts)
        assert {row.name for row in crawl.hosts().rows} == {row.name for row in view.hosts().rows}
        assert crawl.errors().total == view.errors().total
        assert crawl.standing().harvest == pytest.approx(1.0)
        assert {row.url for row in crawl.top(None, 1000).rows} == reached(SITE)
        assert crawl.about().policy == "pagerank"
        assert crawl.order().rows == []
        assert crawl.missing == {}
        with pytest.raises(UnknownNodeError, match="is not known in http"):
            crawl.number("http://nobody.example/")
        with pytest.raises(ParameterError, match="count"):
            crawl.top(None, 2000)
    with pytest.raises(ServerError, match="was closed"):
        crawl.info()


@pytest.mark.slow
def test_commands_answer_for_all_shards(fleet, one):
    url = next(url for url in SITE.urls if url in reached(SITE) and url not in SITE.failing)
    known = reached(SITE)

    def rows(*args):
        code, out, err = said("-q", *args, "--json")
        assert code == 0, err
        return json.loads(out)

    info = rows("crawl-info", fleet.where)
    assert (info["pages"], info["hosts"], info["links"]) == (
        len(known),
        one.view.info().hosts,
        one.view.info().links,
    )
    assert rows("page", fleet.where, url)["url"] == url
    assert rows("why", fleet.where, url)["url"] == url
    assert {row["url"] for row in rows("find", fleet.where, ".")} == known
    assert {
        row["node"] for row in rows("top", fleet.where, "-n", "1000", "--uncrawled", "--foreign")
    } == known
    links = rows("links", fleet.where, url)
    for key, direction in (("inlinks", "to"), ("outlinks", "from")):
        assert {row["url"] for row in links[key]} == {row.url for row in one.view.links(url, direction).rows}
    assert rows("links", fleet.where, f"{links['page']:016x}") == links
    path = [row["url"] for row in rows("path", fleet.where, url)]
    assert (path[0], path[-1] in SITE.seeds) == (url, True)
    # The end of a URL is enough, as in one crawl.
    assert rows("page", fleet.where, url.removeprefix("http://"))["url"] == url
    assert {row["url"] for row in rows("dump", "pages", fleet.where)} == known
    assert {(row["from"], row["to"]) for row in rows("dump", "links", fleet.where)} == {
        (source, target) for source in known - SITE.failing for target in SITE.links[source]
    }
    code, out, _ = said("-q", "crawl-info", fleet.where)
    assert code == 0
    assert "writer" in out
    code, _, err = said("top", fleet.where)
    assert code == 0
    assert "--content" not in err
    assert said("next", fleet.where, "--peek")[0] == 0
    for wrong, reason in (
        (("next", fleet.where), "name the URL of one shard"),
        (("crawl-info", fleet.where, "--top", "3"), "no place is certain before the end"),
        (("crawl-info", fleet.urls[0], "--top", "3"), "no place is certain before the end"),
        (("top", fleet.where, "--by", "hits"), "of one shard"),
        (("dump", "pages", fleet.where, "--aduana"), "a shard's own"),
        (("page", fleet.where, "no-such-page"), "is not known"),
        (("why", fleet.where, "0000000000000001"), "is not known"),
        (("crawl-info", ",".join(fleet.urls[:2])), "the list has 2 URLs: give the URLs of all 3 shards"),
        (("crawl-info", ",".join([*fleet.urls[:2], fleet.urls[0]])), "are both shard 1/3"),
        (("crawl-info", f"{fleet.where},http://127.0.0.1:1/nothing"), "is not the URL of a crawl"),
    ):
        code, _, err = said(*wrong)
        assert code == 2, wrong
        assert reason in err, wrong


@pytest.mark.slow
def test_an_operator_steers_all_shards(tmp_path):
    with fleet_in(tmp_path) as fleet, inlink.connect(fleet.where) as crawl:
        assert isinstance(crawl, RemoteShards)
        urls = SITE.urls[::8]
        added = crawl.seed([*urls[:3], (urls[3], 0.5), *map(Link, urls[4:]), "ftp://x/", "#"])
        assert added.new == len(urls)
        assert sum(added.refused.values()) == 2
        states = crawl.standing().states
        assert states == {"discovered": len(urls)}
        # Each is at its owner, and nowhere else.
        for number, server in enumerate(fleet.servers, 1):
            with RemoteCrawl(place(server)) as shard:
                own = {url for url in urls if owner_of(url.split("/")[2], COUNT) == number}
                assert {row.url for row in shard.find(".").rows} == own
        assert crawl.sitemap([(f"{urls[0]}x", None, 0.5), (f"{urls[1]}x", None, None)]).new == 2
        assert said("seed", fleet.where, "-", input=f"{urls[0]}y\n")[:2] == (
            0,
            "1 new URL, 0 known already\n",
        )
        assert crawl.pause()
        assert all(RemoteCrawl(url).next(1).paused for url in fleet.urls)
        assert not crawl.resume()
        host = urls[5].split("/")[2]
        assert crawl.set_host(host, budget=0).set_by_operator == ("budget",)
        with pytest.raises(UnknownNodeError):
            crawl.set_host("nobody.example", budget=0)
        assert crawl.change_settings(max_retries=7).max_retries == 7
        rules = crawl.change_settings(rules={"deny": ["/never$"]}).rules
        assert rules is not None
        assert rules.deny == ("/never$",)
        with pytest.raises(ParameterError, match="max_retries"):
            crawl.change_settings(max_retries=-1)
        assert crawl.reload() == 0
        assert said("reload", fleet.where)[0] == 0
        with pytest.raises(ParameterError, match="states"):
            crawl.reload("nothing")
        for server, url in zip(fleet.servers, fleet.urls, strict=True):
            status, settings = server.crawl("PUT", "rules", {"deny": ["/never$", "/more$"]})
            assert status == 200, url
            assert settings["rules"]["shard"] == f"{fleet.urls.index(url) + 1}/{COUNT}"


def test_a_shard_that_is_away_is_named(tmp_path):
    with fleet_in(tmp_path) as fleet:
        urls = SITE.urls[::8]
        away = next(url for url in urls if owner_of(url.split("/")[2], COUNT) == 2)
        there = {url for url in urls if owner_of(url.split("/")[2], COUNT) != 2}
        notes: list[str] = []
        with RemoteShards(fleet.urls, None, 0.0, notes.append) as crawl:
            crawl.seed(urls)
            assert crawl.standing().rank is not None
            fleet.stop(2)
            for name in ("page", "why", "path", "links"):
                with pytest.raises(ServerError, match=r"this needs shard 2 of 3, which is away.*refused"):
                    getattr(crawl, name)(away)
            with pytest.raises(ServerError, match="this needs shard 2 of 3"):
                crawl.dump()
            assert notes == []
            assert {row.url for row in crawl.find(".").rows} == there
            assert list(crawl.missing) == [2]
            assert fleet.urls[1] in crawl.missing[2]
            standing = crawl.standing()
            assert standing.known == len(there)
            assert standing.harvest is standing.rank is None
            (note,) = notes
            assert note.startswith("shard 2 of 3 is away and missing in the answer: ")
            urls = [f"{url}x" for url in (*sorted(there)[:2], away)]
            with pytest.raises(
                ServerError, match=r"this needs shard 2 of 3.*\(done at [12] of [23] shards\)"
            ):
                crawl.sitemap([(url, None, None) for url in urls])
            # Another shard takes the seed, to hand it on.
            assert crawl.seed(urls).new == 1
            with pytest.raises(ServerError, match="done at 2 of 3 shards"):
                crawl.pause()
        # A client that never met the shard knows it by its number too.
        with RemoteShards(fleet.urls, None, 0.0, notes.append) as crawl:
            assert crawl.info().pages == len(there) + 2
            assert list(crawl.missing) == [2]
            with pytest.raises(ServerError, match="this needs shard 2 of 3"):
                crawl.page(away)
        code, out, err = said("-q", "find", fleet.where, ".", "--json")
        assert code == 0
        assert len(json.loads(out)) == len(there) + 2
        assert err.count("shard 2 of 3 is away and missing in the answer") == 1
        code, _, err = said("-q", "why", fleet.where, away)
        assert code == 2
        assert "this needs shard 2 of 3" in err
        fleet.stop(1)
        with RemoteShards(fleet.urls, None, 0.0, notes.append) as crawl:
            own = {url.split("/")[2] for url in there if owner_of(url.split("/")[2], COUNT) == 3}
            assert {row.name for row in crawl.hosts().rows} == own
            assert list(crawl.missing) == [1, 2]
            with pytest.raises(ServerError, match=r"this needs shard 2 of 3, which is away: .*; "):
                crawl.page(away)
        fleet.stop(3)
        with (
            RemoteShards(fleet.urls, None, 0.0) as crawl,
            pytest.raises(ServerError, match="cannot be reached"),
        ):
            crawl.info()


def test_a_reader_may_look_at_all_shards_and_steer_none(tmp_path, monkeypatch):
    tokens = Tokens(tmp_path / "tokens.json")
    monkeypatch.setenv("INLINK_TOKEN", tokens.add("looker", "reader", None))
    with ExitStack() as stack:
        servers = [
            stack.enter_context(
                served(tmp_path / str(k) / "c", tokens=tmp_path / "tokens.json", rules={"shard": f"{k}/2"})
            )
            for k in (1, 2)
        ]
        with inlink.connect(",".join(map(place, servers))) as crawl:
            assert crawl.info().pages == 0
            with pytest.raises(ServerError, match="'looker'"):
                crawl.pause()


def test_a_crawl_that_is_no_shard_is_refused(tmp_path):
    with served(tmp_path / "1" / "c") as one, served(tmp_path / "2" / "c") as two:
        where = f"{place(one)},{place(two)}"
        with (
            inlink.connect(where) as crawl,
            pytest.raises(
                ParameterError, match="is not a shard: give one URL, or serve each of the 2 crawls"
            ),
        ):
            crawl.info()
        status, refusal = one.crawl("GET", "shards")
        assert status == 404
        assert "has no shards on other servers" in refusal["error"]


@pytest.mark.slow
def test_the_overview_has_the_sums_and_states_of_all_shards(tmp_path):
    with fleet_in(tmp_path) as fleet:
        with inlink.connect(fleet.where) as crawl:
            crawl.seed(SITE.seeds)
        crawl_with(fleet, SITE)
        known = len(reached(SITE))

        def looked(condition):
            def look() -> bool:
                status, found = fleet.servers[0].crawl("GET", "shards")
                assert status == 200
                return condition(found)

            wait_until(look, "the state of all shards", every=0.2)
            return fleet.servers[0].crawl("GET", "shards")[1]

        found = looked(
            lambda found: found["standing"]["crawled"] == known - len(reached(SITE) & SITE.failing)
        )
        assert found["count"] == COUNT
        assert [row["number"] for row in found["shards"]] == [1, 2, 3]
        assert [row["url"] for row in found["shards"]] == [None, *fleet.urls[1:]]
        assert found["standing"]["known"] == known
        assert found["standing"]["harvest"] == pytest.approx(1.0)
        assert sum(row["snapshot"]["standing"]["known"] for row in found["shards"]) == known
        fleet.stop(2)
        found = looked(lambda found: found["shards"][1]["fault"] is not None)
        assert [row["number"] for row in found["shards"]] == [1, 2, 3]
        assert "cannot be reached" in found["shards"][1]["fault"]
        assert found["standing"]["harvest"] is None
        assert 0 < found["standing"]["known"] < known


@pytest.mark.slow
@pytest.mark.skipif(MISSING is not None, reason=str(MISSING))
def test_the_dashboard_of_a_shard_shows_the_whole_crawl(tmp_path):
    with fleet_in(tmp_path) as fleet, browser() as window:
        with inlink.connect(fleet.where) as crawl:
            crawl.seed(SITE.seeds)
        crawl_with(fleet, SITE)
        crawled = len(reached(SITE) - SITE.failing)
        window.size(1000, 900)
        window.open(fleet.servers[0].url)
        window.wait_for_text("#whole-crawled", str(crawled))
        window.wait_for_text("#whole-known", f"of {len(reached(SITE))} known")
        window.wait_for_text("#whole-share", "100.0 %")
        window.wait_for_text("#whole-table", "2 of 3")
        window.wait_for_text("#status-title", "Shard 1 of 3 now")
        window.wait_for_text("#certain", "no place is certain before the end")
        assert window.run("return document.querySelectorAll('#whole-table tbody tr').length") == COUNT
        assert overflow(window) == []
        fleet.stop(3)
        window.wait_for_text("#whole-table", "away")
        window.wait_for_text("#whole-fault", "1 shard is missing in these sums")
        window.wait_for_text("#whole-share", "–")
        window.size(400, 900)
        assert overflow(window) == []
        # Each other shard has a link to its own dashboard.
        assert (
            window.run("return document.querySelector('#whole-table a').href")
            == f"{fleet.servers[1].url}/crawls/c"
        )
        assert window.log() == []
