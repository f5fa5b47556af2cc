"""The rank that a visit passes on to the pages that it links to, read from the log's frames."""

import numpy as np
from numpy import float32, float64, uint32, uint64

from inlink.base.arrays import Float32Array, UInt8Array, UInt16Array, UInt32Array, UInt64Array
from inlink.base.jit import U0, U1, item_at, kernel
from inlink.reranking.kernels.push import worth
from inlink.store.format import MERGE, RECEIVED, SEED, VISIT
from inlink.store.kernels.frames import (
    FLOW,
    FLOW_SIZE,
    NO_PAGE,
    flows_at,
    head_at,
    is_first_visit,
    link_count,
    link_scores_at,
    links_at,
    lists,
)

__all__ = [
    "diverse_priorities",
    "estimates_given",
    "find_linkers",
    "give_estimates",
    "give_hub_weight",
    "give_shares",
    "hand_over_cash",
    "hub_weights_given",
    "pass_on",
    "scores_given",
    "shares_given",
]


@kernel
def diverse_priorities(
    pages: UInt32Array,
    shares: Float32Array,
    expected: Float32Array,
    rest: float32,
    depths: UInt16Array,
    sections: Float32Array,
    turn: float32,
) -> Float32Array:
    """(share + rest + expected rank) ÷ (1 + depth)^⅛ ÷ (1 + section) of pages, float32[n].

    Where the section is negative, ``turn`` is the second divisor. Roots, unlike powers, are rounded in the same way on
    all machines.
    """
    priorities = np.empty(uint64(len(pages)), float32)
    for i in range(U0, uint64(len(pages))):
        page = pages[i]
        divisor = np.sqrt(np.sqrt(np.sqrt(float32(1) + float32(depths[page]))))
        section = sections[page]
        divisor *= turn if section < float32(0) else float32(1) + section
        priorities[i] = (shares[page] + rest + expected[page]) / divisor
    return priorities


@kernel
def _room(frames: UInt8Array) -> uint64:
    """The length of the longest list in the frames."""
    most, place, stop = U0, U0, uint64(len(frames))
    while place < stop:
        head = head_at(frames, place)
        if head.kind == VISIT or head.kind == MERGE or head.kind == SEED:
            most = max(most, uint64(head.listed))
        place += uint64(head.length)
    return most


@kernel
def _share(
    links: UInt32Array,
    count: uint64,
    page: uint64,
    merged: bool,
    hosts: UInt32Array,
    scores: Float32Array,
    shares: Float32Array,
    damping: float,
    least: float,
    cross_only: bool,
) -> float32:
    """The rank that each link of a page passes on: damping · rank / number of links that count; 0 if none counts.

    ``scores`` and ``least`` define the teleport: see :func:`inlink.reranking.kernels.push.worth`.
    """
    counted = count
    if cross_only and not merged:
        counted = U0
        for i in range(U0, count):
            if hosts[links[i]] != hosts[page]:
                counted += U1
    if counted == U0:
        return float32(0)
    rank = float64(shares[page]) + (1.0 - damping) * worth(scores, page, least)
    return float32(damping * rank / float64(counted))


@kernel
def give_shares(
    frames: UInt8Array,
    hosts: UInt32Array,
    scores: Float32Array,
    shares: Float32Array,
    damping: float,
    least: float,
    cross_only: bool,
) -> None:
    """For each page u with k links: shares[link] += damping · rank[u] / k. A merged page has one link.

    What other shards give to a page is added too.

    Only the first visit of a page gives shares. Later ones would give them again, so that ranks in a cycle would grow
    without bound until the next ranking.
    """
    links = np.empty(_room(frames), uint32)
    place, stop = U0, uint64(len(frames))
    while place < stop:
        head = head_at(frames, place)
        kind = head.kind
        if kind == MERGE or (kind == VISIT and is_first_visit(frames, place)):
            page = uint64(head.page)
            count = links_at(frames, place, links)
            merged = kind == MERGE
            share = _share(links, count, page, merged, hosts, scores, shares, damping, least, cross_only)
            if share > 0:
                for i in range(U0, count):
                    if not cross_only or merged or hosts[links[i]] != hosts[page]:
                        shares[links[i]] += share
        elif kind == RECEIVED:
            count, begin = flows_at(frames, place)
            for i in range(U0, count):
                flow = item_at(frames, begin + i * FLOW_SIZE, FLOW)
                shares[flow.page] = max(shares[flow.page] + flow.amount, float32(0))
        place += uint64(head.length)


