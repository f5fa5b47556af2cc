"""Nutch's regex-normalize.xml and regex-urlfilter.txt."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import inlink
from inlink import Graph
from inlink.base.strings import Strings
from inlink.cli import commands
from inlink.errors import InputError, ParameterError
from inlink.nutch.fetches import Fetches
from inlink.nutch.urlrules import NutchUrlRules
from inlink.nutch.webgraph import webgraph
from inlink.urls.patterns import NUTCH_LOOPS


def normalizer(folder: Path, *rules: tuple[str, str]) -> Path:
    path = folder / "regex-normalize.xml"
    entries = [
        f"<regex>\n<pattern>{pattern.replace('&', '&amp;').replace('<', '&lt;')}</pattern>\n"
        f"<substitution>{text.replace('&', '&amp;')}</substitution>\n</regex>\n"
        for pattern, text in rules
    ]
    path.write_text(f"<?xml version='1.0'?>\n<regex-normalize>\n{''.join(entries)}</regex-normalize>\n")
    return path


def urlfilter(folder: Path, text: str) -> Path:
    path = folder / "regex-urlfilter.txt"
    path.write_text(text)
    return path


# Of the kinds that Nutch's own file has: session ids, fragments, ampersands, trailing marks, double slashes.
RULES = [
    (r"(?i)(;?\b_?(l|j|bv_)?(sid|sessionid)=.*?)(\?|&|#|$)", "$4"),
    (r"#.*?(\?|&|$)", "$1"),
    (r"\?&", r"\?"),
    (r"&{2,}", "&"),
    (r"[\?&\.]$", ""),
    (r"^file://+", "file:/"),
    (r"(?<!:)/{2,}", "/"),
]


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://a.org/x;JSessionID=1E6F?b=1", "http://a.org/x?b=1"),
        ("http://a.org/x?b=1&_sid=99&c=2", "http://a.org/x?b=1&c=2"),
        ("http://a.org/x?&b=1", "http://a.org/x?b=1"),
        ("http://a.org/x?newsid=7", "http://a.org/x?newsid=7"),
        ("http://a.org/x#top?b=1", "http://a.org/x?b=1"),
        ("http://a.org/x?b=1&&&c=2&", "http://a.org/x?b=1&c=2"),
        ("http://a.org//b///c?", "http://a.org/b/c"),
        ("http:///a.org", "http://a.org"),
        ("file:////b//c", "file:/b/c"),
        (" http://a.org/ ", "http://a.org/"),
    ],
)
def test_rules_replace_in_their_order(tmp_path: Path, url: str, wanted: str):
    assert NutchUrlRules(normalize=normalizer(tmp_path, *RULES))(url) == wanted.encode()


@pytest.mark.parametrize(
    ("substitution", "wanted"),
    [
        ("$1", "ab"),
        ("$12", "ab2"),
        ("$2$1", "cdab"),
        (r"\$1\\", r"$1\ "[:-1]),
        ("", ""),
        ("-$0-", "-abcd-"),
        ("$3", ""),
    ],
)
def test_substitutions_are_java_s(tmp_path: Path, substitution: str, wanted: str):
    rules = NutchUrlRules(normalize=normalizer(tmp_path, ("(ab)(cd)(x)?", substitution)))
    assert rules("<abcd>") == f"<{wanted}>".encode()


@given(st.text("ab/:", max_size=12))
def test_empty_matches_are_replaced_as_java_does(tmp_path_factory, url: str):
    path = normalizer(tmp_path_factory.mktemp("n"), ("a*", "X"))
    # As Java's replaceAll: "baac" becomes "XbXXcX".
    wanted, at = "", 0
    while at <= len(url):
        run = len(url[at:]) - len(url[at:].lstrip("a"))
        wanted += "X" + ("" if run else url[at : at + 1])
        at += run or 1
    assert NutchUrlRules(normalize=path)(url) == wanted.encode()


FILTER = rf"""# as in Nutch's file
-^(?:file|ftp|mailto):
-(?i)\.(?:gif|jpg)$
-[?*!@=]
-{NUTCH_LOOPS}

