"""``inlink crawl --preset``: a wiki of the test's own, the two tables of the seed, its own SQL and NetworkX on them."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scrapy")

import inlink
from crawlcommand import crawl
from inlink.errors import OutputError
from inlink.scrapy.outputs import WikiTables
from sites import Answer, Says, Site

pytestmark = pytest.mark.slow

# What stands in the article that the preset goes back to
SUBGRAPH = (
    "CREATE TABLE subGraph AS SELECT * FROM WikiGraph WHERE (fromLink in (SELECT entry.link FROM WikiLinks entry "
    "WHERE entry.crawled = 1)) AND (toLink in (SELECT entry.link from WikiLinks entry WHERE entry.crawled = 1));"
)

ARTICLES = {  # title → titles that its text links to
    "Kolmogorov_complexity": ["Entropy", "Algorithm", "Andrey_Kolmogorov", "Erd%C5%91s_number", "Red_link"],
    "Entropy": ["Algorithm", "Heat", "Kolmogorov_complexity", "Entropy"],
    "Algorithm": ["Entropy", "Shannon's"],
    "Andrey_Kolmogorov": ["Kolmogorov_Complexity", "Moscow"],  # the first is an alias
    "Erd%C5%91s_number": ["Andrey_Kolmogorov"],
    "Heat": [],
    "Moscow": ["Heat", "Moved"],
    "Shannon's": ["2001:_A_Space_Odyssey"],
    "2001:_A_Space_Odyssey": [],
    "Moved_here": ["Heat"],
}


def article(title: str, links: list[str], head: str = "") -> str:
    """A page as MediaWiki makes it."""
    text = " ".join(
        f'<a href="/wiki/{to}{"#History" if k % 2 else ""}" title="{unquote(to).replace("_", " ")}">x</a>'
        for k, to in enumerate(links)
    )
    return f"""<!DOCTYPE html><html><head><title>{title} - Wiki</title>{head}</head><body>
