"""Sites that mean harm, or are only broken: each page has an outcome, and nobody sees a traceback."""

import gzip
from pathlib import Path

import pytest

pytest.importorskip("scrapy")

from crawlcommand import Done, crawl
from inlink.crawl.folder import look
from inlink.scrapy.spider import MOST_LINKS
from sites import Answer, Says, Site, html

pytestmark = pytest.mark.slow

LONG = "x" * 1_000_000


def raw(head: bytes, body: bytes = b"<a href=/ok>ok</a>") -> Answer:
    """An answer byte by byte; ``head`` is without the status line and the empty line."""
    length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    return Answer(raw=b"HTTP/1.1 200 OK\r\n" + head + length + body)


def typed(content_type: bytes, body: bytes = b"<a href=/ok>ok</a> \xff\xfe \xed\xa0\x80") -> Answer:
    return raw(b"Content-Type: " + content_type + b"\r\n", body)


def redirect(location: bytes) -> Answer:
    return Answer(raw=b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")


CHARSETS = [
    b"utf-7", b"utf-16", b"utf-32", b"idna", b"punycode", b"base64", b"zip", b"hex", b"rot13", b"unicode_escape",
    b"raw_unicode_escape", b"undefined", b"mbcs", b"oem", b"\x00", b"\xff\xfe", b"'utf-8", b'"', b"x" * 60_000,
    b"utf-8\x00", b"none", b"../../etc/passwd", b"quopri", b"uu", b"bz2", b"string-escape", b"cp65001", b"iso-2022-kr",
]  # fmt: skip

PAGES: dict[str, Says] = {
    "/ok": html(),
    **{f"/charset-{k}": typed(b"text/html; charset=" + name) for k, name in enumerate(CHARSETS)},
    **{
        f"/meta-{k}": typed(b"text/html", b"<meta charset='" + name + b"'><a href=/ok>\xe9\x00</a>")
        for k, name in enumerate(CHARSETS)
    },
    "/nul-header": raw(b"X-A: a\x00b\r\nX-\x00: c\r\n\x00\r\n"),
    "/nul-type": typed(b"text/\x00html"),
    "/nul-robots": raw(b"X-Robots-Tag: no\x00index, \xff\xfe\r\nContent-Type: text/html\r\n"),
    "/nul-link": raw(b'Link: </\x00c>; rel="canonical\x00"\r\nContent-Type: text/html\r\n'),
    "/long-link": raw(b"Link: <" + b"/y" * 7000 + b'>; rel="canonical"\r\nContent-Type: text/html\r\n'),
    "/many-headers": raw(b"".join(b"X-%d: y\r\n" % k for k in range(500))),
    "/no-colon": raw(b"nonsense\r\n : \r\n:\r\n"),
    "/long-header": raw(b"X: " + b"y" * 70_000 + b"\r\n"),
    "/fold": raw(b" folded\r\n\tagain\r\n"),
    "/bytes-in-headers": raw("X-Ünïcode: ж\r\n".encode() + b"X: \xff\xfe\r\n"),
    "/retry-1": Answer("", 503, {"Retry-After": "9" * 400}),
    "/status-0": Answer(raw=b"HTTP/1.1 000 \r\nContent-Length: 0\r\n\r\n"),
    "/status-99999": Answer(raw=b"HTTP/1.1 99999 Odd\r\nContent-Length: 0\r\n\r\n"),
    "/status-text": Answer(raw=b"HTTP/1.1 abc\r\n\r\n"),
    "/no-http": Answer(raw=b"\x00\x01\x02\x03\r\n\r\n"),
    "/length-negative": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
    "/length-huge": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 60 + b"\r\n\r\n"),
    "/length-twice": Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\nabc"),
    "/chunks": Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n"),
    "/chunk-huge": Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\nabc\r\n"),
    "/packed-not": Answer(b"not packed", headers={"Content-Encoding": "gzip"}),
    "/packed-br": Answer(b"\x00\xff" * 100, headers={"Content-Encoding": "br"}),
    "/packed-odd": Answer(b"x", headers={"Content-Encoding": "gzip, \x01, gzip, deflate"}),
    "/bomb": lambda _: Answer(gzip.compress(b"<p>" * 20_000_000), headers={"Content-Encoding": "gzip"}),
    "/to-nul": redirect(b"/\x00/a"),
    "/to-bytes": redirect(b"/\xff\xfe\xed\xa0\x80"),
    "/to-long": redirect(b"/" + b"z" * 15_000),
    "/to-host": redirect(b"http://" + b"h" * 10_000 + b".example/"),
    "/to-nothing": redirect(b""),
    "/to-port": redirect(b"http://127.0.0.1:99999/"),
    "/to-brackets": redirect(b"http://[::1/"),
    "/to-space": redirect(b"   \t  "),
    "/refresh": Answer('<meta http-equiv=refresh content="0;url=http://[::bad/">'),
    "/refresh-nul": Answer(b'<meta http-equiv=refresh content="0;url=/\x00\xff">'),
    "/hosts": html(*(f"http://{'a' * size}.example/" for size in (63, 64, 253, 254, 10_000))),
    "/labels": html("http://" + "a." * 5000 + "example/", "http://a..b/", "http://.../", "http://-/", "http://%/"),
    "/long-url": html("/" + LONG, f"/?{LONG}", f"#{LONG}", f"http://{LONG}/", f"data:,{LONG}", f"javascript:{LONG}"),
    "/odd-urls": html("http://", "http:///", "//", "http:ok", "\x00", "http://\x00/", "http://a\x00b/"),
    "/odd-paths": html("%ff", "/%zz", "?", "\\", "/./../..", ";", "/%00", "/\x7f"),
    "/bytes-urls": b'<a href="/\xff\xfe"></a><a href="http://\xff.example/"></a><a href="/\xed\xa0\x80">x</a>',
    "/base": b'<base href="http://[::bad/"><a href=ok>x</a><base href="javascript:1">',
    "/base-long": f'<base href="/{LONG}"><a href="ok">x</a>',
    "/canonical": f'<link rel=canonical href="http://{LONG}/">',
    "/canonical-nul": b'<link rel=canonical href="http://\x00\xff/">',
    "/deep": "<div>" * 200_000,
    "/attributes": "<a " + " ".join(f"b{k}=c" for k in range(100_000)) + " href=/ok>x</a>",
    "/nul": b"\x00" * 1_000_000,
    "/title": f"<title>{LONG}</title>",
}  # fmt: skip


