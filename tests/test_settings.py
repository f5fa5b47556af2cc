"""Settings: one table, its checks by every door, and what a crawl's folder keeps of them."""

import inspect
import json
import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings as ScrapySettings

import inlink
from inlink.base.settings import Setting, rows_of
from inlink.cli import commands
from inlink.crawl.crawl import Crawl, look
from inlink.crawl.settings import NOT_GIVEN, checked, choose, encoded, from_name, lay_over, stored
from inlink.errors import FolderError, ParameterError
from inlink.frontier.policies import POLICIES, Hits, Policy
from inlink.frontier.revisit import Adaptive, FixedInterval, History, Next, revisit_as_data
from inlink.frontier.settings import GROUPS, TABLE, Politeness, Settings
from inlink.scrapy.settings import crawl_settings
from inlink.store.format import SETTINGS
from inlink.store.reader import Reader
from inlink.urls.canonical import UrlRules
from settingsdocs import DOCS, written

NUMBERS = {name: row for name, row in TABLE.items() if row.kind in (int, float)}
CHOICES = {name: row for name, row in TABLE.items() if row.choices}

OTHERS: dict[str, Any] = {
    "policy": "hits",
    "use_scores": True,
    "cross_domain_only": True,
    "damping": 0.5,
    "lease_seconds": 30.0,
    "max_retries": 9,
    "retry_seconds": 7.5,
    "max_losses": 5,
    "rerank_share": None,
    "rerank_seconds": 77.0,
    "sync": "full",
    "revisit": FixedInterval(5.0),
    "politeness.by": "domain",
    "politeness.delay": 30.0,
    "politeness.in_flight": 3,
    "politeness.soft_rate": 0.25,
    "politeness.hard_rate": 1.5,
    "politeness.rate_window": 10.0,
    "politeness.host_budget": 17,
    "politeness.domain_budget": 99,
    "politeness.park_after": 2,
    "politeness.park_seconds": 60.0,
    "rules.allow": ("a",),
    "rules.deny": ("[.]jpg$", "host:x.example"),
    "rules.max_depth": 4,
    "rules.hosts": ("a.example",),
    "rules.domains": ("example.org",),
    "url_rules.sort_query": True,
    "url_rules.drop_session_ids": True,
    "url_rules.drop_parameters": ("utm_*", "ref"),
}
"""For each setting a value that is not its default."""


def all_others() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in OTHERS.items():
        group, dot, field = name.partition(".")
        lay_over(found, group, {field: value} if dot else value)
    return found


def as_given(name: str, value: Any) -> dict[str, Any]:
    group, dot, field = name.partition(".")
    return {group: {field: value}} if dot else {name: value}


def got(settings: Settings, name: str) -> Any:
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


# -- the table ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_tables_in_the_docs_are_those_of_the_code(page: Path):
    text = page.read_text()
    assert written(text) == text, "run: python tests/settingsdocs.py"


def test_the_docs_have_all_tables():
    text = "".join(page.read_text() for page in DOCS.glob("*.md"))
    assert [text.count(f"<!-- settings: {name} -->") for name in ("crawl", "scrapy", "options")] == [1, 1, 1]


def test_every_setting_is_a_parameter_of_the_crawl_and_in_its_docstring():
    parameters = dict(inspect.signature(Crawl).parameters)
    assert [parameters.pop(name).name for name in ("folder", "clock")] == ["folder", "clock"]
    assert list(parameters) == list(rows_of(Settings))
    assert {one.default for one in parameters.values()} == {NOT_GIVEN}
    text = " ".join((Crawl.__doc__ or "").split("Attributes")[0].split())
    for name, row in rows_of(Settings).items():
        assert f"{name} :" in text or f"{name}, " in text or f", {name} :" in text
        if isinstance(row.default, float | int):
            assert f"{row.default:g}" in text or str(row.default) in text, name
    for group in (*GROUPS.values(), FixedInterval, Adaptive):
        for name in rows_of(group):
            assert name in (group.__doc__ or ""), (group, name)


def test_policies_of_the_table_are_those_that_there_are():
    assert sorted(TABLE["policy"].choices) == sorted(POLICIES)
    assert OTHERS.keys() == TABLE.keys() - GROUPS.keys()


# -- ranges, by all doors -------------------------------------------------------------------------------------------


