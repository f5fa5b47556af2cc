"""Facts of a page: what is kept with a visit, how it is bounded, and what shows it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink.cli import commands
from inlink.errors import ParameterError
from inlink.protocol import PLACES, Crawled, Link, PageFacts
from inlink.sources.dumping import PAGE_COLUMNS
from inlink.store.blocks import FACT_COLUMNS
from inlink.store.events import Event, Events
from inlink.store.facts import LONGEST_TEXT, MOST_BYTES, decode_facts, encode_facts
from inlink.store.format import BY_SITEMAP
from inlink.store.log import EVENTS

HOME = "https://e.org/"
FACTS = PageFacts(
    title="Home",
    heading="Welcome",
    headings=2,
    robots="noarchive",
    language="en",
    alternates=[("de", "https://e.org/de")],
    canonicals=[HOME],
    insecure=["http://e.org/x.png"],
    nofollow_links=[("https://ads.org/", "Ad", "aside")],
    content_type="text/html",
    size=1234,
    seconds=0.25,
)
LINKS = [
    Link("/a", text="menu", place="nav"),
    Link("/b", text="B", place="main"),
    Link("/a", text="in the text", place="main"),
    "/c",
]


def visited(folder: Path, facts: PageFacts | None = FACTS) -> inlink.Crawl:
    crawl = inlink.Crawl(folder, politeness={"delay": 0})
    crawl.seed([HOME])
    crawl.crawled(crawl.next(1)[0], LINKS, facts=facts)
    return crawl


def events(folder: Path) -> list[Event]:
    return list(Events(np.fromfile(folder / EVENTS, np.uint8)))


texts = st.text(max_size=30)
pairs = st.tuples(texts, texts)
any_facts = st.builds(
    PageFacts,
    title=texts,
    headings=st.integers(0, 5),
    alternates=st.lists(pairs, max_size=3),
    canonicals=st.lists(texts, max_size=3),
    nofollow_links=st.lists(st.tuples(texts, texts, st.sampled_from(["", *PLACES])), max_size=3),
    size=st.integers(0, 1 << 40),
    seconds=st.floats(0, 1e6),
)


@given(any_facts, st.binary(max_size=20))
def test_facts_survive_their_encoding(facts: PageFacts, places: bytes) -> None:
    stored = decode_facts(encode_facts(facts, places))
    assert stored is not None
    assert stored.places == places
    assert stored.facts == facts


def test_long_facts_are_cut_and_say_so() -> None:
    long = "x" * 300
    facts = PageFacts(title=long, nofollow_links=[(f"https://e.org/{k}/{long}", "", "") for k in range(100)])
    encoded = encode_facts(facts)
    stored = decode_facts(encoded)
    assert stored is not None
    assert len(encoded) < MOST_BYTES + 1000
    assert stored.facts.title == long[:LONGEST_TEXT]
    assert stored.facts.nofollow_links == facts.nofollow_links[: len(stored.facts.nofollow_links)] != []
    assert stored.facts.cut
    whole = decode_facts(encode_facts(FACTS))
    assert whole is not None
    assert not whole.facts.cut


def test_lone_surrogates_become_question_marks(tmp_path: Path) -> None:
    odd = PageFacts(title="a\ud800", canonicals=["b\udfff"], nofollow_links=[(HOME, "c\ud800", "")])
    with visited(tmp_path / "c", odd) as crawl:
        page = crawl.page(HOME)
        assert page is not None
        assert page.facts == PageFacts(title="a?", canonicals=["b?"], nofollow_links=[(HOME, "c?", "")])


@given(st.binary(max_size=50))
def test_facts_of_another_form_are_none_and_no_error(payload: bytes) -> None:
    stored = decode_facts(payload)
    assert stored is None or isinstance(stored.facts, PageFacts)


def test_facts_are_shown_by_a_crawl_and_by_its_folder(tmp_path: Path) -> None:
    with visited(tmp_path / "c") as crawl:
        page = crawl.page(HOME)
        assert page is not None
        assert page.facts == FACTS
        target = crawl.page("https://e.org/a")
        assert target is not None
        assert target.facts is None
    with inlink.CrawlView.open(tmp_path / "c") as view:
        page = view.page(HOME)
        assert page is not None
        assert page.facts == FACTS
        header, home, *_ = view.dump("pages", facts=True).text.splitlines()
        assert header.split("\t") == [*PAGE_COLUMNS, *FACT_COLUMNS]
        cells = dict(zip(header.split("\t"), home.split("\t"), strict=True))
        assert cells["title"] == "Home"
        assert cells["headings"] == "2"
        assert cells["alternates"] == "de=https://e.org/de"


def test_raw_links_have_places_and_nofollow_links(tmp_path: Path) -> None:
    with visited(tmp_path / "c") as crawl:
        crawl.crawled("https://e.org/b", redirected_to="https://e.org/end")
        lines = crawl.view.dump("links", raw=True).text.splitlines()
    assert [line.split("\t") for line in lines] == [
        ["from", "to", "url", "anchor", "place", "rel"],
        # The page that redirects stays the target.
        ["0", "1", "https://e.org/a", "in the text", "main", ""],
        ["0", "2", "https://e.org/b", "B", "main", ""],
        ["0", "3", "https://e.org/c", "", "", ""],
        ["0", "", "https://ads.org/", "Ad", "aside", "nofollow"],
    ]


def test_the_facts_of_the_latest_visit_count(tmp_path: Path) -> None:
    with visited(tmp_path / "c") as crawl:
        crawl.crawled(HOME, [], facts=PageFacts(title="New"))
        page = crawl.page(HOME)
        assert page is not None
        assert page.facts == PageFacts(title="New")
        # A visit without facts has none: those of the visit before do not describe it.
        crawl.crawled(HOME, [])
        crawl.crawled("https://e.org/a", [], facts=FACTS)
        page = crawl.page(HOME)
        assert page is not None
        assert page.facts is None


def test_a_crawl_without_facts_opens_as_before(tmp_path: Path) -> None:
    with visited(tmp_path / "c", None) as crawl:
        links = crawl.view.dump("links", raw=True).text.splitlines()
        assert links[1].split("\t") == ["0", "1", "https://e.org/a", "in the text", "", ""]
    assert [event.kind for event in events(tmp_path / "c")] == ["settings", "seed", "lease", "visit"]


def test_pages_of_a_sitemap_are_marked(tmp_path: Path) -> None:
    with visited(tmp_path / "c") as crawl:
        crawl.sitemap([("https://e.org/z", None, None)])
    seeds = [event for event in events(tmp_path / "c") if event.kind == "seed"]
    assert [bool(event.flags & BY_SITEMAP) for event in seeds] == [False, True]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (PageFacts(title=3), "title"),  # type: ignore[arg-type]
        (PageFacts(size=-1), "from 0"),
        (PageFacts(size=1 << 63), "from 0"),
        (PageFacts(seconds=float("nan")), "from 0"),
        (PageFacts(nofollow_links=[("https://e.org/", "", "cellar")]), "cellar"),
        ({"title": "x"}, "PageFacts"),
    ],
)
def test_bad_facts_are_refused_and_change_nothing(tmp_path: Path, facts: object, message: str) -> None:
    with inlink.Crawl(tmp_path / "c") as crawl:
        crawl.seed([HOME])
        with pytest.raises(ParameterError, match=message):
            crawl.crawled(HOME, [], facts=facts)  # type: ignore[arg-type]
        page = crawl.page(HOME)
        assert page is not None
        assert page.state == "discovered"


def test_facts_travel_as_json() -> None:
    answer = Crawled(1, [Link("/a", place="nav")], facts=FACTS)
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Crawled) == answer


@pytest.mark.slow
def test_exports_of_a_crawl_have_the_facts_as_columns(tmp_path: Path) -> None:
    visited(tmp_path / "c").close()
    visited(tmp_path / "without", None).close()
    run = CliRunner().invoke
    for name in ("c", "without"):
        assert (
            run(
                commands, ["-q", "export", str(tmp_path / name), "-o", str(tmp_path / f"{name}.sqlite")]
            ).exit_code
            == 0
        )
    with closing(sqlite3.connect(tmp_path / "c.sqlite")) as connection:
        rows = connection.execute(
            "SELECT title, headings, seconds, alternates FROM nodes ORDER BY id LIMIT 2"
        ).fetchall()
        assert rows == [("Home", 2, 0.25, "de=https://e.org/de"), ("", 0, 0.0, "")]
    with closing(sqlite3.connect(tmp_path / "without.sqlite")) as connection:
        assert "title" not in {row[1] for row in connection.execute("PRAGMA table_info(nodes)")}
    assert (
        run(commands, ["-q", "export", str(tmp_path / "c"), "-o", str(tmp_path / "c.parquet")]).exit_code == 0
    )
    table = pq.read_table(tmp_path / "c.nodes.parquet")
    assert table["heading"].to_pylist()[0] == "Welcome"
    assert table["size"].to_pylist()[0] == 1234
