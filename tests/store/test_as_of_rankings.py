"""Rankings in a crawl's log: the one that held at an earlier event is computed again, bit by bit."""

import json
import shutil
import time
import zlib

import msgspec
import numpy as np
import pytest

import inlink
from foldercommands import shell
from inlink.base.folder import Folder
from inlink.crawl import upkeep
from inlink.crawl.adopted import Adopted, Parameters, adopted_rankings, chain_of
from inlink.crawl.asof import as_of
from inlink.sources.crawlgraph import graph_in
from inlink.store.format import HEAD_SIZE, SETTINGS, RankingRecord, head_check, salt_of, size_of
from inlink.store.reader import hash_seed_of, known_pages
from inlink.store.repair import repair
from patience import wait_until

EASY = inlink.Politeness(delay=0, in_flight=1000)


@pytest.fixture(autouse=True)
def _many_rankings(monkeypatch):
    monkeypatch.setattr(upkeep, "FIRST_PAGES", 5)
    monkeypatch.setattr(upkeep, "LEAST_GROWTH", 4)
    monkeypatch.setattr(upkeep, "EARLY_PAGES", 4)


def opened(folder, **more):
    return inlink.Crawl(folder, politeness=EASY, rerank_share=0.2, clock=inlink.VirtualClock(1_000.0), **more)


def crawl_some(crawl, count, first):
    """Crawl pages whose links depend on their number only."""
    for k in range(first, first + count):
        for lease in crawl.next(1):
            links = [f"http://h{(k * j) % 5}.example/{(k * j) % 37}" for j in range(1, 7)]
            crawl.crawled(lease, links, score=(k % 7) / 7)


def order(folder):
    return [(row.url, row.priority) for row in inlink.CrawlView.open(folder, lambda: 1e6).order(50).rows]


def ranks_in(folder):
    return Folder(folder / "ranks", "ranks", 1).array("rank").tobytes()


def listed(folder):
    pages = known_pages(folder, with_urls=False)
    try:
        return adopted_rankings(pages)
    finally:
        pages.close()


POLICIES = [
    {"policy": "host-diverse"},
    {"policy": "pagerank", "use_scores": True, "damping": 0.7, "cross_domain_only": True},
    {"policy": "hits"},
    {"policy": "hits-by-score", "use_scores": True},
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        pytest.param(each, marks=[pytest.mark.soak] * (each["policy"] in ("pagerank", "hits")))
        for each in POLICIES
    ],
    ids=lambda given: given["policy"],
)
def test_each_ranking_is_computed_again_bit_by_bit(tmp_path, given):
    # The crawl is opened three times, so some rankings start from the values of the one before.
    folder, ends = tmp_path / "c", []
    for part in range(3):
        with opened(folder, **given) as crawl:
            crawl.seed(["http://h0.example/"])
            for step in range(4):
                crawl_some(crawl, 4, 16 * part + 4 * step)
                ends.append((crawl.view.info().events, tmp_path / f"c{len(ends)}"))
                shutil.copytree(folder, ends[-1][1], ignore=shutil.ignore_patterns("lock", "inbox"))
    assert len(listed(folder)) >= 5
    assert {one.parameters.anew for one in listed(folder)} == {True, False}
    for event, ended in ends:
        with as_of(folder, event, tmp_path) as was:
            assert was.approximate == ""
            assert (was.folder / "ranks").exists() == (ended / "ranks").exists()
            if (ended / "ranks").exists():
                assert ranks_in(was.folder) == ranks_in(ended)
            assert order(was.folder) == order(ended)


@pytest.mark.slow
def test_the_process_that_ranks_has_the_same_bits(tmp_path):
    folder = tmp_path / "c"
    with inlink.Crawl(folder, policy="pagerank", politeness=EASY, rerank_share=None) as crawl:
        crawl.seed(["http://h0.example/"])
        for part in range(2):
            crawl_some(crawl, 12, 12 * part)
            crawl.rerank()
            while crawl.ranking:
                crawl.next(0)
                time.sleep(0.005)
            shutil.copytree(folder, tmp_path / f"c{part}", ignore=shutil.ignore_patterns("lock", "inbox"))
            if not part:
                event = crawl.view.info().events
    first, second = listed(folder)
    assert (first.parameters.before, second.parameters.before) == (None, first.identity)
    assert second.check == zlib.crc32(ranks_in(folder))
    with as_of(folder, event, tmp_path) as was:
        assert was.approximate == ""
        assert ranks_in(was.folder) == ranks_in(tmp_path / "c0")


