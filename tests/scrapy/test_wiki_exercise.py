"""The exercise of the docs: its commands give the numbers of the article that it comes from."""

import csv
import re
import shlex
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import inlink
from foldercommands import run
from inlink.errors import ParameterError

DOCS = (Path(__file__).parents[2] / "docs" / "measures.md").read_text()
EXERCISE = DOCS[DOCS.index("## An exercise") :]
COMMANDS = [
    line.removeprefix("$ inlink ")
    for block in re.findall(r"(?<!-->\n)```console\n(.*?)```", EXERCISE, re.S)
    for line in block.splitlines()
    if line.startswith("$ inlink ")
]
(TABLES,) = re.findall(r"```python\n(import sqlite3.*?)```", EXERCISE, re.S)
SUBGRAPH = (
    "CREATE TABLE subGraph AS SELECT * FROM WikiGraph WHERE (fromLink in (SELECT entry.link FROM WikiLinks entry "
    "WHERE entry.crawled = 1)) AND (toLink in (SELECT entry.link from WikiLinks entry WHERE entry.crawled = 1));"
)


def article(folder: Path) -> None:
    """The article's program for degree centrality: its reading, its graph, its measure and its lines."""
    with closing(sqlite3.connect(folder / "wiki.sqlite")) as wikiconn:
        graphlist = list(wikiconn.execute("SELECT * FROM subGraph"))
    wikig: Any = nx.MultiDiGraph()
    wikig.add_edges_from(graphlist)
    centrality = nx.degree_centrality(wikig)
    with (folder / "expected.csv").open("w") as file:
        for site in centrality:
            file.write('"' + site + '",' + str(centrality[site]) + "\n")


def values(path: Path) -> dict[str, float]:
    with path.open(newline="") as file:
        return {name: float(value) for name, value in csv.reader(file)}


def links_of(folder: Path) -> Counter[tuple[str, str]]:
    with closing(sqlite3.connect(folder / "wiki.sqlite")) as wiki:
        return Counter(wiki.execute("SELECT * FROM subGraph"))


def simplified(links: Counter[tuple[str, str]], rounds: int) -> dict[str, float]:
    """Every page begins with 1/n. In each round it gives its rank to its links; one without links gives it to all."""
    pages = sorted({end for link in links for end in link})
    given = Counter[str]()
    for (page, _), count in links.items():
        given[page] += count
    rank = dict.fromkeys(pages, 1 / len(pages))
    for _ in range(rounds):
        lost = sum(rank[page] for page in pages if not given[page])
        new = defaultdict(float, dict.fromkeys(pages, lost / len(pages)))
        for (page, target), count in links.items():
            new[target] += rank[page] * count / given[page]
        rank = dict(new)
    return rank


def katz_of_the_article(links: Counter[tuple[str, str]], alpha: float) -> dict[str, float]:
    pages = sorted({end for link in links for end in link})
    number = {page: k for k, page in enumerate(pages)}
    A = np.zeros((len(pages), len(pages)))
    for (page, target), count in links.items():
        A[number[page], number[target]] = count
    identity = np.eye(len(pages))
    C = (np.linalg.inv(identity - alpha * A.T) - identity) @ np.ones(len(pages))
    return dict(zip(pages, C.tolist(), strict=True))


