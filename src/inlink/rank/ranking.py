"""`Ranking`: a value for each node, its accuracy and its parameters; saved in the graph's folder or in a table."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from inlink.base.arrays import AnyArray, Float64Array, slices
from inlink.base.checked import is_remembered, remember
from inlink.base.declare import Parameter, checked, plain
from inlink.base.folder import Folder, building
from inlink.base.table import counted, html_table
from inlink.errors import DamageError, FolderError, OutputError, ParameterError, UnknownNodeError
from inlink.graph.names import Names, encode
from inlink.graph.views import Nodes
from inlink.rank.certain import FirstPlaces, best_nodes, certain_places, separate_places

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from inlink.graph.graph import Graph


P = ParamSpec("P")
T = TypeVar("T")

KIND = "ranking"
FORMAT = 1

ROUNDOFF = 2.0**-53
"""Unit roundoff of float64, for error bounds: the largest relative error of one rounding to the nearest number."""

# The version of the checks of a folder's values.
_RULES = 1
_BATCH = 1 << 16
# Parameters of samples and of counters, whose values have no certain bound.
_ESTIMATES = {"confidence", "log2m"}
# With "top", only the values of the first places are exact, and the others are upper bounds.
_INEXACT = _ESTIMATES | {"top"}
# Intervals are computed from these parameters: of a sample of shortest paths, and of the best nodes alone.
_PATHS, _BEST = ("paths", "scale", "constant"), ("top", "top_error")
# Values that came from a file, which does not say how exact they are.
_FOREIGN = {"unknown", "imported"}
_TOP = Parameter(name="k", kind=int, at_least=0)


def _bound(value: Any) -> float | None:
    return None if value is None else float(value)


def _unchanged(value: Any) -> Any:
    return value


# The fields of the description, and how they are read from JSON.
_READ: dict[str, Callable[[Any], Any]] = {
    "algorithm": str,
    "error_bound": _bound,
    "residual": _bound,
    "iterations": int,
    "converged": bool,
    "parameters": dict,
    "dangling": _unchanged,
    "unique": _unchanged,
    "note": str,
    "graph_uuid": _unchanged,
    "elapsed": float,
}

_TITLES = {
    "pagerank": "PageRank",
    "mcmc": "PageRank by random walks",
    "trustrank": "TrustRank",
    "anti_trustrank": "Anti-TrustRank",
    "spam_mass": "Spam mass",
    "cheirank": "CheiRank",
    "linkrank": "LinkRank",
    "hits": "HITS authority",
    "salsa": "SALSA authority",
    "opic": "OPIC",
    "degree": "Degree",
    "closeness": "Closeness",
    "harmonic": "Harmonic centrality",
    "betweenness": "Betweenness",
    "percolation": "Percolation centrality",
    "eigenvector": "Eigenvector centrality",
    "katz": "Katz centrality",
}


class Ranking:
    """The values that an algorithm gave to the nodes of a graph.

    It reads like a mapping of nodes (names, or numbers if there are no names) to floats: ``ranking[node]``,
    ``dict(ranking)``, ``max(ranking, key=ranking.get)``. But :attr:`values` is an array, as is ``np.asarray(ranking)``.

    Attributes
    ----------
    values : float64[n]
        The ranks, by node number.
    algorithm : str
        The name of the algorithm: ``"pagerank"``, ``"trustrank"``, ``"hits"``, ``"degree"``.
    names : Names or None
        The nodes' names.
    error_bound : float or None
        A bound on the L1 distance to the exact values; ``inf`` if no bound can exist, None if no bound is known.
    residual : float or None
        The residual of the equation that the values approximate, if it does not bound the error (HITS).
    iterations : int
        The number of sweeps over the arcs, without those that only compute the bound.
    converged : bool
        Whether the tolerance was reached.
    parameters : dict
        The parameters of the function.
    dangling : str or None
        The treatment of the mass of dangling nodes: ``"teleport"`` or ``"lost"``; None without such a mass.
    unique : bool or None
        Whether the equation has only one solution; None if this is not known.
    note : str
        A remark for the reader; often empty.
    columns : dict of str to float64[n]
        All values; for HITS ``authorities`` (which are ``values``) and ``hubs``.
    graph_uuid : str or None
        The uuid of the graph that was ranked; None for a graph in memory.
    elapsed : float
        The seconds that the algorithm took.
    date : str or None
        The time at which it ended, in UTC, such as ``"2026-11-24T12:00:00+00:00"``; None if this is not known.
    source : str or None
        The folder that the ranking was loaded from; None if it was not.
    """

    def __init__(
        self,
        values: Float64Array,
        *,
        algorithm: str,
        names: Names | None = None,
        error_bound: float | None = None,
        residual: float | None = None,
        iterations: int = 0,
        converged: bool = True,
        parameters: dict[str, Any] | None = None,
        dangling: str | None = None,
        unique: bool | None = None,
        note: str = "",
        hubs: Float64Array | None = None,
        graph_uuid: str | None = None,
        elapsed: float = 0.0,
    ) -> None:
        self.values = values
        self.algorithm = algorithm
        self.names = names
        self.error_bound = error_bound
        self.residual = residual
        self.iterations = iterations
        self.converged = converged
        # JSON cannot represent NumPy's numbers.
        self.parameters = {name: plain(value) for name, value in (parameters or {}).items()}
        self.dangling = dangling
        self.unique = unique
        self.note = note
        self.graph_uuid = graph_uuid
        self.elapsed = elapsed
        self.date: str | None = None
        self.source: str | None = None
        self.columns = {"value": values} if hubs is None else {"authorities": values, "hubs": hubs}

    @property
    def authorities(self) -> Float64Array:
        """The authorities of HITS, float64[n]."""
        return self._column("authorities")

    @property
    def hubs(self) -> Float64Array:
        """The hubs of HITS, float64[n]."""
        return self._column("hubs")

    def _column(self, name: str) -> Float64Array:
        if name not in self.columns:
            raise ParameterError(
                f"a ranking by {self.algorithm} has no {name}; it has {', '.join(self.columns)}"
            )
        return self.columns[name]

    def verdict(self) -> str:
        """Return in one line how exact the values are."""
        if self.algorithm in _FOREIGN:
            return self.note or "exactness unknown"
        if self.is_exact():
            return "exact"
        if "top" in self.parameters:
            return self.note
        if _ESTIMATES & self.parameters.keys():
            return f"estimated: {self.note}"
        if self.error_bound is not None and self.error_bound < float("inf"):
            exactness = f"L1 error at most {self.error_bound:.1e}"
        else:
            exactness = (
                "no error bound" if self.residual is None else f"residual {self.residual:.1e}, no error bound"
            )
        state = "converged" if self.converged else "not converged"
        return f"{state} after {counted(self.iterations, 'sweep')}, {exactness}" + (
            f"; {self.note}" if self.note else ""
        )

    def is_exact(self) -> bool:
        """Return whether the values are exact but for rounding."""
        done = self.iterations == 0 and self.converged and self.residual is None
        return done and self.algorithm not in _FOREIGN and not _INEXACT & self.parameters.keys()

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[str | int]:
        return iter(self.keys())

    def __contains__(self, node: object) -> bool:
        return node in self.keys()

    def __getitem__(self, node: int | str | bytes) -> float:
        return float(self.values[self.keys().number(node)])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.values, dtype, copy=copy)

    def keys(self) -> Nodes:
        """The nodes: names, or numbers if there are no names."""
        return Nodes(self.names, len(self))

    def get(self, node: int | str | bytes, default: T | None = None) -> float | T | None:
        """The value of a node, or ``default`` if there is no such node."""
        try:
            return self[node]
        except UnknownNodeError:
            return default

    def __repr__(self) -> str:
        if self.error_bound is not None:
            exact = f"error ≤ {self.error_bound:.1e}"
        elif self.residual is not None:
            exact = f"residual {self.residual:.1e}"
        else:
            exact = "exactness unknown"
        state = "" if self.converged else ", not converged"
        size = f"{counted(len(self), 'node')}, {counted(self.iterations, 'iteration')}"
        return f"<inlink ranking by {self.algorithm}: {size}, {exact}{state}>"

    def _repr_html_(self) -> str:
        rows = [(place, value, str(node)) for place, (node, value) in enumerate(self.top(10), 1)]
        return html_table(repr(self)[1:-1], ["place", next(iter(self.columns)), "node"], rows)

    def top(self, k: int = 10, *, by: str | None = None) -> list[tuple[str | int, float]]:
        """Return the k nodes with the largest values, largest first; equal values in the order of node numbers.

        Parameters
        ----------
        k : int
            The number of nodes, at least 0.
        by : str or None
            A column: ``"hubs"`` of HITS; None is ``values``.

        Returns
        -------
        list of (str or int, float)
            Name (or number, if there are no names) and value.

        Raises
        ------
        inlink.errors.ParameterError
            If ``k`` is below 0, or there is no such column.
        """
        _TOP.check(k, "`k`")
        values = self.values if by is None else self._column(str(by))
        best = best_nodes(values, k)
        return list(zip(self.keys().at(best), values[best].tolist(), strict=True))

    def places(self, k: int = 10) -> FirstPlaces | None:
        """Return the first k places, and which of them are certain: the errors are too small to change their order.

        For betweenness from a sample of paths, all certain places are right together with the confidence of the sample.

        Parameters
        ----------
        k : int
            The number of places, at least 0.

        Returns
        -------
        FirstPlaces or None
            Nodes, int64[k], and whether each place is certain, bool[k]. None if there is no error bound, as with
            HITS and with other samples.

        Raises
        ------
        inlink.errors.ParameterError
            If ``k`` is below 0.
        """
        _TOP.check(k, "`k`")
        return self.places_among(self.values, k)

    def places_among(self, values: Float64Array, k: int) -> FirstPlaces | None:
        """Do the same as :meth:`places` for some of the values, float64[m]. Nodes are indices of ``values``."""
        if self._numbers(_PATHS) or self._numbers(_BEST):
            return separate_places(values, self.intervals, k)
        bound = 0.0 if self.error_bound is None and self.is_exact() else self.error_bound
        return None if bound is None else certain_places(values, bound, k)

    def _numbers(self, keys: tuple[str, ...]) -> list[float] | None:
        """Return parameters, or None unless all are numbers: they may come from a stranger's file."""
        values = [x for x in map(self.parameters.get, keys) if isinstance(x, int | float) and 0 <= x < np.inf]
        return values if len(values) == len(keys) else None

    def intervals(self, values: Float64Array | None = None) -> tuple[Float64Array, Float64Array]:
        """Return an interval for each value of betweenness from a sample of paths, or of closeness with ``top``.

        All exact values are inside; for a sample, with its confidence. The intervals of small values of a sample are
        shorter than ``parameters["max_error"]``. With ``top``, the intervals of all but the best nodes begin at 0.

        Parameters
        ----------
        values : float64[k] or None
            Values of this ranking. None: all.

        Returns
        -------
        low, high : float64[k]
            The ends of the intervals.

        Raises
        ------
        inlink.errors.ParameterError
            If the ranking was made in another way.
        """
        sample, best = self._numbers(_PATHS), self._numbers(_BEST)
        values = self.values if values is None else values
        if best:
            top, error = best
            least = self.values[best_nodes(self.values, int(top))[-1:]].min(initial=np.inf)
            return np.where(values >= least, values - error, 0.0), values + error
        if not sample:
            raise ParameterError(
                f"a ranking by {self.algorithm} has no intervals: betweenness has them with `epsilon`, closeness and "
                "harmonic have them with `top`"
            )
        from inlink.rank.intervals import intervals

        paths, scale, constant = sample
        if not paths or not scale:
            return values, values
        counts = np.clip(np.rint(values * (paths / scale)), 0, paths)
        low, high = intervals(counts, int(paths), max(constant, 1.0))
        return low * scale, high * scale

    def rank_of(self, node: int | str | bytes) -> int:
        """Return the place of a node, from 1. Nodes with the same value share the best place.

        Raises
        ------
        inlink.errors.UnknownNodeError
            If there is no such node.
        """
        return 1 + int(np.count_nonzero(self.values > self[node]))

    # -- its description, as JSON ---------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """Return all but names and values as JSON can hold it: algorithm, parameters, error bound, date, source, …"""
        meta = {"version": FORMAT, "algorithm": self.algorithm, "columns": list(self.columns)}
        for name, read in _READ.items():
            value = plain(getattr(self, name))
            # JSON has no inf.
            meta[name] = str(value) if read is _bound and value is not None and np.isinf(value) else value
        return meta | {"date": self.date, "source": self.source}

    @classmethod
    def _of(
        cls, meta: dict[str, Any], columns: list[Float64Array], names: Names | None, place: str
    ) -> "Ranking":
        try:
            if meta["version"] > FORMAT:
                raise FolderError(
                    f"{place} has format version {meta['version']} and this inlink reads up to {FORMAT}: upgrade inlink"
                )
            if meta["columns"] != ["value"] and meta["columns"] != ["authorities", "hubs"]:
                raise ValueError(f"columns {meta['columns']}")
            hubs = columns[1] if len(meta["columns"]) == 2 else None
            description = {name: read(meta[name]) for name, read in _READ.items()}
            ranking = cls(columns[0], names=names, hubs=hubs, **description)
            # Versions before November 2026 wrote neither.
            ranking.date, ranking.source = meta.get("date"), meta.get("source")
            return ranking
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise DamageError(
                f"{place}: the ranking's description cannot be read ({error}): make it again"
            ) from None

    # -- beside its graph ------------------------------------------------------------------------------------

    def save(self, graph: "Graph | str | os.PathLike[str]", name: str | None = None) -> Path:
        """Save the ranking as ``<graph's folder>/rankings/<name>``. An earlier ranking of this name is replaced.

        Parameters
        ----------
        graph : Graph or path-like
            The graph that was ranked, or its folder.
        name : str or None
            None is the algorithm's name.

        Raises
        ------
        inlink.errors.OutputError
            If another graph was ranked, the graph is in memory only, or its folder cannot be written.
        inlink.errors.ParameterError
            If the name cannot be the name of a folder.
        """
        graph = _opened(graph)
        name = _checked(name or self.algorithm)
        if graph.path is None:
            raise OutputError("this graph is in memory only: save the ranking with to_csv or to_parquet")
        if self.graph_uuid != graph.uuid or len(self) != graph.num_nodes:
            raise OutputError(
                f"{graph.path}: this ranking belongs to another graph, or to an earlier version of this one"
            )
        target = graph.path / "rankings" / name
        with building(target, KIND, FORMAT) as folder:
            for column, values in self.columns.items():
                folder.write(column, values)
            folder.header.meta = self.description()
        return target

    @classmethod
    def load(cls, graph: "Graph | str | os.PathLike[str]", name: str) -> "Ranking":
        """Read a ranking that was saved with its graph. The values, float64[n], are memory-mapped, not loaded.

        Raises
        ------
        inlink.errors.FolderError
            If there is no ranking of this name, it is damaged, or the graph has been rebuilt since.
        """
        graph = _opened(graph)
        if graph.path is None:
            raise FolderError("this graph is in memory only and keeps no rankings")
        path = graph.path / "rankings" / _checked(name)
        if not path.exists():
            others = f" (it has: {have})" if (have := ", ".join(list_rankings(graph))) else ""
            raise FolderError(
                f"{graph.path} has no ranking {name!r}{others}: make it with inlink rank {graph.path}"
            )
        folder = Folder(path, KIND, FORMAT)
        meta = folder.header.meta
        columns = [column for column in ("value", "authorities", "hubs") if column in folder]
        if meta.get("graph_uuid") != graph.uuid or any(
            folder.header.files[column].length != graph.num_nodes for column in columns
        ):
            raise FolderError(f"{path} belongs to an earlier version of {graph.path}: rank the graph again")
        if meta.get("columns") != columns:
            raise FolderError(f"{path}: the header is damaged (columns): rank the graph again")
        _check_values(folder, columns)
        ranking = cls._of(meta, [folder.array(column) for column in columns], graph.names, str(path))
        ranking.source = str(graph.path)
        return ranking

    # -- in memory ---------------------------------------------------------------------------------------------

    def items(self) -> Iterator[tuple[str | int, float]]:
        """The name (or number, if there are no names) and the value of each node, in the order of the nodes."""
        parts = (self.values[part].tolist() for part in slices(len(self), _BATCH))
        return zip(self, chain.from_iterable(parts), strict=True)

    def to_dict(self) -> dict[str | int, float]:
        """The value of each node, by name, or by number if there are no names."""
        return dict(self.items())

    def to_arrow(self) -> "pyarrow.Table":
        """A pyarrow table with the columns node (uint32), name (if there are names) and the values (float64).

        Names are strings if all are UTF-8, else bytes. The key ``inlink.ranking`` of its metadata has the description.
        """
        from inlink.rank.tables import arrow_table

        return arrow_table(self.names, self.columns, self.description())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns of :meth:`to_arrow` as a stream, which Polars, DuckDB and other readers of Arrow take."""
        from inlink.rank.tables import arrow_stream

        return arrow_stream(self.names, self.columns)

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas data frame with ``columns``, indexed by name, or by number without names; made through NumPy.

        Raises
        ------
        inlink.errors.MissingExtraError
            If pandas is not installed.
        """
        from inlink.rank.tables import data_frame

        return data_frame(self.names, self.columns)

    # -- files -------------------------------------------------------------------------------------------------

    def to_csv(self, path: str | os.PathLike[str], *, plain: bool = False, safe_cells: bool = False) -> None:
        """Write a header and a line ``node,name,value`` for each node, and the description to a file beside it.

        The description of ``ranks.csv`` is in ``ranks.csv.meta.json``: algorithm, parameters, error bound, source and
        date. With both files, :meth:`read` returns the same bits. Text is UTF-8; other bytes of names are kept.

        Parameters
        ----------
        path : path-like
            The file; an existing file is replaced when the new one is complete. If its name ends with ``.tsv``, tabs
            separate the fields.
        plain : bool
            Write only ``"name",value`` lines, without a header and a description. :meth:`read` does not read these.
        safe_cells : bool
            Write ``'`` before names that begin as a formula does, so that spreadsheets show them as text. The names in
            the file then differ from those of the nodes.

        Raises
        ------
        inlink.errors.OutputError
            If the file cannot be written.
        """
        from inlink.rank.tables import write_csv

        write_csv(
            path, self.names, self.columns, None if plain else self.description(), safe_cells=safe_cells
        )

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table of :meth:`to_arrow` as Parquet.

        Raises
        ------
        inlink.errors.OutputError
            If the file cannot be written.
        """
        from inlink.rank.tables import write_parquet

        write_parquet(path, self.names, self.columns, self.description())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Ranking":
        """Read a ranking of float64[n] from a file of :meth:`to_csv` or :meth:`to_parquet`; the content shows which.

        Rows may be in any order. A CSV file without its description gives a ranking by the algorithm ``"unknown"``.

        Raises
        ------
        inlink.errors.InputError
            If the file cannot be read, was not written by inlink, is damaged, or lacks nodes.
        """
        from inlink.rank.tables import read_table

        table = read_table(path)
        if not table.complete:
            raise DamageError(f"{path} has not all nodes of a ranking, or not their numbers: export it again")
        values = list(table.columns.values())
        if table.meta is not None:
            return cls._of(table.meta, values, table.names, str(path))
        note = f"exactness unknown, because {path} has no description beside it"
        hubs = values[1] if len(values) > 1 else None
        return cls(values[0], algorithm="unknown", names=table.names, converged=False, note=note, hubs=hubs)


def timed(function: Callable[P, Ranking]) -> Callable[P, Ranking]:
    """Check the declared keyword arguments of an algorithm, and write to its ranking how long it took."""
    check = checked(function)

    @wraps(check)
    def call(*arguments: P.args, **options: P.kwargs) -> Ranking:
        began = time.perf_counter()
        ranking = check(*arguments, **options)
        ranking.elapsed = time.perf_counter() - began
        return ranking

    return call


def ranking_of(graph: "Graph", algorithm: str, values: Float64Array, **description: Any) -> Ranking:
    """Return the ranking of a graph, made now; see :class:`Ranking` for the rest."""
    ranking = Ranking(values, algorithm=algorithm, names=graph.names, graph_uuid=graph.uuid, **description)
    ranking.date = datetime.now(UTC).isoformat(timespec="seconds")
    return ranking


def title_of(name: str) -> str:
    """Return the name of a ranking as people write it, if it is the name of an algorithm or of a column."""
    return _TITLES.get(name.replace("-", "_"), name)


def list_rankings(graph: "Graph | str | os.PathLike[str]") -> list[str]:
    """Return the sorted names of the rankings saved with a graph, without rankings of its earlier versions."""
    graph = _opened(graph)
    if graph.path is None or not (graph.path / "rankings").is_dir():
        return []
    names = []
    for path in (graph.path / "rankings").iterdir():
        # A folder may be partly removed, or may not be a ranking.
        with contextlib.suppress(FolderError):
            if Folder(path, KIND, FORMAT).header.meta.get("graph_uuid") == graph.uuid:
                names.append(path.name)
    return sorted(name for name in names if name[0] != ".")


def _check_values(folder: Folder, columns: list[str]) -> None:
    """Check that all values are finite, in one read; do nothing if the folder is remembered as checked."""
    for column in columns:
        if folder.header.files[column].dtype != "<f8":
            raise folder.damaged(column, f"dtype {folder.header.files[column].dtype}")
    if is_remembered(folder, _RULES):
        return
    for column in columns:
        for start, block in folder.blocks(column, _BATCH):
            wrong = np.flatnonzero(~np.isfinite(block))
            if len(wrong):
                raise folder.damaged(
                    column, f"the value of node {start + int(wrong[0]):,} is {block[wrong[0]]}"
                )
    remember(folder, _RULES)


def _opened(graph: "Graph | str | os.PathLike[str]") -> "Graph":
    from inlink.graph.graph import Graph

    return graph if isinstance(graph, Graph) else Graph.open(graph)


def _checked(name: str) -> str:
    if name[:1] in ("", ".") or set(name) & set("/\\\0") or len(encode(name)) > 200:
        raise ParameterError(
            f"the name of a ranking must have at most 200 bytes, no slash, and no point at its beginning; got {name!r}"
        )
    return name
