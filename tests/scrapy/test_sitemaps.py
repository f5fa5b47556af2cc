"""Sitemaps: files from anybody, read within bounds; and the crawl that reads them."""

import asyncio
import gzip
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scrapy")

from crawlcommand import crawl
from inlink.scrapy import sitemaps
from inlink.scrapy.causes import Causes
from inlink.scrapy.sitemaps import Entry, read_sitemap
from sites import ROBOTS, Answer, Site, html
from spiderruns import pages_of

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str, tag: str = "url", root: str = "urlset") -> bytes:
    rows = "".join(f"<{tag}><loc>{url}</loc></{tag}>" for url in urls)
    return f"{HEAD}<{root} {SPACE}>{rows}</{root}>".encode()


def test_urls_dates_and_priorities_of_a_sitemap_are_read():
    text = f"""{HEAD}<urlset {SPACE} xmlns:i="http://i.example/">
        <url><loc> http://a.example/?a=1&amp;b=2 </loc><lastmod>1970-01-02</lastmod><priority>0.8</priority>
          <i:image><i:loc>http://a.example/i.png</i:loc></i:image></url>
        <url><loc>http://a.example/b</loc><lastmod>1970-01-01T02:00:00+01:00</lastmod><priority>7</priority></url>
        <url><loc><![CDATA[http://a.example/c]]></loc><lastmod>1971-02</lastmod><priority>high</priority></url>
        <url><lastmod>1999</lastmod></url></urlset>"""
    wanted = [
        Entry("http://a.example/?a=1&b=2", 86_400.0, 0.8),
        Entry("http://a.example/b", 3600.0),
        Entry("http://a.example/c", 396 * 86_400.0),
    ]
    for body in (text.encode(), b"\xef\xbb\xbf" + text.encode(), gzip.compress(text.encode())):
        assert read_sitemap(body) == (wanted, False, None)
    index = read_sitemap(urlset("http://a.example/1.xml", tag="sitemap", root="sitemapindex"))
    assert index == ([Entry("http://a.example/1.xml")], True, None)
    plain = read_sitemap(b"http://a.example/1\r\nno url\n https://a.example/2")
    assert plain == ([Entry("http://a.example/1"), Entry("https://a.example/2")], False, None)


