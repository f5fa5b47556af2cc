"""What a visit gives at once to the pages that it links to, read straight from the log's frames."""

import numpy as np
import numpy.typing as npt

from inlink.base.jit import U0, U1, kernel
from inlink.store.kernels.frames import (
    MERGE,
    NO_PAGE,
    SEED,
    VISIT,
    link_count,
    links_at,
    u32_at,
)

__all__ = ["give_hub_weight", "give_shares", "hand_over_cash"]

U8A = npt.NDArray[np.uint8]
U32A = npt.NDArray[np.uint32]
F32A = npt.NDArray[np.float32]

_16 = np.uint64(16)
_28 = np.uint64(28)
SMALL = 1e-6


@kernel
def _room(frames: U8A) -> np.uint64:
    """The length of the longest list in the frames."""
    most, place, stop = U0, U0, np.uint64(len(frames))
    while place < stop:
        kind = frames[place + _28]
        if kind == VISIT or kind == MERGE or kind == SEED:
            most = max(most, link_count(frames, place))
        place += u32_at(frames, place)
    return most


@kernel
def give_shares(
    frames: U8A,
    hosts: U32A,
    scores: F32A,
    shares: F32A,
    damping: float,
    by_score: bool,
    cross_only: bool,
) -> None:
    """For each visit of page u with k links: shares[link] += damping · rank[u] / k. A merged page has one link."""
    links = np.empty(_room(frames), np.uint32)
    place, stop = U0, np.uint64(len(frames))
    while place < stop:
        kind = frames[place + _28]
        if kind == VISIT or kind == MERGE:
            page = u32_at(frames, place + _16)
            count = links_at(frames, place, links)
            if count > U0:
                counted = count
                if cross_only and kind == VISIT:
                    counted = U0
                    for i in range(U0, count):
                        if hosts[links[i]] != hosts[page]:
                            counted += U1
                value = 1.0
                if by_score:
                    value = max(np.float64(scores[page]), 0.0) + SMALL
                rank = np.float64(shares[page]) + (1.0 - damping) * value
                if counted > U0:
                    share = np.float32(damping * rank / np.float64(counted))
                    for i in range(U0, count):
                        if not cross_only or kind == MERGE or hosts[links[i]] != hosts[page]:
                            shares[links[i]] += share
        place += u32_at(frames, place)


@kernel
def give_hub_weight(
    frames: U8A,
    hosts: U32A,
    scores: F32A,
    authorities: F32A,
    factor: float,
    by_score: bool,
    cross_only: bool,
) -> None:
    """For each visit of page u: authorities[link] += factor · Σ_links r·a, or 1 while ``factor`` is 0."""
    links = np.empty(_room(frames), np.uint32)
    place, stop = U0, np.uint64(len(frames))
    while place < stop:
        kind = frames[place + _28]
        if kind == VISIT or kind == MERGE:
            page = u32_at(frames, place + _16)
            count = links_at(frames, place, links)
            if kind == MERGE:
                authorities[links[U0]] += authorities[page]
            elif count > U0:
                weight = 1.0
                if factor > 0:
                    weight = 0.0
                    for i in range(U0, count):
                        value = 1.0
                        if by_score:
                            value = max(np.float64(scores[links[i]]), 0.0)
                        weight += factor * value * np.float64(authorities[links[i]])
                for i in range(U0, count):
                    if not cross_only or hosts[links[i]] != hosts[page]:
                        authorities[links[i]] += np.float32(weight)
        place += u32_at(frames, place)


@kernel
def hand_over_cash(frames: U8A, cash: F32A) -> None:
    """Seeds get 1 each; a visit's page hands what it has to its links, a merged page to its survivor."""
    links = np.empty(_room(frames), np.uint32)
    place, stop = U0, np.uint64(len(frames))
    while place < stop:
        kind = frames[place + _28]
        if kind == VISIT or kind == MERGE or kind == SEED:
            page = np.uint32(u32_at(frames, place + _16))
            count = links_at(frames, place, links)
            if kind == SEED:
                for i in range(U0, count):
                    cash[links[i]] += np.float32(1)
            elif count > U0 and page != NO_PAGE:
                has = cash[page]
                cash[page] = 0
                share = has / np.float32(count)
                for i in range(U0, count):
                    cash[links[i]] += share
        place += u32_at(frames, place)
