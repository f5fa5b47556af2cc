"""The commands on a crawl's folder, as a user runs them: alone, and while another process crawls."""

import json
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import inlink
from foldercommands import AX, AY, COMMANDS, A, B, arguments, look_at, run, shell
from inlink.base.clock import VirtualClock
from inlink.cli import commands
from inlink.crawl.crawl import Crawl
from inlink.errors import InlinkError, InputError, ParameterError, UnknownNodeError
from inlink.frontier.policies import Policy
from inlink.frontier.settings import Politeness
from inlink.sources.dumping import PAGE_COLUMNS
from inlink.store.format import HEAD_SIZE
from inlink.store.inbox import pending, post, seeds_in


def crawl_at(folder: Path, now: float = 5000.0, **settings) -> Crawl:
    given = {"policy": "breadth-first", "rerank_share": None, "clock": lambda: now}
    return Crawl(folder, **given | settings)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """a links to a/x, a/y and b; a/y is a/x in truth, which links back; b is gone."""
    place = tmp_path / "c"
    with crawl_at(place, 5000.25) as crawl:
        crawl.seed([(A, 0.5)])
        lease = crawl.next(1)[0]
        crawl.crawled(lease, [(AX, 0.125), "/y", B], score=0.75, content_hash=b"\1\2")
    with crawl_at(place, 5060.0) as crawl:
        crawl.crawled(A, [(AX, 0.125), "/y", B], score=0.75, content_hash=b"\3")
        crawl.crawled(AY, ["/", "/y/z"], redirected_to="/x", status=203)
        crawl.failed(B, "no\tsuch\nhost", status=410)
    return place


# -- one crawl, one process -------------------------------------------------------------------------------------------


def test_crawl_info(folder: Path):
    found = json.loads(run("crawl-info", folder, "--json"))
    assert found["pages"] == 5
    assert {name: count for name, count in found["states"].items() if count} == {
        "crawled": 2,
        "discovered": 1,
        "gone": 1,
        "merged": 1,
    }
    assert (found["crawled"], found["hosts"], found["links"], found["began"]) == (2, 2, 5, 5000.25)
    assert (found["policy"], found["writer"], found["ranking"], found["inbox"]) == (
        "breadth-first",
        None,
        None,
        0,
    )
    assert found["bytes"]["urls.txt"] == (folder / "urls.txt").stat().st_size
    assert found["bytes"]["events.log"] == (folder / "events.log").stat().st_size
    with look_at(folder) as frontier:
        assert found["events"] == frontier.pages.tally.events
    told = run("crawl-info", folder)
    assert re.search(r"^began +1970-01-01 01:23:20 UTC$", told, re.M)
    assert re.search(r"^writer +none$", told, re.M)


