"""The settings block of Aduana's article crawls: FileSeedLoader, SEEDS_SOURCE, and a module in FRONTERA_SETTINGS."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from inlink.crawl.aduana import NAMES
from inlink.crawl.crawl import Crawl
from inlink.crawl.unread import FAMILY, FRONTERA_READS, PREFIXES, unread

pytest.importorskip("scrapy", reason="scrapy is not installed: pip install 'inlink[scrapy]'")
pytest.importorskip("frontera", reason="frontera 0.7.2 is not installed: pip install 'inlink[frontera]'")

import frontera
from frontera.contrib.scrapy.settings_adapter import ScrapySettingsAdapter
from scrapy.settings import Settings, default_settings

import aduanablock
from inlink.errors import InputError, ParameterError
from inlink.scrapy.settings import crawl_settings, spider_settings, unread_settings
from sites import Site, html
from spiderruns import Quiet, crawl

MIGRATION = (Path(__file__).parents[2] / "docs" / "migration.md").read_text()
SCHEDULERS = "frontera.contrib.scrapy.middlewares.schedulers"


class Loader:
    """Stands in for Frontera's FileSeedLoader, whose import warns. Scrapy does not call this method."""

    def process_start_requests(self, start_requests: Any, spider: Any) -> None:
        raise AssertionError


def seeds_file(folder: Path, url: str) -> str:
    path = folder / "seeds.txt"
    path.write_text(f"# where to begin\n\n{url}\n#{url}no\n")
    return str(path)


@pytest.mark.slow
def test_the_block_crawls_under_the_scheduler(tmp_path):
    with Site({"/": html("/a"), "/a": html()}) as site:
        ran = crawl(
            Quiet,
            tmp_path / "c",
            site,
            INLINK_CRAWL=...,
            PAGE_DB_PATH=str(tmp_path / "c"),
            SPIDER_MIDDLEWARES={"test_aduana_block.Loader": 1},
            FRONTERA_SETTINGS="aduanablock",
            SEEDS_SOURCE=seeds_file(tmp_path, site.url("/")),
            STORE_CONTENT=True,
        )
    assert ran.crawled == {"/", "/a"}
    assert ran.pages.keys() == {"/", "/a"}
    with Crawl(tmp_path / "c") as after:
        assert (after.settings.policy, after.settings.use_scores) == ("hits", True)
    (line,) = [line for line in ran.told("WARNING") if "without effect" in line]
    assert line == (
        "settings without effect in inlink: BC_MIN_HOSTS, DELAY_ON_EMPTY, FREQ_SCALE, MAX_NEXT_REQUESTS, MAX_REQUESTS, "
        "OVERUSED_SLOT_FACTOR, SERVER_NAME, STORE_CONTENT (docs/migration.md has replacements)"
    )


def test_the_block_crawls_under_frontera(tmp_path, caplog):
    scrapy = Settings(
        {
            "BACKEND": "inlink.frontera.Backend",
            "PAGE_DB_PATH": str(tmp_path / "c"),
            "FRONTERA_SETTINGS": "aduanablock",
            "SEEDS_SOURCE": seeds_file(tmp_path, "http://a.com/"),
            "STORE_CONTENT": True,
            "INLINK_CONTENT_SCORER": {"topic": "x"},
        }
    )
    manager = frontera.FrontierManager.from_settings(ScrapySettingsAdapter(scrapy))
    try:
        assert [one.url for one in manager.get_next_requests()] == ["http://a.com/"]
        assert json.loads((tmp_path / "c" / "settings.json").read_text())["policy"] == "hits"
    finally:
        manager.stop()
    (line,) = [one.getMessage() for one in caplog.records if "without effect" in one.getMessage()]
    assert line == (
        "settings without effect in inlink: BC_MIN_HOSTS, FREQ_SCALE, INLINK_CONTENT_SCORER, SERVER_NAME, "
        "STORE_CONTENT (docs/migration.md has replacements)"
    )