> www.example.com
-skip
+.
<
> example.org
-.
<
-^https://
+.
"""


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("ftp://a.org/x", False),
        ("http://a.org/x.GIF", False),
        ("http://a.org/?b", False),
        ("http://a.org/a/b/a/c/a/", False),
        ("http://a.org/a/b/a/c/", True),
        ("https://www.example.com/x", True),
        ("https://example.com/x", False),
        ("http://www.example.com/skip", False),
        ("http://example.com/skip", True),
        ("http://deep.example.org/", False),
        ("news:x", True),
    ],
)
def test_the_first_rule_that_fits_decides(tmp_path: Path, url: str, kept: bool):
    assert NutchUrlRules(filter=urlfilter(tmp_path, FILTER))(url) == (url.encode() if kept else None)


def test_urls_that_no_rule_fits_are_dropped(tmp_path: Path):
    rules = NutchUrlRules(filter=urlfilter(tmp_path, "+^http://a\n"))
    assert (rules("http://a.org/"), rules("http://b.org/")) == (b"http://a.org/", None)
    assert NutchUrlRules(filter=urlfilter(tmp_path, ""))("http://a.org/") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("+(?=x)y", "RE2 does not know lookaround"),
        (r"-.*(/.+?)/.*?\1/.*?\1/", "RE2 does not know a backreference"),
        ("-(?>a)", "RE2 does not know an atomic group"),
        ("-a*+", "RE2 does not know a possessive repetition"),
        ("-[a-z&&[^b]]", "an intersection of classes, which RE2 reads differently"),
        ("-[a[bc]]", "a class within a class"),
        ("-(?U)x", "the flag U"),
        ("-(", "not a valid regular expression"),
        ("http://a.org/", "a rule begins with"),
    ],
)
def test_rules_that_cannot_be_used_are_named_one_by_one(tmp_path: Path, text: str, said: str):
    path = urlfilter(tmp_path, f"+a\n{text}\n-[]&]\\[[^]&]\n{text}\n")
    with pytest.raises(InputError) as caught:
        NutchUrlRules(filter=path)
    message = str(caught.value)
    assert message.startswith(f"{path}: 2 rules cannot be used. line 2: ")
    assert message.count(said) == 2
    assert ". line 4: " in message
    assert message.endswith("leave it out of a copy of the file.")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<x/>", "begins with <x> and not with <regex-normalize>"),
        (
            "<regex-normalize>\n<regex><pattern>a</pattern></regex>\n</regex-normalize>",
            "line 2: a regex needs a",
        ),
        ("<regex-normalize>\n<regex>", "line 2: not well-formed XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><regex-normalize/>', "declares an entity"),
        (
            "<regex-normalize><regex><pattern>(a)</pattern><substitution>$2</substitution></regex></regex-normalize>",
            r"line 1: the substitution '\$2' names group 2, and the pattern has 1",
        ),
        (
            "<regex-normalize><regex><pattern>(?&lt;=a)b</pattern><substitution/></regex></regex-normalize>",
            "line 1: .* RE2 does not know lookaround",
        ),
    ],
)
def test_files_for_normalizing_that_cannot_be_used(tmp_path: Path, content: str, said: str):
    path = tmp_path / "regex-normalize.xml"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        NutchUrlRules(normalize=path)
    with pytest.raises(InputError, match="cannot be read"):
        NutchUrlRules(filter=tmp_path / "none")


def test_blocks_of_fetches(tmp_path: Path):
    rules = NutchUrlRules(
        normalize=normalizer(tmp_path, ("#.*", "")), filter=urlfilter(tmp_path, "-gone\n+.\n")
    )
    names = ["p#1", "gone", "q"]
    found = rules.apply(
        Fetches(
            Strings.of(names),
            np.array([1, 2, 3]),
            np.array([0, 3, 4, 6]),
            Strings.of(["a", "gone", "b#x", "c", "gone#", "d"]),
        )
    )
    assert found.sources.to_pylist() == [b"p", b"q"]
    assert (found.times.tolist(), found.offsets.tolist()) == ([1, 3], [0, 2, 3])
    assert found.targets.to_pylist() == [b"a", b"b", b"d"]
    assert (rules.changed, rules.dropped) == (2, 3)


ARCS = [
    ("http://a.example.com/", "http://b.example.org/x?sid=1"),
    ("http://a.example.com/", "http://c.example.net/skip"),
    ("http://a.example.com/?sid=2", "http://d.example.net/"),
]


def test_a_web_graph_by_rules(tmp_path: Path, monkeypatch):
    normalizer(tmp_path, (r"\?sid=.*", ""))
    urlfilter(tmp_path, "-skip\n+.\n")
    Graph.from_arcs(ARCS, into=tmp_path / "links")
    base = ["nutch", "webgraph", str(tmp_path / "links"), "--db", str(tmp_path / "web"), "--replace"]

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(commands, ["-q", *base, *arguments])
        assert done.exit_code == code, done.output
        return done.output

    monkeypatch.delenv("NUTCH_CONF_DIR", raising=False)
    assert "name Nutch's configuration folder with --conf-dir" in run("-normalize", code=2)
    said = run("-normalize", "-filter", "--conf-dir", str(tmp_path))
    assert "URL rules: 2 changed, 1 dropped" in said
    web = Graph.open(tmp_path / "web")
    # Both pages have one URL now, and of equally old fetches the last counts.
    assert web.names[:] == ["http://a.example.com/", "http://d.example.net/"]
    assert web.meta["nutch"]["url_rules"] == [
        str(tmp_path / name) for name in ("regex-normalize.xml", "regex-urlfilter.txt")
    ]
    monkeypatch.setenv("NUTCH_CONF_DIR", str(tmp_path))
    assert "URL rules: 0 changed, 1 dropped" in run("-filter")
    (tmp_path / "other.txt").write_text("+b[.]example\n+^http://a\n")
    run("-filter", "-D", "urlfilter.regex.file=other.txt")
    assert Graph.open(tmp_path / "web").names[:] == ["http://a.example.com/", "http://b.example.org/x?sid=1"]
    hosts, rules = inlink.read(tmp_path / "links", level="host"), NutchUrlRules(filter=tmp_path / "other.txt")
    with pytest.raises(ParameterError, match="URL rules apply to URLs; the names of this graph are hosts"):
        webgraph(hosts, urls=rules)
