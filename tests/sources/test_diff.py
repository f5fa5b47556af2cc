"""``inlink.diff`` and ``inlink diff``: against definitions in plain loops, SciPy, and Common Crawl's own ranks."""

import gzip
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

import inlink
from inlink import Graph, Ranking
from inlink.cli import commands
from inlink.errors import FolderError, InputError, ParameterError
from inlink.graph.names import Names
from inlink.rank.agreement import kendall, rank_biased_overlap, spearman

COLUMNS = st.integers(2, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 6), min_size=n, max_size=n)] * 2)
)


def ranking(values: dict[str, float]) -> Ranking:
    return Ranking(np.array(list(values.values()), np.float64), algorithm="test", names=Names.of(values))


# -- measures -----------------------------------------------------------------------------------------------------


def tau_by_pairs(x, y):
    """Kendall's τ-b by its definition: all pairs."""
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    signs = [((x[i] > x[j]) - (x[i] < x[j]), (y[i] > y[j]) - (y[i] < y[j])) for i, j in pairs]
    of_x, of_y = sum(s != 0 for s, _ in signs), sum(t != 0 for _, t in signs)
    return sum(s * t for s, t in signs) / math.sqrt(of_x * of_y) if of_x and of_y else None


@given(COLUMNS)
def test_kendall_and_spearman(columns):
    x, y = (np.array(column, np.float64) for column in columns)
    wanted = tau_by_pairs(*columns)
    assert kendall(x, y) == (None if wanted is None else pytest.approx(wanted, abs=1e-12))
    if wanted is None:
        assert spearman(x, y) is None
    else:
        assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
        assert kendall(x, y) == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)


def rbo_by_depths(one, other, p, depth):
    """RBO_EXT by its meaning: Σ of the agreement at each depth, of which beyond the ends nothing new is known."""
    (short, long), s, l = sorted((one, other), key=len), *sorted((len(one), len(other)))  # noqa: E741
    if not s:
        return 0.0
    total = 0.0
    at_end = len(set(short) & set(long)), len(set(short) & set(long[:s]))
    for d in range(1, depth + 1):
        if d <= s:
            agreement = len(set(short[:d]) & set(long[:d])) / d
        elif d <= l:
            # The short list is assumed to agree on as it does at its end.
            agreement = (len(set(short) & set(long[:d])) + (d - s) * at_end[1] / s) / d
        else:
            agreement = (at_end[0] - at_end[1]) / l + at_end[1] / s
        total += (1 - p) * p ** (d - 1) * agreement
    return total


@given(st.permutations(range(12)), st.permutations(range(15)), st.integers(0, 12), st.floats(0.1, 0.95))
def test_rank_biased_overlap(one, other, length, p):
    one = one[:length]
    place = {item: k for k, item in enumerate(other, 1)}
    common = [(k, place[item]) for k, item in enumerate(one, 1) if item in place]
    a, b = (np.array([pair[side] for pair in common], np.int64) for side in (0, 1))
    wanted = rbo_by_depths(one, other, p, 2000)
    assert rank_biased_overlap(a, b, (len(one), len(other)), p) == pytest.approx(wanted, abs=1e-9)
    assert rank_biased_overlap(b, a, (len(other), len(one)), p) == pytest.approx(wanted, abs=1e-9)


def test_rank_biased_overlap_closed_forms():
    place = np.arange(1, 501)
    assert rank_biased_overlap(place, place, (500, 500), 0.9) == pytest.approx(1, abs=1e-12)
    none = np.empty(0, np.int64)
    assert rank_biased_overlap(none, none, (5, 5), 0.9) == 0
    # Only the first of two items is shared: agreement 1, then ½ at every further depth.
    wanted = Fraction(1, 10) + Fraction(9, 10) * Fraction(1, 2)
    assert rank_biased_overlap(place[:1], place[:1], (2, 2), 0.9) == pytest.approx(float(wanted), abs=1e-12)


# -- lists --------------------------------------------------------------------------------------------------------

VALUES = st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.integers(0, 5).map(float), max_size=12)


