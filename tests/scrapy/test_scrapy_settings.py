"""Settings: each reaches the crawl, as a value or as a command line's text, and each mistake is told in one line."""

import re
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from inlink.base.settings import NO_LIMIT
from inlink.crawl.crawl import Crawl
from inlink.crawl.settings import choose
from inlink.errors import InlinkError, ParameterError
from inlink.frontier.revisit import ByValue, FixedInterval
from inlink.scrapy.settings import crawl_settings, spider_settings
from inlink.urls.canonical import UrlRules
from sites import Site, html
from spiderruns import Ran, Walker, crawl


def opened(folder: Any, **given: Any) -> Any:
    """The settings that a crawl ends up with."""
    where, arguments = crawl_settings(Settings({"INLINK_CRAWL": str(folder), **given}))
    with Crawl(where, **arguments) as one:
        return one


# Numbers go through all doors in tests/crawl/test_settings.py.
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(
    ("name", "value"), [("POLICY", "opic"), ("USE_SCORES", True), ("RERANK_SHARE", None)]
)
def test_each_kind_of_value(name, value, text):
    given = {"INLINK_CRAWL": "c", f"INLINK_{name}": str(value) if text else value}
    found = crawl_settings(Settings(given))[1][name.lower()]
    assert (found, type(found)) == (value, type(value))


def test_scrapys_own_settings_become_those_of_the_crawl():
    found = crawl_settings(
        Settings(
            {"INLINK_CRAWL": "c", "DOWNLOAD_DELAY": 3, "CONCURRENT_REQUESTS_PER_DOMAIN": 5, "RETRY_TIMES": 9}
        )
    )[1]
    assert (found["politeness"], found["max_retries"]) == ({"delay": 3.0, "in_flight": 10}, 9)
    assert found["retry_seconds"] == 2.0


@pytest.mark.parametrize("text", [False, True])
def test_structured_settings(tmp_path, text):
    given: dict[str, Any] = {
        "INLINK_POLITENESS": {"by": "domain", "delay": 0.5, "host_budget": 7},
        "INLINK_RULES": {"deny": ["[.]jpg$"], "max_depth": 3},
        "INLINK_URL_RULES": {"sort_query": True, "drop_parameters": ["utm_*"]},
        "INLINK_REVISIT": {"schedule": "FixedInterval", "seconds": 5.0},
    }
    if text:
        given = {name: str(value).replace("'", '"').replace("True", "true") for name, value in given.items()}
    found = opened(tmp_path / "c", CONCURRENT_REQUESTS_PER_DOMAIN=4, **given)
    polite = found.settings.politeness
    assert (polite.by, polite.delay, polite.host_budget, polite.in_flight) == ("domain", 0.5, 7, 8)
    assert (found.settings.rules.deny, found.settings.rules.max_depth) == (("[.]jpg$",), 3)
    assert found.settings.url_rules == UrlRules(sort_query=True, drop_parameters=("utm_*",))
    assert found.settings.revisit == FixedInterval(5.0)


def test_objects_are_taken_as_they_are():
    rules, schedule = UrlRules(sort_query=True), ByValue(budget=9.0)
    given = {
        "INLINK_CRAWL": "c",
        "INLINK_URL_RULES": rules,
        "INLINK_REVISIT": schedule,
        "INLINK_POLICY": None,
    }
    found = crawl_settings(Settings(given))[1]
    assert found["url_rules"] is rules
    assert found["revisit"] is schedule
    assert "policy" not in found


def test_the_longest_wait_follows_from_delay_and_revisits():
    def wait(**given: Any) -> float | None:
        settings = Settings({"INLINK_CRAWL": "c", **given})
        where, arguments = crawl_settings(settings)
        return spider_settings(settings, choose(Path(where), arguments).settings).max_wait

    revisit = {"INLINK_REVISIT": FixedInterval(9.0)}
    assert wait() == 60.0
    assert wait(INLINK_POLITENESS={"delay": 50.0}) == 100.0
    assert wait(INLINK_POLITENESS={"delay": 50.0}, INLINK_MAX_WAIT=7) == 7.0
    assert wait(INLINK_MAX_WAIT="1.5") == wait(INLINK_MAX_WAIT=1.5, **revisit) == 1.5
    assert wait(INLINK_MAX_WAIT="None") is wait(INLINK_MAX_WAIT=None) is wait(**revisit) is None
    for bad in ("-1", "nan", "soon", [1]):
        with pytest.raises(ParameterError, match="INLINK_MAX_WAIT"):
            wait(INLINK_MAX_WAIT=bad)


def test_aduanas_names(tmp_path):
    found = opened(
        tmp_path / "c",
        INLINK_CRAWL=None,
        PAGE_DB_PATH=str(tmp_path / "db"),
        SCORER="aduana.HitsScorer",
        USE_SCORES="True",
        SOFT_CRAWL_LIMIT="0.5",
        HARD_CRAWL_LIMIT=2.0,
        MAX_CRAWL_DEPTH=4,
        PAGE_RANK_DAMPING="0.7",
        SCORE_UPDATE_INTERVAL=60,
    )
    settings, polite = found.settings, found.settings.politeness
    assert found.folder == tmp_path / "db"
    assert (settings.policy, settings.use_scores, settings.cross_domain_only) == ("hits", True, True)
    assert (polite.soft_rate, polite.hard_rate, polite.in_flight) == (0.5, 2.0, NO_LIMIT)
    assert (settings.damping, settings.rerank_seconds, settings.rules.max_depth) == (0.7, 60.0, 3)
    ours = opened(tmp_path / "e", SCORER="HitsScorer", INLINK_POLICY="opic").settings
    assert ours.policy == "opic"  # inlink's own names go before


