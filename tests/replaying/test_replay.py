"""Replays: the product's own crawl over a known web."""

import csv
import io
import json
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

import inlink
from archives import response, write
from inlink import Graph, VirtualClock
from inlink.errors import InputError, ParameterError, UnknownNodeError
from inlink.frontier.policies import Policy
from inlink.frontier.revisit import FixedInterval
from inlink.replaying.measures import Curve
from inlink.replaying.play import ReplayTask, memory_folder, play
from inlink.replaying.recording import web_of_crawl
from inlink.replaying.web import web_of_graph, with_noise
from strategies import arcs

EAGER = {"delay": 0.0}


class Highest(Policy):
    """The page that was discovered last comes first."""

    name = "highest"

    def priority(self, pages):
        return pages.astype(np.float32)


@pytest.fixture(scope="module")
def tree() -> Graph:
    """A tree of 63 pages with a link back to the root from each."""
    down = [(k, child) for k in range(31) for child in (2 * k + 1, 2 * k + 2)]
    return Graph.from_arcs(down + [(k, 0) for k in range(1, 63)])


def fetched(graph: Graph, policy: object, seeds: list[int], budget: int, **more: object) -> list[int]:
    web = web_of_graph(graph, "g", 0)
    return play(web, ReplayTask(policy, seeds, budget, {}, **more)).fetched.tolist()


def plain_breadth_first(graph: Graph, seeds: list[int]) -> list[int]:
    queue = list(seeds)
    for page in queue:
        queue += [child for child in graph.outlinks(page).tolist() if child not in queue]
    return queue


@settings(max_examples=15, deadline=None)
@given(arcs(min_nodes=1))
def test_breadth_first_is_a_plain_queue(made):
    graph = made.graph()
    assert fetched(graph, "breadth-first", [0], 100) == plain_breadth_first(graph, [0])


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(arcs(min_nodes=2))
def test_everything_that_is_reached_is_home_in_the_end(made):
    graph = made.graph()
    found = inlink.replay(
        graph,
        policies=["host-diverse", "random", "opic"],
        seeds=[[0], [1]],
        budget=1.0,
        marks=[1.0],
        tau=False,
    )
    for run in found.runs:
        reached = graph.reachable([run.set]).num_nodes
        assert (run.reached, run.fetches) == (reached, reached)
        for curve in run.measures.values():
            assert curve.at[0] == pytest.approx(1.0) or curve.at[0] == 0.0


def test_a_policy_of_ones_own_decides(tree):
    assert fetched(tree, Highest, [0], 4) == [0, 2, 6, 14]
    assert fetched(tree, "test_replay:Highest", [0], 4) == [0, 2, 6, 14]


@pytest.mark.slow
def test_the_same_arguments_give_the_same_bytes(tree):
    given = {"policies": ["host-diverse", "hits"], "seeds": "3x2", "budget": 0.6, "host_pages": [8, 0]}
    one, other = inlink.replay(tree, **given), inlink.replay(tree, **given, jobs=2)
    assert one.to_json() == other.to_json()
    assert one.to_csv() == other.to_csv()
    assert one.hosts == ["8", "all"]
    assert json.loads(one.to_json())["complete"] is True


def test_rankings_are_made_at_once_where_the_crawl_asks_for_them(tmp_path):
    with inlink.Crawl(tmp_path / "c", policy="pagerank", politeness=EAGER, clock=VirtualClock()) as crawl:
        crawl.seed([f"http://a.example/{k}" for k in range(101)])
        for k in range(100):
            for lease in crawl.next(1):
                crawl.crawled(lease, ["/best", f"/n{k}"])
            assert not crawl.ranking
            assert (tmp_path / "c" / "ranks" / "header.json").exists() == (k == 99)