@given(VALUES, VALUES, st.integers(0, 5), st.integers(0, 6))
def test_tables_against_plain_loops(one, other, k, within):
    found = inlink.diff(ranking(one), ranking(other))
    common = sorted(set(one) & set(other))
    assert found.common == len(common)

    def place(values, name):
        return 1 + sum(value > values[name] for value in values.values())

    def position(values, name):
        return 1 + sum((-value, other) < (-values[name], name) for other, value in values.items())

    rows = {name: (place(one, name), place(other, name), one[name], other[name]) for name in common}
    near = [
        name for name in common if not within or min(position(one, name), position(other, name)) <= within
    ]
    for by, risen, moved in (
        ("place", False, lambda row: abs(math.log(row[1] / row[0]))),
        ("value", False, lambda row: abs(row[3] - row[2])),
        ("place", True, lambda row: max(math.log(row[0] / row[1]), 0.0)),
        ("value", True, lambda row: max(row[3] - row[2], 0.0)),
    ):
        movers = found.movers(k, by=by, within=within, risen=risen)
        sizes = sorted((moved(rows[name]) for name in near if moved(rows[name])), reverse=True)
        assert [moved(rows[change.name]) for change in movers] == pytest.approx(sizes[:k])
        assert all(change[1:] == (*rows[change.name], "") for change in movers)
    new = sorted(set(other) - set(one), key=lambda name: position(other, name))
    assert [change.name for change in found.new(k)] == new[:k]
    gone = sorted(set(one) - set(other), key=lambda name: position(one, name))
    assert [(change.name, change.told) for change in found.gone(k)] == [(name, "gone") for name in gone[:k]]
    table = found.to_arrow().to_pylist()
    assert {row["name"] for row in table} == set(one) | set(other)
    for row in table:
        assert row["value_a"] == one.get(row["name"])
        assert row["place_b"] == (place(other, row["name"]) if row["name"] in other else None)
    x, y = ([values[name] for name in common] for values in (one, other))
    wanted = tau_by_pairs(x, y)
    assert found.kendall == (None if wanted is None else pytest.approx(wanted))


@given(VALUES)
def test_a_ranking_and_itself(values):
    found = inlink.diff(ranking(values), ranking(values))
    assert (
        found.movers(100, by="place", within=0)
        == found.movers(100, by="value")
        == found.new()
        == found.gone()
        == []
    )
    if values:
        assert found.rank_biased_overlap == pytest.approx(1)
    assert found.kendall == (pytest.approx(1) if len(set(values.values())) > 1 else None)


def test_nodes_without_names_are_matched_by_number(tmp_path):
    one = inlink.degree(Graph.from_arcs([(0, 1), (2, 1)]))
    other = inlink.degree(Graph.from_arcs([(0, 1), (2, 0), (3, 0)]))
    found = inlink.diff(one, other)
    assert [change.name for change in found.new()] == [3]
    assert found.common == 3
    with pytest.raises(ParameterError, match="has no names, and the other ranking does"):
        inlink.diff(one, ranking({"a": 1.0}))


# -- where rankings are kept --------------------------------------------------------------------------------------


