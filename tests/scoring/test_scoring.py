"""Words, scorers and their choice; reading pages and classifiers have files of their own."""

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink.errors import InputError, ParameterError
from inlink.scoring.choose import content_scorer, link_scorer
from inlink.scoring.content import BM25, Keywords
from inlink.scoring.links import LinkScorer
from inlink.scoring.reading import read_page
from inlink.scoring.words import topic_words, words

URL = "https://example.org/dir/page"


def page(text="", title="", url=URL):
    return read_page(f"<title>{title}</title><body>{text}".encode(), url, charset="utf-8")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It's snake_case, B-tree; v17.2!", "it s snake case b tree v17 2"),
        ("Straße ΣΊΣΥΦΟΣ ﬁne", "strasse σίσυφοσ fine"),
        ("cafe\u0301 café", "café café"),
        ("Daten\u00adbank x\u200by \u2764\ufe0f \u0301a", "datenbank x y a"),
        ("हिन्दी में", "हिन्दी में"),
        ("한국어 단어", "한국어 단어"),
        ("PostgreSQL数据库17", "postgresql 数据 据库 17"),
        ("水 と データ・ベース", "水 と デー ータ ベー ース"),
        ("ภาษา ๑๒", "ภา าษ ษา ๑๒"),
        ("ＡＢ½ x²", "ab1 2 x2"),
        (" ...\n", ""),
    ],
)
def test_words(text, found):
    assert words(text) == found.split()


@given(st.text(max_size=60), st.text(max_size=60))
def test_words_are_words(one, other):
    found = words(one)
    assert all(word and word == word.strip("_") and not word.isspace() for word in found)
    assert words(f"{one} - {other}") == found + words(other)
    assert all(
        words(word) == [word] for word in found if word[0].isalnum()
    )  # a pair may begin with a Thai vowel's mark
    assert words(one.upper().lower()) == words(one.upper())


# Texts of ASCII and of characters that only separate words take another way than others.
@given(
    st.text(
        alphabet=st.characters(max_codepoint=127) | st.sampled_from("\u00a0§©«®·»‐–—‗‘’‚“”‟†•…←↓"),
        max_size=60,
    )
)
def test_the_short_way_of_ascii_is_the_long_one(text):
    assert words(text) == words(text + " é")[:-1]


def test_topics_have_words():
    assert topic_words("Postgres, replication of postgres") == ["postgres", "replication", "of"]
    for topic in ("", "...", None, 3, b"x", ["postgres"]):
        with pytest.raises(ParameterError, match="topic"):
            topic_words(topic)


def test_keywords_by_hand():
    text = "Cod here; cod there. Peer-to-peer and peer to. peer"
    assert Keywords(["cod"])(page(text)) == 2 / 7
    assert Keywords(["cod"])(page(text, "The Cod")) == 3 / 8
    assert Keywords(["peer to peer"])(page(text)) == 2 / 7  # a full stop is no word
    assert Keywords({"cod": 2, "peer": 0.5})(page(text)) == 6 / 11
    assert Keywords({"cod": 1, "peer": -1})(page(text)) == 0.0
    assert Keywords(["cod liver"])(page("liver oil", "of cod")) == 0.0  # not from the title into the text
    assert Keywords(iter(["haddock"]))(page(text)) == 0.0
    assert Keywords(["数据库"])(page("关系数据库和数据库")) == 2 / 7


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=30),
    st.dictionaries(
        st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3).map(" ".join),
        st.floats(-3, 3),
        min_size=1,
    ),
)
def test_keywords_are_counted_as_they_stand(text, weights):
    plain = f" {' '.join(text)} "
    total = sum(
        weight * sum(plain.startswith(f" {phrase} ", place) for place in range(len(plain)))
        for phrase, weight in weights.items()
    )
    score = Keywords(weights)(page(plain))
    assert score == pytest.approx(max(total, 0) / (max(total, 0) + 5), abs=1e-12)


@pytest.mark.parametrize(
    "keywords",
    [
        "postgres",
        b"x",
        3,
        None,
        [],
        {},
        [""],
        ["++"],
        [3],
        {"a": "b"},
        {"a": math.nan},
        {"a": math.inf},
        {"a": True},
    ]
    + [["Cod", "cod"], ["cod", "cod"], [["cod"]], {"a": 10**400}],
)
def test_keywords_that_are_none(keywords):
    with pytest.raises(ParameterError, match="keywords: "):
        Keywords(keywords)


def bm25(topic, title, text, before):
    """The formula as it stands in books, (k₁ + 1) included, over a collection of whole documents."""
    k1, b = 1.2, 0.75
    documents = [t * 3 + x for t, x in before if t or x]
    document = title * 3 + text
    pages = 100 + len(documents)
    mean = (100 * 500 + sum(len(one) for one in documents)) / pages
    score = limit = 0.0
    for word in dict.fromkeys(topic):
        holding = 10 + sum(word in one for one in documents)
        idf = math.log(1 + (pages - holding + 0.5) / (holding + 0.5))
        f = document.count(word)
        score += idf * f * (k1 + 1) / (f + k1 * (1 - b + b * len(document) / mean))
        limit += idf * (k1 + 1)
    return score / limit


some_words = st.lists(st.sampled_from("abcdef"), max_size=12)


@given(
    st.lists(st.sampled_from("abcx"), min_size=1, max_size=4),
    st.lists(st.tuples(some_words, some_words), max_size=8),
)
def test_bm25_against_the_formula(topic, pages):
    scorer = BM25(" ".join(topic))
    for place, (title, text) in enumerate(pages):
        score = scorer(page(" ".join(text), " ".join(title)))
        assert 0 <= score < 1
        expected = bm25(topic, title, text, pages[:place]) if title or text else 0.0
        assert score == pytest.approx(expected, rel=1e-12)


