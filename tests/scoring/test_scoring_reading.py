import codecs
import gc
import weakref
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from archives import records_of
from inlink.archives.html import TANGLED, html_links
from inlink.archives.warc import decoded, parse_http
from inlink.base.damage import Tally
from inlink.scoring import reading
from inlink.scoring.reading import AROUND, LONG_PAGE, MAX_TEXT, NOT_TEXT, Reading, read_page, robots_words
from inlink.urls.canonical import Base, canonical

URL = "https://example.org/dir/page"


def read(text, **options):
    return read_page(text.encode(), URL, **options)


def seen(text):
    return read("<body>" + text).text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two", "one two"),
        ("<b>J</b>ohn <i> D</i><span>oe</span>", "John Doe"),
        ("a<br>b<dd>c<hr>d", "a b c d"),
        ("a&nbsp;&nbsp;b\n\t c&amp;d", "a b c&d"),
        ("a<!-- no -->b", "ab"),
        ("a<script>no</script>b<style>no</style>c<noscript><p>no</p></noscript>d", "a b c d"),
        ("a<template><p>no</template>b<iframe>no</iframe>c<svg><title>no</title></svg>d", "a b c d"),
        ("a<img alt='a cod'>b<img alt=''>c<img>d", "a a cod b c d"),
        ("<textarea>x <b>y</textarea>", "x <b>y"),
        ("<table>in<tr><td>cell", "in cell"),
        ("", ""),
    ],
)
def test_text_is_what_can_be_seen(html, text):
    assert seen(html) == text


def letters(text):
    return text.replace(" ", "")


fragments = st.sampled_from(
    [
        *(("<p>", " "), ("</p>", " "), ("<div class='x y'>", " "), ("<br/>", " "), ("<li>", " ")),
        *(("<b>", ""), ("</b>", ""), ("<span>", ""), ("</span>", ""), ("<a href=x>", ""), ("</a>", "")),
        *(
            ("cod", "cod"),
            ("ü", "ü"),
            (" ", " "),
            ("\n", " "),
            ("&amp;", "&"),
            ("&nbsp;", " "),
            ("&#x6d77;", "海"),
        ),
        *(("<script>if (a<b) no</script>", " "), ("<!-- no -->", ""), ("<img alt='of it'>", " of it ")),
    ]
)


@given(st.lists(fragments, max_size=40))
def test_text_is_that_of_its_parts(parts):
    expected = " ".join("".join(text for _, text in parts).split())
    found = read("<body>" + "".join(html for html, _ in parts))
    assert found.text == expected
    for link in found.links:
        assert link.text in expected
        if len(expected) <= AROUND:
            assert Counter(letters(link.text) + letters(link.around)) == Counter(letters(expected))


def test_links_with_their_words():
    page = read(
        "<title> A \n page</title><body>before <a href='x'>one <b>link</b></a>, between <a href=/y rel='ugc nofollow'>"
        "<img src=i alt='a picture'></a> after <map><area href=//other.example/z alt=zone></map> <a name=no>no</a>"
        " <a href=mailto:x@y>no</a> <a href='#top'></a>"
    )
    assert page.title == "A page"
    assert [(link.url, link.text, link.nofollow) for link in page.links] == [
        ("https://example.org/dir/x", "one link", False),
        ("https://example.org/y", "a picture", True),
        ("https://other.example/z", "zone", False),
    ]
    assert page.links[1].around == "before one link, between after zone no no"
    assert page.refused == {"link is not http": 1}
    assert page.text == "before one link, between a picture after zone no no"
    assert page.links is page.links


def test_words_around_are_whole_and_not_many():
    page = read("<body>" + "lorem " * 50 + "<a href=x>here</a>" + " ipsum" * 50)
    around = page.links[0].around
    assert set(around.split()) == {"lorem", "ipsum"}
    assert 2 * AROUND - 20 < len(around) <= 2 * AROUND + 1
    assert read("<body>数据库" * 50 + "<a href=x>here</a>").links[0].around  # no word begins there


