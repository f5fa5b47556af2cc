from collections import Counter
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inlink.errors import ParameterError
from inlink.urls.canonical import MAX_LENGTH, Base, UrlRules, canonical, refusal
from inlink.urls.columns import domains_of, hosts_of
from inlink.urls.hosts import domain_of, host_of, registered_domain, reverse_host, same_domain, valid_host

# Pieces that URLs are made of, the odd ones more often than in life.
_PIECES = r"""
http HTTPS ftp javascript : / // \ ? # @ :80 :443 .. . %41 %zz example.com EXAMPLE.co.uk www. bücher.de 1.2.3.4 0x7f.1
[::1] localhost a b ü &amp; = user:pw@ _ - ☃ xn--bcher-kva gov.uk github.io mailto:x
"""
pieces = st.sampled_from([*_PIECES.split(), " ", "\t", "\n", "\0"])
made = st.lists(pieces, max_size=9).map("".join)
absolute = st.builds(lambda host, rest: f"http://{host}{rest}", pieces, made)
urls = st.one_of(
    st.text(max_size=20), made, absolute, made.map(lambda rest: f"https://www.example.com/{rest}")
)
base_urls = st.sampled_from(
    ["http://example.com/", "https://www.example.com/dir/page.html?x=1", "http://h.de/a/c?"]
)


@pytest.mark.parametrize(
    ("url", "base", "form"),
    [  # https://url.spec.whatwg.org/#example-url-parsing and its neighbours, where they concern http
        ("https:example.org", None, "https://example.org/"),
        ("https://////example.com///", None, "https://example.com///"),
        ("https://example.com/././foo", None, "https://example.com/foo"),
        ("hello:world", "https://example.com", None),
        ("https:example.org", "https://example.com", "https://example.com/example.org"),
        ("\\example\\..\\demo/.\\", "https://example.com", "https://example.com/demo/"),
        ("example", "https://example.com/demo", "https://example.com/example"),
        ("file:///C|/demo", None, None),
        ("https://user:password@example.org/", None, "https://example.org/"),
        ("https://example.org/foo bar", None, "https://example.org/foo%20bar"),
        ("https://EXAMPLE.com/../x", None, "https://example.com/x"),
        ("https://ex ample.org/", None, None),
        ("example", None, None),
        ("https://example.com:demo", None, None),
        ("http://[www.example.com]/", None, None),
        ("https://example.org//", None, "https://example.org//"),
        ("https://example.com/[]?[]#[]", None, "https://example.com/[]?[]"),
        ("https://example/%?%#%", None, "https://example/%?%"),
        ("https://example/%25?%25#%25", None, "https://example/%25?%25"),
        ("http://foo.com\\@evil.com/", None, "http://foo.com/@evil.com/"),
        ("HTTP://Example.COM:80/a/../b?x=1#f", None, "http://example.com/b?x=1"),
        ("http://example.com:443/", None, "http://example.com:443/"),
        ("  http://example.com/a\tb\n ", None, "http://example.com/ab"),
        ("//other.org/x", "https://example.com/", "https://other.org/x"),
        ("?q=1", "https://example.com/p?x", "https://example.com/p?q=1"),
        ("#top", "https://example.com/p?x", "https://example.com/p?x"),
        ("", "https://example.com/p?x", "https://example.com/p?x"),
        ("http://bücher.example/ü?q=ü", None, "http://xn--bcher-kva.example/%C3%BC?q=%C3%BC"),
        ("http://0x7f.1/", None, "http://127.0.0.1/"),
        ("http://example.com/?", None, "http://example.com/?"),
        ("http://example.com/@home#@", None, "http://example.com/@home"),
        ("http://a@b@example.com/x", None, "http://example.com/x"),
        (b"http://example.com/\xc3\xbc", None, "http://example.com/%C3%BC"),
    ],
)
def test_canonical_form(url, base, form):
    assert canonical(url, base) == form
    assert (refusal(url, base) is None) == (form is not None)


def test_refusals_name_the_reason():
    assert refusal("mailto:a@b.c") == "link is not http"
    assert refusal("httpx://a.com/") == "link is not http"
    assert refusal("http://") == "link is no valid URL"
    assert refusal("page.html") == "link is relative, with nothing to resolve it against"
    assert refusal(b"http://a.com/\xff") == "link is not valid UTF-8"
    assert refusal("http://a.com/\ud800") == "link is not valid UTF-8"
    fits = "http://a.com/" + "x" * (MAX_LENGTH - 13)
    assert canonical(fits) == fits
    assert refusal(fits + "x") == f"link is longer than {MAX_LENGTH:,} bytes"
    assert canonical("http://a.com/#" + "x" * 5000) == "http://a.com/"


