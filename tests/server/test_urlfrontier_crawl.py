"""A crawl as StormCrawler runs it over URLFrontier, to its end, and the graph that it leaves."""

import asyncio
import sys
import threading
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

import inlink
from frontiered import Client, Frontier, frontier
from inlink.cli import commands
from inlink.errors import MissingExtraError, OutputError
from inlink.server import run
from patience import PATIENCE, wait_until

OK, SKIPPED, FAIL = 0, 1, 2
WEB = {
    "http://a.example/": ["http://a.example/1", "http://b.example/", "http://a.example/moved"],
    "http://a.example/1": ["http://a.example/", "http://b.example/", "http://b.example/gone"],
    "http://b.example/": ["http://a.example/1", "http://c.example/"],
    "http://c.example/": [],
}
MOVED = {"http://a.example/moved": "http://c.example/"}


class Storm:
    """Does what StormCrawler does: long-lived streams, metadata with paths, discovered URLs before or after a page."""

    def __init__(self, client: Frontier, late: bool) -> None:
        self.client, self.late = client, late
        self.fetched: list[str] = []

    def run(self) -> None:
        client = self.client
        while True:
            got = client.ask("GetURLs", max_urls_per_queue=10, max_queues=10, delay_requestable=600)
            if not got and not client.ask("GetStats").inProcess:
                return
            for info in got:
                self.fetch(info)

    def fetch(self, info) -> None:
        client, url = self.client, info.url
        self.fetched.append(url)
        path = [*info.metadata["url.path"].values, url]
        depth = str(len(path))
        known = {"fetch_statusCode": ["200"]}
        links = WEB.get(url, [])
        if url in MOVED:
            known, links = {"fetch_statusCode": ["301"], "_redirTo": [MOVED[url]]}, [MOVED[url]]
        elif url not in WEB:
            known, links = {"fetch_statusCode": ["404"], "error_cause": ["HTTP 404"]}, []
        found = [client.info(link, key=link.split("/")[2], url_path=path, depth=[depth]) for link in links]
        done = client.known(url, 0, key=url.split("/")[2], **known)
        if self.late:
            assert client.put(done) == [(url, OK)]
        if found:
            assert set(client.put_batch(*found)) <= {OK, SKIPPED}
        if not self.late:
            assert client.put(done) == [(url, OK)]


def built(folder: Path) -> set[tuple[str, str]]:
    """The arcs of the graph that ``inlink build`` makes of a crawl."""
    out = folder.with_name("graph")
    result = CliRunner().invoke(
        commands, ["-q", "build", str(folder), "-o", str(out)], catch_exceptions=False
    )
    assert result.exit_code == 0
    graph = inlink.Graph.open(out)
    return {
        (graph.names[a], graph.names[b]) for a in range(graph.num_nodes) for b in graph.outlinks(a).tolist()
    }


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True], ids=["links-first", "links-later"])
def test_a_crawl_has_the_true_links(tmp_path, late):
    with frontier(tmp_path / "crawl") as client:
        assert client.put_batch(client.info("http://a.example/")) == [OK]
        storm = Storm(client, late)
        storm.run()
        assert sorted(storm.fetched) == sorted([*WEB, *MOVED, "http://b.example/gone"])
        if late:
            # The links of pages that were answered for are added a little later.
            (keeper,) = client.site.keepers.values()

            def told() -> bool:
                look = keeper.run(lambda crawl: [len(crawl.view.links(url, "from").rows) for url in WEB])
                counts = asyncio.run_coroutine_threadsafe(look, client.loop).result(PATIENCE)
                return counts == [len(targets) for targets in WEB.values()]

            wait_until(told, "the links of all pages")
    expected = {(source, MOVED.get(target, target)) for source, targets in WEB.items() for target in targets}
    with inlink.Crawl(tmp_path / "crawl") as crawl:
        states = {url: crawl.page(url).state for url in storm.fetched}
        assert late or all(crawl.page(url).crawls == 1 for url in WEB)
    assert {url for url, state in states.items() if state == "crawled"} == set(WEB)
    assert states["http://b.example/gone"] in ("gone", "failed")
    assert built(tmp_path / "crawl") == expected


