"""Structs from JSON and other data, in any number of threads.

msgspec describes a struct for itself when it first decodes one. If another thread decodes the same struct meanwhile, it
uses the unfinished description, and the process dies. So descriptions are made here, one at a time.
"""

import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_describing = threading.Lock()
# A child of a fork must not get an unfinished description, or a lock that nobody releases.
os.register_at_fork(
    before=_describing.acquire, after_in_parent=_describing.release, after_in_child=_describing.release
)


@cache
def _decoder(kind: Any, strict: bool, hook: Callable[[type, Any], Any] | None) -> msgspec.json.Decoder[Any]:
    with _describing:
        return msgspec.json.Decoder(kind, strict=strict, dec_hook=hook)


@overload
def decoded(raw: bytes | str, kind: type[T], hook: Callable[[type, Any], Any] | None = None) -> T: ...
@overload
def decoded(raw: bytes | str, kind: Any, hook: Callable[[type, Any], Any] | None = None) -> Any: ...
def decoded(raw: bytes | str, kind: Any, hook: Callable[[type, Any], Any] | None = None) -> Any:
    """Decode JSON as :func:`msgspec.json.decode` does, with its errors; ``hook`` is its ``dec_hook``."""
    return _decoder(kind, True, hook).decode(raw)


@overload
def converted(value: Any, kind: type[T], *, strict: bool = True) -> T: ...
@overload
def converted(value: Any, kind: Any, *, strict: bool = True) -> Any: ...
def converted(value: Any, kind: Any, *, strict: bool = True) -> Any:
    """Convert a value as :func:`msgspec.convert` does, with its errors."""
    _decoder(kind, strict, None)
    return msgspec.convert(value, kind, strict=strict)
