from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink.errors import ParameterError
from inlink.frontier.rules import Rules
from inlink.urls.canonical import MAX_LENGTH, canonical

OUTSIDE = "outside the hosts and domains of this crawl"


def test_without_rules_all_is_allowed():
    rules = Rules()
    assert not rules
    assert rules.verdict("http://example.org/", 10**6) is None
    for some in (
        Rules(allow=["x"]),
        Rules(deny=["x"]),
        Rules(max_depth=0),
        Rules(hosts=[]),
        Rules(domains=["a.com"]),
    ):
        assert some


@pytest.mark.parametrize(
    ("rules", "url", "verdict"),
    [
        (Rules(allow=["/blog/"]), "http://a.com/blog/1", None),
        (Rules(allow=["/blog/"]), "http://a.com/shop", "allowed by no rule"),
        (Rules(allow="/blog/"), "http://a.com/blog/1", None),
        (Rules(allow=["^http://a", "shop$"]), "http://b.com/shop", None),
        (Rules(deny=["/shop", r"\.png$"]), "http://a.com/x.png", r"denied by \.png$"),
        (Rules(deny=["/shop", r"\.png$"]), "http://a.com/x.png?y", None),
        (Rules(allow=["a"], deny=["a"]), "http://a.com/", "denied by a"),
        (Rules(deny=["host:a.com"]), "https://a.com:8080/x", "denied by host:a.com"),
        (Rules(deny=["host:a.com"]), "http://www.a.com/", None),
        (Rules(deny=["host:a.com"]), "http://b.com/host:a.com", None),
        (Rules(deny=["domain:a.com"]), "http://x.y.a.com./", "denied by domain:a.com"),
        (Rules(deny=["domain:a.com"]), "http://a.com/", "denied by domain:a.com"),
        (Rules(deny=["domain:a.com"]), "http://ba.com/", None),
        (Rules(deny=["domain:com"]), "http://ba.com/", "denied by domain:com"),
        (Rules(allow=["domain:a.com", "/ok"]), "http://b.com/ok", None),
        (Rules(allow=["domain:a.com", "/ok"]), "http://b.com/no", "allowed by no rule"),
        (
            Rules(deny=["host:BÜCHER.example"]),
            "http://xn--bcher-kva.example/",
            "denied by host:xn--bcher-kva.example",
        ),
        (Rules(deny=["host:[::1]"]), "http://[::1]:81/", "denied by host:[::1]"),
        (Rules(deny=["host:[::1]"]), "http://[::1]/", "denied by host:[::1]"),
        (Rules(deny=["host:0x7f.1"]), "http://127.0.0.1/", "denied by host:127.0.0.1"),
        (Rules(deny=["host:localhost"]), "http://localhost:8000/", "denied by host:localhost"),
        (Rules(hosts=["a.com"]), "http://a.com:81/", None),
        (Rules(hosts="a.com"), "http://a.com/", None),
        (Rules(hosts=["a.com"]), "http://www.a.com/", OUTSIDE),
        (Rules(hosts=[]), "http://a.com/", OUTSIDE),
        (Rules(domains=["a.com"]), "http://www.a.com/", None),
        (Rules(domains=["A.com."]), "http://www.a.com/", None),
        (Rules(domains=["www.a.com"]), "http://a.com/", OUTSIDE),
        (Rules(domains=["a.com"], hosts=["www.b.com"]), "http://www.b.com/", None),
        (Rules(domains=["a.com"], hosts=["www.b.com"]), "http://b.com/", OUTSIDE),
        (Rules(domains=["a.com"], deny=["domain:x.a.com"]), "http://x.a.com/", "denied by domain:x.a.com"),
        (Rules(deny=["x"]), "http://a.com/" + "y" * (MAX_LENGTH - 12), "longer than 2,048 bytes"),
        (Rules(deny=["x"]), "http://a.com/" + "y" * (MAX_LENGTH - 13), None),
    ],
)
def test_verdicts(rules, url, verdict):
    assert rules.verdict(url) == verdict


def test_depth():
    rules = Rules(max_depth=2)
    assert rules.verdict("http://a.com/", 2) is None
    assert rules.verdict("http://a.com/", 3) == "deeper than 2 links from a seed"
    assert Rules(max_depth=0).verdict("http://a.com/", 0) is None
    assert Rules(max_depth=0).verdict("http://a.com/", 1) is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"allow": ["ok", "a(b"]}, r"allow: 'a\(b' is not a valid regular expression"),
        ({"deny": ["*"]}, r"deny: '\*' is not a valid regular expression"),
        ({"deny": [""]}, "deny must be a list of texts that are not empty"),
        ({"deny": [7]}, "deny must be a list of texts that are not empty"),
        ({"deny": ["host:"]}, "deny: '' is not a host name"),
        ({"deny": ["domain:http://a.com"]}, "deny: 'http://a.com' is not a host name"),
        ({"hosts": ["a.com:8080"]}, "hosts: 'a.com:8080' is not a host name"),
        ({"hosts": ["a.com/x"]}, "hosts: 'a.com/x' is not a host name"),
        ({"hosts": ["u@a.com"]}, "hosts: 'u@a.com' is not a host name"),
        ({"domains": ["a b"]}, "domains: 'a b' is not a host name"),
        ({"domains": ["*.a.com"]}, r"domains: '\*.a.com' is not a host name"),
        ({"max_depth": -1}, "max_depth must be a whole number"),
        ({"max_depth": 1.5}, "max_depth must be a whole number"),
        ({"max_depth": True}, "max_depth must be a whole number"),
    ],
)
def test_invalid_rules_are_refused_by_name(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Rules(**arguments)


def test_rules_are_kept_as_plain_values():
    rules = Rules(allow=["a"], deny=["host:B.com"], max_depth=3, hosts=["A.com"], domains=None)
    rules.verdict("http://a.com/")
    kept = asdict(rules)
    assert kept == {
        "allow": ("a",),
        "deny": ("host:B.com",),
        "max_depth": 3,
        "hosts": ("a.com",),
        "domains": None,
        "shard": None,
    }
    assert Rules(**kept) == rules
    assert hash(Rules(**kept)) == hash(rules)


labels = st.sampled_from(["a", "b", "com", "org"])
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join)


@given(st.lists(hosts, max_size=4), st.lists(hosts, max_size=4), hosts, st.sampled_from(["", ":81", "."]))
def test_hosts_and_domains_against_a_plain_search(exact, domains, host, tail):
    url = canonical(f"http://{host}{tail}/x")
    expected = host in exact or any(("." + host).endswith("." + name) for name in domains)
    assert (Rules(hosts=exact, domains=domains).verdict(url) is None) == expected
    rules = [f"host:{name}" for name in exact] + [f"domain:{name}" for name in domains]
    assert (Rules(deny=rules).verdict(url) is not None) == expected
    if rules:
        assert (Rules(allow=rules).verdict(url) is None) == expected