@pytest.mark.slow
def test_a_ranking_at_once_starts_from_what_the_process_has_published(tmp_path):
    folder = tmp_path / "c"
    with inlink.Crawl(folder, policy="pagerank", politeness=EASY, rerank_share=None) as crawl:
        crawl.seed(["http://h0.example/"])
        crawl_some(crawl, 12, 0)
        crawl.rerank()
        crawl_some(crawl, 3, 12)
        wait_until((folder / "ranks").exists, "a ranking of the process")
        crawl.rerank(wait=True)
        wanted, event = ranks_in(folder), crawl.view.info().events
        crawl_some(crawl, 3, 15)
        crawl.rerank(wait=True)
    first, second, _ = listed(folder)
    assert second.parameters.before == first.identity
    with as_of(folder, event, tmp_path) as was:
        assert was.approximate == ""
        assert ranks_in(was.folder) == wanted


def test_a_ranking_whose_event_was_lost_is_written_when_the_crawl_is_opened(tmp_path):
    folder = tmp_path / "c"
    with opened(folder, policy="pagerank") as crawl:
        crawl.seed(["http://h0.example/"])
        crawl_some(crawl, 5, 0)
        crawl_some(crawl, 1, 5)
    (ranking,) = listed(folder)
    # The crawl was killed after the ranking was published, and before its event was written.
    with (folder / "events.log").open("r+b") as log:
        log.truncate(ranking.place)
    # It names a later sync.
    (folder / "end.bin").unlink()
    shutil.rmtree(folder / "index", ignore_errors=True)
    for _ in range(2):
        with opened(folder, policy="pagerank"):
            pass
        (again,) = listed(folder)
        assert (again.identity, again.parameters) == (ranking.identity, ranking.parameters)


def test_views_write_no_event(tmp_path):
    folder = tmp_path / "c"
    with opened(folder, policy="pagerank") as crawl:
        crawl.seed(["http://h0.example/"])
        crawl_some(crawl, 12, 0)
    before = (folder / "events.log").read_bytes()
    order(folder)
    with as_of(folder, 3, tmp_path) as was:
        order(was.folder)
    assert (folder / "events.log").read_bytes() == before


@pytest.fixture
def ranked(tmp_path, request):
    """A crawl that was ranked several times, and the event of its third ranking."""
    folder = tmp_path / "mine"
    with opened(folder, policy=getattr(request, "param", "pagerank")) as crawl:
        crawl.seed(["http://h0.example/"])
        crawl_some(crawl, 30, 0)
    assert len(listed(folder)) > 3
    return folder


def with_payload(folder, number, change):
    """Change the JSON of a ranking's event to text of the same length."""
    place = listed(folder)[number].place
    log = bytearray((folder / "events.log").read_bytes())
    length = int.from_bytes(log[place + 4 : place + 8], "little")
    begin = place + HEAD_SIZE
    payload = bytes(log[begin : place + length])
    record, text = payload[: size_of(RankingRecord)], payload[size_of(RankingRecord) :]
    new = record + change(text).ljust(len(text))[: len(text)]
    log[begin : place + length] = new
    log[place + HEAD_SIZE - 12 : place + HEAD_SIZE - 8] = zlib.crc32(new).to_bytes(4, "little")
    checked = bytes(log[place : place + HEAD_SIZE - 4])
    log[place + HEAD_SIZE - 4 : place + HEAD_SIZE] = head_check(checked, salt_of(hash_seed_of(folder)))
    (folder / "events.log").write_bytes(log)
    shutil.rmtree(folder / "index", ignore_errors=True)


def changed(**parameters):
    def change(text):
        algorithm, given = json.loads(text)
        return msgspec.json.encode([algorithm, given | parameters])

    return change


def test_the_rankings_are_listed(ranked):
    shown = shell("dump", "rankings", "mine", cwd=ranked.parent)
    head, *rows = [line.split("\t") for line in shown.splitlines()]
    assert head[:4] == ["event", "time", "algorithm", "damping"]
    assert [int(row[0]) for row in rows] == [event_of(ranked, k) for k in range(len(rows))]
    assert rows[-1][2:] == [
        "pagerank", "0.85", "0.0001", "0", "0", "0",
        str(len(ranks_in(ranked)) // 4), str(listed(ranked)[-1].covers), f"{zlib.crc32(ranks_in(ranked)):08x}",
    ]  # fmt: skip


UNKNOWN = [
    lambda text: b"[",
    lambda text: b'["pagerank"]',
    lambda text: b'["pagerank",{"damping":"x"}]',
    lambda text: b'["pagerank",{"damping":2.0}]',
    lambda text: b"[" * 60,
]


@pytest.mark.parametrize("change", UNKNOWN)
def test_a_ranking_that_cannot_be_read_is_told(ranked, tmp_path, change):
    with_payload(ranked, 2, change)
    with as_of(ranked, listed(ranked)[2].time, tmp_path):
        pass
    place = event_of(ranked, 2)
    with as_of(ranked, place, tmp_path) as was:
        assert was.approximate.startswith("the log lacks the ranking that held then")
        assert order(was.folder)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (2, changed(before=None)),
        (0, changed(damping=0.5)),
        (2, changed(before=[5, 5])),
        (2, changed(anew=True)),
        (1, lambda text: b"["),
    ],
)
def test_a_ranking_that_comes_out_otherwise_is_approximate(ranked, tmp_path, number, change):
    with_payload(ranked, number, change)
    with as_of(ranked, event_of(ranked, 2), tmp_path) as was:
        assert was.approximate.startswith("the ranking that held then could not be computed again")
        assert Folder(was.folder / "ranks", "ranks", 1).header.meta["covers"] == listed(ranked)[2].covers
        assert order(was.folder)


