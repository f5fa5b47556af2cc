"""The desk by queues: URLs in bulk with a status for each, and tasks within limits of queues."""

from collections import Counter

import pytest

import inlink
from inlink.errors import ParameterError, UnknownNodeError

HOSTS = [f"h{k}.example.org" for k in range(4)]


def crawl_at(folder, clock, **settings):
    politeness = {"delay": 0.0, "in_flight": 100} | settings.pop("politeness", {})
    return inlink.Crawl(folder, politeness=politeness, clock=clock, rerank_share=None, **settings)


def hosts_of(tasks) -> Counter[str]:
    return Counter(task.url.split("/")[2] for task in tasks)


def fill(crawl, each=10):
    found = [(f"http://{host}/{k}", host, 0.0, b"") for k in range(each) for host in HOSTS]
    assert crawl.queues.discover(found) == [True] * len(found)


def test_discovered_urls_have_a_status_each(tmp_path):
    with crawl_at(tmp_path / "c", lambda: 5.0, rules={"deny": ["host:h9.example.org"]}) as crawl:
        discover = crawl.queues.discover
        found = [
            ("http://h0.example.org/b", "h0.example.org", 0.0, b"b"),
            ("http://h0.example.org/a#top", "example.org", 0.0, b""),
            ("http://h0.example.org/a", "", 1.0, b"ignored"),
            ("http://h0.example.org/c", "h1.example.org", 1.0, b""),
            ("nothing", "", 1.0, b""),
            ("http://h0.example.org/d", "", 1.0, b"x" * 65_537),
            ("http://h9.example.org/", "", 1.0, b""),
        ]
        assert discover(found) == [True, True, False, None, None, None, True]
        assert discover(found[:2]) == [False, False]
        assert discover([]) == []
        assert discover([("x", "", 1.0, b"")]) == [None]
        assert crawl.page("http://h9.example.org/").state == "excluded"
        session = crawl.desk.hello("one").number
        tasks = {task.url: task.carried for task in crawl.queues.next_in_queues(session, 10)}
        assert tasks == {"http://h0.example.org/b": b"b", "http://h0.example.org/a": None}
        crawl.queues.replace_data("http://h0.example.org/a", b"new")
    with crawl_at(tmp_path / "c", lambda: 6.0) as crawl:
        rows = crawl.queues.rows_of([crawl.view.number(f"http://h0.example.org/{x}") for x in "ab"])
        assert [(row.data, row.due) for row in rows] == [
            (b"new", 5.0),
            (b"b", 5.0),
        ]
        with pytest.raises(UnknownNodeError):
            crawl.queues.replace_data("http://h0.example.org/z", b"")
        with pytest.raises(ParameterError, match="65,536"):
            crawl.queues.replace_data("http://h0.example.org/a", b"x" * 65_537)


def test_limits_hold_and_lose_nothing(tmp_path):
    with crawl_at(tmp_path / "c", lambda: 5.0, policy="first-come") as crawl:
        fill(crawl)
        session, seen = crawl.desk.hello("one").number, []

        def take(count, **limits):
            tasks = crawl.queues.next_in_queues(session, count, **limits)
            seen.extend(task.url for task in tasks)
            return hosts_of(tasks)

        assert take(100, per_queue=2) == dict.fromkeys(HOSTS, 2)
        assert set(take(100, per_queue=3, queues=2).values()) == {3}
        assert take(5, key=HOSTS[1], per_queue=2) == {HOSTS[1]: 2}
        assert take(5, key="unknown.example") == {}
        before: dict[int, int] = {}
        parts = Counter()
        for _ in range(9):
            parts += take(2, per_queue=2, before=before)
        assert parts == dict.fromkeys(HOSTS, 2)
        while take(7):
            pass
        assert len(seen) == len(set(seen)) == 40
        assert take(1, key=HOSTS[0]) == {}
        with pytest.raises(ParameterError):
            crawl.queues.next_in_queues(session, -1)
        assert crawl.standing().leased == 40


def test_a_key_keeps_to_delays_blocks_and_rules(tmp_path):
    now = [5.0]
    with crawl_at(tmp_path / "c", lambda: now[0], politeness={"delay": 10.0}) as crawl:
        fill(crawl, 3)
        session = crawl.desk.hello("one").number

        def take(**limits):
            return hosts_of(crawl.queues.next_in_queues(session, 10, **limits))

        assert take(key=HOSTS[0]) == {HOSTS[0]: 1}
        assert take(key=HOSTS[0]) == {}
        now[0] += 10
        crawl.set_host(HOSTS[1], block=100)
        crawl.change_settings(rules={"deny": [f"host:{HOSTS[2]}"]})
        assert take(key=HOSTS[1]) == take(key=HOSTS[2]) == {}
        assert take() == {HOSTS[0]: 1, HOSTS[3]: 1}
        assert crawl.queues.queue_names(0, 10, empty=False) == ([HOSTS[0], HOSTS[1], HOSTS[3]], 3)
        assert crawl.queues.queue_names(1, 2, empty=True) == ([HOSTS[1], HOSTS[3]], 3)
        assert crawl.queues.pages_of_queue(HOSTS[1]).tolist() == [1, 5, 9]


def test_lost_pages_come_back_among_others_and_leases_have_their_length(tmp_path):
    now = [5.0]
    with crawl_at(tmp_path / "c", lambda: now[0], retry_seconds=0.0) as crawl:
        fill(crawl, 2)
        session = crawl.desk.hello("one").number
        first = crawl.queues.next_in_queues(session, 2, seconds=7.0)
        crawl.queues.next_in_queues(session, 1, seconds=700.0)
        now[0] += 6
        assert crawl.standing().leased == 3
        now[0] += 2
        again = crawl.queues.next_in_queues(session, 100, seconds=7.0)
        assert len(again) == 7
        assert {task.url for task in first} <= {task.url for task in again}
        assert crawl.desk.lease_on(session, first[0].url) is not None
