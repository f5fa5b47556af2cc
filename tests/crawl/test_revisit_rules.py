"""Tests of `revisit_rules`: parsing, errors, and the dates at which pages are due."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings as ScrapySettings

from crawlstrategies import Clock, frontier_in, opened
from crawlworld import A, B, C
from inlink.cli import commands
from inlink.crawl.asof import as_of
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.crawl.settings import stored
from inlink.errors import ParameterError
from inlink.frontier import revisit
from inlink.frontier.byvalue import intervals, threshold_of
from inlink.frontier.revisit import DAY, ByValue, FixedInterval, History, Next, RevisitRules
from inlink.scrapy.settings import crawl_settings

NOW = {"delay": 0.0, "in_flight": 99}
RULES = ("host:a.com 100", "domain:b.com 200..300", "^http://c[.] ..40", "/late 5000..")


# -- the rules ------------------------------------------------------------------------------------------------------


def test_the_host_goes_before_the_closest_domain_and_the_first_expression():
    rules = RevisitRules(
        [
            "/news/ 1",
            "www 2",
            "domain:example.org 3",
            "domain:docs.example.org 4..",
            "host:WWW.Example.org\t5..6",
        ]
    )
    pages = {
        "http://www.example.org/news/": "host:www.example.org",
        "https://docs.example.org:8080/news/": "domain:docs.example.org",
        "http://a.docs.example.org/": "domain:docs.example.org",
        "http://example.org/www": "domain:example.org",
        "http://www.a.com/news/": "/news/",
        "http://www.a.com/": "www",
        "http://badexample.org/": "",
    }
    assert {url: rules.of(url).pages for url in pages} == pages
    assert (rules.rules[4].least, rules.rules[4].most) == (4, math.inf)
    assert (rules.rules[5].least, rules.rules[5].most) == (5, 6)
    assert rules.of("http://badexample.org/")[1:] == (0, math.inf)


WRONG = [
    ("host:a.com", "a rule is a pattern, a blank and SECONDS"),
    ("3600", "a rule is a pattern"),
    ("a ..", "a rule is a pattern"),
    ("a 0", "above 0"),
    ("a 0..5", "above 0"),
    ("a -1", "above 0"),
    ("a nan", "above 0"),
    ("a inf", "above 0"),
    ("a 5..inf", "above 0"),
    ("a 2e9", r"at most 1e\+09"),
    ("a x2", "got 'a x2'"),
    ("a 9..8", "the shortest interval is above the longest"),
    ("a( 5", r"'a\(' is not a valid regular expression"),
    ("host:a/b 5", "'a/b' is not a host name"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_text_that_is_no_rule_is_refused_by_every_door_before_anything_changes(tmp_path, text, message):
    folder, file = tmp_path / "c", tmp_path / "rules.txt"
    with opened(folder, Clock(), revisit=FixedInterval(9.0)) as crawl:
        crawl.seed([A])
        with pytest.raises(ParameterError, match=message):
            crawl.change_settings(max_retries=7, revisit_rules=["ok 5", text])
        assert crawl.settings.max_retries != 7
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for place in (folder, tmp_path / "new"):
        with pytest.raises(ParameterError, match=f"revisit_rules: .*{message}") as caught:
            Crawl(place, revisit_rules=[text])
        assert "\n" not in str(caught.value)
    file.write_text(f"# intervals\n\nok 5\n  {text}\n")
    with pytest.raises(ParameterError, match=f"rules.txt, line 4: .*{message}"):
        crawl_settings(ScrapySettings({"INLINK_CRAWL": str(folder), "INLINK_REVISIT_RULES": str(file)}))
    (tmp_path / "seeds").write_text(B)
    command = ["seed", str(folder), str(tmp_path / "seeds"), "--set", f"revisit_rules={file}"]
    with pytest.raises(ParameterError, match=message):
        CliRunner().invoke(commands, command, catch_exceptions=False)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()


def test_two_rules_for_the_same_pages_are_refused():
    with pytest.raises(ParameterError, match=r"two rules for 'host:a\.com': remove one"):
        RevisitRules(["host:a.com 5", "b 5", "host:A.com 6"])


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ParameterError, match=r"INLINK_REVISIT_RULES: .* cannot be read"):
            crawl_settings(ScrapySettings({"INLINK_CRAWL": "c", "INLINK_REVISIT_RULES": str(path)}))


def test_rules_come_from_a_file_or_a_list(tmp_path):
    file = tmp_path / "rules.txt"
    file.write_text("# Nutch has tabs\nhost:a.com\t60\n\n[.]pdf$   600..86400 \n")
    rules = ("host:a.com\t60", "[.]pdf$   600..86400")
    given_ = crawl_settings(ScrapySettings({"INLINK_CRAWL": "c", "INLINK_REVISIT_RULES": str(file)}))[1]
    assert given_["revisit_rules"] == rules
    given_ = crawl_settings(ScrapySettings({"INLINK_CRAWL": "c", "INLINK_REVISIT_RULES": list(rules)}))[1]
    assert given_["revisit_rules"] == rules
    (tmp_path / "seeds").write_text(A)
    command = ["seed", str(tmp_path / "c"), str(tmp_path / "seeds"), "--set", f"revisit_rules={file}"]
    assert CliRunner().invoke(commands, command).exit_code == 0
    assert stored(tmp_path / "c").revisit_rules == rules
    # A client of a server must not read the server's files.
    with Crawl(tmp_path / "c") as crawl, pytest.raises(ParameterError, match="revisit_rules must be a list"):
        crawl.change_settings(revisit_rules=str(file))


# -- the dates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Doubling:
    """A schedule of a user's own: the interval doubles at each crawl; pages of c.org are never fetched again."""

    first: float = 64.0

    def next(self, history: History) -> Next:
        interval = 2 * history.interval or self.first
        return Next(None if "c.org" in history.url else interval, interval)