@given(urls)
def test_canonical_form_is_its_own(url):
    form = canonical(url)
    if form is not None:
        assert canonical(form) == form
        assert form.isascii()
        assert "#" not in form
        assert len(form) <= MAX_LENGTH


@given(base_urls, st.none() | urls, st.lists(urls, max_size=5))
@example("http://example.com/", None, ["\ud800", "mailto:a", "x#@", "http:/a@b/#c"])
def test_many_links_against_one_base_are_each_resolved(page, href, links):
    base = Base(page, href)
    assert base.url == ((href is not None and canonical(href, page)) or page)
    refused: dict[str, int] = {}
    expected = [canonical(link, base.url) for link in links]
    assert base.canonical_links(links, refused) == [form for form in expected if form is not None]
    assert [base.canonical(link) for link in links] == expected
    assert Counter(refused) == Counter(
        refusal(link, base.url) for link in links if base.canonical(link) is None
    )


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://WWW.Example.com:8080/x", "www.example.com"),
        ("http://user:pw@example.com/", "example.com"),
        ("http://foo.com\\@evil.com/", "foo.com"),
        ("http://example.com./", "example.com"),
        ("http://bücher.de/", "xn--bcher-kva.de"),
        ("http://例え.テスト/", None),
        ("http://a_b.example.com/", "a_b.example.com"),
        ("http://-a.example.com/", None),
        ("http://a..example.com/", None),
        ("http://localhost/", None),
        ("http://127.0.0.1/", None),
        ("http://[::1]/", None),
        ("http://2130706433/", None),
        ("http://example.invalid/", None),
        ("http://example.xn--p1ai/", "example.xn--p1ai"),
        ("http://" + "a" * 64 + ".com/", None),
        ("http://" + ".".join(["a" * 60] * 4) + ".com/", "".join(["a" * 60 + "."] * 4) + "com"),
        ("http://" + ".".join(["a" * 60] * 5) + ".com/", None),
        ("ftp://example.com/", None),
        ("example.com", None),
        ("", None),
    ],
)
def test_host_of_a_url(url, host):
    assert host_of(url) == host


def test_www_is_stripped_where_two_labels_remain():
    assert host_of("http://www.example.com/", strip_www=True) == "example.com"
    assert host_of("http://www.com/", strip_www=True) == "www.com"
    assert host_of("http://www2.example.com/", strip_www=True) == "www2.example.com"
    assert hosts_of(pa.array(["http://www.example.com/"]), strip_www=True).to_pylist() == [b"com.example"]