def test_bm25_orders_pages_as_it_should():
    def score(text, title=""):
        return BM25("postgres replication")(page(text, title))

    assert score("postgres replication") > score("postgres postgres") > score("cod") == 0
    assert score("how it works", "postgres") > score("postgres how it works") > score("postgres" + " x" * 500)
    assert score("postgres " * 100_000) < 1
    assert score("") == 0

    learnt = BM25("the kelp")
    assert learnt(page("the")) == learnt.__class__("the kelp")(page("kelp"))
    for _ in range(200):
        learnt(page("the sea"))
    assert learnt(page("kelp")) > 2 * learnt(page("the"))


def link_scores(html, topic="postgres replication", page_score=0.0, url=URL):
    return LinkScorer(topic)(read_page(html.encode(), url), page_score)


@pytest.mark.parametrize(
    ("html", "page_score", "score"),
    [
        ("<a href=x>cod</a>", 0, 0),
        ("<a href=x>cod</a>", 0.8, 0.5 * 0.5 * 0.8),
        ("<a href=x>Postgres</a>", 0, 0.5 * (0.8 * 0.5 + 0.2)),
        ("<a href=x>Replication in Postgres</a>", 1, 0.5 * 0.5 + 0.5),
        ("postgres: <a href=x>here</a>", 0, 0.5 * 0.2 * 0.5),
        ("<a href=x><img src=i alt='postgres replication'></a>", 0, 0.5),
        ("<a href=/postgres/%72eplication.html>here</a>", 0, 0.5),
        ("<a href='x?q=postgres'>replication</a>", 0, 0.5),
        ("<a href=//postgres.example/>here</a>", 0, 0.5 * (0.8 * 0.5 + 0.2)),
        ("<a href=x>postgres</a>", 7, 0.5 * 0.5 + 0.5 * (0.8 * 0.5 + 0.2)),
        ("<a href=x>postgres</a>", -7, 0.5 * (0.8 * 0.5 + 0.2)),
        ("<a href=x>postgres</a>", math.nan, 0.5 * (0.8 * 0.5 + 0.2)),
    ],
)
def test_shark_search_by_hand(html, page_score, score):
    assert link_scores(html, page_score=page_score) == pytest.approx([score])


def test_the_host_counts_where_it_tells_links_apart():
    html = "<a href=/x>here</a><a href=https://postgres.example/x>here</a>"
    own = link_scores(html, url="https://postgres.example/")
    assert own == [0, 0]
    assert link_scores(html, url="https://example.org/") == [0, pytest.approx(0.3)]


@given(
    st.lists(
        st.sampled_from(
            ["<a href=/postgres>", "<a href=x>", "</a>", "postgres ", "replication ", "<p>", "cod "]
        ),
        max_size=30,
    ).map("".join),
    st.floats(),
)
def test_link_scores_are_shares_one_for_each_link(html, page_score):
    reading = page(html)
    scores = LinkScorer("postgres replication")(reading, page_score)
    assert len(scores) == len(reading.links)
    assert all(0 <= score <= 1 for score in scores)


def a_scorer(reading):
    return 0.25


class AScorer:
    def __call__(self, reading, page_score=0.0):
        return 0.75


NOT_CALLABLE = 3


def test_scorers_by_what_settings_say():
    assert content_scorer(None) is None
    assert link_scorer(None) is None
    for choose in (content_scorer, link_scorer):
        assert choose(a_scorer) is a_scorer
        assert choose(f"{__name__}.a_scorer") is a_scorer
        assert isinstance(choose(f"{__name__}.AScorer"), AScorer)
        assert isinstance(choose(AScorer), AScorer)
    assert isinstance(content_scorer({"topic": "cod"}), BM25)
    assert content_scorer({"keywords": ["cod"]})(page("cod")) == 1 / 6
    assert content_scorer({"keywords": {"cod": 5}})(page("cod")) == 1 / 2
    assert isinstance(link_scorer({"topic": "cod"}), LinkScorer)


@pytest.mark.parametrize(
    "spec",
    [
        3,
        [],
        (),
        {},
        "",
        "cod",
        "no.such.module",
        ".x",
        "os.",
        "os.path.no_such_name",
        "import os; os.x",
        b"os.path",
    ]
    + [{"topics": "cod"}, {"topic": "cod", "keywords": ["cod"]}, {"positive": 1}, {3: 4}],
)
def test_wrong_specs_are_told_what_may_be_given(spec):
    for choose in (content_scorer, link_scorer):
        with pytest.raises(ParameterError) as caught:
            choose(spec)
        assert "{'topic': 'some words'}" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 700


@pytest.mark.slow
def test_wrong_parts_of_specs():
    for spec in (
        {"topic": ""},
        {"topic": 3},
        {"keywords": "cod"},
        {"classifier": 3},
        f"{__name__}.NOT_CALLABLE",
    ):
        with pytest.raises(ParameterError):
            content_scorer(spec)
    with pytest.raises(ParameterError):
        link_scorer({"keywords": ["cod"]})
    with pytest.raises(InputError):
        content_scorer({"classifier": "/no/such/file"})


def test_a_classifiers_libraries_are_imported_with_it_only():
    script = "import sys, inlink.scoring.choose; assert not {'numba', 'scipy', 'sklearn', 'skops'} & set(sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
