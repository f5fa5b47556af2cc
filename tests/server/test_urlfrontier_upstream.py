"""Ports of the tests of URLFrontier's own server, with calls of our client. Names follow theirs."""

import itertools
import time

import grpc
import pytest

from frontiered import Frontier, frontier
from inlink.frontier.revisit import FixedInterval
from patience import wait_until

OK, SKIPPED, FAIL = 0, 1, 2
HOST, OTHER = "www.mysite.com", "another.example"
SITE = f"https://{HOST}"
NOW = int(time.time())
DAY = 86_400
"""Seconds. No test run takes a day, so a date one day after its start is still in the future."""


@pytest.fixture
def client(tmp_path):
    with frontier(clients=tmp_path / "clients") as made:
        yield made


def delete_all(client: Frontier) -> None:
    for name in client.ask("ListCrawls").values:
        client.ask("DeleteCrawl", value=name)
    assert list(client.ask("ListCrawls").values) == []


def got(client: Frontier, **fields) -> list[str]:
    return [info.url for info in client.ask("GetURLs", **{"crawlID": "DEFAULT"} | fields)]


def date_of(client: Frontier, url: str, crawl: str = "") -> int:
    item = client.ask("GetURLStatus", url=url, crawlID=crawl)
    assert item.WhichOneof("item") == "known"
    return item.known.refetchable_from_date


# -- the integration suite --------------------------------------------------------------------------------------------


def test_never_refetched(client):
    assert client.put(client.known("http://key1.com/", key="key1.com")) == [("http://key1.com/", OK)]
    assert got(client, key="key1.com", max_urls_per_queue=1, delay_requestable=2) == []


@pytest.mark.parametrize("reopened", [False, True])
def test_right_order(tmp_path, reopened):
    by_date = {"clients": tmp_path / "clients", "policy": "date"}
    with frontier(**by_date) as client:
        later, sooner = "http://key1.com/later", "http://key1.com/sooner"
        client.put(client.known(later, NOW), client.known(sooner, NOW - 10_000))
        if not reopened:
            assert got(client, key="key1.com", max_urls_per_queue=2) == [sooner, later]
    if reopened:
        with frontier(**by_date) as client:
            assert got(client, key="key1.com", max_urls_per_queue=1) == [sooner]


def test_updates(client):
    url, key = "http://key1.com/", "key1.com"
    asked = {"key": key, "max_urls_per_queue": 1, "delay_requestable": 1}
    twice = [client.discovered(url, key=key)] * 2
    assert client.put(*twice) == [(url, OK), (url, SKIPPED)]
    assert list(client.ask("ListQueues").values) == [key]
    assert got(client, **asked) == [url]
    stats = client.ask("GetStats", key=key)
    assert (stats.numberOfQueues, stats.inProcess) == (1, 1)
    assert got(client, **asked) == []
    wait_until(lambda: client.ask("GetStats", key=key).inProcess == 0, "the end of the lease")
    assert client.ask("GetStats", key=key).numberOfQueues == 1
    assert client.ask("GetStats", key=key).size == 1
    assert client.ask("DeleteQueue", key=key).value == 1
    stats = client.ask("GetStats", key=key)
    assert (stats.numberOfQueues, stats.size, stats.inProcess) == (0, 0, 0)
    assert client.ask("GetStats").numberOfQueues == 0


def test_queue_names(client):
    client.put(client.discovered("http://gac.icann.org?language_id=9"))
    assert client.ask("GetStats", key="gac.icann.org").size == 1
    assert client.ask("DeleteQueue", key="gac.icann.org").value == 1


def test_crawl_ids(client):
    url = "http://urlfrontier.net/"
    assert list(client.ask("ListCrawls").values) == []
    for crawl, status in (("BESPOKE", OK), ("", OK), ("DEFAULT", SKIPPED)):
        assert client.put(client.discovered(url, crawl=crawl)) == [(url, status)]
    for crawl in ("DEFAULT", "BESPOKE"):
        stats = client.ask("GetStats", crawlID="" if crawl == "DEFAULT" else crawl)
        assert (stats.size, stats.crawlID, stats.numberOfQueues) == (1, crawl, 1)
    for crawl in ("DEFAULT", "BESPOKE"):
        name = "" if crawl == "DEFAULT" else crawl
        client.ask("DeleteCrawl", value=name)
        stats = client.ask("GetStats", crawlID=name)
        assert (stats.size, stats.crawlID) == (0, crawl)


def dump(client: Frontier) -> list:
    items = []
    for crawl in client.ask("ListCrawls").values:
        for key in client.ask("ListQueues", crawlID=crawl, include_inactive=True).values:
            items += client.ask("ListURLs", crawlID=crawl, key=key)
    assert {item.WhichOneof("item") for item in items} == {"known"}
    return items


