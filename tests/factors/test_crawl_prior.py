"""The setting ``prior``: an earlier ranking of hosts raises priorities until the crawl's own links speak."""

import gzip
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from crawlstrategies import frontier_in, opened
from inlink.base.clock import VirtualClock
from inlink.crawl.asof import as_of
from inlink.crawl.view import CrawlView
from inlink.errors import FolderError, InputError, ParameterError
from inlink.factors.parts import combined
from inlink.factors.prior import HostPrior
from inlink.graph.names import Names
from inlink.sources.ranklists import host_places
from inlink.store.backup import backup
from inlink.store.kernels.columns import CrawlCounters
from inlink.store.prior import PRIOR, HostPlaces, keep_places
from inlink.urls.hosts import registered_domain

T = 0.15
"""The teleport of a page: 1 − damping."""

RANKS = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n"
LIST = "good.example\t9\nwww.fair.example\t4\nfair.example\t4\npoor.example\t1\n"


@pytest.fixture
def prior(tmp_path):
    file = tmp_path / "ranks.txt"
    file.write_text(LIST)
    return file


def crawl_of(tmp_path, **settings):
    polite = {"policy": "pagerank", "rerank_share": None, **settings}
    return opened(tmp_path / "c", VirtualClock(), **polite)


def boost(place: int, hosts: int) -> float:
    """b by its definition."""
    return (1 + math.log2(hosts / place)) / (1 + math.log2(hosts))


def priority(rank: float, b: float, teleport: float = T) -> float:
    """The priority by its definition."""
    q = teleport * b
    return rank + q * q / (q + rank) if q else rank


def values(crawl, *urls):
    """Priorities in the queue; each is the sum of its parts."""
    found = []
    for url in urls:
        why = crawl.why(url)
        assert combined(why.parts) == pytest.approx(why.priority, rel=1e-6)
        found.append(why.priority)
    return found


def test_priorities_without_links_have_a_closed_form(tmp_path, prior):
    urls = ["http://good.example/", "http://www.fair.example/", "http://poor.example/", "http://new.example/"]
    with crawl_of(tmp_path, prior=prior) as crawl:
        crawl.seed(reversed(urls))
        wanted = [priority(T, boost(1, 4)), priority(T, boost(2, 4)), priority(T, boost(4, 4)), T]
        assert values(crawl, *urls) == pytest.approx(wanted, rel=1e-6)
        assert [row.url for row in crawl.view.order(9).rows] == urls
        told = str(crawl.why(urls[0]))
        assert "prior 0.15 of good.example (place 1 of 4) × 0.5, its weight beside the rank above" in told
        assert "its weight beside" not in str(crawl.why(urls[3]))
        # The harvest is measured by the crawl's own ranks.
        assert frontier_in(crawl).policy.ranks(np.arange(4, dtype=np.uint32)) == pytest.approx(T)


@pytest.mark.parametrize("ranked", [False, True])
def test_the_prior_fades_as_links_become_known(tmp_path, prior, ranked):
    with crawl_of(tmp_path, prior=prior) as crawl:
        crawl.seed(["http://good.example/x", *(f"http://hub{k}.example/" for k in range(40))])
        before = values(crawl, "http://good.example/x")[0] - T
        added = []
        for k in range(40):
            crawl.crawled(f"http://hub{k}.example/", ["http://good.example/x"])
            if ranked and k in (0, 39):
                crawl.rerank(wait=True)
            rank = T + (k + 1) * 0.85 * T
            found = values(crawl, "http://good.example/x")[0]
            assert found == pytest.approx(priority(rank, boost(1, 4)), rel=2e-4 if ranked else 1e-5)
            added.append(found - rank)
        assert before > added[0] > added[10] > added[-1] > 0
        assert added[-1] < before / 8


def test_a_page_with_many_links_comes_before_a_page_of_a_better_host(tmp_path, prior):
    with crawl_of(tmp_path, prior=prior) as crawl:
        crawl.seed(
            ["http://good.example/", "http://new.example/", *(f"http://hub{k}.example/" for k in range(9))]
        )
        assert crawl.view.order(1).rows[0].url == "http://good.example/"
        for k in range(9):
            crawl.crawled(f"http://hub{k}.example/", ["http://new.example/"])
        assert crawl.view.order(1).rows[0].url == "http://new.example/"


def test_hosts_compete_by_the_raised_priority(tmp_path, prior):
    with crawl_of(tmp_path, policy="host-diverse", prior=prior) as crawl:
        crawl.seed(["http://new.example/", *(f"http://good.example/{k}" for k in range(4))])
        assert [lease.url for lease in crawl.next(9)] == [
            "http://good.example/0",
            "http://new.example/",
            "http://good.example/1",
            "http://good.example/2",
            "http://good.example/3",
        ]


