"""A published graph answers as the graph does, reads little, and is not trusted."""

import contextlib
import json
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flaky
from flaky import flaky_server  # noqa: F401
from graphfiles import content, graphs
from inlink import Graph, PublishedGraph, Ranking, degree, hits, pagerank, publish
from inlink.cli import commands
from inlink.errors import DamageError, FolderError, InlinkError, InputError, ParameterError, UnknownNodeError
from inlink.graph.names import Names
from inlink.rank.certain import best_nodes, certain_places
from inlink.sources.lookups import GraphLookUps

LONG = b"x" * 5000
NAMES = st.binary(max_size=6) | st.sampled_from(
    [
        b"com.a",
        b"com.a.b",
        b"com.a.b c",
        "com.ä".encode(),
        b"\xff",
        b"\x1b[31m",
        b"\n",
        LONG,
        LONG + b"1",
        LONG + b"2",
    ]
)
FEW = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


def small(monkeypatch, nodes=2, arcs=3, groups=2):
    for name, size in (("_NODES", nodes), ("_ARCS", arcs), ("_GROUPS", groups)):
        monkeypatch.setattr(f"inlink.sources.publish.{name}", size)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    small(monkeypatch)


def run(*argv):
    """Run a command in this process; return its exit code, output and errors."""
    result = CliRunner().invoke(commands, list(map(str, argv)))
    assert result.exception is None or isinstance(result.exception, SystemExit | InlinkError), (
        result.exception
    )
    if isinstance(result.exception, InlinkError):
        return 2, result.stdout, f"{result.exception}"
    return result.exit_code, result.stdout, result.stderr


# -- the same answers as the graph ---------------------------------------------------------------------------


@settings(max_examples=80, **FEW)
@given(graphs(NAMES) | graphs(None))
def test_links_are_those_of_the_graph(tmp_path_factory, graph):
    folder = tmp_path_factory.mktemp("p") / "d"
    publish(graph, folder)
    published = PublishedGraph.open(folder)
    labels, arcs = content(graph)
    assert (published.num_nodes, published.num_arcs) == (len(labels), len(arcs))
    order = sorted(labels)
    for number, label in enumerate(order):
        text = str(label) if graph.names is None else label.decode("utf-8", "surrogateescape")
        assert published.node(text) == number
        facts = published.facts(number)
        assert facts.name == (None if graph.names is None else text)
        linking = [order.index(source) for source, target in sorted(arcs) if target == label]
        linked = [order.index(target) for source, target in sorted(arcs) if source == label]
        assert (facts.inlinks, facts.outlinks) == (len(linking), len(linked))
        for direction, others in (("in", linking), ("out", linked)):
            rows = list(published.links(number, direction))
            assert [row.node for row in rows] == sorted(others)
            assert all(row.name == published.facts(row.node).name for row in rows)


@settings(max_examples=60, **FEW)
@given(
    graphs(NAMES),
    st.lists(st.binary(max_size=4) | st.sampled_from([LONG, LONG + b"0", LONG + b"11", b"com.a.b "])),
)
def test_names_that_are_not_there_are_not_known(tmp_path_factory, graph, others):
    folder = tmp_path_factory.mktemp("p") / "d"
    publish(graph, folder)
    published = PublishedGraph.open(folder)
    for other in set(others) - content(graph)[0]:
        with pytest.raises(UnknownNodeError, match=r"is not known in .*: search with `inlink find`"):
            published.node(other.decode("utf-8", "surrogateescape"))