def run(*given: object, cwd: Path) -> Done:
    return crawl(*given, "--delay", "0", "--everywhere", "-v", cwd=cwd, quiet=False)


def test_every_hostile_page_has_an_outcome_and_nobody_sees_a_traceback(tmp_path):
    with Site(PAGES, hosts=len(PAGES)) as site:
        # Each is on a host of its own, because failures tell against a host.
        urls = {path: site.url(path, host) for host, path in enumerate(PAGES, 1)}
        site.pages["/"] = html(*urls.values())
        settings = ("--set", "max_retries=0", "--set", "politeness.park_after=1000")
        files = ("--items", "i.jsonl", "--warc", "w.warc.gz", "--topic", "ok é")
        done = run(f"{site.root}/", "-o", "c", *settings, *files, cwd=tmp_path)
        asked = site.counts()
    assert "Traceback" not in done.stderr, done.stderr[done.stderr.index("Traceback") - 1500 :][:4000]
    assert "critical" not in done.stderr
    assert "crawl: info: Spider closed (finished)" in done.stderr
    pages = look(tmp_path / "c").pages
    states = {pages.url(page): pages.page(page).state for page in range(pages.num_pages)}
    assert states[urls["/ok"]] == "crawled"
    assert {path for path, url in urls.items() if states[url] in ("discovered", "leased")} == set()
    assert {path for path in PAGES if asked[path] != 1} <= {"/ok", "/to-nothing", "/to-space", "/odd-paths"}
    assert max(map(len, states)) < 3000


def test_a_hundred_and_fifty_thousand_links_are_bounded_and_told(tmp_path):
    """The page counts, and so do its first links. That there were more is said once, in one line."""
    text = "".join(f'<a href="/{k:x}">' for k in range(150_000))
    with Site({"/": text, "/0": text}) as site:
        done = run(f"{site.root}/", f"{site.root}/0", "-o", "c", "--pages", 2, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    pages = look(tmp_path / "c").pages
    assert pages.num_pages in (MOST_LINKS + 1, MOST_LINKS + 2)
    assert pages.page(0).state == pages.page(1).state == "crawled"
    (said,) = [line for line in done.stderr.splitlines() if "has 150,000 links" in line]
    assert said.endswith("only the first 100,000 are followed; further pages like this are not reported")
