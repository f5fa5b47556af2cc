"""A crawl on a server in Python and in commands: the same as its folder."""

import inspect
import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import inlink
from crawlstrategies import EAGER
from inlink.cli import commands
from inlink.client.remote import RemoteCrawl
from inlink.crawl.crawl import Crawl
from inlink.crawl.view import QUESTIONS, CrawlView
from inlink.errors import InlinkError, ParameterError, ServerError, UnknownNodeError
from inlink.protocol import Crawled, Failed, Link, Receipt, Seeded
from inlink.server.app import ENDPOINTS
from served import Served, served

A, B = "http://a.com/", "http://b.com/"


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("INLINK_TOKEN", "INLINK_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


def world(folder: Path) -> None:
    """A crawl in which something was done, with a ranking that is stored with it."""
    with Crawl(folder, policy="pagerank", politeness=EAGER, lease_seconds=1e6) as crawl:
        crawl.seed([A, (B, 0.5)])
        session = crawl.desk.hello("before").number
        links = [f"/{k}" for k in range(30)] + [B, Link("/form", data=b"\xffx", variant="POST:1")]
        for task in crawl.desk.next(session, 2).tasks:
            crawl.desk.report(session, [Crawled(task.lease, links, 0.25, b"\xff\x00")])
        one, two, *_ = crawl.desk.next(session, 4).tasks
        crawl.desk.report(session, [Failed(one.lease, "gone", 404), Failed(two.lease, "no route")])
        crawl.rerank(wait=True)
    done = CliRunner().invoke(commands, ["-q", "rank", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def crawl_of(server: Served) -> str:
    return f"{server.url}/v1/crawls/c"


def said(*args: str, **more: Any) -> tuple[int, str]:
    """The exit code and the output of a command; of an error its line."""
    try:
        done = CliRunner().invoke(commands, ["-q", *args], catch_exceptions=False, **more)
    except InlinkError as error:
        return 2, str(error)
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    folder = tmp_path_factory.mktemp("remote") / "c"
    world(folder)
    with served(folder, policy="pagerank", politeness=EAGER, lease_seconds=1e6) as server:
        yield folder, server


LOOKS = [
    ["page", "@", A],
    ["page", "@", A, "--json"],
    ["links", "@", A, "--json"],
    ["path", "@", A, "--json"],
    ["find", "@", ".", "--json"],
    ["dump", "links", "@", "--json"],
    ["page", "@", "0000000000000001"],
    ["links", "@", A],
    ["links", "@", B],
    ["path", "@", "http://a.com/7"],
    ["find", "@", "a.com/1"],
    ["find", "@", "*1*", "--glob", "-n", "2"],
    ["find", "@", "FORM", "--text"],
    ["dump", "pages", "@"],
    ["dump", "links", "@"],
    ["dump", "pages", "@", "--aduana", "--depth"],
    ["top", "@"],
    ["top", "@", "-n", "3", "--json"],
    ["crawl-info", "@"],
    ["crawl-info", "@", "--json"],
    ["crawl-info", "@", "--top", "3"],
    ["crawl-info", "@", "--top", "2", "--within", "0.01", "--json"],
    ["next", "@", "--peek", "-n", "5"],
]


@pytest.mark.parametrize("args", LOOKS, ids=" ".join)
def test_commands_print_the_same_of_a_folder_and_of_its_server(ready, args):
    folder, server = ready
    here, there = (
        said(*(place if one == "@" else one for one in args)) for place in (str(folder), crawl_of(server))
    )
    assert here == there
    assert here[0] == 0
    assert here[1]


def test_an_unknown_page_is_one_line_of_folder_and_server(ready):
    folder, server = ready
    for command in ("page", "why", "links", "path"):
        for place in (str(folder), crawl_of(server)):
            code, line = said(command, place, "http://nowhere.com/")
            assert code == 2
            assert "'http://nowhere.com/' is not known in" in line
            assert "\n" not in line
    assert said("find", crawl_of(server), "(")[0] == 2
    code, line = said("top", crawl_of(server), "--by", "none")
    assert (code, "none" in line) == (2, True)


def test_places_that_a_server_does_not_compute_in_time_are_one_line(tmp_path, monkeypatch):
    with Crawl(tmp_path / "c"):
        pass
    monkeypatch.setattr("inlink.cli.info.PATIENCE", 0.1)
    with served(tmp_path / "c") as server:
        code, line = said("crawl-info", crawl_of(server), "--top", "3")
    assert code == 2
    assert "within 0 s. Repeat the command later; a crawl without seeds has none" in line


def test_a_view_over_http_is_the_view(ready):
    folder, server = ready
    here = CrawlView.open(folder)
    with inlink.connect(crawl_of(server)) as there:
        assert isinstance(there, RemoteCrawl)
        assert there.page(A) == here.page(A)
        assert there.page("http://nowhere.com/") is None
        assert there.page(-1) is None
        assert there.number(B) == here.number(B)
        assert there.path("http://a.com/7") == here.path("http://a.com/7")
        assert there.links(A, "to") == here.links(A, "to")
        assert there.links(0, count=3) == here.links(0, count=3)
        assert there.find("x") == here.find("x")
        assert there.info().pages == here.info().pages
        assert there.about() == here.about()
        assert there.hosts().known == here.hosts().known
        assert [row.name for row in there.hosts(fullest=True).rows] == [
            row.name for row in here.hosts(fullest=True).rows
        ]
        assert [(one.cause, one.count) for one in there.errors().causes] == [
            (one.cause, one.count) for one in here.errors().causes
        ]
        assert there.standing().states == here.standing().states
        assert [row.url for row in there.order(9).rows] == [row.url for row in here.order(9).rows]
        assert there.why(A).url == A
        assert there.top("pagerank", 3).rows == here.top("pagerank", 3).rows
        assert there.top(None, 3).known == here.top(None, 3).known
        assert there.harvest().known in (0, here.info().pages)
        with pytest.raises(UnknownNodeError):
            there.number("http://nowhere.com/")
        with pytest.raises(ParameterError, match="named by its URL or its number"):
            there.page(1.5)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="count"):
            there.order(1000)
    with pytest.raises(ServerError, match="was closed: connect again"):
        there.info()


def test_each_question_is_an_endpoint_and_a_method_of_the_client():
    paths = {endpoint.path for endpoint in ENDPOINTS if endpoint.method == "GET"}
    for name, question in QUESTIONS.items():
        assert f"/v1/crawls/{{name}}/{question.path}" in paths
        assert inspect.signature(getattr(RemoteCrawl, name)) == inspect.signature(getattr(CrawlView, name))
        assert getattr(RemoteCrawl, name).__doc__ == getattr(CrawlView, name).__doc__


def test_a_program_works_as_a_spider_and_as_an_operator(tmp_path):
    with (
        served(tmp_path / "c", policy="first-come", politeness=EAGER) as server,
        inlink.connect(crawl_of(server)) as crawl,
    ):
        assert crawl.seed([A, (B, 0.5), "ftp://x/"]) == Seeded(2, {"link is not http": 1})
        one, two = crawl.next(9).tasks
        assert (
            crawl.report([Crawled(one.lease, ["/x"]), Failed(two.lease, "gone", 410)]) == [Receipt(True)] * 2
        )
        assert crawl.sitemap([("http://a.com/map", None, 0.7)]).new == 1
        (last,) = (task for task in crawl.next(9, wait=1).tasks if task.url.endswith("/x"))
        assert crawl.pause()
        assert crawl.next(1).paused
        assert not crawl.resume()
        assert crawl.reload("gone") == 1
        assert not crawl.rerank()
        assert crawl.standing().leased == 2
        crawl.close()
        assert server.crawl("GET", "standing")[1]["leased"] == 0
        assert last.lease


def test_an_operator_steers_hosts_and_rules(tmp_path):
    with (
        served(tmp_path / "c", policy="first-come", politeness=EAGER) as server,
        inlink.connect(crawl_of(server)) as crawl,
    ):
        crawl.seed([A, B, "http://[2001:db8::1]:8080/"])
        state = crawl.set_host("a.com", block=math.inf, delay=7.5, budget=3)
        assert (state.name, state.blocked_for, state.delay, state.budget_left) == ("a.com", None, 7.5, 3)
        assert state.set_by_operator == ("block", "delay", "budget")
        assert crawl.set_host(B, budget=0).budget_left == 0
        assert crawl.set_host("[2001:db8::1]:8080", block=60).blocked_for == pytest.approx(60, abs=59)
        assert crawl.next(9).tasks == []
        state = crawl.set_host("a.com", block=0, delay=None, budget=None)
        assert (state.blocked_for, state.budget_left, state.set_by_operator) == (0, None, ("budget",))
        assert [task.url for task in crawl.next(9).tasks] == [A]
        for wrong in ({}, {"block": -1}, {"delay": "x"}, {"block": 1, "budget": 1.5}):
            with pytest.raises(ParameterError):
                crawl.set_host("a.com", **wrong)
        with pytest.raises(UnknownNodeError, match=r"unknown\.com"):
            crawl.set_host("unknown.com", block=1)
        assert crawl.set_host("a.com", delay=None).set_by_operator == ("budget",)


def test_an_operator_changes_settings_as_in_a_folder(tmp_path):
    every = [
        {"rules": inlink.Rules(deny=["host:b.com"], max_depth=3)},
        {"rules": {"allow": "a"}, "max_retries": 1, "politeness": {"delay": 0.25}},
        {"revisit": {"schedule": "FixedInterval", "seconds": 10.0}, "rerank_share": None},
        {},
    ]
    with (
        Crawl(tmp_path / "here", policy="first-come", politeness=EAGER) as here,
        served(tmp_path / "c", policy="first-come", politeness=EAGER) as server,
        inlink.connect(crawl_of(server)) as there,
    ):
        for given in every:
            assert there.change_settings(**given) == here.change_settings(**given)
        assert there.change_settings().rules.deny == ("host:b.com",)
        for wrong in ({"rules": {"deny": ["("]}}, {"max_retry": 1}, {"damping": 0.5}, {"policy": "pagerank"}):
            said = []
            for crawl in (here, there):
                with pytest.raises(ParameterError) as refused:
                    crawl.change_settings(**wrong)
                said.append(str(refused.value))
            assert said[0] == said[1]
        assert there.change_settings() == here.settings


def test_commands_that_change_a_crawl(tmp_path, monkeypatch):
    outputs = []
    urls = tmp_path / "urls"
    urls.write_text(f"{A}\t0.5\n{B}\nmailto:x\n{A}\n")
    for kind in ("folder", "server"):
        folder = tmp_path / kind / "c"
        folder.parent.mkdir()
        with Crawl(folder, policy="first-come", politeness=EAGER):
            pass
        if kind == "folder":
            outputs.append(_changes(str(folder), urls))
        else:
            with served(folder, policy="first-come", politeness=EAGER) as server:
                outputs.append(_changes(crawl_of(server), urls))
    assert outputs[0] == outputs[1]


def _changes(place: str, urls: Path) -> list[Any]:
    found: list[Any] = [said("seed", place, str(urls)), said("why", place, A), said("next", place, "-n", "1")]
    code, raw = said("next", place, "--json")
    rows = json.loads(raw)
    for row in rows:
        assert row.pop("expires") > 1e9
    return [*found, code, rows, said("next", place), said("reload", place)]


def test_commands_that_need_a_folder_refuse_a_server_in_one_line(ready):
    _, server = ready
    url = crawl_of(server)
    for args, advice in (
        (["build", url, "-o", "x"], "build where the crawl's folder is"),
        (["build", "x", "-o", url], "must be on this machine"),
        (["rank", url], "where the crawl's folder is"),
        (["export", url, "-o", "x"], "where the crawl's folder is"),
        (["info", url], "where the crawl's folder is"),
        (["crawl", A, "-o", url], "INLINK_CRAWL"),
        (["backup", url, "-o", "x"], "where the folder is"),
        (["repair", url], "where the folder is"),
        (["path", url, A, "--from", B], "--from needs the crawl's folder"),
        (["import-ranking", url, "ranks.tsv", "--name", "x"], "works on a crawl's folder"),
        (["near", url, A], "where the folder is"),
        (["why", url, A, "--set", "policy=first-come"], "the server decides policy"),
        (["seed", url, "-", "--set", "damping=0.5"], "the server decides damping"),
        (["reload", url, "--set", "damping=0.5"], "the server decides damping"),
        (["next", url, "--set", "damping=0.5"], "the server decides damping"),
    ):
        code, line = said(*args, input=f"{A}\n")
        assert code == 2, (args, line)
        assert advice in line, args
        assert line.startswith(url), args
        assert "\n" not in line
    code, line = said("crawl-info", "http://127.0.0.1:1/v1/crawls/c")
    assert code == 2
    assert "cannot be reached" in line
