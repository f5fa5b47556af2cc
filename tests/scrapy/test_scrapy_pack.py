"""Requests as bytes: what goes in comes out, what cannot be kept is refused, and hostile bytes do no harm."""

import dataclasses
import io
import json
import struct
import sys
from collections import OrderedDict, defaultdict
from datetime import UTC, datetime, time, timedelta, timezone
from enum import Enum, Flag, StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from scrapy import Field, FormRequest, Item, Request, Spider
from scrapy.http import JsonRequest, XmlRpcRequest
from scrapy.http.request import NO_CALLBACK

from inlink.crawl.links import MOST_CARRIED
from inlink.scrapy.requests import _READERS, NotPackable, pack, unpack
from inlink.scrapy.visits import LEASE

URL = "http://example.org/"


class OwnRequest(Request):
    attributes: tuple[str, ...] = (*Request.attributes, "extra")

    def __init__(self, *args: Any, extra: Any = None, **kwargs: Any) -> None:
        self.extra = extra
        super().__init__(*args, **kwargs)


class Some(Spider):
    name = "some"

    def parse(self, response: Any) -> None:
        pass

    def other(self, response: Any) -> None:
        pass

    def failed(self, failure: Any) -> None:
        pass

    @staticmethod
    def plain(response: Any) -> None:
        pass


class Touchy(Some):
    @property
    def dear(self) -> Any:
        raise RuntimeError("looked at")


class Colour(StrEnum):
    RED = "red"


class Kind(Enum):
    ONE, OTHER = (1, 2), {"a": 3}


class Rights(Flag):
    READ, WRITE = 1, 2


class Offer(Item):
    name = Field()
    price = Field()


class Place(NamedTuple):
    x: Any
    y: Any = 0


@dataclasses.dataclass(frozen=True)
class Shop:
    name: Any
    offers: Any = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.name != "never"


@attrs.define
class Street:
    name: Any
    number: Any = 1