def test_a_file_of_seeds_that_is_absent_is_told(tmp_path):
    settings = frontera.Settings(
        attributes={"BACKEND": "inlink.frontera.Backend", "SEEDS_SOURCE": str(tmp_path / "none.txt")}
    )
    with pytest.raises(InputError, match=r"INLINK_SEEDS or SEEDS_SOURCE: .*none\.txt: No such file"):
        frontera.FrontierManager.from_settings(settings)


def settings_in(module: str, tmp_path: Path, monkeypatch: Any, **scrapy: Any) -> Settings:
    (tmp_path / f"{module}.py").write_text(
        "PAGE_DB_PATH = 'from-module'\nSCORER = 'PageRankScorer'\nINLINK_SEEDS = 's.txt'\nINLINK_DAMPING = 0.5\n"
        "DOWNLOAD_DELAY = 9\nlower = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return Settings({"FRONTERA_SETTINGS": module, **scrapy})


def test_the_module_comes_before_scrapys_settings(tmp_path, monkeypatch):
    settings = settings_in("first_module", tmp_path, monkeypatch, SCORER="HitsScorer", SEEDS_SOURCE="other")
    where, found = crawl_settings(settings)
    assert (where, found["policy"], found["damping"]) == ("from-module", "pagerank", 0.5)
    with Crawl(tmp_path / "c", policy=found["policy"]) as one:
        assert spider_settings(settings, one.settings).seeds == "s.txt"
    # It is Scrapy that reads the delay, and Scrapy does not read the module.
    assert unread_settings(settings) == ["DOWNLOAD_DELAY"]


@pytest.mark.parametrize(
    ("text", "said"), [(None, "No module named"), ("import no_such", "no_such"), ("1/0", "Zero")]
)
def test_a_module_that_cannot_be_imported_is_refused(tmp_path, monkeypatch, text, said):
    monkeypatch.syspath_prepend(tmp_path)
    name = "module_" + re.sub(r"\W", "", said)
    if text is not None:
        (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(ParameterError, match=f"FRONTERA_SETTINGS: '{name}' cannot be imported: .*{said}"):
        crawl_settings(Settings({"FRONTERA_SETTINGS": name}))


def test_middlewares_of_fronteras_scheduler_are_refused():
    for group, name in (("DOWNLOADER", "SchedulerDownloader"), ("SPIDER", "SchedulerSpider")):
        path = f"{SCHEDULERS}.{name}Middleware"
        with pytest.raises(ParameterError, match=f"{group}_MIDDLEWARES: {re.escape(path)} works only with"):
            crawl_settings(Settings({"INLINK_CRAWL": "c", f"{group}_MIDDLEWARES": {path: 999}}))
        crawl_settings(Settings({"INLINK_CRAWL": "c", f"{group}_MIDDLEWARES": {path: None}}))


def test_settings_that_are_read_are_not_named():
    read = {*NAMES, *FRONTERA_READS}
    assert (
        unread(dict.fromkeys(FRONTERA_READS | {"SCORER", "PAGE_DB_PATH", "DOWNLOAD_DELAY"}, 1), (), read)
        == []
    )
    assert unread({"STRATEGY": None, "USER": "me"}, (), read) == []
    assert unread({"USER": "me"}, {"USER"}, read) == ["USER"]
    assert unread({"FREQ_SCALE": 1, "MAX_N_CRAWLS": 9, "SCORER": "HitsScorer"}, (), read) == [
        "FREQ_SCALE",
        "MAX_N_CRAWLS",
    ]


def test_names_of_the_family_are_nobody_elses_and_in_the_migration_guide():
    ours = {name for name in dir(default_settings) if name.isupper()}
    assert not {name for name in ours if name in FAMILY or name.startswith(PREFIXES)}
    assert not {name for name in FAMILY if f"`{name}`" not in MIGRATION}
    assert not {name for name in PREFIXES if f"`{name}" not in MIGRATION}
    assert "OVERUSED_SLOT_FACTOR" in vars(aduanablock)
