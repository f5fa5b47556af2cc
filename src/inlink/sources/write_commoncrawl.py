"""Write graphs and their ranks as Common Crawl publishes them.

===================== =========================================================================================
vertices              ``id TAB reversed name``, and ``TAB number of hosts`` where the graph knows it; ids are places
                      in byte order of names
edges                 ``from TAB to``, in numeric order, without weights
``ranks.txt.gz``      a header and, in the order of harmonic centrality: its place and value, the place and value of
                      PageRank, the reversed name, and the number of hosts where the graph knows it
===================== =========================================================================================

A graph of hosts has its vertices and edges in parts, ``vertices/part-00000.txt.gz`` and so on. Other graphs have
``vertices.txt.gz`` and ``edges.txt.gz``. If the given path contains ``vertices``, it names the file of vertices, and
the others are named alike. All files are written before the first of them gets its name.

Places and numbers are those of cc-webgraph's ``JoinSortRanks``: harmonic centrality has 32 bits, PageRank 64, nodes
with equal values have different places in the order of their ids, and numbers look as Java prints them.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from inlink.base.arrays import AnyArray, UInt32Array, slices
from inlink.base.folder import atomic_file
from inlink.base.strings import Strings
from inlink.errors import OutputError, ParameterError
from inlink.graph.graph import Graph
from inlink.graph.names import NO_NODE
from inlink.graph.views import arcs_in_order
from inlink.sources import write
from inlink.sources.write import Columns, Written, as_text, join_rows, packed, refuse_bytes, refuse_columns

RANKS = ("harmonic", "pagerank")
"""The rankings that the file of ranks needs, by the names of their columns."""

# The largest number of lines in a part of a graph of hosts.
_VERTICES, _EDGES = 1 << 24, 1 << 26
_HEADER = b"#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev"


def write_common_crawl(graph: Graph, path: Path, columns: Columns) -> Written:
    """See :func:`inlink.sources.write.write_graph`. The columns are those of :data:`RANKS`, or none."""
    names = graph.names
    if names is None:
        raise OutputError(
            f"{path}: Common Crawl's format needs names, and this graph has none. Write .tsv or .parquet."
        )
    ranks = {name: np.asarray(columns[name]) for name in RANKS if name in columns}
    refuse_columns(path, {name: values for name, values in columns.items() if name not in RANKS})
    if len(ranks) == 1:
        missing = next(name for name in RANKS if name not in ranks)
        raise ParameterError(
            f"{path}: the ranks need the columns harmonic and pagerank; {missing} is missing"
        )
    for name, values in ranks.items():
        if not np.isfinite(values).all():
            raise ParameterError(f"{path}: the values of {name} must be finite")
    refuse_bytes(path, names, b"\t\n\r", "contains a tab or a line end", "Write .csv or .parquet")
    vertices, edges, rank_file = _files(graph, path)
    order = names.order if names.order is not None else np.arange(len(names), dtype=np.uint32)
    hosts = _hosts(graph)

    def vertex(ids: AnyArray, nodes: AnyArray) -> bytes:
        count: list[Strings | bytes] = [] if hosts is None else [b"\t", as_text(hosts[nodes])]
        return join_rows(as_text(ids), b"\t", names.take(nodes), *count, b"\n")

    def edge(sources: AnyArray, targets: AnyArray) -> bytes:
        return join_rows(as_text(sources), b"\t", as_text(targets), b"\n")

    with contextlib.ExitStack() as stack:
        _write(stack, vertices, _VERTICES, _blocks(np.arange(len(order), dtype=np.uint32), order), vertex)
        _write(
            stack,
            edges,
            _EDGES,
            ((sources, targets) for sources, targets, _ in arcs_in_order(graph, names.order, write.ARCS)),
            edge,
        )
        if ranks:
            _write_ranks(stack, rank_file, graph, order, ranks, hosts)
    return Written([*vertices, *edges, *([rank_file] if ranks else [])])


def _files(graph: Graph, path: Path) -> tuple[list[Path], list[Path], Path]:
    """Return the files of vertices and of edges, and the file of ranks."""
    if "vertices" in path.name:
        return (
            [path],
            [path.with_name(path.name.replace("vertices", "edges"))],
            path.with_name(path.name.replace("vertices", "ranks")),
        )
    sides = []
    for side, lines, most in (("vertices", graph.num_nodes, _VERTICES), ("edges", graph.num_arcs, _EDGES)):
        if graph.level == "host":
            parts = range(max(-(-lines // most), 1))
            sides.append([path / side / f"part-{part:05}.txt.gz" for part in parts])
        else:
            sides.append([path / f"{side}.txt.gz"])
    _refuse_others(path, {*sides[0], *sides[1]})
    return sides[0], sides[1], path / "ranks.txt.gz"


def _refuse_others(path: Path, own: set[Path]) -> None:
    """Refuse a folder with files of another graph, which a reader would take for parts of this graph."""
    from inlink.sources.inputs import find_parts

    if path.is_dir():
        for file in (file for side in find_parts(path) for file in side):
            if file not in own:
                raise OutputError(
                    f"{file} belongs to another graph: remove {path}, or write to another folder"
                )


def _hosts(graph: Graph) -> AnyArray | None:
    """Return the number of hosts of each node, uint32[n]; None if the graph was not folded from hosts."""
    if graph.from_parent is None or graph.level != "domain" or graph.meta.get("parent_level") != "host":
        return None
    became = graph.from_parent
    return np.bincount(became[became != NO_NODE], minlength=graph.num_nodes).astype(np.uint32)


def _blocks(*arrays: AnyArray) -> Iterator[tuple[AnyArray, ...]]:
    for part in slices(len(arrays[0]), write.ARCS):
        yield tuple(array[part] for array in arrays)


def _write(
    stack: contextlib.ExitStack,
    files: list[Path],
    most: int,
    blocks: Iterator[tuple[AnyArray, ...]],
    line: Callable[..., bytes],
) -> None:
    """Write blocks of rows to files in turn. Each file but the last gets at most ``most`` lines."""
    rest: tuple[AnyArray, ...] = next(blocks, ())
    for file in files:
        work = stack.enter_context(atomic_file(file))
        with packed(work, file) as out:
            room = most if file != files[-1] else None
            while rest and room != 0:
                out.write(line(*(array[:room] for array in rest)))
                written = len(rest[0][:room])
                room = None if room is None else room - written
                rest = (
                    tuple(array[written:] for array in rest) if written < len(rest[0]) else next(blocks, ())
                )


def _write_ranks(
    stack: contextlib.ExitStack,
    file: Path,
    graph: Graph,
    order: UInt32Array,
    ranks: dict[str, AnyArray],
    hosts: AnyArray | None,
) -> None:
    assert graph.names is not None
    # Values by id, as Common Crawl stores them.
    harmonic = ranks["harmonic"][order].astype(np.float32)
    pagerank = ranks["pagerank"][order].astype(np.float64)
    best = np.argsort(-harmonic, kind="stable")
    places = np.empty(len(order), np.int64)
    places[np.argsort(-pagerank, kind="stable")] = np.arange(1, len(order) + 1)
    work = stack.enter_context(atomic_file(file))
    with packed(work, file) as out:
        out.write(_HEADER + (b"" if hosts is None else b"\t#n_hosts") + b"\n")
        for numbers, ids in _blocks(np.arange(1, len(order) + 1), best):
            columns = [
                as_text(numbers),
                java_numbers(harmonic[ids]),
                as_text(places[ids]),
                java_numbers(pagerank[ids]),
                graph.names.take(order[ids]),
                *([] if hosts is None else [as_text(hosts[order[ids]])]),
            ]
            tabs = [part for column in columns for part in (b"\t", column)]
            out.write(join_rows(*tabs[1:], b"\n"))


def java_numbers(values: AnyArray) -> Strings:
    """Return finite numbers of at least 0, float32[k] or float64[k], as text as Java 19 and later print them.

    The digits are the fewest that read back as the same number. Below 0.001 and from 10⁷ on there is an exponent.
    """
    small, large = values < 1e-3, values >= 1e7
    plain = ~(small | large) | (values == 0)
    texts = [text.decode() for text in as_text(values).to_pylist()]
    shown = [
        (text if "." in text else f"{text}.0") if simple else _scientific(text)
        for text, simple in zip(texts, plain.tolist(), strict=True)
    ]
    return Strings.of(shown)


def _scientific(text: str) -> str:
    """Return a decimal number with one digit before the point, and an exponent."""
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return f"{digits[0]}.{digits[1:] or '0'}E{power}"
