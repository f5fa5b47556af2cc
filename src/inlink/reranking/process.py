"""The process that ranks a crawl while the crawl runs.

``python -m inlink.reranking.process FOLDER OPTIONS`` gets :class:`RankingOptions` as JSON. It reads lines from its
standard input and answers each ``rank`` with one line of JSON on its standard output::

    {"ready": 1, "covers": 73400320, "pages": 812345, "seconds": 1.2, "sweeps": 0.31}

The ranking then covers the first ``covers`` bytes of the log, and has replaced the previous ranking in
``FOLDER/ranks``. This is an inlink folder of kind ``ranks`` with the array ``rank`` float32[pages] (PageRank: x of
:mod:`inlink.reranking.live`, not normalised; HITS: authorities of mean 1). PageRank with ``use_scores`` also has
the array ``scores`` float32[pages], the scores of pages that it was computed with. With ``expected`` it has the array
``expected`` float32[pages] (:mod:`inlink.reranking.expected`), with ``sections`` the array ``sections``
float32[pages] (:mod:`inlink.reranking.sections`). With the factor by distrust it has the array
``distrust`` float32[hosts] (:mod:`inlink.factors.distrust`). With the factor by spam mass, and trusted pages, it has
the array ``trusted_share`` float32[hosts] (:mod:`inlink.factors.mass`). Its header also has ``covers``, ``algorithm``,
``damping``, ``tol``, ``max_iter``, ``lambda``, ``error``, ``converged``, ``use_scores``, ``scored``, ``trust``,
``distrust`` (the checksum of the list), ``trusted_share``, ``scores``, ``expected`` and ``sections`` (each 0 or 1),
``inflow``, ``rank_error`` (a bound on the sum of the differences between the published ranks and exact PageRank),
``cross_domain_only``, and ``crawl``, the uuid of the crawl. ``before`` names the ranking that the computation started
from, by the byte that it covers and the checksum of its values. ``anew`` tells whether it started from these values, or
went on in memory. The process writes no other files in the folder.

The process ends as soon as its standard input closes, so it cannot outlive the crawl that started it. An error is one
line ``{"error": "…"}`` and exit code 2. The process starts from the ranking in the folder.
"""

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inlink.base.arrays import Float32Array, Float64Array
from inlink.base.decoding import decoded
from inlink.base.folder import Folder, building
from inlink.base.memory import give_way
from inlink.errors import FolderError, InlinkError, InputError, ParameterError
from inlink.factors.host import RankedCrawl
from inlink.factors.table import HOST_FACTORS, host_factors
from inlink.factors.trust import trusted_pages
from inlink.reranking.expected import expected_ranks
from inlink.reranking.kernels.push import LEAST_SCORE
from inlink.reranking.live import GrowingHits, GrowingPageRank
from inlink.reranking.sections import SeedSections
from inlink.reranking.soundness import ROUNDED, is_foreign
from inlink.store.reader import crawl_folder, known_pages
from inlink.store.received import Inflow

NAME, KIND, VERSION = "ranks", "ranks", 1
ALGORITHMS = ("pagerank", "hits")

_IN_HEADER = ("algorithm", "damping", "tol", "max_iter", "use_scores", "cross_domain_only")
"""The options that the header of a ranking holds under their own names."""


class RankingOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options of the ranking process.

    Attributes
    ----------
    algorithm : {"pagerank", "hits"}
    damping : float
        Of PageRank.
    tol : float
        PageRank: the relative L1 error. HITS: the change in the last round.
    max_iter : int
        Maximum number of rounds of HITS.
    use_scores, cross_domain_only : bool
        Mix content scores in; leave out links within one host.
    trust : bool
        Teleport to the crawl's trusted pages only.
    factors : sequence of str
        The settings of the factors whose shares are published too: see :data:`inlink.factors.table.HOST_FACTORS`.
    expected : bool
        Publish the ranks that pages can expect too.
    sections : bool
        Publish the divisors of the sections of seeds too, if there are any.
    shard : bool
        Add what the links of other shards give to pages.
    share : float
        Maximum share of one processor.
    """

    algorithm: str = "pagerank"
    damping: float = 0.85
    tol: float = 1e-4
    max_iter: int = 100
    use_scores: bool = False
    cross_domain_only: bool = False
    trust: bool = False
    factors: Sequence[str] = ()
    expected: bool = False
    sections: bool = False
    shard: bool = False
    share: float = 1.0


class Ranker:
    """Ranks the crawl in a folder each time it is asked.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    settings : RankingOptions
    ended : threading.Event
        Once this is set, the work stops at the next slice.

    Raises
    ------
    inlink.errors.InlinkError
        If the folder holds no crawl, or a setting is outside its range.
    """

    def __init__(self, folder: Path, settings: RankingOptions, ended: threading.Event) -> None:
        if settings.algorithm not in ALGORITHMS:
            raise ParameterError(
                f"algorithm must be one of {', '.join(ALGORITHMS)}; got {settings.algorithm!r}"
            )
        if not 0 < settings.share <= 1:
            raise ParameterError(f"share must be in (0, 1]; got {settings.share!r}")
        self.folder, self.settings = folder, settings
        # It is no method, because the rankings below hold it, and a cycle would keep the crawl in memory.
        self._between = _Rests(settings.share, ended)
        # Only these settings need the pages' hosts.
        self.pages = known_pages(folder, with_urls=settings.cross_domain_only or bool(settings.factors))
        self._crawl = crawl_folder(folder).header.uuid
        start, self._before = published(folder)
        self._anew = True
        self.ranking: GrowingPageRank | GrowingHits
        # PageRank with equal teleports, once a factor asks for it.
        self._uniform: GrowingPageRank | None = None
        self._trusted = trusted_pages(self.pages) if settings.trust else None
        self._factors = host_factors(self.pages, settings.factors, self._trusted)
        self._sections = SeedSections(self.pages) if settings.sections else None
        self._inflow = Inflow(self.pages) if settings.shard and settings.algorithm == "pagerank" else None
        if settings.algorithm == "pagerank":
            self.ranking = GrowingPageRank(
                settings.damping,
                settings.tol,
                least=LEAST_SCORE if self._trusted is None else 0.0,
                start=start,
                between=self._between,
            )
        else:
            self.ranking = GrowingHits(settings.tol, settings.max_iter, start=start, between=self._between)

    def rank(self) -> dict[str, Any]:
        """Take in the new events, publish a new ranking, and return a summary."""
        began = time.perf_counter()
        known, settings = self.pages, self.settings
        known.refresh()
        covers, count = known.frames.end, known.num_pages
        pages, places = known.crawled()
        scores = known.scores[:count] if settings.use_scores else None
        if self._trusted is not None:
            scores = np.zeros(count, np.float32)
            scores[self._trusted.pages] = self._trusted.weights
        hosts = known.hosts[:count] if settings.cross_domain_only else None
        self._between.begin()
        links = count, known.frames.log, pages, places
        inflow = None if self._inflow is None else self._inflow.values()
        if isinstance(self.ranking, GrowingPageRank):
            update = self.ranking.update(*links, scores, hosts, inflow)
        else:
            update = self.ranking.update(*links, scores, hosts)
        values, damping = self.ranking.values, settings.damping

        def uniform_ranks() -> Float64Array:
            if self._uniform is None:
                self._uniform = GrowingPageRank(damping, settings.tol, between=self._between)
            self._uniform.update(*links, None, hosts)
            return self._uniform.values

        with building(self.folder / NAME, KIND, VERSION) as writer:
            header = writer.header
            # One array after the other, so that each can leave memory before the next one.
            writer.write("rank", values, np.float32)
            ranked = RankedCrawl(values, damping, settings.cross_domain_only, uniform_ranks, self._between)
            for factor in self._factors:
                writer.write(factor.name, factor.compute(ranked))
            if settings.expected:
                expected = expected_ranks(
                    *links, values[pages], hosts, damping=damping, between=self._between
                )
                writer.write("expected", expected, np.float32)
            # The crawl needs the scores that the ranks were computed with.
            by_scores = scores if self._trusted is None and settings.algorithm == "pagerank" else None
            if by_scores is not None:
                writer.write("scores", by_scores)
            sections = None
            if self._sections is not None:
                sections = self._sections.update(pages, places, self._between)
            if sections is not None:
                writer.write("sections", sections)
            header.meta = {
                "crawl": self._crawl,
                "covers": covers,
                **{name: getattr(settings, name) for name in _IN_HEADER},
                "lambda": update.eigenvalue,
                "error": update.error,
                "converged": update.converged,
                "scored": update.scored,
                "trust": 0 if self._trusted is None else self._trusted.place + 1,
                **{kind.name: 0 for kind in HOST_FACTORS},
                **{factor.name: factor.identity for factor in self._factors},
                "scores": int(by_scores is not None),
                "expected": int(settings.expected),
                "sections": int(sections is not None),
                "inflow": 0.0 if inflow is None else float(inflow.sum()) / (1 - damping),
                "rank_error": _rank_error(update.error, float(values.sum()), damping),
                "before": self._before,
                "anew": self._anew,
            }
        self._before, self._anew = (covers, header.files["rank"].crc32), False
        return {
            "covers": covers,
            "pages": count,
            "seconds": round(time.perf_counter() - began, 6),
            "sweeps": round(update.sweeps, 4),
        }


def _rank_error(error: float, mass: float, damping: float) -> float | None:
    """Return a bound on ‖x* − x‖₁ of published ranks with the sum ``mass``. None if ``error`` is too large.

    ``error`` is E / s, where E bounds ‖x* − x‖₁ before ranks are rounded, and s ≤ ‖x*‖₁ ≤ ‖x‖₁ + E.
    """
    if not error <= 0.5:
        return None
    return (error / (1 - error) + ROUNDED / (1 - damping)) * mass


class _Rests:
    """Sleeps between two slices of work, so that only a share of a processor is used."""

    def __init__(self, share: float, ended: threading.Event) -> None:
        self._share, self._ended = share, ended
        self.begin()

    def begin(self) -> None:
        """Count the work from now on."""
        self._used = time.process_time()

    def __call__(self) -> None:
        """Sleep for the work since the last call; raise if standard input was closed."""
        used = time.process_time() - self._used
        if self._ended.wait(used * (1 / self._share - 1)):
            raise _EndedError
        self.begin()


class _EndedError(Exception):
    """Standard input or output was closed."""


def published(folder: Path) -> tuple[Float32Array | None, tuple[int, int] | None]:
    """The ranking in the crawl's folder, float32[…], and its identity: the byte that it covers, and its checksum.

    Both are None if there is no ranking, or it is damaged or of another crawl.
    """
    try:
        ranks = Folder(folder / NAME, KIND, VERSION)
        ranks.verify()
        identity = int(ranks.header.meta["covers"]), ranks.header.files["rank"].crc32
        if is_foreign(ranks.header.meta, folder):
            return None, None
        return np.array(ranks.array("rank"), np.float32), identity
    except (FolderError, KeyError, TypeError, ValueError):
        return None, None


def _listen(lines: "queue.SimpleQueue[str | None]", ended: threading.Event) -> None:
    """Pass on the lines of standard input until it closes.

    Standard input is read by its descriptor, because an interpreter aborts if it ends while a thread holds the lock of
    ``sys.stdin``.
    """
    rest = b""
    while block := os.read(0, 1 << 12):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            lines.put(line.decode("utf-8", "replace").strip())
    ended.set()
    lines.put(None)


def _tell(answer: dict[str, Any]) -> None:
    try:
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Text that is still in the buffer must not reach the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise _EndedError from None


def _serve(folder: str, options: str = "{}") -> None:
    try:
        settings = decoded(options, RankingOptions)
    except msgspec.MsgspecError as error:
        raise ParameterError(f"the options of the ranking process cannot be used: {error}") from None
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    ended = threading.Event()
    threading.Thread(target=_listen, args=(lines, ended), daemon=True).start()
    ranker = Ranker(Path(folder), settings, ended)
    ready = 0
    while (line := lines.get()) is not None and not ended.is_set():
        if line != "rank":
            raise InputError(f"the ranking process has only the command rank; got {line[:80]!r}")
        answer = ranker.rank()
        ready += 1
        _tell({"ready": ready} | answer)


def main(arguments: list[str]) -> int:
    """Serve until standard input closes; return the exit code, which is 0, or 2 after an error."""
    # Ctrl-C is meant for the crawl, whose end closes standard input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    give_way()
    try:
        _serve(*arguments)
    except _EndedError:
        return 0
    except InlinkError as error:
        return _fail(str(error))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}")
    except MemoryError:
        return _fail("not enough memory to rank this crawl")
    return 0


def _fail(message: str) -> int:
    with contextlib.suppress(_EndedError):
        _tell({"error": " ".join(message.split())})
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