@pytest.mark.slow
def test_marks_areas_and_pairs_are_those_of_the_orders(tree):
    seeds = [[0], [5], [7]]
    found = inlink.replay(
        tree,
        policies=["breadth-first", "depth-first"],
        seeds=seeds,
        budget=40,
        marks=[0.1, 0.5],
        host_pages=[0],
    )
    ranks = np.asarray(inlink.pagerank(tree, tol=1e-9, threads=1).values)
    ends, areas = {}, {}
    for policy in ("breadth-first", "depth-first"):
        orders = [fetched(tree, policy, seed, 40) for seed in seeds]
        sums = [np.cumsum(ranks[order]) / ranks.sum() for order in orders]
        ends[policy], areas[policy] = [one[30] for one in sums], [one.mean() for one in sums]
        assert found.values(policy, at=0.5) == pytest.approx(ends[policy])
        assert found.values(policy) == pytest.approx(areas[policy])
    gaps = np.array(areas["depth-first"]) - areas["breadth-first"]
    paired = found.paired("depth-first")
    assert found.baseline == "breadth-first"
    assert paired.mean == pytest.approx(gaps.mean())
    assert paired.error == pytest.approx(gaps.std(ddof=1) / math.sqrt(3))
    assert (paired.won, paired.lost, paired.level) == ((gaps > 0).sum(), (gaps < 0).sum(), (gaps == 0).sum())
    assert paired.worst == pytest.approx(gaps.min())
    assert found.values("sort bound", at=0.5) == pytest.approx(
        [np.sort(ranks)[::-1][:31].sum() / ranks.sum()] * 3
    )


def test_the_csv_has_every_value(tree, tmp_path):
    found = inlink.replay(tree, policies=["random"], seeds="2x1", budget=0.2, marks=[0.1, 0.2], wasted="/6.$")
    paths = found.save(tmp_path / "out")
    assert [path.name for path in paths] == ["replay.json", "replay.csv"]
    rows = list(csv.DictReader(io.StringIO(paths[1].read_text())))
    assert len(rows) == len(found.rows())
    wanted = ("random", "pagerank", "area")
    areas = [float(row["value"]) for row in rows if (row["order"], row["measure"], row["at"]) == wanted]
    assert areas == found.values("random")
    assert {"tau", "wasted", "indegree", "authority", "fetches"} <= {row["measure"] for row in rows}


def test_fetches_of_a_trap_are_counted_as_wasted():
    """Pages 4 to 9 are a farm behind page 1; breadth-first comes to them after pages 0 to 3."""
    graph = Graph.from_arcs([(0, 1), (0, 2), (0, 3), *((1, k) for k in range(4, 10))])
    found = inlink.replay(
        graph, policies=["breadth-first", "depth-first"], seeds=[[0]], budget=1.0, marks=[0.2, 0.5, 1.0],
        host_pages=[0], wasted="/[4-9]$", lines=False,
    )  # fmt: skip
    shares = {run.order: run.wasted for run in found.runs}
    assert shares["breadth-first"] == pytest.approx([0.0, 1 / 5, 6 / 10])
    order = fetched(graph, "depth-first", [0], 10)
    farm = [sum(page > 3 for page in order[:count]) / count for count in (2, 5, 10)]
    assert shares["depth-first"] == pytest.approx(farm)


def test_politeness_takes_virtual_time():
    # Two hosts of two pages each, one second apart: four fetches of half a second.
    web = web_of_graph(Graph.from_arcs([(0, 1), (0, 2), (0, 3)]), "g", 2)
    polite = {"politeness": {"delay": 10.0}}
    played = play(web, ReplayTask("breadth-first", [0], 9, polite, parallel=2, fetch_seconds=0.5))
    assert played.fetched.tolist() == [0, 2, 1, 3]
    first, *rest = played.times.tolist()
    assert first == 0.5
    # Host 1 begins when its links are known; each host waits ten seconds between two fetches.
    assert rest == pytest.approx([1.0, 10.5, 11.0])


def test_two_policies_are_compared_at_equal_times(tree):
    found = inlink.replay(
        tree, policies=["breadth-first", "hosts-in-turns"], seeds=[[0]], budget=1.0, marks=[0.5, 1.0], host_pages=[8],
        settings={"politeness": {"delay": 1.0}}, parallel=4, fetch_seconds=0.2,
    )  # fmt: skip
    base, other = (run for run in found.runs if run.seconds)
    assert base.by_time["pagerank"][-1] == pytest.approx(1.0)
    assert other.by_time["pagerank"][-1] == pytest.approx(1.0)
    assert base.seconds[0] < base.seconds[1]