<div id="mw-navigation"><a href="/wiki/Main_Page">Main</a> <a href="/wiki/Special:Random">Random</a></div>
<div id="content"><h1>{title}</h1><div id="mw-content-text"><div class="mw-content-ltr mw-parser-output">
<a href="#top">top</a> <a href="/wiki/File:X.png" class="image">picture</a> <a href="/wiki/Help:IPA">IPA</a>
<a href="/w/index.php?title={title}&amp;action=edit">edit</a> <a href="/wiki/Category:Things">c</a>
<a href="https://example.org/wiki/Away" class="external">away</a> {text} {text}
<a href="/wiki/Not_there" class="new" title="Not there (page does not exist)">red</a></div></div></div>
<div id="catlinks"><a href="/wiki/Footer">f</a></div></body></html>"""


def wiki() -> dict[str, Says]:
    pages: dict[str, Says] = {f"/wiki/{title}": article(title, links) for title, links in ARTICLES.items()}
    alias = '<link rel="canonical" href="/wiki/Kolmogorov_complexity">'
    pages["/wiki/Kolmogorov_Complexity"] = article("x", ARTICLES["Kolmogorov_complexity"], alias)
    pages["/wiki/Moved"] = Answer("", 301, {"Location": "/wiki/Moved_here"})
    pages["/robots.txt"] = Answer("User-agent: *\nDisallow: /w/\n", headers={"Content-Type": "text/plain"})
    return pages


def preset(site: Site, folder: Path) -> str:
    """The Wikipedia preset, for another wiki: only the base and the delay differ."""
    import inlink.scrapy.preset

    shipped = Path(inlink.scrapy.preset.__file__).parent / "presets" / "wikipedia.toml"
    text = shipped.read_text()
    assert "https://en.wikipedia.org/wiki/" in text
    text = text.replace("https://en.wikipedia.org/wiki/", f"{site.root}/wiki/").replace(
        "delay = 1.0", "delay = 0"
    )
    (folder / "mine.toml").write_text(text)
    return "mine.toml"


def seed_program(pages: dict[str, Says]) -> tuple[set[str], set[tuple[str, str]]]:
    """The paths that the original crawler would have crawled, and found, in this wiki; each link once."""
    names = {"/wiki/Kolmogorov_Complexity": "Kolmogorov_complexity", "/wiki/Moved": "Moved_here"}
    crawled: set[str] = set()
    arcs: set[tuple[str, str]] = set()
    waiting = ["/wiki/Kolmogorov_complexity"]
    while waiting:
        path = waiting.pop()
        title = names.get(path, path.removeprefix("/wiki/"))
        if path in crawled or title not in ARTICLES:
            continue
        crawled.add(path)
        found = [f"/wiki/{to}" for to in ARTICLES[title]]
        arcs |= {(path, to) for to in found}
        waiting += found
    return crawled, arcs


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database, database:
        found = database.execute(query).fetchall()
    database.close()
    return found


def test_the_tables_are_the_seeds(tmp_path):
    with Site(wiki()) as site:
        done = crawl(
            *(
                "--preset",
                preset(site, tmp_path),
                "--start",
                "Kolmogorov complexity",
                "--sqlite",
                "wiki.sqlite",
            ),
            cwd=tmp_path,
        )
        asked = site.paths()
    base = f"{site.root}"
    assert (tmp_path / "127.0.0.1.crawl").is_dir()
    assert done.stdout.endswith("nothing more to fetch now\n")
    assert not any(":" in path and "2001:" not in path for path in asked)
    assert not {"/wiki/Main_Page", "/wiki/Footer", "/wiki/Not_there", "/w/index.php"} & set(asked)
    crawled, arcs = seed_program(wiki())
    found = rows(tmp_path / "wiki.sqlite", "SELECT link, title, crawled FROM WikiLinks")
    links = {str(link).removeprefix(base): (title, mark) for link, title, mark in found}
    # "Moved" leads to "Moved_here" by HTTP, so both stand for one page, as with a wiki's own aliases
    assert {path for path, (_, mark) in links.items() if mark} == crawled | {"/wiki/Moved_here"}
    assert links["/wiki/Red_link"] == ("Red link", 0)
    assert links["/wiki/Erd%C5%91s_number"] == ("Erdős number", 1)
    assert links["/wiki/Kolmogorov_complexity"] == ("Kolmogorov complexity", 1)
    graph = [
        (str(a).removeprefix(base), str(b).removeprefix(base))
        for a, b in rows(tmp_path / "wiki.sqlite", "SELECT fromLink, toLink FROM WikiGraph")
    ]
    # The text of each page stands there twice, and so does each of its links.
    assert Counter(graph) == dict.fromkeys(arcs | {("/wiki/Moved_here", "/wiki/Heat")}, 2)
    # the seed's own two steps
    with closing(sqlite3.connect(tmp_path / "wiki.sqlite")) as database, database:
        database.execute(SUBGRAPH)
        subgraph = database.execute("SELECT * FROM subGraph").fetchall()
        network = nx.MultiDiGraph()
        network.add_edges_from(subgraph)
        database.execute("DROP TABLE subGraph")
    database.close()
    assert len(nx.degree_centrality(network)) == network.number_of_nodes() > 8
    # and inlink's own
    whole = inlink.read(tmp_path / "wiki.sqlite")
    assert whole.num_arcs == len(set(graph))
    inner = inlink.read(tmp_path / "wiki.sqlite", crawled_only=True)
    assert set(inner.names[:]) == {str(link) for link, _, mark in found if mark}
    assert inner.num_arcs == len(set(subgraph))
    assert sorted(path.name for path in tmp_path.glob("wiki.sqlite*")) == ["wiki.sqlite"]


def test_a_second_run_goes_on_in_the_same_tables(tmp_path):
    def go(*more: object) -> None:
        crawl(
            *("--preset", "mine.toml", "--start", "Kolmogorov_complexity", "--sqlite", "wiki.sqlite", *more),
            cwd=tmp_path,
        )

    with Site(wiki()) as site:
        preset(site, tmp_path)
        go("--pages", 3)
        assert rows(tmp_path / "wiki.sqlite", "SELECT count(*) FROM WikiLinks WHERE crawled = 1")[0][0] >= 3
        go()
        asked = [path for path in site.paths() if path != "/wiki/Moved_here"]
        assert len(asked) == len(set(asked))
        crawled, arcs = seed_program(wiki())
        assert (
            rows(tmp_path / "wiki.sqlite", "SELECT count(*) FROM WikiLinks WHERE crawled")[0][0]
            == len(crawled) + 1
        )
        assert rows(tmp_path / "wiki.sqlite", "SELECT count(*) FROM WikiGraph")[0][0] == 2 * (len(arcs) + 1)


def test_pages_outside_the_wiki_are_not_fetched(tmp_path):
    pages = wiki()
    pages["/wiki/Heat"] = Answer("", 302, {"Location": "/elsewhere"})
    with Site(pages) as site:
        crawl("--preset", preset(site, tmp_path), "--start", "Entropy", "-o", "c", cwd=tmp_path)
        assert "/wiki/Heat" in site.paths()
        assert "/elsewhere" not in site.paths()


# -- the tables alone -------------------------------------------------------------------------------------------------

ONE, TWO, THREE = ("http://w/1", "One"), ("http://w/2", "Two"), ("http://w/3", "Three")


def test_a_page_of_two_addresses_has_its_links_at_both(tmp_path):
    with WikiTables(tmp_path / "w.sqlite") as tables:
        tables.crawled([ONE, TWO], [THREE])
    assert rows(tmp_path / "w.sqlite", "SELECT * FROM WikiLinks ORDER BY link") == [
        ("http://w/1", "One", 1),
        ("http://w/2", "Two", 1),
        ("http://w/3", "Three", 0),
    ]
    assert rows(tmp_path / "w.sqlite", "SELECT * FROM WikiGraph") == [
        ("http://w/1", "http://w/3"),
        ("http://w/2", "http://w/3"),
    ]


VISITS = st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=8)), max_size=12)


@given(VISITS)
def test_the_last_visit_counts_and_first_titles_stay(tmp_path_factory, visits):
    path = tmp_path_factory.mktemp("t") / "w.sqlite"
    titles: dict[str, str] = {}
    last: dict[str, list[str]] = {}
    with WikiTables(path) as tables:
        for number, (page, targets) in enumerate(visits):
            named = [(str(to), f"{to} by {number}") for to in targets]
            tables.crawled([(str(page), "own")], named)
            titles.setdefault(str(page), "own")
            for to, title in named:
                titles.setdefault(to, title)
            last[str(page)] = [to for to, _ in named]
    if visits:
        assert {(link, title, bool(mark)) for link, title, mark in rows(path, "SELECT * FROM WikiLinks")} == {
            (link, title, link in last) for link, title in titles.items()
        }
        assert sorted(rows(path, "SELECT * FROM WikiGraph")) == sorted(
            (page, to) for page, found in last.items() for to in found
        )


def test_tables_of_the_seeds_own_program_are_gone_on_with(tmp_path):
    with closing(sqlite3.connect(tmp_path / "w.sqlite")) as database, database:
        database.execute("CREATE TABLE WikiLinks (link TEXT PRIMARY KEY, title TEXT, crawled INTEGER)")
        database.execute("CREATE TABLE WikiGraph (fromLink TEXT, toLink TEXT)")
        database.execute("CREATE TABLE mine (x)")
        database.execute("INSERT INTO WikiLinks VALUES ('http://w/1', 'First', '0')")
    database.close()
    with WikiTables(tmp_path / "w.sqlite") as tables:
        tables.crawled([ONE], [TWO])
    assert rows(tmp_path / "w.sqlite", "SELECT * FROM WikiLinks WHERE crawled = 1") == [
        ("http://w/1", "First", 1)
    ]
    assert rows(tmp_path / "w.sqlite", "SELECT * FROM mine") == []


def no_database(path: Path) -> None:
    path.write_bytes(b"something else, which is longer than a header " * 100)


def other_columns(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE WikiLinks (url TEXT)")
    database.close()


def locked(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (no_database, "w.sqlite: cannot be written .file is not a database"),
        (other_columns, "its table WikiLinks has the columns url, and not link, title, crawled"),
        (locked, "w.sqlite: cannot be opened"),
    ],
)
def test_an_output_that_cannot_be_written_is_named(tmp_path: Path, make: Callable[[Path], None], said: str):
    make(tmp_path / "w.sqlite")
    with pytest.raises(OutputError, match=said):
        WikiTables(tmp_path / "w.sqlite")


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    with WikiTables(tmp_path / "w.sqlite") as tables:
        tables.crawled([ONE], [TWO])
        tables._database.execute("PRAGMA max_page_count = 8")
        with pytest.raises(OutputError, match="database or disk is full"):
            tables.crawled([TWO], [(f"http://w/{k}" * 20, "x") for k in range(1000)])
        assert rows(tmp_path / "w.sqlite", "SELECT count(*) FROM WikiLinks") == [(2,)]
        tables.crawled([THREE], [])
    assert rows(tmp_path / "w.sqlite", "SELECT count(*) FROM WikiGraph") == [(1,)]


def test_somebody_may_read_meanwhile(tmp_path):
    with WikiTables(tmp_path / "w.sqlite") as tables:
        tables.crawled([ONE], [TWO])
        reader = sqlite3.connect(tmp_path / "w.sqlite")
        assert reader.execute("SELECT count(*) FROM WikiLinks").fetchone() == (2,)
        cursor = reader.execute("SELECT * FROM WikiLinks")
        cursor.fetchone()
        tables.crawled([TWO], [THREE])
        assert inlink.read(tmp_path / "w.sqlite").num_arcs == 2
    reader.close()
    assert inlink.read(tmp_path / "w.sqlite").num_arcs == 2
