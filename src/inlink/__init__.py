"""inlink turns links into decisions: link graphs of crawls and archives, built, ranked and certified.

Names are imported when they are first used, so that ``import inlink`` loads neither Numba nor SciPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inlink.base.progress import progress
    from inlink.errors import InlinkError
    from inlink.graph.graph import Graph

__version__ = "0.1.0"

_HOMES = {
    "Graph": "inlink.graph.graph",
    "InlinkError": "inlink.errors",
    "progress": "inlink.base.progress",
}

__all__ = ["Graph", "InlinkError", "progress"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'inlink' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