@pytest.fixture
def recorded(tmp_path):
    """A crawl with a failure, a retry, a redirect, an exclusion, a delay, scores, and pages that it never fetched."""
    clock, folder = VirtualClock(), tmp_path / "rec"
    with inlink.Crawl(folder, policy="first-come", politeness=EAGER, retry_seconds=1.0, clock=clock) as crawl:
        crawl.seed(["http://a.example/"])
        root = crawl.next(1)[0]
        crawl.host_delay(root, 3.0)
        clock.advance(0.25)
        crawl.crawled(
            root,
            [(f"http://a.example/{name}", 0.5) for name in "gxrt"] + [("http://b.example/", 2.0)],
            score=0.9,
        )
        crawl.wait()
        while crawl.page("http://a.example/t").state != "crawled":
            crawl.wait()
            for lease in crawl.next(1):
                match lease.url[-2:]:
                    case "e/" if "//b." not in lease.url:
                        # It is never answered for.
                        continue
                    case "/g":
                        crawl.failed(lease, "gone", status=410)
                    case "/x":
                        crawl.exclude(lease, "robots")
                    case "/r":
                        crawl.crawled(lease, ["http://c.example/"], redirected_to="http://a.example/t2")
                    case "/t" if lease.failures == 0:
                        crawl.failed(lease, "timeout")
                    case _:
                        crawl.crawled(lease, ["http://never.example/"], score=0.2, status=200)
    return folder


def test_a_recorded_crawl_is_replayed_with_all_that_it_recorded(recorded):
    web = web_of_crawl(recorded)
    seeds = web.seeds
    assert [web.urls[page] for page in seeds] == ["http://a.example/"]
    assert web.delays[int(seeds[0])] == 3.0
    assert web.seconds[int(seeds[0])] == pytest.approx(0.25)
    played = play(web, ReplayTask("best-first", seeds, 100, web.settings))
    home = {web.urls[page] for page in played.home if page != 0xFFFFFFFF}
    assert home == {"http://a.example/", "http://b.example/", "http://a.example/t", "http://a.example/t2"}
    # /g once, /t once before it succeeds, /r once
    assert played.counts == {"excluded": 1, "failed": 2, "not recorded": 2, "redirected": 1}
    assert len(played.fetched) == 4 + 2
    # b.example has no delay and the better link score
    assert web.urls[played.fetched[1]] == "http://b.example/"
    found = inlink.replay(recorded, policies=["best-first"], seeds="recorded", budget=20, marks=[1.0])
    assert found.runs[0].measures["score"].points[-1] == pytest.approx(1.0)
    assert found.notes["pages that are not recorded"] == 2


@pytest.mark.slow
def test_errors_in_scores_change_the_order_and_no_measure(tmp_path):
    """A root that links to 60 pages. Pages with even numbers are good and have good links."""
    good = [float(k % 2 == 0) for k in range(60)]
    clock, folder = VirtualClock(), tmp_path / "rec"
    with inlink.Crawl(folder, policy="best-first", politeness=EAGER, clock=clock) as crawl:
        crawl.seed(["http://a.example/"])
        crawl.crawled(crawl.next(1)[0], [(f"http://a.example/{k}", good[k]) for k in range(60)])
        while leases := crawl.next(1):
            (lease,) = leases
            crawl.crawled(lease, score=good[int(lease.url.rpartition("/")[2])])

    def relevant(noise: float, **more: int) -> float:
        found = inlink.replay(
            folder, policies=["best-first"], seeds="recorded", budget=31, marks=[0.5], noise=noise, lines=False,
            tau=False, **more,
        )  # fmt: skip
        assert found.settings["noise"] == noise
        (run,) = found.runs
        return run.measures["relevant"].points[-1]

    assert relevant(0.0) == 1.0
    assert relevant(0.05) == 1.0
    some, much = relevant(0.5), relevant(20.0)
    assert 0.3 < much < some < 1.0
    assert relevant(0.5) == some
    assert len({relevant(20.0, random_seed=seed) for seed in range(4)}) > 1
    web = web_of_crawl(folder)
    told = with_noise(web, 0.5, 1)
    errors = np.concatenate([told.scores - web.scores, told.link_scores - web.link_scores])
    assert abs(errors.mean()) < 0.2
    assert 0.35 < errors.std() < 0.65
    assert with_noise(web, 0.0, 1) is web


