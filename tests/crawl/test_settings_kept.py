"""Settings that a crawl's folder stores: what reopening keeps and what it changes."""

import json
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scrapy.settings import Settings as ScrapySettings

import inlink
from inlink.cli import commands
from inlink.crawl.crawl import Crawl
from inlink.crawl.folder import look
from inlink.crawl.settings import choose, stored
from inlink.errors import FolderError, ParameterError
from inlink.frontier.policies import Policy
from inlink.frontier.ranked import Hits
from inlink.frontier.revisit import History, Next
from inlink.frontier.settings import TABLE, Politeness, Settings
from inlink.scrapy.settings import crawl_settings
from inlink.store.format import SETTINGS
from inlink.store.reader import known_pages
from inlink.urls.canonical import UrlRules
from settingscases import TOGETHER, all_others, as_given, got

A = "http://a.com/"


def test_a_crawl_that_is_opened_again_keeps_every_setting(tmp_path):
    folder = tmp_path / "c"
    with Crawl(folder, **all_others()) as crawl:
        made = crawl.settings
        assert {name: got(made, name) for name in TOGETHER} == TOGETHER
        assert "kept" not in crawl.recovered
    with Crawl(folder) as crawl:
        assert crawl.settings == made
        assert all(f" {name} " in crawl.recovered.partition("kept from the folder:")[2] for name in TOGETHER)
        assert "changed" not in crawl.recovered
    seen = look(folder)
    assert seen.settings == made
    seen.pages.close()
    usual = Settings()
    for name in TOGETHER:
        if TABLE[name.partition(".")[0]].fixed or name == "rules.shard":
            continue
        chosen = choose(folder, as_given(name, got(usual, name) if "." not in name else default_of(name)))
        assert f"changed: {name} from " in chosen.told
        for other in TOGETHER:
            if other != name:
                assert got(chosen.settings, other) == TOGETHER[other]


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
        with pytest.raises(ParameterError, match="`url_rules` cannot change after a crawl was made"):
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
        with pytest.raises(ParameterError, match=r"if you trust it, allow its import with "):
            call(folder)
    with pytest.raises(
        ParameterError, match=r"allow its import with policy='.*:Own', or with --set policy=.*:Own"
    ):
        look(folder)
    with pytest.raises(ParameterError, match=r"allow its import with revisit=.*EveryMinute"):
        Crawl(folder, policy=Own)
    name = f"{__name__}:Own"
    for own in (Own, name):
        with Crawl(folder, policy=own, revisit=EveryMinute(5.0)) as crawl:
            assert crawl.settings.policy == name
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
    with Crawl(folder, policy="hosts-in-turns") as crawl:
        crawl.seed([A])
    usual = (folder / "settings.json").read_text()
    own = {name: value for name, value in json.loads(usual).items() if name != "check"}
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
    assert "is read-only" in str(result.exception)


BAD = (
    "",
    "[]",
    "{",
    '{"damping": 7}',
    '{"dampening": 1}',
    '{"politeness": {"delays": 1}}',
    '{"rules": 3}',
    '{"damping": 0.5, "check": 1}',
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
            FolderError, match=r"settings\.json cannot be read .*remove it: the log also holds"
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
        reader = known_pages(folder)
        frames = [reader.frames.frame(place) for place in reader.frames.of_kind(SETTINGS)]
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
    for name in ("events.log", "end.bin", "settings.json"):
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
