"""The certificate of a crawl in its standing: computed only for those who ask."""

import threading
import time

import msgspec
import pytest

import inlink
from crawlstrategies import EAGER
from inlink.crawl.certificate import certify
from inlink.crawl.view import CrawlView
from inlink.errors import InlinkError, ParameterError
from inlink.protocol import Standing
from served import served

SITE = {n: [1, 2, n // 2 or 3, n + 1] for n in range(1, 300)}


def fill(crawl, steps):
    for _ in range(steps):
        for lease in crawl.next(1):
            crawl.crawled(lease, [f"/{n}" for n in SITE[int(lease.url.rpartition("/")[2])]])


def computed(ask, fetched):
    """The certificate, once it covers this number of fetched pages; the test's time limit ends the wait."""
    while True:
        found = ask()
        if found is not None and found.fetched >= fetched:
            return found
        time.sleep(0.05)


def certifying():
    return any(thread.name == "inlink-certificate" for thread in threading.enumerate())


@pytest.fixture
def crawl(tmp_path):
    with inlink.Crawl(tmp_path / "c", clock=inlink.VirtualClock(), politeness=EAGER) as crawl:
        crawl.seed(["http://a.example/1"])
        fill(crawl, 30)
        yield crawl


def test_a_standing_without_a_question_costs_nothing_and_is_encoded_as_before(crawl):
    found = crawl.standing()
    assert found.certificate is msgspec.UNSET
    text = msgspec.json.encode(found)
    assert b"certificate" not in text
    assert msgspec.json.decode(text, type=Standing) == found
    assert not certifying()


def test_a_standing_has_the_certificate_that_certify_computes(crawl):
    found = computed(lambda: crawl.standing(0, top=3, within=0.01).certificate, 30)
    expected = certify(crawl.folder, 3, 0.01)
    assert [(row.url, row.certain) for row in found.places] == [
        (row.url, row.certain) for row in expected.places
    ]
    assert found.holds
    assert found.outside == pytest.approx(expected.outside, abs=1e-5)
    text = msgspec.json.encode(crawl.standing(0, top=3, within=0.01))
    assert msgspec.json.decode(text, type=Standing).certificate == found
    # Another question is answered from the same bounds.
    assert len(crawl.standing(0, top=5).certificate.places) == 5


@pytest.mark.slow
def test_the_certificate_follows_the_crawl(crawl):
    first = computed(lambda: crawl.standing(0, top=2).certificate, 30)
    fill(crawl, 60)
    later = computed(lambda: crawl.standing(0, top=2).certificate, 90)
    assert later.fetched > first.fetched >= 30


def test_a_view_of_a_folder_has_it_too(crawl):
    with CrawlView.open(crawl.folder) as view:
        assert computed(lambda: view.standing(0, top=2, within=1).certificate, 30).holds


@pytest.mark.slow
def test_a_crawl_without_seeds_has_none(tmp_path):
    with inlink.Crawl(tmp_path / "c", politeness=EAGER) as crawl:
        assert crawl.standing(0, top=10).certificate is None
        time.sleep(0.1)
        assert crawl.standing(0, top=10).certificate is None
        crawl.seed(["http://a.example/1"])
        found = computed(lambda: crawl.standing(0, top=10).certificate, 0)
        assert [row.certain for row in found.places] == [False]


def test_closing_the_crawl_ends_the_thread(tmp_path):
    with inlink.Crawl(tmp_path / "c", politeness=EAGER) as crawl:
        crawl.seed(["http://a.example/1"])
        crawl.standing(0, top=10)
        assert certifying()
    assert not certifying()


def test_a_fault_is_told_once_and_the_next_question_begins_anew(crawl, monkeypatch):
    broken = True

    def look(self):
        if broken:
            raise InlinkError("the log is damaged")
        return original(self)

    original = inlink.crawl.certificate.Certifier.look
    monkeypatch.setattr("inlink.crawl.certificate.Certifier.look", look)
    with pytest.raises(InlinkError, match="the log is damaged"):
        computed(lambda: crawl.standing(0, top=2).certificate, 30)
    broken = False
    # A thread that met the fault may still be ending.
    while True:
        try:
            computed(lambda: crawl.standing(0, top=2).certificate, 30)
            break
        except InlinkError:
            time.sleep(0.05)


@pytest.mark.parametrize(
    "given",
    [
        {"top": 0}, {"top": -1}, {"top": 1001}, {"top": 2.5}, {"top": "ten"}, {"top": True},
        {"top": 10, "within": -1e-9}, {"top": 10, "within": 1.1}, {"top": 10, "within": float("nan")},
        {"top": 10, "within": float("inf")}, {"top": 10, "within": "little"},
    ],
)  # fmt: skip
def test_wrong_values_start_no_thread(crawl, given):
    with pytest.raises(ParameterError, match=r"must be a (whole )?number in|must be a number"):
        crawl.standing(0, **given)
    assert not certifying()


def test_a_server_has_it_for_those_who_ask(tmp_path):
    with inlink.Crawl(tmp_path / "c", clock=inlink.VirtualClock(), politeness=EAGER) as crawl:
        crawl.seed(["http://a.example/1"])
        fill(crawl, 30)
    with served(tmp_path / "c") as server:
        status, plain = server.crawl("GET", "standing?hosts=0")
        assert status == 200
        assert "certificate" not in plain
        remote = inlink.connect(f"{server.url}/v1/crawls/c")
        found = computed(lambda: remote.standing(0, top=3, within=0.01).certificate, 30)
        assert [row.certain for row in found.places] == [
            row.certain for row in certify(tmp_path / "c", 3, 0.01).places
        ]
        assert remote.standing(0).certificate is msgspec.UNSET
        for wrong in ("top=0", "top=x", "top=3&within=2", "top=3&within=nan", "top=3&within=-1"):
            status, told = server.crawl("GET", f"standing?{wrong}")
            assert status in (400, 422), told
            assert "\n" not in told["error"]
        remote.close()