def test_round_trip(client):
    later = NOW + DAY
    assert {status for _, status in client.put(
        client.discovered("http://example.com/discovered", source=["seed"]),
        client.known("http://example.com/done"),
        client.known("http://example.com/later", later),
        client.discovered("http://bespoke.com/", crawl="BESPOKE"),
    )} == {OK}  # fmt: skip
    items = dump(client)
    assert len(items) == 4
    delete_all(client)
    assert {status for _, status in client.put(*items)} == {OK}
    assert date_of(client, "http://example.com/done") == 0
    assert date_of(client, "http://example.com/later") in (later - 1, later)
    item = client.ask("GetURLStatus", url="http://example.com/discovered")
    assert list(item.known.info.metadata["source"].values) == ["seed"]
    assert client.ask("CountURLs", crawlID="BESPOKE").value == 1
    # A URL that was only discovered is not a page that was fetched, and waits.
    assert client.ask("GetStats").counts["completed"] == 1
    # The host may be asked again after its delay.
    wait_until(lambda: got(client) == ["http://example.com/discovered"], "the URL that waits")


def test_parallel_dump(client):
    some = [f"http://site{k % 10}.com/page{k}" for k in range(20)]
    client.put(*map(client.discovered, some), client.discovered("http://bespoke.com/", crawl="BESPOKE"))
    items = dump(client)
    delete_all(client)
    client.put(*items)
    assert client.ask("CountURLs").value == 20
    assert client.ask("CountURLs", crawlID="BESPOKE").value == 1


# -- the tests of the service -----------------------------------------------------------------------------------------


@pytest.fixture
def filled(client):
    """The crawl that most tests of the service begin with; their opaque keys are hosts here."""
    urls = [f"{SITE}/{name}" for name in ("discovered", "completed", "knowntorefetch")]
    client.put(
        client.discovered(urls[0], key=HOST, meta1=["md1"]),
        client.discovered(urls[1], key=HOST, meta1=["md2"]),
        client.known(urls[1], key=HOST, meta1=["md2"]),
        client.known(urls[2], NOW + DAY, key=HOST, meta3=["md3"]),
        client.known(f"https://{OTHER}/secondqueue", NOW + DAY, key=OTHER, meta4=["md4"]),
        client.known("https://www.delete.me/tobedeleted", NOW + DAY, key="www.delete.me"),
    )
    return client


@pytest.mark.parametrize(
    ("name", "due"), [("discovered", True), ("completed", False), ("knowntorefetch", True)]
)
def test_get_status(filled, name, due):
    item = filled.ask("GetURLStatus", key=HOST, url=f"{SITE}/{name}")
    assert item.WhichOneof("item") == "known"
    assert (item.known.refetchable_from_date > 0) == due
    assert NOW <= item.creation_date <= time.time()


def test_list_urls_of_a_queue_with_their_creation_dates(filled):
    (item,) = filled.ask("ListURLs", key=OTHER, size=100)
    assert item.WhichOneof("item") == "known"
    assert NOW <= item.creation_date <= time.time()
    assert len(filled.ask("ListURLs")) == 5


@pytest.mark.slow
def test_updating_or_completing_a_url_keeps_its_creation_date(client, monkeypatch):
    client.put(client.discovered(f"{SITE}/a"), client.discovered(f"{SITE}/b"))
    before = [client.ask("GetURLStatus", url=f"{SITE}/{name}").creation_date for name in "ab"]
    time.sleep(1.1)
    client.put(client.known(f"{SITE}/a", NOW + DAY), client.known(f"{SITE}/b"))
    assert [client.ask("GetURLStatus", url=f"{SITE}/{name}").creation_date for name in "ab"] == before


def test_reschedule_completed(filled):
    url, far = f"{SITE}/knowntorefetch", NOW + 300_000_000
    assert date_of(filled, url) > NOW
    assert filled.put(filled.discovered(url, key=HOST, updated=["md2"])) == [(url, SKIPPED)]
    assert filled.put(filled.known(url, far, key=HOST, updated=["md2"])) == [(url, OK)]
    assert date_of(filled, url) in (far - 1, far)
    for _ in range(2):
        assert filled.put(filled.known(url, key=HOST)) == [(url, OK)]
        assert date_of(filled, url) == 0


ANSWERS: list[dict] = [
    {},
    {"fetch_statusCode": ["200"]},
    {"fetch_statusCode": ["304"]},
    {"fetch_statusCode": ["503"], "fetch_error_count": ["1"]},
]