@pytest.mark.slow
def test_crawl_info_tells_of_the_ranking_and_the_inbox(folder: Path):
    command = [sys.executable, "-m", "inlink.reranking.process", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as ranker:
        assert ranker.stdin is not None
        assert ranker.stdout is not None
        ranker.stdin.write("rank\n")
        ranker.stdin.flush()
        assert '"ready": 1' in ranker.stdout.readline()
        ranker.stdin.close()
    with crawl_at(folder) as crawl:
        crawl.seed(["http://late.example/"])
    post(folder, "reload")
    found = json.loads(run("crawl-info", folder, "--json"))
    assert (found["ranking"]["algorithm"], found["ranking"]["pages"]) == ("pagerank", 5)
    assert HEAD_SIZE <= found["ranking"]["behind"] < 3 * HEAD_SIZE  # a seed, and a mark of its sync
    assert found["inbox"] == 1
    assert "pagerank of 5 pages" in run("crawl-info", folder)


def test_peek_shows_the_order_in_which_pages_are_leased(tmp_path: Path):
    urls = [f"http://h{k % 4}.example.com/{k}" for k in range(20)]
    settings = {"policy": "best-first", "politeness": Politeness(delay=0, in_flight=99)}
    with crawl_at(tmp_path / "c", **settings) as crawl:
        crawl.seed([(url, (k * 7 % 20) / 32) for k, url in enumerate(urls)])
    shown = json.loads(run("next", tmp_path / "c", "--peek", "-n", 50, "--json"))
    assert [one["place"] for one in shown] == list(range(1, 21))
    assert all(one["due_in"] == 0 for one in shown)
    part = {"name": "best link score", "operation": "+", "value": 19 / 32}
    least = {"name": "least worth", "operation": "+", "value": 1e-06}
    assert shown[0]["parts"] == [part, least]
    rows = [line.split("\t") for line in run("next", tmp_path / "c", "--peek", "-n", 3).splitlines()]
    assert [row[3] for row in rows] == [one["url"] for one in shown[:3]]
    assert rows[0][0] == "1"
    assert rows[0][4].startswith("+ 0.5938 best link score")
    assert run("next", tmp_path / "c", "--peek", "-n", 3).splitlines()[0] == "\t".join(
        rows[0]
    )  # nothing was taken
    leased = run("next", tmp_path / "c", "-n", 5).splitlines()
    assert leased == [one["url"] for one in shown[:5]]
    after = json.loads(run("next", tmp_path / "c", "--peek", "--json"))
    assert [one["url"] for one in after] == [one["url"] for one in shown[5:]]
    as_json = json.loads(run("next", tmp_path / "c", "-n", 1, "--json"))
    assert as_json[0]["url"] == shown[5]["url"]
    assert as_json[0]["expires"] > time.time()


def test_a_crawl_keeps_its_settings_whichever_command_opens_it(tmp_path: Path):
    polite = Politeness(by="domain", delay=7.5, host_budget=3)
    crawl_at(tmp_path / "c", politeness=polite, lease_seconds=30, max_retries=9, rerank_seconds=77.0).close()
    before = json.loads((tmp_path / "c" / "settings.json").read_text())
    assert before["politeness"]["delay"] == 7.5
    run("seed", tmp_path / "c", "-", stdin=f"{A}\n")
    run("next", tmp_path / "c")
    run("reload", tmp_path / "c")
    assert json.loads((tmp_path / "c" / "settings.json").read_text()) == before


def test_a_policy_of_the_users_own(tmp_path: Path):
    class Mine(Policy):
        name = "mine"

    crawl_at(tmp_path / "c", policy=Mine).close()
    name = json.loads((tmp_path / "c" / "settings.json").read_text())["policy"]
    assert name.endswith(":test_a_policy_of_the_users_own.<locals>.Mine")
    for words in (("next",), ("next", "--peek"), ("reload",)):
        with pytest.raises(ParameterError, match="is code from outside inlink"):
            run(words[0], tmp_path / "c", *words[1:])
    assert json.loads(run("crawl-info", tmp_path / "c", "--json"))["policy"] == name


def test_why(folder: Path):
    told = run("why", folder, "HTTP://A.example.com:80/y/z#top")  # any form of it
    assert told.startswith(f"{AY}/z: discovered, waiting at place 1\n")
    assert "by policy breadth-first" in told
    assert json.loads(run("why", folder, f"{AY}/z", "--json"))["place"] == 1
    assert told == run("why", folder, f"{4:016x}")
    assert f"merged into {AX}" in run("why", folder, AY)
    with pytest.raises(UnknownNodeError, match="not known"):
        run("why", folder, "http://nowhere.example/")
    with pytest.raises(UnknownNodeError, match="not known"):
        run("why", folder, "nonsense")
    with pytest.raises(UnknownNodeError, match="not known"):
        run("why", folder, f"{5:016x}")


def test_find_finds_what_python_finds(tmp_path: Path):
    urls = [f"http://h{k % 7}.example.com/{k}?q={k * k}" for k in range(3000)]
    with crawl_at(tmp_path / "c") as crawl:
        crawl.seed(urls)
    for regex in ("[13]7$", "^http://h3", "h2.*(00|11)", "nothing", ".", "(?i)EXAMPLE.*=1$"):
        wanted = [f"{k:016x} {url}" for k, url in enumerate(urls) if re.search(regex, url)]
        assert run("find", tmp_path / "c", regex).splitlines() == wanted
        assert run("find", tmp_path / "c", regex, "-n", 5).splitlines() == wanted[:5]
    wanted = [f"{k:016x} {url}" for k, url in enumerate(urls) if url.startswith("http://h3") and "q=1" in url]
    assert run("find", tmp_path / "c", "http://h3.*q=1*", "--glob").splitlines() == wanted
    wanted = [f"{k:016x} {url}" for k, url in enumerate(urls) if "h2.example.com/1" in url]
    assert run("find", tmp_path / "c", "H2.Example.com/1", "--text").splitlines() == wanted
    for wrong in ("(", "a{2,1}", r"(a)\1"):
        with pytest.raises(ParameterError, match="not a valid regular expression"):
            run("find", tmp_path / "c", wrong)
    with pytest.raises(ParameterError, match=r"searched [\d,]+ of 3,000 URLs in 0 seconds"):
        run("find", tmp_path / "c", ".", "--seconds", 0)


def test_find_cannot_be_held_up(tmp_path: Path):
    with crawl_at(tmp_path / "c") as crawl:
        crawl.seed([f"http://a.example.com/{'a' * 2000}{k}" for k in range(500)])
    assert run("find", tmp_path / "c", "(a|aa)+$") == ""  # Python's engine would take for ever
    assert run("find", tmp_path / "c", "((a*)*)*b$") == ""


def test_links(folder: Path):
    assert run("links", folder, A) == (
        f"->{0:016x}\n    {1:016x} {AX}\n{0:016x}->\n    {1:016x} {AX}\n    {2:016x} {AY}\n    {3:016x} {B}\n"
    )
    # what links to a page that was merged links to this one
    assert run("links", folder, f"{1:016x}") == (
        f"->{1:016x}\n    {0:016x} {A}\n{1:016x}->\n    {0:016x} {A}\n    {4:016x} {AY}/z\n"
    )
    assert run("links", folder, AY) == f"->{2:016x}\n    {0:016x} {A}\n{2:016x}->\n    {1:016x} {AX}\n"


def test_path(folder: Path):
    assert run("path", folder, f"{AY}/z") == f"{4:016x} {AY}/z\n{1:016x} {AX}\n{0:016x} {A}\n"
    assert run("path", folder, A) == f"{0:016x} {A}\n"
    for unknown in (f"{5:016x}", "f" * 16, "http://nowhere.example/", "nonsense"):
        with pytest.raises(UnknownNodeError, match="not known"):
            run("path", folder, unknown)


def test_dump_of_pages_tells_what_python_tells(folder: Path):
    head, *lines = run("dump", "pages", folder).splitlines()
    assert tuple(head.split("\t")) == PAGE_COLUMNS
    rows = [dict(zip(PAGE_COLUMNS, line.split("\t"), strict=True)) for line in lines]
    urls = [A, AX, AY, B, f"{AY}/z"]
    assert [row["url"] for row in rows] == urls
    number = {url: str(k) for k, url in enumerate(urls)} | {None: ""}
    with crawl_at(folder) as crawl:
        for row in rows:
            page = crawl.page(row["url"])
            assert page is not None
            assert row["page"] == str(page.id)
            assert row["state"] == page.state
            for name in ("depth", "crawls", "changes", "status", "errors"):
                assert row[name] == str(getattr(page, name)), name
            assert float(row["score"]) == page.score
            for name in ("first_crawl", "last_crawl"):
                found = getattr(page, name)
                assert row[name] == "" if found is None else float(row[name]) == found, name
            assert row["linked_from"] == number[page.linked_from]
            assert row["merged_into"] == number[page.merged_into]
            assert row["content_hash"] == page.content_hash.hex()
    assert [row["state"] for row in rows] == ["crawled", "crawled", "merged", "gone", "discovered"]
    assert rows[0]["changes"] == "1"
    assert rows[3]["error"] == "no such host"  # one line, no tab


def test_dump_as_aduana_has_it(folder: Path):
    assert run("dump", "pages", folder, "--aduana").splitlines() == [
        f"{0:016x} 0 {A} 0.0 59.8 1 2 7.500e-01",
        f"{1:016x} 1 {AX} 59.8 59.8 0 1 0.000e+00",
        f"{2:016x} 2 {AY} 0.0 0.0 0 0 0.000e+00",
        f"{3:016x} 3 {B} 0.0 0.0 0 0 0.000e+00",
        f"{4:016x} 4 {AY}/z 0.0 0.0 0 0 0.000e+00",
    ]
    with_depth = run("dump", "pages", folder, "--aduana", "--depth").splitlines()
    assert with_depth[0] == f"{0:016x} 0 {A} 0.0 59.8 1 2 1 7.500e-01"
    assert [line.split()[7] for line in with_depth] == ["1", "2", "2", "2", "3"]
    links = ["0 1", "0 1", "0 3", "1 0", "1 4"]
    assert sorted(run("dump", "links", folder, "--aduana").splitlines()) == links
    head, *plain = run("dump", "links", folder).splitlines()
    assert (head, sorted(plain)) == ("from\tto", [line.replace(" ", "\t") for line in links])


def test_dump_into_a_file(folder: Path, tmp_path: Path):
    for what in ("pages", "links"):
        assert run("dump", what, folder, "-o", tmp_path / "out") == ""
        assert (tmp_path / "out").read_text() == run("dump", what, folder)
    assert "--depth needs" in shell("dump", "links", folder, "--aduana", "--depth", cwd=tmp_path, code=2)


def test_many_pages_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with crawl_at(tmp_path / "c") as crawl:
        crawl.seed([f"http://h{k % 9}.example.com/{k}" for k in range(40)])
        for k in range(0, 40, 3):
            crawl.crawled(f"http://h{k % 9}.example.com/{k}", [f"/{k}/{i}" for i in range(k % 5)], score=k)
    whole = [run("dump", *what, tmp_path / "c") for what in (["pages"], ["links"], ["pages", "--aduana"])]
    monkeypatch.setattr("inlink.store.blocks.BLOCK", 100)
    monkeypatch.setattr("inlink.store.blocks.ARCS", 16)
    assert whole == [
        run("dump", *what, tmp_path / "c") for what in (["pages"], ["links"], ["pages", "--aduana"])
    ]
    assert len(whole[0].splitlines()) == 1 + len((tmp_path / "c" / "urls.txt").read_text().splitlines())


def test_rank_top_export_build(folder: Path, tmp_path: Path):
    assert "5 nodes, 4 arcs" in run("build", folder, "-o", tmp_path / "g")
    assert "converged" in run("rank", folder)
    best = json.loads(run("top", folder, "--json", "--foreign", "--uncrawled"))
    by_name = {one["node"]: one["value"] for one in best}
    graph = inlink.Graph.open(tmp_path / "g")
    names = graph.names
    assert names is not None
    wanted = inlink.pagerank(graph)
    assert by_name == pytest.approx({names[k]: value for k, value in enumerate(wanted.values)}, abs=1e-6)
    run("rank", folder, "--algorithm", "hits", "--name", "other")
    with crawl_at(folder) as crawl:
        crawl.seed(["http://late.example/"])
    assert json.loads(run("top", folder, "--json", "--foreign", "--uncrawled")) == best
    run("rank", folder, "--start", "pagerank", "--name", "again")
    assert len(json.loads(run("top", folder, "--by", "again", "--json", "--foreign", "--uncrawled"))) == 6
    run("export", folder, "-o", tmp_path / "x.csv")
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 5
    run("export", folder, "-o", tmp_path / "r.csv", "--by", "pagerank")
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 1 + 5  # of the pages that it knew
    run("export", folder, "-o", tmp_path / "x.sqlite", "--ranking", "pagerank")
    run("export", folder, "-o", tmp_path / "x.parquet", "--ranking", "again")
    assert inlink.read(tmp_path / "x.parquet").num_arcs == 4
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as base:
        rows = base.execute("SELECT name, state, pagerank FROM nodes").fetchall()
    assert rows[-1] == ("http://late.example/", 0, None)
    assert rows[0] == (A, 2, by_name[A])


# -- seeds ------------------------------------------------------------------------------------------------------------


def test_seed(tmp_path: Path):
    (tmp_path / "seeds.txt").write_bytes(
        b"\xef\xbb\xbf"
        + f"{A}\t0.25\r\n\r\n{B}#here\nmailto:me@example.com\n{B}\n".encode()
        + b"http://\xff/\n"
    )
    told = shell("seed", "c", "seeds.txt", cwd=tmp_path)
    assert told.startswith("2 new URLs, 1 known already\n")
    assert "refused 1: link is not http" in told
    with crawl_at(tmp_path / "c") as crawl:
        a, b = crawl.page(A), crawl.page(B)
        assert a is not None
        assert b is not None
        assert (a.score, b.score, a.depth) == (0.25, 1.0, 0)
    assert run("seed", tmp_path / "c", "-", stdin=f"{A}\n{AX}\n") == "1 new URL, 1 known already\n"


def test_many_seeds_take_more_than_one_event(tmp_path: Path):
    lines = [f"http://a.example.com/{k}\t{k}" for k in range(2500)]
    assert "2,500 new URLs" in run("seed", tmp_path / "c", "-", stdin="\n".join(lines))
    with look_at(tmp_path / "c") as seen:
        assert [seen.pages.url(k) for k in range(2500)] == [f"http://a.example.com/{k}" for k in range(2500)]
        assert seen.pages.scores[:2500].tolist() == list(range(2500))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{A}\n{B}\thigh\n", "seeds.txt, line 2: 'high' is not a score"),
        (f"{A}\tnan\n", "seeds.txt, line 1: 'nan' is not a score"),
        ("", "seeds.txt: no line begins with an http URL"),
        ("shopping list\nmilk\n", "seeds.txt: no line begins with an http URL"),
    ],
)
def test_bad_seeds_make_no_crawl(tmp_path: Path, text: str, says: str):
    (tmp_path / "seeds.txt").write_text(text)
    error = shell("seed", "c", "seeds.txt", cwd=tmp_path, code=2)
    assert says in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["seeds.txt"]


