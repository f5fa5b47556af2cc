"""A server, as those who steer use it: pause, hosts, rules, settings; all of it holds after a restart."""

import pytest

from served import served

A, B = "http://a.example/", "http://b.example/"


def tasks(server, session):
    status, found = server.crawl("POST", "next", {"session": session, "n": 10})
    assert status == 200
    return sorted(task["url"] for task in found["tasks"])


def begin(server):
    return server.crawl("POST", "sessions", {"owner": "one", "rejoin": True})[1]["session"]["number"]


def test_changes_hold_after_a_restart(tmp_path):
    with served(tmp_path / "c", retry_seconds=0.01) as server:
        server.crawl("POST", "seeds", {"urls": [A, B, "http://c.example/"]})
        assert server.crawl("POST", "pause") == (200, {"paused": True})
        assert server.crawl("PUT", "hosts/a.example/block", {"seconds": None})[1]["blocked_for"] is None
        assert server.crawl("PUT", "hosts/b.example/delay", {"seconds": 7.5})[1]["delay"] == 7.5
        assert server.crawl("PUT", "hosts/b.example/budget", {"pages": 3})[1]["budget_left"] == 3
        assert server.crawl("PUT", "rules", {"deny": ["host:c.example"]})[1]["rules"]["deny"] == [
            "host:c.example"
        ]
        assert server.crawl("PATCH", "settings", {"max_retries": 1})[1]["max_retries"] == 1
        assert tasks(server, begin(server)) == []
    with served(tmp_path / "c", retry_seconds=0.01) as server:
        session = begin(server)
        assert server.crawl("POST", "next", {"session": session})[1]["paused"]
        assert server.crawl("POST", "resume") == (200, {"paused": False})
        assert tasks(server, session) == [B]
        assert server.crawl("GET", "page?url=http://c.example/")[1]["state"] == "excluded"
        found = server.crawl("GET", "settings")[1]
        assert (found["max_retries"], found["rules"]["deny"]) == (1, ["host:c.example"])
        row = next(row for row in server.crawl("GET", "hosts")[1]["rows"] if row["name"] == "b.example")
        assert (row["delay"], row["budget_left"], row["set_by_operator"]) == (7.5, 2, ["delay", "budget"])
        server.crawl("PUT", "hosts/a.example/block", {"seconds": 0})
        server.crawl("PUT", "rules", {})
        assert tasks(server, session) == [A, "http://c.example/"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "hosts/unknown.example/block", {"seconds": 1}, 404),
        ("PUT", "hosts/a.example/block", {"seconds": -1}, 422),
        ("PUT", "hosts/a.example/block", {}, 422),
        ("PUT", "hosts/a.example/delay", {"seconds": 1e300}, 422),
        ("PUT", "hosts/a.example/budget", {"pages": -1}, 422),
        ("PUT", "hosts/a.example/budget", {"pages": 1.5}, 422),
        ("PUT", "rules", {"deny": ["("]}, 422),
        ("PUT", "rules", {"denied": []}, 422),
        ("PATCH", "settings", {"policy": "hits"}, 422),
        ("PATCH", "settings", {"max_retrys": 1}, 422),
        ("PATCH", "settings", {"revisit": "os:system"}, 422),
        ("PATCH", "settings", {"max_retries": 2, "lease_seconds": -1}, 422),
        ("PATCH", "settings", [], 422),
    ],
)
def test_impossible_values_are_refused_and_change_nothing(tmp_path, method, path, body, status):
    with served(tmp_path / "c") as server:
        server.crawl("POST", "seeds", {"urls": [A]})
        before = server.crawl("GET", "settings")[1], server.crawl("GET", "hosts")[1]
        found, told = server.crawl(method, path, body)
        assert found == status, told
        assert (server.crawl("GET", "settings")[1], server.crawl("GET", "hosts")[1]) == before