@settings(max_examples=60, **FEW)
@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.25 + 1e-9, 1.0, np.nan]), min_size=1, max_size=30),
    st.integers(0, 12),
    st.sampled_from([None, 0.0, 1e-6, 0.2, float("inf")]),
)
def test_the_best_nodes_are_those_of_the_ranking(tmp_path_factory, monkeypatch, values, count, bound):
    folder = tmp_path_factory.mktemp("p") / "d"
    graph = Graph.from_arcs([], num_nodes=len(values))
    ranking = Ranking(np.array(values), algorithm="pagerank", error_bound=bound, iterations=1)
    with monkeypatch.context() as patch:
        patch.setattr("inlink.sources.publish.load_ranking", lambda *_: ranking)
        publish(graph, folder, rankings=["r"])
    rows, algorithm = PublishedGraph.open(folder).top("r", count)
    known = np.where(np.isnan(values), -1.0, values)
    expected = [node for node in best_nodes(known, count).tolist() if known[node] >= 0]
    assert algorithm == "pagerank"
    assert [(row.place, row.node, row.value) for row in rows] == [
        (place, node, values[node]) for place, node in enumerate(expected, 1)
    ]
    if bound is None:
        assert all(row.certain is None for row in rows)
    else:
        places = certain_places(known[known >= 0], bound, len(expected)) if expected else None
        assert [row.certain for row in rows] == ([] if places is None else places.certain.tolist())


@pytest.fixture
def ranked(tmp_path):
    rng = np.random.default_rng(1)
    names = [f"com.n{k:02}{'.www' if k % 3 else ''}" for k in range(30)] + ["com.\x1b[2J", "de.ä b"]
    arcs = [(names[i], names[k]) for i, k in rng.integers(0, len(names) - 4, (120, 2)).tolist()]
    graph = Graph.from_arcs([*arcs, ("com.\x1b[2J", names[3]), (names[3], "de.ä b")], into=tmp_path / "g")
    for ranking in (pagerank(graph), hits(graph), degree(graph)):
        ranking.save(graph)
    publish(graph, tmp_path / "d")
    return graph


QUESTIONS = [
    *(["links", name] for name in ("com.n03", "com.\x1b[2J", "0000000000000002", "de.ä b", "no")),
    *(["page", name] for name in ("com.n03", "com.\x1b[2J", "000000000000001d", "n3")),
    *(
        ["top", "-n", str(count), "--by", by]
        for count in (0, 1, 7, 99)
        for by in ("pagerank", "hits", "indegree", "katz")
    ),
    ["top", "--by", "hits", "--hubs"],
    ["top", "--hubs"],
    ["top", "--foreign"],
    ["top", "--content"],
    ["find", "n0[1-4]"],
    ["find", "n0", "-n", "2"],
    ["find", "--glob", "*b"],
    ["find", "--text", "WWW"],
    ["find", "nowhere"],
    ["find", "("],
]


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS, ids=" ".join)
def test_commands_answer_as_from_the_graph(ranked, tmp_path, question):
    command, *rest = question
    for more in ([], ["--json"]):
        code, output, errors = run(command, tmp_path / "g", *rest, *more)
        answer = run(command, tmp_path / "d", *rest, *more)
        if errors and question[-1] not in ("nowhere", "("):
            # A published graph suggests no other names, and gives no command that makes a ranking.
            assert answer[:2] == (code, output)
            assert answer[2]
        else:
            assert answer == (code, output, errors)
        assert "\x1b" not in output + answer[1]


def test_both_answer_the_same_questions(ranked, tmp_path):
    questions = {name for name in vars(GraphLookUps) if not name.startswith("_")}
    assert questions <= set(dir(PublishedGraph.open(tmp_path / "d")))


def test_nodes_are_named_by_number_too(ranked, tmp_path):
    published = PublishedGraph.open(tmp_path / "d")
    node = published.node("com.n03")
    assert published.facts("com.n03") == published.facts(node) == published.facts(np.int64(node))
    assert list(published.links("com.n03", "in")) == list(published.links(node, "in"))
    assert repr(published).startswith("<inlink published graph: 30 nodes, 113 arcs, 3 rankings, ")
    for wrong in (-1, 30):
        with pytest.raises(UnknownNodeError):
            published.facts(wrong)
    with pytest.raises(ParameterError, match="`direction` must be 'in' or 'out'"):
        next(published.links(0, "both"))
    with pytest.raises(ParameterError, match="`count` must be a whole number of at least 0; got -1"):
        published.top("pagerank", -1)
    with pytest.raises(UnknownNodeError):
        published.node("\ud800")


def test_names_of_hosts_may_be_as_people_write_them(large, tmp_path):
    published = PublishedGraph.open(tmp_path / "d")
    assert published.node("example0042.com") == published.node("com.example0042")


