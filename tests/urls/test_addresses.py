"""The rules for addresses that a crawl connects to; ``inlink crawl`` and Scrapy projects keep to them."""

import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from crawlcommand import Done, forked
from inlink.cli import commands
from inlink.crawl.folder import look
from inlink.errors import ParameterError
from inlink.urls.addresses import AddressRules
from inlink.urls.canonical import canonical
from inlink.urls.hosts import host_of
from sites import Answer, Site, html, moved

# -- the rules --------------------------------------------------------------------------------------------------------

_NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.0.1 169.254.169.254
172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1
224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 :: ::1 fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd12:3456::1 ff02::1
2001:db8::1 2001::1 3fff::1 100::1 64:ff9b:1::1 ::ffff:127.0.0.1 ::ffff:a00:1 ::ffff:169.254.169.254
::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::7f00:1 2002:a00:1:: 2002:7f00:1::1 5f00::1 4000::1 e000::1
"""
NOT_PUBLIC = _NOT_PUBLIC.split()
_PUBLIC = """
1.1.1.1 9.255.255.255 11.0.0.1 93.184.215.14 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 169.253.0.1
172.15.0.1 172.32.0.1 192.167.0.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:2800:21f:cb07:6820:80da:af6b:8b2c
2a00:1450:4001::1 ::ffff:1.1.1.1 64:ff9b::1.1.1.1 2002:101:101::1
"""
PUBLIC = _PUBLIC.split()


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address):
    assert AddressRules().refusal(address) == f"address not allowed: {address}"
    assert AddressRules(private=True).refusal(address) is None


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed_unless_it_is_denied(address):
    assert AddressRules().refusal(address) is None
    assert AddressRules(deny=[address]).refusal(address) == f"address not allowed: {address}"


# Whether Python calls these networks private depends on its version. inlink checks the IPv4 address that they contain.
WITH_IPV4_ADDRESS = [ipaddress.ip_network(text) for text in ("64:ff9b::/96", "2002::/16", "::ffff:0:0/96")]


@given(st.ip_addresses())
@example(ipaddress.ip_address("2002:100::"))
def test_pythons_own_registry_agrees(address):
    """Addresses that Python's ipaddress calls private, link-local or reserved are refused."""
    private = address.is_private or address.is_link_local or address.is_reserved or address.is_multicast
    if private and not any(address in network for network in WITH_IPV4_ADDRESS):
        assert AddressRules().refusal(str(address)) is not None


def test_networks_in_and_out():
    rules = AddressRules(allow=["10.1.0.0/16", "fd00::/8", " [::1] "], deny=["10.1.7.0/24", "8.8.8.8"])
    assert [rules.refusal(one) is None for one in ("10.1.2.3", "10.2.2.3", "fd12::1", "::1", "127.0.0.1")] == [
        True, False, True, True, False,
    ]  # fmt: skip
    assert [rules.refusal(one) is None for one in ("10.1.7.1", "8.8.8.8", "8.8.4.4")] == [False, False, True]
    # a denied IPv4 address is denied within IPv6 too, an allowed one allowed
    assert [rules.refusal(f"::ffff:{one}") is None for one in ("8.8.8.8", "10.1.7.1", "10.1.2.3")] == [
        False, False, True,
    ]  # fmt: skip
    assert AddressRules(deny=["2606::/16"]).refusal("2606:2800::1") is not None
    assert bool(AddressRules())
    assert not AddressRules(private=True)
    assert bool(AddressRules(private=True, deny=["10.0.0.1"]))


@pytest.mark.parametrize("text", ["", "example.org", "10.0.0.0/33", "10.0.0.1/8/8", "1.2.3"])
def test_invalid_networks_are_refused(text):
    with pytest.raises(ParameterError, match="give an IP address or a network"):
        AddressRules(allow=[text])
    with pytest.raises(ParameterError, match="give an IP address or a network"):
        AddressRules(deny=[text])


