"""Write a graph as a BVGraph, as WebGraph's own class does: ``.graph``, ``.properties`` and ``.offsets``.

``.graph`` has the same bits as WebGraph writes with one thread and the same parameters, and ``.properties`` the same
values. Names go to ``.urls.gz``, a name per line in the order of the nodes, as LAW publishes them.

Source: Boldi & Vigna, "The WebGraph framework I: compression techniques", WWW 2004, and WebGraph's class BVGraph.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np

from inlink.base.arrays import AnyArray, UInt64Array
from inlink.base.folder import atomic_file
from inlink.base.progress import track
from inlink.errors import OutputError
from inlink.graph.encoder import FIELDS, BitBuffer, Coding, Encoder
from inlink.graph.graph import Graph
from inlink.sources.bvgraph import stem_of, urls_of
from inlink.sources.write import Written, packed, refuse_bytes, refuse_columns, write_names

# The order of WebGraph's compression flags.
_FLAGS = ("OUTDEGREES", "BLOCKS", "RESIDUALS", "REFERENCES", "BLOCK_COUNT")


def write_bvgraph(
    graph: Graph,
    path: Path,
    columns: Mapping[str, AnyArray],
    *,
    window: int = 7,
    max_references: int = 3,
    min_interval: int = 4,
    zeta_k: int = 3,
    codes: Sequence[str] = (),
) -> Written:
    """Write a BVGraph; see :func:`inlink.sources.write.write_graph`.

    All files are complete before the first gets its name. Without a ``.properties`` file nothing reads the others as a
    graph. So an old one is removed first, and the new one gets its name last: files of two graphs never count as one.

    Parameters
    ----------
    graph : Graph
        The graph. Its weights are left out. WebGraph's class BVGraph reads at most 2³¹ − 1 nodes.
    path : Path
        Any of the files, or their name without the extension.
    columns : mapping of str to number[n]
        Must be empty.
    window, max_references, min_interval, zeta_k, codes
        See :class:`inlink.graph.encoder.Coding`; ``zeta_k`` is its ``k``.

    Raises
    ------
    inlink.errors.OutputError
        If there are columns, a name contains a line end, the graph has no names but there is a file of names, or the
        files cannot be written.
    inlink.errors.ParameterError
        If a parameter is out of its range.
    """
    refuse_columns(path, columns)
    stem, names = stem_of(path), graph.names
    paths = {ending: stem.with_name(f"{stem.name}.{ending}") for ending in ("properties", "graph", "offsets")}
    coding = Coding(window, max_references, min_interval, zeta_k, tuple(codes))
    longest = int(np.diff(graph.out_rows.offsets).max(initial=0))
    encoder = Encoder(coding, longest)
    for urls in urls_of(stem):
        if urls.exists() and (names is None or urls.suffix != ".gz"):
            raise OutputError(f"{urls} exists and would give this graph wrong names. Remove the file.")
    refuse_bytes(path, names, b"\n", "contains a line end", "Write .parquet or .csv")
    with contextlib.ExitStack() as stack:
        work = {ending: stack.enter_context(atomic_file(file)) for ending, file in paths.items()}
        if names is not None:
            paths["urls.gz"] = urls_of(stem)[0]
            beside = stack.enter_context(atomic_file(paths["urls.gz"]))
            with packed(beside, paths["urls.gz"]) as file:
                write_names(names, file)
        with work["graph"].open("wb") as records, work["offsets"].open("wb") as offsets:
            bits = _write_streams(graph, encoder, records, offsets)
        values = _parameters(graph, coding) | _statistics(graph, encoder, bits)
        text = "".join(f"{key}={value}\n" for key, value in sorted(values.items()))
        work["properties"].write_text(f"#BVGraph properties\n{text}", "latin-1")
        paths["properties"].unlink(missing_ok=True)
    return Written([paths["graph"], *(file for ending, file in paths.items() if ending != "graph")])


def _write_streams(graph: Graph, encoder: Encoder, records: IO[bytes], offsets: IO[bytes]) -> int:
    """Write the records, and the γ code of 0 and of each record's bits; return the number of bits of all records."""
    deltas, total = BitBuffer(), 0
    _put_gammas(deltas, np.zeros(1, np.uint64))
    with track("writing arcs", graph.num_nodes, "nodes") as task:
        for raw, lengths in encoder.encode(graph.out_rows):
            records.write(raw)
            _put_gammas(deltas, lengths)
            offsets.write(deltas.take())
            total += int(lengths.sum())
            task.advance(len(lengths))
    records.write(encoder.rest())
    offsets.write(deltas.take(last=True))
    return total