def test_crawled_nodes_are_told(tmp_path):
    from inlink import Crawl
    from inlink.sources.crawlgraph import graph_in

    with Crawl(tmp_path / "c") as crawl:
        crawl.seed(["https://example.org/"])
        crawl.crawled("https://example.org/", ["https://example.org/a"])
    publish(graph_in(tmp_path / "c"), tmp_path / "d")
    published = PublishedGraph.open(tmp_path / "d")
    assert [published.facts(url).crawled for url in ("https://example.org", "https://example.org/a")] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    "argv",
    [
        ["path", "--from", "a", "d", "b"],
        ["near", "d", "a"],
        ["rank", "d"],
        ["export", "d", "-o", "x.tsv"],
        ["info", "d", "--verify"],
    ],
)
def test_other_commands_name_what_a_published_graph_is_for(ranked, tmp_path, monkeypatch, argv):
    monkeypatch.chdir(tmp_path)
    code, output, errors = run(*argv)
    assert (code, output) == (2, "")
    assert "d is a published graph, for `inlink links`, `page`, `top`, `find`" in errors


def test_templates_need_a_crawl(ranked, tmp_path):
    assert "--template applies only to crawls" in run("links", tmp_path / "d", "com.n03", "--template")[2]


# -- over HTTP -----------------------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A graph with many parts: names with a common beginning, and a node with many linkers."""
    small(monkeypatch, 512, 2048, 4)
    rng = np.random.default_rng(2)
    pairs = (8000 * rng.random((60_000, 2)) ** [1, 3]).astype(np.uint32)
    graph = Graph.from_arcs(pairs, num_nodes=8000)
    graph.names = Names.of(f"com.example{k * 7919 % 8000:04}" for k in range(8000))
    graph.level = "domain"
    values = np.random.default_rng(3).random(8000)
    ranking = Ranking(values, algorithm="pagerank", error_bound=1e-6, iterations=1)
    with monkeypatch.context() as patch:
        patch.setattr("inlink.sources.publish.load_ranking", lambda *_: ranking)
        publish(graph, tmp_path / "d", rankings=["pagerank"])
    return graph, values


def spans(server):
    """The files that were asked for, each with the number of bytes; None for a whole file."""
    pairs = [(path.removeprefix("/d/"), span) for path, span in server.asked]
    for path, span in pairs:
        if span is None:
            yield path, None
        else:
            first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", span).groups())
            yield path, last - first + 1


def most_bytes(folder, table):
    """Bytes of the largest footer and of the largest row group of a table."""
    metadata = [pq.read_metadata(file) for file in (folder / table).iterdir()]
    groups = [part.row_group(k) for part in metadata for k in range(part.num_row_groups)]
    sizes = [sum(group.column(k).total_compressed_size for k in range(group.num_columns)) for group in groups]
    return max(part.serialized_size for part in metadata) + 8, max(sizes)


