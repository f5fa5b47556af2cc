"""The frontier's part of a checkpoint: trap codes, the policy's columns, and the queue.

All of these are functions of the events up to the checkpoint's extent. Dates, leases, budgets and sessions depend on
the time too. They are restored from the log at each opening, which takes time in proportion to their number.

A part is left out, or not used, if the events alone do not give it: the columns of a user's own policy, those of a
policy that mixes in content scores (a ranking is adopted with the scores of that moment), those of a stored ranking,
and all with the setting ``sink_duplicates``, whose factors are renewed now and then. Then the policy folds all events,
and all waiting pages get new keys.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from inlink.base.arrays import Float32Array, UInt32Array, distinct, slices
from inlink.base.folder import Folder, Header
from inlink.errors import FolderError
from inlink.frontier.queue import Queue
from inlink.store.checkpoint import Checkpoint, StatePart
from inlink.store.format import DISCOVERED
from inlink.store.kernels.fold import waiting
from inlink.store.kernels.touched import touched
from inlink.store.log import RANKS
from inlink.store.prior import PRIOR

if TYPE_CHECKING:
    from inlink.frontier.frontier import Frontier


_AT_A_TIME = 1 << 16
"""Number of pages whose keys are computed at a time, so that they stay in the processor's caches."""


def _waiting_pages(frontier: "Frontier") -> Iterator[tuple[UInt32Array, Float32Array]]:
    """The pages that were discovered and neither handed out nor failed, some at a time: uint32[k], increasing; keys."""
    pages = frontier.pages
    for block in slices(pages.num_pages, _AT_A_TIME):
        out = np.empty(block.stop - block.start, np.uint32)
        found = out[: waiting(pages.states[block], pages.errors[block], out)] + np.uint32(block.start)
        yield found, frontier.keys(found)


def parts(frontier: "Frontier") -> Iterator[StatePart]:
    """The arrays of the frontier's part, by name."""
    known, policy = frontier.pages.num_pages, frontier.policy
    yield "traps", [frontier.traps[:known]]
    if _is_kept(frontier):
        for name in policy.columns or ():
            yield f"policy_{name}", [getattr(policy, name)[:known]]
        yield from _filled(frontier).parts(known)
    if (values := frontier.values) is not None:
        yield from values.parts()


def small_parts(frontier: "Frontier") -> dict[str, Any]:
    """The numbers of the frontier's part."""
    policy = frontier.policy
    return {
        "year": frontier.year,
        "slots": frontier.queue.num_slots,
        "policy": _circumstances(frontier, frontier.adopted) if _is_kept(frontier) else None,
        "ranked_up_to": frontier.ranked_up_to,
        "numbers": {name: getattr(policy, name) for name in policy.numbers},
        # A user's own policy is not imported where a checkpoint is written, so that its ranking is not known there.
        "values": frontier.values.numbers()
        if frontier.values is not None and policy.name == frontier.settings.policy
        else None,
    }


def _is_kept(frontier: "Frontier") -> bool:
    # Factors of near-duplicates are renewed now and then, so no keys of them are kept.
    return frontier.copies is None and frontier.is_ours and frontier.policy.columns is not None


def _circumstances(frontier: "Frontier", ranking: Header | None) -> dict[str, Any]:
    """Return everything besides the events that the policy's columns and the keys depend on."""
    settings = frontier.settings
    prior = settings.prior is not None and frontier.policy.takes_prior
    return {
        "name": frontier.policy.name,
        # Checkpoints of earlier versions have fewer columns.
        "columns": list(frontier.policy.columns or ()),
        "year": frontier.year,
        "use_scores": settings.use_scores,
        "cross_domain_only": settings.cross_domain_only,
        "damping": settings.damping,
        "by": settings.politeness.by,
        "trust": frontier.trusted_at,
        "prior": _uuid(_header(frontier, PRIOR)) if prior else None,
        "host_factors": [[factor.name, factor.identity] for factor in frontier.host_factors],
        "ranking": _uuid(ranking),
    }