def test_an_archive_is_a_web_to_crawl_again(tmp_path):
    page = '<a href="/b">b</a> <a href="/r">r</a> <a href="/lost">l</a> <a href="/bad">x</a>'
    path = write(
        tmp_path / "a.warc.gz",
        [
            response("http://a.example/", page),
            response("http://a.example/b", "<p>end</p>"),
            response("http://a.example/r", "", "Location: /t", status="301 Moved"),
            response("http://a.example/t", '<a href="/">home</a>'),
            response("http://a.example/bad", "", status="404 Not Found"),
        ],
        packed="gzip",
    )
    found = inlink.replay(
        path, policies=["breadth-first"], seeds=[["http://a.example/"]], budget=9, marks=[1.0]
    )
    run = found.runs[0]
    assert (run.reached, run.counts) == (3, {"failed": 1, "not recorded": 1, "redirected": 1})
    assert found.notes == {"pages that are not recorded": 1}
    assert run.fetches == 4
    assert found.values("breadth-first", at="area") < [1.0]
    assert run.measures["pagerank"].points[-1] == pytest.approx(1.0)


def test_up_to_20_redirects_in_an_archive_lead_to_a_page(tmp_path):
    chain = [
        response(f"http://a.example/{k}", "", f"Location: /{k + 1}", status="302 Found") for k in range(21)
    ]
    path = write(tmp_path / "a.warc", [*chain, response("http://a.example/21", "the end")])
    # 21 redirects lead from the first page to the last, and 20 from the second.
    seeds = ["http://a.example/0", "http://a.example/1"]
    found = inlink.replay(path, policies=["breadth-first"], seeds=[seeds], budget=9, marks=[1.0])
    assert (found.runs[0].reached, found.runs[0].counts) == (1, {"failed": 1, "redirected": 1})


def test_names_that_are_urls_have_real_hosts():
    graph = Graph.from_arcs(
        [("http://A.example", "http://b.example/x"), ("http://a.example/", "http://c.example/")]
    )
    found = inlink.replay(graph, policies=["random"], seeds=[["http://a.example/"]], budget=1.0, marks=[1.0])
    assert found.hosts == ["real"]
    assert found.notes == {"names with the same canonical URL as another": 1}
    # The two forms of one URL are one page with the links of both.
    assert found.runs[0].reached == 3
    with pytest.raises(ParameterError, match="have hosts"):
        inlink.replay(graph, host_pages=[4])


def test_a_result_names_its_web(tree):
    found = inlink.replay(tree, policies=["random"], seeds="1x1", budget=3, lines=False, tau=False)
    assert repr(found) == "<inlink replay of graph: 1 order, 1 seed set>"
    assert "<table>" in found._repr_html_()
    assert math.isnan(found.mean("random").error)
    for wrong in ({"order": "x"}, {"measure": "x"}, {"at": 0.3}, {"hosts": "x"}):
        with pytest.raises(ParameterError):
            found.values(**{"order": "random", **wrong})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"policies": ["nosuch"]}, "nosuch"),
        ({"policies": []}, "one or more"),
        ({"policies": ["random", "random"]}, "twice"),
        ({"policies": ["ranking:mine"]}, "stored ranking"),
        ({"policies": [Highest], "jobs": 2}, "jobs=1"),
        ({"seeds": "20"}, "SETSxPAGES"),
        ({"seeds": "2x99"}, "pages with links"),
        ({"seeds": "recorded"}, "no recorded crawl"),
        ({"seeds": "front"}, "front pages are not known"),
        ({"seeds": "front:2x2"}, "front pages are not known"),
        ({"seeds": "nosuch.txt"}, "a file of URLs; got 'nosuch.txt'"),
        ({"top": 0}, "top"),
        ({"seeds": [[]]}, "list of sets"),
        ({"seeds": [[99]]}, "below 63"),
        ({"seeds": [["http://x/"]]}, "no page"),
        ({"budget": 0}, "budget"),
        ({"budget": 1.5}, "budget"),
        ({"marks": [0.5, 0.1]}, "increasing"),
        ({"marks": []}, "increasing"),
        ({"baseline": "opic"}, "one of the policies"),
        ({"host_pages": [-1]}, "host_pages"),
        ({"host_pages": [4, 4]}, "twice"),
        ({"tau": 1}, "True or False"),
        ({"wasted": "("}, "regular expression"),
        ({"parallel": 0}, "parallel"),
        ({"fetch_seconds": -1.0}, "fetch_seconds"),
        ({"noise": -0.1}, "noise"),
        ({"noise": 1e7}, r"noise` must be a number in \[0, 1e6\]; got"),
        ({"noise": 0.1}, "no content scores"),
        ({"jobs": True}, "jobs"),
        ({"random_seed": -1}, "random_seed"),
        ({"changes": 0.0}, "changes"),
        ({"changes": True}, "changes"),
        ({"changes": math.nan}, "changes"),
        ({"settings": {"revisit": {"every": 3}}}, "give a schedule"),
        ({"settings": {"revisit": FixedInterval(9.0)}}, "does not know when pages change"),
        ({"settings": {"rules": "x"}}, "does not apply"),
        ({"settings": {"damping": 2}}, "damping"),
        ({"settings": {"nosuch": 2}}, "nosuch"),
    ],
)
def test_arguments_are_checked_before_anything_runs(tree, wrong, said, monkeypatch):
    monkeypatch.setattr("inlink.replaying.jobs.play", None)
    with pytest.raises(inlink.InlinkError, match=said.replace("(", r"\(")):
        inlink.replay(tree, **wrong)


