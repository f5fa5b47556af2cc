"""Look-ups around single nodes of a graph, against slow and obvious twins, and the commands that use them."""

import json
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import inlink
from foldercommands import AX, AY, A, B, run
from inlink.cli import commands
from inlink.errors import FolderError, ParameterError, UnknownNodeError
from inlink.graph import neighbours
from inlink.graph.graph import Graph, Rows, is_graph
from inlink.graph.names import Names
from inlink.graph.neighbours import chain, find, near, node_of, sharing

arcs = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40)


def graph_of(pairs: list[tuple[int, int]]) -> Graph:
    return Graph.from_arcs(np.array(pairs, np.uint32).reshape(-1, 2), num_nodes=12)


@given(arcs, st.integers(0, 11), st.integers(1, 5), st.sampled_from(["in", "out", "both"]))
def test_near_is_breadth_first(pairs, node, hops, direction):
    ways: dict[int, set[int]] = {k: set() for k in range(12)}
    for source, target in pairs:
        if direction != "in":
            ways[source].add(target)
        if direction != "out":
            ways[target].add(source)
    distance, waiting = {node: 0}, deque([node])
    while waiting:
        here = waiting.popleft()
        for other in ways[here] - distance.keys():
            distance[other] = distance[here] + 1
            waiting.append(other)
    expected = sorted((d, k) for k, d in distance.items() if 0 < d <= hops)
    nodes, distances = near(graph_of(pairs), node, hops, direction)
    assert list(zip(distances.tolist(), nodes.tolist(), strict=True)) == expected


@given(arcs, st.integers(0, 11))
def test_sharing_counts_common_linkers(pairs, node):
    links = set(pairs)
    shared = {
        other: sum((k, node) in links and (k, other) in links for k in range(12))
        for other in range(12)
        if other != node
    }
    expected = sorted((-count, other) for other, count in shared.items() if count)
    nodes, counts = sharing(graph_of(pairs), node)
    assert list(zip((-counts).tolist(), nodes.tolist(), strict=True)) == expected


@given(arcs, st.integers(0, 11), st.integers(0, 11))
def test_chains_are_shortest(pairs, source, target):
    graph: Any = nx.DiGraph(pairs)
    graph.add_nodes_from(range(12))
    found = chain(graph_of(pairs), source, target)
    if not nx.has_path(graph, source, target):
        assert found is None
        return
    assert found is not None
    assert (found[0], found[-1]) == (source, target)
    assert len(found) - 1 == nx.shortest_path_length(graph, source, target)
    assert all(step in set(pairs) for step in pairwise(found))


def test_rows_are_gathered_in_parts(monkeypatch):
    monkeypatch.setattr(neighbours, "_ARCS", 3)
    pairs = [(k, (7 * k + j) % 60) for k in range(60) for j in range(k % 9)]
    graph = Graph.from_arcs(pairs, num_nodes=60)
    nodes, _ = near(graph, 8, 2)
    monkeypatch.undo()
    assert nodes.tolist() == near(graph, 8, 2)[0].tolist()
    monkeypatch.setattr(neighbours, "_ARCS", 3)
    found = [part.tolist() for part in sharing(graph, 8)]
    monkeypatch.undo()
    assert found == [part.tolist() for part in sharing(graph, 8)]


class Counted(np.ndarray):  # type: ignore[type-arg]
    """An array that counts the elements that are read."""

    read = 0

    def __getitem__(self, key: Any) -> Any:
        found = np.asarray(self).__getitem__(key)
        Counted.read += int(np.size(found))
        return found


def test_a_look_up_reads_a_small_part_of_the_graph():
    n = 100_000
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], 1).astype(np.uint32)
    graph = Graph.from_arcs(ring)
    out, back = (Rows(*(part.view(Counted) for part in rows[:2])) for rows in (graph.out_rows, graph.in_rows))
    counted = Graph(out, back, checked=True)
    Counted.read = 0
    assert near(counted, 50, 3)[0].tolist() == [49, 51, 48, 52, 47, 53]
    assert sharing(counted, 50)[0].tolist() == []
    assert chain(counted, 50, 60) == list(range(50, 61))
    assert counted.inlinks(50).tolist() == [49]
    assert 0 < Counted.read < 200


