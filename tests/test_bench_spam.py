"""The benchmark of fetches that spam wastes: its generated web, and its table."""

import re

import pytest
from bench import spam


def hosts(links: dict[str, set[str]]) -> dict[str, int]:
    """The number of pages of each kind of host."""
    kinds = [re.sub(r"[0-9]*[.].*", "", url.removeprefix("http://")) for url in links]
    return {kind: kinds.count(kind) for kind in kinds}


def test_the_web_is_what_the_module_says():
    links = spam.web(1)
    assert links == spam.web(1) != spam.web(2)
    found = hosts(links)
    assert found.pop("good") > 3000
    assert found == {"farm": 20 * 300, "events": 4 * 800, "mirror": 3000}
    assert {target for targets in links.values() for target in targets} <= set(links)
    fronts = {f"http://{host}/0" for host in spam.FARMS}
    for url, targets in links.items():
        wasted = bool(re.search(spam.SPAM, url))
        assert wasted != url.startswith("http://good")
        # Farms link to four fronts of farms, calendars and the mirror to one.
        assert len(targets & fronts) >= (4 if "farm" in url else wasted)
    good = [url for url in links if url.startswith("http://good")]
    led = [url for url in good if any("http://farm" in target for target in links[url])]
    assert 0.01 < len(led) / len(good) < 0.03


@pytest.mark.parametrize("sets", ["1", "2"])
def test_the_table_has_each_order_with_its_lists(monkeypatch, capsys, sets):
    full = spam.web(1)
    # A small part of the web: the first pages of each host.
    some = {url for url in full if re.search(r"/[0-3]$", url)}
    small = {url: targets & some for url, targets in full.items() if url in some}
    monkeypatch.setattr(spam, "web", lambda seed: small)
    spam.main(["--sets", sets])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| order | 2% | 5% | 10% | 20% |"
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "host-diverse", "pagerank", "breadth-first", "host-diverse with `distrust`", "pagerank with `distrust`",
        "host-diverse with `trust`", "host-diverse with `trust`, `distrust`",
        "host-diverse with `trust`, `spam_mass`", "host-diverse with `trust`, `distrust`, `spam_mass`",
    ]  # fmt: skip
    for line in lines[2:]:
        shares = [cell.split("±") for cell in line.split("|")[2:-1]]
        assert all(0 <= float(share) <= 1 for share, _ in shares)
        assert all((error.strip() == "nan") == (sets == "1") for _, error in shares)
