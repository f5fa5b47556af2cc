"""Requests as data of a crawl: no data if a request has only default attributes, else JSON of bounded size.

JSON has fewer types than Python. Other values are written as objects with one key that begins with ``$``, the tag of
their type, so that they come back unchanged: bytes, tuples, sets, times, items, members of enumerations and others that
Scrapy's own queues on disk keep. A dict with a key that begins with ``$``, or is no string, has a tag too, so data
never look like a tag. A class is found by its name, but no module is imported for that, and no code of the class runs.
:func:`pack` refuses a request with any other value (a function, a response, an open file). Such a request stays in
Scrapy's own queue.
"""

import base64
import dataclasses
import secrets
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PosixPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
from scrapy import Item, Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest
from scrapy.utils.request import request_from_dict

from inlink.crawl.links import MOST_CARRIED
from inlink.protocol import AnyLink, Link, Task
from inlink.scrapy.visits import LEASE, Visit, usable_score

# Keys of meta that are stored elsewhere.
_OURS = frozenset((LEASE, "score", "is_start_request"))
_OURS_AND_DEPTH = _OURS | {"depth"}
# Maximum number of levels of nested values.
_DEEPEST = 20
_DEFAULTS: dict[str, Any] = {
    "method": "GET",
    "body": b"",
    "encoding": "utf-8",
    "priority": 0,
    "dont_filter": False,
    "callback": None,
    "errback": None,
}
_AS_IT_IS = frozenset((str, bool, int, type(None)))
_CLASSES = {f"{one.__module__}.{one.__qualname__}": one for one in (FormRequest, JsonRequest, XmlRpcRequest)}
# The attributes of classes that do not declare them: what scrapy-playwright does on a page.
_PLAIN_OBJECTS = {"scrapy_playwright.page.PageMethod": ["method", "args", "kwargs", "result"]}


class NotPackable(ValueError):  # noqa: N818
    """A request holds a value that cannot be stored."""


def pack(
    request: Request,
    spider: Spider,
    url: str | None,
    referer: str | None = None,
    *,
    depth: int | None = None,
    start: bool = False,
) -> bytes:
    """Encode a request without its URL as JSON; empty if all attributes have their defaults.

    Parameters
    ----------
    request : Request
    spider : Spider
        The callback and the errback are methods of this spider.
    url : str or None
        The URL in the crawl. If the request's own URL differs, it is stored too.
    referer : str or None
        The page on which the request was found. A ``Referer`` with this value is not stored.
    depth : int or None
        The depth in the crawl. A depth with this value is not stored.
    start : bool
        Whether it is a start request. Its ``dont_filter`` is not stored, because each start would fetch it again.

    Raises
    ------
    NotPackable
        If the request has a value that JSON cannot hold, a callback that is not the spider's method, or too much data.
    """
    # The copy is a plain dict, because Scrapy's own class is slow to copy.
    headers: dict[bytes, list[bytes]] = dict.copy(request.headers)
    meta = request.meta
    if referer is not None and headers.get(b"Referer") == [referer.encode("ascii", "replace")]:
        del headers[b"Referer"]
    kept: dict[str, Any] = {}
    for name, default in _DEFAULTS.items():
        value = getattr(request, name)
        if value != default:
            kept[name] = value
    if start:
        kept.pop("dont_filter", None)
    for name in ("callback", "errback"):
        if name in kept:
            kept[name] = _method(request, name, spider)
    if kept.get("callback") == "parse":
        del kept["callback"]
    if headers:
        kept["headers"] = headers
    known = _OURS_AND_DEPTH if meta.get("depth") == depth else _OURS
    if not meta.keys() <= known:
        kept["meta"] = {key: value for key, value in meta.items() if key not in known}
    for name in ("cookies", "flags", "cb_kwargs"):
        if value := getattr(request, name):
            kept[name] = value
    if type(request) is not Request:
        kept |= {
            name: getattr(request, name) for name in request.attributes if name not in Request.attributes
        }
        kept["_class"] = _class_name(type(request))
    if request.url.partition("#")[0] != url or (kept and request.url != url):
        kept["url"] = request.url
    return _encode(kept) if kept else b""