def test_scores_and_trust_scale_the_prior(tmp_path, prior):
    with crawl_of(tmp_path, prior=prior, use_scores=True) as crawl:
        crawl.seed([("http://good.example/", 0.5)])
        t = T * (0.5 + 1e-6)
        assert values(crawl, "http://good.example/") == pytest.approx([priority(t, 1.0, t)], rel=1e-6)
    shutil.rmtree(tmp_path / "c")
    trust = tmp_path / "trust.txt"
    trust.write_text("http://poor.example/\n")
    with crawl_of(tmp_path, prior=prior, trust=trust) as crawl:
        crawl.seed(["http://good.example/"])
        assert values(crawl, "http://good.example/", "http://poor.example/") == pytest.approx(
            [0.0, priority(T, boost(4, 4))]
        )
        assert "not reached from a trusted page" in str(crawl.why("http://good.example/"))


@given(st.lists(st.floats(2**-20, 2**20, width=32), min_size=2, max_size=9), st.integers(1, 999))
def test_links_and_better_places_never_lower_a_priority(ranks, place):
    pages_of = SimpleNamespace(
        tally=CrawlCounters(hosts=1),
        hosts=np.zeros(10, np.uint32),
        table=SimpleNamespace(host=lambda _: "h1.example"),
    )
    names = {f"h{k}.example": 2000.0 - k for k in range(1000)}
    names["h1.example"] = 2000.5 - place
    prior = HostPrior(pages_of, HostPlaces.of(names))
    pages, rank = np.arange(len(ranks), dtype=np.uint32), np.sort(np.array(ranks, np.float32))
    added = prior.added(pages, rank, np.float32(T))
    full = np.float32(T) * prior.places.priors(prior.places.find(["h1.example"]))[0]
    assert np.all((added >= 0) & (added <= full * np.float32(1.00001)))
    assert np.all(np.diff(rank + added) >= -1e-6 * rank[1:])
    assert np.all(np.diff(added) <= 1e-6)
    wanted = [float(full) ** 2 / (float(full) + float(r)) for r in rank]
    assert added == pytest.approx(wanted, rel=1e-5)


# -- hosts ------------------------------------------------------------------------------------------------------------

HOSTS = st.sampled_from(
    ["a.com", "www.a.com", "b.a.com:81", "a.com:81", "x.co.uk", "w.x.co.uk", "co.uk", "localhost", "[::1]:8",
     "10.0.0.1", "10.0.0.1:9", "b.com"]
)  # fmt: skip


@given(st.dictionaries(HOSTS, st.sampled_from([1.0, 2.0, 3.5]), min_size=1), st.lists(HOSTS))
def test_hosts_are_found_by_name_then_without_port_then_by_domain(listed, hosts):
    places = HostPlaces.of(listed)
    assert places.names[:] == sorted(listed)
    for name, place in zip(places.names, places.places.tolist(), strict=True):
        assert place == 1 + sum(value > listed[name] for value in listed.values())
    for host, row in zip(hosts, places.find(hosts).tolist(), strict=True):
        bare = host if host.startswith("[") else host.partition(":")[0]
        wanted = next((one for one in (host, bare, registered_domain(bare)) if one in listed), None)
        assert (places.names[row] if row >= 0 else None) == wanted
    boosts = places.priors(places.find(list(listed)))
    order = sorted(listed, key=lambda name: -listed[name])
    assert boosts.max() == 1
    assert dict(zip(listed, boosts.tolist(), strict=True))[order[-1]] == boosts.min()
    assert boosts.min() >= boost(len(listed), len(listed)) - 1e-6


