"""BVGraph, encoded and slowly decoded, both as plain as the definition."""

from dataclasses import dataclass, field

import numpy as np

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
    # WebGraph never writes an interval of one node, even if `min_interval` is 1, but other encoders may.
    shortest: int = 2

    def text(self, nodes, arcs):
        flags = "|".join(f" {kind}_{name} " for kind, name in self.codes.items() if name != DEFAULTS[kind])
        return (
            f"#BVGraph properties\nversion=0\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nnodes={nodes}\narcs={arcs}\n"
            f"windowsize={self.window}\nminintervallength={self.min_interval}\nzetak={self.k}\nmaxrefcount=3\n"
            f"compressionflags={flags}\n"
        )


def record(x, row, reference, other, how):
    """The bits of one node's record, whose list copies from ``other``, ``reference`` nodes back (0: from none)."""
    bits = code(how.codes["OUTDEGREES"], len(row), how.k)
    if not row:
        return bits

    def put(kind, x):
        nonlocal bits
        bits += code(how.codes[kind], x, how.k)

    if how.window:
        put("REFERENCES", reference)
    rest = set(row)
    if reference:
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
            if run >= max(how.min_interval, how.shortest):
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


def encode(lists, how, references):
    """The bits of a graph; ``references[x]`` is how far back node x copies from, where that is possible."""
    bits = ""
    for x, row in enumerate(lists):
        reference = references[x] if references[x] <= min(how.window, x) else 0
        bits += record(x, row, reference, lists[x - reference], how)
    return bits


def encode_as_webgraph(lists, how, max_references, base=0):
    """The record of each node, the shortest of all that could be written; ``base`` is the first list's node."""
    records, chains = [], []
    for x, row in enumerate(lists):
        there = [
            back
            for back in range(1, min(how.window, x) + 1)
            if lists[x - back] and chains[x - back] < max_references
        ]
        ways = [(record(base + x, row, back, lists[x - back], how), back) for back in (0, *there)]
        best, back = min(ways, key=lambda way: len(way[0]))
        records.append(best)
        chains.append(chains[x - back] + 1 if back else 0)
    return records


def store(folder, bits, text, name="g"):
    raw = np.packbits(np.array([int(bit) for bit in bits], np.uint8)).tobytes()
    (folder / f"{name}.graph").write_bytes(raw)
    (folder / f"{name}.properties").write_text(text)
    return folder / name


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
