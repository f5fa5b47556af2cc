"""Frontera's backend by itself, under Frontera's own manager."""

import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inlink.crawl.crawl import Crawl
from inlink.errors import InUseError, OutputError, ParameterError

pytest.importorskip("scrapy", reason="scrapy is not installed: pip install 'inlink[frontera]'")
pytest.importorskip("frontera", reason="frontera 0.7.2 is not installed: pip install 'inlink[frontera]'")

import frontera
from frontera.core.models import Request, Response

from inlink.frontera import Backend

SEED = "http://a.com/"


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Frontera with our backend, and Frontera's own middlewares."""
    running: list[Any] = []

    def begin(**settings: Any) -> Any:
        told = {"BACKEND": "inlink.frontera.Backend", "PAGE_DB_PATH": str(tmp_path / "c"), **settings}
        one = frontera.FrontierManager.from_settings(frontera.Settings(attributes=told))
        running.append(one)
        return one

    yield begin
    for one in running:
        if not one._stopped:
            one.stop()


def request(url: str, method: str = "GET", **meta: Any) -> Request:
    return Request(url, method=method, meta={b"scrapy_meta": meta})


def answer(asked: Request, status: int = 200, headers: Any = None, **meta: Any) -> Response:
    asked.meta[b"scrapy_meta"].update(meta)
    return Response(asked.url, status, headers, request=asked)


def known(manager: Any, url: str) -> Any:
    return manager.backend.crawl.page(url)


def test_scores_and_hashes_arrive(manager):
    front = manager()
    front.add_seeds([request(SEED), request("http://b.com/", score=0.25), request("http://c.com/", "POST")])
    assert (known(front, SEED).score, known(front, "http://b.com/").score) == (1.0, 0.25)
    assert known(front, "http://c.com/") is None
    asked = front.get_next_requests()
    assert [one.url for one in asked] == [SEED, "http://b.com/"]
    assert asked[0].meta[b"scrapy_meta"] == {"depth": 0}
    front.page_crawled(answer(asked[0], score=0.75, content_hash=b"abc"))
    front.links_extracted(asked[0], [request("http://d.com/", score=2), request("http://e.com/")])
    page = known(front, SEED)
    assert (page.state, page.score, page.content_hash) == ("crawled", 0.75, b"abc")
    assert (known(front, "http://d.com/").score, known(front, "http://e.com/").score) == (2.0, 0.0)
    assert known(front, "http://d.com/").depth == 1


@pytest.mark.parametrize(
    ("given", "kept"), [(2**64 - 1, b"\xff" * 8), (-1, b"\xff" * 8), ("é", "é".encode())]
)
def test_a_content_hash_may_be_a_number_or_a_text(manager, given, kept):
    front = manager()
    front.add_seeds([request(SEED)])
    asked = front.get_next_requests()[0]
    front.page_crawled(answer(asked, content_hash=given))
    front.links_extracted(asked, [])
    assert known(front, SEED).content_hash == kept


@pytest.mark.parametrize("bad", [float("nan"), "high", None, 1e39])
def test_a_score_that_is_none_is_told_and_passed_over(manager, bad, caplog):
    front = manager()
    with caplog.at_level(logging.WARNING):
        front.add_seeds([request(SEED, score=bad)])
    assert known(front, SEED).score == 1.0
    assert f"{SEED}: score must be a finite number, not {bad!r}" in caplog.text


@pytest.mark.parametrize("then", ["next", "other", "stop", "error", "seed"])
def test_a_page_without_links_told_counts_when_anything_else_happens(manager, then, tmp_path):
    front = manager()
    front.add_seeds([request(SEED), request("http://b.com/")])
    first, second = front.get_next_requests()
    front.page_crawled(answer(first, score=0.5))
    assert known(front, SEED).state == "leased"
    assert not front.finished
    if then == "next":
        front.get_next_requests()
    elif then == "other":
        front.page_crawled(answer(second))
    elif then == "error":
        front.request_error(second, "TimeoutError")
    elif then == "seed":
        front.add_seeds([request("http://c.com/")])
    else:
        front.stop()
        with Crawl(tmp_path / "c") as crawl:
            assert crawl.page(SEED).score == 0.5
        return
    assert (known(front, SEED).state, known(front, SEED).score) == ("crawled", 0.5)


