"""URLFrontier over gRPC: every call of the protocol, and what a restart keeps."""

import logging
import time

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

import inlink
from frontiered import PROTO, Frontier, compiled, frontier
from inlink.frontier import sessions
from inlink.server.tokens import Tokens
from inlink.server.urlfrontier.wire import message
from patience import wait_until

OK, SKIPPED, FAIL = 0, 1, 2
HOST = "a.example"
URL = f"http://{HOST}/"


def urls(found) -> list[str]:
    return [info.url for info in found]


def refusal(client: Frontier, call: str, **fields) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        client.ask(call, **fields)
    details = caught.value.details()
    assert "\n" not in details
    return caught.value.code().name, details


def test_the_compiled_messages_are_those_of_the_proto(tmp_path):
    (file,) = FileDescriptorSet.FromString(PROTO.with_suffix(".binpb").read_bytes()).file
    assert file == compiled(tmp_path), "run make proto"


def test_messages_are_coded_as_the_protocol_says():
    """Bytes that were written by hand from the field numbers of the protocol."""

    def text(number: int, value: bytes) -> bytes:
        return bytes([number << 3 | 2, len(value)]) + value

    def number(field: int, value: int) -> bytes:
        return bytes([field << 3, value])

    entry = text(1, b"depth") + text(2, text(1, b"1") + text(1, b"2"))
    info = text(1, b"http://a.example/") + text(2, b"a.example") + text(3, entry) + text(4, b"c")
    item = message("URLItem").FromString(
        text(2, text(1, info) + number(2, 77)) + text(3, b"id") + number(4, 5)
    )
    assert item.WhichOneof("item") == "known"
    assert (item.known.info.url, item.known.info.key, item.known.info.crawlID) == (URL, HOST, "c")
    assert list(item.known.info.metadata["depth"].values) == ["1", "2"]
    assert (item.known.refetchable_from_date, item.ID, item.creation_date) == (77, "id", 5)
    assert item.known.info.SerializeToString(deterministic=True) == info

    asked = message("GetParams")(
        max_urls_per_queue=3, max_queues=4, key="k", delay_requestable=9, crawlID="c"
    )
    assert asked.SerializeToString() == number(1, 3) + number(2, 4) + text(3, b"k") + number(4, 9) + text(
        6, b"c"
    )
    ack = message("BatchAck")(ID="b", statuses=[OK, SKIPPED, FAIL])
    assert ack.SerializeToString() == text(1, b"b") + text(2, bytes([0, 1, 2]))
    limit = message("CountUrlParams").FromString(text(1, b"k") + text(3, b"f") + number(4, 1) + number(5, 1))
    assert (limit.key, limit.filter, limit.ignoreCase, limit.local) == ("k", "f", True, True)


def test_a_crawl_with_too_many_sessions_gives_no_urls(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 0)
    with frontier(tmp_path / "crawl") as client:
        code, details = refusal(client, "GetURLs", max_queues=1)
    assert code == "RESOURCE_EXHAUSTED"
    assert "open sessions" in details


