"""Presets: a wiki's articles and their links, as data."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scrapy")

from inlink.errors import InputError, ParameterError
from inlink.scoring.reading import read_page
from inlink.scrapy.preset import Article, Preset, load, names

WIKIPEDIA = load("wikipedia")
HERE = "https://en.wikipedia.org/wiki/Kolmogorov_complexity"


def read(html: str, preset: Preset = WIKIPEDIA, **more: str) -> list[tuple[str, str]]:
    return [(one.url, one.title) for one in preset.articles(read_page(html.encode(), HERE, **more))]


def content(html: str) -> str:
    return f'<div class="mw-body"><div class="mw-parser-output">{html}</div></div>'


def test_wikipedia_is_there_by_name():
    assert names() == ["wikipedia"]
    assert WIKIPEDIA.base == "https://en.wikipedia.org/wiki/"
    assert WIKIPEDIA.content == ".mw-parser-output"
    assert WIKIPEDIA.namespaces == (
        *("Help", "Special", "Wikipedia", "Portal", "Talk", "Category", "Book", "Template", "Template_talk"),
    )


def test_a_link_counts_in_the_content_below_wiki_and_without_a_class():
    page = (
        '<a href="/wiki/Menu">menu</a>'
        + content(
            '<a href="/wiki/Entropy" title="Entropy (information theory)">entropy</a>'
            '<a href="/wiki/New" class="new">red</a>'
            '<a href="/wiki/Empty_class" class="">e</a>'
            '<a href="/w/index.php?title=X">edit</a>'
            '<a href="https://example.org/wiki/Away">away</a>'
            '<a href="//de.wikipedia.org/wiki/Komplexit">away</a>'
            '<a href="wiki/Relative">no</a><a name="x">no link</a>'
            '<a href="/wiki/Not_followed" rel="nofollow">no</a>'
            '<a href="/wiki/">nothing</a>'
        )
        + '<a href="/wiki/Footer">footer</a>'
    )
    assert read(page) == [
        ("https://en.wikipedia.org/wiki/Entropy", "Entropy (information theory)"),
        ("https://en.wikipedia.org/wiki/Empty_class", "Empty class"),
    ]


def test_each_link_is_given_and_a_node_of_nested_parts_once():
    page = content(
        '<a href="/wiki/A#History" title="A">1</a><a href="/wiki/A" title="Other">2</a><a href="#top">3</a>'
        '<div class="mw-parser-output"><a href="/wiki/B">nested</a></div>'
    )
    assert [(url[-1], title) for url, title in read(page)] == [("A", "A"), ("A", "Other"), ("B", "B")]


@pytest.mark.parametrize(
    "space", [*WIKIPEDIA.namespaces, "help", "TEMPLATE TALK", "Template%5Ftalk", "_Special_"]
)
def test_namespaces_are_left_out(space):
    colon = "%3A" if space == "help" else ":"
    assert read(content(f'<a href="/wiki/{space}{colon}Something">x</a>')) == []


def test_a_colon_alone_makes_no_namespace():
    page = content(
        '<a href="/wiki/2001:_A_Space_Odyssey">x</a><a href="/wiki/User_talk:X">y</a><a href="/wiki/C:Help:">z</a>'
    )
    assert [url.rpartition("/")[2] for url, _ in read(page)] == [
        "2001:_A_Space_Odyssey",
        "User_talk:X",
        "C:Help:",
    ]


def test_titles_come_from_the_url_where_the_link_has_none():
    assert read(content('<a href="/wiki/Erd%C5%91s_number?x=1">x</a>')) == [
        ("https://en.wikipedia.org/wiki/Erd%C5%91s_number?x=1", "Erdős number")
    ]


@pytest.mark.slow
def test_pages_without_html_or_built_to_choke_have_no_articles():
    page = content('<a href="/wiki/A">a</a>')
    assert read(page, content_type="text/html; charset=latin-1")
    assert read(page, content_type="text/plain") == []
    assert read("<b>" * 100_000 + page) == []


@pytest.mark.slow
@given(st.text(min_size=1, max_size=80))
def test_a_title_leads_to_an_article_or_is_refused(title):
    try:
        url = WIKIPEDIA.start(title)
    except ParameterError:
        return
    assert WIKIPEDIA.is_article(url)
    assert url.isascii()
    assert "#" not in url
    assert WIKIPEDIA.start(url) == url


@pytest.mark.parametrize(
    ("title", "end"),
    [
        ("Kolmogorov_complexity", "Kolmogorov_complexity"),
        ("Kolmogorov complexity", "Kolmogorov_complexity"),
        ("Erdős number", "Erd%C5%91s_number"),
        ("Erd%C5%91s_number", "Erd%C5%91s_number"),
        ("What? #1", "What%3F_%231"),
        ("100% wool", "100%25_wool"),
        ("https://en.wikipedia.org/wiki/Entropy#x", "Entropy"),
    ],
)
def test_start(title, end):
    assert WIKIPEDIA.start(title) == f"https://en.wikipedia.org/wiki/{end}"


@pytest.mark.parametrize("title", ["Help:Contents", "https://example.org/wiki/A", "", "  "])
def test_a_crawl_cannot_begin_at_a_page_that_is_no_article(title):
    with pytest.raises(ParameterError, match=r"is not an article below https://en\.wikipedia\.org/wiki/"):
        WIKIPEDIA.start(title)


def test_a_preset_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'base = "http://Wiki.example.org/page/"\ncontent = "main"\nlinks = "a.in"\ntitle = "data-t"\n'
        'namespaces = ["Datei"]\ndelay = 3\n'
    )
    preset = load(str(path))
    assert preset.base == "http://wiki.example.org/page/"
    assert preset.delay == 3
    page = (
        b'<main><a class=in href="B" data-t="Bee">b</a><a class=in href="Datei:x">c</a><a href="D">d</a></main>'
        b'<a class=in href="E">e</a>'
    )
    assert preset.articles(read_page(page, "http://wiki.example.org/page/A")) == [
        Article("http://wiki.example.org/page/B", "Bee")
    ]


def test_a_page_with_a_base_of_its_own():
    page = '<head><base href="https://en.wikipedia.org/other/"></head>' + content('<a href="/wiki/A">a</a>')
    assert read(page) == [("https://en.wikipedia.org/wiki/A", "A")]
    preset = Preset("https://en.wikipedia.org/other/", content="body", links="a")
    assert read(page.replace("/wiki/A", "B"), preset) == [("https://en.wikipedia.org/other/B", "B")]


GOOD = 'base = "http://a.example/wiki/"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base = ", "is not a preset: "),
        ("\0", "is not a preset: "),
        (b"\xff\xfe", "is not a preset: "),
        ("", "missing required field `base`"),
        (GOOD + "colour = 1\n", "unknown field `colour`"),
        (GOOD + "content = 1\n", "Expected `str`, got `int` - at `$.content`"),
        (GOOD + 'namespaces = "Help"\n', "Expected `array`, got `str`"),
        (GOOD + 'namespaces = ["Help:"]\n', "'Help:' is not a namespace"),
        (GOOD + 'content = "div["\n', "content = 'div[' is not a CSS selector"),
        (GOOD + 'links = ""\n', "links = '' is not a CSS selector"),
        (GOOD + "delay = -1\n", "delay must be a number of seconds in [0, 1e9]; got -1.0"),
        (GOOD + "delay = nan\n", "delay must be a number of seconds in [0, 1e9]; got nan"),
        ('base = "http://a.example/wiki"\n', "is not an http URL that ends with a slash"),
        ('base = "ftp://a.example/"\n', "is not an http URL that ends with a slash"),
        ('base = "http://a.example/?q=/"\n', "is not an http URL that ends with a slash"),
        ("#" * 70_000, "larger than 65,536 bytes"),
        ("a = " + "[" * 5000, "is not a preset: "),
    ],
)
def test_a_preset_that_is_none(tmp_path, text, said):
    path = tmp_path / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        load(str(path))
    assert str(path) in str(caught.value)


def test_a_preset_that_is_not_there(tmp_path):
    with pytest.raises(
        ParameterError, match="no preset has the name 'wikipaedia': choose wikipedia, or give a file"
    ):
        load("wikipaedia")
    with pytest.raises(InputError, match="cannot be read"):
        load(str(tmp_path / "none.toml"))
    with pytest.raises(ParameterError):
        load("../presets/wikipedia")
