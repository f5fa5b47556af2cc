"""Attributes that are filled before their first use."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["Deferred"]


class Deferred:
    """An object whose attributes can be filled later. Afterwards they are usual attributes, and cost nothing more."""

    _empty: dict[str, tuple[Any, Callable[[], object]]]

    def defer(self, name: str, fill: Callable[[], object]) -> None:
        """Hide an attribute until its first use. Then ``fill`` is called. If it fails, the attribute stays hidden."""
        self.__dict__.setdefault("_empty", {})[name] = self.__dict__.pop(name), fill

    @property
    def deferred(self) -> bool:
        """True while an attribute is still to be filled."""
        return bool(self.__dict__.get("_empty"))

    # Type checkers must still refuse unknown attributes.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            empty = self.__dict__.get("_empty", {})
            if name not in empty:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value, fill = empty[name]
            fill()
            self.__dict__[name] = value
            empty.pop(name, None)
            return value