def test_arguments_are_checked():
    graph = graph_of([(0, 1)])
    with pytest.raises(ParameterError, match="`hops` must be at least 1; got 0"):
        near(graph, 0, 0)
    with pytest.raises(ParameterError, match="`direction` must be"):
        near(graph, 0, 1, "up")  # type: ignore[arg-type]
    for look in (near, sharing):
        with pytest.raises(UnknownNodeError):
            look(graph, 12)
    with pytest.raises(UnknownNodeError):
        chain(graph, 0, 12)
    with pytest.raises(ParameterError, match="no names to search"):
        next(find(graph, "a"))


def test_nodes_are_known_by_what_users_type():
    pages = inlink.Graph.from_arcs([(A, B), (A, AX)])
    pages.level = "page"
    assert node_of(pages, "HTTP://A.example.com:80/#top") == node_of(pages, A) == pages.node(A)
    assert node_of(pages, f"{pages.node(B):016x}") == pages.node(B)
    hosts = inlink.Graph.from_arcs([("com.example.www", "org.example")])
    hosts.level = "host"
    assert node_of(hosts, "www.example.com") == node_of(hosts, "com.example.www") == 0
    plain = graph_of([(0, 1)])
    assert node_of(plain, "11") == node_of(plain, "000000000000000B") == 11
    for graph, wrong in [
        (pages, "1"),
        (plain, "12"),
        (plain, "-1"),
        (plain, "a"),
        (pages, "ffffffffffffffff"),
    ]:
        with pytest.raises(UnknownNodeError, match=r"is not known in .*: search with `inlink find`"):
            node_of(graph, wrong)


def test_find_reads_text_by_characters_and_other_names_by_bytes():
    names = Names.of(["Erdős", "Erdos", b"Erd\xffs"])
    rows = Rows(np.zeros(4, np.uint64), np.empty(0, np.uint32))
    graph = Graph(rows, names=names, checked=True)
    assert [node for part, _ in find(graph, "^Erd.s$") for node, _ in part] == [0, 1, 2]
    text = Graph(Rows(np.zeros(3, np.uint64), rows.nodes), names=Names.of(["Erdős", "Erdos"]), checked=True)
    assert [node for part, _ in find(text, "^Erd.s$") for node, _ in part] == [0, 1]
    assert [node for part, _ in find(text, "ERDŐ", "text") for node, _ in part] == [0]
    assert [node for part, _ in find(text, "E*o?", "glob") for node, _ in part] == [1]


# -- the commands -----------------------------------------------------------------------------------------------------


def fails(*arguments: object) -> str:
    result = CliRunner().invoke(commands, ["-q", *map(str, arguments)])
    assert isinstance(result.exception, FolderError | ParameterError | UnknownNodeError), result.output
    return str(result.exception)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pairs = [("a", "b"), ("a", "c"), ("d", "b"), ("d", "c"), ("b", "e"), ("e", "\x1b[2Jevil\n")]
    graph = Graph.from_arcs(pairs, into=tmp_path / "g")
    inlink.pagerank(graph).save(graph)
    inlink.hits(graph).save(graph)
    return tmp_path / "g"


def test_the_commands_take_a_graph(folder):
    assert is_graph(folder)
    assert not is_graph(folder / "rankings" / "hits")
    assert run("links", folder, "b").splitlines() == [
        "->0000000000000002",
        "    0000000000000001 a",
        "    0000000000000004 d",
        "0000000000000002->",
        "    0000000000000005 e",
    ]
    assert run("find", folder, "[ad]").splitlines() == ["0000000000000001 a", "0000000000000004 d"]
    assert run("find", folder, "[ad]", "-n", 1) == "0000000000000001 a\n"
    assert run("near", folder, "a", "--hops", 2) == "1\tb\n1\tc\n2\td\n2\te\n"
    assert run("near", folder, "a", "--hops", 2, "--direction", "out") == "1\tb\n1\tc\n2\te\n"
    assert run("near", folder, "b", "--sharing") == "2\tc\n"
    assert run("path", folder, "e", "--from", "a").splitlines() == [
        "0000000000000005 e",
        "0000000000000002 b",
        "0000000000000001 a",
    ]
    shown = dict(line.split(None, 1) for line in run("page", folder, "b").splitlines() if " " in line.strip())
    assert (shown["node"], shown["name"], shown["inlinks"], shown["outlinks"]) == ("2", "b", "2", "1")
    assert shown["hits"].startswith("authorities 0.")
    told = json.loads(run("page", folder, "b", "--json"))
    assert (told["name"], told["inlinks"], told["crawled"]) == ("b", 2, None)
    assert told["rankings"]["hits"]["hubs"] == inlink.Ranking.load(folder, "hits").hubs[2]