ODD = [
    "http://2130706433/", "http://0x7f.1/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/", "http://0/",
    "http://[::ffff:127.0.0.1]/", "http://[0:0:0:0:0:ffff:7f00:1]/", "http://[::1]/", "http://127.0.0.1./",
    "http://①②⑦.0.0.1/", "http://user@127.0.0.1:80/", "http://[64:ff9b::7f00:1]/", "http://%31%32%37.0.0.1/",
]  # fmt: skip


@pytest.mark.parametrize("url", ODD)
def test_odd_literals_are_the_addresses_that_they_mean(url):
    """The canonical form has the address in its plain form, so the host that is connected to can be judged."""
    from urllib.parse import urlsplit

    form = canonical(url)
    assert form is not None
    assert host_of(form) is None
    host = urlsplit(form).hostname
    assert host is not None
    assert AddressRules().refusal(host.removesuffix(".")) is not None


# -- inlink crawl -----------------------------------------------------------------------------------------------------

# What a name resolves to is changed in the process of the crawl alone: no test asks a name server.
_PATCH = """
import socket
_plain, _asked = socket.gethostbyname, dict()
_names = {names!r}
def gethostbyname(name):
    if name in _names:
        turn = _asked[name] = _asked.get(name, 0) + 1
        return _names[name][min(turn, len(_names[name])) - 1]
    return _plain(name)
socket.gethostbyname = gethostbyname

import inlink.scrapy
from inlink.cli import main
main()
"""


def run(*given: object, cwd: Path, names: dict[str, list[str]] | None = None, **env: str) -> Done:
    """``inlink crawl`` in a process in which names resolve to these addresses, one after the other."""
    (cwd / "patched.py").write_text(_PATCH.format(names=names or {}))
    words = [str(cwd / "patched.py"), "crawl", *map(str, given), "--delay", "0", "--everywhere"]
    with forked(*words, cwd=cwd, **env) as run:
        return Done(words, run.wait(), run.out, run.err)


def pages_of(folder: Path) -> dict[str, tuple[str, str]]:
    """State and error of each page by URL."""
    view = look(folder).pages
    found = [view.page(page) for page in range(view.num_pages)]
    return {one.url: (one.state, one.error or "") for one in found}


@pytest.fixture(scope="module")
def scrapy():
    return pytest.importorskip("scrapy")


@pytest.mark.slow
def test_private_addresses_are_not_fetched_but_the_one_that_was_typed(tmp_path, scrapy):
    """By links, by names, and by redirects; the robots.txt of such a host is not fetched either."""
    with Site({}, hosts=3) as site:
        port, other = site.port, site.url("/x", host=2)
        site.pages = {
            "/": html("/a", other, f"http://evil.test:{port}/e", "/moved", f"http://0x7f.3:{port}/odd", "/hop"),
            "/a": "fine",
            "/x": "never", "/e": "never", "/odd": "never",
            "/moved": moved(other),
            "/hop": moved(f"http://evil.test:{port}/hop2"),
        }  # fmt: skip
        done = run(f"{site.root}/", "-o", "c", cwd=tmp_path, names={"evil.test": ["127.0.0.3"]})
        assert done.returncode == 0, done.stderr
        assert {one.host for one in site.asked} == {"127.0.0.1"}
        told = [line for line in done.stderr.splitlines() if "not a public address" in line]
        assert told == [
            "crawl: info: 127.0.0.1 is not a public address; it is fetched because you gave this URL"
        ]
        found = pages_of(tmp_path / "c")
        assert found[f"{site.root}/a"][0] == "crawled"
        refused = {url: error for url, (state, error) in found.items() if state == "excluded"}
        assert refused == {
            other: "address not allowed: 127.0.0.2",
            f"http://evil.test:{port}/e": "address not allowed: 127.0.0.3",
            f"http://evil.test:{port}/hop2": "address not allowed: 127.0.0.3",
            f"http://127.0.0.3:{port}/odd": "address not allowed: 127.0.0.3",
        }
        assert found[f"{site.root}/moved"][0] == found[f"{site.root}/hop"][0] == "merged"
        assert "address not allowed, see --allow-address (4 URLs), such as 127.0.0." in done.stdout


