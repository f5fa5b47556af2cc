"""Audits of a site with planted faults: each fault is found, with its page, and nothing else."""

from pathlib import Path

import numpy as np
import pytest
from tests.audit.plantedsite import HOME, Answer, SitePlan, crawl, plan

import inlink
from inlink.audit.audit import audit


@pytest.mark.slow
@pytest.mark.parametrize(("size", "closed"), [(20, False), (60, True), (300, False)])
def test_planted_faults_are_found_and_nothing_else(tmp_path: Path, size: int, closed: bool) -> None:
    site = plan(size, closed=closed)
    crawl(site, tmp_path / "c")
    result = audit(tmp_path / "c")
    assert result.hosts == ["site.example"]
    reasons = ["10 pages denied access", "10 pages excluded: Forbidden by robots.txt"]
    assert result.gaps == (reasons if closed else [])
    for check in result.checks:
        if check.level == "table" or check.name == "starved":
            continue
        keys = {tuple(row[:2]) for row in check.rows} if check.name == "duplicates" else check.keys()
        if check.name == "duplicates":
            # Which of the two is fetched first does not matter.
            keys = {tuple(sorted(key)) for key in keys}
        assert keys == site.truth[check.name], check.name
        assert len(check.rows) == len(keys)
        assert check.verdict == ("inconclusive" if closed else "complete")
        assert check.reasons == result.gaps


def ranks(links: dict[str, list[str]]) -> dict[str, float]:
    """PageRank with damping .85 by a dense solve; pages without links link to all."""
    pages = list(links)
    follow = np.zeros((len(pages), len(pages)))
    for k, page in enumerate(pages):
        targets = [pages.index(target) for target in set(links[page])]
        follow[k, targets or slice(None)] = 1 / (len(targets) or len(pages))
    values = np.linalg.solve(np.eye(len(pages)) - 0.85 * follow.T, np.full(len(pages), 0.15 / len(pages)))
    return dict(zip(pages, values.tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("size", [60, 80, 200])
def test_starved_pages_are_found_and_nothing_else(tmp_path: Path, size: int) -> None:
    """The lowest tenth by content links. Traps: menus, pages outside the sitemap, hidden pages, pages with few links.

    ``menu`` pages have links from every menu, but from no text. ``poor`` pages have a text link from a page with forty
    links. ``rich`` pages have a single text link too, from a page with no other. ``unlisted`` pages are as low as
    ``menu`` pages, but in no sitemap. ``noindex`` pages are as low too, but they are not indexable. So is
    the front page, which no text links to.
    """
    kinds = {"menu": 4, "unlisted": 2, "noindex": 3, "poor": 2, "rich": 2, "only": 2}
    named = {kind: [f"{kind}/{k}" for k in range(number)] for kind, number in kinds.items()}
    plain = [f"p{k}" for k in range(size)]
    content = {page: [plain[(k + step) % size] for step in (1, 7)] for k, page in enumerate(plain)}
    content |= {path: ["p0"] for paths in named.values() for path in paths}
    content |= {f"only/{k}": [f"rich/{k}"] for k in range(2)}
    content["p1"] += named["only"]
    content["hub"] = [*named["poor"], *plain[:40]]
    content["p2"] += ["hub"]
    content[""] = plain[:10]
    menu = "".join(
        f"<a href=/{path}>{path}</a>" for path in named["menu"] + named["unlisted"] + named["noindex"]
    )
    site = SitePlan()
    for path, targets in content.items():
        head = "<meta name=robots content=noindex>" if path in named["noindex"] else ""
        text = "".join(f"<a href=/{target}>to {target}</a>" for target in targets)
        site.answers[HOME + path] = Answer(f"<title>{path}</title>{head}<nav>{menu}</nav><main>{text}</main>")
    site.sitemap = [HOME + path for path in content if path not in named["unlisted"]]
    crawl(site, tmp_path / "c")
    values = ranks(content)
    indexable = sorted(set(content) - set(named["noindex"]), key=values.__getitem__)
    limit = values[indexable[len(indexable) // 10]]
    expected = {
        (HOME + path,)
        for path in indexable
        if values[path] < limit - 1e-9 and path not in ("", *named["unlisted"])
    }
    planted = {(HOME + path,) for path in named["menu"] + named["poor"]}
    if size == 80:
        assert expected == planted
    assert expected & planted
    [check] = audit(tmp_path / "c", only=["starved"]).checks
    assert check.keys() == expected
    links = {page: number for page, _, number in check.rows}
    assert {links[HOME + path] for path in named["menu"] if (HOME + path,) in expected} <= {0}
    assert {links[HOME + path] for path in named["poor"] if (HOME + path,) in expected} <= {1}
    for page, value, _ in check.rows:
        assert value == pytest.approx(values[page.removeprefix(HOME)], rel=0.01)


def test_few_pages_are_not_starved(tmp_path: Path) -> None:
    site = SitePlan({HOME: Answer("<title>Home</title><nav><a href=/low>low</a></nav>")})
    site.answers[f"{HOME}low"] = Answer("<title>Low</title><a href=/>home</a>")
    site.sitemap = [HOME, f"{HOME}low"]
    crawl(site, tmp_path / "c")
    [check] = audit(tmp_path / "c", only=["starved"]).checks
    assert check.rows == []


def test_fragments(tmp_path: Path) -> None:
    """A link to ``/page#part`` counts as a link to that page. A link to a part of its own page does not count."""
    pages = {
        "": "<a href=#news>news</a> <a href=/a#top>A</a> <a href=/a#end>the end of A</a> <a href=/gone#x>lost</a>",
        "a": "<a href=#end>end</a> <a href=/a#top>top</a>",
        "b": "<a href=/b#part>part</a> <a href=/>home</a>",
    }
    site = SitePlan({HOME + path: Answer(f"<title>{path}</title>{text}") for path, text in pages.items()})
    site.sitemap = [f"{HOME}b"]
    crawl(site, tmp_path / "c")
    rows = {check.name: check.rows for check in audit(tmp_path / "c").checks}
    assert rows["broken"] == [[f"{HOME}gone", HOME, "404", "lost", "body"]]
    # Only its own links lead to b. Only links to parts of itself leave a.
    assert rows["orphans"] == [[f"{HOME}b", "sitemap", "no links"]]
    assert rows["dead-ends"] == [[f"{HOME}a"]]
    assert rows["redirects"] == []
    with inlink.CrawlView.open(tmp_path / "c") as view:
        assert [row.url for row in view.links(HOME).rows] == [f"{HOME}a", f"{HOME}gone"]