def _method(request: Request, name: str, spider: Spider) -> str:
    function = getattr(request, name)
    known: str = getattr(function, "__name__", "")
    # This is 60 times as fast as a search through all members.
    if getattr(spider, known, None) == function:
        return known
    try:
        found: str = request.to_dict(spider=spider)[name]
    except Exception as error:
        # to_dict() reads all attributes of the spider, and a property may raise anything.
        raise NotPackable(f"its {name} is not a method of the spider: {error}") from None
    return found


def _class_name(kind: type, base: type = Request) -> str:
    name = f"{kind.__module__}.{kind.__qualname__}"
    try:
        found = _class(name, base)
    except ValueError:
        found = None
    if found is not kind:
        raise NotPackable(f"the class {name} cannot be found by its name")
    return name


def _encode(kept: dict[str, Any]) -> bytes:
    try:
        raw = msgspec.json.encode(_plain(kept))
    except Exception as error:
        # Attributes of the project's objects may raise anything.
        raise NotPackable(f"{_place(kept)} cannot be stored: {error}") from None
    if len(raw) > MOST_CARRIED:
        raise NotPackable(
            f"its data take {len(raw):,} bytes, most of them {_place(kept)}: at most {MOST_CARRIED:,} are kept"
        )
    return raw


def _place(kept: dict[str, Any]) -> str:
    """Name the value that cannot be encoded, such as ``meta['item']``; the largest value if all can."""
    largest, place = -1, ""
    for name, values in kept.items():
        for key, value in values.items() if type(values) is dict else [(None, values)]:
            here = name if key is None else f"{name}[{key!r}]"
            try:
                size = len(msgspec.json.encode(_plain({key: value}, 1)))
            except Exception:
                return here
            largest, place = max((largest, place), (size, here))
    return place


