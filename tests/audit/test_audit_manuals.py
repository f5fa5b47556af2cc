"""Audits of Debian's manuals, compared with a script that reads the files with another parser and counts by hand."""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lxml.html
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from tests.audit.plantedsite import Answer, SitePlan, crawl

from inlink.audit.audit import audit
from inlink.audit.site import CrawledSite
from inlink.audit.templates import template_links
from inlink.urls.canonical import canonical

MANUALS = {
    "postgresql": ("/usr/share/doc/postgresql-doc-15/html", "index.html"),
    "sqlite": ("/usr/share/doc/sqlite3", "index.html"),
    "apache": ("/usr/share/doc/apache2-doc/manual", "en/index.html"),
}
# The larger manuals take minutes.
CASES = ["sqlite", *(pytest.param(name, marks=pytest.mark.soak) for name in ("postgresql", "apache"))]
MISSED = "https://sqlite.org/docsrc/honeypot"
DATA = Path(__file__).parent / "judged"
HOST = "https://manual.example/"


class Served(SitePlan):
    """The files of a folder as a site."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.answers = self  # type: ignore[assignment]

    def get(self, url: str, default: Answer) -> Answer:
        path = self.folder / unquote(urlsplit(url).path.lstrip("/"))
        if not url.startswith(HOST) or path.suffix not in (".html", ".htm") or not path.is_file():
            return default
        return Answer(path.read_bytes())


def tree_of(answer: Answer) -> lxml.html.HtmlElement:
    assert isinstance(answer.body, bytes)
    charset = re.search(rb"charset=[\"']?([\w-]+)", answer.body[:1024])
    parser = lxml.html.HTMLParser(encoding=charset[1].decode() if charset else "utf-8")
    return lxml.html.document_fromstring(answer.body, parser=parser)


@pytest.fixture(scope="module", params=CASES)
def manual(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return the name of a manual, and a crawl of it."""
    folder, start = MANUALS[request.param]
    if not Path(folder, start).is_file():
        pytest.skip(f"{folder} is not installed")
    crawled = tmp_path_factory.mktemp(request.param) / "c"
    crawl(Served(Path(folder)), crawled, seeds=[HOST + start])
    return request.param, crawled


def by_hand(folder: Path, start: str) -> dict[str, set[tuple[str, ...]]]:
    """The keys of some checks' findings, by a search through the files."""
    served, depth = Served(folder), {start: 0}
    links: dict[str, set[str]] = {}
    titles, headings = defaultdict(list), defaultdict(list)
    truth: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    queue, missing = deque([start]), Answer("", 404)
    while queue:
        url = queue.popleft()
        answer = served.get(url, missing)
        if answer.status == 404:
            continue
        tree = tree_of(answer)
        forms = {canonical(href, url) for href in tree.xpath("//a/@href | //area/@href")}
        links[url] = {form for form in forms if form and form.startswith(HOST)} - {url}
        title = tree.xpath("//title")
        titles[" ".join(title[0].text_content().split()) if title else ""].append(url)
        first = [" ".join(heading.text_content().split()) for heading in tree.xpath("//h1")]
        headings[next(filter(None, first), "")].append(url)
        if len(first) > 1:
            truth["headings"].add((url, "several on the page"))
        for target in sorted(links[url]):
            if target not in depth:
                depth[target] = depth[url] + 1
                queue.append(target)
    for url, targets in links.items():
        truth["broken"] |= {(target, url) for target in targets if served.get(target, missing) is missing}
        if not targets:
            truth["dead-ends"].add((url,))
        if depth[url] > 3:
            truth["depth"].add((url,))
    for name, texts in (("titles", titles), ("headings", headings)):
        for text, urls in texts.items():
            if not text or len(urls) > 1:
                truth[name] |= {(url, "shared" if text else "missing") for url in urls}
    return truth


