"""Redirects: each page once, by whatever way, and the callback gets what the redirect led to."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from scrapy import FormRequest, Request
from scrapy.http import Response

from sites import Answer, Asked, Site, html, moved
from spiderruns import Walker, crawl, hrefs


class Follower(Walker):
    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {
            "url": response.url,
            "from": response.meta.get("redirect_urls", []),
            "text": response.text[:60],
            "mark": response.cb_kwargs.get("mark"),
        }
        for href in hrefs(response):
            yield response.follow(href, cb_kwargs={"mark": href})


def cookie_first(asked: Asked) -> Answer:
    if "seen=1" in asked.headers.get("Cookie", ""):
        return html("/behind")
    return moved(asked.path, 302, **{"Set-Cookie": "seen=1; Path=/"})


REFUSED = {
    "to-file": "file:///etc/passwd",
    "to-data": "data:text/html,<a href=/secret>secret</a>",
    "to-script": "javascript:alert(1)",
    "to-ftp": "ftp://127.0.0.1/x",
}


def test_redirects(tmp_path):
    pages = {
        "/": html(
            *(
                "simple",
                "permanent",
                "known",
                "again",
                "cookie",
                "refresh",
                "loop-a",
                "bad",
                "mail",
                "abroad",
            ),
            *REFUSED,
        ),
        "/simple": moved("/target"),
        "/permanent": moved("/middle", 301),
        "/middle": moved("/end?a=1#there", 308),
        "/end?a=1": html("/after-end"),
        "/target": html("/after-target"),
        "/known": moved("/"),
        "/again": moved("/target"),
        "/cookie": cookie_first,
        "/refresh": Answer('<html><meta http-equiv="refresh" content="0; url=/refreshed"></html>'),
        "/refreshed": html(),
        "/loop-a": moved("/loop-b"),
        "/loop-b": moved("/loop-a"),
        "/bad": moved("http://[::bad/"),
        "/mail": moved("mailto:someone@example.org"),
        **{f"/{name}": moved(to) for name, to in REFUSED.items()},
        **{path: html() for path in ("/after-end", "/after-target", "/behind")},
    }
    with Site(pages, hosts=2) as site:
        site.pages["/abroad"] = moved(site.url("/target", 2))
        ran = crawl(Follower, tmp_path / "c", site, REDIRECT_MAX_TIMES=6)
        abroad = {site.url(path, 2) for path in ("/target", "/after-target")}
    assert ran.reason == "finished"
    merged = {path: ran.short(page.merged_into) for path, page in ran.pages.items() if page.merged_into}
    assert {path: to for path, to in merged.items() if "loop" not in path} == {
        "/simple": "/target",
        "/permanent": "/end?a=1",
        "/middle": "/end?a=1",
        "/known": "/",
        "/again": "/target",
        "/refresh": "/refreshed",
        "/abroad": site.url("/target", 2),
    }
    pages_once = {
        "/",
        "/target",
        "/end?a=1",
        "/refreshed",
        "/after-end",
        "/after-target",
        "/behind",
        "/cookie",
    }
    assert ran.crawled == pages_once | abroad
    for name, to in {**REFUSED, "mail": "mailto:someone@example.org"}.items():
        page = ran.pages[f"/{name}"]
        assert (page.state, page.status) == ("failed", 302), name
        if name in ("to-script", "mail"):  # Scrapy does not even make a request of it
            to = f"what must not be fetched (ValueError: Missing scheme in request url: {to})"
            assert page.error == f"redirects to {to}"
        else:
            assert page.error == f"redirects to {to!r}, which must not be fetched"
        assert site.counts()[f"/{name}"] == 1
    counts = Counter(one.path for one in site.asked if one.host == "127.0.0.1")
    assert [one.path for one in site.asked if one.host == "127.0.0.2"] == ["/target", "/after-target"]
    assert counts["/cookie"] == 2
    assert {counts[path] for path in pages_once - {"/cookie"}} == {1}
    assert counts["/loop-a"] + counts["/loop-b"] <= 7
    assert {state for path, state in ran.states.items() if "loop" in path} == {"merged", "excluded"}
    items = {ran.short(item["url"]).partition("#")[0]: item for item in ran.items}
    assert len(items) == len(ran.items)
    assert items["/end?a=1"]["from"] == [site.url("/permanent"), site.url("/middle")]
    assert items["/end?a=1"]["mark"] == "permanent"
    assert items["/target"]["mark"] in ("simple", "again")
    assert items["/cookie"]["mark"] == "cookie"
    assert items["/refreshed"]["mark"] == "refresh"
    assert ran.outcomes[("/simple", "redirected")] == 1
    # The host answers, so it does not wait because of redirects that are not followed.
    assert not [line for line in ran.told("INFO") if "is held back" in line]


class Again(Walker):
    """Asks for each link with ``dont_filter``."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield {"url": response.url}
        for href in hrefs(response):
            yield response.follow(href, callback=None, dont_filter=True)


