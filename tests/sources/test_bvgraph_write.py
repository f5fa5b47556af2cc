"""BVGraphs are written as WebGraph writes them: against a twin that tries everything, and LAW's own file."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import inlink
from bvencoder import Settings, code, encode_as_webgraph, gamma
from graphfiles import content, graphs, read
from inlink import Graph
from inlink.cli import commands
from inlink.errors import InputError, OutputError, ParameterError
from inlink.graph import encoder
from inlink.graph.encoder import CODES, FIELDS, Coding, Encoder
from inlink.graph.graph import Rows
from inlink.sources.bvgraph import bvgraph
from strategies import arcs
from test_bvgraph import graphs as list_graphs
from test_bvgraph import rows

HOW = st.builds(
    Settings,
    window=st.sampled_from([0, 1, 3, 7]),
    min_interval=st.sampled_from([0, 1, 2, 4]),
    k=st.integers(1, 5),
    codes=st.fixed_dictionaries({kind: st.sampled_from(names) for kind, (_, names) in FIELDS.items()}),
)
REFERENCES = st.sampled_from([0, 1, 3, 2**31 - 1])


def options(how: Settings, max_references: int) -> dict:
    return {
        "window": how.window,
        "max_references": max_references,
        "min_interval": how.min_interval,
        "zeta_k": how.k,
        "codes": [f"{field}_{name}" for field, name in how.codes.items()],
    }


def packed(bits: str) -> bytes:
    return np.packbits(np.array([int(bit) for bit in bits], np.uint8)).tobytes()


def rows_of(lists: list[list[int]]) -> Rows:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.uint64)
    return Rows(offsets, np.array([node for row in lists for node in row], np.uint32))


def properties(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)


# -- against the twin ---------------------------------------------------------------------------------------------


@given(list_graphs(), HOW, REFERENCES)
def test_each_record_is_the_shortest(tmp_path_factory, lists, how, max_references):
    folder = tmp_path_factory.getbasetemp()
    graph = Graph(rows_of(lists))
    inlink.write(graph, folder / "g.graph", **options(how, max_references))
    records = encode_as_webgraph(lists, how, max_references)
    assert (folder / "g.graph").read_bytes() == packed("".join(records))
    assert (folder / "g.offsets").read_bytes() == packed(gamma(0) + "".join(gamma(len(r)) for r in records))
    assert rows(bvgraph(folder / "g")) == lists
    told = properties(folder / "g.properties")
    uses = ("outdegrees", "references", "blocks", "intervals", "residuals")
    assert sum(int(told[f"bitsfor{use}"]) for use in uses) == len("".join(records))
    kinds = ("copiedarcs", "intervalisedarcs", "residualarcs")
    assert sum(int(told[kind]) for kind in kinds) == sum(map(len, lists)) == int(told["arcs"])


@given(arcs(max_nodes=20))
def test_any_graph_comes_back(tmp_path_factory, given_arcs):
    folder, graph = tmp_path_factory.getbasetemp(), given_arcs.graph()
    inlink.write(graph, folder / "any", format="bvgraph")
    back = inlink.read(folder / "any.graph")
    assert content(back) == content(graph)


@given(graphs(st.binary(max_size=10).filter(lambda raw: b"\n" not in raw)))
def test_names_come_back_and_weights_do_not(tmp_path_factory, graph):
    folder = tmp_path_factory.mktemp("named")
    written = inlink.write(graph, folder / "g.graph")
    assert sorted(path.name for path in written.paths) == [
        "g.graph",
        "g.offsets",
        "g.properties",
        "g.urls.gz",
    ]
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in written.paths)
    wanted = content(graph)
    assert content(read(folder / "g")) == (wanted[0], dict.fromkeys(wanted[1], 1.0))


@given(list_graphs(), st.integers(0, 40), HOW)
def test_lists_encoded_in_pieces_are_copied_from_their_own_piece_only(lists, cut, how):
    longest = max(map(len, lists), default=0)
    coding = Coding(how.window, 3, how.min_interval, how.k, tuple(options(how, 3)["codes"]))
    one = Encoder(coding, longest)
    for piece, base in ((lists[:cut], 0), (lists[cut:], min(cut, len(lists)))):
        parts = list(one.encode(rows_of(piece), base))
        records = encode_as_webgraph(piece, how, 3, base)
        assert b"".join(raw for raw, _ in parts) + one.rest() == packed("".join(records))
        lengths = [int(length) for _, found in parts for length in found]
        assert lengths == [len(bits) for bits in records]


@pytest.mark.parametrize(("nodes", "step"), [(1, 1), (7, 3), (1 << 18, 1)])
def test_small_buffers_change_nothing(tmp_path, monkeypatch, nodes, step):
    rng = np.random.default_rng(5)
    graph = Graph.from_arcs(rng.integers(0, 300, (5000, 2)) ** 2 // 300, num_nodes=300)
    inlink.write(graph, tmp_path / "wanted.graph")
    monkeypatch.setattr(encoder, "_NODES", nodes)
    monkeypatch.setattr(encoder, "_BYTES", step)
    inlink.write(graph, tmp_path / "small.graph")
    for ending in ("graph", "offsets", "properties"):
        files = [(tmp_path / f"{name}.{ending}").read_bytes() for name in ("wanted", "small")]
        assert files[0] == files[1]


@pytest.mark.parametrize("name", CODES)
def test_large_numbers_in_every_code(name):
    from inlink.graph.kernels import bvencode as kernels

    numbers = [0, 1, 2, 6, 7, 8, 100, 1023, 1024]
    if name != "UNARY":
        numbers += [2**31, 2**32 - 2, 2**33, 2**52, 2**53 - 2]
    for k in range(1, 9) if name == "ZETA" else [1]:
        for x in numbers:
            wanted = code(name, x, k)
            data = np.zeros(len(wanted) // 8 + 9, np.uint8)
            arguments = (CODES[name], np.uint64(k), np.uint64(x))
            assert int(kernels.code_length(*arguments)) == len(wanted)
            for before in range(8):
                data[:] = 0
                assert int(kernels.put(data, np.uint64(before), *arguments)) == before + len(wanted)
                assert data.tobytes().startswith(packed("0" * before + wanted))


# -- closed forms -------------------------------------------------------------------------------------------------


def test_a_graph_without_arcs_takes_a_bit_a_node(tmp_path):
    inlink.write(Graph.from_arcs(np.empty((0, 2), np.uint32), num_nodes=20), tmp_path / "g.graph")
    assert (tmp_path / "g.graph").read_bytes() == packed("1" * 20)
    assert (tmp_path / "g.offsets").read_bytes() == packed("1" + "010" * 20)
    told = properties(tmp_path / "g.properties")
    assert (told["bitspernode"], told["bitsperlink"], told["avgref"]) == ("1", "\\u221E", "0")


def test_a_graph_without_nodes(tmp_path):
    inlink.write(Graph.from_arcs(np.empty((0, 2), np.uint32), num_nodes=0), tmp_path / "g.graph")
    assert (tmp_path / "g.graph").read_bytes() == b""
    assert (tmp_path / "g.offsets").read_bytes() == packed("1")
    assert inlink.read(tmp_path / "g").num_nodes == 0


def test_equal_lists_are_copied_whole(tmp_path):
    # Of eight equal lists the first is an interval. A chain of three references leads to it, then a new one begins.
    lists = [list(range(100, 140))] * 8 + [[]] * 132
    inlink.write(Graph(rows_of(lists)), tmp_path / "g.graph")
    told = properties(tmp_path / "g.properties")
    assert (told["intervalisedarcs"], told["copiedarcs"], told["residualarcs"]) == ("40", "280", "0")


# -- LAW's own files ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["graphs/cnr-2000"])
def test_a_published_graph_is_written_again(data, tmp_path, name):
    path = data(name)
    inlink.write(inlink.read(path), tmp_path / "g.graph")
    published = path.with_suffix(".graph").read_bytes()
    written = (tmp_path / "g.graph").read_bytes()
    assert published.startswith(written)
    assert len(written) == 1_164_843
    # LAW's file is filled up with zeros.
    assert not any(published[len(written) :])
    assert properties(tmp_path / "g.properties") == properties(path.with_suffix(".properties"))


# -- what is wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"window": -1}, r"`window` must be an integer from 0 to 1,048,576; got -1"),
        ({"window": True}, r"`window` must be a whole number; got True"),
        ({"max_references": 2**31}, r"`max_references` must be an integer from 0 to 2,147,483,647"),
        ({"min_interval": -2}, r"`min_interval` must be"),
        ({"zeta_k": 0}, r"`k` must be an integer from 1 to 60; got 0"),
        ({"zeta_k": 61}, r"`k` must be an integer from 1 to 60; got 61"),
        ({"codes": ["RESIDUALS_UNARY"]}, r"`codes` must be some of OUTDEGREES_GAMMA, .*; got 'RESIDUALS_UNARY'"),
        ({"codes": ["BLOCKS_UNARY"]}, r"`codes` must be some of .*; got 'BLOCKS_UNARY'"),
        ({"codes": "RESIDUALS_GAMMA"}, r"`codes` must be a list of texts that are not empty; got 'RESIDUALS_GAMMA'"),
        ({"columns": {"x": np.zeros(2)}}, r"cannot hold columns \(x\)"),
    ],
)  # fmt: skip
def test_wrong_options_leave_the_old_files(tmp_path, wrong, message):
    inlink.write(Graph.from_arcs([(0, 1)]), tmp_path / "g.graph")
    old = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises((ParameterError, OutputError), match=message):
        inlink.write(Graph.from_arcs([(1, 0)]), tmp_path / "g.graph", **wrong)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_options_of_other_formats(tmp_path):
    with pytest.raises(ParameterError, match=r"g\.tsv: format edgelist has no option `window`"):
        inlink.write(Graph.from_arcs([(0, 1)]), tmp_path / "g.tsv", window=7)


def test_names_that_are_not_this_graphs(tmp_path):
    (tmp_path / "g.urls").write_text("a\nb\n")
    with pytest.raises(OutputError, match=r"g\.urls exists and would give this graph wrong names"):
        inlink.write(Graph.from_arcs([(0, 1)]), tmp_path / "g.graph")
    with pytest.raises(OutputError, match=r"g\.urls exists and would give this graph wrong names"):
        inlink.write(Graph.from_arcs([("x", "y")]), tmp_path / "g.graph")
    graph = Graph.from_arcs([("x", "y\nz")])
    (tmp_path / "g.urls").unlink()
    with pytest.raises(OutputError, match=r"the name 'y\\nz' of node 1 contains a line end"):
        inlink.write(graph, tmp_path / "g.graph")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n", r"g\.urls: 1 name for 2 nodes. Write one name per line, or remove the file"),
        ("a\nb\nc\n", r"g\.urls: more than 2 names for 2 nodes"),
        ("a\na\n", r"g\.urls: nodes 0 and 1 have the same name 'a'"),
    ],
)
def test_wrong_names_beside_a_graph(tmp_path, text, message):
    inlink.write(Graph.from_arcs([(0, 1)]), tmp_path / "g.graph")
    (tmp_path / "g.urls").write_text(text)
    with pytest.raises(InputError, match=message):
        inlink.read(tmp_path / "g.graph")
    (tmp_path / "g.urls").write_text("http://a.org/\nhttp://b.org/")
    assert inlink.read(tmp_path / "g.graph").level == "page"


@pytest.mark.parametrize("fails", range(5))
def test_files_of_two_graphs_never_count_as_one(tmp_path, monkeypatch, fails):
    old, new = (
        Graph.from_arcs([("a", "b"), ("b", "c")]),
        Graph.from_arcs([("x", "y"), ("x", "z"), ("z", "x")]),
    )
    inlink.write(old, tmp_path / "g.graph")
    renamed = []
    replace = Path.replace

    def failing(self, target):
        if len(renamed) == fails:
            raise OSError(5, "Input/output error")
        renamed.append(target.name)
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", failing)
        if fails < 4:
            with pytest.raises(OutputError, match="cannot be written"):
                inlink.write(new, tmp_path / "g.graph")
        else:
            inlink.write(new, tmp_path / "g.graph")
    if fails < 4:
        with pytest.raises(InputError, match=r"g\.properties is missing: a BVGraph needs"):
            inlink.read(tmp_path / "g.graph")
    else:
        assert renamed == ["g.urls.gz", "g.offsets", "g.graph", "g.properties"]
        assert content(inlink.read(tmp_path / "g.graph")) == content(new)


def test_the_command(tmp_path):
    Graph.from_arcs([("a", "b"), ("b", "a")], into=tmp_path / "g")
    run = CliRunner()
    arguments = ["export", str(tmp_path / "g"), "-o", str(tmp_path / "out.graph")]
    done = run.invoke(commands, [*arguments, "--window", "0", "--codes", "RESIDUALS_GAMMA,BLOCKS_DELTA"])
    assert done.exit_code == 0, done.output
    told = properties(tmp_path / "out.properties")
    assert (told["windowsize"], told["compressionflags"]) == ("0", "BLOCKS_DELTA | RESIDUALS_GAMMA")
    assert inlink.read(tmp_path / "out.graph").names[:] == ["a", "b"]
    refused = run.invoke(commands, [*arguments, "--by", "x", "--window", "0"])
    assert refused.exit_code == 2
    assert "options of formats do not apply" in refused.output
