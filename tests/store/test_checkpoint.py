"""A crawl that opens from a checkpoint is the crawl that is folded from its log, now and later."""

import errno
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import (
    crawl_some,
    crawl_with_checkpoint,
    everything,
    from_checkpoint,
    inside,
    keep,
    shown,
    without,
)
from crawlstrategies import Clock, differences, histories, opened, perform
from inlink.base.folder import Folder
from inlink.crawl import checkpointing
from inlink.crawl.checkpointing import save_from_log
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.frontier.policies import POLICIES, Policy
from inlink.store import checkpoint
from inlink.store.backup import backup
from inlink.store.checkpoint import CHECKPOINT, VERSION
from inlink.store.kernels.touched import touched
from inlink.store.log import EVENTS, URLS

CHOICES = st.fixed_dictionaries(
    {"policy": st.sampled_from(sorted(POLICIES))},
    optional={
        "use_scores": st.just(True),
        "cross_domain_only": st.just(True),
        "revisit": st.sampled_from(
            [
                {"schedule": "FixedInterval", "seconds": 60.0},
                {
                    "schedule": "ByValue",
                    "budget": 40_000.0,
                    "initial": 60.0,
                    "shortest": 5.0,
                    "longest": 400.0,
                },
            ]
        ),
        "lease_seconds": st.just(20.0),
        "politeness": st.just({"by": "domain", "delay": 1.0, "domain_budget": 6}),
    },
)
MOMENTS = st.booleans()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(CHOICES, histories(12), histories(12), histories(6), MOMENTS, MOMENTS, MOMENTS)
def test_a_crawl_from_a_checkpoint_is_the_crawl_from_the_log(
    chosen, before, between, after, ranked, ranked_later, by_reader
):
    with tempfile.TemporaryDirectory() as room:
        folder, clock, leases = Path(room) / "crawl", Clock(), []
        with opened(folder, clock, **chosen) as crawl:
            for done in before:
                perform(crawl, clock, leases, done)
            if ranked:
                crawl.rerank(wait=True)
            crawl.desk.hello("spider")
            if by_reader:
                ends = tuple((folder / name).stat().st_size for name in (URLS, EVENTS))
                assert save_from_log(folder) == ends
            else:
                keep(crawl)
            for done in between:
                perform(crawl, clock, leases, done)
            if ranked_later:
                crawl.rerank(wait=True)
        copy = without(folder, Path(room) / "folded")
        clock.now += 1.0
        with Crawl(folder, clock=clock) as one, Crawl(copy, clock=clock) as other:
            assert from_checkpoint(one)
            assert not from_checkpoint(other)
            assert not differences(everything(one), everything(other))
            mine, theirs, start = list(leases), list(leases), clock.now
            for done in after:
                perform(one, clock, mine, done)
            now = everything(one)
            clock.now = start
            for done in after:
                perform(other, clock, theirs, done)
            assert not differences(now, everything(other))
            assert mine == theirs


@pytest.fixture
def kept(tmp_path):
    return crawl_with_checkpoint(tmp_path / "crawl")


def test_the_pages_of_events_are_those_that_the_events_name(kept):
    with Crawl(kept, clock=Clock()) as crawl:
        leases = crawl.next(6)
        crawl.failed(leases[0], "it broke", status=404)
        crawl.release(leases[1])
        crawl.crawled(leases[2], ["http://new.com/"], redirected_to="http://other.com/")
        crawl.reload("failed", "gone", "excluded")
    log = look(kept, Clock()).events(0)
    named = set()
    for event in log:
        named |= {event.page} - {None}
        named |= {*event.pages.tolist(), *range(event.first, event.first + event.new)}
    assert set(touched(log.frames).tolist()) == named
    assert len(touched(log.frames[:0])) == 0