def _header(frontier: "Frontier", name: str) -> Header | None:
    """Read the header of a folder inside the crawl's folder; return None if this folder is missing."""
    try:
        return Folder(frontier.pages.folder / name, name, 1).header
    except FolderError:
        return None


def _uuid(header: Header | None) -> str | None:
    return None if header is None else header.uuid


def _filled(frontier: "Frontier") -> Queue:
    """A queue of the waiting pages only, with their present keys, as at the opening of a crawl."""
    live, pages, policy = frontier.queue, frontier.pages, frontier.policy
    queue = Queue(pages.hosts, live.politeness, newest=policy.newest, sharing=policy.sharing)
    if queue.by_domain:
        queue.waiting.slot_of[: pages.tally.hosts] = live.waiting.slot_of[: pages.tally.hosts]
    queue.add_slots(live.num_slots)
    queue.fill(pages.num_pages, _waiting_pages(frontier), 0.0)
    return queue


# -- opening ----------------------------------------------------------------------------------------------------------


def restore_traps(frontier: "Frontier") -> int:
    """Take in the trap codes of a checkpoint; return the number of the first page without a code, a multiple of 32.

    Codes depend on the present year.
    """
    checkpoint = frontier.pages.checkpoint
    if checkpoint is None or checkpoint.meta["year"] != frontier.year:
        return 0
    known = checkpoint.extent.pages
    checkpoint.fill([("traps", [frontier.traps[:known]])])
    return known >> 5 << 5


def restore_policy(frontier: "Frontier") -> Checkpoint | None:
    """Take in the columns of the policy and fold later events; return the checkpoint if it holds them.

    It does not if anything differs that the columns depend on. A newer ranking replaces them anyway.
    """
    checkpoint, policy = frontier.pages.checkpoint, frontier.policy
    if checkpoint is None or not _is_kept(frontier):
        return None
    ranking = None if policy.algorithm is None else _header(frontier, RANKS)
    if checkpoint.meta["policy"] != _circumstances(frontier, ranking):
        return None
    if frontier.host_factors and ranking is not None:
        try:
            ranks = Folder(frontier.pages.folder / RANKS, RANKS, 1)
            ranks.verify()
            for factor in frontier.host_factors:
                factor.adopt(factor.read(ranks))
        except FolderError:
            return None
    known = checkpoint.extent.pages
    checkpoint.fill([(f"policy_{name}", [getattr(policy, name)[:known]]) for name in policy.columns or ()])
    for name, value in checkpoint.meta["numbers"].items():
        setattr(policy, name, value)
    frontier.ranked_up_to, frontier.adopted = checkpoint.meta["ranked_up_to"], ranking
    policy.fold(frontier.events(checkpoint.extent.events_end))
    return checkpoint


def restore_values(frontier: "Frontier") -> None:
    """Restore the values of pages for revisits: from a checkpoint and later events, or from all events."""
    values, checkpoint = frontier.values, frontier.pages.checkpoint
    assert values is not None
    kept = None if checkpoint is None else checkpoint.meta.get("values")
    if values.ranks is None:
        values.ranks = frontier.published_ranks()
    if kept is None or kept.get("plan") != values.plan():
        checkpoint = None
    values.restore(checkpoint, values.ranks)


def restore_queue(frontier: "Frontier", checkpoint: Checkpoint | None, now: float) -> None:
    """Fill the queue with all waiting pages.

    From a checkpoint, its lists and trees are taken in. Then the pages of later events are placed or removed.
    """
    pages, queue = frontier.pages, frontier.queue
    if checkpoint is None:
        queue.fill(pages.num_pages, _waiting_pages(frontier), now)
        return
    queue.restore(checkpoint, checkpoint.extent.pages, checkpoint.meta["slots"])
    later = distinct(touched(frontier.events(checkpoint.extent.events_end).frames))
    waits = (pages.states[later] == DISCOVERED) & (pages.errors[later] == 0)
    for page in later[~waits].tolist():
        queue.remove(page, now)
    wait = later[waits]
    queue.place(
        wait,
        frontier.policy.priority(wait),
        frontier.traps,
        pages.states,
        pages.errors,
        now,
        all_of_them=True,
    )
    queue.settle_all(now)
