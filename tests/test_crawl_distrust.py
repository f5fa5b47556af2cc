"""Distrust in a crawl: hosts that lead to a list of bad hosts are fetched last."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import inlink
from crawlstrategies import EAGER
from inlink.crawl.checkpointing import save
from inlink.crawl.view import CrawlView
from inlink.errors import FolderError, InputError, ParameterError
from inlink.frontier.distrust import EVEN
from inlink.frontier.parts import combined
from strategies import Arcs, arcs

DAMPING = 0.85


@pytest.fixture
def bad(tmp_path):
    file = tmp_path / "bad.txt"
    file.write_text("spam.example\n")
    return file


def crawl_of(tmp_path, **given):
    polite = {
        "policy": "pagerank",
        "politeness": EAGER,
        "rerank_share": None,
        "clock": inlink.VirtualClock(),
        **given,
    }
    return inlink.Crawl(tmp_path / "c", **polite)


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


def test_a_checkpoint_without_distrust_is_not_the_order_with_it(tmp_path, bad):
    with crawl_of(tmp_path) as crawl:
        fill(crawl)
        crawl.rerank(wait=True)
        save(crawl._frontier, crawl._core.journal.log)
    for distrust in (bad, None, bad):
        with crawl_of(tmp_path, distrust=distrust) as crawl:
            assert crawl._pages.checkpoint is not None
            crawl.rerank(wait=True)
            assert (order(crawl)[0] == "good") == (distrust is not None)
            for row in crawl.view.order(50).rows:
                assert combined(crawl.why(row.url).parts) == pytest.approx(row.priority, rel=1e-5)
            save(crawl._frontier, crawl._core.journal.log)


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
            factor = crawl._frontier.policy.distrust.factor(np.array([host], np.uint32))[0]
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


def test_a_list_that_cannot_be_used_is_refused(tmp_path, bad):
    with pytest.raises(ParameterError, match="`distrust` does not apply to policy 'opic': choose pagerank"):
        crawl_of(tmp_path, policy="opic", distrust=bad)
    bad.write_text("\n")
    with pytest.raises(InputError, match="distrust"):
        crawl_of(tmp_path, distrust=bad)
    with pytest.raises(InputError, match="none"):
        crawl_of(tmp_path, distrust=tmp_path / "none.txt")
    assert not (tmp_path / "c").exists()


def test_a_damaged_list_names_the_remedy(tmp_path, bad):
    crawl_of(tmp_path, distrust=bad).close()
    next((tmp_path / "c" / "distrust").rglob("places.bin")).write_bytes(b"")
    with pytest.raises(FolderError, match="give distrust=FILE again, or distrust=None"):
        crawl_of(tmp_path)
    crawl_of(tmp_path, distrust=bad).close()