def test_links_resolve_against_the_base_and_the_url():
    page = "<base href=/other/><base href=/no/><a href=x>"
    assert [link.url for link in read(page).links] == ["https://example.org/other/x"]
    for url in ("", "no url", "data:text/html,x", "file:///x", "https://" + "x" * 5000, "\udcff"):
        found = read_page(page.encode(), url)
        assert (found.links, found.url, found.canonical) == ([], url, None)


@pytest.mark.parametrize(
    ("html", "headers", "expected"),
    [
        ("<link rel=canonical href=/c#x>", (), "https://example.org/c"),
        ("<base href=/b/><link rel='alternate CANONICAL' href=c>", (), "https://example.org/b/c"),
        ("<body><link rel=canonical href=/c>", (), None),
        ("<link rel=canonical href=''><link rel=canonical>", (), None),
        ("<link rel=canonical href=mailto:x>", (), None),
        ("<link rel=canonical href=/c><link rel=canonical href=/c>", (), "https://example.org/c"),
        ("<link rel=canonical href=/c><link rel=canonical href=/d>", (), None),
        ("", '</c>; rel="canonical"', "https://example.org/c"),
        ("", ["<a>; rel=next", "<b> ; title=\"x; y, z\"; Rel=canonical, <c>; rel=prev"], "https://example.org/dir/b"),
        ("<link rel=canonical href=/c>", "<https://example.org/d>; rel=canonical", None),
        ("", "<>; rel=alternate, <; rel=canonical", None),
    ],
)  # fmt: skip
def test_canonical(html, headers, expected):
    assert read(html, link_header=headers).canonical == expected


@pytest.mark.parametrize(
    ("html", "headers", "noindex", "nofollow"),
    [
        ("", (), False, False),
        ("<meta name=' Robots' content='NOINDEX,noarchive'>", (), True, False),
        ("<meta name=inlink content='nofollow'><meta name=robots content=noindex>", (), True, True),
        ("<meta name=otherbot content=none><meta name=description content=none>", (), False, False),
        ("<meta name=robots><meta name=robots content='none, noarchive'>", (), True, True),
        ("", "noindex", True, False),
        ("", ["max-snippet: 3, nofollow", "otherbot: noindex"], False, True),
        ("", "inlink: noindex, nofollow", True, True),
        ("", "unavailable_after: 25 Jun 2010 15:00:00 PST, none", True, True),
    ],
)
def test_the_robots_directives_of_a_page_are_read(html, headers, noindex, nofollow):
    page = read(html, robots_header=headers)
    assert (page.noindex, page.nofollow) == (noindex, nofollow)
    assert read(html, robots_header=headers, content_type="image/png").noindex is bool(headers and noindex)


def test_kinds_of_documents():
    html = "<p>x <a href=y>z</a>"
    for kind in (None, "", "text/html; charset=utf-8", "TEXT/HTML", "application/xhtml+xml"):
        assert len(read(html, content_type=kind).links) == 1
    plain = read("a  <b>\nc", content_type="text/plain")
    assert (plain.text, plain.links, plain.title) == ("a <b> c", [], "")
    for kind in ("application/pdf", "image/png", "application/json", "nonsense"):
        assert read(html, content_type=kind) == Reading(URL, problem=NOT_TEXT)
        assert read(html, content_type=kind).text == ""
    for kind in (None, "text/plain"):
        assert read_page(b"GIF\0\1\2", URL, content_type=kind).text == ""
        assert read_page(codecs.BOM_UTF16_LE + "ab".encode("utf-16-le"), URL, content_type=kind).text == "ab"