def test_the_metadata_of_stormcrawler_give_the_outcome_of_a_page(tmp_path):
    a, never = "http://a.example/", 4_070_908_800  # 2099
    with frontier(tmp_path / "crawl") as client:

        def fetch(url, date=0, **metadata):
            assert url in [info.url for info in client.ask("GetURLs")]
            assert client.put(client.known(url, date, **metadata)) == [(url, OK)]
            return client.ask("GetURLStatus", url=url).known.refetchable_from_date

        client.put_batch(client.info(a), client.info(f"{a}gone"))
        client.ask("BlockQueueUntil", key="a.example", time=0)
        client.put_batch(client.info(f"{a}1", url_path=[a]))
        # It is fetched again at once, is not modified, and has its link still.
        assert fetch(a, 1, fetch_statusCode=["200"]) > 0
        client.put(client.known(f"{a}gone", never, fetch_statusCode=["404"]))
        assert client.ask("GetURLStatus", url=f"{a}gone").known.refetchable_from_date == 0
        assert fetch(a, never, fetch_statusCode=["304"]) == 0
        # A target from an earlier redirect is no redirect.
        client.put(client.known(f"{a}1", 0, fetch_statusCode=["200"], _redirTo=["http://b.example/"]))
    with inlink.Crawl(tmp_path / "crawl") as crawl:
        assert [row.url for row in crawl.view.links(a).rows] == [f"{a}1"]
        page = crawl.page(a)
        assert (page.crawls, page.status) == (2, 304)
        assert crawl.page(f"{a}gone").state == "gone"
        assert crawl.page(f"{a}1").merged_into is None
        assert crawl.due_in() is None


def test_keys_are_domains_where_politeness_counts_them(tmp_path):
    politeness = {"by": "domain", "delay": 0.0, "in_flight": 10}
    with frontier(tmp_path / "crawl", politeness=politeness) as client:
        some = [f"http://{host}.example.com/" for host in ("a", "b", "c")]
        assert client.put_batch(*(client.info(url, key="example.com") for url in some)) == [OK] * 3
        assert list(client.ask("ListQueues").values) == ["example.com"]
        (first,) = client.ask("GetURLs", max_urls_per_queue=1)
        assert first.key == "example.com"
        assert len(client.ask("GetURLs", key="example.com", crawlID="crawl")) == 2
        assert client.ask("GetURLStatus", url=some[0]).known.info.key == "example.com"


@pytest.mark.slow
def test_a_server_speaks_both_protocols(tmp_path, monkeypatch):
    servers, lines = [], []

    class Server(run.Server):
        def __init__(self, *given, **named):
            super().__init__(*given, **named)
            servers.append(self)

    monkeypatch.setattr(run, "Server", Server)
    options = run.Options(port=0, grpc_port=0, tokens=tmp_path / "tokens.json")
    thread = threading.Thread(target=run.serve, args=([tmp_path / "crawl"], options, lines.append))
    thread.start()
    try:
        wait_until(lambda: servers and servers[0].started, "the server to listen")
        (where,) = (line.removeprefix("URLFrontier: ") for line in lines if line.startswith("URLFrontier: "))
        with grpc.insecure_channel(where) as channel:
            client = Client(channel, tmp_path)
            assert client.put_batch(client.info("http://a.example/")) == [OK]
        # The port is taken.
        taken = run.Options(port=0, grpc_port=int(where.rpartition(":")[2]), tokens=tmp_path / "tokens.json")
        with pytest.raises(OutputError, match="choose another --host or --grpc-port"):
            run.serve([tmp_path / "other"], taken, lines.append)
    finally:
        servers[0].end()
        thread.join()
    with inlink.Crawl(tmp_path / "crawl") as crawl:
        assert crawl.page("http://a.example/").state == "discovered"


@pytest.mark.slow
def test_without_the_extra_the_option_is_refused_in_one_line(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "inlink.server.urlfrontier.door", raising=False)
    monkeypatch.setitem(sys.modules, "grpc", None)
    options = run.Options(port=0, grpc_port=0, tokens=tmp_path / "tokens.json")
    with pytest.raises(MissingExtraError, match=r"--grpc-port needs grpc: .*inlink\[grpc\]"):
        run.serve([tmp_path / "crawl"], options, lambda line: None)
    inlink.Crawl(tmp_path / "crawl").close()