SPIDER, TOUCHY = Some(), Touchy()
ZONES = st.sampled_from(
    [None, UTC, timezone(timedelta(hours=-3, seconds=7)), timezone(timedelta(1 / 24), "CET")]
    + [ZoneInfo("Europe/Berlin")]
)
# What can also be an item of a set or a key of a dict.
HASHABLE = st.one_of(
    st.datetimes(timezones=ZONES),
    st.times(timezones=ZONES),
    st.dates(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
    st.uuids(),
    st.sampled_from([Path("/a/b"), Path("c"), Colour.RED, Kind.ONE, Kind.OTHER, Rights.WRITE]),
    ZONES,
    st.builds(Place, st.integers(0, 3), st.text("ab$", max_size=2)),
)
LEAVES = st.one_of(
    HASHABLE,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    st.binary(max_size=9),
)
KEYS = st.one_of(
    st.text(st.sampled_from("ab$_"), max_size=4),
    st.sampled_from(["$set", "$dict", "$bytes", "$object"]),
    st.integers(0, 9),
    st.binary(max_size=3),
    HASHABLE,
    st.tuples(st.integers(0, 3), st.frozensets(HASHABLE, max_size=2)),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3).map(OrderedDict),
        st.sets(KEYS, max_size=3),
        st.frozensets(KEYS, max_size=3),
        st.binary(max_size=3).map(bytearray),
        st.builds(Offer, name=inner, price=inner),
        st.builds(Shop, inner, inner),
        st.builds(Street, inner),
        st.builds(Place, inner, inner),
    ),
    max_leaves=12,
)
META = st.dictionaries(st.text("abc$_", min_size=1, max_size=5), VALUES, max_size=3)
REQUESTS = st.fixed_dictionaries(
    {"url": st.sampled_from([URL, URL + "a?b=1", URL + "#top", "https://example.org/%7e"])},
    optional={
        "method": st.sampled_from(["GET", "POST", "HEAD", "PURGE"]),
        "body": st.binary(max_size=20),
        "headers": st.dictionaries(
            st.sampled_from(["A", "X-B", "Cookie"]), st.text("abc é", max_size=5) | st.binary(max_size=4)
        ),
        "cookies": st.dictionaries(st.text("ab", min_size=1, max_size=2), st.text("xy", max_size=3)),
        "meta": META,
        "cb_kwargs": META,
        "flags": st.lists(st.text("ab", max_size=3), max_size=2),
        "priority": st.integers(-1000, 1000),
        "dont_filter": st.booleans(),
        "encoding": st.sampled_from(["utf-8", "latin-1"]),
        "callback": st.sampled_from([SPIDER.parse, SPIDER.other, SPIDER.plain]),
        "errback": st.just(SPIDER.failed),
    },
)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types throughout."""
    if type(one) is not type(other):
        return False
    if isinstance(one, set | frozenset):
        return one == other and sorted(map(kinds, one)) == sorted(map(kinds, other))
    if isinstance(one, Item | Shop | Street):
        fields = ("_values",) if isinstance(one, Item) else ("name", "offers", "number")
        return all(same(getattr(one, name, None), getattr(other, name, None)) for name in fields)
    if isinstance(one, datetime | time | timezone):
        return one == other and kinds(one) == kinds(other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            same(*pair)
            for pairs in zip(one.items(), other.items(), strict=True)
            for pair in zip(*pairs, strict=True)
        )
    return bool(one == other)


def kinds(value: Any) -> str:
    """A value with its types, as text; in a set, equal values may differ in type."""
    zone = getattr(value, "tzinfo", None)
    return f"{type(value)} {value!r} {getattr(value, 'fold', None)} {type(zone)} {zone!r}"


def as_data(request: Request) -> dict[str, Any]:
    found = {name: getattr(request, name) for name in request.attributes}
    found["headers"] = dict(request.headers)
    return {**found, "callback": None if request.callback == SPIDER.parse else request.callback}


@given(REQUESTS, st.sampled_from([Request, FormRequest, OwnRequest]))
def test_a_packed_request_is_unpacked_unchanged(given_, kind):
    request = kind(**given_)
    url = request.url.partition("#")[0]
    raw = pack(request, SPIDER, url)
    again, usual = unpack(raw, url, SPIDER), as_data(Request(request.url))
    assert type(again) is kind
    if kind is Request and as_data(request) == usual:
        assert raw == b""  # and then a fragment does not count
        request = Request(url)
    assert same(as_data(again), as_data(request))


@given(REQUESTS)
def test_data_that_the_crawl_knows_are_not_kept(given_):
    request = Request(**{**given_, "meta": {"depth": 3, "score": 0.5, LEASE: 7, **given_.get("meta", {})}})
    request.headers[b"Referer"] = b"http://example.org/from"
    lean = Request(**given_)
    raw = pack(request, SPIDER, request.url, "http://example.org/from", depth=3)
    assert raw == pack(lean, SPIDER, lean.url)


def test_depth_is_kept_where_the_crawl_counts_otherwise():
    request = Request(URL, meta={"depth": 3})
    assert pack(request, SPIDER, URL, depth=3) == b""
    assert unpack(pack(request, SPIDER, URL, depth=4), URL, SPIDER).meta == {"depth": 3}


def test_a_url_that_the_crawl_writes_otherwise_is_kept():
    request = Request("http://example.org/?b=1&a=2#part", cb_kwargs={"k": 1})
    again = unpack(
        pack(request, SPIDER, "http://example.org/?a=2&b=1"), "http://example.org/?a=2&b=1", SPIDER
    )
    assert again.url == request.url


@pytest.mark.parametrize(
    "request_",
    [
        JsonRequest(URL, data={"a": [1, None]}),
        XmlRpcRequest(URL, methodname="call", params=(1, "two")),
        FormRequest(URL, formdata={"a": "é", "b": ["1", "2"]}),
        OwnRequest(URL, extra=(1, {2: b"3"})),
        Request(URL, cookies=[{"name": "a", "value": "1", "domain": "example.org"}]),
        Request(URL, headers={"Many": ["a", "b"]}),
        Request(URL, cb_kwargs={"x": float("inf"), "y": -float("inf")}),
    ],
    ids=repr,
)
def test_other_requests(request_):
    again = unpack(pack(request_, SPIDER, URL), URL, SPIDER)
    assert type(again) is type(request_)
    assert same(as_data(again), as_data(request_))


def test_text_of_lxml_is_text():
    """A CrawlSpider's requests have the link's text in their meta, as lxml gives it."""
    text = etree.fromstring("<a>so <b>it</b> is</a>").xpath("string()")
    assert type(text) is not str
    again = unpack(pack(Request(URL, meta={"link_text": text, text: 1}), SPIDER, URL), URL, SPIDER)
    assert same(again.meta, {"link_text": "so it is", "so it is": 1})


def test_not_a_number_comes_back_as_none_other():
    again = unpack(pack(Request(URL, meta={"x": float("nan")}), SPIDER, URL), URL, SPIDER)
    assert again.meta["x"] != again.meta["x"]


class Hidden:
    class Inner(Request):
        pass


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def local_class() -> type[Request]:
    class Local(Request):
        pass

    return Local


def test_what_the_add_ons_put_into_requests(monkeypatch):
    """scrapy-zyte-api: a set of names of headers; scrapy-playwright: methods of a page; scrapy-splash: dicts."""
    module: Any = ModuleType("scrapy_playwright.page")

    class PageMethod:
        def __init__(self, method: Any, *args: Any, **kwargs: Any) -> None:
            self.method, self.args, self.kwargs, self.result = method, args, kwargs, None

    PageMethod.__module__, PageMethod.__qualname__ = module.__name__, "PageMethod"
    module.PageMethod = PageMethod
    monkeypatch.setitem(sys.modules, "scrapy_playwright.page", module)
    meta = {
        "_pre_mw_headers": {b"accept", b"user-agent"},
        "zyte_api_automap": {"browserHtml": True, "actions": [{"action": "scrollBottom"}]},
        "splash": {"args": {"wait": 0.5, "headers": {b"A": [b"b"]}}, "slot_policy": "per_domain"},
    }
    request = Request(URL, meta={**meta, "playwright_page_methods": [PageMethod("click", "a", delay=3)]})
    again = unpack(pack(request, SPIDER, URL), URL, SPIDER).meta
    (method,) = again.pop("playwright_page_methods")
    assert same(again, meta)
    assert type(method) is PageMethod
    assert same(vars(method), {"method": "click", "args": ("a",), "kwargs": {"delay": 3}, "result": None})
    with pytest.raises(NotPackable, match=r"meta\['do'\].*builtins.function|function"):
        pack(Request(URL, meta={"do": PageMethod(lambda page: None)}), SPIDER, URL)


def test_a_set_has_the_same_bytes_in_each_process():
    names = [f"header-{k}".encode() for k in range(40)]
    packed = {
        pack(Request(URL, meta={"names": set(order), "kinds": frozenset(order)}), SPIDER, URL)
        for order in (names, names[::-1])
    }
    assert len(packed) == 1
    assert msgspec.json.decode(packed.pop())["meta"]["names"]["$set"][0] == {"$bytes": "aGVhZGVyLTA="}


def test_requests_stored_by_earlier_versions_are_read():
    raw = b'{"meta":{"t":{"$tuple":[1,{"$bytes":"YQ=="}]},"f":{"$float":"inf"},'
    raw += b'"d":{"$dict":[[1,{"$dict":[["$a",2]]}]]}}}'
    meta = unpack(raw, URL, SPIDER).meta
    assert same(meta, {"t": (1, b"a"), "f": float("inf"), "d": {1: {"$a": 2}}})


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (
            {"meta": {"fine": 1, "item": object()}},
            r"meta\['item'\] cannot be stored: it holds builtins.object",
        ),
        ({"cb_kwargs": {"do": [print]}}, r"cb_kwargs\['do'\] cannot be stored: it holds"),
        ({"callback": print}, "its callback is not a method of the spider"),
        ({"meta": {"a": "x" * MOST_CARRIED}, "flags": ["b"]}, r"most of them meta\['a'\]: at most 65,536"),
        ({"body": b"x" * MOST_CARRIED}, "most of them body: at most"),
        ({"meta": {"deep": [[0] for _ in range(3)], "deeper": {"a": {0: [()]}}}}, None),
    ],
    ids=["object", "function", "callback", "meta", "body", "kept"],
)
def test_the_message_names_the_value_that_cannot_be_kept(given_, message):
    request = Request(URL, **given_)
    if message is None:
        assert same(unpack(pack(request, SPIDER, URL), URL, SPIDER).meta, request.meta)
        return
    with pytest.raises(NotPackable, match=message):
        pack(request, SPIDER, URL)


@dataclasses.dataclass
class Listed(list):  # type: ignore[type-arg]
    name: str


def more(shop: Shop) -> Shop:
    object.__setattr__(shop, "undeclared", 1)
    return shop


def local_object() -> Any:
    return dataclasses.make_dataclass("Local", ["x"])(1)


# A time zone that is known by its file only.
NAMELESS = ZoneInfo.from_file(
    io.BytesIO(b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + bytes(6) + b"UTC\0")
)


def test_a_spider_that_does_not_like_to_be_looked_at():
    assert (
        unpack(pack(Request(URL, callback=TOUCHY.other), TOUCHY, URL), URL, TOUCHY).callback == TOUCHY.other
    )
    with pytest.raises(NotPackable):
        pack(Request(URL, callback=print), TOUCHY, URL)


@pytest.mark.parametrize(
    "request_",
    [
        Request(URL, callback=lambda response: None),
        Request(URL, errback=print),
        Request(URL, callback=NO_CALLBACK),
        Request(URL, meta={"item": object()}),
        Request(URL, meta={"set": {1, print}}),
        Request(URL, meta={"rights": Rights.READ | Rights.WRITE}),
        Request(URL, meta={"kind": float}),
        Request(URL, meta={"default": defaultdict(list)}),
        Request(URL, meta={"zone": NAMELESS}),
        Request(URL, meta={"list": Listed("a")}),
        Request(URL, meta={"more": more(Shop("a"))}),
        Request(URL, meta={"local": local_object()}),
        Request(URL, cb_kwargs={"x": "y" * MOST_CARRIED}),
        Request(URL, method="POST", body=b"x" * MOST_CARRIED),
        Request(URL, meta={"deep": nested(500)}),
        Request(URL, meta={"bad": "\ud800"}),
        Request(URL, meta={"big": 10**5000}),
        local_class()(URL),
        Hidden.Inner(URL),
    ],
    ids=lambda one: f"{type(one).__name__}",
)
def test_requests_that_cannot_be_kept_are_refused(request_):
    with pytest.raises(NotPackable):
        pack(request_, SPIDER, URL)


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.just("1e400"))
    | st.sampled_from(
        ["scrapy.Item", "test_scrapy_pack.Offer", "test_scrapy_pack.Kind", "2020-01-01", "UTC"]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*_READERS, "a"]), inner, max_size=2)
    ),
    max_leaves=8,
)
NAMES = ["callback", "errback", "url", "method", "headers", "body", "cookies", "meta", "encoding", "priority"]
NAMES += ["dont_filter", "flags", "cb_kwargs", "_class", "dumps_kwargs"]


@given(
    st.one_of(
        st.binary(max_size=60),
        JUNK.map(json.dumps).map(str.encode),
        st.dictionaries(
            st.sampled_from(NAMES),
            st.one_of(
                JUNK,
                st.sampled_from(
                    [
                        "parse",
                        "dear",
                        "logger",
                        "__class__",
                        "name",
                        "file:///etc/passwd",
                        "hex",
                        "scrapy.Request",
                    ]
                    + [
                        "scrapy.http.request.json_request.JsonRequest",
                        "os.system",
                        "antigravity.Request",
                        ".",
                    ]
                ),
            ),
            max_size=4,
        )
        .map(json.dumps)
        .map(str.encode),
    )
)
def test_hostile_bytes(raw):
    """Any data give a request of the web whose callbacks are callable, or NotPackable; and nothing is imported."""
    before = set(sys.modules)
    try:
        request = unpack(raw, URL, TOUCHY)
    except NotPackable:
        pass
    else:
        assert isinstance(request, Request)
        assert request.url.startswith(("http://", "https://"))
        assert not request.meta.keys() & {LEASE, "score", "is_start_request"}
    assert set(sys.modules) - before <= {"stringprep", "encodings.idna"} | {
        name for name in sys.modules if name.startswith("encodings.")
    }


@pytest.mark.parametrize(
    "raw",
    [
        b'{"callback":"gone"}',
        b'{"callback":"dear"}',
        b'{"callback":"name"}',
        b'{"callback":"__class__"}',
        b'{"callback":["parse"]}',
        b'{"_class":"antigravity.Request"}',
        b'{"_class":"scrapy.Spider"}',
        b'{"_class":7}',
        b'{"url":"file:///etc/passwd"}',
        b'{"url":"data:,x"}',
        b'{"url":{"$bytes":"aHR0cDovLw=="}}',
        b'{"meta":{"$float":1' + b"0" * 400 + b"}}",
        b'{"meta":{"$dict":[[[],1]]}}',
        b'{"meta":{"$bytes":"?"}}',
        b'{"meta":{"$set":[[1]]}}',
        b'{"meta":{"x":{"$later":1}}}',
        b'{"meta":{"x":{"$bytearray":1000000000000000}}}',
        b'{"meta":{"x":{"$fraction":["1e1000000000"]}}}',
        b'{"meta":{"x":{"$zoneinfo":"../../etc/passwd"}}}',
        b'{"meta":{"x":{"$object":["subprocess.Popen",{}]}}}',
        b'{"meta":{"x":{"$object":["antigravity.X",{}]}}}',
        b'{"meta":{"x":{"$object":["test_scrapy_pack.Shop",{"__class__":1}]}}}',
        b'{"meta":{"x":{"$namedtuple":["builtins.tuple",[1]]}}}',
        b'{"meta":{"x":{"$enum":["test_scrapy_pack.Kind","__class__"]}}}',
        b'{"priority":"high"}',
        b'{"encoding":"no such"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[]",
        b"null",
        b"\xff",
    ],
    ids=lambda raw: raw[:40].decode("latin-1"),
)
def test_data_that_are_no_request_are_refused(raw):
    with pytest.raises(NotPackable, match="cannot be restored"):
        unpack(raw, URL, TOUCHY)
    assert "antigravity" not in sys.modules