@pytest.mark.slow
def test_addresses_that_are_allowed_by_name(tmp_path, scrapy):
    with Site({"/x": "x", "/": ""}, hosts=3) as site:
        site.pages["/"] = html(site.url("/x", host=2), site.url("/x", host=3))
        done = run(f"{site.root}/", "-o", "a", "--allow-address", "127.0.0.2", cwd=tmp_path)
        assert {one.host for one in site.asked} == {"127.0.0.1", "127.0.0.2"}
        done = run(
            f"{site.root}/", "-o", "b", "--allow-private", "--deny-address", "127.0.0.2/32", cwd=tmp_path
        )
        assert pages_of(tmp_path / "b")[site.url("/x", host=2)] == (
            "excluded",
            "address not allowed: 127.0.0.2",
        )
        assert pages_of(tmp_path / "b")[site.url("/x", host=3)][0] == "crawled"
        assert "not a public address" not in done.stderr
        before = len(site.asked)
        done = run(
            f"{site.root}/", "-o", "d", "--deny-address", "127.0.0.0/8", cwd=tmp_path
        )  # typed, and denied
        assert pages_of(tmp_path / "d")[f"{site.root}/"] == ("excluded", "address not allowed: 127.0.0.1")
        assert len(site.asked) == before


@pytest.mark.slow
def test_a_name_that_changes_its_address_gains_nothing(tmp_path, scrapy):
    """DNS rebinding: the name was public when it was typed. A name that was typed and is private keeps that address."""
    with Site({"/": html("/a"), "/a": ""}, hosts=2) as site:
        url = f"http://rebind.test:{site.port}/"
        names = {"rebind.test": ["127.0.0.1", "127.0.0.2"]}
        run(url, "-o", "c", cwd=tmp_path, names=names)
        assert {one.host for one in site.asked} == {"127.0.0.1"}
        assert pages_of(tmp_path / "c")[f"{url}a"][0] == "crawled"
        (tmp_path / "s.txt").write_text(url + "\n")
        done = run("--seeds", "s.txt", "-o", "d", cwd=tmp_path, names=names)  # in a file: not typed
        assert done.returncode == 1, done.stderr
        assert pages_of(tmp_path / "d") == {url: ("excluded", "address not allowed: 127.0.0.1")}


def test_a_typed_name_keeps_only_the_address_that_it_had_first(scrapy):
    from inlink.scrapy.addresses import AddressGuard

    guard = AddressGuard(AddressRules(), {"a.test", "b.test"})
    assert guard.refusal("a.test", "10.0.0.1") is None
    assert guard.refusal("a.test", "10.0.0.1") is None
    assert guard.refusal("a.test", "10.0.0.2") == "address not allowed: 10.0.0.2"
    assert guard.refusal("b.test", "8.8.8.8") is None
    assert guard.refusal("b.test", "10.0.0.1") == "address not allowed: 10.0.0.1"
    assert guard.refusal("c.test", "10.0.0.1") == "address not allowed: 10.0.0.1"


@pytest.mark.slow
def test_with_a_proxy_literals_are_checked_and_the_rest_is_told(tmp_path, scrapy):
    """The proxy is a site that answers for all hosts."""

    def proxy(asked):
        if asked.path.endswith("/robots.txt"):
            return Answer("", 404)
        return (
            html("http://10.0.0.1/secret", "http://167772161/also")
            if asked.path.endswith("/start")
            else html()
        )

    with Site(proxy) as site:
        done = run("http://name.test/start", "-o", "c", cwd=tmp_path, http_proxy=site.root)
        assert "crawl: warning: a proxy resolves host names" in done.stderr
        assert done.stderr.count("a proxy resolves") == 1
        assert [one.path for one in site.asked if "robots" not in one.path] == ["http://name.test/start"]
    found = pages_of(tmp_path / "c")
    assert found["http://10.0.0.1/secret"] == ("excluded", "address not allowed: 10.0.0.1")
    assert found["http://name.test/start"][0] == "crawled"