def test_failures_are_told_apart(manager):
    front = manager()
    urls = [f"http://{host}.com/" for host in "abcde"]
    front.add_seeds([request(url) for url in urls])
    asked = {one.url: one for one in front.get_next_requests()}
    front.request_error(asked[urls[0]], "DNSLookupError")
    front.request_error(asked[urls[1]], "IgnoreRequest")
    front.page_crawled(answer(asked[urls[2]], 410))
    front.links_extracted(asked[urls[2]], [request("http://x.com/")])
    front.page_crawled(answer(asked[urls[3]], 503, {"Retry-After": b"7"}))
    front.page_crawled(answer(asked[urls[4]], 403))
    pages = [known(front, url) for url in urls]
    assert [page.state for page in pages] == ["discovered", "excluded", "gone", "discovered", "failed"]
    assert [page.errors for page in pages if page.state != "excluded"] == [1, 1, 1, 1]
    assert (pages[0].error, pages[4].status) == ("DNSLookupError", 403)
    assert known(front, "http://x.com/") is None
    assert not front.finished
    front.request_error(asked[urls[4]], "again")  # it was answered for
    assert known(front, urls[4]).errors == 1


def test_a_request_that_a_middleware_sends_back_is_handed_out_again_with_its_lease(manager):
    front = manager()
    front.add_seeds([request(SEED)])
    asked = front.get_next_requests()[0]
    back = Request(SEED, headers={"X": "1"}, cookies={"c": "2"}, meta=asked.meta)
    front.add_seeds([back])
    assert not front.finished
    again = front.get_next_requests()[0]
    assert (again.url, again.headers, again.cookies) == (SEED, {"X": "1"}, {"c": "2"})
    assert front.get_next_requests() == []
    front.page_crawled(answer(again))
    front.links_extracted(again, [])
    assert known(front, SEED).crawls == 1
    front.add_seeds([Request(SEED, meta=asked.meta)])  # too late
    assert front.finished


@pytest.mark.parametrize("solver", ["Basic", "CorporateWebsiteFriendly"])
def test_a_redirect_is_followed_and_the_page_merged(manager, solver):
    front = manager(CANONICAL_SOLVER=f"frontera.contrib.canonicalsolvers.{solver}")
    front.add_seeds([request(SEED), request("http://b.com/")])
    first, second = front.get_next_requests()
    front.page_crawled(answer(second))
    front.links_extracted(second, [])
    for target, reasons in (("http://a.com/x", [301]), ("http://a.com/y", [301, "meta refresh"])):
        scrapy_meta = {**first.meta[b"scrapy_meta"], "redirect_reasons": reasons}
        meta = {**first.meta, b"redirect_urls": [first.url], b"scrapy_meta": scrapy_meta}
        front.add_seeds([Request(target, meta=meta)])
        (first,) = front.get_next_requests()
        assert first.url == target
    front.page_crawled(answer(first))
    front.links_extracted(first, [])
    states = [known(front, SEED + path).state for path in ("", "x", "y")]
    assert states == ["merged", "merged", "crawled"]
    hops = [known(front, SEED + path) for path in ("", "x")]
    assert [(hop.merge_reason, hop.status) for hop in hops] == [("redirect", 301), ("refresh", 200)]
    assert front.finished


def test_a_redirect_to_a_page_that_was_fetched_ends_there(manager):
    front = manager()
    front.add_seeds([request(SEED), request("http://b.com/")])
    first, second = front.get_next_requests()
    front.page_crawled(answer(second))
    front.links_extracted(second, [])
    front.add_seeds([Request("http://b.com/", meta={**first.meta, b"redirect_urls": [SEED]})])
    assert front.get_next_requests() == []
    assert known(front, SEED).merged_into == "http://b.com/"
    assert front.finished


def test_requests_that_are_not_of_the_crawl_are_passed_over(manager):
    front = manager()
    stray = request("http://stray.com/")
    front.request_error(stray, "TimeoutError")
    front.page_crawled(answer(stray))
    front.links_extracted(stray, [request("http://x.com/")])
    assert known(front, "http://stray.com/") is None
    assert front.finished


def test_open_requests_wait_again_after_a_stop_and_after_a_death(manager, tmp_path):
    front = manager()
    front.add_seeds([request(SEED)])
    assert len(front.get_next_requests()) == 1
    front.stop()
    with Crawl(tmp_path / "c") as crawl:
        assert crawl.page(SEED).state == "discovered"
        assert crawl.next(1)  # left out, as by a process that died
    front = manager()
    # Nobody can say that the other caller is dead: its lease holds until it expires, and the crawl is not over.
    assert front.get_next_requests() == []
    assert not front.finished


def test_a_url_is_fetched_as_it_was_given(manager):
    front = manager()
    front.add_seeds([request("http://user:secret@a.com/#top")])
    assert [one.url for one in front.get_next_requests()] == ["http://user:secret@a.com/#top"]


