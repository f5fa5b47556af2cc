"""Distrust in a crawl: hosts that lead to a list of bad hosts are fetched last."""

import errno
import gzip
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import inlink
from crawlstrategies import frontier_in
from factorcrawls import (
    DAMPING,
    crawl_of,
    die,
    keep_checkpoint,
    order_at_death,
    rows,
)
from inlink.crawl.view import CrawlView
from inlink.errors import FolderError, InputError, OutputError, ParameterError
from inlink.factors.distrust import EVEN
from inlink.factors.parts import combined
from strategies import Arcs, arcs


@pytest.fixture
def bad(tmp_path):
    file = tmp_path / "bad.txt"
    file.write_text("spam.example\n")
    return file


def fill(crawl):
    """A farm that links to spam and to itself, and a good host that links to the farm once."""
    crawl.seed(["http://good.example/", "http://farm.example/"])
    crawl.crawled(
        "http://good.example/", [f"http://good.example/{k}" for k in range(9)] + ["http://farm.example/"]
    )
    crawl.crawled(
        "http://farm.example/", ["http://spam.example/", "http://farm.example/1", "http://farm.example/2"]
    )
    crawl.crawled(
        "http://farm.example/1", ["http://spam.example/", "http://farm.example/", "http://farm.example/3"]
    )


def order(crawl) -> list[str]:
    return [row.url.removeprefix("http://").partition(".")[0] for row in crawl.view.order(50).rows]


@pytest.mark.parametrize("policy", ["pagerank", "host-diverse"])
def test_pages_of_hosts_that_lead_to_spam_come_last(tmp_path, bad, policy):
    with crawl_of(tmp_path, policy=policy) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
        assert order(crawl)[0] in ("spam", "farm")
    with crawl_of(tmp_path, policy=policy, distrust=bad) as crawl:
        crawl.rerank(wait=True)
        assert order(crawl) == ["good"] * 9 + ["farm"] * 2 + ["spam"]


def test_why_names_the_distrust_and_its_parts_give_the_priority(tmp_path, bad):
    with crawl_of(tmp_path, distrust=bad) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
        for url in ("http://farm.example/2", "http://spam.example/", "http://good.example/1"):
            why = crawl.why(url)
            assert combined(why.parts) == pytest.approx(why.priority, rel=1e-5)
        # The front page and page 1 link to each other: d = c/3 · (1 + d) for both.
        each = (DAMPING / 3) / (1 - DAMPING / 3)
        part = crawl.why("http://farm.example/2").parts[-1]
        assert part.name == f"distrust {each:.3g} of farm.example, whose pages lead to listed hosts"
        assert part.value == pytest.approx(1 / (1 + (each / EVEN) ** 2), rel=0.02)
        assert crawl.why("http://spam.example/").parts[-1].name == "spam.example is listed in `distrust`"


@given(arcs(min_nodes=1, max_nodes=10))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_distrust_is_the_chance_of_arriving_at_a_listed_host(tmp_path_factory, web: Arcs):
    """Each node is a page of host node % 3; host 0 is listed. All pages but the last are fetched."""
    folder = tmp_path_factory.mktemp("crawl")
    (folder / "bad.txt").write_text("h0.example\n")
    links, size = web.dense(), web.num_nodes
    with crawl_of(folder, distrust=folder / "bad.txt") as crawl:
        crawl.seed([f"http://h{node % 3}.example/{node}" for node in range(size)])
        for node in range(size - 1):
            targets = np.flatnonzero(links[node]).tolist()
            crawl.crawled(
                f"http://h{node % 3}.example/{node}", [f"http://h{k % 3}.example/{k}" for k in targets]
            )
        crawl.rerank(wait=True)
        links[size - 1] = 0
        walk = links / np.maximum(links.sum(axis=1), 1)[:, None]
        listed = np.arange(size) % 3 == 0
        walk[listed] = 0
        chance = np.linalg.solve(np.eye(size) - DAMPING * walk, listed.astype(float))
        for host in range(min(size, 3)):
            fetched = [node for node in range(size - 1) if node % 3 == host]
            distrust = 1.0 if host == 0 else chance[fetched].mean() if fetched else 0.0
            factor = frontier_in(crawl).policy.host_factors[0].factor(np.array([host], np.uint32))[0]
            assert 1 / (1 + (distrust / EVEN) ** 2) == pytest.approx(factor, abs=0.05)


def test_the_list_is_kept_until_it_is_ended(tmp_path, bad):
    with crawl_of(tmp_path, distrust=bad) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
        before = order(crawl)
    bad.unlink()
    with crawl_of(tmp_path) as crawl:
        assert order(crawl) == before
    assert [row.url for row in CrawlView.open(tmp_path / "c").order(12).rows][-1] == "http://spam.example/"
    with crawl_of(tmp_path, distrust=None) as crawl:
        assert order(crawl)[-1] == "good"


def fetch(crawl, count):
    """Fetch pages of a good host, and of a farm that leads to spam."""
    for _ in range(count):
        (lease,) = crawl.next(1)
        host, number = lease.url.removeprefix("http://").split("/")
        links = [f"/{2 * len(number) + k}{number[:2]}" for k in range(3)] + ["http://good.example/"]
        if host == "farm.example":
            links += ["http://spam.example/", "http://late.spam.example/"]
        elif number in ("", "31"):
            links += ["http://farm.example/", "http://late.example/"]
        crawl.crawled(lease, links)


