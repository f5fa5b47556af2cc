import codecs
import time
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archives import records_of
from inlink.archives.html import MAX_DOCUMENT, decode_html, html_links, no_follow
from inlink.archives.warc import decoded, parse_http
from inlink.base.damage import Tally
from inlink.urls.canonical import canonical


def hrefs(text, **options):
    return html_links(text.encode(), **options).links


class Anchors(HTMLParser):
    """The twin: Python's own tokenizer, which builds no tree."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        href = dict(reversed(attrs)).get("href")  # of two attributes of one name, the first counts
        if tag in ("a", "area") and "href" in dict(attrs):
            self.found.append((tag, href or ""))


def test_anchors_as_they_stand():
    page = """<html><head><base target=x><base href="/dir/"><base href="/no/"></head><body>
    <a href=" /a?x=1&amp;y=2&copy=3#top ">1</a> <A HREF='b'>2</A> <a name=x>3</a> <a href>4</a> <a href="">5</a>
    <area href="c"> <a href="a">6</a><a href="a">7</a> <!-- <a href="no"> --> <script>"<a href='no'>"</script>
    <textarea><a href="no"></textarea> <svg><a href="d" xlink:href="no"/></svg> <link href="no"> <img src="no">
    <a class='x'href=e>8</a> <noscript><a href="f">9</a></noscript> <a href="javascript:void(0)">10</a>"""
    found = html_links(page.encode())
    assert found.base == "/dir/"
    assert found.links == [
        " /a?x=1&y=2&copy=3#top ",
        "b",
        "",
        "",
        "c",
        "a",
        "a",
        "d",
        "e",
        "f",
        "javascript:void(0)",
    ]
    assert html_links(b"").links == []
    assert html_links(b"no markup at all").base is None


def test_all_links_are_those_of_common_crawls_extractor():
    page = """<head><link rel=stylesheet href=l><link rel=canonical href=c><script src=s></script>
    <meta property="og:image" content="og"><meta name=thumbnail content=t><meta name=x content="//abs.org/">
    <meta name=description content="nothing"><style>@import "//i.org/1"; a{background:url('http://u.org/2')} b{
    background:url(relative.png)}</style></head><body background=bg><a href=a>x</a><area href=ar>
    <img src=im longdesc=ld srcset=no><form action=f><input src=in formaction=fa><button formaction=bu></button></form>
    <iframe src=if></iframe><embed src=em><object data=od codebase=oc></object><video src=v poster=p><source src=so>
    <track src=tr></video><audio src=au></audio><q cite=q>x</q><blockquote cite=bq></blockquote><del cite=de></del>
    <ins cite=is></ins><div data-href=dh data-uri=du onclick="location.href='/click'"></div>
    <div onclick="window.open('/opened','x')"></div><div onclick="compute()"></div><table background=tb></table>"""
    expected = "l c s og t //abs.org/ //i.org/1 http://u.org/2 bg a ar im ld f in fa bu if em od oc v p so tr au q bq"
    assert sorted(hrefs(page, links="all")) == sorted(
        [*expected.split(), "de", "is", "dh", "du", "/click", "/opened", "tb"]
    )
    assert sorted(hrefs("<frameset><frame src=fr></frameset>", links="all")) == ["fr"]
    assert hrefs(page) == ["a", "ar"]


def test_nofollow_is_kept_unless_told():
    page = '<a href=1 rel="ugc NoFollow">x</a><area href=2 rel=nofollow><a href=3 rel=noopener>x</a><a href=4>x</a>'
    assert hrefs(page) == ["1", "2", "3", "4"]
    assert hrefs(page, nofollow=False) == ["3", "4"]
    assert hrefs(page + "<img src=5>", nofollow=False, links="all") == ["3", "4", "5"]
    for content, kept in (("noindex, NOFOLLOW", 0), ("none", 0), ("index,follow", 2), ("noarchive", 2)):
        robots = f'<meta name=" Robots " content="{content}">'
        assert len(hrefs(robots + page, nofollow=False)) == kept
        assert len(hrefs(robots + page)) == 4
    assert not no_follow(None)


@pytest.mark.parametrize(
    ("document", "charset", "text"),
    [
        ("ü".encode(), None, "ü"),
        ("ü".encode("latin-1"), None, "ü"),
        ("ü€".encode("cp1252"), "ISO-8859-1", "ü€"),
        ("жа".encode("koi8-r"), "koi8-r", "жа"),
        (codecs.BOM_UTF8 + "ü".encode(), "koi8-r", "ü"),
        (codecs.BOM_UTF16_LE + "ü".encode("utf-16-le"), None, "ü"),
        (codecs.BOM_UTF16_BE + "ü".encode("utf-16-be"), "utf-8", "ü"),
        (b'<meta charset="euc-jp">' + "日本".encode("euc-jp"), None, '<meta charset="euc-jp">日本'),
        ("ü".encode(), "utf-7", "ü"),
        ("ü".encode(), "zlib", "ü"),
        ("ü".encode(), "no such thing\0", "ü"),
        (b"\xff\xfe\xfd"[1:], "utf-8", "\ufffd\ufffd"),
        (b'<meta charset="utf-16">' + "ü".encode(), None, '<meta charset="utf-16">ü'),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">\xe6', None, ...),
    ],
)
def test_encodings(document, charset, text):
    found = decode_html(document, charset)
    if text is ...:
        assert found.endswith("ж")
    else:
        assert found == text


@pytest.mark.slow
@given(st.binary(max_size=200), st.sampled_from([None, "utf-8", "utf-16", "gb2312", "shift_jis", "x"]))
def test_any_bytes_are_some_document(raw, charset):
    for links in ("a", "all"):
        found = html_links(b"<a href=first>" + raw + b"<a href='last'>", links=links, charset=charset)
        assert found is not None
        assert all(isinstance(link, str) for link in found.links)
        for link in found.links:
            canonical(link, "http://example.com/")


markup = st.sampled_from(
    [
        "<a href=x>",
        "<a href='y' href=z>",
        "</a>",
        "<p>",
        "</p>",
        "<b>",
        "<div class=q>",
        "</div>",
        "text",
        "&amp;",
        "<a>",
    ]
    + [
        "<area href=r>",
        "<ul><li>",
        "<table><tr><td>",
        "</table>",
        "<A HREF = w >",
        '<a href="a\'b">',
        "<br/>",
        "<img src=i>",
    ]
)


@given(st.lists(markup, max_size=30).map("".join))
def test_links_are_those_of_a_tokenizer(text):
    twin = Anchors()
    twin.feed(text)
    found = hrefs(text)
    assert set(found) == {href for _, href in twin.found}
    assert len(found) >= len(twin.found)  # the tree repeats an <a> that is open where a block begins


@pytest.mark.slow
def test_many_links():
    """A quadratic reader would not end."""
    parts = b"".join(b"<a href=/%d>x</a>" % i for i in range(200_000))
    found = html_links(b"<body>" + parts)
    assert len(found.links) == 200_000
    assert found.links[-1] == "/199999"


@pytest.mark.parametrize(
    "document",
    [
        "<div>" * 200_000 + "<a href=x>",
        "<div></x>" * 100_000,
        "<a " + " ".join(f'x{i}=">{i}"' for i in range(50_000)) + " href=x>",
        "<a " + " ".join(f"x{i}" for i in range(50_000)) + ">",
        "<p>" + "".join(f"<b id={i}>" for i in range(9000)) + "<p>x" * 9000,
    ],
    ids=["deep", "deep in disguise", "attributes", "bare attributes", "formatting"],
)
def test_documents_that_would_choke_the_parser_are_refused(document):
    """Deep nesting alone took lexbor 92 s, and formatting tags 360 MB for every 14 kB."""
    began = time.process_time()
    assert html_links(document.encode()) is None
    assert time.process_time() - began < 5


@pytest.mark.slow
def test_ordinary_large_documents_are_not_refused():
    rows = "<tr><td><div><span><b>x</b><font color=red>y</font><a href=x>z</a></span></div><td><p>t<br><img src=i>"
    assert len(hrefs("<table>" + rows * 20_000)) == 20_000
    unclosed = "<p><font size=2>text <a href=x>y</a>" * 1000
    assert len(hrefs(unclosed)) == 1000
    assert len(html_links(b"<a href=x>" + b" " * (MAX_DOCUMENT + 100) + b"<a href=y>").links) == 1


@pytest.mark.slow
def test_real_pages_against_the_tokenizer(data):
    """94 pages of status 200 hold 37,826 a@href, which are 20,072 distinct arcs by urljoin and urldefrag."""
    pages = anchors = 0
    ours, twins, arcs = set(), set(), set()
    for record in records_of(data("crawls/aut-example.warc.gz"), Tally()):
        http = parse_http(record.body) if record.kind == "response" else None
        if (
            http is None
            or http.status != b"200"
            or not http.fields[b"content-type"][0].startswith(b"text/html")
        ):
            continue
        document, problem = decoded(http)
        assert problem is None
        pages += 1
        url = record.url.decode()
        found = html_links(document)
        anchors += len(found.links)
        twin = Anchors()
        twin.feed(decode_html(document))
        ours |= {(url, canonical(link, url)) for link in found.links}
        twins |= {(url, canonical(link, url)) for _, link in twin.found}
        arcs |= {(url, urldefrag(urljoin(url, link.strip()))[0]) for link in found.links}
    assert pages == 94
    assert anchors == 37_826
    assert len({arc for arc in arcs if arc[1].startswith("http")}) == 20_072
    assert len({arc for arc in ours if arc[1]}) == 20_067  # five of them are one in canonical form
    assert ours == twins