def test_reload(folder: Path):
    """Only pages of the states that are asked for; B is gone."""
    assert run("reload", folder) == run("reload", folder, "--excluded") == "0 pages wait again\n"
    assert run("reload", folder, "--failed", "--gone") == "1 page waits again\n"
    with crawl_at(folder) as crawl:
        assert crawl.page(B).state == "discovered"  # type: ignore[union-attr]
    assert run("reload", folder, "--gone") == "0 pages wait again\n"


def test_the_inbox_keeps_order_and_hides_what_is_not_whole(tmp_path: Path):
    assert pending(tmp_path) == []
    for k in range(5):
        post(tmp_path, "seed", f"http://a.example.com/{k}\udcff")
    post(tmp_path, "reload")
    (tmp_path / "inbox" / ".half.seed").write_text("x")
    found = pending(tmp_path)
    assert [(kind, text) for _, kind, text in found] == [
        *(("seed", f"http://a.example.com/{k}\udcff") for k in range(5)),
        ("reload", ""),
    ]
    found[0][0].unlink()
    assert pending(tmp_path) == found[1:]


def test_lines_of_seeds():
    assert seeds_in(" http://a/ \n\nhttp://b/\t-2.5\r\nhttp://c/\t\n", "f") == [
        ("http://a/", 1.0),
        ("http://b/", -2.5),
        ("http://c/", 1.0),
    ]
    for score in ("inf", "nan", "1e300", "-3e38", "high"):
        with pytest.raises(InputError, match=f"f, line 3: '{score}' is not a score"):
            seeds_in(f"\n\nx\t{score}", "f")