def test_the_commands_of_the_docs_give_the_articles_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(TABLES, {})
    assert [command.split()[0] for command in COMMANDS] == ["build", *["rank", "export"] * 3]
    assert "build wiki.sqlite --table subGraph --count -o wiki" in COMMANDS
    assert "rank wiki --algorithm degree --direction both --weighted" in COMMANDS
    for command in COMMANDS:
        run(*shlex.split(command))
    article(tmp_path)
    links = links_of(tmp_path)
    assert max(links.values()) == 2
    found = values(tmp_path / "centrality.csv")
    assert found == values(tmp_path / "expected.csv")
    assert "/wiki/Orphan" not in found
    assert values(tmp_path / "simplified.csv") == pytest.approx(simplified(links, 20), rel=1e-12)
    expected = katz_of_the_article(links, 0.1)
    katz = values(tmp_path / "katz.csv")
    assert {page: value - 1 for page, value in katz.items()} == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_real_articles(data, tmp_path, monkeypatch):
    """A third of 4,589 articles of Wikipedia, every tenth of them not crawled, and some links twice."""
    monkeypatch.chdir(tmp_path)
    lines = data("graphs/wikispeedia/links.tsv").read_text().splitlines()
    rows = [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]
    third = set(sorted({end for row in rows for end in row})[::3])
    rows = [row for row in rows if third.issuperset(row)]
    rows += rows[::7]
    pages = sorted({end for row in rows for end in row})
    with closing(sqlite3.connect("wiki.sqlite")) as wiki:
        wiki.execute("CREATE TABLE WikiLinks (link TEXT PRIMARY KEY, title TEXT, crawled INTEGER)")
        wiki.execute("CREATE TABLE WikiGraph (fromLink TEXT, toLink TEXT)")
        marks = [(page, page, int(k % 10 > 0)) for k, page in enumerate(pages)]
        wiki.executemany("INSERT INTO WikiLinks VALUES (?, ?, ?)", marks)
        wiki.executemany("INSERT INTO WikiGraph VALUES (?, ?)", rows)
        wiki.execute(SUBGRAPH)
        wiki.commit()
    for command in COMMANDS[:5]:
        run(*shlex.split(command))
    article(tmp_path)
    assert values(tmp_path / "centrality.csv") == pytest.approx(values(tmp_path / "expected.csv"), rel=1e-14)
    links = links_of(tmp_path)
    expected = simplified(links, 20)
    found = values(tmp_path / "simplified.csv")
    assert found.keys() == expected.keys()
    assert sum(abs(found[page] - expected[page]) for page in found) < 1e-12
    whole = inlink.read(tmp_path / "wiki.sqlite")
    named = inlink.read(tmp_path / "wiki.sqlite", table="WikiGraph", crawled_only=True, count=True)
    assert whole.num_nodes == len(pages)
    # The crawled pages, and the links between them, are those of the article's table.
    assert named.num_arcs == len(links)


def test_a_table_that_is_named_gives_its_own_nodes_only(tmp_path):
    with closing(sqlite3.connect(tmp_path / "w.db")) as base:
        base.execute("CREATE TABLE pages (url TEXT, crawled INTEGER)")
        base.execute('CREATE TABLE "sub "" graph" ("from ""a" TEXT, "to" TEXT)')
        base.executemany("INSERT INTO pages VALUES (?, ?)", [("a", 1), ("b", 0), ("alone", 1)])
        base.execute('INSERT INTO "sub "" graph" VALUES (?, ?)', ("a", "b"))
        base.commit()
    graph = inlink.read(tmp_path / "w.db", table='sub " graph', columns=['from "a', "to"])
    assert list(graph.names[:]) == ["a", "b"]
    assert graph.crawled is not None
    assert graph.crawled.tolist() == [True, False]


def test_weights_that_are_asked_for_and_absent():
    graph = inlink.Graph.from_arcs([("a", "b")])
    with pytest.raises(ParameterError, match="build the graph with count=True or --count"):
        inlink.degree(graph, weighted=True)


def test_the_simplified_pagerank_needs_no_tolerance_and_has_no_bound():
    graph = inlink.Graph.from_arcs([("a", "b"), ("b", "a")])
    ranking = inlink.pagerank(graph, damping=1, method="power", max_iter=20)
    assert (ranking.iterations, ranking.parameters["tol"]) == (20, None)
    assert ranking.verdict() == "not converged after 20 sweeps, no error bound"
    for wrong in ({"max_iter": 20}, {"method": "power"}):
        with pytest.raises(ParameterError, match="only with method='power' and a fixed max_iter"):
            inlink.pagerank(graph, damping=1, **wrong)