def _plain(value: Any, level: int = 0) -> Any:
    """Convert a value to one that JSON can hold."""
    if level > _DEEPEST:
        raise NotPackable(f"values are nested more than {_DEEPEST} deep")
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is float:
        return value if abs(value) < float("inf") else {"$float": repr(value)}
    if kind is list:
        return [_plain(item, level + 1) for item in value]
    if kind is dict and all(type(key) is str and not key.startswith("$") for key in value):
        return {
            key: item if type(item) in _AS_IT_IS else _plain(item, level + 1) for key, item in value.items()
        }
    if kind in _FORMS:
        tag, write, _ = _FORMS[kind]
        return {tag: _plain(write(value), level)}
    if isinstance(value, Enum):
        # A combination of flags has no name.
        if kind.__members__.get(value.name) is not value:
            raise NotPackable(f"{value!r} is no member of its enumeration")
        return {"$enum": [_class_name(kind, Enum), value.name]}
    if isinstance(value, str):
        # The text of each link that a CrawlSpider follows is such a string, of lxml.
        return str.__str__(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields") and not getattr(value, "__dict__", None):
        return {"$namedtuple": [_class_name(kind, tuple), _plain(list(value), level)]}
    return {"$object": _plain(_state(value, kind), level)}


def _fields(kind: type, name: str) -> list[str] | None:
    """Return the names of the attributes that hold an object's data; None if they are not known."""
    if issubclass(kind, Item):
        return ["_values"]
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if hasattr(kind, "__attrs_attrs__"):
        return [field.name for field in kind.__attrs_attrs__]
    return _PLAIN_OBJECTS.get(name)


def _state(value: Any, kind: type) -> list[Any]:
    """Return the name of an object's class, and its attributes."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    fields = _fields(kind, name)
    if fields is None or not getattr(value, "__dict__", {}).keys() <= set(fields):
        raise NotPackable(f"it holds {name}")
    # This fails for subclasses of built-in types, which have data beside their attributes.
    object.__new__(kind)
    return [
        _class_name(kind, object),
        {field: getattr(value, field) for field in fields if hasattr(value, field)},
    ]


def _object(name: str, state: dict[str, Any]) -> Any:
    kind = _class(name, object)
    fields = _fields(kind, name)
    if fields is None or not state.keys() <= set(fields):
        raise ValueError(f"{name} has no such fields")
    # As in pickle, no __init__ runs.
    made = object.__new__(kind)
    for field, value in state.items():
        object.__setattr__(made, field, value)
    return made


def _namedtuple(name: str, values: list[Any]) -> Any:
    kind = _class(name, tuple)
    if len(getattr(kind, "_fields", ())) != len(values):
        raise ValueError(f"{name} has no such fields")
    return tuple.__new__(kind, values)


def _sorted(values: Iterable[Any]) -> list[Any]:
    # The same request has the same bytes in each process.
    return sorted(values, key=repr)


def _pairs(value: dict[Any, Any]) -> list[list[Any]]:
    return [list(pair) for pair in value.items()]


def _moment(value: datetime | time) -> list[Any]:
    return [value.replace(tzinfo=None).isoformat(), value.fold, value.tzinfo]


def _at(kind: Any, parts: list[Any]) -> Any:
    return kind.fromisoformat(parts[0]).replace(fold=parts[1], tzinfo=parts[2])


def _zone(value: ZoneInfo) -> str:
    if value.key is None:
        raise NotPackable("a time zone has no name")
    return value.key


def _spread(make: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda parts: make(*parts)


# For each type: its tag, and how to write and to read it. The value that is read may come from anybody.
_FORMS: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    bytes: (
        "$bytes",
        lambda value: base64.b64encode(value).decode("ascii"),
        partial(base64.b64decode, validate=True),
    ),
    # A number would reserve as many bytes.
    bytearray: ("$bytearray", bytes, lambda raw: bytearray(b"" + raw)),
    tuple: ("$tuple", list, tuple),
    set: ("$set", _sorted, set),
    frozenset: ("$frozenset", _sorted, frozenset),
    dict: ("$dict", _pairs, dict),
    OrderedDict: ("$ordereddict", _pairs, OrderedDict),
    datetime: ("$datetime", _moment, partial(_at, datetime)),
    time: ("$time", _moment, partial(_at, time)),
    date: ("$date", date.isoformat, date.fromisoformat),
    timedelta: (
        "$timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        _spread(timedelta),
    ),
    timezone: ("$timezone", lambda value: list(value.__getinitargs__()), _spread(timezone)),
    ZoneInfo: ("$zoneinfo", _zone, ZoneInfo),
    Decimal: ("$decimal", str, Decimal),
    UUID: ("$uuid", str, UUID),
    PosixPath: ("$path", str, PosixPath),
}
_READERS = {tag: read for tag, _, read in _FORMS.values()} | {
    "$float": float,
    "$enum": lambda parts: _class(parts[0], Enum).__members__[parts[1]],
    "$namedtuple": _spread(_namedtuple),
    "$object": _spread(_object),
}


def unpack(raw: bytes | None, url: str, spider: Spider) -> Request:
    """Decode the request that :func:`pack` encoded.

    Raises
    ------
    NotPackable
        If the data are damaged, or the callback or the class no longer exists. Nothing else is raised.
    """
    if not raw:
        return Request(url)
    try:
        kept = _value(msgspec.json.decode(raw))
        if not isinstance(kept, dict):
            raise TypeError("no object")
        if not str(kept.setdefault("url", url)).startswith(("http://", "https://")):
            raise ValueError("its URL is not http or https")
        if kept.get("_class") is not None:
            kept["_class"] = _class(kept["_class"])
        for name in ("callback", "errback"):
            if str(kept.get(name)).startswith("__"):
                raise ValueError(f"{kept[name]!r} is no callback")
        request = request_from_dict(kept, spider=spider)
        for key in _OURS & request.meta.keys():
            del request.meta[key]
        if not isinstance(request.meta.get("retry_times", 0), int):
            raise TypeError("retry_times is no number")
    except Exception as error:
        # Here Scrapy's code gets data of a file, and may raise anything.
        raise NotPackable(f"the request that was kept cannot be restored: {error}") from None
    return request


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    for tag, item in plain.items():
        if tag.startswith("$"):
            return _READERS[tag](_value(item))
    return {key: _value(item) for key, item in plain.items()}


def _class(name: Any, base: type = Request) -> Any:
    """Find a subclass of ``base`` in Scrapy, or in a module that the project has imported. No module is imported."""
    if name in _CLASSES and base is Request:
        return _CLASSES[name]
    module, _, attribute = str(name).rpartition(".")
    found = getattr(sys.modules.get(module), attribute, None)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(f"no class {name!r} with the base {base.__name__} is imported")
    return found


# The variant of a request with `dont_filter` begins with this text: the same URL is requested once more.
_AGAIN = "again:"


class Converter:
    """Conversion between requests and links or tasks, by the settings of a Scrapy project.

    Parameters
    ----------
    crawler : Crawler
    spider : Spider
        The callbacks of requests are its methods.
    max_retries : int
        The crawl's setting. Requests whose project sets another number carry it in their meta.
    """

    def __init__(self, crawler: Crawler, spider: Spider, max_retries: int) -> None:
        settings = crawler.settings
        self._spider = spider
        self._fingerprinter: Any = crawler.request_fingerprinter
        self._referer = settings.getbool("REFERER_ENABLED")
        self._depth_counts = settings.getint("DEPTH_LIMIT") > 0 or settings.getint("DEPTH_PRIORITY") != 0
        self._max_retries = None if max_retries == settings.getint("RETRY_TIMES") else max_retries

    def link(self, request: Request, parent: Visit | None, start: bool) -> AnyLink:
        """Return a request's URL, its data, and a variant if it differs from other requests to the URL.

        Parameters
        ----------
        request : Request
        parent : Visit or None
            The visit that found the request.
        start : bool
            Whether it may be a start request.

        Raises
        ------
        NotPackable
            If the URL is not http or https, or the request has data that the crawl cannot store.
        """
        url = request.url
        if not url.startswith(("http://", "https://")):
            raise NotPackable("a URL that is not http or https")
        score = usable_score(request.meta.get("score"))
        if score is None and request.priority:
            score = usable_score(request.priority)
        start = start and bool(request.meta.get("is_start_request"))
        variant = self._variant(request, start)
        found_on = parent.response.url.partition("#")[0] if parent and parent.response else None
        depth = request.meta.get("depth")
        if self._depth_counts:
            depth = parent.task.depth + 1 if parent else 0
        carried = pack(request, self._spider, url.partition("#")[0], found_on, depth=depth, start=start)
        if carried or variant:
            return Link(url, score, carried, variant)
        return url if score is None else (url, score)

    def _variant(self, request: Request, start: bool) -> str:
        if request.dont_filter and not start:
            return _AGAIN + secrets.token_hex(8)
        method = request.method
        if method == "GET" and not request.body:
            return ""
        name = method if method.isascii() and method.isalpha() else "other"
        return f"{name[:8]}:{self._fingerprinter.fingerprint(request).hex()[:40]}"

    def target(self, request: Request) -> bytes:
        """Return the data of a request to the target of a redirect.

        Raises
        ------
        NotPackable
            If the crawl cannot store them.
        """
        return pack(request, self._spider, None)

    def canonical(self, task: Task, url: str) -> str | Link:
        """Return a link to the canonical page of a task's page, with the callback and the other data of its request."""
        if not task.carried:
            return url
        try:
            request = unpack(task.carried, url, self._spider).replace(url=url)
            return Link(url, data=pack(request, self._spider, url))
        except NotPackable:
            return url

    def visit(self, task: Task) -> Visit:
        """Return a visit with the request of a task.

        Raises
        ------
        NotPackable
            If the task's data cannot be decoded.
        """
        url, _, variant = task.url.partition("#")
        request = unpack(task.carried, url, self._spider)
        meta = request.meta
        # As in browsers, a page of http does not learn which page of https links to it.
        if self._referer and task.linked_from and task.linked_from[:5] <= url[:5]:
            request.headers.setdefault(b"Referer", task.linked_from.partition("#")[0])
        if task.linked_from is None:
            # Like Scrapy's own start requests, a seed may be off site.
            request.dont_filter = True
        meta.setdefault("depth", task.depth)
        if task.failures:
            meta["retry_times"] = meta.get("retry_times", 0) + task.failures
        if self._max_retries is not None:
            meta.setdefault("max_retry_times", self._max_retries)
        again = variant.startswith(_AGAIN)
        return Visit(task, request, alias=request.url if again else None, form=bool(variant) and not again)