def test_near_is_bounded_and_can_be_ordered_by_a_ranking(folder):
    result = CliRunner().invoke(commands, ["-q", "near", str(folder), "a", "--hops", "9", "-n", "2"])
    assert result.stdout == "1\tb\n1\tc\n"
    assert result.stderr == "inlink: 3 more: use -n to see them\n"
    told = json.loads(run("near", folder, "a", "--hops", 2, "-n", 1, "--json"))
    assert told == {"nodes": 4, "rows": [{"hops": 1, "node": 2, "name": "b"}]}
    ranking = inlink.Ranking.load(folder, "pagerank")
    rows = json.loads(run("near", folder, "a", "--hops", 2, "--by", "pagerank", "--json"))["rows"]
    assert [row["value"] for row in rows] == [ranking[row["name"]] for row in rows]
    assert [(row["hops"], -row["value"]) for row in rows] == sorted(
        (row["hops"], -row["value"]) for row in rows
    )
    wrong = CliRunner().invoke(
        commands, ["near", str(folder), "a", "--sharing", "--hops", "2"], standalone_mode=False
    )
    assert "--sharing cannot be combined" in str(wrong.exception)


def test_names_from_outside_are_escaped(folder):
    evil = "\\x1b[2Jevil\\n"
    for told in (
        run("links", folder, "e"),
        run("find", folder, "evil"),
        run("near", folder, "e"),
        run("page", folder, "0000000000000000"),
        run("path", folder, "\x1b[2Jevil\n", "--from", "e"),
    ):
        assert evil in told
        assert "\x1b" not in told


def test_a_question_without_an_answer_is_one_line(folder, tmp_path):
    assert "has no seeds: use --from" in fails("path", folder, "e")
    for command in ("links", "near", "page"):
        assert (
            fails(command, folder, "nobody")
            == f"'nobody' is not known in {folder}: search with `inlink find`"
        )
        assert "does not exist" in fails(command, tmp_path / "none", "a")
    assert "not a valid regular expression" in fails("find", folder, "(")
    result = CliRunner().invoke(
        commands, ["-q", "path", str(folder), "a", "--from", "e"], standalone_mode=False
    )
    assert (result.return_value, result.stderr) == (1, "inlink: no links lead from e to a\n")
    assert result.stdout == ""


def test_a_crawl_has_neighbourhoods_too(tmp_path):
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed([A])
        crawl.crawled(crawl.next(1)[0], links=[AX, AY])
        crawl.crawled(AX, links=[AY, B])
    assert run("near", tmp_path / "c", AX).splitlines() == [f"1\t{A}", f"1\t{AY}", f"1\t{B}"]
    assert run("near", tmp_path / "c", AY, "--sharing").splitlines() == [f"1\t{AX}", f"1\t{B}"]
    assert [line[17:] for line in run("path", tmp_path / "c", B, "--from", A).splitlines()] == [B, AX, A]


def test_top_has_hub_scores(folder):
    ranking = inlink.Ranking.load(folder, "hits")
    rows = [line.split("\t") for line in run("top", folder, "--by", "hits", "-n", 2).splitlines()]
    assert [row[3] for row in rows] == [name for name, _ in ranking.top(2)]
    assert [float(row[2]) for row in rows] == pytest.approx(
        [ranking.hubs[Graph.open(folder).node(row[3])] for row in rows]
    )
    best = json.loads(run("top", folder, "--by", "hits", "--hubs", "-n", 2, "--json"))
    assert [(row["node"], row["hub"]) for row in best] == ranking.top(2, by="hubs")
    assert [row["value"] for row in best] == [ranking[row["node"]] for row in best]
    assert "has no hubs" in fails("top", folder, "--hubs")
    assert "hub" not in run("top", folder, "--json")
    with inlink.Crawl(folder.with_name("c")) as crawl:
        crawl.seed([A])
        crawl.crawled(crawl.next(1)[0], links=[AX, AY])
    run("rank", folder.with_name("c"), "--algorithm", "hits")
    assert run("top", folder.with_name("c"), "--by", "hits", "-n", 1, "--hubs") == f"1\t0\t1\t{A}\n"
    assert (
        len(run("top", folder.with_name("c"), "--by", "hits", "--uncrawled", "--foreign").splitlines()) == 3
    )