def bounds(row: Setting) -> tuple[list[float], list[float]]:
    """Numbers that are just inside and just outside the range of a setting."""

    def near(bound: float, towards: float) -> float:
        return bound + (1 if towards > bound else -1) if row.kind is int else math.nextafter(bound, towards)

    inside, outside = [], []
    for bound, closed, out in (
        (row.at_least, True, -math.inf),
        (row.above, False, -math.inf),
        (row.at_most, True, math.inf),
        (row.below, False, math.inf),
    ):
        if bound is not None:
            bound = row.kind(bound)
            inside.append(bound if closed else near(bound, -out))
            outside.append(near(bound, out) if closed else bound)
    return inside, outside


def by_scrapy(name: str, text: str, folder: Path) -> Any:
    group, dot, field = name.partition(".")
    value = json.dumps({field: text}) if dot else text
    where, found = crawl_settings(
        ScrapySettings({"INLINK_CRAWL": str(folder), f"INLINK_{group.upper()}": value})
    )
    return got(choose(Path(where), found).settings, name)


def by_command(name: str, text: str, folder: Path) -> Any:
    seeds = folder.with_name("seeds")
    seeds.write_text("http://a.com/\n")
    result = CliRunner().invoke(commands, ["-q", "seed", str(folder), str(seeds), "--set", f"{name}={text}"])
    if result.exception is not None:
        raise result.exception
    return got(stored(folder), name)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_accepted_at_its_bounds_and_refused_outside_by_all_doors(name, tmp_path):
    row, folder = TABLE[name], tmp_path / "c"
    inside, outside = bounds(row)
    assert len(inside) == 2, "a range has two bounds"
    for value in inside:
        assert got(choose(folder, as_given(name, value)).settings, name) == value
        assert by_scrapy(name, repr(value), folder) == value
        group, found = from_name(name, repr(value))
        assert got(choose(folder, {group: found}).settings, name) == value
    wrong = [*outside, math.nan, math.inf, -math.inf, True, "many"]
    for value in wrong:
        with pytest.raises(ParameterError) as here:
            choose(folder, as_given(name, value))
        said, _, shown = str(here.value).partition("; got ")
        assert said == f"{name} must be {row.meaning}"
        assert shown == repr(value)
        with pytest.raises(ParameterError) as there:
            by_scrapy(name, str(value), folder)
        place = f"INLINK_{name.partition('.')[0].upper()}{name[len(name.partition('.')[0]) :]}"
        assert str(there.value) == f"{place} must be {row.meaning}; got {str(value)!r}"
        with pytest.raises(ParameterError) as command:
            by_command(name, str(value), folder)
        assert str(command.value) == f"--set {name} must be {row.meaning}; got {str(value)!r}"
    with pytest.raises(ParameterError) as long:
        Crawl(folder, **as_given(name, outside[0]))
    assert str(long.value) == f"{name} must be {row.meaning}; got {outside[0]!r}"
    if row.none is None:
        with pytest.raises(ParameterError, match="got None"):
            choose(folder, as_given(name, None))
    assert not folder.exists()


@pytest.mark.parametrize("name", sorted(TABLE.keys() - NUMBERS.keys()))
def test_other_types_are_refused(name, tmp_path):
    row, folder = TABLE[name], tmp_path / "c"
    wrong: list[Any] = [3, 1.5, object(), b"x"]
    if row.kind is bool:
        wrong += [1, 0, "yes"]
    if row.kind is tuple:
        wrong += [[""], [1], {"a": 1}]
        if name.startswith("url_rules"):  # one string is one rule
            wrong.append("abc")
    if row.choices:
        wrong += ["", "hosts", "a:", ":b"]
    if row.none is None:
        wrong.append(None)
    for value in wrong:
        with pytest.raises(ParameterError) as caught:
            Crawl(folder, **as_given(name, value))
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("given_settings", "said"),
    [
        ({"policy": "no.such.module:Thing"}, "cannot be imported here"),
        ({"policy": "inlink.errors:InlinkError"}, "must be a subclass of Policy"),
        ({"policy": int}, "must be a name, a subclass of Policy or an instance"),
        ({"revisit": {"schedule": "Weekly"}}, "give a schedule"),
        ({"revisit": {"schedule": "Adaptive", "initials": 1}}, "cannot be made of"),
        ({"revisit": {"schedule": "inlink.errors:InlinkError"}}, "has no method next"),
        ({"politeness": {"dely": 1}}, "no setting is called 'dely'; did you mean delay?"),
        ({"rules": {"deny": "("}}, "is not a valid regular expression"),
    ],
)
def test_a_refused_setting_leaves_no_folder(given_settings, said, tmp_path):
    with pytest.raises(ParameterError, match=said.replace("?", "[?]")):
        Crawl(tmp_path / "c", **given_settings)
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_none_get_a_hint():
    with pytest.raises(ParameterError, match=r"did you mean politeness\.delay\?"):
        from_name("delay", "3")
    with pytest.raises(ParameterError, match=r"did you mean max_retries\?"):
        from_name("max_retry", "3")
    result = CliRunner().invoke(commands, ["next", "c", "--set", "damping"])
    assert str(result.exception).startswith("--set takes NAME=VALUE")