def test_a_look_up_reads_two_footers_and_row_groups(large, server, tmp_path):
    graph, _ = large
    footer, group = np.max(
        [most_bytes(tmp_path / "d", table) for table in ("nodes", "arcs_by_source", "arcs_by_target")], 0
    ).tolist()
    node = int(np.argmax(graph.indegrees))
    for name in (graph.names[node], graph.names[7000]):
        server.asked.clear()
        published = PublishedGraph.open(f"{server.url}/d/")
        links = [[row.name for row in published.links(name, direction)] for direction in ("in", "out")]
        number = graph.node(name)
        expected = [graph.inlinks(number), graph.outlinks(number)]
        assert links == [sorted(graph.names[k] for k in row.tolist()) for row in expected]
        (index, _), *reads = spans(server)
        assert index == "index.json"
        # Arcs of a node are in as many groups as they fill, and in one more at each end, of at most two parts more.
        groups = 1 + sum(len(row) // 2048 + 2 for row in expected)
        parts = 1 + sum(len(row) // 8192 + 2 for row in expected)
        assert len(reads) <= groups + parts
        assert sum(size for _, size in reads) <= groups * group + parts * footer
        total = sum(size for _, size in reads) + (tmp_path / "d/index.json").stat().st_size
        assert (published.bytes_read, published.requests) == (total, len(reads) + 1)


def test_top_reads_the_groups_with_the_best_values(large, server, tmp_path):
    graph, values = large
    published = PublishedGraph.open(f"{server.url}/d")
    rows, _ = published.top("pagerank", 3)
    best = np.argsort(-values)[:3]
    assert [(row.name, row.value, row.certain) for row in rows] == [
        (graph.names[k], values[k], True) for k in best
    ]
    _, *reads = spans(server)
    parts = len(list((tmp_path / "d/nodes").iterdir()))
    # A group that holds none of the best four is not read.
    assert len(reads) <= parts + 4 + 3 < parts + 8000 // 512


@pytest.mark.slow
def test_threads_may_share_a_published_graph(large, tmp_path):
    graph, _ = large
    published = PublishedGraph.open(tmp_path / "d")
    names = [graph.names[node] for node in range(0, 8000, 97)]
    with ThreadPoolExecutor(4) as pool:
        facts = list(pool.map(published.facts, names * 3))
    alone = PublishedGraph.open(tmp_path / "d")
    assert facts == [alone.facts(name) for name in names] * 3


def test_find_reads_all_names_and_no_arcs(large, server):
    published = PublishedGraph.open(f"{server.url}/d")
    matches = [match for part, _ in published.find("^com.example00[0-3]1$") for match in part]
    assert [name for _, name in matches] == [f"com.example00{k}1" for k in range(4)]
    assert all(published.facts(number).name == name for number, name in matches)
    assert {path.partition("/")[0] for path, _ in spans(server)} == {"index.json", "nodes"}


@pytest.mark.slow
def test_commands_take_urls(ranked, server):
    for question in (["links", "com.n03"], ["page", "com.n04.www"], ["top", "-n", "3"], ["find", "n00"]):
        command, *rest = question
        assert run(command, f"{server.url}/d", *rest) == run(command, "d", *rest)
        assert run(command, f"{server.url}/d", *rest)[0] == 0


def test_a_cut_connection_goes_on(large, server):
    graph, _ = large
    published = PublishedGraph.open(f"{server.url}/d")
    server.cuts = [10, 5, 0]
    assert len(list(published.links(graph.names[0], "in"))) == graph.indegrees[0]
    assert len(server.waits) == 3


def test_a_busy_server_is_asked_again_and_given_up(ranked, server):
    server.answers = [503, 429]
    published = PublishedGraph.open(f"{server.url}/d")
    server.answers = [500] * 20
    with pytest.raises(InputError, match="the server answers 500 Internal Server Error; tried 8 times"):
        published.node("com.n03")


def test_redirects_are_followed(ranked, server):
    class Moved(flaky.Flaky):
        def do_GET(self):  # noqa: N802
            if not self.path.startswith("/old/"):
                super().do_GET()
                return
            self.send_response(302)
            self.send_header("Location", self.path.replace("/old/", "/d/"))
            self.send_header("Content-Length", "0")
            self.end_headers()

    server.RequestHandlerClass = Moved
    assert run("links", f"{server.url}/old", "com.n03") == run("links", "d", "com.n03")


@pytest.mark.slow
def test_a_silent_server_is_given_up(ranked, server, monkeypatch):
    ended = threading.Event()

    class Silent(flaky.Flaky):
        def do_GET(self):  # noqa: N802
            ended.wait()

    published = PublishedGraph.open(f"{server.url}/d")
    server.RequestHandlerClass = Silent
    monkeypatch.setattr("inlink.base.urlfiles._PATIENCE", 0.1)
    try:
        with pytest.raises(
            InputError, match=r"nodes/part-0000.\.parquet: cannot be read \(timed out; tried 8 times\)"
        ):
            published.node("com.n03")
    finally:
        ended.set()


def test_a_server_without_ranges_is_refused(ranked, server):
    server.ranges = False
    code, output, errors = run("links", f"{server.url}/d", "com.n03")
    assert (code, output) == (2, "")
    assert (
        "part-00001.parquet: the server sends whole files only, no ranges: download them and name the folder"
        in errors
    )


def test_files_that_change_while_they_are_read_are_refused(ranked, server):
    published = PublishedGraph.open(f"{server.url}/d")
    server.etags = [f'"{k}"' for k in range(9)]
    with pytest.raises(InputError, match="was replaced while it was read"):
        list(published.links("com.n03", "in"))


def test_a_server_that_sends_other_bytes_is_refused(ranked, server, monkeypatch):
    class Other(flaky.Flaky):
        def send_header(self, name, value):
            super().send_header(
                name, value.replace("bytes ", "bytes 1") if name == "Content-Range" else value
            )

    published = PublishedGraph.open(f"{server.url}/d")
    server.RequestHandlerClass = Other
    with pytest.raises(InputError, match="sends another range than it was asked for"):
        published.node("com.n03")


@pytest.mark.slow
def test_s3(ranked, server, tmp_path, monkeypatch):
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    (tmp_path / "bucket").mkdir()
    shutil.copytree(tmp_path / "d", tmp_path / "bucket/d")
    there, here = PublishedGraph.open("s3://bucket/d"), PublishedGraph.open(tmp_path / "d")
    assert list(there.links("com.n03", "in")) == list(here.links("com.n03", "in"))
    assert there.top("pagerank", 5) == here.top("pagerank", 5)
    assert there.bytes_read == here.bytes_read


def test_where_there_is_none(server, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, errors = run("links", f"{server.url}/empty", "a")
    assert code == 2
    assert re.search(
        r"is no published graph: .*/index.json: the server answers 404 .*/v1/crawls/NAME", errors
    )
    with pytest.raises(FolderError, match=r"empty is no published graph: .*index\.json: cannot be read"):
        PublishedGraph.open(tmp_path / "empty")


# -- not trusted ---------------------------------------------------------------------------------------------


def changed(folder, change):
    path = folder / "index.json"
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))


def test_a_newer_format_is_refused(ranked, tmp_path):
    changed(tmp_path / "d", lambda index: index.update(version=2, tables=None))
    with pytest.raises(
        FolderError, match="has format version 2 and this inlink reads up to 1: upgrade inlink"
    ):
        PublishedGraph.open(tmp_path / "d")


WRONG = {
    "no rows": lambda index: index["tables"]["nodes"][0].update(rows=0),
    "many rows": lambda index: index["tables"]["nodes"][0].update(rows=2**60),
    "below zero": lambda index: index["tables"]["nodes"][0].update(rows=-1),
    "a huge footer": lambda index: index["tables"]["nodes"][0].update(footer=2**40, bytes=2**50),
    "no footer": lambda index: index["tables"]["nodes"][0].update(footer=0),
    "text": lambda index: index["tables"]["nodes"][0].update(bytes="1"),
    "another order": lambda index: index["tables"]["arcs_by_source"].reverse(),
    "an id": lambda index: index["tables"]["nodes"][1].update(id=1),
    "a surrogate": lambda index: index["tables"]["nodes"][0].update(name="\ud800"),
    "no parts": lambda index: index["tables"].update(nodes=[]),
    "no table": lambda index: index["tables"].pop("arcs_by_target"),
    "many nodes": lambda index: index["graph"].update(nodes=2**70),
    "columns": lambda index: index["rankings"]["pagerank"].update(columns=[]),
    "a column of nodes": lambda index: index["rankings"]["pagerank"].update(columns=["name"]),
    "no bound": lambda index: index["rankings"]["pagerank"].update(error_bound="little"),
    "a bound below zero": lambda index: index["rankings"]["pagerank"].update(error_bound=-1e-9),
    "a bound that is no number": lambda index: index["rankings"]["pagerank"].update(residual="nan"),
    "no version": lambda index: index.update(version="1"),
    "a name": lambda index: index["rankings"].update({"\x1b[2J": index["rankings"]["pagerank"]}),
    "no graph": lambda index: index.pop("graph"),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_an_index_that_contradicts_itself_is_refused(ranked, tmp_path, change):
    changed(tmp_path / "d", change)
    with pytest.raises(
        DamageError, match=r"index.json: no index of a published graph \(.*\): fetch it again"
    ) as error:
        PublishedGraph.open(tmp_path / "d")
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{}", "\xff", "[" * 100_000, '{"version": 1}', '{"version": "9"}']
)
def test_what_is_no_index_is_refused(tmp_path, text):
    (tmp_path / "index.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(DamageError, match=r"index\.json: no index of a published graph"):
        PublishedGraph.open(tmp_path)


def test_an_endless_index_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("inlink.sources.published._MOST_INDEX", 100)
    (tmp_path / "index.json").write_text(" " * 101)
    with pytest.raises(DamageError, match="so it is no index of inlink"):
        PublishedGraph.open(tmp_path)


BELIEVED = {
    "a small footer": lambda part: part.update(footer=12),
    "another footer": lambda part: part.update(footer=part["footer"] + 1),
    "more bytes": lambda part: part.update(bytes=part["bytes"] + 1),
    "fewer bytes": lambda part: part.update(bytes=part["bytes"] - 1),
}


@pytest.mark.parametrize(("table", "change"), list(product(["nodes", "arcs_by_target"], BELIEVED.values())))
def test_an_index_that_contradicts_the_parts_is_noticed(ranked, tmp_path, table, change):
    changed(tmp_path / "d", lambda index: [change(part) for part in index["tables"][table]])
    with pytest.raises(DamageError, match=rf"{table}/part-0000.\.parquet: .*: fetch it again"):
        list(PublishedGraph.open(tmp_path / "d").links("com.n03", "in"))


def test_missing_arcs_are_noticed(ranked, tmp_path):
    published = PublishedGraph.open(tmp_path / "d")
    node = int(np.argmax(ranked.indegrees))
    files = sorted((tmp_path / "d/arcs_by_target").iterdir())
    for file in files[1:]:
        shutil.copy(files[0], file)
    with pytest.raises(DamageError):
        list(published.links(node, "in"))


@pytest.mark.parametrize("keep", [0, 1, 12, 0.5, -1])
def test_cut_files_are_noticed(ranked, tmp_path, keep):
    for file in (tmp_path / "d/nodes").iterdir():
        data = file.read_bytes()
        file.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    code, output, errors = run("links", tmp_path / "d", "com.n03")
    assert (code, output) == (2, "")
    assert "the file is cut, or is not the one of index.json: fetch it again" in errors


@pytest.mark.slow
def test_names_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    small(monkeypatch, 100, 100, 100)
    names = [f"{'a' * 100_000}{k:03}" for k in range(80)]
    publish(Graph.from_arcs([(name, names[0]) for name in names]), tmp_path / "d")
    assert sum(file.stat().st_size for file in (tmp_path / "d/nodes").iterdir()) < 5000
    assert PublishedGraph.open(tmp_path / "d").node(names[7]) == 7
    monkeypatch.setattr("inlink.sources.published._MOST_GROUP", 1_000_000)
    with pytest.raises(DamageError, match="a row group is too large"):
        PublishedGraph.open(tmp_path / "d").node(names[7])


@settings(max_examples=150, **FEW)
@given(st.data())
def test_changed_bytes_give_the_same_answer_or_an_error(ranked_folder, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("p") / "d"
    shutil.copytree(ranked_folder, folder)
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".parquet", ".json"))
    file = data.draw(st.sampled_from(files))
    content = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    expected = PublishedGraph.open(ranked_folder)
    for direction in ("in", "out"):
        with contextlib.suppress(InlinkError):
            links = list(PublishedGraph.open(folder).links("com.n03", direction))
            assert links == list(expected.links("com.n03", direction))


@pytest.fixture(scope="module")
def ranked_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranked") / "d"
    with pytest.MonkeyPatch.context() as patch:
        small(patch, 4, 8, 2)
        names = [f"com.n{k:02}" for k in range(12)]
        publish(Graph.from_arcs([(i, k) for i in names[:6] for k in names[2:]]), folder)
    return folder
