"""An extension of Griffe: references of reStructuredText in docstrings become code of Markdown."""

import re
from typing import Any

import griffe

__all__ = ["PlainRoles"]

# ``:class:`inlink.Crawl` ``, and with ~ only the last part of the name.
ROLE = re.compile(r":(?:attr|class|const|data|doc|exc|func|meth|mod|obj|ref):`(~?)([^`<]+?)`")


def plain(text: str) -> str:
    """Replace references by code."""

    def name(match: re.Match[str]) -> str:
        short, whole = match.groups()
        return f"`{whole.rpartition('.')[2] if short else whole}`"

    return ROLE.sub(name, text)


class PlainRoles(griffe.Extension):
    """Changes every docstring when it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = plain(obj.docstring.value)