@kernel
def shares_given(
    log: UInt8Array,
    places: UInt64Array,
    target: uint64,
    hosts: UInt32Array,
    scores: Float32Array,
    shares: Float32Array,
    damping: float,
    least: float,
    cross_only: bool,
) -> Float32Array:
    """The rank that the visit at each place passes on to ``target``, one of its links, by :func:`give_shares`.

    It is 0 for a link that does not count.
    """
    result = np.zeros(uint64(len(places)), float32)
    for k in range(U0, uint64(len(places))):
        place = places[k]
        head = head_at(log, place)
        page = uint64(head.page)
        merged = head.kind == MERGE
        if not cross_only or merged or hosts[target] != hosts[page]:
            links = np.empty(link_count(log, place), uint32)
            count = links_at(log, place, links)
            result[k] = _share(links, count, page, merged, hosts, scores, shares, damping, least, cross_only)
    return result


@kernel
def _hub_weight(
    links: UInt32Array,
    count: uint64,
    page: uint64,
    hosts: UInt32Array,
    scores: Float32Array,
    authorities: Float32Array,
    factor: float,
    by_score: bool,
    cross_only: bool,
) -> float32:
    """The weight that each link of a page passes on: factor · Σ r·a over links that count; 1 while ``factor`` is 0."""
    if factor <= 0:
        return float32(1)
    weight = 0.0
    for i in range(U0, count):
        if not cross_only or hosts[links[i]] != hosts[page]:
            value = 1.0
            if by_score:
                value = max(float64(scores[links[i]]), 0.0)
            weight += factor * value * float64(authorities[links[i]])
    return float32(weight)


@kernel
def give_hub_weight(
    frames: UInt8Array,
    hosts: UInt32Array,
    scores: Float32Array,
    authorities: Float32Array,
    factor: float,
    by_score: bool,
    cross_only: bool,
) -> None:
    """For each first visit of a page u: authorities[link] += factor · Σ_links r·a, or 1 while ``factor`` is 0.

    A merged page gives its authority to its survivor.
    """
    links = np.empty(_room(frames), uint32)
    place, stop = U0, uint64(len(frames))
    while place < stop:
        head = head_at(frames, place)
        kind = head.kind
        if kind == MERGE or (kind == VISIT and is_first_visit(frames, place)):
            page = uint64(head.page)
            count = links_at(frames, place, links)
            if kind == MERGE:
                authorities[links[U0]] += authorities[page]
            elif count > U0:
                weight = _hub_weight(
                    links, count, page, hosts, scores, authorities, factor, by_score, cross_only
                )
                for i in range(U0, count):
                    if not cross_only or hosts[links[i]] != hosts[page]:
                        authorities[links[i]] += weight
        place += uint64(head.length)


@kernel
def hub_weights_given(
    log: UInt8Array,
    places: UInt64Array,
    target: uint64,
    hosts: UInt32Array,
    scores: Float32Array,
    authorities: Float32Array,
    factor: float,
    by_score: bool,
    cross_only: bool,
    ranked_up_to: uint64,
) -> Float32Array:
    """The weight that the visit at each place passes on to ``target``, by :func:`give_hub_weight`.

    In a ranking, a page that was merged before byte ``ranked_up_to`` is a hub with one link.
    """
    result = np.zeros(uint64(len(places)), float32)
    for k in range(U0, uint64(len(places))):
        place = places[k]
        head = head_at(log, place)
        page = uint64(head.page)
        merged = head.kind == MERGE
        if merged and (factor <= 0 or place >= ranked_up_to):
            result[k] = authorities[page]
        elif merged or not cross_only or hosts[target] != hosts[page]:
            links = np.empty(link_count(log, place), uint32)
            count = links_at(log, place, links)
            across = cross_only and not merged
            result[k] = _hub_weight(links, count, page, hosts, scores, authorities, factor, by_score, across)
    return result


@kernel
def _estimate(
    links: UInt32Array,
    count: uint64,
    page: uint64,
    merged: bool,
    hosts: UInt32Array,
    values: Float32Array,
    damping: float,
    cross_only: bool,
) -> float32:
    """The amount that each link of a page adds to an estimate: damping · value / number of links that count."""
    counted = count
    if cross_only and not merged:
        counted = U0
        for i in range(U0, count):
            if hosts[links[i]] != hosts[page]:
                counted += U1
    return float32(damping * float64(values[page]) / float64(counted)) if counted > U0 else float32(0)