def test_sources_of_all_kinds_give_the_same_places(tmp_path):
    text = (
        RANKS
        + "1\t9\t3\t0.1\texample.good\n2\t4\t1\t0.3\texample.fair.www\n"
        + "2\t4\t1\t0.3\texample.fair\n4\t1\t4\t0.01\texample.poor\n"
    )
    (tmp_path / "cc.txt.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "list.txt").write_text(LIST)
    (tmp_path / "urls.txt").write_text(
        "http://good.example/a\t9\nhttps://good.example/\t1\nwww.fair.example\t4\nFAIR.example\t4\nhttp://poor.example\n"
    )
    hosts = {"example.good": 9.0, "example.fair.www": 4.0, "example.fair": 4.0, "example.poor": 1.0}
    names = list(hosts)
    graph = inlink.Graph.from_arcs([(names[0], name) for name in names[1:]], into=tmp_path / "g")
    ranking = inlink.Ranking(
        np.array([hosts[name] for name in graph.names]),
        algorithm="test",
        names=graph.names,
        graph_uuid=graph.uuid,
    )
    ranking.save(tmp_path / "g", "pagerank")
    ranking.save(tmp_path / "g", "other")
    ranking.to_parquet(tmp_path / "r.parquet")
    ranking.to_csv(tmp_path / "r.csv")
    ranking.to_csv(tmp_path / "r.tsv")
    (tmp_path / "r.tsv.meta.json").unlink()
    wanted = host_places(tmp_path / "list.txt")
    assert dict(zip(wanted.names, wanted.places.tolist(), strict=True)) == {
        "good.example": 1, "www.fair.example": 2, "fair.example": 2, "poor.example": 4,
    }  # fmt: skip
    for name in ("cc.txt.gz", "urls.txt", "g", "g/rankings/other", "r.parquet", "r.csv", "r.tsv"):
        assert host_places(tmp_path / name).checksum == wanted.checksum, name


def test_the_best_page_of_a_host_gives_its_place(tmp_path):
    arcs = [("http://a.com/", "http://b.com/1"), ("http://b.com/1", "http://b.com/2")]
    graph = inlink.Graph.from_arcs(arcs, into=tmp_path / "g")
    ranking = inlink.Ranking(
        np.array([2.0, 1.0, 3.0]), algorithm="test", names=graph.names, graph_uuid=graph.uuid
    )
    ranking.save(tmp_path / "g", "pagerank")
    places = host_places(tmp_path / "g")
    assert dict(zip(places.names, places.places.tolist(), strict=True)) == {"a.com": 2, "b.com": 1}


def test_the_first_lines_of_common_crawls_ranks_count(tmp_path, monkeypatch):
    monkeypatch.setattr("inlink.sources.ranklists.MOST_RANKS", 3)
    file = tmp_path / "ranks.txt"
    file.write_text(RANKS + "".join(f"{k}\t{9 - k}\t{k}\t0.1\tcom.h{k}\n" for k in range(1, 6)))
    assert host_places(file).names[:] == ["h1.com", "h2.com", "h3.com"]
    file.write_text("".join(f"h{k}.com\t{k}\n" for k in range(4)))
    with pytest.raises(InputError, match="more than 3 lines: keep the first lines only"):
        host_places(file)


# -- what stays -------------------------------------------------------------------------------------------------------

URL = "http://good.example/"
RAISED = priority(T, 1.0)


def test_the_prior_is_kept_in_the_folder_and_read_again_when_it_is_given(tmp_path, prior):
    with crawl_of(tmp_path, prior=prior) as crawl:
        crawl.seed([URL])
        assert values(crawl, URL) == pytest.approx([RAISED])
        assert crawl.settings.prior == str(prior)
    kept = (tmp_path / "c" / PRIOR / "header.json").read_bytes()
    with opened(tmp_path / "c", VirtualClock(), prior=prior) as crawl:
        assert (tmp_path / "c" / PRIOR / "header.json").read_bytes() == kept
    prior.unlink()
    with opened(tmp_path / "c", VirtualClock()) as crawl:
        assert values(crawl, URL) == pytest.approx([RAISED])
        crawl.seed(["http://b.good.example:81/"])
        assert values(crawl, "http://b.good.example:81/") == pytest.approx([RAISED])
        with pytest.raises(ParameterError, match="`prior` cannot change while a crawl is open"):
            crawl.change_settings(prior=None)
    assert combined(CrawlView.open(tmp_path / "c").why(URL).parts) == pytest.approx(RAISED, rel=1e-6)
    prior.write_text("good.example\t1\nbest.example\t2\n")
    with opened(tmp_path / "c", VirtualClock(), prior=prior) as crawl:
        assert values(crawl, URL) == pytest.approx([priority(T, 0.5)])
    with opened(tmp_path / "c", VirtualClock(), prior=None) as crawl:
        assert values(crawl, URL) == pytest.approx([T])


def test_copies_have_the_prior(tmp_path, prior):
    with crawl_of(tmp_path, prior=prior) as crawl:
        crawl.seed([URL])
    backup(tmp_path / "c", tmp_path / "copy")
    assert combined(CrawlView.open(tmp_path / "copy").why(URL).parts) == pytest.approx(RAISED, rel=1e-6)
    with as_of(tmp_path / "c", CrawlView.open(tmp_path / "c").info().events, tmp_path) as then:
        assert combined(CrawlView.open(then.folder).why(URL).parts) == pytest.approx(RAISED, rel=1e-6)
        assert then.approximate == ""


@pytest.mark.parametrize("wrong", ["gone", "flipped", "places", "order"])
def test_a_damaged_prior_is_told_and_the_log_is_not_changed(tmp_path, prior, wrong):
    with crawl_of(tmp_path, prior=prior) as crawl:
        crawl.seed([URL])
    folder = tmp_path / "c" / PRIOR
    if wrong == "gone":
        shutil.rmtree(folder)
    elif wrong == "flipped":
        file = folder / "1" / "names.text.bin"
        file.write_bytes(b"x" + file.read_bytes()[1:])
    else:
        text = np.frombuffer(b"b.examplea.example" if wrong == "order" else b"a.exampleb.example", np.uint8)
        names = Names(text, np.array([0, 9, 18], np.uint64))
        keep_places(
            tmp_path / "c", HostPlaces(names, np.array([1, 2 + 7 * (wrong == "places")], np.uint32)), "x"
        )
    before = (tmp_path / "c" / "settings.json").read_bytes()
    for look in (
        lambda: opened(tmp_path / "c", VirtualClock()),
        lambda: CrawlView.open(tmp_path / "c").why(URL),
    ):
        with pytest.raises(
            FolderError, match=r"cannot be used \(.*\): give prior=FILE again, or prior=None"
        ) as told:
            look()
        assert "\n" not in str(told.value)
    assert (tmp_path / "c" / "settings.json").read_bytes() == before
    with opened(tmp_path / "c", VirtualClock(), prior=prior) as crawl:
        assert values(crawl, URL) == pytest.approx([RAISED])


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "gives no host a value above 0"),
        ("a.com\t0\n", "gives no host a value above 0"),
        ("mailto:x\n", "gives no host a value above 0"),
        ("a.com\t-1\n", r"must be in \[0, 1e30\]; got -1.0"),
        ("a.com\tmuch\n", "line 1: 'much' is not a score"),
        (RANKS + "1\tx\t1\t1\tcom.a\n", r"line 2: the value must be a number; got 'x'"),
        (None, "cannot be read"),
    ],
)
def test_a_file_without_hosts_is_refused(tmp_path, prior, text, message):
    prior.unlink() if text is None else prior.write_text(text)
    with pytest.raises(InputError, match=message):
        crawl_of(tmp_path, prior=prior)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("policy", ["hits", "opic", "best-first", "hosts-in-turns"])