@pytest.mark.parametrize(
    ("body", "options", "text"),
    [
        ("ü".encode("latin-1"), {"content_type": "text/html; charset=ISO-8859-1"}, "ü"),
        ("жа".encode("koi8-r"), {"content_type": "text/html; charset=utf-8", "charset": "koi8-r"}, "жа"),
        (b"<meta charset=shift_jis>" + "日本".encode("shift_jis"), {}, "日本"),
        ("ü".encode(), {"content_type": "text/html; charset=no-such-thing"}, "ü"),
        (b"\xff\xff", {"charset": "utf-8"}, "\ufffd\ufffd"),
        ("жа".encode("cp1251"), {"content_type": 'text/plain; Charset="windows-1251"'}, "жа"),
    ],
)
def test_encodings(body, options, text):
    assert read_page(body, URL, **options).text == text


markup = st.sampled_from(
    [
        "<a href=x>",
        "<a href='y' rel=nofollow>",
        "</a>",
        "<p>",
        "</p>",
        "<b>",
        "<div>",
        "</div>",
        "text",
        "&amp;",
    ]
    + ["<area href=r alt=s>", "<ul><li>", "<table><tr><td>", "</table>", "<br/>", "<img src=i alt=u>", "<a>"]
    + ["<base href=/b/>", "<svg>", "</svg>", "<a xlink:href=z>", "<frameset>", "<template>", "</template>"]
    + ["<select>", "<option>", "<textarea>", "<math>", "<plaintext>", "<head>", "<body>", "<noscript>"]
    + ["<meta name=robots content=none>", "<title>t</title>"]
)


def everything(page):
    """All that there is to ask."""
    assert len(page.text) <= MAX_TEXT
    assert page.text == " ".join(page.text.split())
    for link in page.links:
        assert canonical(link.url) == link.url
        assert link.text in page.text
        assert len(link.around) <= 2 * AROUND + 1
    return [link.url for link in page.links]


@example("<svg><a xlink:href=x><base xlink:href=/b/></svg><a href=y>")
@given(st.lists(markup, max_size=30).map("".join))
def test_links_are_those_of_the_archive(text):
    found = html_links(text.encode())
    expected = Base(URL, found.base).canonical_links(found.links, {})
    assert everything(read(text)) == expected


@given(
    st.binary(max_size=200),
    st.sampled_from([None, "text/html", "text/plain", "text/html; charset=utf-16", "image/png"]),
    st.sampled_from([None, "utf-8", "gb18030", "x\0"]),
    st.text(max_size=30),
    st.text(max_size=30),
)
def test_any_bytes_are_some_page(raw, kind, charset, header, url):
    page = (
        b"<title>t</title><a href=first>x"
        + raw
        + b"</a><link rel=canonical href="
        + raw
        + b"><a href='last'>"
    )
    options = {
        "content_type": kind,
        "charset": charset,
        "robots_header": header,
        "link_header": f"<{header}>;rel=canonical",
    }
    everything(read_page(page, URL, **options))
    everything(read_page(raw, url, **options))
    assert read_page(raw, URL, link_header=header, robots_header=[header, header]).url == URL
    assert isinstance(robots_words(header), set)


def test_nothing_is_looked_for_that_is_not_asked_for(monkeypatch):
    page, walks = read("<p>text <a href=x>y</a>"), []
    monkeypatch.setattr("inlink.scoring.reading._walk", lambda *_: walks.append(1) or ("y", {0: (0, 1)}))
    assert [link.url for link in page.links] == ["https://example.org/dir/x"]
    assert not walks
    assert page.links[0].text == page.text == "y"
    assert walks == [1]


def test_a_page_goes_with_its_last_reference():
    gc.disable()
    try:
        page = read("<p>text <a href=x>y</a>")
        assert page.links[0].text == "y"
        words = weakref.ref(page._links.words)
        assert words() is not None
        del page
        assert words() is None
    finally:
        gc.enable()


@pytest.mark.slow
def test_a_tangled_page_says_so():
    page = read("<title>t</title>" + "<div>" * 200_000 + "<a href=x>", robots_header="noindex")
    assert (page.problem, page.links, page.text, page.noindex) == (TANGLED, [], "", True)
    deep = read("<div>" * 20_000 + "<a href=x>deep <b>link</b></a>" + "</div>" * 20_000)
    assert (deep.problem, deep.links[0].text) == (None, "deep link")


