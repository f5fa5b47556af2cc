"""Regular expressions of users: linear time, one meaning, and refusals that say what to do."""

import re
import signal
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inlink.base.strings import Strings
from inlink.errors import MissingExtraError, ParameterError
from inlink.frontier.revisit import RevisitRules
from inlink.frontier.rules import Rules
from inlink.urls import matching
from inlink.urls.canonical import MAX_LENGTH, canonical
from inlink.urls.patterns import (
    _SIMPLE,
    LONGEST,
    MOST_INSTRUCTIONS,
    NUTCH_LOOPS,
    compiled,
    repeats_segments,
)


@pytest.mark.parametrize(
    "text", [r"(a+)+$", r"(a|a)*$", r"(a|aa)+$", r"(.*a){25}$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(x+x+)+y"]
)
def test_expressions_that_take_python_for_ever_take_no_time(text):
    """Each of these would take longer than the universe is old with an engine that backtracks."""
    url = "http://example.org/" + ("ax" * 1000)[: MAX_LENGTH - 20] + "!"
    rules = Rules(deny=[text])
    signal.alarm(60)  # an engine that backtracks never comes back, and only a signal ends it
    try:
        for _ in range(100):
            rules.verdict(url)
    finally:
        signal.alarm(0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"(a)\1", "a backreference; of these only Nutch's rule"),
        (r"(?P<n>a)(?P=n)", "a backreference"),
        (r"/a(?=/b)", "lookaround; give two rules instead, one in `allow` and one in `deny`"),
        (r"/a(?!/b)", "lookaround"),
        (r"(?<=/)a", "lookaround"),
        (r"(?<!/)a", "lookaround"),
        (r"(?>a+)b", "an atomic group; write (?:…)"),
        (r"a++b", "a possessive repetition; drop its +"),
        (r"a*+b", "a possessive repetition"),
        (r"a?+b", "a possessive repetition"),
        (r"(a)?(?(1)b|c)", "a condition; give a rule for each"),
        (r"(?#note)a", "a comment; leave it out"),
        (r"(?x) a b", "a group or flag that RE2 does not know"),
        (r"(?a)\w", "a group or flag that RE2 does not know"),
        (r"a\Z", r"\Z; write $ or \z"),
        (r"\u0061", r"an escape \u; write \x{…}"),
        (r"a{1001}", "a repetition of more than 1,000 times; repeat less often"),
        (r"a{,3}", "{,n}; write {0,n}"),
        (r"(", "missing )"),
        (r"*a", "no argument for repetition operator"),
        ("\udc80", "not valid Unicode"),
    ],
)
def test_expressions_that_re2_does_not_know_are_refused_by_name(text, said):
    with pytest.raises(ParameterError) as caught:
        Rules(deny=[text])
    message = str(caught.value)
    assert message.startswith(f"deny: {text!r} is not a valid regular expression: ")
    assert said in message
    assert "\n" not in message


def test_an_expression_is_bounded():
    with pytest.raises(ParameterError, match=f"longer than {LONGEST:,} bytes: split it into several"):
        Rules(deny=["a|" * LONGEST])
    with pytest.raises(ParameterError, match=f"at most {MOST_INSTRUCTIONS:,}"):
        Rules(allow=["(a|b)*a" + "(a|b){900}" * 5 + "c"])
    with pytest.raises(ParameterError, match=r"revisit_rules: the regular expression .* is too large"):
        RevisitRules(["(a|b)*a" + "(a|b){900}" * 5 + "c 1"])
    # the slowest expression known below the bound takes a fraction of a second for a long URL
    text = "|".join(f"(a|b)*a(a|b){{{i}}}c" for i in range(30, 52))
    slow = compiled(text)
    url = "http://a.com/" + "ab" * 900
    assert not any(slow.found_in(url + "b" * i) for i in range(20))


@pytest.mark.parametrize(r"text", [r"a[{,3}]", r"a\{,3}", r"a\Q{,3}\E", r"x{2,}", r"[]{,3}]"])
def test_braces_that_repeat_nothing_are_no_repetition(text):
    compiled(text)


# The subset that both engines know.
_ATOMS = r"a b / . \. [ab] [^/] \w \d \b ^ $ (?:a|b/) (a) [a-c] \W \?"
_atoms = st.sampled_from(_ATOMS.split())
_counts = st.sampled_from(["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?"])
_parts = st.tuples(_atoms, _counts).map(
    lambda pair: pair[0] + (pair[1] if pair[0] not in ("^", "$", r"\b") else "")
)
_texts = st.lists(_parts, min_size=1, max_size=6).map("".join)
_patterns = st.tuples(
    st.sampled_from(["", "(?i)"]), st.lists(_texts, min_size=1, max_size=3).map("|".join)
).map("".join)
_urls = st.text("abAB/.?_1", max_size=20).map(lambda path: canonical("http://a.com/" + path) or "")


@given(_patterns, _urls)
def test_expressions_mean_the_same_to_both_engines_in_a_url(pattern, url):
    assert compiled(pattern).found_in(url) == bool(re.search(pattern, url))
    assert compiled(pattern).begins(url) == bool(re.match(pattern, url))