METHODS = [
    (lambda crawl: crawl.next(-1), "count must be a whole number in [0, 4294967295]; got -1"),
    (lambda crawl: crawl.next("5"), "count must be a whole number in [0, 4294967295]; got '5'"),
    (lambda crawl: crawl.next(2.5), "got 2.5"),
    (lambda crawl: crawl.next(True), "got True"),
    (lambda crawl: crawl.seed("http://b.com/"), "several URLs are wanted, as [url]; got the one text"),
    (lambda crawl: crawl.seed(b"http://b.com/"), "several URLs are wanted"),
    (lambda crawl: crawl.seed([7]), "a link must be a text"),
    (lambda crawl: crawl.crawled(A, "http://b.com/"), "several URLs are wanted"),
    (lambda crawl: crawl.crawled(A, score=math.nan), "score must be a finite number; got nan"),
    (lambda crawl: crawl.crawled(A, status=7000), "status must be an HTTP status from 0 to 999; got 7000"),
    (lambda crawl: crawl.crawled(A, content_hash="x"), "content_hash must be bytes; got str"),
    (
        lambda crawl: crawl.crawled(3.0),
        "a page is named by its lease, its lease's number or its URL; got 3.0",
    ),
    (
        lambda crawl: crawl.failed(None),
        "a page is named by its lease, its lease's number or its URL; got None",
    ),
    (lambda crawl: crawl.release(b"x"), "a page is named by its lease, its lease's number or its URL"),
    (lambda crawl: crawl.sitemap(["http://b.com/"]), "sitemap takes triples"),
    *(
        (
            lambda crawl, seconds=seconds: crawl.host_delay(A, seconds),
            "seconds must be a number of seconds in [0, 1e9]",
        )
        for seconds in (-1, math.inf, math.nan, "3")
    ),
]
A = "http://a.com/"


def test_arguments_of_methods_are_checked_before_anything_changes(tmp_path):
    with Crawl(tmp_path / "c") as crawl:
        crawl.seed([A])
        events = crawl._pages.num_events
        for call, said in METHODS:
            with pytest.raises(ParameterError) as caught:
                call(crawl)
            assert said in str(caught.value)
        assert (crawl._pages.num_events, crawl._pages.num_pages) == (events, 1)
        assert [lease.url for lease in crawl.next()] == [A]


# -- what the folder keeps ------------------------------------------------------------------------------------------


def test_a_crawl_that_is_opened_again_keeps_every_setting(tmp_path):
    folder = tmp_path / "c"
    with Crawl(folder, **all_others()) as crawl:
        made = crawl.settings
        assert {name: got(made, name) for name in OTHERS} == OTHERS
        assert "kept" not in crawl.recovered
    with Crawl(folder) as crawl:
        assert crawl.settings == made
        assert all(f" {name} " in crawl.recovered.partition("kept from the folder:")[2] for name in OTHERS)
        assert "changed" not in crawl.recovered
    seen = look(folder)
    assert seen.settings == made
    seen.pages.close()
    usual = Settings()
    for name in OTHERS:
        if TABLE[name.partition(".")[0]].fixed:
            continue
        chosen = choose(folder, as_given(name, got(usual, name) if "." not in name else default_of(name)))
        assert f"changed: {name} from " in chosen.told
        for other in OTHERS:
            if other != name:
                assert got(chosen.settings, other) == OTHERS[other]


def default_of(name: str) -> Any:
    return TABLE[name].default