PAGES = [A, "http://a.com/late", "http://x.b.com/", C, "http://d.com/late", "http://d.com/"]


def fetch_all(crawl, clock):
    crawl.seed(PAGES)
    for lease in crawl.next(99):
        crawl.crawled(lease, content_hash=b"same")


def due(source):
    return {url: source.why(url).due_in for url in PAGES}


DUE = {
    "none": (None, [100, 100, 300, 40, None, None]),
    "fixed": (FixedInterval(250.0), [100, 100, 250, 40, 5000, 250]),
    "short": (FixedInterval(20.0), [100, 100, 200, 20, 5000, 20]),
    "own": (Doubling(), [100, 100, 200, 40, 5000, 64]),
    "by value": (
        ByValue(budget=DAY, initial=1000.0, shortest=1.0, longest=1000.0),
        [100, 100, None, None, 5000, None],
    ),
}


@pytest.mark.parametrize("name", DUE)
def test_rules_fix_and_bound_the_dates_of_any_schedule(tmp_path, name):
    schedule, expected = DUE[name]
    clock, folder = Clock(), tmp_path / "c"
    with opened(folder, clock, revisit=schedule, revisit_rules=RULES, politeness=NOW) as crawl:
        fetch_all(crawl, clock)
        crawl.next(0)
        dates = due(crawl)
        if name == "by value":
            assert 200 <= dates[PAGES[2]] <= 300
            assert 1 <= dates[C] <= 40
            assert 1 <= dates[PAGES[5]] <= 1000
        else:
            assert list(dates.values()) == expected
        assert [date for date, usual in zip(dates.values(), expected, strict=True) if usual] == [
            date for date in (expected if name != "by value" else [100, 100, 5000]) if date
        ]
        assert "revisit rule host:a.com: every 100 s" in str(crawl.why(A))
        assert "revisit rule domain:b.com: after at least 200 s and at most 300 s" in str(crawl.why(PAGES[2]))
        assert crawl.why(PAGES[5]).revisit_rule is None
    with Crawl(folder, clock=clock, revisit=schedule) as crawl:
        crawl.next(0)
        assert due(crawl) == dates


@pytest.mark.parametrize("schedule", [None, FixedInterval(250.0), DUE["by value"][0]])
def test_new_rules_give_new_dates_also_in_views(tmp_path, schedule):
    clock, folder = Clock(), tmp_path / "c"

    def plans_of(frontier, clock):
        frontier.advance(clock.now)
        return dict(frontier.plans)

    with opened(folder, clock, revisit=schedule, revisit_rules=RULES, politeness=NOW) as crawl:
        fetch_all(crawl, clock)
        crawl.next(0)
        first, moment = plans_of(frontier_in(crawl), clock), clock.now
        assert plans_of(look(folder, clock), clock) == first
        clock.now += 1
        crawl.change_settings(revisit_rules=["domain:b.com 70", "/late 80"])
        crawl.next(0)
        second, live = due(crawl), plans_of(frontier_in(crawl), clock)
        assert [second[PAGES[place]] for place in (1, 2, 4)] == [79, 69, 79]
        assert live != first
    with Crawl(folder, clock=clock) as crawl:
        crawl.next(0)
        assert (due(crawl), plans_of(frontier_in(crawl), clock)) == (second, live)
    with Crawl(folder, clock=clock, revisit_rules=RULES) as crawl:
        crawl.next(0)
        third = plans_of(frontier_in(crawl), clock)
        # With ByValue, the date of a page without a rule also depends on when the threshold was renewed.
        same = (0, 1, 2, 4) if isinstance(schedule, ByValue) else first
        assert [third[page] for page in same] == [first[page] for page in same]
    with as_of(folder, moment, tmp_path) as then:
        assert plans_of(look(then.folder, Clock(moment)), Clock(moment)) == first


def test_rules_without_a_schedule_fetch_their_pages_again(tmp_path):
    clock = Clock()
    with opened(tmp_path / "c", clock, revisit_rules=["host:a.com 100"], politeness=NOW) as crawl:
        fetch_all(crawl, clock)
        clock.now += 100
        assert sorted(lease.url for lease in crawl.next(9)) == PAGES[:2]
        crawl.change_settings(revisit_rules=[])
        assert not crawl.settings.revisits


