"""BVGraph against an encoder and a slow decoder, both as plain as the definition."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlink.errors import DamageError, FormatError, InputError
from inlink.sources import bvgraph as module
from inlink.sources.bvgraph import bvgraph

# -- codes, as strings of 0 and 1 -------------------------------------------------------------------------------


def unary(x):
    return "0" * x + "1"


def binary(x, width):
    return format(x, f"0{width}b") if width else ""


def gamma(x):
    width = (x + 1).bit_length() - 1
    return unary(width) + binary(x + 1 - (1 << width), width)


def delta(x):
    width = (x + 1).bit_length() - 1
    return gamma(width) + binary(x + 1 - (1 << width), width)


def truncated(x, size):
    """Minimal binary code of 0 ≤ x < size."""
    width = (size - 1).bit_length()
    short = (1 << width) - size
    return binary(x, width - 1) if x < short else binary(x + short, width)


def zeta(x, k):
    h = ((x + 1).bit_length() - 1) // k
    return unary(h) + truncated(x + 1 - (1 << h * k), (1 << (h + 1) * k) - (1 << h * k))


def nibble(x):
    groups = [x & 7]
    while x := x >> 3:
        groups.append(x & 7)
    return "".join(
        ("1" if n == 0 else "0") + binary(group, 3) for n, group in reversed(list(enumerate(groups)))
    )


def golomb(x, k):
    return unary(x // k) + truncated(x % k, k) if k else ""


def code(name, x, k):
    if name in ("ZETA", "GOLOMB"):
        return {"ZETA": zeta, "GOLOMB": golomb}[name](x, k)
    return {"UNARY": unary, "GAMMA": gamma, "DELTA": delta, "NIBBLE": nibble}[name](x)


def natural(x):
    return 2 * x if x >= 0 else -2 * x - 1


DEFAULTS = {
    "OUTDEGREES": "GAMMA",
    "REFERENCES": "UNARY",
    "BLOCK_COUNT": "GAMMA",
    "BLOCKS": "GAMMA",
    "RESIDUALS": "ZETA",
}


@dataclass
class Settings:
    window: int = 7
    min_interval: int = 4
    k: int = 3
    codes: dict = field(default_factory=lambda: dict(DEFAULTS))

    def text(self, nodes, arcs):
        flags = "|".join(f" {kind}_{name} " for kind, name in self.codes.items() if name != DEFAULTS[kind])
        return (
            f"#BVGraph properties\nversion=0\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nnodes={nodes}\narcs={arcs}\n"
            f"windowsize={self.window}\nminintervallength={self.min_interval}\nzetak={self.k}\nmaxrefcount=3\n"
            f"compressionflags={flags}\n"
        )


def encode(lists, how, references):
    """The bits of a graph; ``references[x]`` is how far back node x copies from, where that is possible."""
    bits = ""

    def put(kind, x):
        nonlocal bits
        bits += code(how.codes[kind], x, how.k)

    for x, row in enumerate(lists):
        put("OUTDEGREES", len(row))
        if not row:
            continue
        reference = references[x] if references[x] <= min(how.window, x) else 0
        if how.window:
            put("REFERENCES", reference)
        rest = set(row)
        if reference:
            other = lists[x - reference]
            blocks, copying, run = [], True, 0
            for y in other:
                if (y in rest) == copying:
                    run += 1
                else:
                    blocks.append(run)
                    copying, run = not copying, 1
            put("BLOCK_COUNT", len(blocks))
            for place, block in enumerate(blocks):
                put("BLOCKS", block - (place > 0))
            rest -= set(other)
        rest = sorted(rest)
        if rest and how.min_interval:
            intervals, residuals = [], []
            while rest:
                run = 1
                while run < len(rest) and rest[run] == rest[0] + run:
                    run += 1
                if run >= how.min_interval:
                    intervals.append((rest[0], run))
                else:
                    residuals += rest[:run]
                rest = rest[run:]
            bits += gamma(len(intervals))
            end = None
            for left, run in intervals:
                bits += gamma(natural(left - x) if end is None else left - end - 1) + gamma(
                    run - how.min_interval
                )
                end = left + run
            rest = residuals
        for place, y in enumerate(rest):
            put("RESIDUALS", y - rest[place - 1] - 1 if place else natural(y - x))
    return bits


def store(folder, bits, text, name="g"):
    raw = np.packbits(np.array([int(bit) for bit in bits], np.uint8)).tobytes()
    (folder / f"{name}.graph").write_bytes(raw)
    (folder / f"{name}.properties").write_text(text)
    return folder / name


def rows(source):
    lists = [[] for _ in range(source.num_nodes)]
    for batch in source.batches:
        assert batch.sources.dtype == batch.targets.dtype == np.uint32
        for s, t in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True):
            lists[s].append(t)
    return lists


# -- a decoder as slow as it is plain -----------------------------------------------------------------------------


class Bits:
    def __init__(self, raw):
        self.text, self.at = "".join(format(byte, "08b") for byte in raw), 0

    def bit(self):
        self.at += 1
        return int(self.text[self.at - 1])

    def number(self, width):
        return sum(self.bit() << (width - 1 - k) for k in range(width))

    def read(self, name, k):
        if name == "NIBBLE":
            x = 0
            while True:
                stop, x = self.bit(), x * 8 + self.number(3)
                if stop:
                    return x
        zeros = 0
        while not self.bit():
            zeros += 1
        if name == "UNARY":
            return zeros
        if name == "GAMMA":
            return (1 << zeros | self.number(zeros)) - 1
        if name == "DELTA":
            width = (1 << zeros | self.number(zeros)) - 1
            return (1 << width | self.number(width)) - 1
        left = 1 << zeros * k
        low = self.number(zeros * k + k - 1)
        return low + left - 1 if low < left else low * 2 + self.bit() - 1


def decode(raw, nodes, how):
    bits, lists = Bits(raw), []
    for x in range(nodes):
        degree = bits.read(how.codes["OUTDEGREES"], how.k)
        row = set()
        if degree:
            reference = bits.read(how.codes["REFERENCES"], how.k) if how.window else 0
            if reference:
                other = lists[x - reference]
                count = bits.read(how.codes["BLOCK_COUNT"], how.k)
                sizes = [bits.read(how.codes["BLOCKS"], how.k) + (j > 0) for j in range(count)]
                sizes.append(len(other) - sum(sizes))
                at = 0
                for j, size in enumerate(sizes):
                    row |= set(other[at : at + size]) if j % 2 == 0 else set()
                    at += size
            left = degree - len(row)
            integer = lambda n: n // 2 if n % 2 == 0 else -(n + 1) // 2  # noqa: E731
            if left and how.min_interval:
                end = None
                for _ in range(bits.read("GAMMA", 0)):
                    gap = bits.read("GAMMA", 0)
                    start = x + integer(gap) if end is None else end + gap + 1
                    end = start + bits.read("GAMMA", 0) + how.min_interval
                    row |= set(range(start, end))
                    left -= end - start
            last = None
            for _ in range(left):
                gap = bits.read(how.codes["RESIDUALS"], how.k)
                last = x + integer(gap) if last is None else last + gap + 1
                row.add(last)
        lists.append(sorted(row))
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
    codes=st.fixed_dictionaries({kind: st.sampled_from(names) for kind, (_, names) in module._KINDS.items()}),
)


@settings(deadline=None)
@given(graphs(), HOW, st.data())
def test_what_was_encoded_is_decoded(tmp_path_factory, lists, how, data):
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
    from inlink.sources.kernels import bits as kernels

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
        (gamma(1) + unary(0) + gamma(0), 1, 1, r"bit 0: the bits run out at node 0 of 1"),
        (gamma(3), 2, 1, r"bit 0: an outdegree larger than the number of nodes at node 0 of 2"),
        (gamma(0) + gamma(1) + unary(2) + "1" * 20, 2, 1, r"bit 1: a reference to a list out of reach at node 1"),
        (gamma(1) + unary(0) + gamma(0) + zeta(8, 3), 3, 1, r"bit 0: a successor out of range"),
        (gamma(1) + unary(0) + gamma(0) + zeta(1, 3), 3, 1, r"bit 0: a successor out of range"),
        (gamma(5) + unary(0) + gamma(1) + gamma(6) + gamma(0) + "1" * 30, 6, 5, r"bit 0: an interval that does"),
        (gamma(1) + unary(0) + gamma(0) + zeta(0, 3) + gamma(1) + unary(1) + gamma(3) + "1" * 20, 2, 2, r"blocks that"),
        (gamma(0) + gamma(0), 2, 3, r"has 0 arcs and its properties say 3"),
        (gamma(0), 100, 0, r"1 bytes are too few for 100 nodes"),
    ],
)  # fmt: skip
def test_damage_is_told_with_its_bit(tmp_path, bits, nodes, arcs, message):
    path = store(tmp_path, bits, Settings().text(nodes, arcs))
    with pytest.raises(DamageError, match=message):
        rows(bvgraph(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("graphclass=it.unimi.dsi.webgraph.EFGraph", "EFGraph: store it as BVGraph"),
        ("version=1", "BVGraph version 1"),
        ("nodes=-3", "nodes=-3 is not a number"),
        ("nodes=99999999999", "nodes=99999999999 is not a number from 0 to"),
        ("arcs=", "arcs= is not a number"),
        ("zetak=0", "zetak=0"),
        ("windowsize=1e3", "windowsize=1e3"),
        ("endianness=little", "endianness=little"),
        ("compressionflags=RESIDUALS_PI", "compression flag RESIDUALS_PI is not known"),
        ("compressionflags=OUTDEGREES_ZETA", "compression flag OUTDEGREES_ZETA is not known"),
    ],
)
def test_properties_that_are_not_known(tmp_path, change, message):
    path = store(tmp_path, gamma(0), Settings().text(1, 0) + change + "\n")
    with pytest.raises(FormatError, match=message):
        rows(bvgraph(path))


def test_a_missing_half(tmp_path):
    path = store(tmp_path, gamma(0), Settings().text(1, 0))
    path.with_name("g.properties").unlink()
    with pytest.raises(InputError, match=r"g\.properties is missing"):
        bvgraph(path)


@pytest.mark.parametrize("ending", ["", ".graph", ".properties"])
def test_cnr_2000(shared_data, ending):
    path = shared_data("graphs/cnr-2000")
    source = bvgraph(path.with_name(path.name + ending))
    outdegrees = np.zeros(325_557, np.int64)
    for batch in source.batches:
        assert (np.diff(batch.sources.astype(np.int64)) >= 0).all()
        outdegrees += np.bincount(batch.sources, minlength=325_557)
    assert (source.num_nodes, outdegrees.sum(), (outdegrees == 0).sum()) == (325_557, 3_216_152, 78_056)


def test_cnr_2000_against_the_slow_decoder(shared_data):
    path = shared_data("graphs/cnr-2000.graph")
    wanted = decode(path.read_bytes()[:20_000], 3000, Settings())
    batch = next(bvgraph(path).batches)
    ends = batch.targets[batch.sources < 3000]
    assert ends.tolist() == [y for row in wanted for y in row]


def test_a_cut_graph_is_told(shared_data, tmp_path):
    path = shared_data("graphs/cnr-2000.graph")
    (tmp_path / "cut.graph").write_bytes(path.read_bytes()[:500_000])
    (tmp_path / "cut.properties").write_bytes(path.with_suffix(".properties").read_bytes())
    with pytest.raises(
        DamageError, match=r"cut\.graph, bit 3,999,\d\d\d: the bits run out at node [\d,]+ of 325,557"
    ):
        rows(bvgraph(tmp_path / "cut"))