@pytest.mark.parametrize("option", ["--allow-address", "--deny-address"])
def test_a_network_that_is_none_is_refused_before_anything(tmp_path, scrapy, option):
    result = CliRunner().invoke(
        commands, ["crawl", "a.test", "-o", str(tmp_path / "c"), option, "10.0.0.0/99"]
    )
    assert isinstance(result.exception, ParameterError)
    assert "10.0.0.0/99" in str(result.exception)
    assert not (tmp_path / "c").exists()


# -- a Scrapy project -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_project_may_ask_for_the_same(tmp_path, scrapy):
    from spiderruns import Walker, crawl

    with Site({"/": html("/a"), "/a": ""}, hosts=2) as site:
        plain = crawl(Walker, tmp_path / "a", site)
        assert plain.states == {"/": "crawled", "/a": "crawled"}
        site.pages["/"] = html("/a", site.url("/a", host=2))
        kept = crawl(
            Walker, tmp_path / "b", site, INLINK_ALLOW_PRIVATE=False, INLINK_ALLOW_ADDRESSES="127.0.0.1, ::1",
            ROBOTSTXT_OBEY=True,
        )  # fmt: skip
        assert kept.states == {"/": "crawled", "/a": "crawled", site.url("/a", host=2): "excluded"}
        assert kept.stats["inlink/address_not_allowed"] == 1
        denied = crawl(Walker, tmp_path / "c", site, INLINK_DENY_ADDRESSES=["127.0.0.0/8"])
        assert denied.states == {"/": "excluded"}
        wrong = crawl(Walker, tmp_path / "d", site, INLINK_DENY_ADDRESSES="ten")
        assert wrong.reason == "inlink_refused"
        assert wrong.told("ERROR")[0].startswith("'ten' is not a denied address")


class OtherHandler:
    lazy = True

    def __init__(self, crawler=None):
        pass

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    async def download_request(self, request):
        raise AssertionError

    async def close(self):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("handler", ["test_addresses.OtherHandler", "browserhandler.BrowserHandler"])
def test_a_downloader_that_cannot_be_checked_is_refused(handler, tmp_path, scrapy):
    from spiderruns import Walker, crawl

    handlers = {"https": handler}
    with Site({"/": ""}) as site:
        ran = crawl(Walker, tmp_path / "c", site, INLINK_ALLOW_PRIVATE=False, DOWNLOAD_HANDLERS=handlers)
        assert ran.reason == "inlink_refused"
        assert handler.rpartition(".")[2] in ran.told("ERROR")[0]
        assert site.asked == []


@contextmanager
def tls(port_of: list[int]) -> Iterator[list[bytes]]:
    """A socket that notes what is sent to it: nothing, if nobody connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port_of.append(server.getsockname()[1])
        heard: list[bytes] = []

        def listen() -> None:
            try:
                connection, _ = server.accept()
                with connection:
                    heard.append(b"connected")
            except OSError:
                pass

        threading.Thread(target=listen, daemon=True).start()
        yield heard


@pytest.mark.slow
def test_https_and_ipv6_literals_are_refused_before_a_connection_is_made(tmp_path, scrapy):
    port: list[int] = []
    with tls(port) as heard:
        secure = f"https://127.0.0.1:{port[0]}/"
        seeds = [secure, "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[fd00::1]/"]
        (tmp_path / "s.txt").write_text("\n".join(seeds))
        done = run("--seeds", "s.txt", "-o", "c", cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        assert heard == []
    excluded = pages_of(tmp_path / "c")
    assert excluded[secure] == ("excluded", "address not allowed: 127.0.0.1")
    assert {error for _, error in excluded.values()} == {
        f"address not allowed: {address}" for address in ("127.0.0.1", "::1", "::ffff:7f00:1", "fd00::1")
    }
