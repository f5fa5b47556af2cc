"""The sites that ``inlink crawl`` stays on."""

import re
from pathlib import Path

import pytest

pytest.importorskip("scrapy")

import inlink
from crawlcommand import crawl
from inlink.errors import ParameterError
from inlink.frontier.rules import Rules
from inlink.scrapy.options import CrawlOptions, beginnings, limits, settings_of, sites_of
from sites import Site, html


def test_the_sites_of_urls():
    urls = [
        *(
            "http://docs.example.co.uk/",
            "http://www.example.co.uk/",
            "http://127.0.0.1:80/",
            "http://intranet/",
        ),
        *("mailto:x", "https://a.b.example.org/", "https://someone.github.io/", "http://[::1]:8080/x"),
    ]
    assert {*sites_of(urls).values()} == {
        *("127.0.0.1", "example.co.uk", "example.org", "intranet", "someone.github.io", "[::1]")
    }
    assert Rules(domains=tuple(sites_of(urls))).verdict("http://[::1]:8080/y") is None


URLS = ["https://www.a.example.org/", "http://b.example/"]


@pytest.mark.parametrize(
    ("scope", "given", "kept", "expected"),
    [
        (None, {}, None, {"hosts": None, "domains": ("example.org", "b.example")}),
        ("host", {}, None, {"hosts": ("www.a.example.org", "b.example"), "domains": None}),
        ("everywhere", {}, None, {"hosts": None, "domains": None}),
        (
            None,
            {"domains": ("c.example",)},
            None,
            {"hosts": ("www.a.example.org", "b.example"), "domains": ("c.example",)},
        ),
        # A crawl that exists keeps its kind of limit, and gets the new sites.
        (None, {}, Rules(domains=["c.example"]), {"domains": ("c.example", "example.org", "b.example")}),
        (None, {}, Rules(hosts=["c.example"]), {"hosts": ("c.example", "www.a.example.org", "b.example")}),
        (None, {}, Rules(), {}),
        ("everywhere", {}, Rules(domains=["c.example"]), {"hosts": None, "domains": None}),
        ("domain", {}, Rules(), {"hosts": None, "domains": ("example.org", "b.example")}),
    ],
)
def test_the_limits_of_a_crawl(scope, given, kept, expected):
    assert limits(scope, URLS, given, kept) == expected


def test_limits_that_contradict_each_other_or_say_nothing():
    with pytest.raises(ParameterError, match=r"--everywhere cannot be combined with rules\.domains"):
        limits("everywhere", URLS, {"domains": ("c.example",)}, None)
    with pytest.raises(ParameterError, match="--host limits the crawl to the hosts of the given URLs: give"):
        limits("host", [], {}, Rules())
    with pytest.raises(ParameterError, match=r"`within` must be one of domain, host, everywhere; got 'city'"):
        limits("city", URLS, {}, None)  # type: ignore[arg-type]


def test_a_crawl_without_urls_keeps_its_limits(tmp_path):
    with inlink.Crawl(tmp_path / "c", rules={"domains": ["c.example"]}):
        pass
    assert "INLINK_RULES" not in settings_of(tmp_path / "c", CrawlOptions(), None, [])
    added = settings_of(tmp_path / "c", CrawlOptions(), None, ["http://d.example/"])
    assert added["INLINK_RULES"]["domains"] == ("c.example", "d.example")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("foo", "'foo' is not a URL: write http://foo if 'foo' is the name of a host"),
        ("foo/bar.html", "'foo/bar.html' is not a URL: write http://foo/bar.html if 'foo' is"),
        ("foo:8080", "'foo:8080' is not a URL"),
        ("7", "'7' is not a URL"),
        ("", "'' is not a URL"),
        ("mailto:a@b.example", "'mailto:a@b.example' is not a URL"),
        ("c.crawl", "'c.crawl' is a folder of inlink, not a URL: use -o c.crawl to continue its crawl"),
    ],
)
def test_a_word_is_no_url(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    with inlink.Crawl("c.crawl"):
        pass
    with pytest.raises(ParameterError, match=re.escape(said)):
        beginnings((text,), CrawlOptions(), None)


def test_a_url_without_its_scheme():
    urls = ("example.org", "localhost:8000", "[::1]", "http://foo")
    assert beginnings(urls, CrawlOptions(), None) == [
        *("http://example.org/", "http://localhost:8000/", "http://[::1]/", "http://foo/")
    ]


@pytest.mark.slow
def test_a_crawl_stays_on_its_site_unless_it_is_told_otherwise(tmp_path: Path):
    with Site({"/a": html()}, hosts=2) as site:
        site.pages["/"] = html("/a", site.url("/a", host=2))
        done = crawl(f"{site.root}/", "-o", "c", "--delay", 0, cwd=tmp_path)
        assert site.times(host=2) == []
        assert "2 pages of 3 known" in done.stdout
        crawl(f"{site.root}/", "-o", "d", "--delay", 0, "--everywhere", cwd=tmp_path)
        assert len(site.times(host=2)) == 1
