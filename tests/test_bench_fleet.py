"""The benchmark of several spiders on one crawl: each server with its spiders, and the table."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import fleet, tables
from bench.fleets import base
from bench.spidersite import Site

pytestmark = pytest.mark.slow

PAGES = 1 + 16


@pytest.mark.parametrize("name", base.ALL)
def test_each_server_lets_its_spiders_fetch_each_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := base.peer(name).missing():
        pytest.skip(reason)
    monkeypatch.setattr(fleet, "SPIDERS", 2)
    monkeypatch.setattr(fleet, "QUIET_SECONDS", 5.0)
    with Site(1) as site:
        told = fleet.crawl(name, "undisturbed", site, PAGES, tmp_path, 240)
    assert (told["different"], told["left"], told["missing"]) == (PAGES, 0, 0)
    # scrapy-redis does not put a start URL into its filter, so that a link to it is followed.
    assert told["twice"] == (name != "inlink")
    assert told["wall"] > 0
    assert told["cpu"] >= 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["spider", "server"])
def test_a_killed_process_is_started_again(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "SPIDERS", 2)
    # Every spider ends by itself, however slow the machine is.
    monkeypatch.setattr(fleet, "QUIET_SECONDS", 240.0)
    with Site(1) as site:
        told = fleet.crawl("inlink", how, site, PAGES, tmp_path, 480)
    assert (told["different"], told["left"]) == (PAGES, 0)
    if how == "server":
        assert told["twice"] == 0


def test_a_comparison_becomes_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def by_hand(name: str, how: str, *_: object) -> dict[str, object]:
        assert base.peer(name).NAME == "inlink serve"
        sent = {"undisturbed": (17, 0, 0), "spider": (17, 0, 3), "server": (10, 7, 0)}[how]
        figures = dict(zip(("different", "left", "twice"), sent, strict=True))
        return figures | {"pages": sent[0] + sent[2], "wall": 4.0, "cpu": 1.7}

    monkeypatch.setattr(fleet, "crawl", by_hand)
    monkeypatch.setattr(base.peer("scrapy_redis"), "missing", lambda: "Redis is away")
    options = ["--peers", "scrapy_redis", "inlink", "--rounds", "2", "--deepest", "1"]
    fleet.main([*options, "--data", str(tmp_path / "data"), "--results", str(tmp_path)])
    shown = capsys.readouterr().out
    assert shown.startswith("4 Scrapy processes, 17 pages of 10 kB from 20 hosts on loopback.")
    rows = [line.strip("| ").split(" | ") for line in shown.splitlines() if line.startswith("| inlink")]
    assert rows[0] == ["inlink serve", "–", "4 (4–4)", "100.00 (100.00–100.00)", "17", "0, 0", "0, 0"]
    assert rows[1][1:] == ["spider", "", "", "17", "0, 0", "3, 3"]
    assert rows[2][1:] == ["server", "", "", "10", "7, 7", "0, 0"]
    assert "- Not in the table, scrapy-redis: Redis is away." in shown
    assert tables.tables(tmp_path) == {"fleet": shown.rstrip("\n")}
    assert json.loads((tmp_path / "fleet.json").read_text())["pages"] == PAGES
