"""The state of a crawl's folder: sizes, policy, writer, inbox, ranking."""

import fcntl
import os
from pathlib import Path

import msgspec

from inlink.base.decoding import converted
from inlink.base.folder import Folder
from inlink.crawl.permissions import Kept, kept
from inlink.crawl.settings import stored
from inlink.errors import FolderError
from inlink.reranking.soundness import ROUNDED
from inlink.store.inbox import pending
from inlink.store.log import LOCK, RANKS


class RankingInfo(msgspec.Struct, frozen=True):
    """The ranking that orders a crawl. ``behind`` is the number of bytes that the log has grown by since.

    ``error`` is a bound on the relative L1 error of PageRank as of the ranking. A shard has none. All shards together
    have none while pages, links or ranks are under way, or are newer than the last rankings.
    """

    algorithm: str | None
    pages: int
    behind: int
    error: float | None
    converged: bool | None


class _RankingMeta(msgspec.Struct):
    algorithm: str | None = None
    covers: int = 0
    damping: float = 0.0
    error: float | None = None
    converged: bool | None = None


class About(msgspec.Struct, frozen=True):
    """A crawl's folder.

    Parameters
    ----------
    bytes : dict of str to int
        Sizes of its files and folders.
    policy : str
    writer : str or None
        Process id of the writer, "unknown" if the id cannot be read, None if no process writes.
    inbox : int
        Number of requests that wait for the writer.
    ranking : RankingInfo or None
        None if there is none yet, or it cannot be read.
    addresses : Kept or None
        The addresses that `inlink crawl` may connect to, and whether this holds here; None if there are no rules.
    ranking_fault : str or None
        The reason why the ranking cannot be read.
    """

    bytes: dict[str, int]
    policy: str
    writer: str | None
    inbox: int
    ranking: RankingInfo | None
    addresses: Kept | None
    ranking_fault: str | None = None


def about(folder: Path, end: int) -> About:
    """Describe a crawl's folder. ``end`` is the number of bytes of the log that were read.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its settings cannot be read.
    """
    ranking, fault = _ranking(folder, end)
    settings = stored(folder)
    if ranking is not None and settings.rules is not None and settings.rules.part is not None:
        # The error is that of the links of this shard, and says nothing of those of other shards.
        ranking = msgspec.structs.replace(ranking, error=None)
    return About(
        _sizes(folder),
        settings.policy,
        writer_of(folder),
        len(pending(folder)),
        ranking,
        kept(folder),
        fault,
    )


def writer_of(folder: Path) -> str | None:
    """The process id of a crawl's writer: ``"unknown"`` if it cannot be read, None if no process writes."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(file)
    return None


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file and folder in the crawl's folder; files that disappear meanwhile are not counted."""
    sizes: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        try:
            size = path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
        if size:
            name = path.relative_to(folder).parts[0]
            sizes[name] = sizes.get(name, 0) + size
    return sizes


def _ranking(folder: Path, end: int) -> tuple[RankingInfo | None, str | None]:
    """Describe the ranking in a crawl's folder; return the reason too if it cannot be read."""
    if not (folder / RANKS).exists():
        return None, None
    try:
        header = Folder(folder / RANKS, RANKS, 1).header
        meta, pages = converted(header.meta, _RankingMeta), header.files["rank"].length
    except FolderError as error:
        return None, str(error)
    except (KeyError, msgspec.ValidationError) as error:
        return None, f"{folder / RANKS}/header.json is damaged ({error}): remove the folder {RANKS}"
    bound = meta.error
    if meta.algorithm == "pagerank" and bound is not None and meta.damping < 1:
        # The header has the bound before ranks are rounded.
        bound += ROUNDED / (1 - meta.damping)
    return RankingInfo(meta.algorithm, pages, max(end - meta.covers, 0), bound, meta.converged), None