@pytest.mark.slow
@pytest.mark.parametrize("leased", [False, True], ids=["by-url", "leased"])
@pytest.mark.parametrize("revisit", [None, FixedInterval(1.0)])
def test_date_zero_ends_a_date(tmp_path, leased, revisit):
    """After any answer with a date, an answer with date 0 ends it, whether or not a client holds the URL."""
    settings = {"policy": "date", "revisit": revisit, "retry_seconds": 0.0}
    with frontier(clients=tmp_path / "clients", **settings) as client:
        pairs = list(itertools.product(range(len(ANSWERS)), range(len(ANSWERS)), (1, NOW + DAY)))
        urls = {pair: f"{SITE}/{'-'.join(map(str, pair))}" for pair in pairs}
        client.put_batch(*map(client.info, urls.values()))
        if leased:
            assert len(got(client)) == len(urls)
        for pair, url in urls.items():
            assert client.put(client.known(url, pair[2], **ANSWERS[pair[0]])) == [(url, OK)]
        if leased:
            # Those whose date has passed are leased again, the others are not.
            assert set(got(client)) == {url for pair, url in urls.items() if pair[2] == 1}
        for pair, url in urls.items():
            assert client.put(client.known(url, **ANSWERS[pair[1]])) == [(url, OK)]
        assert {pair: date_of(client, url) for pair, url in urls.items()} == dict.fromkeys(pairs, 0)
        assert client.ask("GetStats").size == 0
        time.sleep(1.1 if revisit else 0)
        assert got(client) == []


def test_max_urls_per_queue_takes_the_oldest_first(tmp_path):
    with frontier(clients=tmp_path / "clients", policy="date") as client:
        dates = {"a": -100, "b": DAY, "c": -50, "d": -51, "e": -49}
        client.put(*(client.known(f"{SITE}/{name}", NOW + seconds) for name, seconds in dates.items()))
        assert got(client, max_urls_per_queue=2) == [f"{SITE}/a", f"{SITE}/d"]
        assert got(client) == [f"{SITE}/c", f"{SITE}/e"]
        assert got(client) == []


@pytest.mark.slow
def test_sending_marks_urls_as_in_process(client):
    client.put_batch(*(client.info(f"{SITE}/{k}") for k in range(5)))
    assert len(got(client, max_urls_per_queue=2, delay_requestable=1)) == 2
    assert client.ask("GetStats", key=HOST).inProcess == client.ask("GetStats").inProcess == 2
    wait_until(lambda: client.ask("GetStats").inProcess == 0, "the end of the leases")
    assert client.ask("GetStats", key=HOST).inProcess == 0
    assert client.ask("GetStats", key=HOST).size == client.ask("GetStats").size == 5


@pytest.mark.slow
def test_expired_urls_are_sent_again(tmp_path):
    with frontier(clients=tmp_path / "clients", retry_seconds=0.0) as client:
        client.put_batch(client.info(f"{SITE}/a"))
        assert got(client, delay_requestable=1) == [f"{SITE}/a"]
        assert got(client) == []
        wait_until(lambda: got(client) == [f"{SITE}/a"], "the URL to be sent again")


def test_delete_queue(filled):
    # It counts URLs that wait, that have a date, and that are out; not those that are completed.
    assert len(got(filled, key=HOST)) == 1
    assert filled.ask("DeleteQueue", key=HOST).value == 2
    assert filled.ask("GetStats", key=HOST).inProcess == 0
    assert got(filled) == []
    names = filled.ask("ListQueues", include_inactive=True)
    # The completed page stays in the crawl.
    assert list(names.values) == [HOST, OTHER, "www.delete.me"]
    assert filled.ask("DeleteQueue", key=OTHER).value == 1
    assert list(filled.ask("ListQueues", include_inactive=True).values) == [HOST, "www.delete.me"]
    with pytest.raises(grpc.RpcError, match="NOT_FOUND"):
        filled.ask("DeleteQueue", key="unknown.example")


def test_delete_crawl_and_a_crawl_that_is_not_there(filled):
    assert filled.ask("DeleteCrawl").value == 5
    assert filled.ask("DeleteCrawl").value == 0
    stats = filled.ask("GetStats")
    assert (stats.size, stats.numberOfQueues, dict(stats.counts)) == (0, 0, {})
    assert filled.put(filled.discovered(f"{SITE}/discovered")) == [(f"{SITE}/discovered", OK)]


def test_purge(filled):
    assert filled.ask("PurgeURLs", days=365).value == 0
    assert filled.ask("GetStats").size == 4
    assert filled.ask("PurgeURLs", key=OTHER).value == 1
    assert filled.ask("PurgeURLs").value == 3
    assert filled.ask("GetStats").size == 0
    assert got(filled) == []
