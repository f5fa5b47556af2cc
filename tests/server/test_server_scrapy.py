"""Several Scrapy spiders on one crawl behind a server."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import inlink
from crawlcommand import Forked, forked
from crawlstrategies import frontier_in
from patience import PATIENCE, wait_until
from served import Served, served
from sites import Answer, Site, html, spacing, web
from spiderruns import Quiet, Ran, Walker, crawl, crawl_together

SIZE = 40
REMOTE: dict[str, Any] = {"INLINK_RETRY_SECONDS": ..., "CONCURRENT_REQUESTS": 4}


def crawl_of(server: Served) -> str:
    return f"{server.url}/v1/crawls/c"


def together(site: Site, url: str, spiders: int, **settings: Any) -> list[Ran]:
    """Spiders at the same time; the first of them begins at the site's first page."""
    runs = [
        (
            Walker if k == 0 else Quiet,
            Path("nowhere"),
            "/0",
            None,
            {**REMOTE, "INLINK_CRAWL": url, **settings},
        )
        for k in range(spiders)
    ]
    return crawl_together(runs, site)


@pytest.mark.slow
def test_four_spiders_share_a_crawl(tmp_path):
    polite = {"delay": 0.02, "in_flight": 1}
    with Site(web(SIZE)) as site, served(tmp_path / "c", politeness=polite) as server:
        server.crawl("POST", "seeds", {"urls": [site.url("/1")]})
        rans = together(site, crawl_of(server), 4)
        states = server.crawl("GET", "standing")[1]["states"]
    assert [ran.reason for ran in rans] == ["finished"] * 4
    # No page is fetched twice, and one host sees one request at a time, whoever sends it.
    assert site.counts() == {f"/{k}": 1 for k in range(SIZE)}
    assert states == {"crawled": SIZE}
    assert site.most == 1
    assert spacing(site.times()) >= 0.015
    assert sum(len(ran.items) for ran in rans) == SIZE
    assert all(ran.told("INFO")[0].startswith(crawl_of(server)) for ran in rans)


@pytest.mark.slow
def test_an_idle_spider_waits_while_others_work(tmp_path):
    """The only page keeps its spider busy until it has links, which the other spider then follows."""
    gate = threading.Event()

    def slow(_: Any) -> Answer:
        gate.wait(PATIENCE)
        return html("/a", "/b", "/c", "/d")

    pages = {"/": slow, **{f"/{name}": html(delay=0.5) for name in "abcd"}}
    with Site(pages) as site, served(tmp_path / "c", politeness={"delay": 0.0, "in_flight": 4}) as server:
        server.crawl("POST", "seeds", {"urls": [site.url("/")]})

        def sessions() -> int:
            count = server.site.keepers["c"].run(lambda crawl: len([*frontier_in(crawl).sessions]))
            return asyncio.run_coroutine_threadsafe(count, server.loop).result()

        def open_gate() -> None:
            wait_until(lambda: sessions() == 2, "both spiders")
            # The one without a page is idle by then.
            time.sleep(1)
            gate.set()

        opener = threading.Thread(target=open_gate)
        opener.start()
        runs = [(Quiet, Path("nowhere"), "/", None, {**REMOTE, "INLINK_CRAWL": crawl_of(server)})] * 2
        runs = [(*run[:4], {**run[4], "CONCURRENT_REQUESTS": 1, "INLINK_MAX_WAIT": 0}) for run in runs]
        rans = crawl_together(runs, site)
        opener.join()
    assert site.counts() == dict.fromkeys(pages, 1)
    assert [ran.reason for ran in rans] == ["finished"] * 2
    assert all(ran.items or ran.reported for ran in rans)


@contextlib.contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[tuple[Forked, str]]:
    """``inlink serve`` as a process, and the URL of its crawl."""
    parent = folder.parent
    command = ("inlink", "serve", folder, "--port", port)
    with forked(*command, cwd=parent, XDG_CONFIG_HOME=str(parent)) as process:
        yield process, process.wait_for_address()


@pytest.mark.slow
def test_a_server_that_is_killed_amid_a_crawl_loses_nothing(tmp_path):
    folder = tmp_path / "c"
    with inlink.Crawl(folder, politeness={"delay": 0.0, "in_flight": 8}):
        pass
    pages = {path: Answer(page.body, delay=0.05) for path, page in web(SIZE).items() if path != "/"}  # type: ignore[union-attr]
    with Site(pages) as site, contextlib.ExitStack() as stack:
        process, url = stack.enter_context(serving(folder))
        rans: list[Ran] = []
        spiders = threading.Thread(target=lambda: rans.extend(together(site, url, 2)), daemon=True)
        spiders.start()
        site.wait_for(10)
        process.kill()
        process.wait()
        port = int(url.split(":")[2].split("/")[0])
        # The new server may start before any spider sends a request. So the test breaks off a request itself.
        with socket.create_server(("127.0.0.1", port)) as broken:
            broken.settimeout(PATIENCE)
            broken.accept()[0].close()
        stack.enter_context(serving(folder, port))
        spiders.join()
        assert [ran.reason for ran in rans] == ["finished"] * 2
        assert site.counts() == {f"/{k}": 1 for k in range(SIZE)}
        away = [line for ran in rans for line in ran.told("WARNING", "inlink.client")]
        assert any("is away" in line for line in away)
        assert any("is back after" in line for line in away)
        assert not [line for line in away if "lost" in line or "dropped" in line]
    with inlink.Crawl(folder) as again:
        assert {again.page(site.url(path)).crawls for path in pages} == {1}


def test_settings_of_the_server_are_refused_in_one_line(tmp_path):
    with Site({"/": html()}) as site, served(tmp_path / "c") as server:
        settings = {**REMOTE, "INLINK_CRAWL": crawl_of(server)}
        ran = crawl(Walker, Path("nowhere"), site, INLINK_POLICY="first-come", INLINK_DAMPING=0.5, **settings)
        (line,) = ran.told("ERROR")
        assert line.startswith(
            f"{crawl_of(server)}: the server decides INLINK_DAMPING, INLINK_POLICY: remove it here"
        )
        assert ran.reason == "inlink_refused"
        # Scrapy's own settings are the spider's, and so are inlink's of the spider.
        ran = crawl(Walker, Path("nowhere"), site, DOWNLOAD_DELAY=0.01, INLINK_OWNER="me", **settings)
        assert ran.reason == "finished"
        assert site.counts() == {"/": 1}
        assert server.crawl("GET", "standing")[1]["crawled"] == 1


def test_a_server_that_is_not_there_ends_the_spider_in_one_line():
    with Site({"/": html()}) as site:
        settings = {**REMOTE, "INLINK_CRAWL": f"{site.url('/v1/crawls/c')}"}
        ran = crawl(Walker, Path("nowhere"), site, **settings)
    (line,) = ran.told("ERROR")
    assert "is this the URL of a crawl" in line
    assert ran.reason == "inlink_refused"