def test_urls_are_put_and_got(tmp_path):
    with frontier(tmp_path / "crawl") as client:
        assert client.put(
            client.discovered(URL, key=HOST, depth=["0"]),
            client.discovered(URL),
            client.discovered(f"{URL}x", key="another.example"),
            client.discovered("no url"),
            client.discovered(f"http://b.{HOST}/", crawl="unknown"),
            client.make("URLItem", ID="nothing"),
        ) == [
            (URL, OK),
            (URL, SKIPPED),
            (f"{URL}x", SKIPPED),
            ("no url", SKIPPED),
            (f"http://b.{HOST}/", FAIL),
            ("nothing", SKIPPED),
        ]
        assert client.put_batch(
            client.info(f"{URL}1"),
            client.info(f"{URL}1"),
            client.info(URL),
            client.info("http://b.example/", key="b.example"),
            client.info("http://b.example/", crawl="unknown"),
            client.info(f"http://www.{HOST}/", key=HOST),
        ) == [OK, SKIPPED, SKIPPED, OK, FAIL, OK]
        assert client.put_batch() == []
        (first,) = client.ask("GetURLs", key=HOST, crawlID="crawl", max_urls_per_queue=1)
        assert (first.key, first.crawlID) == (HOST, "crawl")
        others = client.ask("GetURLs", max_urls_per_queue=1, max_queues=2)
        assert len(others) == 2
        assert len({info.key for info in others}) == 2
        rest = client.ask("GetURLs", anyCrawlID={})
        got = urls([first, *others, *rest])
        assert sorted(got) == sorted([URL, f"{URL}1", "http://b.example/", f"http://www.{HOST}/"])
        seed = next(info for info in [first, *others, *rest] if info.url == URL)
        assert list(seed.metadata["depth"].values) == ["0"]
        assert client.ask("GetURLs") == []
        # What became of them: fetched for good, to be fetched again, failed, and failed for good.
        later = int(time.time()) + 1000
        assert client.put(
            client.known(URL),
            client.known(f"{URL}1", later, depth=["7"]),
            client.known("http://b.example/", later, fetch_error_count=["1"], fetch_statusCode=["503"]),
            client.known(f"http://www.{HOST}/", 0, error_cause=["gone"], fetch_statusCode=["410"]),
        ) == [(URL, OK), (f"{URL}1", OK), ("http://b.example/", OK), (f"http://www.{HOST}/", OK)]
        status = {url: client.ask("GetURLStatus", url=url) for url in got}
        assert {url: one.known.refetchable_from_date - later in (-1, 0) for url, one in status.items()} == {
            URL: False,
            f"{URL}1": True,
            "http://b.example/": True,
            f"http://www.{HOST}/": False,
        }
        assert list(status[f"{URL}1"].known.info.metadata["depth"].values) == ["7"]
        # A repeated answer does not count again, and a date that is over lets the page be fetched again.
        assert client.put(client.known(URL, 1)) == [(URL, OK)]
        assert urls(client.ask("GetURLs")) == [URL]
    with inlink.Crawl(tmp_path / "crawl") as crawl:
        assert crawl.page(URL).crawls == 1
        assert crawl.page("http://b.example/").status == 503
        assert crawl.page(f"http://www.{HOST}/").error == "gone"


def test_calls_that_look(tmp_path):
    with frontier(tmp_path / "crawl", tmp_path / "other") as client:
        some = [f"http://h{k % 3}.example/{k:02d}" for k in range(30)]
        assert client.put_batch(*map(client.info, some)) == [OK] * 30
        assert list(client.ask("ListCrawls").values) == ["crawl", "other"]
        assert list(client.ask("ListNodes").values) == [client.where]
        assert client.ask("CountURLs").value == 30
        assert client.ask("CountURLs", crawlID="other").value == 0
        assert client.ask("CountURLs", key="h1.example").value == 10
        assert client.ask("CountURLs", filter="H1.EXAMPLE/2").value == 0
        assert client.ask("CountURLs", filter="H1.EXAMPLE/2", ignoreCase=True).value == 3
        shown = [item.known.info.url for item in client.ask("ListURLs", start=5, size=4)]
        assert shown == some[5:9]
        shown = [item.ID for item in client.ask("ListURLs", key="h2.example", filter="/1", start=1)]
        assert shown == ["http://h2.example/14", "http://h2.example/17"]
        queues = client.ask("ListQueues", start=1, size=5)
        assert (list(queues.values), queues.total, queues.crawlID) == (
            ["h1.example", "h2.example"],
            3,
            "crawl",
        )
        client.ask("GetURLs", max_urls_per_queue=2, max_queues=2)
        stats = client.ask("GetStats")
        assert (stats.size, stats.inProcess, stats.numberOfQueues) == (26, 4, 3)
        assert stats.counts["completed"] == 0
        assert sum(client.ask("GetStats", key=f"h{k}.example").inProcess for k in range(3)) == 4
        assert refusal(client, "GetStats", key="unknown.example")[0] == "NOT_FOUND"
        assert refusal(client, "GetStats", crawlID="unknown")[0] == "NOT_FOUND"
        assert refusal(client, "GetURLStatus", url="http://unknown.example/")[0] == "NOT_FOUND"
        assert refusal(client, "GetURLStatus", url=some[0], key="h1.example")[0] == "NOT_FOUND"
        assert refusal(client, "GetURLStatus")[0] == "INVALID_ARGUMENT"
        assert refusal(client, "GetURLs", key="h1.example", anyCrawlID={})[0] == "INVALID_ARGUMENT"
        assert refusal(client, "ListURLs", crawlID="unknown")[0] == "NOT_FOUND"
        assert client.ask("GetURLs", key="unknown.example", crawlID="crawl") == []


