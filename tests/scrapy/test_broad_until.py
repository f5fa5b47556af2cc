"""``inlink crawl --until-top``: it ends when the best places are certain, and tells them."""

import json

import pytest

pytest.importorskip("scrapy")

from crawlcommand import crawl
from foldercommands import shell
from inlink.crawl.certificate import certify
from sites import Answer, Asked, Site, html

pytestmark = pytest.mark.slow


def endless(asked: Asked) -> Answer:
    """Three pages that link to each other, and from the last of them a chain of pages without end."""
    if asked.path == "/robots.txt":
        return Answer("", 404)
    if asked.path.startswith("/chain"):
        return html(f"/chain{int(asked.path.removeprefix('/chain')) + 1}", "/a")
    return html("/a", "/a", "/b", "/c", *(["/chain0"] if asked.path == "/c" else []))


def test_an_endless_site_ends_when_its_best_places_are_certain(tmp_path):
    with Site(endless) as site:
        done = crawl(
            f"{site.root}/a", "-o", "c", "--delay", 0, "--until-top", 3, "--within", 0.01, cwd=tmp_path
        )
        first, within, outside, assumed = done.stdout.splitlines()[-4:]
        assert first.endswith("; the best places are certain (--until-top)")
        assert within == "within 0.01 of all rank: the first 3 places are certain"
        assert "of all rank; a page that is not known yet has at most" in outside
        assert "teleports to the only seed; with uniform teleports there is no bound" in assumed
        found = certify(tmp_path / "c", 3, 0.01)
        assert found.holds
        assert sorted(row.url for row in found.places) == [f"{site.root}/{name}" for name in "abc"]
    told = shell("crawl-info", "c", "--top", 3, "--within", 0.01, cwd=tmp_path).splitlines()
    assert told[0] == within
    assert [line.split("\t")[-1] for line in told[3:]] == ["certain"] * 3
    data = json.loads(shell("crawl-info", "c", "--top", 2, "--json", cwd=tmp_path))
    assert data["within"] == 0
    assert len(data["places"]) == 2
    assert 0 < data["outside"] <= found.outside


def test_a_site_that_ends_before_tells_what_is_certain_too(tmp_path):
    with Site({"/a": html("/b"), "/b": html("/a")}) as site:
        done = crawl(f"{site.root}/a", "-o", "c", "--delay", 0, "--until-top", 2, cwd=tmp_path)
    assert "; nothing more to fetch now\n" in done.stdout
    assert "within 0.01 of all rank: the first 2 places are certain\n" in done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("crawl", "http://a.example/", "--within", "0.1"), "give --until-top too"),
        (("crawl", "http://a.example/", "--until-top", "0"), "--until-top"),
        (("crawl", "http://a.example/", "--until-top", "3", "--within", "2"), "--within"),
        (("crawl-info", "c", "--within", "0.1"), "give --top too"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, given, said):
    assert said in shell(*given, cwd=tmp_path, code=2)
    assert list(tmp_path.iterdir()) == []
