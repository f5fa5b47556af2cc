"""What holds for each factor of hosts, distrust and spam mass alike."""

from typing import NamedTuple

import numpy as np
import pytest

from crawlstrategies import frontier_in
from factorcrawls import (
    UNSOUND,
    crawl_of,
    damage,
    keep_checkpoint,
    published,
    rows,
    shares_of_process,
)
from inlink.crawl.asof import as_of
from inlink.crawl.view import CrawlView
from inlink.factors.parts import combined

GOOD, FARM, SPAM = "http://good.example/", "http://farm.example/", "http://spam.example/"


class Factor(NamedTuple):
    """A factor: the name of its shares, the settings that it needs, and those that turn it on and off."""

    shares: str
    needed: dict[str, object]
    on: dict[str, object]
    off: dict[str, object]


@pytest.fixture(params=["distrust", "spam_mass"])
def factor(request, tmp_path):
    trust, bad = tmp_path / "trust.txt", tmp_path / "bad.txt"
    trust.write_text(f"{GOOD}\t2\n")
    bad.write_text("spam.example\n")
    if request.param == "distrust":
        return Factor("distrust", {}, {"distrust": bad}, {"distrust": None})
    return Factor("trusted_share", {"trust": trust}, {"spam_mass": True}, {"spam_mass": False})


def fill(crawl):
    """A trusted host that links to a farm once; a page of the farm leads to spam."""
    crawl.seed([GOOD, *(f"{FARM}{k}" for k in range(1, 5))])
    crawl.crawled(GOOD, [*(f"{GOOD}{k}" for k in range(1, 20)), FARM])
    crawl.crawled(f"{FARM}1", [SPAM, FARM])
    crawl.rerank(wait=True)


@pytest.mark.slow
def test_a_checkpoint_without_the_factor_is_not_the_order_with_it(tmp_path, factor):
    with crawl_of(tmp_path, **factor.needed) as crawl:
        fill(crawl)
        keep_checkpoint(crawl, "live")
    for chosen in (factor.on, factor.off, factor.on):
        with crawl_of(tmp_path, **chosen) as crawl:
            assert frontier_in(crawl).pages.checkpoint is not None
            crawl.rerank(wait=True)
            order = dict(rows(crawl.view))
            assert (order[FARM] < 0.5 * order[f"{GOOD}1"]) == (chosen is factor.on)
            for url, priority in order.items():
                assert combined(crawl.why(url).parts) == pytest.approx(priority, rel=1e-5)
            keep_checkpoint(crawl, "live")


@pytest.mark.parametrize("how", ["missing", *UNSOUND])
def test_published_shares_that_cannot_be_used_are_refused(tmp_path, factor, caplog, how):
    with crawl_of(tmp_path, **factor.needed, **factor.on) as crawl:
        fill(crawl)
        before = rows(crawl.view)
    damage(tmp_path, factor.shares, how)
    with crawl_of(tmp_path) as crawl:
        fault = f"has no {factor.shares}" if how == "missing" else "is not a share for each host"
        assert fault in caplog.text
        assert frontier_in(crawl).ranked_up_to == 0
        assert not any("farm.example" in part.name for part in crawl.why(FARM).parts)
        crawl.rerank(wait=True)
        assert dict(rows(crawl.view)) == pytest.approx(dict(before), rel=1e-5)


@pytest.mark.slow
def test_the_ranking_process_computes_the_shares(tmp_path, factor):
    with crawl_of(tmp_path, **factor.needed, **factor.on) as crawl:
        fill(crawl)
        here = np.array(published(tmp_path).array(factor.shares)).tolist()
        chosen = {"trust": "trust" in factor.needed, "factors": list(factor.on)}
        assert shares_of_process(tmp_path, factor.shares, **chosen) == here
        identity = frontier_in(crawl).host_factors[0].identity
    assert published(tmp_path).header.meta[factor.shares] == identity > 0


def test_the_order_of_an_earlier_moment_has_its_shares(tmp_path, factor):
    with crawl_of(tmp_path, **factor.needed, **factor.on) as crawl:
        fill(crawl)
        moment, before = crawl.view.info().events, rows(crawl.view)
        crawl.crawled(f"{GOOD}1", [SPAM, FARM, f"{FARM}2", "http://late.example/"])
        crawl.rerank(wait=True)
        assert rows(crawl.view) != before
    with as_of(tmp_path / "c", moment, tmp_path) as then:
        assert rows(CrawlView.open(then.folder)) == before
        assert then.approximate == ""
