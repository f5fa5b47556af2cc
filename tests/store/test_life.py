"""The life of a page: the kernel that folds the log, and the crawls that write it, move pages as the table says."""

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from crawlstrategies import Clock, histories, opened, perform
from inlink.store import format as kinds
from inlink.store import log as logs
from inlink.store.format import HEAD_SIZE, KINDS, STATES, Head, dtype_of, struct_of
from inlink.store.kernels.fold import fold
from inlink.store.life import BACK, MOVES, Move
from storefolders import empty_pages, folder

PAGE = 3
"""The page that moves in the tests of the kernel. Page 0 is the target of merges."""

LISTED = {
    kinds.LEASE: (kinds.LeaseRecord, np.dtype([("page", "<u4")])),
    kinds.RELEASE: (None, dtype_of(kinds.ReleasedRecord)),
    kinds.LOST: (None, dtype_of(kinds.LostRecord)),
    kinds.RELOAD: (None, np.dtype([("page", "<u4")])),
    kinds.EXCLUDE: (kinds.ExcludedRecord, np.dtype([("page", "<u4")])),
}
"""The record before the list, and the dtype of the list, of the events that move all pages that they list."""


def move_of(kind: int, flags: int, over: bool) -> Move | None:
    for move in MOVES:
        if (move.kind, move.over) == (kind, over) and flags & move.flags == move.flags:
            return move
    return None


def payload(kind: int, over: bool = False) -> tuple[int, bytes]:
    """The length of the list, and the payload of an event about PAGE."""
    if kind in LISTED:
        before, dtype = LISTED[kind]
        record = np.zeros(1, dtype)
        record["page"] = PAGE
        if kind == kinds.LOST:
            record["over"] = over
        return 1, bytes(0 if before is None else struct_of(before).size) + record.tobytes()
    if kind == kinds.VISIT:
        return 0, struct_of(kinds.VisitRecord).pack(1.0, 1, 0, 0, 0, 0, 0)
    if kind == kinds.MERGE:
        return 1, b"\0"
    return 0, struct.pack("<d", 0.0)


def counted(words: str, failures: int, losses: int, visited: bool) -> tuple[int, int]:
    """The numbers of failures and losses after an event, by the words of the table."""
    numbers = {"failures": failures, "losses": losses}
    for part in filter(None, words.split(", ")):
        effect, _, condition = part.partition(" without ")
        assert condition in ("", "a visit")
        if condition and visited:
            continue
        if effect.endswith(" + 1"):
            numbers[effect.removesuffix(" + 1")] += 1
        else:
            *names, zero = effect.split(" = ")
            assert zero == "0"
            numbers |= dict.fromkeys(names, 0)
    return numbers["failures"], numbers["losses"]


EVENTS = [(move.kind, move.flags, move.over) for move in MOVES[1:]]
EVENTS += [(kinds.FAILED, kinds.IS_GONE | kinds.RETRIED, False)]
EVENTS += [(kind, 0, False) for kind in range(1, len(KINDS)) if not any(move.kind == kind for move in MOVES)]


@pytest.mark.slow
@pytest.mark.parametrize("visited", [False, True])
@pytest.mark.parametrize("state", range(len(STATES)))
def test_the_fold_moves_a_page_as_the_table_says(state, visited):
    for kind, flags, over in EVENTS:
        with empty_pages() as pages, folder() as place:
            log = logs.Log(place)

            def append(kind: int, page: int = PAGE, **fields) -> None:
                frame = log.append(kind, 1.0, page, **fields)[1]  # noqa: B023
                fold(pages.addresses, np.frombuffer(frame, np.uint8))

            _, new, text = pages.table.number([f"http://a.com/{page}" for page in range(PAGE + 1)])
            append(kinds.SEED, kinds.NO_PAGE, new=new, urls=text)
            assert pages.states[PAGE] == MOVES[0].target == kinds.DISCOVERED
            if visited:
                listed, raw = payload(kinds.VISIT)
                append(kinds.VISIT, listed=listed, payload=raw)
            before = int(pages.states[PAGE])
            pages.states[PAGE], pages.errors[PAGE], pages.losses[PAGE] = state, 2, 1
            pages.state_counts[before] -= np.uint64(1)
            pages.state_counts[state] += np.uint64(1)
            listed, raw = payload(kind, over)
            append(kind, flags=flags, listed=listed, payload=raw)
            log.close()
            move = move_of(kind, flags, over)
            target, words = (state, "") if move is None else (move.target, move.counters)
            if target == BACK:
                target = kinds.CRAWLED if visited else kinds.DISCOVERED
            assert pages.states[PAGE] == target, (KINDS[kind], flags)
            numbers = int(pages.errors[PAGE]), int(pages.losses[PAGE])
            assert numbers == counted(words, 2, 1, visited), (KINDS[kind], flags)
            expected = np.bincount([kinds.DISCOVERED] * PAGE + [target], minlength=len(STATES))
            assert pages.state_counts.tolist() == expected.tolist()