@pytest.mark.parametrize("spider", [Walker, Again])
def test_a_redirect_off_the_crawls_rules_is_not_fetched(tmp_path, spider):
    """The page that redirects is not crawled, and its target is excluded, as in ``inlink crawl``."""
    with Site({"/": html("/away", "/here"), "/here": html(), "/far": html()}, hosts=2) as site:
        far = site.url("/far", 2)
        site.pages["/away"] = moved(far)
        ran = crawl(spider, tmp_path / "c", site, INLINK_RULES={"domains": ["127.0.0.1"]})
        assert site.times(2) == []
    states = {path.partition("#")[0]: state for path, state in ran.states.items()}
    assert states == {"/": "crawled", "/here": "crawled", "/away": "merged", far: "excluded"}


class AtHome(Walker):
    allowed_domains = ("127.0.0.1",)


def test_a_redirect_off_site_is_followed_no_further(tmp_path):
    """Scrapy drops what the redirect leads to, without a word to the scheduler."""
    with Site({"/": html("away", "here"), "/here": html(), "/far": html()}, hosts=2) as site:
        site.pages["/away"] = moved(site.url("/far", 2))
        ran = crawl(AtHome, tmp_path / "c", site)
        assert ran.states == {"/": "crawled", "/here": "crawled", "/away": "excluded"}
        assert site.counts() == {"/": 1, "/here": 1, "/away": 1}
        elsewhere = crawl(AtHome, tmp_path / "d", site, site.url("/", 2))  # a start request may be off site
    assert elsewhere.states == {site.url("/", 2): "crawled"}


class Marking:
    """A downloader middleware that puts what cannot be stored into each request."""

    def process_request(self, request: Request) -> None:
        request.meta["marking"] = lambda: None


def test_the_data_of_a_redirect_that_cannot_be_stored_are_counted(tmp_path):
    middlewares = {"test_scrapy_redirects.Marking": 100}
    with Site({"/": html("/moved"), "/moved": moved("/target"), "/target": html()}) as site:
        ran = crawl(Walker, tmp_path / "c", site, DOWNLOADER_MIDDLEWARES=middlewares)
    assert ran.states == {"/": "crawled", "/moved": "merged", "/target": "crawled"}
    assert ran.stats["inlink/redirect_data_lost"] == 1
    (warning,) = ran.told("WARNING", "inlink")
    assert "/target" in warning
    assert "without its data" in warning


class Login(Follower):
    """Sends a form that leads back to where it came from."""

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        if response.url.endswith("/"):
            yield FormRequest(
                response.urljoin("/login"),
                formdata={"name": "me"},
                callback=self.inside,
                cb_kwargs={"mark": (1,)},
            )
            yield Request(response.urljoin("/keep"), method="POST", body=b"data", callback=self.inside)
        else:
            yield from super().parse(response)

    def inside(self, response: Response, mark: Any = None) -> Iterator[Any]:
        yield {"inside": response.url, "mark": mark, "text": response.text}
        for href in hrefs(response):
            yield response.follow(href)


def test_forms_that_redirect(tmp_path):
    """A form that is sent leads to a page that is known: it must come to its callback all the same."""

    def home(asked: Asked) -> Answer:
        return html("/members" if "who=me" in asked.headers.get("Cookie", "") else "/public")

    def members(asked: Asked) -> Answer:
        return html(text="hello") if "who=me" in asked.headers.get("Cookie", "") else Answer("no", 403)

    def login(asked: Asked) -> Answer:
        assert (asked.method, asked.body) == ("POST", b"name=me")
        return moved("/", 302, **{"Set-Cookie": "who=me; Path=/"})

    def kept(asked: Asked) -> Answer:
        return html(text=f"{asked.method} {asked.body.decode()}")

    pages = {"/": home, "/login": login, "/members": members, "/public": html()}
    with Site({**pages, "/keep": moved("/kept", 307), "/kept": kept}) as site:
        ran = crawl(Login, tmp_path / "c", site)
    inside = {ran.short(item["inside"]): item for item in ran.items if "inside" in item}
    assert set(inside) == {"/", "/kept"}
    assert inside["/"]["mark"] == [1]
    assert "POST data" in inside["/kept"]["text"]
    assert ran.states["/members"] == "crawled"
    assert sorted(path.partition(":")[0] for path in ran.crawled) == [
        "/",
        "/keep#POST",
        "/login#POST",
        "/members",
    ]


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_redirect_wakes_the_engine(tmp_path, ahead):
    """One request at a time, and nothing else to do: the target must not wait for a heartbeat of the engine's."""
    steps = {f"/{k}": moved(f"/{k + 1}") for k in range(8)}
    with Site({**steps, "/8": html()}) as site:
        ran = crawl(Follower, tmp_path / "c", site, "/0", CONCURRENT_REQUESTS=ahead)
    assert ran.crawled == {"/8"}