def test_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr(reading, "MAX_PAGE", 2000)
    monkeypatch.setattr(reading, "MAX_TEXT", 500)
    page = read("<body>" + "<a href=x>link</a> " * 200)
    assert page.problem == LONG_PAGE
    assert 90 < len(page.links) < 110
    assert len(page.text) == 500
    assert [link.text for link in page.links[:3]] == ["link"] * 3
    assert page.links[-1].text == page.links[-1].around == ""
    assert len(read("word " * 300, content_type="text/plain").text) == 500
    assert len(read(f"<title>{'t ' * 5000}</title>").title) <= 1000
    cut = read("<body><a href=x>" + "y " * 400 + "</a>").links[0].text
    assert cut == ("y " * 250).strip()


@pytest.mark.parametrize(("name", "least_pages", "least_links"), [
    ("web.warc.gz", 70, 1000),
    pytest.param("crawls/aut-example.warc.gz", 94, 37_000, marks=pytest.mark.slow),
])  # fmt: skip
def test_pages_of_an_archive(data, name, least_pages, least_links):
    links = pages = 0
    for record in records_of(data(name), Tally()):
        http = parse_http(record.body) if record.kind == "response" else None
        if http is None or not http.fields.get(b"content-type", [b""])[0].startswith(b"text/html"):
            continue
        document, _ = decoded(http)
        url = record.url.decode()
        page = read_page(document, url, content_type="text/html")
        found = html_links(document)
        assert everything(page) == Base(canonical(url), found.base).canonical_links(found.links, {})
        assert page.problem is None
        pages += 1
        links += len(page.links)
    assert pages >= least_pages
    assert links >= least_links


PAGE_WITH_PLACES = b"""<html lang="en-GB"><head><title>T</title>
<link rel="alternate" hreflang="de" href="/de"><link rel=alternate type=rss href=/feed>
<link rel=canonical href=/one><link rel=canonical href=/two></head><body>
<nav><a href=/nav>1</a></nav> <div class="siteHeader x"><a href=/header>2</a></div>
<div role=main><header><a href=/of-article>3</a></header><h1>First <b>heading</b></h1><h1>Second</h1>
<section><footer><a href=/of-section>4</a> <a href=/step rel="next nofollow">5</a></footer></section>
<aside><a href=/aside>5</a></aside></div>
<ul id=main-menu><li><a href=/menu>6</a></ul> <a href=/body>7</a> <div class=headers><a href=/no-header>8</a></div>
<img src="HTTP://x.org/a.png"><img src="https://x.org/b.png"><footer><a href=/footer>9</a></footer>"""


def test_places_of_links() -> None:
    page = read_page(PAGE_WITH_PLACES, "https://e.org/")
    assert {link.url.rsplit("/", 1)[1]: link.place for link in page.links} == {
        "nav": "nav",
        "header": "header",
        # The header of an article, and the footer of a section, are parts of the content.
        "of-article": "main",
        "of-section": "main",
        "step": "nav",
        "aside": "aside",
        "menu": "nav",
        "body": "body",
        "no-header": "body",
        "footer": "footer",
    }


def test_facts_of_a_page() -> None:
    facts = read_page(PAGE_WITH_PLACES, "https://e.org/", robots_header="NOARCHIVE").facts
    assert (facts.title, facts.heading, facts.headings) == ("T", "First heading", 2)
    assert (facts.language, facts.robots, facts.size) == ("en-GB", "noarchive", len(PAGE_WITH_PLACES))
    assert facts.alternates == [("de", "https://e.org/de")]
    assert facts.canonicals == ["https://e.org/one", "https://e.org/two"]
    assert facts.insecure == ["HTTP://x.org/a.png"]
    assert read_page(PAGE_WITH_PLACES, "http://e.org/").facts.insecure == []