def _put_gammas(bits: BitBuffer, values: UInt64Array) -> None:
    from inlink.graph.kernels import bvencode as kernels

    # A γ code has at most twice the bits of its number, and one.
    widest = int(values.max(initial=0)).bit_length()
    bits.reserve(len(values) * (2 * widest + 1))
    bits.at = int(kernels.put_gammas(bits.data, np.uint64(bits.at), values))


# -- properties ------------------------------------------------------------------------------------------------


def _parameters(graph: Graph, coding: Coding) -> dict[str, Any]:
    chosen = coding.chosen()
    values: dict[str, Any] = {
        "graphclass": "it.unimi.dsi.webgraph.BVGraph",
        "version": 0,
        "nodes": graph.num_nodes,
        "arcs": graph.num_arcs,
        "windowsize": coding.window,
        "maxrefcount": coding.max_references,
        "minintervallength": coding.min_interval,
        "compressionflags": " | ".join(
            f"{field}_{chosen[field]}" for field in _FLAGS if chosen[field] != FIELDS[field][0]
        ),
    }
    if chosen["RESIDUALS"] == "ZETA":
        values["zetak"] = coding.k
    return values


def _statistics(graph: Graph, encoder: Encoder, bits: int) -> dict[str, Any]:
    """Return WebGraph's properties of a compressed graph, by WebGraph's keys."""
    from inlink.graph.kernels import bvencode as kernels

    sums, n, m = encoder.statistics, graph.num_nodes, graph.num_arcs
    values: dict[str, Any] = {
        "bitsperlink": _ratio(bits, m),
        "bitspernode": _ratio(bits, n),
        "compratio": _decimal(_of_entropy(bits, n, m)),
        "avgref": _ratio(int(sums.references[kernels.CHAINS]), n),
        "avgdist": _ratio(int(sums.references[kernels.DISTANCES]), n),
        "copiedarcs": int(sums.arcs[kernels.COPIED]),
        "intervalisedarcs": int(sums.arcs[kernels.INTERVALISED]),
        "residualarcs": int(sums.arcs[kernels.RESIDUALS]),
    }
    for use, name in enumerate(("outdegrees", "references", "blocks", "intervals", "residuals")):
        values[f"bitsfor{name}"] = int(sums.bits[use])
        values[f"avgbitsfor{name}"] = _ratio(int(sums.bits[use]), n)
    return (
        values
        | _of_gaps("successor", sums.successor_gaps.tolist())
        | _of_gaps("residual", sums.residual_gaps.tolist())
    )


def _ratio(part: int, whole: int) -> str:
    if whole:
        return _decimal(part / whole)
    return _decimal(math.inf if part else math.nan)


def _decimal(value: float) -> str:
    """Format a number as Java's pattern ``0.###`` does."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "\\u221E"
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _of_entropy(bits: int, nodes: int, arcs: int) -> float:
    """Return the bits divided by the entropy of a random graph: log₂ of n² over m, by Stirling's formula."""

    def stirling(x: float) -> float:
        return x * math.log(x) - x + math.log(2 * math.pi * x) / 2 if x > 0 else math.nan

    pairs = float(nodes) * nodes
    least = stirling(pairs) - stirling(arcs) - stirling(pairs - arcs)
    return bits * math.log(2) / least if least else math.nan


def _of_gaps(name: str, bins: list[int]) -> dict[str, str]:
    """Return the statistics of gaps that are counted in [2ⁱ, 2ⁱ⁺¹): counts, mean, and mean of the logarithm."""
    while bins and not bins[-1]:
        bins.pop()
    gaps = sum(bins)
    mean, logarithm = "0", "0"
    if gaps:
        total = sum((3 * 2**i - 1) * count for i, count in enumerate(bins))
        thousandths = round(Fraction(1000 * total, 2 * gaps))
        mean = f"{thousandths // 1000}.{thousandths % 1000:03}"
        logs = 0.0
        for i, count in enumerate(bins):
            logs += (math.log(3 * 2**i + 1) / math.log(2) - 1) * count
        logarithm = repr(logs / gaps)
    return {
        f"{name}expstats": ",".join(map(str, bins)),
        f"{name}avggap": mean,
        f"{name}avgloggap": logarithm,
    }