def event_of(folder, number):
    """The number of the event of a ranking."""
    place = listed(folder)[number].place
    pages = known_pages(folder, with_urls=False)
    try:
        kinds = [kind for kind in range(1, 25) if kind != 23]
        return int(np.searchsorted(pages.frames.of_kind(*kinds), place, "right"))
    finally:
        pages.close()


@pytest.mark.parametrize(
    ("befores", "chain"),
    [
        ([None, (10, 0), (20, 1)], [0, 1, 2]),
        # Two processes ranked: the third ranking goes on from the first.
        ([None, None, (10, 0)], [0, 2]),
        ([None, (10, 7), (20, 1)], None),
        ([(10, 0), (10, 0), (20, 1)], None),
        ([(30, 2), (10, 0), (20, 1)], None),
        ([(-1, -1)], None),
    ],
)
def test_a_chain_begins_with_a_ranking_that_started_from_nothing(befores, chain):
    rankings = [
        Adopted(10 * k + 15, 0.0, 10 * k + 10, k, "pagerank", Parameters(before=before))
        for k, before in enumerate(befores)
    ]
    assert chain_of(rankings) == (chain and [rankings[k] for k in chain])


@pytest.mark.parametrize("ranked", ["pagerank", "host-diverse"], indirect=True)
def test_a_log_without_rankings_is_approximate(ranked, tmp_path):
    """A folder of an earlier version has no rankings in its log."""
    header = json.loads((ranked / "ranks" / "header.json").read_bytes())
    del header["meta"]["before"]
    (ranked / "ranks" / "header.json").write_text(json.dumps(header | {"check": None}))
    with (ranked / "events.log").open("r+b") as log:
        log.truncate(listed(ranked)[0].place)
    # It names a later sync.
    (ranked / "end.bin").unlink()
    shutil.rmtree(ranked / "index", ignore_errors=True)
    with as_of(ranked, float("inf"), tmp_path) as was:
        assert (
            was.approximate
            == "the log lacks the ranking that held then, so ranks are computed as of this event"
        )
        assert order(was.folder)
        again = Folder(was.folder / "ranks", "ranks", 1).header.meta
    assert again["expected"] == header["meta"]["expected"]


def test_after_a_repair_the_rankings_are_still_known(ranked, tmp_path):
    """The event of a ranking is damaged, and so is a visit that another ranking covers."""
    rankings = listed(ranked)
    log = bytearray((ranked / "events.log").read_bytes())
    log[rankings[1].place + HEAD_SIZE + 2] ^= 1
    (ranked / "events.log").write_bytes(log)
    repaired = tmp_path / "repaired"
    repair(ranked, repaired)
    assert [one.identity for one in listed(repaired)] == [
        one.identity for k, one in enumerate(rankings) if k != 1
    ]
    shutil.rmtree(repaired / "ranks", ignore_errors=True)
    with as_of(repaired, float("inf"), tmp_path) as was:
        assert was.approximate.startswith("the ranking that held then could not")
        assert order(was.folder)


def test_the_name_of_a_stored_ranking_cannot_lead_out_of_the_folder(tmp_path):
    with inlink.Crawl(tmp_path / "c", policy="first-come", clock=inlink.VirtualClock()) as crawl:
        crawl.seed(["http://a.example/"])
        crawl._journal.append(SETTINGS, payload=b'{"policy": "ranking:../../../victim"}')
    (tmp_path / "victim").mkdir()
    with (
        pytest.raises(inlink.InlinkError, match="policy must be"),
        as_of(tmp_path / "c", float("inf"), tmp_path),
    ):
        pass
    assert (tmp_path / "victim").is_dir()


def test_the_values_of_a_stored_ranking_are_those_of_today(ranked, tmp_path):
    graph = graph_in(ranked)
    inlink.degree(graph).save(graph, "mine")
    with opened(ranked, policy="ranking:mine"):
        pass
    with as_of(ranked, float("inf"), tmp_path) as was:
        assert was.approximate == "the values of ranking mine are those that were stored last"
        assert order(was.folder) == order(ranked)
