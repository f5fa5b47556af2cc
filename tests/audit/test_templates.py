"""Template links: compared with a count by dictionaries, and on a site whose menu would win."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink.audit.site import CrawledSite
from inlink.audit.templates import LEAST_PAGES, TEMPLATE_PLACES, template_links
from inlink.cli import commands
from inlink.protocol import PLACES, Link, PageFacts
from inlink.store.facts import place_named

HOST = "https://e.org/"


def stored(folder: Path, pages: dict[str, list[Link]]) -> Path:
    with inlink.Crawl(folder, politeness={"delay": 0}) as crawl:
        crawl.seed([HOST, *pages])
        for url, links in pages.items():
            crawl.crawled(url, links, facts=PageFacts())
    return folder


def by_dictionaries(site: CrawledSite) -> list[bool]:
    """The three rules, link by link."""

    def groups(page: int) -> list[tuple[str, ...]]:
        parts = urlsplit(site.url(page))
        folders = parts.path.split("/")[1:-1]
        return [(parts.netloc, *folders[:level]) for level in range(3) if level <= len(folders)]

    sizes = Counter(group for page in np.flatnonzero(site.fetched).tolist() for group in groups(page))
    pages_with: dict[object, set[int]] = defaultdict(set)
    targets_of: dict[object, set[int]] = defaultdict(set)
    links = list(zip(*(column.tolist() for column in site.links), strict=True))
    ends = site.targets.tolist()
    for (page, _, text, place), end in zip(links, ends, strict=True):
        for group in groups(page):
            pages_with[group, "key", end, text, place].add(page)
            pages_with[group, "text", text].add(page)
            targets_of[group, text].add(end)
    labels = []
    for (page, _, text, place), end in zip(links, ends, strict=True):
        label = place_named(place) in TEMPLATE_PLACES
        for group in groups(page):
            if sizes[group] >= LEAST_PAGES:
                label |= 2 * len(pages_with[group, "key", end, text, place]) > sizes[group]
                steps = text != 0 and len(targets_of[group, text]) >= LEAST_PAGES
                label |= steps and 2 * len(pages_with[group, "text", text]) > sizes[group]
        labels.append(label)
    return labels


paths = st.sampled_from(
    ["", "a", "b", "x/a", "x/b", "x/c", "x/y/a", "x/y/b", "x/y/c", "x/y/z/a", *"cdefghij"]
)
a_link = st.builds(
    lambda path, text, place: Link(HOST + path, text=text, place=place),
    paths,
    st.sampled_from(["", "Next", "Home", "other"]),
    st.sampled_from(["", *PLACES]),
)


@pytest.mark.slow
@given(st.dictionaries(paths.map(HOST.__add__), st.lists(a_link, max_size=6), min_size=1))
def test_labels_are_those_of_a_count_by_dictionaries(
    tmp_path_factory: "object", pages: dict[str, list[Link]]
) -> None:
    folder = stored(tmp_path_factory.mktemp("c") / "c", pages)  # type: ignore[attr-defined]
    site = CrawledSite(folder)
    try:
        assert template_links(site).tolist() == by_dictionaries(site)
    finally:
        site.pages.close()


@pytest.mark.slow
def test_pages_without_a_folder_are_no_group_of_folders(tmp_path: Path) -> None:
    # Six of eight pages at the root have the link, but not half of the host's pages.
    pages = {f"{HOST}{k}": [Link(f"{HOST}t", text="a text")] if k < 6 else [] for k in range(8)}
    folder = stored(tmp_path / "c", {**pages, **{f"{HOST}x/y/{k}": [] for k in range(9)}})
    site = CrawledSite(folder)
    try:
        assert template_links(site).tolist() == by_dictionaries(site) == [False] * 6
    finally:
        site.pages.close()


@pytest.mark.slow
def test_links_and_why_show_the_kind_of_each_link(tmp_path: Path) -> None:
    menu = [Link(HOST, text="Home"), Link(f"{HOST}p1", text="First")]
    pages = {f"{HOST}p{k}": [*menu, Link(f"{HOST}p0", text=f"see {k}")] for k in range(9)}
    folder = stored(tmp_path / "c", {HOST: menu, **pages})
    with inlink.Crawl(folder) as crawl:
        # The links of a page without facts cannot be judged.
        crawl.seed([f"{HOST}bare"])
        crawl.crawled(f"{HOST}bare", [HOST, f"{HOST}p0"])
        bare = crawl.view.number(f"{HOST}bare")
    run = CliRunner().invoke
    answer = json.loads(run(commands, ["links", str(folder), f"{HOST}p0", "--template", "--json"]).stdout)
    kinds = {row["url"]: row["kind"] for row in answer["outlinks"]}
    assert kinds == {HOST: "template", f"{HOST}p1": "template", f"{HOST}p0": "not judged"}
    kinds = {row["url"]: row["kind"] for row in answer["inlinks"]}
    linkers = {f"{HOST}p{k}": "content" for k in range(1, 9)}
    assert kinds == {**linkers, f"{HOST}p0": "not judged", f"{HOST}bare": "not judged"}
    shown = run(commands, ["links", str(folder), HOST, "--template"]).stdout.splitlines()
    assert f"    {bare:016x} {HOST}bare\tnot judged" in shown
    assert f"    {1:016x} {HOST}p0\ttemplate" in shown
    assert not [
        line for line in run(commands, ["links", str(folder), HOST]).stdout.splitlines() if "\t" in line
    ]
    reasons = json.loads(run(commands, ["why", str(folder), f"{HOST}p1", "--template", "--json"]).stdout)
    own = [row["url"] == f"{HOST}p1" for row in reasons["inlinks"]]
    assert reasons["kinds"] == ["not judged" if itself else "template" for itself in own]
    assert len(own) > 1
    lines = run(commands, ["why", str(folder), f"{HOST}p1", "--template"]).stdout.splitlines()
    assert f"  template link from {HOST}p2" in lines
    (tmp_path / "links.tsv").write_text("a\tb\n")
    for place, message in (
        (tmp_path / "links.tsv", "is a graph: --template applies only to crawls"),
        ("http://127.0.0.1:9/v1/crawls/c", "run it on the machine where the crawl's folder is"),
    ):
        assert message in str(run(commands, ["links", str(place), "a", "--template"]).exception)


@pytest.mark.slow
def test_ranking_by_content_links_leaves_the_menu_out(tmp_path: Path) -> None:
    menu = [Link(HOST, text="Home"), Link(f"{HOST}legal", text="Legal"), Link(f"{HOST}shop", text="Shop")]
    pages = {f"{HOST}p{k}": [*menu, Link(f"{HOST}p0", text=f"see {k}")] for k in range(20)}
    pages |= {HOST: [*menu, *(Link(url) for url in pages)], f"{HOST}legal": menu, f"{HOST}shop": menu}
    folder = stored(tmp_path / "c", pages)
    run = CliRunner().invoke
    assert run(commands, ["-q", "rank", str(folder)]).exit_code == 0
    missing = run(commands, ["-q", "top", str(folder), "--content"])
    assert str(missing.exception).endswith(f"make it with inlink rank {folder} --content")
    ranked = run(commands, ["-q", "rank", str(folder), "--content"])
    assert ranked.stdout.startswith("pagerank-content: converged")
    best = run(commands, ["-q", "top", str(folder), "-n", "3"]).stdout.split("\n")
    assert {line.split("\t")[2] for line in best[:3]} == {HOST, f"{HOST}legal", f"{HOST}shop"}
    assert (
        run(commands, ["-q", "top", str(folder), "-n", "1", "--content"]).stdout.split("\t")[2] == f"{HOST}p0"
    )
    # All links still make the graph.
    assert inlink.read(folder).num_arcs > 60
    (tmp_path / "links.tsv").write_text("a\tb\n")
    assert run(commands, ["-q", "rank", str(tmp_path / "links.tsv"), "--content"]).exit_code == 2
