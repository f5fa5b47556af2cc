"""A robots.txt that is too large, packed, or hostile: what counts of it, and that it costs little."""

import asyncio
import gzip
from urllib.parse import urlsplit

import pytest

pytest.importorskip("scrapy")

from protego import Protego
from scrapy import Request
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.http import Response
from scrapy.utils.test import get_crawler

import inlink
from crawlcommand import crawl
from inlink.scrapy import robots
from inlink.scrapy.robots import LONGEST, MOST_WORK, Robots, readable
from sites import ROBOTS, Answer, Asked, Site, html
from spiderruns import Walker
from spiderruns import crawl as crawl_by_scrapy

PLAIN = {"Content-Type": "text/plain"}
FILLER = b"# " + b"x" * 97 + b"\n"


def part(body: bytes) -> bytes:
    """The part of a robots.txt that counts."""
    return readable(body)[0]


def rules(text: bytes) -> Protego:
    return Protego.parse(part(text).decode("utf-8", "ignore"))


def large(size: int) -> bytes:
    """Forbids /first and /inside within the first 500 KiB, and /outside behind them."""
    head = b"User-agent: *\nDisallow: /first\n"
    head += FILLER * ((LONGEST - len(head) - 40) // len(FILLER)) + b"Disallow: /inside\n"
    head += b"#" * (LONGEST - len(head) - 10) + b"\nDisallow: /outside\n"
    return head + FILLER * ((size - len(head)) // len(FILLER))


def test_whole_lines_of_the_first_500_kib_count():
    text = large(600_000)
    assert len(part(text)) <= LONGEST
    assert part(text).endswith(b"\n")
    # the line that is cut would forbid more than it says: "Disallow" and a part of a path
    assert b"outside" not in part(text)
    found = rules(text)
    assert [found.can_fetch(f"http://a.com/{path}", "x") for path in ("first", "inside", "outside", "")] == [
        False, False, True, True,
    ]  # fmt: skip
    assert part(b"Disallow: /" * 100_000) == b""
    assert part(b"User-agent: *\rDisallow: /a\r" * 50_000).endswith(b"\r")
    assert part(b"small") == b"small"


@pytest.mark.slow
@pytest.mark.parametrize(
    "between", ["", "\n", "# note\n", "Sitemap: http://a.com/s\n", "\x0b\n", "foo: bar\n"]
)
def test_many_agents_times_many_rules_are_bounded(monkeypatch, between):
    """Each rule is kept for each agent of its group: 15,000 times 15,000 would take minutes and gigabytes."""
    monkeypatch.setattr(robots, "MOST_WORK", MOST_WORK // 10)
    text = "User-agent: *\nDisallow: /secret\n"
    text += "".join(f"User-agent: a{k}\n{between}" for k in range(900))[:24_000]
    text += "\nDisallow: /a\n" * 1600
    kept = part(text.encode()).decode()
    assert kept.startswith("User-agent: *\nDisallow: /secret\n")
    agents = kept.count("User-agent")
    assert agents * kept.count("Disallow: /a") <= MOST_WORK // 10 + agents
    assert kept.count("Disallow: /a") < 1600
    assert not rules(text.encode()).can_fetch("http://a.com/secret", "x")


def test_a_long_honest_list_is_read_to_its_end():
    text = "".join(f"User-agent: bot{k}\n" for k in range(200)) + "Disallow: /\n" * 100
    text += "\nUser-agent: *\n" + "".join(f"Disallow: /{k}/\n" for k in range(20_000)) + "Disallow: /last\n"
    assert part(text.encode()) == text.encode()


class Engine:
    """Answers each request for a robots.txt with a rule for each letter of the host's name."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def download_async(self, request: Request) -> Response:
        host = urlsplit(request.url).netloc
        self.asked.append(host)
        lines = "".join(f"Disallow: /{k}-\n" for k in range(len(host)))
        return Response(request.url, body=f"User-agent: *\n{lines}".encode())


def test_the_rules_of_all_hosts_together_are_bounded_and_the_largest_are_dropped_first(monkeypatch):
    monkeypatch.setattr(robots, "MOST_KEPT", 105)
    crawler = get_crawler(settings_dict={"ROBOTSTXT_OBEY": True})
    crawler.engine = engine = Engine()
    middleware = RobotsTxtMiddleware(crawler)
    middleware.__class__ = Robots
    middleware.begin()

    async def ask(*hosts: str) -> list[str]:
        """The hosts whose robots.txt is fetched."""
        before = len(engine.asked)
        for host in hosts:
            parser = await middleware.robot_parser(Request(f"http://{host}/"))
            assert not parser.allowed(f"http://{host}/{len(host) - 1}-", "x")
            assert parser.allowed(f"http://{host}/{len(host)}-", "x")
        return engine.asked[before:]

    async def run() -> None:
        large, small = "l" * 60, ["s", "t", "u"]
        assert await ask(large, large, *small) == [large, "s", "t", "u"]
        # The fourth small host is one too many, and the largest is dropped.
        assert await ask("v", *small, "v") == ["v"]
        assert await ask(large, large, *small) == [large, large]
        assert len(middleware._parsers) == len(middleware._most_rules) <= 9

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("length", ["told", "not told"])
def test_an_oversized_robots_txt_is_obeyed_and_not_downloaded_whole(tmp_path, length):
    """12 MB, which is more than the largest page. The site sends for as long as it is let."""
    text = large(12 << 20)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    if length == "told":
        head += b"Content-Length: %d\r\n" % len(text)
    pages = {
        ROBOTS: Answer(raw=head + b"Connection: close\r\n\r\n" + text),
        "/": html("/first", "/inside", "/ok"),
    }
    with Site({**pages, "/ok": html(), "/first": "never", "/inside": "never"}) as site:
        crawl(f"{site.root}/", "-o", "c", "--delay", 0, "--warc", "w.warc.gz", cwd=tmp_path)
        assert sorted(site.paths()) == ["/", "/ok"]
    assert inlink.read(tmp_path / "w.warc.gz").num_nodes >= 2
    raw = gzip.decompress((tmp_path / "w.warc.gz").read_bytes())
    assert LONGEST <= len(raw) < 2 * LONGEST
    assert raw.count(b"WARC-Truncated: length") == 1


@pytest.mark.slow
def test_a_packed_robots_txt_that_nobody_asked_for_is_bounded_too(tmp_path):
    """A project with Scrapy's own limit; a bomb is an answer that cannot be had, so nothing is fetched."""

    def packed(size: int) -> Answer:
        body = gzip.compress(b"User-agent: *\nDisallow: /no\n" + b"#" * size)
        return Answer(body, headers={**PLAIN, "Content-Encoding": "gzip"})

    def robots(asked: Asked) -> Answer:
        assert asked.headers["Accept-Encoding"] == "identity"
        return packed(700_000 if asked.host == "127.0.0.1" else 50_000_000)

    with Site({"/": html("/no"), "/no": "never", ROBOTS: robots}, hosts=2) as site:
        starts = [site.url("/", host) for host in (1, 2)]
        settings = {"DOWNLOAD_MAXSIZE": 5_000_000, "INLINK_MAX_RETRIES": 0, "RETRY_ENABLED": False}
        ran = crawl_by_scrapy(Walker, tmp_path / "c", site, starts, ROBOTSTXT_OBEY=True, **settings)
        assert site.counts() == {"/": 1}
    assert ran.states["/"] == "crawled"
    assert ran.states[site.url("/", 2)] == "failed"