@pytest.mark.parametrize(
    ("body", "entries", "problem"),
    [
        (urlset("http://a.example/")[:-9], 1, "damaged"),
        (gzip.compress(urlset("http://a.example/"), mtime=0)[:-20], 0, "damaged"),
        (b"\x1f\x8b garbage", 0, "damaged"),
        (b"<html><body>not found</body></html>", 0, "no sitemap"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><urlset/>', 0, "it declares entities"),
        (b"<urlset>" + b"<a>" * 200, 0, "nested too deeply"),
        (b"", 0, None),
        (b"\0\xff", 0, None),
    ],
)
def test_the_first_fault_of_a_sitemap_ends_the_reading(body, entries, problem):
    found = read_sitemap(body)
    assert (len(found.entries), found.problem) == (entries, problem)


@pytest.mark.slow
def test_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr(sitemaps, "MOST_URLS", 3)
    assert read_sitemap(urlset(*"abcd")) == ([Entry(one) for one in "abc"], False, "more than 3 URLs")
    # Decompression bomb: 300 kB unpack to 60 MB. Unpacking must stop at the limit.
    bomb = gzip.compress(b"<urlset>" + b" " * 60_000_000, 1)
    assert read_sitemap(bomb) == ([], False, "longer than 52,428,800 bytes")
    long = read_sitemap(b"<urlset><url><loc>" + b"x" * 1_000_000 + b"</loc></url></urlset>")
    assert len(long.entries[0].url) < 10_000


@given(st.binary(max_size=500), st.booleans(), st.sampled_from([b"", b"<urlset><url><loc>"]))
def test_any_bytes_are_read(body, packed, head):
    read_sitemap(gzip.compress(head + body) if packed else head + body)


class Downloads:
    """Scrapy's engine with a downloader that answers at once."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self.bodies, self.asked = bodies, []
        self.crawler = SimpleNamespace(engine=self)

    async def download_async(self, request):
        self.asked.append(request.url)
        return SimpleNamespace(status=200, body=self.bodies[request.url])

    def found(self, reader: sitemaps.Sitemaps, host: str) -> None:
        """The robots.txt of a host was parsed. It names one sitemap."""
        robots = SimpleNamespace(rp=SimpleNamespace(sitemaps=["/s.xml"]))
        reader.found(self.crawler, robots, SimpleNamespace(url=f"http://{host}/robots.txt"))


def test_sitemaps_are_parsed_in_a_worker_thread_while_few_bytes_wait(monkeypatch):
    hosts = ("a.example", "b.example")
    downloads = Downloads({f"http://{host}/s.xml": urlset(f"http://{host}/page") for host in hosts})
    threads, go_on = [], threading.Event()

    def slowly(body):
        threads.append(threading.current_thread())
        # On the event loop's thread this would wait for ever.
        assert threads[-1] is threading.main_thread() or go_on.wait(60)
        return read_sitemap(body)

    async def run() -> list[str]:
        given: list[Entry] = []
        reader = sitemaps.Sitemaps(None, False, Causes())
        reader.give = given.extend
        downloads.found(reader, "a.example")
        while not threads:
            await asyncio.sleep(0.001)
        downloads.found(reader, "b.example")
        for _ in range(10):
            await asyncio.sleep(0)
        asked = list(downloads.asked)
        go_on.set()
        while reader.busy:
            await asyncio.sleep(0.001)
        assert [entry.url for entry in given] == [f"http://{host}/page" for host in hosts]
        return asked

    monkeypatch.setattr(sitemaps, "read_sitemap", slowly)
    monkeypatch.setattr(sitemaps, "MOST_UNREAD", 10, raising=False)
    assert asyncio.run(run()) == ["http://a.example/s.xml"]
    assert threading.main_thread() not in threads
    assert len(downloads.asked) == 2


@pytest.mark.slow
def test_a_crawl_reads_the_sitemaps_of_its_sites(tmp_path):
    with Site({"/": html("/linked"), **{f"/{k}": html() for k in ("linked", 1, 2, 3, 4)}}, hosts=2) as site:
        away = site.url("/away", host=2)
        first = f"Sitemap: {site.root}/index.xml\nsitemap: /gone.xml\n"
        site.pages |= {
            ROBOTS: lambda asked: Answer(first if asked.host == "127.0.0.1" else ""),
            "/index.xml": Answer(
                urlset(
                    *(site.url(path) for path in ("/1.xml.gz", "/index.xml", "/html.xml")),
                    tag="sitemap",
                    root="sitemapindex",
                )
            ),
            "/1.xml.gz": Answer(gzip.compress(urlset(site.url("/1"), site.url("/2"), away))),
            "/html.xml": html(),
            "/sitemap.xml": Answer(urlset(site.url("/3"), site.url("/4", host=2))),
        }
        done = crawl(f"{site.root}/", "-o", "c", "--delay", 0, cwd=tmp_path)
        assert {*done.stdout.splitlines()[:-1]} == {
            f"sitemap not fetched: {site.root}/gone.xml",
            f"sitemap not read completely, no sitemap: {site.root}/html.xml",
        }
        pages = pages_of(tmp_path / "c")
        assert {
            path for path in ("/", "/linked", "/1", "/2") if pages[site.root + path].state == "crawled"
        } == {*("/", "/linked", "/1", "/2")}
        assert (pages[site.url("/1")].depth, pages[site.url("/1")].linked_from) == (0, None)
        assert away not in pages
        assert "/sitemap.xml" not in site.paths()
        assert site.counts()["/index.xml"] == 1
        # Where robots.txt names none, /sitemap.xml is asked for on request.
        crawl(site.url("/4", host=2), "-o", "d", "--delay", 0, "--sitemaps", cwd=tmp_path)
        assert set(pages_of(tmp_path / "d")) == {site.url("/4", host=2)}
        before = len(site.asked)
        crawl(f"{site.root}/1", "-o", "e", "--delay", 0, "--no-sitemaps", cwd=tmp_path)
        assert [one.path for one in site.asked[before:]] == [ROBOTS, "/1"]
