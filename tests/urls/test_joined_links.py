"""The loop that joins links with their page's URL gives what the parser gives, or leaves the link to the parser."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inlink.urls.canonical import MAX_LENGTH, NOT_HTTP, Base, canonical
from inlink.urls.classes import byte_classes
from inlink.urls.kernels import AS_THEY_ARE, FULL, KEEP_PLACES, MANY_LINES, NEEDS_BASE, join_lines

_STARTS = """
http:// https:// HTTP:// ftp:// http:/ http: https: // / ? # ./ ../ ../../ mailto: javascript: data: file:/// ws://
http:/// \\\\ /\\ a:b x:// tel: about: 1a: a+b: http://user@
"""
_HOSTS = """
a.com example.org www.x.co.uk A.com 1.2.3.4 1.2 0x7f.1 a..b xn--bcher-kva.de xn--a bücher.de u@a.com a.com:80 a.com:443
a.com:8080 a.com: [::1] a_b.com -a.com a-.com a.1 a.0x1 localhost %61.com a.com. a 127 a。com a.com:99999 1a a.1a a~b
"""
_PIECES = "/ / a b.html . .. ... %2e %2E%2e .%2e % %zz %41 ü 中 a'b < ` { | ^ ~ @ ! & ; = : \\ ? # [ _ - /./ /../ // "
_WORDS = (
    "index.html about news a-b 2024 p.php?id=7 x?a=1&b=%20 über q#top ~user (c) ../up ./here /root ?s=1 #here"
)
STARTS, HOSTS, PIECES = _STARTS.split(), _HOSTS.split(), _PIECES.split()
PIECES += [*" \t\r\x00\x7f", "\x80", "😀", "\xa0", "\u200b", "x" * 700]
HREFS = st.one_of(
    st.builds(
        str.__add__,
        st.sampled_from(["", *STARTS]),
        st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
    ),
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(STARTS),
        st.sampled_from(HOSTS),
        st.sampled_from(["", "/", "?", "#", "\\"]),
        st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
    ),
    st.text(max_size=12),
)
BASES = HREFS.map(lambda href: canonical(href, "https://example.org/folder/page?q=1")).filter(bool)


def joined(
    hrefs: list[str], base: str, options: int = 0, size: int = 1 << 20
) -> tuple[int, list[str], list[int], int]:
    """The answer, form of each link ("" for none), links that must be parsed, and number of foreign links."""
    text = np.frombuffer("\n".join(hrefs).encode(), np.uint8)
    lines, odd = np.empty(size, np.uint8), np.empty(len(hrefs), np.uint32)
    source = np.frombuffer(base.encode(), np.uint8)
    odds, used, foreign = join_lines(text, source, options, byte_classes(), lines, odd, len(hrefs))
    return odds, lines[:used].tobytes().decode().split("\n")[:-1], odd[: max(odds, 0)].tolist(), foreign


def check(hrefs: list[str], base: str, self_links: bool) -> int:
    """Compare links with the parser's; return the number of those that are left to the parser."""
    odds, forms, odd, foreign = joined(hrefs, base, KEEP_PLACES * self_links)
    assert (odds, len(forms)) == (len(odd), len(hrefs))
    parser, refused = Base(base, self_links=self_links), dict[str, int]()
    for place, (href, form) in enumerate(zip(hrefs, forms, strict=True)):
        if place not in odd:
            assert form == (parser.forms([href], refused)[0] or ""), (href, base)
    assert refused == ({NOT_HTTP: foreign} if foreign else {})
    return odds


@settings(max_examples=1500, deadline=None)
@given(st.lists(HREFS.filter(lambda href: "\n" not in href), min_size=1, max_size=6), BASES, st.booleans())
def test_joined_links_are_those_of_the_parser(hrefs, base, self_links):
    check([*hrefs, base, f"{base}#x", "", "#top"], base, self_links)


def test_ten_thousand_ordinary_links_need_no_parser():
    rng = random.Random(1)
    words = _WORDS.split()
    for _ in range(100):
        hrefs = ["/".join(rng.choices(words, k=rng.randrange(1, 4))) for _ in range(70)]
        hrefs = [
            href.replace("/../", "/").replace("/./", "/").replace("/#", "#").replace("//", "/")
            for href in hrefs
        ]
        hrefs += [
            f"{rng.choice(['https:', 'http:', ''])}//{rng.choice(['a.com', 'www.b.org'])}/{href.lstrip('./')}"
            for href in hrefs[:30]
        ]
        assert check(hrefs, "https://www.example.org/one/two/three.html?q", False) <= 25


@pytest.mark.parametrize(
    "base",
    [
        "http://a.com/",
        "https://a.com:8080/x/y",
        "http://[::1]/?",
        f"http://a.com/{'y/' * 1000}",
        "http://1.2.3.4/a?b/c",
    ],
)
def test_the_length_of_a_form_is_bounded(base):
    hrefs = ["x" * length for length in (10, 1900, 2030, 2035, 2047, 2048, 3000)]
    check(
        [*hrefs, *(f"/{href}" for href in hrefs), *(f"http://b.com/{href}ü" for href in hrefs)], base, False
    )
    assert all(len(form) <= MAX_LENGTH for form in joined(hrefs, base)[1])


def test_a_page_with_a_variant_keeps_links_to_its_places():
    assert joined(["#top", "", "?q", "x"], "http://a.com/b#POST:1") == (
        0,
        ["http://a.com/b", "http://a.com/b", "http://a.com/b?q", "http://a.com/x"],
        [],
        0,
    )


def test_what_stops_the_loop():
    assert joined(["http://a.com/", "/b"], "")[0] == NEEDS_BASE
    assert joined(["http://a.com/#b"], "")[0] == NEEDS_BASE
    assert joined(["http://a.com/#b"], "", KEEP_PLACES)[:2] == (0, ["http://a.com/"])
    assert joined(["http://a.com/"], "", size=4096)[0] == FULL
    text, base = np.frombuffer(b"a\nb", np.uint8), np.frombuffer(b"http://a.com/", np.uint8)
    lines, odd = np.empty(1 << 16, np.uint8), np.empty(9, np.uint32)
    for count in (1, 3):
        assert join_lines(text, base, 0, byte_classes(), lines, odd, count)[0] == MANY_LINES


@pytest.mark.parametrize(
    "href",
    [
        "/a",
        "",
        "http://A.com/",
        "http://a.com",
        "http://a.com/#b",
        "http://a.com/ü",
        "mailto:x",
        "http://a.com/../",
    ],
)
def test_links_that_are_not_canonical_are_odd(href):
    assert joined(["http://a.com/", href, "https://a.com/b?c"], "", AS_THEY_ARE)[2] == [1]
