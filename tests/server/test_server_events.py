"""Server-sent events: numbered, shared, bounded, and ended in order."""

import http.client
import json
import threading

import pytest

from inlink.server import snapshots
from patience import wait_until
from served import served

A, B, C = "http://a.example/", "http://b.example/", "http://c.example/"

STREAM = {"Accept": "text/event-stream"}


class Listening:
    """Reads the events of the first crawl."""

    def __init__(self, server, last_id=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        name = next(iter(server.site.keepers))
        headers = server.headers | STREAM | ({} if last_id is None else {"Last-Event-ID": last_id})
        self.connection.request("GET", f"/v1/crawls/{name}/events", headers=headers)
        self.reply = self.connection.getresponse()

    def next(self):
        """The next event's id and data; None at the end."""
        found = {}
        while line := self.reply.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                found[name] = value
            elif "data" in found:
                return found["id"], json.loads(found["data"])
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.reply.close()
        self.connection.close()


@pytest.mark.slow
def test_events_tell_what_goes_on(tmp_path):
    with served(tmp_path / "c") as server, Listening(server) as listening:
        assert listening.reply.getheader("content-type") == "text/event-stream"
        first, snapshot = listening.next()
        assert snapshot["pages"] == {"total": 0, "now": None, "mean": 0}
        session = server.crawl("POST", "sessions", {"owner": "one"})[1]["session"]["number"]
        server.crawl("POST", "seeds", {"urls": [A, B, C]})
        tasks = server.crawl("POST", "next", {"session": session, "n": 3})[1]["tasks"]
        answers = [
            {"type": "crawled", "lease": tasks[0]["lease"], "links": ["/x"]},
            {"type": "failed", "lease": tasks[1]["lease"], "status": 500},
        ]
        server.crawl("POST", "answers", {"session": session, "answers": answers})
        server.crawl("POST", "pause")
        while not (snapshot["activity"]["paused"] and snapshot["pages"]["total"]):
            number, snapshot = listening.next()
        assert number > first
        assert snapshot["standing"]["known"] == 4
        assert (snapshot["pages"]["total"], snapshot["errors"]["total"]) == (1, 1)
        assert snapshot["pages"]["now"] > 0
        assert snapshot["pages"]["mean"] > 0
        (working,) = snapshot["activity"]["sessions"]
        assert (working["owner"], working["tasks"]) == ("one", 1)
        assert working["silent_after"] == 120
        # One that was away gets what it missed, and what it has it does not get again.
        later = number
        while later == number:
            later, _ = listening.next()
        with Listening(server, number) as again:
            assert again.next()[0] == later
        # A number of another server's says nothing.
        with Listening(server, "abcd-7") as stranger:
            assert int(stranger.next()[0].partition("-")[2]) > int(later.partition("-")[2])


@pytest.mark.slow
def test_nothing_is_computed_while_nobody_listens(tmp_path):
    with served(tmp_path / "c") as server:
        with Listening(server) as listening:
            listening.next()
        shared = server.site.snapshots["c"]
        wait_until(lambda: shared.listeners == 0 and shared.ticking.done(), "the snapshots to end")


@pytest.mark.slow
def test_listeners_are_bounded_and_share_one_snapshot(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "MOST_LISTENERS", 2)
    with served(tmp_path / "c") as server, Listening(server) as first:
        second = Listening(server)
        wait_until(lambda: server.site.snapshots["c"].listeners == 2, "both to listen")
        status, refusal = server.ask("GET", "/v1/crawls/c/events", headers=STREAM)
        assert (status, refusal["kind"]) == (503, "BusyError")
        with second:
            told, wanted = dict([first.next(), first.next(), first.next()]), second.next()
            assert told[wanted[0]] == wanted[1]
        wait_until(lambda: server.site.snapshots["c"].listeners == 1, "one to be gone")


def test_one_who_does_not_listen_gets_a_snapshot(tmp_path):
    with served(tmp_path / "c") as server:
        server.crawl("POST", "seeds", {"urls": [A]})
        status, snapshot = server.crawl("GET", "events")
        assert (status, snapshot["standing"]["known"], snapshot["fault"]) == (200, 1, None)


@pytest.mark.slow
def test_events_end_with_the_token(tmp_path):
    with served(tmp_path / "c", tokens=tmp_path / "tokens.json", needs_token=True) as server:
        text = server.site.tokens.add("alice", "reader")
        assert server.crawl("GET", "events")[0] == 401
        server.headers["Authorization"] = f"Bearer {text}"
        with Listening(server) as listening:
            assert listening.next()
            server.site.tokens.remove("alice")
            while listening.next():
                pass


def test_events_end_with_the_server(tmp_path):
    ended = []

    def drain(listening):
        with listening:
            while listening.next():
                pass
        ended.append(server.site.keepers["c"].ending)

    with served(tmp_path / "c") as server:
        listening = Listening(server)
        assert listening.next()
        thread = threading.Thread(target=drain, args=(listening,))
        thread.start()
    thread.join()
    assert ended == [True]
