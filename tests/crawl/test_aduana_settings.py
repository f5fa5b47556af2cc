"""Aduana's settings mean in inlink what they meant in Aduana."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink.base.settings import NO_LIMIT
from inlink.crawl.aduana import DEFAULTS, NAMES, crawl_arguments
from inlink.errors import ParameterError


class HitsScorer:
    """A stand-in for aduana.HitsScorer, which is given as a class."""


def test_nothing_set_gives_no_arguments():
    assert crawl_arguments({}) == {}
    assert crawl_arguments({"CONCURRENT_REQUESTS": 16}) == {}
    assert crawl_arguments(dict.fromkeys(set(NAMES) - {"SCORER"})) == {}


def test_aduanas_defaults_are_best_first_with_its_two_limits():
    arguments = crawl_arguments(DEFAULTS)
    assert arguments.keys() == {"policy", "politeness"}
    assert arguments["policy"] == "best-first"
    polite = arguments["politeness"]
    assert (polite.soft_rate, polite.hard_rate, polite.rate_window) == (0.25, 100.0, 0.1)
    assert (polite.by, polite.delay, polite.in_flight) == ("host", 0.0, NO_LIMIT)


@pytest.mark.parametrize("hits", [HitsScorer, "HitsScorer", "aduana.HitsScorer"])
def test_a_scorer_is_a_class_or_a_name_with_modules_or_without(hits):
    assert crawl_arguments({"SCORER": hits}) == {"policy": "hits", "cross_domain_only": True}


def test_the_other_scorers():
    assert crawl_arguments({"SCORER": "PageRankScorer"}) == {"policy": "pagerank", "cross_domain_only": True}
    assert crawl_arguments({"SCORER": None}) == {"policy": "best-first"}


@pytest.mark.parametrize("use_scores", [None, False, True])
def test_damping_holds_with_scores_and_without(use_scores):
    arguments = crawl_arguments(
        {"SCORER": "PageRankScorer", "USE_SCORES": use_scores, "PAGE_RANK_DAMPING": 0.5}
    )
    assert arguments["damping"] == 0.5
    assert arguments.get("use_scores") is use_scores


@pytest.mark.parametrize("flag", [True, False])
def test_flags_from_a_command_line(flag):
    for value in (str(int(flag)), str(flag), str(flag).lower(), int(flag), flag):
        assert crawl_arguments({"USE_SCORES": value}) == {"use_scores": flag}


@pytest.mark.parametrize(
    ("given_limits", "soft", "hard", "window"),
    [
        ({"SOFT_CRAWL_LIMIT": 2}, 2.0, 100.0, 0.1),
        ({"HARD_CRAWL_LIMIT": "5"}, 0.25, 5.0, 2.0),
        ({"SOFT_CRAWL_LIMIT": -1, "HARD_CRAWL_LIMIT": -1.0}, 0.0, 0.0, inlink.Politeness().rate_window),
    ],
)
def test_one_limit_brings_the_other_and_minus_one_is_off(given_limits, soft, hard, window):
    polite = crawl_arguments(given_limits)["politeness"]
    assert (polite.soft_rate, polite.hard_rate, polite.rate_window) == (soft, hard, window)


def test_depth_counts_seeds_as_one_there_and_as_zero_here(tmp_path):
    assert crawl_arguments({"MAX_CRAWL_DEPTH": 0}) == {}
    with inlink.Crawl(tmp_path / "c", **crawl_arguments({"MAX_CRAWL_DEPTH": 2, **DEFAULTS})) as crawl:
        crawl.seed(["http://a.com/"])
        crawl.crawled(crawl.next(1)[0], links=["/1"])
        crawl.crawled(crawl.next(1)[0], links=["/2"])
        assert [crawl.page(f"http://a.com/{k}").state for k in "12"] == ["crawled", "excluded"]


def test_interval_and_folder():
    assert crawl_arguments({"SCORE_UPDATE_INTERVAL": 30, "PAGE_DB_PATH": "x"}) == {
        "folder": "x",
        "rerank_seconds": 30.0,
    }


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"SCORER": "Hits"}, "SCORER must be None or HitsScorer or PageRankScorer; got 'Hits'"),
        (
            {"BACKEND_SCHEDULER": "x.LIFO"},
            "BACKEND_SCHEDULER must be BFScheduler; got 'x.LIFO'",
        ),
        (
            {"BACKEND_SCHEDULER": "aduana.FreqScheduler", "FREQ_SPEC": "absent"},
            "BACKEND_SCHEDULER: inlink has no FreqScheduler: remove it, and give INLINK_REVISIT = ",
        ),
        ({"USE_SCORES": "perhaps"}, "USE_SCORES must be True or False; got 'perhaps'"),
        ({"USE_SCORES": []}, "USE_SCORES must be True or False"),
        ({"PAGE_RANK_DAMPING": "high"}, "PAGE_RANK_DAMPING must be a finite number; got 'high'"),
        ({"PAGE_RANK_DAMPING": 1.0}, "PAGE_RANK_DAMPING must be a number in (0, 1); got 1"),
        ({"HARD_CRAWL_LIMIT": "nan"}, "HARD_CRAWL_LIMIT must be a finite number"),
    ],
)
def test_wrong_settings_are_named_in_one_line(settings, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError) as caught:
        crawl_arguments(settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())


@given(st.dictionaries(st.sampled_from(NAMES), anything))
def test_junk_is_refused_by_name_or_taken(settings):
    try:
        arguments = crawl_arguments(settings)
    except ParameterError as error:
        found = str(error)
    else:
        found = ""
        assert arguments.keys() <= {
            *("folder", "policy", "cross_domain_only", "use_scores", "damping"),
            *("politeness", "rules", "revisit", "rerank_seconds"),
        }
    assert not found or any(name in found for name in NAMES)


def test_every_setting_is_in_the_migration_guide():
    page = (Path(__file__).parents[2] / "docs" / "migration.md").read_text()
    assert not {name for name in NAMES if f"| `{name}`" not in page}


def test_without_frontera_the_message_says_how_to_get_it():
    script = "import sys; sys.modules['frontera'] = None; import inlink.frontera"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stderr.splitlines()[-1] == (
        "inlink.errors.MissingExtraError: frontera is not installed: pip install 'inlink[frontera]'"
    )