def test_a_view_without_the_code_of_a_schedule_shows_the_dates_that_rules_fix(tmp_path):
    clock, folder = Clock(), tmp_path / "c"
    with opened(folder, clock, revisit=Doubling(), revisit_rules=RULES, politeness=NOW) as crawl:
        fetch_all(crawl, clock)
    frontier = look(folder, clock)
    assert frontier.plans == dict.fromkeys((0, 1), clock.now + 100)
    frontier.pages.close()


# -- former schedules ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Adaptive:
    """A schedule as an earlier version stored it in a folder: its name and fields."""

    initial: float = 50.0

    def next(self, history: History) -> Next:
        return Next(self.initial, self.initial)


def test_a_folder_with_a_former_schedule_opens_with_another_only(tmp_path, monkeypatch):
    clock, folder = Clock(), tmp_path / "c"
    with monkeypatch.context() as patch:
        patch.setitem(revisit.KINDS, "Adaptive", Adaptive)
        with opened(folder, clock, revisit=Adaptive(), politeness=NOW) as crawl:
            fetch_all(crawl, clock)
            moment = clock.now
            clock.now += 1
            crawl.change_settings(max_retries=5)
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for more in ({}, {"max_retries": 7}, {"revisit": {"schedule": "Adaptive"}}):
        with pytest.raises(
            ParameterError, match="no schedule Adaptive any more; give another, such as"
        ) as caught:
            Crawl(folder, clock=clock, **more)
        assert "\n" not in str(caught.value)
    (tmp_path / "seeds").write_text(A)
    command = ["seed", str(folder), str(tmp_path / "seeds")]
    with pytest.raises(ParameterError, match=f"{folder}: inlink has no schedule Adaptive"):
        CliRunner().invoke(commands, command, catch_exceptions=False)
    frontier = look(folder, clock)
    assert not frontier.plans
    frontier.pages.close()
    with as_of(folder, moment, tmp_path) as then:
        assert look(then.folder, Clock(moment)).pages.num_pages == len(PAGES)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
    (folder / "settings.json").unlink()
    with pytest.raises(ParameterError, match="no schedule Adaptive any more"):
        Crawl(folder, clock=clock)
    with Crawl(folder, clock=clock, revisit=FixedInterval(9.0)) as crawl:
        assert set(due(crawl).values()) == {8.0}
    with Crawl(folder, clock=clock) as crawl:
        assert crawl.settings.revisit == FixedInterval(9.0)


# -- by value -------------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.floats(1e-6, 1), st.floats(1, 50), st.floats(0.1, 100), st.integers(0, 3)),
        min_size=1,
        max_size=40,
    )
)
def test_fetches_that_rules_demand_count_against_the_budget(pages):
    rates, shapes, ranks = (np.array(column) for column in list(zip(*pages, strict=True))[:3])
    places = np.array([page[3] for page in pages], np.uint32)
    shortest, longest = np.array([1.0, 50.0, 1e4, 500.0]), np.array([1e8, 50.0, 1e8, 2000.0])
    budget = len(pages) / 1e4

    def fetches(threshold):
        waits = intervals(rates, shapes, ranks, threshold)
        return (1 / np.clip(waits, shortest[places], longest[places])).sum()

    threshold = threshold_of(rates, shapes, ranks, budget, shortest, longest, places)
    least, most = (1 / longest[places]).sum(), (1 / shortest[places]).sum()
    # Pages are counted in bins, so the threshold has a small error.
    assert fetches(threshold * 1.06) <= max(budget, least) * 1.02
    assert fetches(threshold / 1.06) >= min(budget, most) * 0.98


@pytest.mark.slow
def test_a_crawl_by_value_leaves_to_other_pages_what_its_rules_do_not_use(tmp_path):
    clock = Clock()
    plan = ByValue(budget=DAY / 10, initial=300.0, shortest=1.0, longest=1e6)
    rules = ["/fixed 25", "/rare 1000.."]
    pages = [f"http://a.com/{name}/{k}" for name in ("fixed", "rare", "plain") for k in range(10)]
    pages = pages[:1] + pages[10:]
    with opened(tmp_path / "c", clock, revisit=plan, revisit_rules=rules, politeness=NOW) as crawl:
        crawl.seed(pages)
        times = {url: [] for url in pages}
        for turn in range(400):
            while not (leases := crawl.next(1)):
                clock.now += max(crawl.due_in(), 1e-3)
            times[leases[0].url].append(clock.now)
            crawl.crawled(leases[0], content_hash=b"%d" % turn)
        length = clock.now - 1_000_000.0
    assert np.diff(times[pages[0]]) == pytest.approx(25.0, rel=0.1)
    assert all(np.diff(times[url]).min() >= 1000 for url in pages[1:11])
    # The budget covers all revisits.
    assert 400 / length == pytest.approx(0.1, rel=0.15)
