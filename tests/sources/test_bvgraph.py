"""BVGraph against an encoder and a slow decoder (``bvencoder.py``)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bvencoder import Settings, code, decode, encode, gamma, store, unary, zeta
from inlink.errors import DamageError, FormatError, InputError
from inlink.sources import bvgraph as module
from inlink.sources.bvgraph import bvgraph


def rows(source):
    lists = [[] for _ in range(source.num_nodes)]
    for batch in source.batches:
        assert batch.sources.dtype == batch.targets.dtype == np.uint32
        for s, t in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True):
            lists[s].append(t)
    return lists


# -- properties ---------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw):
    n = draw(st.integers(0, 40))
    lists = []
    for x in range(n):
        row = set(draw(st.lists(st.integers(0, n - 1), max_size=10)))
        if draw(st.booleans()):
            start = draw(st.integers(0, n - 1))
            row |= set(range(start, min(n, start + draw(st.integers(1, 12)))))
        if x and draw(st.booleans()):
            row |= set(lists[draw(st.integers(max(0, x - 8), x - 1))][draw(st.integers(0, 2)) :])
        lists.append(sorted(row))
    return lists


HOW = st.builds(
    Settings,
    window=st.sampled_from([0, 1, 3, 7]),
    min_interval=st.sampled_from([0, 1, 2, 4]),
    k=st.integers(1, 5),
    codes=st.fixed_dictionaries({kind: st.sampled_from(names) for kind, (_, names) in module.KINDS.items()}),
    shortest=st.sampled_from([1, 2]),
)


@pytest.mark.slow
@settings(deadline=None)
@given(graphs(), HOW, st.data())
def test_encoded_lists_are_decoded(tmp_path_factory, lists, how, data):
    references = [data.draw(st.integers(0, 7)) for _ in lists]
    bits = encode(lists, how, references)
    arcs = sum(map(len, lists))
    path = store(tmp_path_factory.getbasetemp(), bits, how.text(len(lists), arcs))
    assert rows(bvgraph(path)) == lists
    if how.codes["RESIDUALS"] != "GOLOMB":
        assert decode(path.with_name("g.graph").read_bytes(), len(lists), how) == lists


@settings(deadline=None)
@given(st.binary(max_size=60), HOW, st.integers(0, 300), st.integers(0, 300))
def test_any_bits_end_in_a_graph_or_a_message(tmp_path_factory, raw, how, nodes, arcs):
    path = tmp_path_factory.getbasetemp() / "any"
    path.with_name("any.graph").write_bytes(raw)
    path.with_name("any.properties").write_text(how.text(nodes, arcs))
    try:
        found = rows(bvgraph(path))
    except DamageError as error:
        assert "any.graph" in str(error)  # noqa: PT017
    else:
        assert sum(map(len, found)) == arcs
        assert all(row == sorted(set(row)) for row in found)


@pytest.mark.parametrize(
    "numbers", [[0, 1, 2, 3, 7, 8, 100, 2**16 - 1, 2**16, 2**31, 2**32 - 2, 2**40, 2**62 - 2]]
)
@pytest.mark.parametrize(
    ("name", "k"), [("GAMMA", 3), ("DELTA", 3), ("NIBBLE", 3), *(("ZETA", k) for k in range(1, 9))]
)
def test_large_numbers_in_every_code(name, k, numbers):
    from inlink.graph.kernels import bits as kernels

    for x in numbers:
        if name == "ZETA" and ((x + 1).bit_length() // k + 1) * k > 63:
            continue
        for before in range(9):
            text = "1" * before + code(name, x, k)
            data = np.zeros(len(text) // 8 + 50, np.uint8)
            packed = np.packbits(np.array([int(c) for c in text], np.uint8))
            data[: len(packed)] = packed
            value, stop = kernels.read_slowly(
                data, np.uint64(before), np.uint64(len(text)), getattr(kernels, name), np.uint64(k)
            )
            assert (int(value), int(stop)) == (x, len(text))
            cut, _ = kernels.read_slowly(
                data, np.uint64(before), np.uint64(len(text) - 1), getattr(kernels, name), np.uint64(k)
            )
            assert cut == kernels.TOO_LONG


def test_a_list_of_many_intervals_gets_room_for_them(tmp_path, monkeypatch):
    """All successors are intervals of one node, so the list needs twice its length, which `_ROOM` has not."""
    monkeypatch.setattr(module, "_ROOM", 50)
    lists = [list(range(0, 80, 3)), *([] for _ in range(99))]
    how = Settings(min_interval=1, shortest=1)
    path = store(tmp_path, encode(lists, how, [0] * 100), how.text(100, 27))
    assert rows(bvgraph(path)) == lists


@pytest.mark.parametrize(("room", "step"), [(1, 1), (50, 7), (1 << 20, 64)])
def test_small_buffers_change_nothing(tmp_path, monkeypatch, room, step):
    monkeypatch.setattr(module, "_ROOM", room)
    monkeypatch.setattr(module, "_BYTES", step)
    rng = np.random.default_rng(5)
    lists = []
    for x in range(300):
        row = set(rng.integers(0, 300, rng.integers(0, 30)).tolist()) | set(lists[x - 2][3:] if x > 2 else [])
        lists.append(sorted(row if x % 7 else set(range(x % 50, 290))))
    how = Settings()
    path = store(
        tmp_path, encode(lists, how, [x % 5 for x in range(300)]), how.text(300, sum(map(len, lists)))
    )
    assert rows(bvgraph(path)) == lists


# -- what is wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "nodes", "arcs", "message"),
    [
        (gamma(1) + unary(0) + gamma(0), 1, 1, r"bit 0: the file ends at node 0 of 1"),
        (gamma(3), 2, 1, r"bit 0: outdegree larger than the number of nodes at node 0 of 2"),
        (gamma(0) + gamma(1) + unary(2) + "1" * 20, 2, 1, r"bit 1: reference beyond the window at node 1"),
        (gamma(1) + unary(0) + gamma(0) + zeta(8, 3), 3, 1, r"bit 0: successor out of range"),
        (gamma(1) + unary(0) + gamma(0) + zeta(1, 3), 3, 1, r"bit 0: successor out of range"),
        (gamma(5) + unary(0) + gamma(1) + gamma(6) + gamma(0) + "1" * 30, 6, 5, r"bit 0: interval does not"),
        (gamma(1) + unary(0) + gamma(0) + zeta(0, 3) + gamma(1) + unary(1) + gamma(3) + "1" * 20, 2, 2, r"copy blocks"),
        (gamma(0) + gamma(0), 2, 3, r"has 0 arcs, but its properties say 3"),
        (gamma(0), 100, 0, r"is truncated: 1 bytes for 100 nodes"),
    ],
)  # fmt: skip
def test_damage_is_told_with_its_bit(tmp_path, bits, nodes, arcs, message):
    path = store(tmp_path, bits, Settings().text(nodes, arcs))
    with pytest.raises(DamageError, match=message):
        rows(bvgraph(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("graphclass=it.unimi.dsi.webgraph.EFGraph", "a it.unimi.dsi.webgraph.EFGraph. Convert the graph"),
        ("version=1", "BVGraph version must be 0; got 1"),
        ("nodes=-3", "nodes must be an integer .* got '-3'"),
        ("nodes=99999999999", "nodes must be an integer from 0 to 4,294,967,295; got '99999999999'"),
        ("arcs=", "arcs must be an integer .* got ''"),
        ("zetak=0", "zetak must be at least 1"),
        ("windowsize=1e3", "windowsize must be .* got '1e3'"),
        ("endianness=little", "endianness must be big; got little"),
        ("compressionflags=RESIDUALS_PI", "unknown compression flag RESIDUALS_PI"),
        ("compressionflags=OUTDEGREES_ZETA", "unknown compression flag OUTDEGREES_ZETA"),
    ],
)
def test_properties_that_are_not_known(tmp_path, change, message):
    path = store(tmp_path, gamma(0), Settings().text(1, 0) + change + "\n")
    with pytest.raises(FormatError, match=message):
        rows(bvgraph(path))


def test_a_missing_half(tmp_path):
    path = store(tmp_path, gamma(0), Settings().text(1, 0))
    path.with_name("g.properties").unlink()
    with pytest.raises(InputError, match=r"g\.properties does not exist"):
        bvgraph(path)


@pytest.mark.parametrize("ending", ["", ".graph", ".properties"])
def test_a_graph_and_its_names(data, ending):
    path = data("web")
    source = bvgraph(path.with_name(path.name + ending))
    assert rows(source) == decode(path.with_suffix(".graph").read_bytes(), source.num_nodes, Settings())


@pytest.mark.parametrize("ending", ["", ".graph", ".properties"])
def test_cnr_2000(data, ending):
    path = data("graphs/cnr-2000")
    source = bvgraph(path.with_name(path.name + ending))
    outdegrees = np.zeros(325_557, np.int64)
    for batch in source.batches:
        assert (np.diff(batch.sources.astype(np.int64)) >= 0).all()
        outdegrees += np.bincount(batch.sources, minlength=325_557)
    assert (source.num_nodes, outdegrees.sum(), (outdegrees == 0).sum()) == (325_557, 3_216_152, 78_056)


def test_cnr_2000_against_the_slow_decoder(data):
    path = data("graphs/cnr-2000.graph")
    wanted = decode(path.read_bytes()[:20_000], 3000, Settings())
    batch = next(bvgraph(path).batches)
    ends = batch.targets[batch.sources < 3000]
    assert ends.tolist() == [y for row in wanted for y in row]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "where"),
    [
        ("web.graph", 20_000, r"159,\d\d\d: the file ends at node [\d,]+ of 3,000"),
        ("graphs/cnr-2000.graph", 500_000, r"3,999,\d\d\d: the file ends at node [\d,]+ of 325,557"),
    ],
)
def test_a_cut_graph_is_told(data, tmp_path, name, size, where):
    path = data(name)
    (tmp_path / "cut.graph").write_bytes(path.read_bytes()[:size])
    (tmp_path / "cut.properties").write_bytes(path.with_suffix(".properties").read_bytes())
    with pytest.raises(DamageError, match=rf"cut\.graph, bit {where}"):
        rows(bvgraph(tmp_path / "cut"))