def test_a_replay_that_is_interrupted_keeps_whole_seed_sets(tree, monkeypatch):
    from inlink.replaying import jobs
    from inlink.replaying.arguments import ReplayArguments
    from inlink.replaying.checks import checked
    from inlink.replaying.replay import Replaying, webs_of

    calls = []

    def broken(*args, **more):
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return play(*args, **more)

    monkeypatch.setattr(jobs, "play", broken)
    plan = checked(ReplayArguments(
        policies=["random", "hosts-in-turns"], seeds="3x1", budget=5, marks=[0.01], baseline=None,
        host_pages=None, lines=True, tau=False, relevant=0.5, top=100, wasted=None, random_seed=1, parallel=1,
        fetch_seconds=0.0, changes=None, noise=0.0, settings=None, jobs=1,
    ))  # fmt: skip
    work = Replaying(webs_of(tree, plan), plan)
    with pytest.raises(KeyboardInterrupt):
        work.run()
    found = work.result()
    assert (len(found.seeds), found.complete) == (1, False)
    assert {run.set for run in found.runs} == {0}
    assert len(found.values("hosts-in-turns")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_of_a_policy_is_one_line_that_names_the_policy(tree, jobs):
    with pytest.raises(ParameterError) as error:
        inlink.replay(tree, policies=["test_replay:Broken", "random"], seeds="2x1", budget=5, jobs=jobs)
    line = str(error.value)
    assert line.startswith("policy test_replay:Broken failed at ")
    assert line.endswith("in priority: ZeroDivisionError: no priority")
    assert "test_replay.py, line " in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros(1, np.float32), "float32"),
        (np.array([0.5, np.nan], np.float32), "nan"),
        (np.array([0.5, -1.0], np.float32), "-1"),
        ([0.5, 0.5], "list"),
        (np.zeros(2), "float64"),
    ],
)
def test_a_policy_must_return_one_priority_a_page(tree, given, said, monkeypatch):
    monkeypatch.setattr(
        Broken, "priority", lambda self, pages: given if len(pages) == 2 else np.ones(len(pages), "f4")
    )
    with pytest.raises(ParameterError, match=f"policy test_replay:Broken must return .*{said}"):
        inlink.replay(tree, policies=[Broken], seeds=[[0]], budget=5)


def test_a_fault_of_inlink_is_not_blamed_on_the_policy(tree, monkeypatch):
    monkeypatch.setattr("inlink.crawl.crawl.Crawl.crawled", None)
    with pytest.raises(TypeError):
        inlink.replay(tree, policies=[Highest], seeds=[[0]], budget=5)


class Broken(Policy):
    """Cannot be used."""

    name = "broken"

    def priority(self, pages):
        raise ZeroDivisionError("no priority")


SITES = [
    (f"http://{host}.example/{page}", f"http://{host}.example/{target}")
    for host, pages in {
        "a": ("", "x", "x/y"),
        "b": ("start", "x/start", "x/y/z"),
        "c": ("", "p?q", "r"),
    }.items()
    for page in pages
    for target in pages
    if page != target
]