def test_a_request_that_cannot_be_carried_out_is_left_out_and_does_not_come_back(tmp_path: Path):
    with crawl_at(tmp_path / "c", clock=VirtualClock(), politeness={"delay": 0.0, "in_flight": 9}) as crawl:
        for text in ("http://a.example/\t1e300", "http://b.example/\udcff\t2", "http://c.example/"):
            post(crawl.folder, "seed", text)
        assert [lease.url for lease in crawl.next(9)][-1] == "http://c.example/"
        assert pending(crawl.folder) == []
        assert crawl.page("http://a.example/") is None


# -- what is no crawl, and what is an empty one -----------------------------------------------------------------------


def test_a_folder_without_a_crawl_is_refused_in_one_line_and_nothing_is_made(tmp_path: Path):
    inlink.Graph.from_arcs([("a", "b")], into=tmp_path / "graph")
    (tmp_path / "file").write_text(f"{A}\n")
    (tmp_path / "stuff").mkdir()
    (tmp_path / "stuff" / "thing").write_text("x")
    before = sorted(tmp_path.rglob("*"))
    says = {
        "none": "none does not exist",
        "graph": "graph holds a graph, not a crawl",
        "file": "file is a file, not an inlink folder",
        "stuff": "stuff is not an inlink folder",
    }
    for place, message in says.items():
        for command in COMMANDS:
            if place in ("graph", "file") and command in ("find", "links", "path"):
                # These take a graph too, or its file; tests/graph/test_neighbours.py has them.
                continue
            result = CliRunner().invoke(commands, ["-q", *arguments(command, tmp_path / place)])
            assert isinstance(result.exception, InlinkError), (command, place, result.output)
            assert message in str(result.exception)
        result = CliRunner().invoke(commands, ["-q", "next", str(tmp_path / place)])
        assert isinstance(result.exception, InlinkError)
    for place in ("graph", "file", "stuff"):
        result = CliRunner().invoke(commands, ["-q", "seed", str(tmp_path / place), "-"], input=f"{A}\n")
        assert isinstance(result.exception, InlinkError), (place, result.exception)
    assert sorted(tmp_path.rglob("*")) == before
    error = shell("find", "none", ".", cwd=tmp_path, code=2)  # once through the front door
    assert error == "inlink: none does not exist\n"