def test_calls_that_steer_and_a_restart(tmp_path):
    with frontier(tmp_path / "crawl", policy="first-come") as client:
        client.put_batch(*(client.info(f"http://h{k % 5}.example/{k:02d}") for k in range(50)))
        assert client.ask("GetActive").state
        client.ask("SetActive", state=False)
        assert not client.ask("GetActive").state
        assert client.ask("GetURLs") == []
        client.ask("SetActive", state=True)
        client.ask("SetDelay", key="h0.example", delay_requestable=1000)
        client.ask("BlockQueueUntil", key="h1.example", time=int(time.time()) + 10_000)
        client.ask("SetCrawlLimit", key="h2.example", limit=3)
        assert client.ask("DeleteQueue", key="h3.example").value == 10
        assert client.ask("PurgeURLs", key="h4.example", days=1).value == 0
        first = urls(client.ask("GetURLs", delay_requestable=3600))
        by_host = {f"h{k}.example": sum(f"//h{k}." in url for url in first) for k in range(5)}
        assert by_host == {
            "h0.example": 1,
            "h1.example": 0,
            "h2.example": 3,
            "h3.example": 0,
            "h4.example": 10,
        }
        for call, fields in {
            "SetDelay": {"key": "unknown.example"},
            "BlockQueueUntil": {"key": "unknown.example"},
            "SetCrawlLimit": {"key": "unknown.example"},
            "DeleteQueue": {"key": "unknown.example"},
            "PurgeURLs": {"key": "unknown.example"},
            "DeleteCrawl": {"value": "unknown"},
        }.items():
            assert refusal(client, call, **fields)[0] == "NOT_FOUND", call
        for call in ("BlockQueueUntil", "SetCrawlLimit", "DeleteQueue"):
            assert refusal(client, call)[0] == "INVALID_ARGUMENT", call
        assert refusal(client, "DeleteCrawl", value="crawl")[0] == "FAILED_PRECONDITION"
        client.ask("SetLogLevel", package="inlink.levels", level=3)
        assert logging.getLogger("inlink.levels").level == logging.WARNING
        assert refusal(client, "SetLogLevel", package="grpc")[0] == "INVALID_ARGUMENT"
    with frontier(tmp_path / "crawl") as client:
        # Delays, blocks, limits and leases are as they were.
        more = urls(client.ask("GetURLs", delay_requestable=3600))
        assert {url[:10] for url in more} <= {"http://h0."}
        first += more
        assert len(first) == 14 + len(more) <= 15
        assert client.ask("GetURLs") == []
        assert client.ask("GetStats").inProcess == len(first)
        client.ask("BlockQueueUntil", key="h1.example", time=0)
        client.ask("SetCrawlLimit", key="h2.example", limit=0)
        client.ask("SetDelay", key="h0.example", delay_requestable=0)
        again = urls(client.ask("GetURLs"))
        assert len(again) == 50 - 10 - len(first)
        assert client.put(*(client.known(url) for url in first[:3])) == [(url, OK) for url in first[:3]]
        assert client.ask("GetStats").counts["completed"] == 3
        client.ask("SetDelay", delay_requestable=7)
    with inlink.Crawl(tmp_path / "crawl") as crawl:
        assert crawl.settings.politeness.delay == 7