def test_every_place_of_a_ranking_is_the_same_list(tmp_path):
    graph = Graph.from_arcs([("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")], into=tmp_path / "g")
    ranks = inlink.pagerank(graph)
    folder = ranks.save(graph)
    ranks.to_csv(tmp_path / "ranks.csv")
    ranks.to_parquet(tmp_path / "ranks.parquet")
    ranks.to_csv(tmp_path / "moved.csv")
    (tmp_path / "moved.csv.meta.json").unlink()
    ranks.to_csv(tmp_path / "sorted.tsv")
    heads, *rows = (tmp_path / "sorted.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "sorted.tsv").write_text("".join([heads, *reversed(rows)]))
    lines = "".join(f"{name}\t{value!r}\n" for name, value in ranks.items())
    (tmp_path / "ranks.tsv.gz").write_bytes(gzip.compress(lines.encode()))
    files = ("ranks.csv", "ranks.parquet", "moved.csv", "sorted.tsv", "ranks.tsv.gz")
    for place in (tmp_path / "g", folder, *(tmp_path / name for name in files)):
        found = inlink.diff(ranks, place)
        assert (found.common, found.kendall, found.new(), found.gone()) == (4, pytest.approx(1), [], [])
        # The PageRank of all nodes adds up to 1.
        assert found.b.complete
    (tmp_path / "sorted.tsv").write_text("".join([heads, rows[0], rows[2]]))
    found = inlink.diff(ranks, tmp_path / "sorted.tsv")
    assert (found.common, found.b.complete) == (2, False)
    with pytest.raises(FolderError, match="has no ranking 'hits'"):
        inlink.diff(tmp_path / "g", tmp_path / "g", by=("pagerank", "hits"))


def test_a_crawl_later(tmp_path):
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed(["https://example.org/"])
        crawl.crawled(crawl.next(1)[0], links=["/a", "/b"])
    run("rank", "c", "--name", "before", cwd=tmp_path)
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed(["https://example.com/"])
    run("rank", "c", "--name", "after", cwd=tmp_path)
    found = inlink.diff(tmp_path / "c", tmp_path / "c", by=("before", "after"))
    assert [change.name for change in found.new()] == ["https://example.com/"]
    assert (found.common, found.gone()) == (3, [])


# -- Common Crawl -------------------------------------------------------------------------------------------------

HEADER = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n"


def run(*arguments, cwd: Path, code: int = 0) -> str:
    def absolute(word):
        return str(cwd / word) if (cwd / str(word)).exists() else str(word)

    done = CliRunner().invoke(commands, ["-q", *map(absolute, arguments)])
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


def test_absence_from_a_list_that_was_cut(tmp_path):
    (tmp_path / "a").write_text(HEADER + "1\t9\t1\t0.1\tcom.a\n2\t8\t5\t0.01\tcom.b\n3\t7\t2\t0.02\tcom.c\n")
    (tmp_path / "b").write_text(HEADER + "1\t9\t1\t0.1\tcom.a\n2\t8\t2\t0.05\tcom.x\n3\t7\t9\t0.01\tcom.c\n")
    found = inlink.diff(tmp_path / "a", tmp_path / "b", by="harmonic")
    assert [change.told for change in (*found.new(), *found.gone())] == ["below place 3", "below place 3"]
    # The lists are cut by harmonic centrality, so the place by PageRank of what is not there is not known.
    found = inlink.diff(tmp_path / "a", tmp_path / "b")
    assert [change.told for change in (*found.new(), *found.gone())] == ["not listed", "not listed"]
    assert (found.a.whole, found.b.whole) == (2, 2)
    assert found.movers(1)[0] == ("com.c", 2, 9, 0.02, 0.01, "")
    (tmp_path / "all").write_text(HEADER + "1\t9\t1\t0.7\tcom.a\n2\t8\t2\t0.3\tcom.b\n")
    assert [c.told for c in inlink.diff(tmp_path / "a", tmp_path / "all").gone()] == ["gone"]


@pytest.mark.parametrize(
    ("level", "common", "by", "top", "tau"),
    [
        ("host", 738, "harmonic", 91, 0.726),
        ("host", 738, "pagerank", 94, 0.916),
        ("domain", 765, "harmonic", 90, 0.723),
        ("domain", 765, "pagerank", 96, 0.931),
    ],
)
def test_two_releases_of_common_crawl(data, tmp_path, level, common, by, top, tau):
    for release in ("feb-mar-apr", "apr-may-jun"):
        table = json.loads(data(f"ranks/{level}-cc-main-2026-{release}.json").read_text())
        lines = ["\t".join(row) for row in [table["header"], *table["rows"]]]
        (tmp_path / f"{release}.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    arguments = (
        "diff",
        tmp_path / "feb-mar-apr.txt.gz",
        tmp_path / "apr-may-jun.txt.gz",
        "--by",
        by,
        "--json",
    )
    found = json.loads(run(*arguments, cwd=tmp_path))
    assert (found["common"], found["a"]["complete"]) == (common, False)
    assert found["overlaps"][1]["common"] == top
    assert found["overlaps"][2] == {"depth": 1000, "common": common, "whole": by == "harmonic"}
    assert round(found["kendall"], 3) == tau
    absent = "below place 1,000" if by == "harmonic" else "not listed"
    assert {row["told"] for row in found["only_in_b"]} == {absent}
    if (level, by) == ("host", "pagerank"):
        twitter = next(row for row in found["moved_by_place"] if row["name"] == "com.twitter")
        assert (twitter["place_a"], twitter["place_b"]) == (1, 11)


# -- the command --------------------------------------------------------------------------------------------------


def test_the_command(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "a").write_text(
        HEADER + "1\t9\t1\t0.5\tcom.a\n2\t8\t2\t0.3\tcom.b\n3\t7\t3\t0.2\tcom.$\x1b\n"
    )
    (tmp_path / "b").write_text(HEADER + "1\t9\t2\t0.3\tcom.a\n2\t8\t1\t0.5\tcom.b\n3\t7\t3\t0.2\tcom.c\n")
    told = run("diff", "a", "b", "--plot", tmp_path / "p.png", cwd=tmp_path).splitlines()
    assert told[0] == f"A: {tmp_path / 'a'}, pagerank, all 3 nodes"
    assert told[2] == "in common: 2; only in A: 1; only in B: 1"
    assert (
        told[3]
        == "Kendall's τ −1.000, Spearman's ρ −1.000 of the 2 in common; rank-biased overlap 0.630 (p = 0.9)"
    )
    assert told[4:] == [
        "moved by place\t2\t1\t0.3\t0.5\tcom.b",
        "moved by place\t1\t2\t0.5\t0.3\tcom.a",
        "moved by value\t2\t1\t0.3\t0.5\tcom.b",
        "moved by value\t1\t2\t0.5\t0.3\tcom.a",
        "only in B\tnew\t3\t\t0.2\tcom.c",
        "only in A\t3\tgone\t0.2\t\tcom.$\\x1b",
        f"{tmp_path / 'p.png'}: {(tmp_path / 'p.png').stat().st_size:,} bytes",
    ]
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert "harmonic, the first 3 places" in run("diff", "a", "b", "--by", "harmonic", cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no ranks in this file"),
        ("a\t1\na\t2\n", "have the same name 'a'"),
        ("a\t1\nb\n", "line 2: expected a name, a tab and a value; got 'b'"),
        (HEADER + "x\t1\t1\t1\tcom.a\n", "line 2: the place must be a number; got 'x'"),
        (HEADER + "0\t1\t1\t1\tcom.a\n", "line 2: the place must be at least 1; got 0"),
        (HEADER + "1\t-1\t1\t1\tcom.a\n", r"line 2: the value must be in \[0, 1e30\]; got -1.0"),
    ],
)
def test_files_that_are_no_ranks(tmp_path, text, message):
    (tmp_path / "bad").write_text(text)
    with pytest.raises(InputError, match=message):
        inlink.diff(tmp_path / "bad", tmp_path / "bad", by="harmonic")


def test_arguments_that_do_not_fit(tmp_path):
    (tmp_path / "a").write_text(HEADER + "1\t9\t1\t0.5\tcom.a\n")
    with pytest.raises(
        ParameterError, match="Common Crawl's ranks are by 'harmonic' or 'pagerank'; got 'hits'"
    ):
        inlink.diff(tmp_path / "a", tmp_path / "a", by="hits")
    with pytest.raises(ParameterError, match="`persistence` must be"):
        inlink.diff(tmp_path / "a", tmp_path / "a", persistence=1)
    found = inlink.diff(tmp_path / "a", tmp_path / "a")
    with pytest.raises(ParameterError, match="`k` must be"):
        found.new(-1)
    with pytest.raises(ParameterError, match="`by` must be 'place' or 'value'"):
        found.movers(by="name")
    with pytest.raises(ParameterError, match="`risen` must be True or False; got 1"):
        found.movers(risen=1)
    assert "given once, or twice" in run("diff", "a", "a", *["--by", "pagerank"] * 3, cwd=tmp_path, code=2)
    with pytest.raises(InputError, match=r"none: cannot be read"):
        inlink.diff(tmp_path / "none", tmp_path / "a")