def test_all_commands_work_on_an_empty_crawl(tmp_path: Path):
    crawl_at(tmp_path / "c").close()
    for command in ("crawl-info", "next", "find", "dump", "reload"):
        run(*arguments(command, tmp_path / "c"))
    assert run("next", tmp_path / "c") == ""
    assert run("dump", "links", tmp_path / "c", "--aduana") == ""
    assert run("dump", "pages", tmp_path / "c", "--aduana") == ""
    for command in ("why", "links", "path"):
        with pytest.raises(UnknownNodeError):
            run(*arguments(command, tmp_path / "c"))
    run("rank", tmp_path / "c")
    assert run("top", tmp_path / "c") == ""
    assert "0 nodes" in run("build", tmp_path / "c", "-o", tmp_path / "g")
    run("export", tmp_path / "c", "-o", tmp_path / "x.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["dump links {}", "next {} --peek -n 100"])
def test_a_closed_pipe_is_no_error(tmp_path: Path, command: str):
    with crawl_at(tmp_path / "c", politeness=Politeness(delay=0)) as crawl:
        crawl.seed([f"http://h{k}.example.com/" for k in range(20_000)])
        for k in range(3):
            crawl.crawled(f"http://h{k}.example.com/", [f"http://h{i}.example.com/" for i in range(20_000)])
    line = f"{sys.executable} -m inlink -q {command.format('c')} | head -1"
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