def test_none_differs_from_not_given(tmp_path, caplog):
    caplog.set_level("INFO", "inlink.crawl")
    folder = tmp_path / "c"
    rules = inlink.Rules(deny=["x"])
    Crawl(folder, rules=rules, rerank_seconds=50.0, policy="opic").close()
    with Crawl(folder) as crawl:
        assert (crawl.settings.rules, crawl.settings.rerank_seconds) == (rules, 50.0)
    with Crawl(folder, rules=None, rerank_seconds=None) as crawl:
        assert (crawl.settings.rules, crawl.settings.rerank_seconds, crawl.settings.policy) == (
            None,
            None,
            "opic",
        )
        assert "kept from the folder: policy 'opic'" in crawl.recovered
        assert "rerank_seconds from 50.0 to None" in crawl.recovered
        assert crawl.recovered in [one.message for one in caplog.records if one.levelname == "INFO"]


def test_a_dict_changes_the_fields_that_it_names_and_an_instance_all(tmp_path):
    folder = tmp_path / "c"
    Crawl(folder, politeness=Politeness(by="domain", delay=30.0)).close()
    assert choose(folder, {"politeness": {"delay": 2}}).settings.politeness == Politeness("domain", 2.0)
    assert choose(folder, {"politeness": Politeness(delay=2)}).settings.politeness == Politeness(delay=2.0)


def test_url_rules_cannot_change(tmp_path):
    folder = tmp_path / "c"
    Crawl(folder, url_rules=UrlRules(sort_query=True)).close()
    Crawl(folder, url_rules={"sort_query": True}).close()
    for other in (None, UrlRules(), {"drop_session_ids": True}):
        with pytest.raises(ParameterError, match="url_rules cannot change after a crawl was made"):
            Crawl(folder, url_rules=other)
    with Crawl(folder) as crawl:
        assert crawl.settings.url_rules == UrlRules(sort_query=True)


class Own(Policy):
    """A policy that other processes can import."""


@dataclass
class EveryMinute:
    """A schedule of a user's own."""

    minutes: float = 1.0

    def next(self, history: History) -> Next:
        return Next(60 * self.minutes, 60 * self.minutes)


def test_policies_and_schedules_of_the_users_own_are_kept_by_their_place(tmp_path):
    folder = tmp_path / "c"
    with Crawl(folder, policy=Own, revisit=EveryMinute(5.0)) as crawl:
        assert crawl.settings.policy == f"{__name__}:Own"
    # The folder may come from anybody: what it names is imported only if the caller names it too.
    for call in (Crawl, look, lambda place: inlink.CrawlView.open(place).order()):
        with pytest.raises(ParameterError, match=r"if you trust it, allow its import by "):
            call(folder)
    with pytest.raises(ParameterError, match=r"allow its import by policy='.*:Own', or --set policy=.*:Own"):
        look(folder)
    with pytest.raises(ParameterError, match=r"allow its import by revisit=.*EveryMinute"):
        Crawl(folder, policy=Own)
    name = f"{__name__}:Own"
    for own in (Own, name):
        with Crawl(folder, policy=own, revisit=EveryMinute(5.0)) as crawl:
            assert type(crawl._frontier.policy) is Own
            assert crawl.settings.revisit == EveryMinute(5.0)
            assert "changed" not in crawl.recovered
        assert type(look(folder, policy=own).policy) is Own
        inlink.CrawlView.open(folder, policy=own).order()
    with pytest.raises(ParameterError, match=r"this crawl's policy is .*:Own'; got 'opic'"):
        look(folder, policy="opic")
    given = {"schedule": f"{__name__}:EveryMinute", "minutes": 7.0}
    with Crawl(folder, policy=Hits, revisit=given) as crawl:  # one of ours, as a class
        assert crawl.settings.policy == "hits"
        assert crawl.settings.revisit == EveryMinute(7.0)
        assert "revisit from" in crawl.recovered