@pytest.mark.parametrize("name", ["header.json", "slots.bin", "policy_cash.bin", "queue_keys.bin"])
def test_a_changed_file_is_refused_and_the_log_is_folded(kept, name, caplog):
    used, before = shown(kept)
    assert used
    path = next((kept / CHECKPOINT).rglob(name))
    raw = path.read_bytes()
    caplog.set_level(logging.INFO)
    for place in {0, len(raw) // 2, len(raw) - 1}:
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 4]) + raw[place + 1 :])
        caplog.clear()
        assert shown(kept) == (False, before)
        (line,) = caplog.messages
        assert line.startswith(f"not used: {kept / CHECKPOINT}")
        assert line.endswith("All events are folded, which takes longer")


@pytest.mark.parametrize("name", ["urls.txt", "events.log"])
def test_damage_before_the_checkpoint_is_refused_as_ever(kept, name):
    path = kept / name
    raw = path.read_bytes()
    path.write_bytes(raw[:200] + bytes([raw[200] ^ 4]) + raw[201:])
    with pytest.raises(Exception, match=rf"{name} is damaged at byte .*nothing was changed"):
        Crawl(kept)


def test_a_copy_a_longer_checkpoint_and_another_version_are_not_used(kept, tmp_path, monkeypatch):
    before = shown(kept)
    shutil.copytree(kept, tmp_path / "copy")
    assert shown(tmp_path / "copy") == (False, before[1])
    backup(kept, tmp_path / "backup")
    assert not (tmp_path / "backup" / CHECKPOINT).exists()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "code", lambda: "another")
        assert shown(kept) == (False, before[1])
    assert shown(kept) == before
    with Crawl(tmp_path / "short", policy="opic") as crawl:
        crawl.seed(["http://a.com/"])
    for name in ("header.json", "urls.txt", "events.log", "end.bin"):
        # The checkpoint stays; the log is that of another crawl, and shorter.
        shutil.copy(tmp_path / "short" / name, kept / name)
    used, (order, *_) = shown(kept)
    assert not used
    assert len(order) == 1


@pytest.mark.slow
def test_other_settings_fold_the_policy_anew(kept, tmp_path):
    copy = without(kept, tmp_path / "folded")
    for policy in ("pagerank", "opic"):
        with (
            Crawl(kept, policy=policy, clock=Clock()) as one,
            Crawl(copy, policy=policy, clock=Clock()) as other,
        ):
            assert from_checkpoint(one)
            assert not differences(everything(one), everything(other))


class Own(Policy):
    """A policy of a user's own, with a state that inlink does not know."""

    def __init__(self, pages, values):
        super().__init__(pages, values)
        self.seen = 0

    def fold(self, events):
        self.seen += sum(1 for _ in events)

    def priority(self, pages):
        return np.full(len(pages), self.seen, np.float32)


def test_a_policy_of_ones_own_folds_all_events(tmp_path):
    clock = Clock()
    with opened(tmp_path / "crawl", clock, policy=Own) as crawl:
        crawl_some(crawl)
        keep(crawl)
    front = look(tmp_path / "crawl", clock, Own)
    assert front.pages.checkpoint is not None
    assert front.policy.seen == sum(1 for _ in front.events(0))


@pytest.mark.slow
def test_a_checkpoint_is_written_at_the_end_and_again_when_the_log_has_grown(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointing, "LEAST_BYTES", 4096)
    uuids = []
    for _ in range(3):
        with opened(tmp_path / "crawl", Clock(), rerank_share=None) as crawl:
            if len(uuids) < 2:
                crawl_some(crawl, 100 * len(uuids))
        uuids.append(Folder(tmp_path / "crawl" / CHECKPOINT, CHECKPOINT, VERSION).header.uuid)
    assert uuids[0] != uuids[1] == uuids[2]


def test_a_small_crawl_has_none(tmp_path):
    with opened(tmp_path / "crawl", Clock(), rerank_share=None) as crawl:
        crawl_some(crawl)
    assert not (tmp_path / "crawl" / CHECKPOINT).exists()