def similar(folder: Path, urls: list[str]) -> Iterator[tuple[str, str, float]]:
    """The pairs of pages that share at least half of their shingles of three words, and the share (Jaccard)."""
    served, missing = Served(folder), Answer("", 404)
    numbers: dict[tuple[str, ...], int] = {}
    sets: list[list[int]] = []
    for url in urls:
        tree = tree_of(served.get(url, missing))
        for hidden in tree.xpath("//script | //style | //head"):
            hidden.drop_tree()
        words = re.findall(r"\w+", " ".join(tree.itertext()).casefold())
        shingles = set(zip(words, words[1:], words[2:], strict=False))
        sets.append([numbers.setdefault(shingle, len(numbers)) for shingle in shingles])
    sizes = np.array([len(shingles) for shingles in sets])
    columns = np.concatenate([np.array(shingles, np.int64) for shingles in sets])
    has = csr_array((np.ones(len(columns), np.float32), (np.repeat(np.arange(len(sets)), sizes), columns)))
    common = (has @ has.T).tocoo()
    shares = common.data / (sizes[common.row] + sizes[common.col] - common.data)
    for k in np.flatnonzero((shares >= 0.5) & (common.row < common.col)).tolist():
        yield urls[common.row[k]], urls[common.col[k]], float(shares[k])


@pytest.mark.slow
def test_findings_are_those_of_a_search_by_hand(manual: tuple[str, Path]) -> None:
    name, crawled = manual
    folder, start = Path(MANUALS[name][0]), HOST + MANUALS[name][1]
    truth = by_hand(folder, start)
    result = audit(crawled)
    assert result.fetched > 500
    for check in result.checks:
        if check.name in ("broken", "titles", "headings", "depth", "dead-ends"):
            assert check.keys() == truth[check.name], check.name
        if check.name == "duplicates":
            like = {page: other for page, other, _ in check.rows}
    site = CrawledSite(crawled)
    pages, prints = site.fingerprints
    urls = [site.url(page) for page in pages.tolist()]
    site.pages.close()
    # Groups by comparing all pairs of fingerprints.
    near = np.array([np.bitwise_count(prints ^ own) <= 3 for own in prints])
    count, groups = connected_components(near)
    firsts = [urls[int(np.argmax(groups == group))] for group in range(count)]
    pairs = {url: firsts[group] for url, group in zip(urls, groups, strict=True) if url != firsts[group]}
    assert like == pairs
    # The tolerance: pages that share 95% of their shingles are in a group, and the two pages of a row share 70%.
    for page, other, share in similar(folder, urls):
        ends = {like.get(url, url) for url in (page, other)}
        assert share < 0.95 or len(ends) == 1, (page, other)
        if like.get(page) == other or like.get(other) == page:
            assert share >= 0.7, (page, other)
            pairs.pop(page if like.get(page) == other else other)
    assert pairs == {}


@pytest.mark.slow
def test_template_links_are_those_that_were_judged_by_eye(manual: tuple[str, Path]) -> None:
    """300 links of each manual, drawn at random, whose label follows from the block of the page that holds them.

    The blocks were judged by reading pages: headers, footers, breadcrumbs, language lists, and phrases that stand on
    all pages of a folder are template. Missed by name: the date in the footer of SQLite's pages, which is another
    text on each page. Without it, precision and recall are at least .95 in each manual.
    """
    name, crawled = manual
    site = CrawledSite(crawled)
    labels = dict(
        zip(
            zip(site.links.sources.tolist(), site.targets.tolist(), strict=True),
            template_links(site).tolist(),
            strict=True,
        )
    )
    page_of = site.pages.table.page_of
    lines = (DATA / f"{name}.tsv").read_text().splitlines()[1:]
    counts: Counter[tuple[str, bool]] = Counter()
    for page, target, label in (line.split("\t") for line in lines):
        form = target if "://" in target else HOST + target
        key = page_of(HOST + page), page_of(form)
        # The manual of another version may lack a link.
        if key in labels and (labels[key] or target != MISSED):
            counts[label, labels[key]] += 1
    site.pages.close()
    hits = counts["template", True]
    assert counts.total() > 250
    assert hits / (hits + counts["content", True]) >= 0.95
    assert hits / (hits + counts["template", False]) >= 0.95