def crawl_until_killed(folder, policy, checkpoint):
    """Crawl, print the order of waiting pages, and kill this process."""
    crawl = crawl_of(Path(folder), policy=policy, distrust=Path(folder) / "bad.txt")
    crawl.seed(["http://good.example/", "http://farm.example/"])
    fetch(crawl, 8)
    crawl.rerank(wait=True)
    keep_checkpoint(crawl, checkpoint)
    fetch(crawl, 6)
    die(crawl)


# `test_crawl_spam_mass.py` has the other pairs.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "checkpoint"),
    [
        ("host-diverse", "none"),
        ("pagerank", "live"),
        pytest.param("host-diverse", "log", marks=pytest.mark.soak),
    ],
)
def test_a_crawl_that_was_killed_has_the_same_order_again(tmp_path, bad, policy, checkpoint):
    """Pages that were crawled after the ranking do not change the distrust, neither before the end nor after it."""
    before = order_at_death("test_crawl_distrust", str(tmp_path), policy, checkpoint)
    assert rows(CrawlView.open(tmp_path / "c")) == before
    with inlink.Crawl(tmp_path / "c", clock=inlink.VirtualClock()) as crawl:
        assert (frontier_in(crawl).pages.checkpoint is not None) == (checkpoint != "none")
        assert rows(crawl.view) == before
        assert any("whose pages lead to listed hosts" in str(crawl.why(url)) for url, _ in before)
        crawl.rerank(wait=True)
        assert rows(crawl.view) != before


def test_another_list_counts_at_once_and_its_distrust_with_the_next_ranking(tmp_path, bad):
    with crawl_of(tmp_path, distrust=bad) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
    bad.write_text("good.example\n")
    with crawl_of(tmp_path, distrust=bad) as crawl:
        assert frontier_in(crawl).ranked_up_to > 0
        assert order(crawl)[-9:] == ["good"] * 9
        assert "distrust" not in str(crawl.why("http://farm.example/2"))
        assert crawl.next(1)
        assert not frontier_in(crawl).host_factors[0].published
    with crawl_of(tmp_path, distrust=bad, rerank_share=0.1) as crawl:
        crawl.next(1)
        assert frontier_in(crawl).host_factors[0].published


def test_a_list_that_cannot_be_used_is_refused(tmp_path, bad):
    with pytest.raises(ParameterError, match="`distrust` does not apply to policy 'opic': choose pagerank"):
        crawl_of(tmp_path, policy="opic", distrust=bad)
    bad.write_text("\n")
    with pytest.raises(InputError, match="distrust"):
        crawl_of(tmp_path, distrust=bad)
    with pytest.raises(InputError, match="none"):
        crawl_of(tmp_path, distrust=tmp_path / "none.txt")
    assert not (tmp_path / "c").exists()


def test_a_full_disk_keeps_the_list_from_before(tmp_path, bad, monkeypatch):
    """It is full in the middle of the copy of the list that is replaced."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with crawl_of(tmp_path, distrust=bad) as crawl:
        fill(crawl)
        before = rows(crawl.view)
    other = tmp_path / "other"
    other.write_text("other.example\n")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", full)
        with pytest.raises(OutputError, match="No space left"):
            crawl_of(tmp_path, distrust=other)
    with crawl_of(tmp_path) as crawl:
        assert rows(crawl.view) == before
    assert not list((tmp_path / "c").rglob(".*"))


def test_a_damaged_list_names_the_remedy(tmp_path, bad):
    crawl_of(tmp_path, distrust=bad).close()
    next((tmp_path / "c" / "distrust").rglob("places.bin")).write_bytes(b"")
    with pytest.raises(FolderError, match="give distrust=FILE again, or distrust=None"):
        crawl_of(tmp_path)
    crawl_of(tmp_path, distrust=bad).close()


@pytest.mark.parametrize("setting", ["trust", "distrust"])
@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (random.Random(1).randbytes(50_000), "is not a score"),
        (b"\0" * 1000, "name"),
        ("http://a.example/\n".encode("utf-16"), "is in UTF-16: convert it to UTF-8 first"),
        (gzip.compress(b"http://a.example/\n" * 999)[:-20], "compressed data cut or damaged"),
        (b"http://a.example/" + b"x" * 1_000_000, "value above 0|weight above 0"),
        (b"http://a.example/\t-3\n", r"must be in \[0, 1e30\]; got -3.0"),
        (b"http://a.example/\tinf\n", "'inf' is not a score"),
        (b"# inlink ranking \xff\xfe", "a weight above 0|damaged|line 1"),
    ],
    ids=["random", "zeros", "utf-16", "cut", "long", "negative", "infinite", "ranking"],
)
def test_hostile_lists_are_refused_in_one_short_line(tmp_path, setting, raw, said):
    (tmp_path / "list").write_bytes(raw)
    with pytest.raises(InputError, match=said) as refused:
        crawl_of(tmp_path, **{setting: tmp_path / "list"})
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600
    assert "prior" not in str(refused.value).replace(str(tmp_path), "")
    assert not (tmp_path / "c").exists()


def test_a_list_in_another_encoding_counts_as_far_as_it_can_be_read(tmp_path, caplog):
    (tmp_path / "list").write_bytes("http://b\xfccher.example/\nspam.example\n".encode("latin-1"))
    with crawl_of(tmp_path, distrust=tmp_path / "list") as crawl:
        crawl.seed(["http://spam.example/", "http://good.example/"])
        assert order(crawl) == ["good", "spam"]
    assert "distrust: " in caplog.text
    assert "ignored 1 line that names no host" in caplog.text
