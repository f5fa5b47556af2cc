"""Requests as data of a crawl: no data if a request has only default attributes, else JSON of bounded size.

JSON has fewer types than Python. Bytes, tuples, and mappings with keys other than strings are written as objects with
one key that begins with ``$``, so that they come back unchanged. :func:`pack` refuses a request with a value that JSON
cannot hold at all (a function, an item, an open file). Such a request stays in Scrapy's own queue.
"""

import base64
import sys
from enum import Enum
from typing import Any

import msgspec
from scrapy import Request, Spider
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest
from scrapy.utils.request import request_from_dict

from inlink.crawl.intake import MOST_CARRIED

__all__ = ["LEASE", "NotPackable", "pack", "unpack"]

LEASE = "inlink_lease"
"""The key in a request's meta that names its lease."""


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
        raise NotPackable(str(error)) from None
    return found


def _class_name(kind: type[Request]) -> str:
    name = f"{kind.__module__}.{kind.__qualname__}"
    try:
        found = _class(name)
    except ValueError:
        found = None
    if found is not kind:
        raise NotPackable(f"a request of the class {name}, which cannot be found by its name")
    return name


def _encode(kept: dict[str, Any]) -> bytes:
    try:
        raw = msgspec.json.encode(_plain(kept))
    except (TypeError, ValueError, OverflowError) as error:
        raise NotPackable(str(error)) from None
    if len(raw) > MOST_CARRIED:
        raise NotPackable(f"a request of {len(raw):,} bytes: at most {MOST_CARRIED:,} are kept")
    return raw


def _plain(value: Any, level: int = 0) -> Any:
    """Convert a value to one that JSON can hold."""
    if level > _DEEPEST:
        raise NotPackable(f"a request with values nested more than {_DEEPEST} deep")
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if kind is float:
        return value if abs(value) < float("inf") else {"$float": repr(value)}
    if kind is bytes:
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if kind is list:
        return [_plain(item, level + 1) for item in value]
    if kind is tuple:
        return {"$tuple": [_plain(item, level + 1) for item in value]}
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {
                key: item if type(item) in _AS_IT_IS else _plain(item, level + 1)
                for key, item in value.items()
            }
        return {"$dict": [[_plain(key, level + 1), _plain(item, level + 1)] for key, item in value.items()]}
    if isinstance(value, str) and not isinstance(value, Enum):
        # The text of each link that a CrawlSpider follows is such a string, of lxml.
        return str.__str__(value)
    raise NotPackable(f"a request that holds {kind.__module__}.{kind.__qualname__}")


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
    for key, item in plain.items():
        if key == "$bytes":
            return base64.b64decode(item, validate=True)
        if key == "$float":
            return float(item)
        if key == "$tuple":
            return tuple(_value(part) for part in item)
        if key == "$dict":
            return {_value(left): _value(right) for left, right in item}
    return {key: _value(item) for key, item in plain.items()}


def _class(name: Any) -> type[Request]:
    """Find a class of requests in Scrapy, or in a module that the project has imported. No module is imported."""
    if name in _CLASSES:
        return _CLASSES[name]
    module, _, attribute = str(name).rpartition(".")
    found = getattr(sys.modules.get(module), attribute, None)
    if not (isinstance(found, type) and issubclass(found, Request)):
        raise ValueError(f"no class of requests {name!r} is imported")
    return found