@pytest.mark.slow
def test_a_url_that_nobody_answers_for_is_handed_out_again(tmp_path):
    with frontier(tmp_path / "crawl", retry_seconds=0.0) as client:
        client.put_batch(client.info(URL))
        assert urls(client.ask("GetURLs", delay_requestable=1)) == [URL]
        found = []
        while not found:
            found = urls(client.ask("GetURLs"))
            time.sleep(0.05)
        assert found == [URL]
        # The crawl goes on beside a page that was lost before.
        client.put_batch(client.info(f"{URL}x"))
        assert urls(client.ask("GetURLs")) == [f"{URL}x"]


def test_tokens_and_crawls(tmp_path):
    Tokens(tmp_path / "tokens.json").add("r", "reader")
    tokens = Tokens(tmp_path / "tokens.json")
    spider, reader, admin = (
        tokens.add(name, role, crawl)
        for name, role, crawl in (("s", "spider", "other"), ("r2", "reader", None), ("a", "admin", None))
    )
    with frontier(tmp_path / "crawl", tmp_path / "other", needs_token=True) as client:

        def bear(token: str) -> None:
            client.metadata = [("authorization", f"Bearer {token}")]

        assert refusal(client, "GetStats")[0] == "UNAUTHENTICATED"
        bear("wrong")
        assert refusal(client, "ListURLs")[0] == "UNAUTHENTICATED"
        with pytest.raises(grpc.RpcError, match="UNAUTHENTICATED"):
            client.put(client.discovered(URL))
        bear(reader)
        assert client.ask("GetStats").size == 0
        assert refusal(client, "GetURLs")[0] == "PERMISSION_DENIED"
        assert refusal(client, "SetActive")[0] == "PERMISSION_DENIED"
        bear(spider)
        assert sorted(client.put(client.discovered(URL, crawl="other"), client.discovered(f"{URL}1"))) == [
            (URL, OK),
            (f"{URL}1", FAIL),
        ]
        assert urls(client.ask("GetURLs", crawlID="other")) == [URL]
        assert refusal(client, "SetDelay", crawlID="other")[0] == "PERMISSION_DENIED"
        bear(admin)
        client.ask("SetDelay", crawlID="other", delay_requestable=3)


def test_date_zero_finishes_a_url_that_had_another_date(tmp_path):
    with frontier(tmp_path / "crawl") as client:
        client.put_batch(client.info(URL), client.info(f"{URL}1"))
        assert set(urls(client.ask("GetURLs"))) == {URL, f"{URL}1"}
        later = int(time.time()) + 1000
        assert client.put(client.known(URL, later), client.known(f"{URL}1", 0)) == [
            (URL, OK),
            (f"{URL}1", OK),
        ]
        assert client.ask("GetURLStatus", url=URL).known.refetchable_from_date > 0
        # A date that has passed lets it wait. Date 0 takes it back.
        assert client.put(client.known(URL, 1)) == [(URL, OK)]
        assert client.put(client.known(URL, 0)) == [(URL, OK)]
        assert client.ask("GetURLStatus", url=URL).known.refetchable_from_date == 0
        assert client.ask("GetURLs") == []
    with frontier(tmp_path / "crawl") as client:
        assert client.ask("GetURLs") == []
        assert client.ask("GetStats").size == 0


def test_a_redirect_that_nobody_asked_for_is_merged(tmp_path):
    with frontier(tmp_path / "crawl") as client:
        known = {"_redirTo": [f"{URL}to"], "fetch_statusCode": ["308"]}
        assert client.put(client.known(URL, 0, **known)) == [(URL, OK)]
        assert urls(client.ask("GetURLs")) == [f"{URL}to"]
    with inlink.Crawl(tmp_path / "crawl") as crawl:
        page = crawl.page(URL)
        assert (page.merged_into, page.merge_reason, page.status) == (f"{URL}to", "redirect", 308)


@pytest.mark.slow
def test_expired_urls_are_not_in_process(tmp_path):
    with frontier(tmp_path / "crawl") as client:
        client.put_batch(client.info(URL))
        assert urls(client.ask("GetURLs", delay_requestable=1)) == [URL]
        wait_until(lambda: client.ask("GetStats").inProcess == 0, "the end of the lease")
        assert client.ask("GetStats", key=HOST).inProcess == 0
        assert client.ask("GetStats").size == 1