MISTAKES = [
    ({"INLINK_CRAWL": None}, "INLINK_CRAWL is not set: name a folder"),
    ({"INLINK_CRAWL": ""}, "INLINK_CRAWL is not set"),
    ({"INLINK_POLICYY": 1}, "INLINK_POLICYY is not a setting of inlink"),
    ({"INLINK_SCORER": "HitsScorer"}, "INLINK_SCORER is not a setting of inlink"),
    ({"INLINK_POLICY": "best"}, "INLINK_POLICY must be 'host-diverse', "),
    ({"INLINK_USE_SCORES": "perhaps"}, "INLINK_USE_SCORES must be True or False; got 'perhaps'"),
    (
        {"INLINK_POLITENESS": {"dely": 1}},
        "INLINK_POLITENESS: no setting is called 'dely'; did you mean delay?",
    ),
    ({"INLINK_POLITENESS": '{"delay": '}, "INLINK_POLITENESS cannot be read as JSON"),
    ({"INLINK_POLITENESS": 1.0}, "INLINK_POLITENESS must be a Politeness, or a dict of its fields; got 1.0"),
    (
        {"INLINK_URL_RULES": {"sort_query": "maybe"}},
        "INLINK_URL_RULES.sort_query must be True or False; got 'maybe'",
    ),
    ({"INLINK_REVISIT": "weekly"}, "INLINK_REVISIT must be a Schedule, or a dict of its fields"),
    ({"SCORER": "NoSuchScorer"}, "SCORER must be None or HitsScorer"),
]


@pytest.mark.parametrize(("given", "told"), MISTAKES, ids=[str(given) for given, _ in MISTAKES])
def test_mistakes(tmp_path, given, told):
    with pytest.raises(InlinkError) as caught:
        opened(**{"folder": tmp_path / "c", **given})
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def refused(folder: Any, **given: Any) -> str:
    """A refused spider logs one line, and ends in good order."""
    with Site({"/": html()}) as site:
        ran: Ran = crawl(Walker, folder, site, **given)
        assert not site.asked
    assert ran.reason == "inlink_refused"
    assert not [one for one in ran.logs if one.trace or one.level == "CRITICAL"]
    errors = [one for one in ran.logs if one.level in ("ERROR", "WARNING")]
    assert len(errors) == 1, errors
    assert "\n" not in errors[0].message
    return errors[0].message


def test_refusals(tmp_path):
    assert "INLINK_POLICYY is not a setting" in refused(tmp_path / "c", INLINK_POLICYY="opic")
    assert "INLINK_CRAWL is not set" in refused(tmp_path / "c", INLINK_CRAWL=...)
    assert "INLINK_SEEDS" in refused(tmp_path / "c", INLINK_SEEDS=str(tmp_path / "none.txt"))
    assert "cannot import 'no.such'" in refused(tmp_path / "c", INLINK_CONTENT_SCORER="no.such")
    (tmp_path / "file").write_text("something")
    assert "is a file" in refused(tmp_path / "file")
    assert "cannot be written" in refused(tmp_path / "file" / "c")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "header.json").mkdir()
    assert "header.json" in refused(tmp_path / "mine")
    with Crawl(tmp_path / "held"):
        assert "by process" in refused(tmp_path / "held")


def test_content_scorer_from_a_command_line(tmp_path):
    with Site({"/": html("/good", text="postgres"), "/good": html(text="postgres postgres")}) as site:
        ran = crawl(Walker, tmp_path / "c", site, INLINK_CONTENT_SCORER='{"keywords": ["postgres"]}')
    assert all(page.score > 0 for page in ran.pages.values())


def test_max_wait_ends_a_crawl(tmp_path):
    """Pages that are not due for a long time end the run, and wait for the next run."""
    from sites import Answer

    left = [Answer("", 503, {"Retry-After": "3600"})]
    with Site({"/": html("/later"), "/later": lambda _: left.pop() if left else html()}) as site:
        ran = crawl(Walker, tmp_path / "c", site, INLINK_MAX_WAIT="30")
        assert ran.reason == "finished"
        assert ran.states == {"/": "crawled", "/later": "discovered"}
        (said,) = [line for line in ran.told("INFO") if "no page is due" in line]
        assert re.fullmatch(
            r"no page is due within 30 s \(INLINK_MAX_WAIT\); "
            r"1 page is left for later: 127\.0\.0\.1 1 \(in 3,\d{3} s\)",
            said,
        )
        ran = crawl(Walker, tmp_path / "d", site, INLINK_MAX_WAIT=0)
    assert ran.crawled == {"/", "/later"}