def moves_in(place: Path) -> Iterator[tuple[Move, int, int, bool]]:
    """All moves in the log of a crawl: row of the table, state before and after, and whether there was a visit."""
    raw = np.fromfile(place / logs.EVENTS, np.uint8)
    with empty_pages() as pages:
        at = 0
        while at < len(raw):
            head = Head._make(struct_of(Head).unpack_from(raw, at))
            frame = raw[at : at + head.length]
            named, overs = [head.page], [False]
            if head.kind in LISTED:
                record, dtype = LISTED[head.kind]
                begin = HEAD_SIZE + (0 if record is None else struct_of(record).size)
                if head.kind == kinds.EXCLUDE:
                    begin += kinds.ExcludedRecord._make(
                        struct_of(kinds.ExcludedRecord).unpack_from(frame, HEAD_SIZE)
                    ).reason_size
                rows = np.frombuffer(frame[begin:].tobytes(), dtype, head.listed)
                named = rows["page"].tolist()
                overs = rows["over"].tolist() if head.kind == kinds.LOST else [0] * len(rows)
            elif head.kind not in (kinds.VISIT, kinds.FAILED, kinds.MERGE):
                named, overs = [], []
            known = head.first + head.new
            before = pages.states[:known].copy()
            visited = [bool(pages.answers[page] and pages.visits[pages.answers[page]]) for page in named]
            fold(pages.addresses, frame)
            still = np.setdiff1d(np.arange(known), named)
            assert pages.states[still].tolist() == before[still].tolist()
            for page, over, has_visit in zip(named, overs, visited, strict=True):
                move = move_of(head.kind, head.flags, bool(over))
                assert move is not None
                yield move, int(before[page]), int(pages.states[page]), has_visit
            at += head.length


def check_moves(place: Path) -> set[str]:
    """Compare the moves in a log with the table; return the events that it has."""
    events = set()
    for move, before, after, visited in moves_in(place):
        assert before in move.sources, f"{move.event}: a page was {STATES[before]}"
        waits = kinds.CRAWLED if visited else kinds.DISCOVERED
        assert after == (waits if move.target == BACK else move.target), move.event
        events.add(move.event)
    return events


@given(histories(40))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_crawls_move_pages_only_from_the_states_in_the_table(history):
    with tempfile.TemporaryDirectory() as place:
        clock, leases = Clock(), []
        with opened(Path(place) / "c", clock, lease_seconds=60, max_losses=2) as crawl:
            for done in history:
                perform(crawl, clock, leases, done)
        check_moves(Path(place) / "c")


def test_a_crawl_with_all_events_of_the_table(tmp_path):
    clock = Clock()
    with opened(tmp_path, clock, lease_seconds=60, max_losses=2, max_retries=1, retry_seconds=1) as crawl:
        crawl.seed([f"http://a.com/{page}" for page in range(9)])
        one, two, three, four, five, six, seven, *rest = crawl.next(9)
        crawl.crawled(one, ["/new"])
        crawl.failed(two, "gone", status=404)
        crawl.failed(three, "broken", status=500)
        crawl.exclude(four, "robots.txt")
        crawl.redirected(five, "http://a.com/target")
        crawl.redirected(six, two.url, again=True)
        crawl.release(seven)
        for _ in range(4):
            # All other leases expire twice, and the page that broke fails twice.
            clock.now += 2000
            for lease in crawl.next(9):
                if lease.url == three.url:
                    crawl.failed(lease, "broken", status=500)
        crawl.change_settings(rules={"deny": ["private"]})
        crawl.seed(["http://b.com/private"])
        assert crawl.reload("failed", "gone", "excluded") > 1
    assert rest
    assert check_moves(tmp_path) == {move.event for move in MOVES[1:]}