def test_the_prior_needs_a_policy_by_pagerank(tmp_path, prior, policy):
    with pytest.raises(ParameterError, match=f"`prior` does not apply to policy '{policy}'"):
        crawl_of(tmp_path, prior=prior, policy=policy)
    assert not (tmp_path / "c").exists()
    star = inlink.Graph.from_arcs([(0, 1)])
    with pytest.raises(ParameterError, match="`prior` does not apply to policy"):
        inlink.replay(star, policies=["pagerank", policy], settings={"prior": str(prior)})


def test_a_folder_without_names_is_refused(tmp_path):
    graph = inlink.Graph.from_arcs([(0, 1)], into=tmp_path / "g")
    with pytest.raises(FolderError, match="no ranking"):
        host_places(tmp_path / "g")
    ranking = inlink.Ranking(np.array([1.0, 2.0]), algorithm="test", graph_uuid=graph.uuid)
    ranking.save(tmp_path / "g", "pagerank")
    with pytest.raises(InputError, match="its nodes have no names"):
        host_places(tmp_path / "g")


# -- replays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("best", range(4))
def test_a_replay_begins_with_the_prior(tmp_path, best):
    seed, pages = "http://seed.example/", [f"http://h{k}.example/" for k in range(4)]
    arcs = [(seed, page) for page in pages]
    # Each page has another rank.
    arcs += [(f"http://far{j}.example/", page) for k, page in enumerate(pages) for j in range(k)]
    web = inlink.Graph.from_arcs(arcs)
    (tmp_path / "prior").write_text(f"h{best}.example\n")
    found = inlink.replay(
        web, policies=["pagerank"], seeds=[[seed]], budget=2, marks=[0.4], lines=False, tau=False,
        settings={"prior": str(tmp_path / "prior")},
    )  # fmt: skip
    ranks = inlink.pagerank(web, tol=1e-9)
    reached = sum(ranks[page] for page in (seed, *pages))
    home = (ranks[seed] + ranks[pages[best]]) / reached
    assert found.runs[0].measures["pagerank"].at == pytest.approx([home], rel=1e-4)
    assert found.settings["crawl"]["prior"] == str(tmp_path / "prior")