@pytest.mark.slow
def test_front_pages_are_those_with_the_shortest_path():
    result = inlink.replay(
        Graph(SITES), policies=["random"], seeds="front", budget=1.0, lines=False, tau=False
    )
    web = web_of_graph(Graph(SITES), "g", None)
    (pages,) = result.seeds
    assert [web.urls[page] for page in pages] == [
        "http://a.example/", "http://b.example/start", "http://c.example/",
    ]  # fmt: skip
    drawn = inlink.replay(
        Graph(SITES), policies=["random"], seeds="front:20x2", budget=1.0, lines=False, tau=False
    ).seeds
    assert len(drawn) == 20
    assert all(len(pages) == 2 for pages in drawn)
    assert {page for chosen in drawn for page in chosen} == set(pages)
    with pytest.raises(ParameterError, match="4 front pages a set; graph has 3 front pages"):
        inlink.replay(Graph(SITES), seeds="front:1x4")


def test_a_front_page_without_links_is_no_seed():
    graph = Graph(
        [("http://a.example/x/y", "http://a.example/"), ("http://a.example/x/y", "http://a.example/z")]
    )
    result = inlink.replay(graph, policies=["random"], seeds="front", budget=1.0, lines=False, tau=False)
    (pages,) = result.seeds
    assert [graph.names[page] for page in pages] == ["http://a.example/x/y"]


def test_seed_sets_are_read_from_a_file(tmp_path):
    file = tmp_path / "seeds.txt"
    file.write_bytes(
        b"# two sets\n\nHTTP://a.example\nhttp://b.example/start\r\n\n\nhttp://c.example/#top\n\n# end\n"
    )
    options = {"policies": ["random"], "budget": 1.0, "lines": False, "tau": False}
    result = inlink.replay(Graph(SITES), seeds=file, **options)
    urls = [["http://a.example/", "http://b.example/start"], ["http://c.example/"]]
    assert [[Graph(SITES).names[page] for page in pages] for pages in result.seeds] == urls
    assert result.to_json() == inlink.replay(Graph(SITES), seeds=urls, **options).to_json()
    file.write_text("# none\n\n")
    with pytest.raises(InputError, match=r"seeds.txt: there is no URL"):
        inlink.replay(Graph(SITES), seeds=str(file), **options)
    file.write_text("http://a.example/\nhttp://a.example/nosuch\n")
    with pytest.raises(UnknownNodeError, match=r"no page 'http://a\.example/nosuch'"):
        inlink.replay(Graph(SITES), seeds=str(file), **options)


def test_top_is_the_share_of_the_pages_with_the_highest_pagerank(tree):
    result = inlink.replay(tree, policies=["breadth-first"], seeds=[[0]], budget=1.0, marks=[0.1, 1.0], top=7)
    ranks = inlink.pagerank(tree, tol=1e-9).values
    best = set(sorted(range(63), key=lambda page: (-ranks[page], page))[:7])
    order = plain_breadth_first(tree, [0])
    assert result.values("breadth-first", "top", 0.1) == [len(best & set(order[:6])) / 7]
    assert result.values("breadth-first", "top", 1.0) == [1.0]
    assert result.values("sort bound", "top", 0.1) == [6 / 7]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("differences", "is_certain"),
    [
        ([0.1, 0.2] * 5, True),
        ([-0.1, -0.2] * 5, True),
        ([0.1, 0.2] * 4, False),
        ([0.1, -0.1] * 5, False),
        ([0.0] * 10, False),
        ([0.1] * 10, True),
    ],
)
def test_a_difference_is_certain_beyond_two_standard_errors_of_ten_sets(tree, differences, is_certain):
    sets = len(differences)
    result = inlink.replay(
        tree,
        policies=["random", "opic"],
        baseline="random",
        seeds=[[0]] * sets,
        lines=False,
        tau=False,
        marks=[0.5],
    )
    runs = [
        msgspec.structs.replace(
            run,
            measures={"pagerank": Curve([0.5], 0.5 + (run.order == "opic") * differences[run.set], None, [])},
        )
        for run in result.runs
    ]
    assert msgspec.structs.replace(result, runs=runs).paired("opic").is_certain == is_certain


def test_a_crawl_is_in_memory_if_twice_its_size_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("inlink.replaying.play.MEMORY", tmp_path)
    monkeypatch.setattr("inlink.replaying.play.memory_left", lambda: 100)
    assert [memory_folder(size) == tmp_path for size in (50, 51)] == [True, False]