@kernel
def give_estimates(
    frames: UInt8Array,
    hosts: UInt32Array,
    ranked: UInt8Array,
    values: Float32Array,
    damping: float,
    cross_only: bool,
) -> None:
    """For each page u with k links: values[link] += damping · values[u] / k, where ``ranked[link]`` is 0.

    Only the first visit of a page counts, and the event that merges it.
    """
    links = np.empty(_room(frames), uint32)
    place, stop = U0, uint64(len(frames))
    while place < stop:
        head = head_at(frames, place)
        kind = head.kind
        if kind == MERGE or (kind == VISIT and is_first_visit(frames, place)):
            page = uint64(head.page)
            count = links_at(frames, place, links)
            merged = kind == MERGE
            share = _estimate(links, count, page, merged, hosts, values, damping, cross_only)
            for i in range(U0, count):
                if ranked[links[i]] == 0 and (not cross_only or merged or hosts[links[i]] != hosts[page]):
                    values[links[i]] += share
        place += uint64(head.length)


@kernel
def estimates_given(
    log: UInt8Array,
    places: UInt64Array,
    target: uint64,
    hosts: UInt32Array,
    values: Float32Array,
    damping: float,
    cross_only: bool,
) -> Float32Array:
    """The amount that the visit at each place adds to the estimate of ``target``, by :func:`give_estimates`."""
    result = np.zeros(uint64(len(places)), float32)
    for k in range(U0, uint64(len(places))):
        place = places[k]
        head = head_at(log, place)
        page, merged = uint64(head.page), head.kind == MERGE
        if not cross_only or merged or hosts[target] != hosts[page]:
            links = np.empty(link_count(log, place), uint32)
            count = links_at(log, place, links)
            result[k] = _estimate(links, count, page, merged, hosts, values, damping, cross_only)
    return result


@kernel
def scores_given(log: UInt8Array, places: UInt64Array, target: uint64) -> Float32Array:
    """The score of the link to ``target`` in the visit at each place; 0 if the link has no score."""
    result = np.zeros(uint64(len(places)), float32)
    for k in range(U0, uint64(len(places))):
        links = np.empty(link_count(log, places[k]), uint32)
        scores = np.empty(link_count(log, places[k]), float32)
        if link_scores_at(log, places[k], scores):
            for i in range(U0, links_at(log, places[k], links)):
                if links[i] == target:
                    result[k] = scores[i]
    return result


@kernel
def find_linkers(
    log: UInt8Array,
    begin: uint64,
    stop: uint64,
    page: uint64,
    answers: UInt32Array,
    visits: UInt64Array,
    most_links: uint64,
    places: UInt64Array,
) -> tuple[uint64, uint64]:
    """Find latest visits, and merges, in log[begin:stop] that list a page.

    The search pauses when ``places`` is full or when ``most_links`` links were read. ``answers`` and ``visits`` are
    columns of :class:`inlink.store.pages.Pages`.

    Returns
    -------
    uint64
        The place of the first frame that was not searched.
    uint64
        The number of places that were written to ``places``.
    """
    place, num_links, read = begin, U0, U0
    while place < stop and num_links < uint64(len(places)) and read < most_links:
        head = head_at(log, place)
        kind = head.kind
        if kind == VISIT or kind == MERGE:
            listed, looked_at = lists(log, place, page)
            read += looked_at
            if listed and visits[answers[head.page]] == place + U1:
                places[num_links] = place
                num_links += U1
        read += U1
        place += uint64(head.length)
    return place, num_links


@kernel
def pass_on(frames: UInt8Array, values: Float32Array) -> None:
    """Give each new page the value of the page that made it known, or 0 if that is negative. New seeds get 0."""
    place, stop = U0, uint64(len(frames))
    while place < stop:
        head = head_at(frames, place)
        page, value = uint32(head.page), float32(0)
        if page != NO_PAGE:
            value = max(values[page], float32(0))
        for new in range(uint64(head.first), uint64(head.first) + uint64(head.new)):
            values[new] = value
        place += uint64(head.length)


@kernel
def hand_over_cash(frames: UInt8Array, cash: Float32Array) -> None:
    """Give each seed 1. A visited page divides its cash among its links; a merged page gives it to its survivor."""
    links = np.empty(_room(frames), uint32)
    place, stop = U0, uint64(len(frames))
    while place < stop:
        head = head_at(frames, place)
        kind = head.kind
        if kind == VISIT or kind == MERGE or kind == SEED:
            page = uint32(head.page)
            count = links_at(frames, place, links)
            if kind == SEED:
                for i in range(U0, count):
                    cash[links[i]] += float32(1)
            elif count > U0 and page != NO_PAGE:
                has = cash[page]
                cash[page] = 0
                share = has / float32(count)
                for i in range(U0, count):
                    cash[links[i]] += share
        place += uint64(head.length)