@pytest.mark.parametrize(
    ("host", "domain", "private"),
    [  # from https://raw.githubusercontent.com/publicsuffix/list/main/tests/test_psl.txt
        ("example.com", "example.com", "example.com"),
        ("b.example.com", "example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk", "example.co.uk"),
        ("com", None, None),
        ("gov.uk", None, None),
        ("b.test.ck", "b.test.ck", "b.test.ck"),
        ("test.ck", None, None),
        ("www.ck", "www.ck", "www.ck"),
        ("www.city.kobe.jp", "city.kobe.jp", "city.kobe.jp"),
        ("a.b.c.kobe.jp", "b.c.kobe.jp", "b.c.kobe.jp"),
        ("xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
        ("a.b.github.io", "github.io", "b.github.io"),
        ("github.io", "github.io", None),
    ],
)
def test_registered_domain(host, domain, private):
    assert registered_domain(host) == domain
    assert registered_domain(host, private=True) == private
    assert registered_domain(host, keep_suffixes=True) == (domain or host)
    assert domain_of(reverse_host(host)) == (domain and reverse_host(domain))


@pytest.mark.parametrize(
    ("first", "other", "same"),
    [
        ("http://a.example.com/1", "https://b.example.com:8443/2", True),
        ("http://a.example.com/", "http://a.example.org/", False),
        ("http://one.co.uk/", "http://two.co.uk/", False),
        ("http://co.uk/", "http://one.co.uk/", False),
        ("http://10.0.0.1/", "http://10.0.0.1:81/", True),
        ("http://10.0.0.1/", "http://10.0.0.2/", False),
    ],
)
def test_same_domain(first, other, same):
    assert same_domain(first, other) == same_domain(other, first) == same


@given(st.lists(st.from_regex(r"[a-z0-9-]{1,5}", fullmatch=True), min_size=1, max_size=5).map(".".join))
def test_reversing_twice_gives_the_host(host):
    assert reverse_host(reverse_host(host)) == host
    assert reverse_host(host).split(".") == host.split(".")[::-1]


@given(st.lists(st.none() | urls, max_size=12))
@example(
    [
        "http://a.com /x",
        "http://a.com ",
        "\thttp://a.com",
        "http://a.com\n",
        "http:a.com",
        "http://a.com:80:80/",
    ]
)
@example(
    [
        "http://é.com/é",
        None,
        "HTTP://a.com",
        "http:///a.com/",
        "http://u@a.com/@",
        "http://a.com?http://b.com/",
    ]
)
def test_hosts_of_many_are_the_hosts_of_each(names):
    expected = [None if name is None else host_of(name) for name in names]
    expected = [None if host is None else reverse_host(host).encode() for host in expected]
    for kind in (pa.string(), pa.large_string(), pa.large_binary()):
        raw = [n.encode() if n is not None and kind == pa.large_binary() else n for n in names]
        found = hosts_of(pa.array(raw, kind))
        assert found.to_pylist() == expected


def test_hosts_of_names_that_are_no_text():
    names = pa.array([b"\xff\xfe", b"http://a.com/\xff", b"http://\xff.com/", b""], pa.binary())
    assert hosts_of(names).to_pylist() == [None, b"com.a", None, None]
    sliced = pa.array(["http://a.com/", "http://b.com/", "http://c.com/"]).slice(1, 1)
    assert hosts_of(sliced).to_pylist() == [b"com.b"]
    assert hosts_of(pa.array([], pa.string())).to_pylist() == []


@given(
    st.lists(
        st.none() | st.sampled_from(["com.a", "com.a.www", "uk.gov", "uk.gov.x", "io.github.b.c", "com", "☃"])
    )
)
def test_domains_of_many_are_the_domains_of_each(hosts):
    for private in (False, True):
        for keep in (False, True):
            found = domains_of(pa.array(hosts, pa.string()), private=private, keep_suffixes=keep)
            expected = [
                None if h is None else domain_of(h, private=private, keep_suffixes=keep) for h in hosts
            ]
            assert found.to_pylist() == [None if d is None else d.encode() for d in expected]


@given(urls)
def test_hosts_of_canonical_urls_are_valid(url):
    host = host_of(url)
    if host is not None:
        assert valid_host(host)
        assert host_of(f"http://{host}/") == host
        assert registered_domain(host, keep_suffixes=True) is not None


@pytest.mark.parametrize(("file", "count", "without", "different"), [
    ("gr0.Harbour", 600, 86, 14),
    # without a host: "http:faq/faq.html", "http://docs", addresses
    ("graphs/gr0.California", 9664, 75, 5813),
])  # fmt: skip
def test_names_of_graphs(data, file, count, without, different):
    lines = data(file).read_text("latin-1").splitlines()
    names = [line.split(" ", 2)[2] for line in lines if line.startswith("n ")]
    hosts = hosts_of(pa.array(names)).to_pylist()
    assert len(names) == count
    assert hosts.count(None) == without
    assert len(set(hosts) - {None}) == different
    for name, host in zip(names, hosts, strict=True):
        if host is not None:
            assert reverse_host(host.decode()) == urlsplit(name.replace("\\", "/")).hostname.rstrip(".")


SESSIONS = UrlRules(drop_session_ids=True)
SORTED = UrlRules(sort_query=True)


@pytest.mark.parametrize(
    ("query", "rules", "form"),
    [
        ("?b=2&a=1", SORTED, "?a=1&b=2"),
        ("?b=2&a=2&b=1&a=1", SORTED, "?a=2&a=1&b=2&b=1"),
        ("?b&a=&c=&&a", SORTED, "?&a=&a&b&c="),
        ("?ab=1&a=2&a-=3", SORTED, "?a=2&a-=3&ab=1"),
        ("?", SORTED, "?"),
        ("?x=1&PHPSESSID=8f&y=2", SESSIONS, "?x=1&y=2"),
        ("?b=1&a=2&Sid=9", SESSIONS, "?b=1&a=2"),
        ("?sid=9", SESSIONS, ""),
        ("?sid", SESSIONS, ""),
        ("?side=9&insid=1&x=sid", SESSIONS, "?side=9&insid=1&x=sid"),
        ("?ASPSESSIONIDQQCB=A&CFID=1&CFTOKEN=2&sessionid=3&session_id=4&z", SESSIONS, "?z"),
        (";jsessionid=0A1B.node1?q=1", SESSIONS, "?q=1"),
        (";JSESSIONID=1/b;jsessionid=2;v=3/c", SESSIONS, "/b;v=3/c"),
        (";jsess;jsessionid=1ionid=2", SESSIONS, ";jsess"),
        ("/..;jsessionid=1/c", SESSIONS, "c"),  # a/.. : the dots that are left are resolved
        ("?q=;jsessionid=1", SESSIONS, "?q=;jsessionid=1"),
        ("?utm_source=a&b=1&utm_medium=c", UrlRules(drop_parameters=("utm_*",)), "?b=1"),
        ("?utm=a&utm_=b&UTM_X=c", UrlRules(drop_parameters=["utm_*"]), "?utm=a&UTM_X=c"),
        ("?ref=a&refer=b", UrlRules(drop_parameters=("ref",)), "?refer=b"),
        ("?a=1&b", UrlRules(drop_parameters=("*",)), ""),
        ("?utm_x=1&sid=2&b=3&a=4", UrlRules(True, True, ("utm_*",)), "?a=4&b=3"),
        ("?b=2&a=1;jsessionid=3", UrlRules(), "?b=2&a=1;jsessionid=3"),
    ],
)
def test_rules_beyond_the_standard(query, rules, form):
    url, page = f"http://example.com/a{query}", "http://example.com/"
    expected = f"http://example.com/{form}" if form == "c" else f"http://example.com/a{form}"
    assert canonical(url, rules=rules) == expected
    assert Base(page, rules=rules).canonical(f"/a{query}") == expected
    assert Base(page, rules=rules).canonical_links([f"a{query}"] * 2, {}) == [expected] * 2
    assert canonical(url) == url  # without rules nothing of this happens


def test_rules_come_before_the_length():
    long = "http://a.com/?x=1&sid=" + "9" * MAX_LENGTH
    assert refusal(long) is not None
    assert canonical(long, rules=SESSIONS) == "http://a.com/?x=1"
    assert refusal(long, rules=SESSIONS) is None
    assert Base("http://a.com/", rules=SESSIONS).canonical_links([long], {}) == ["http://a.com/?x=1"]


@pytest.mark.parametrize("wrong", ["utm_*", ("a*b",), ("",), ("a&b",), ("a=",), ("**",), (1,)])
def test_names_that_are_none_are_refused(wrong):
    with pytest.raises(ParameterError, match="drop_parameters"):
        UrlRules(drop_parameters=wrong)


parameters = st.sampled_from(
    ["a", "a=1", "b=", "", "=", "sid=1", "PhpSessId", "utm_x=2", ";jsessionid=1", "?", "a=b=c", "é", "%61=1"]
)
segments = st.sampled_from(["a", "..", ".", ";jsessionid=2", "..;jsessionid=", "a;jsessionid=1;x", "%2e", ""])
any_rules = st.builds(
    UrlRules, st.booleans(), st.booleans(), st.lists(st.sampled_from(["utm_*", "a", "b", "*"]), max_size=2)
)


@given(st.lists(segments, max_size=5), st.lists(parameters, max_size=6), any_rules, urls)
def test_canonical_form_under_rules_is_its_own(path, query, rules, other):
    for url in ("http://h.com/" + "/".join(path) + "?" + "&".join(query), other):
        form = canonical(url, rules=rules)
        plain = canonical(url)
        if form is None:
            assert plain is None
            continue
        assert canonical(form, rules=rules) == form
        assert canonical(form) == form
        assert Base("http://h.com/", rules=rules).canonical(url) == canonical(url, "http://h.com/", rules)
        if plain is not None and not rules.drop_session_ids and not rules.drop_parameters:
            assert Counter(form.partition("?")[2].split("&")) == Counter(plain.partition("?")[2].split("&"))
            assert form.partition("?")[0] == plain.partition("?")[0]