def test_a_full_disk_keeps_the_checkpoint_from_before(kept, monkeypatch, caplog):
    before = shown(kept)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Crawl(kept, clock=Clock()) as crawl:
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "_write", full)
            keep(crawl)
        crawl.seed(["http://later.com/"])
    (line,) = caplog.messages
    assert "cannot write a checkpoint" in line
    assert "the next opening of this crawl takes longer" in line
    assert not list(kept.glob(".*"))
    used, (order, *_) = shown(kept)
    assert used
    assert len(order) == len(before[1][0]) + 1


KILLED = """
import os, signal, sys
from inlink.crawl.checkpointing import save
from inlink.crawl.crawl import Crawl
from inlink.store import checkpoint
crawl = Crawl(sys.argv[1], clock=lambda: 1_000_000.0)
crawl.seed(["http://later.com/"])
left, write = int(sys.argv[2]), checkpoint._write
def some(*given):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    write(*given)
checkpoint._write = some
save(crawl._frontier, crawl._journal.log)
"""


@pytest.mark.slow
@pytest.mark.parametrize("files", [0, 20])
def test_a_kill_while_a_checkpoint_is_written_keeps_the_one_from_before(kept, files):
    before = shown(kept)
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(kept), str(files)], env=os.environ, check=False, timeout=300
    )
    assert ended.returncode == -signal.SIGKILL
    used, (order, *_) = shown(kept)
    assert used
    assert len(order) == len(before[1][0]) + 1
    with Crawl(kept, clock=Clock()) as crawl:
        keep(crawl)
    assert not list(kept.glob(".*"))
    assert shown(kept)[0]


# -- nothing is forgotten ---------------------------------------------------------------------------------------------

FROM_SETTINGS = {
    "settings",
    "policy",
    "revisit_rules",
    "_values",
    "pages",
    "year",
    "folder",
    "hash_seed",
    "started",
    "with_urls",
}
DERIVED = {
    # Restored from events, leases and dates at each opening.
    "Frontier": {
        "copies",
        "host_factors",
        "queue",
        "hosts",
        "leases",
        "lost",
        "sessions",
        "paused",
        "last_event",
        "plans",
        "never",
        "_held",
        "_revisits",
        "later",
        "is_ours",
    }
    | {"ranking_fault", "ranked_up_to", "adopted", "trusted_at"},
    # Views of arrays, files, and the counts of hosts, which are made when they are asked for.
    "Pages": {
        "salt",
        "synced",
        "checkpoint",
        "frames",
        "table",
        "addresses",
        "hosts",
        "host_pages",
        "host_waiting",
        "host_crawled",
        "merged",
        "canonicals",
        "given",
    },
    "UrlTable": {
        # Rooms for work, and what may be read again.
        "_links",
        "_most_hosts",
        "_read",
        "_table",
        "_slots_table",
        "_checkpoint",
        "_mapped",
        "indexed",
        "index_at",
        "_urls_check",
        "_larger",
        "_moved",
    },
    "PageRank": {"damping", "rest", "cross_only", "scores", "least", "trusts", "prior", "host_factors"},
    "Hits": {"damping", "rest", "cross_only", "scores", "least", "trusts", "prior", "host_factors"},
    "Opic": set(),
}


@pytest.mark.parametrize("policy", ["pagerank", "hits", "opic"])
def test_each_attribute_is_kept_or_known_to_be_restored_otherwise(tmp_path, policy):
    """Whoever adds state must add it to the checkpoint, or name it above."""
    with opened(tmp_path / "crawl", Clock(), policy=policy) as crawl:
        front = inside(crawl)
        pages = front.pages
        names = {name for name, _ in pages.parts()} | set(pages.small_parts())
        for owner, own in (
            (front, {"traps", "values"}),
            (pages, names),
            (pages.table, {name for name, _ in pages.table.parts()} | {"tally"}),
            (front.policy, {*front.policy.columns, *front.policy.numbers}),
        ):
            state = {name for name, value in vars(owner).items() if not callable(value)}
            missing = state - own - FROM_SETTINGS - DERIVED[type(owner).__name__]
            assert not missing, type(owner).__name__