def test_a_strangers_folder_runs_no_code(tmp_path, monkeypatch):
    """A crawl's settings name a module that would leave a trace; nothing that opens or shows the folder imports it."""
    trace, folder = tmp_path / "trace", tmp_path / "c"
    (tmp_path / "evil.py").write_text(
        f"open({str(trace)!r}, 'w').close()\nfrom inlink.frontier.policies import Policy as Own\n"
        "class Never:\n    def next(self, history): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with Crawl(folder, policy="fifo") as crawl:
        crawl.seed([A])
    usual = (folder / "settings.json").read_text()
    own = json.loads(usual)
    for changes in (
        {"policy": "evil:Own"},
        {"revisit": {"schedule": "evil:Never"}},
        {"policy": "evil:Own", "revisit": {"schedule": "evil:Never"}},
    ):
        (folder / "settings.json").write_text(json.dumps(own | changes))
        view = inlink.CrawlView.open(folder)
        assert view.page(A) is not None
        assert view.info().pages == 1
        calls = [
            lambda: Crawl(folder),
            lambda: look(folder),
            lambda view=view: view.order(),
            lambda view=view: view.why(A),
        ]
        for call in calls:
            with suppress(ParameterError):
                call()
        for words in (
            ["next"],
            ["next", "--peek"],
            ["why", A],
            ["page", A],
            ["crawl-info"],
            ["reload"],
            ["find", "a"],
            ["dump", "pages"],
        ):
            result = CliRunner().invoke(commands, ["-q", words[0], str(folder), *words[1:]])
            assert result.exception is None or isinstance(result.exception, SystemExit | ParameterError), (
                words
            )
        assert not trace.exists()
        assert "evil" not in sys.modules
    (folder / "settings.json").write_text(json.dumps(own | {"policy": "evil:Own"}))
    result = CliRunner().invoke(commands, ["-q", "why", str(folder), A, "--set", "policy=evil:Own"])
    assert result.exception is None
    assert A in result.output
    assert trace.exists()
    result = CliRunner().invoke(commands, ["-q", "next", str(folder), "--peek", "--set", "damping=0.5"])
    assert "changes nothing" in str(result.exception)


BAD = (
    "",
    "[]",
    "{",
    '{"damping": 7}',
    '{"dampening": 1}',
    '{"politeness": {"delays": 1}}',
    '{"rules": 3}',
)


@pytest.mark.parametrize("text", BAD)
def test_settings_that_cannot_be_read_are_an_error_for_everybody(text, tmp_path):
    folder = tmp_path / "c"
    Crawl(folder, damping=0.5).close()
    path = folder / "settings.json"
    path.write_text(text)

    def scrapy(folder: Path) -> object:
        where, found = crawl_settings(ScrapySettings({"INLINK_CRAWL": str(folder)}))
        return choose(Path(where), found)

    def command(*words: str) -> object:
        result = CliRunner().invoke(commands, ["-q", *words])
        assert result.exception is not None
        raise result.exception

    for opened in (
        lambda: Crawl(folder),
        lambda: Crawl(folder, damping=0.5),
        lambda: look(folder),
        lambda: scrapy(folder),
        lambda: command("next", str(folder)),
        lambda: command("next", "--peek", str(folder)),
        lambda: command("reload", str(folder)),
        lambda: command("crawl-info", str(folder)),
    ):
        with pytest.raises(
            FolderError, match=r"settings\.json cannot be read .*remove it, for the log has"
        ) as caught:
            opened()
        assert "\n" not in str(caught.value)
    assert path.read_text() == text
    path.unlink()
    with Crawl(folder) as crawl:
        assert crawl.settings == Settings(damping=0.5)


def test_each_change_is_an_event_of_the_log(tmp_path):
    folder, now = tmp_path / "c", 1.0

    def events() -> list[tuple[float, dict[str, Any]]]:
        reader = Reader(folder)
        frames = [reader.pages.frame(place) for place in reader.pages.frames_of_kind(SETTINGS)]
        reader.close()
        return [(frame.time, json.loads(frame.payload)) for frame in frames]

    Crawl(folder, clock=lambda: now, url_rules=UrlRules(sort_query=True)).close()
    now = 2.0
    Crawl(folder, clock=lambda: now).close()
    Crawl(folder, clock=lambda: now, damping=0.85).close()
    assert [time for time, _ in events()] == [1.0]
    now = 3.0
    Crawl(folder, clock=lambda: now, damping=0.5, rules={"deny": ["x"]}).close()
    (_, first), (time, second) = events()
    assert (time, second["damping"], second["rules"]["deny"]) == (3.0, 0.5, ["x"])
    assert first["rules"] is None
    assert second["url_rules"]["sort_query"] is first["url_rules"]["sort_query"] is True
    (folder / "settings.json").unlink()  # the log alone has them too
    assert stored(folder) == Settings(damping=0.5, rules=inlink.Rules(deny=["x"]), url_rules=UrlRules(True))


def test_without_settings_anywhere_the_message_says_how_to_go_on(tmp_path):
    folder = tmp_path / "c"
    Crawl(folder, damping=0.5).close()
    for name in ("events.log", "settings.json"):
        (folder / name).unlink()
    (folder / "events.log").write_bytes(b"")
    with pytest.raises(FolderError, match=r"no settings in its log: write {} into that file"):
        Crawl(folder)
    (folder / "settings.json").write_text("{}")
    with Crawl(folder) as crawl:
        assert crawl.settings == Settings()


# -- Scrapy's own settings ------------------------------------------------------------------------------------------


def test_scrapys_own_settings_count_in_a_new_crawl_and_later_only_where_the_project_sets_them(tmp_path):
    folder = tmp_path / "c"

    def opened(**given_settings: Any) -> Settings:
        where, found = crawl_settings(ScrapySettings({"INLINK_CRAWL": str(folder), **given_settings}))
        with Crawl(where, **found) as crawl:
            return crawl.settings

    first = opened(DOWNLOAD_DELAY=30)
    assert (first.politeness.delay, first.politeness.in_flight, first.max_retries) == (30.0, 16, 2)
    assert first.retry_seconds == 2.0
    assert opened() == first
    changed = opened(RETRY_TIMES=5, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    assert changed == replace(first, max_retries=5, politeness=replace(first.politeness, in_flight=2))
    with Crawl(folder, policy="opic", retry_seconds=99.0) as crawl:
        changed = crawl.settings
    assert opened() == changed
    with pytest.raises(ParameterError, match="RETRY_TIMES must be a whole number in"):
        opened(RETRY_TIMES=1000)


# -- any settings ---------------------------------------------------------------------------------------------------


def numbers(row: Setting) -> st.SearchStrategy[Any]:
    (low, high), _ = bounds(row)
    found: st.SearchStrategy[Any] = (
        st.integers(int(low), int(high)) if row.kind is int else st.floats(low, high, allow_nan=False)
    )
    return found | st.none() if row.none else found


def values(row: Setting) -> st.SearchStrategy[Any]:
    if row.kind is bool:
        return st.booleans()
    if row.kind in (int, float):
        return numbers(row)
    if row.choices:
        return st.sampled_from(row.choices)
    names = st.lists(st.sampled_from(["a.example", "b.example", "example"]), max_size=2).map(tuple)
    return names | st.none() if row.none else names


SOME = st.fixed_dictionaries(
    {}, optional={name: values(row) for name, row in TABLE.items() if row.name not in (*GROUPS, "revisit")}
)


def settings_of(changes: Mapping[str, Any], base: Settings) -> Settings:
    found: dict[str, Any] = {}
    for name, value in changes.items():
        group, dot, field = name.partition(".")
        lay_over(found, group, {field: value} if dot else value)
    for name, group in GROUPS.items():
        if name in found:
            found[name] = replace(getattr(base, name) or group(), **checked(name, found[name]))
    return replace(base, **found)


@given(SOME, st.sampled_from([None, FixedInterval(3.0), Adaptive(dec=0.1)]))
def test_what_is_kept_is_what_was_given(tmp_path_factory, changes, schedule):
    settings = replace(settings_of(changes, Settings()), revisit=schedule)
    data = json.loads(encoded(settings))
    assert "url_rules" not in data  # those are in the header, which never changes
    again = {
        name: None if data[name] is None else group(**data[name])
        for name, group in GROUPS.items()
        if name in data
    }
    assert data.pop("revisit") == json.loads(json.dumps(revisit_as_data(schedule)))
    assert Settings(**{**data, **again}, revisit=schedule, url_rules=settings.url_rules) == settings


@given(SOME)
def test_text_means_the_same_as_the_value(changes):
    for name, value in changes.items():
        row = TABLE[name]
        if isinstance(value, tuple) and (len(value) != 1 and not row.commas):
            continue
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        _, found = from_name(name, text)
        if "." in name:
            found = found[name.partition(".")[2]]
        assert found == value, (name, text)


@given(
    st.sampled_from(sorted(TABLE)), st.text() | st.floats() | st.integers() | st.none() | st.lists(st.text())
)
def test_anything_is_taken_by_the_table_or_refused_by_name(tmp_path_factory, name, value):
    folder = tmp_path_factory.getbasetemp() / "never made"
    said = None
    try:
        choose(folder, as_given(name, value))
    except ParameterError as error:
        said = str(error)
    assert said is None or name.rpartition(".")[2] in said
    assert said is None or "\n" not in said
    assert not folder.exists()