def test_a_crawl_ends_where_nothing_is_due_soon(manager):
    front = manager(INLINK_MAX_WAIT=50.0, INLINK_RETRY_SECONDS=100.0)
    front.add_seeds([request(SEED), request("http://b.com/")])
    first, second = front.get_next_requests()
    front.request_error(first, "TimeoutError")
    assert not front.finished  # the other one is out
    front.page_crawled(answer(second))
    front.links_extracted(second, [])
    assert front.finished
    assert known(front, SEED).state == "discovered"


def test_a_forgotten_request_is_excluded_once_and_an_answered_one_is_not(manager):
    front = manager()
    front.add_seeds([request(f"http://{host}.com/") for host in "abc"])
    first, second, third = front.get_next_requests()
    front.page_crawled(answer(first))
    front.add_seeds([Request(third.url, meta=third.meta)])  # a retry: the first request for it is let go of
    (again,) = front.get_next_requests()
    front.backend.forgotten += [first, second, third]
    assert not front.finished
    states = [known(front, f"http://{host}.com/").state for host in "abc"]
    assert states == ["crawled", "excluded", "leased"]
    front.backend.forgotten.append(again)
    assert front.finished


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("INLINK_POLITENESS", {"delays": 1}, "INLINK_POLITENESS: no setting is called 'delays'"),
        ("INLINK_REVISIT", {"seconds": 1}, "INLINK_REVISIT"),
        ("INLINK_RULES", {"denied": []}, "INLINK_RULES"),
        ("INLINK_DAMPING", {"a": 1}, "INLINK_DAMPING"),
    ],
)
def test_dicts_that_say_nothing_are_refused(manager, setting, value, said):
    with pytest.raises(ParameterError, match=said):
        manager(**{setting: value})


def test_objects_may_be_dicts(manager):
    front = manager(
        INLINK_POLITENESS={"delay": 2.0},
        INLINK_RULES={"deny": ["x"]},
        INLINK_REVISIT={"schedule": "FixedInterval", "seconds": 5.0},
    )
    found = front.backend.crawl.settings
    assert (found.politeness.delay, found.politeness.soft_rate) == (2.0, 0.25)
    assert found.rules.deny == ("x",)
    assert front.backend.crawl.settings.revisit.seconds == 5.0


def test_own_settings_win_over_aduanas(manager, tmp_path):
    front = manager(
        SCORER="HitsScorer",
        INLINK_CRAWL=str(tmp_path / "other"),
        INLINK_CROSS_DOMAIN_ONLY=False,
        INLINK_LEASE_SECONDS=7.0,
    )
    found = front.backend.crawl.settings
    assert (found.policy, found.cross_domain_only, found.lease_seconds) == ("hits", False, 7.0)
    assert found.politeness.hard_rate == 100.0
    assert (tmp_path / "other" / "events.log").exists()


def test_without_a_folder_the_crawl_is_temporary(manager, caplog):
    with caplog.at_level(logging.WARNING):
        front = manager(PAGE_DB_PATH=None)
    assert "the crawl's folder is removed at the end" in caplog.text
    folder = front.backend.crawl.folder
    assert folder.exists()
    front.stop()
    assert not folder.parent.exists()


def test_wrong_settings_and_a_folder_in_use_are_refused(manager):
    with pytest.raises(ParameterError, match="SCORER must be None or HitsScorer or PageRankScorer; got 'x'"):
        manager(SCORER="x")
    manager()
    with pytest.raises(InUseError, match=str(os.getpid())):
        manager()


def test_aduanas_page_database_is_not_overwritten(manager, tmp_path):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "data.mdb").write_bytes(b"\0" * 4096)
    with pytest.raises(OutputError, match="exists and holds something else, not a crawl"):
        manager()
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["data.mdb"]


def test_the_backend_is_fronteras(manager):
    assert issubclass(Backend, frontera.Backend)
    assert manager().backend.name == "inlink"


def test_every_setting_of_fronteras_is_in_the_migration_guide():
    page = (Path(__file__).parents[2] / "docs" / "migration.md").read_text()
    told = set(re.findall(r"`([A-Z][A-Z_]+)`", page))
    beginnings = tuple(re.findall(r"`([A-Z_]+_)…`", page))
    assert len(told) > 60
    assert len(beginnings) >= 8
    names = {name for name in vars(frontera.settings.default_settings) if name.isupper()}
    assert not {name for name in names if name not in told and not name.startswith(beginnings)}