# -- Nutch's rule against loops ---------------------------------------------------------------------------------------

LOOPS = re.compile(NUTCH_LOOPS)


@given(st.lists(st.sampled_from(["a", "b", "", "ab", "a?b"]), max_size=12), st.booleans())
@example(["a", "b", "a", "b", "a"], True)
@example(["a", "b", "a", "b", "a"], False)
@example(["a", "", "a", "b", "a", "b"], True)
def test_nutchs_rule_by_hand_is_what_python_says(parts, slash):
    url = "http://h/" + "/".join(parts) + "/" * slash
    assert repeats_segments(url) == bool(LOOPS.search(url))


@given(st.text("ab/", max_size=24))
def test_nutchs_rule_by_hand_on_any_text(text):
    assert repeats_segments(text) == bool(LOOPS.search(text))


@pytest.mark.parametrize("sign", ["", "-"])
def test_nutchs_rule_is_known_in_deny_as_it_stands_in_nutchs_file(sign):
    rules = Rules(deny=[sign + NUTCH_LOOPS])
    assert rules.verdict("http://a.com/x/y/x/y/x/") == f"denied by {NUTCH_LOOPS}"
    assert rules.verdict("http://a.com/x/y/x/y/") is None


def test_the_sign_of_nutchs_file_means_deny_and_nothing_else():
    with pytest.raises(ParameterError, match="backreference"):
        Rules(allow=["-" + NUTCH_LOOPS])
    assert Rules(allow=[NUTCH_LOOPS]).verdict("http://a.com/x/y/x/y/x/") is None


def test_nutchs_rule_is_linear():
    url = "http://a.com/" + "a/" * 500_000
    assert not repeats_segments(url.replace("a/a/", "a//"))
    assert repeats_segments(url)


def test_a_rule_for_intervals_knows_it_too():
    rules = RevisitRules([f"{NUTCH_LOOPS} 7200", "https?://a[.] 3600"])
    assert rules.of("http://a.com/x/y/x/y/x/").most == 7200
    assert rules.of("http://a.com/x/").most == 3600


def test_a_search_knows_it_too(tmp_path):
    from inlink import Crawl

    with Crawl(tmp_path / "c") as crawl:
        crawl.seed(["http://a.com/x/y/x/y/x/", "http://a.com/x/"])
        found = crawl.view.find(NUTCH_LOOPS)
        assert [row.url for row in found.rows] == ["http://a.com/x/y/x/y/x/"]
        with pytest.raises(ParameterError, match="lookaround"):
            crawl.view.find("a(?=b)")


@pytest.fixture
def without_re2(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    monkeypatch.setattr(matching, "re2", None)
    compiled.cache_clear()
    yield
    compiled.cache_clear()


ATOMS = ["a", ".", "/", "[a-c/]", "[^a]", r"\.", r"\d", r"\b", "^", "$", "[.?*]", "(?:a|/b)", "(|b)", "|"]


@given(st.lists(st.sampled_from(ATOMS), max_size=6).map("".join), st.text("abc/.?1\x7f", max_size=12))
def test_simple_expressions_mean_the_same_without_re2(text, url):
    wanted = compiled(text)
    if not _SIMPLE.fullmatch(text):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "re2", None)
        simple = compiled.__wrapped__(text)
    assert isinstance(simple.program, re.Pattern)
    assert (simple.found_in(url), simple.begins(url)) == (wanted.found_in(url), wanted.begins(url))


@pytest.mark.parametrize(
    "text", ["a+", "a*b", "a?", "a{2}", "(a|b)(c)", "(?i)a", r"\pL", "[[:alpha:]]", r"\Qa\E", "é"]
)
def test_without_re2_other_expressions_are_refused_in_one_line(text, without_re2):
    with pytest.raises(
        MissingExtraError, match=r"^rules, line 3: the regular expression '.*' needs re2: pip install"
    ):
        compiled(text, "rules, line 3")


def test_a_simple_expression_that_is_wrong_is_refused_without_re2(without_re2):
    with pytest.raises(
        ParameterError, match=r"'.z-a.' is not a valid regular expression: bad character range"
    ):
        compiled("[z-a]")


@pytest.mark.parametrize(
    ("kind", "expression", "rows"),
    [
        ("glob", "a[*]?c", [0]),
        ("glob", "*b*", [0, 1, 2]),
        ("text", "A[", [0]),
        ("text", "XYZ", [2]),
        ("regex", "^(a|b)", [0, 1]),
        ("regex", NUTCH_LOOPS, [2]),
    ],
)
def test_names_are_searched_without_re2(kind, expression, rows, without_re2):
    names = Strings.of([b"a[b]bc", b"b\xff\xc3\xa9", b"/xyz/b/xyz/a/xyz/"])
    assert matching.matcher(expression, kind)(names).tolist() == rows


def test_a_pattern_takes_no_time_without_re2(without_re2):
    assert matching.matcher("*a" * 30 + "b", "glob")(Strings.of([b"a" * 2000])).tolist() == []
