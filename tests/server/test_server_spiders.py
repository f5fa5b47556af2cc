"""A server, as spiders use it: sessions, tasks, answers, seeds, repeats, waiting."""

import gc
import threading
import time

import pytest

from inlink.frontier import sessions
from patience import wait_until
from served import served

A, B = "http://a.example/", "http://b.example/"


def begin(server, owner="one", **more):
    status, begun = server.crawl("POST", "sessions", {"owner": owner, **more})
    assert status == 201, begun
    return begun["session"]["number"]


def test_a_spider_that_waits_for_tasks_gets_them_when_they_come(tmp_path):
    with served(tmp_path / "c") as server:
        one, two = begin(server, "one"), begin(server, "two")
        server.crawl("POST", "seeds", {"urls": [A]})
        lease = server.crawl("POST", "next", {"session": one, "n": 1})[1]["tasks"][0]["lease"]
        found = []
        ask = {"session": two, "n": 1, "wait": 20}
        waiting = threading.Thread(target=lambda: found.append(server.crawl("POST", "next", ask)))
        waiting.start()
        answer = {"type": "crawled", "lease": lease, "links": ["/x"]}
        server.crawl("POST", "answers", {"session": one, "answers": [answer]})
        waiting.join()
        assert [task["url"] for task in found[0][1]["tasks"]] == [A + "x"]


def test_at_the_end_nobody_waits(tmp_path):
    with served(tmp_path / "c") as server:
        session = begin(server)
        began = time.monotonic()
        found = server.crawl("POST", "next", {"session": session, "wait": 20})[1]
        assert found == {"tasks": [], "due_in": None, "out_elsewhere": 0, "paused": False}
        assert time.monotonic() - began < 15


@pytest.mark.slow
def test_a_silent_session_ends_while_nobody_calls(tmp_path):
    with served(tmp_path / "c", retry_seconds=0.1) as server:
        silent = begin(server, "silent", silent_after=0.2)
        server.crawl("POST", "seeds", {"urls": [A]})
        assert server.crawl("POST", "next", {"session": silent, "n": 1})[1]["tasks"]
        # Looks do not let time pass; the keeper does, while nobody calls.
        wait_until(lambda: server.crawl("GET", "standing")[1]["leased"] == 0, "the session to end")
        other = begin(server, "other")
        found = server.crawl("POST", "next", {"session": other, "n": 1, "wait": 20})[1]
        assert [task["url"] for task in found["tasks"]] == [A]


def test_the_number_of_open_sessions_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 2)
    with served(tmp_path / "c") as server:
        first = begin(server, "one")
        begin(server, "two")
        status, refusal = server.crawl("POST", "sessions", {"owner": "three"})
        assert status == 429
        assert "2 open sessions" in refusal["error"]
        assert "\n" not in refusal["error"]
        # An owner's next session takes the place of the one before, and the end of a session makes room.
        begin(server, "two")
        server.crawl("DELETE", f"sessions/{first}")
        begin(server, "three")


@pytest.mark.slow
def test_reports_for_sessions_that_are_not_there_leave_nothing_behind(tmp_path):
    with served(tmp_path / "c") as server:
        begin(server)
        for session in range(100, 120):
            assert server.crawl("POST", "answers", {"session": session, "answers": []})[0] == 409
        gc.collect()  # a refusal's traceback may still hold the last lock
        assert len(server.site.keepers["c"].reports) == 0


def test_what_an_operator_changes_holds_after_a_restart(tmp_path):
    with served(tmp_path / "c") as server:
        server.crawl("POST", "seeds", {"urls": [A, B]})
        assert server.crawl("POST", "pause") == (200, {"paused": True})
        assert server.crawl("PUT", "hosts/a.example/block", {"seconds": None})[1]["blocked_for"] is None
        assert server.crawl("PUT", "rules", {"deny": ["host:b.example"]})[1]["rules"]["deny"] == [
            "host:b.example"
        ]
    with served(tmp_path / "c") as server:
        ask = {"session": begin(server), "n": 9}
        assert server.crawl("POST", "next", ask)[1]["paused"]
        assert server.crawl("POST", "resume") == (200, {"paused": False})
        assert server.crawl("POST", "next", ask)[1]["tasks"] == []
        assert server.crawl("GET", f"page?url={B}")[1]["state"] == "excluded"
        server.crawl("PUT", "hosts/a.example/block", {"seconds": 0})
        server.crawl("PUT", "rules", {})
        assert [task["url"] for task in server.crawl("POST", "next", ask)[1]["tasks"]] == [A, B]
