"""Aduana's own endpoints: its old client posts pages and asks for URLs, with a name and a password."""

import base64
import json

import pytest

from inlink.server.tokens import Tokens
from served import served

A = "http://a.example/"


def post(server, page):
    # As Aduana's client sends it: the text of JSON, and no content type.
    status, raw, _ = server.raw("POST", "/crawled", json.dumps(page))
    return status, raw


def request(server, n=None):
    status, raw, _ = server.raw("GET", "/request" if n is None else f"/request?n={n}")
    assert status == 200, raw
    return json.loads(raw)


def test_its_client_crawls(tmp_path):
    with served(tmp_path / "c") as server:
        page = {"url": A, "score": 0.5, "links": [[A + "x", 0.1], ["http://c.example/", 0.9]]}
        page["content_hash"] = "h"
        assert post(server, page) == (201, b"")
        assert sorted(request(server, 5)) == [A + "x", "http://c.example/"]
        assert request(server) == []
        assert post(server, {"url": A + "x", "links": [["http://b.example/", 0.3]]})[0] == 201
        assert request(server) == ["http://b.example/"]
        assert server.crawl("GET", "page?url=" + A)[1]["score"] == 0.5
        assert server.crawl("GET", "standing")[1]["states"] == {"crawled": 2, "leased": 2}


def test_a_repeated_page_counts_once(tmp_path):
    with served(tmp_path / "c") as server:
        for _ in range(3):
            post(server, {"url": A, "links": [[A + "x", 0.1]]})
        assert request(server) == [A + "x"]
        for _ in range(3):
            post(server, {"url": A + "x"})
        assert [server.crawl("GET", "page?url=" + url)[1]["crawls"] for url in (A, A + "x")] == [1, 1]


def test_leases_outlast_a_restart(tmp_path):
    with served(tmp_path / "c") as server:
        post(server, {"url": A, "links": [[A + "x", 0.1]]})
        assert request(server) == [A + "x"]
    with served(tmp_path / "c") as server:
        assert request(server) == []
        post(server, {"url": A + "x"})
        assert server.crawl("GET", "standing")[1]["states"] == {"crawled": 2}


@pytest.mark.slow
def test_the_token_may_be_a_password(tmp_path):
    token = Tokens(tmp_path / "tokens.json").add("one", "spider")
    with served(tmp_path / "c") as server:
        assert post(server, {"url": A})[0] == 401
        for user, expected in ((f"somebody:{token}", 201), ("somebody:else", 401), (token, 401)):
            server.headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()}
            assert post(server, {"url": A})[0] == expected


def test_bad_pages_are_refused_and_not_added(tmp_path):
    with served(tmp_path / "c") as server:
        for page, expected in (
            ({}, 400),
            ([], 400),
            ({"url": 1}, 400),
            ({"url": "ftp://x/"}, 400),
            ({"url": "x" * 100}, 400),
            ({"url": A, "links": [["x", "y"]]}, 400),
            ({"url": A, "links": [["/", 0.5]] * 10_001}, 400),
            ({"url": A, "score": "high"}, 400),
            ({"url": A, "score": 1e300}, 422),
            ({"url": A, "links": [["http://b.example/", 1e300]]}, 422),
        ):
            status, raw = post(server, page)
            assert status == expected, raw
            assert b"\n" not in raw
        assert server.crawl("GET", "info")[1]["pages"] == 0


def test_only_a_server_of_one_crawl_has_them(tmp_path):
    with served(tmp_path / "c", tmp_path / "d") as server:
        assert post(server, {"url": A})[0] == 404


def test_its_documented_body_is_taken(tmp_path):
    """The example of Aduana's documentation: the content hash is an integer, and links are pairs."""
    body = {"url": A, "score": 0.5, "links": [[A + "x", 0], [A + "y", 1.0]], "content_hash": 27348276}
    with served(tmp_path / "c") as server:
        assert post(server, body) == (201, b"")
        page = server.crawl("GET", "page?url=" + A)[1]
        assert base64.b64decode(page["content_hash"]) == (27348276).to_bytes(8, "little")
        # Python's hash() may be negative, and a hash may have more than 64 bits.
        for number, value in enumerate([-(2**63), 2**64 - 1, 2**200, 0, None, "text"]):
            assert post(server, {"url": f"{A}{number}", "content_hash": value}) == (201, b"")
        for wrong in (1.5, [1], {}):
            assert post(server, {"url": A + "z", "content_hash": wrong})[0] == 400
