"""Presets: TOML files that say which pages of a site are articles, and which of their links count.

A preset is for a site such as a wiki: its articles lie below one URL, and only a part of each page is read. The
selectors are CSS selectors in the syntax of selectolax's lexbor. ``presets/wikipedia.toml`` is an example.
"""

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from inlink.archives.html import no_follow
from inlink.base.declare import parameters_of
from inlink.base.decoding import converted
from inlink.errors import InputError, ParameterError
from inlink.frontier.settings import Politeness
from inlink.scoring.reading import Reading
from inlink.urls.canonical import Base, canonical

_MAX_FILE = 1 << 16
# Characters. MediaWiki's own limit is 255 bytes.
_MAX_TITLE = 1000
_PRESETS = files("inlink.scrapy") / "presets"


class Article(msgspec.Struct, frozen=True):
    """The target of a link: its canonical URL and its title."""

    url: str
    title: str


class Preset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules for reading a site.

    Attributes
    ----------
    base : str
        An http URL that ends with a slash. Pages below it are articles. No other pages are fetched.
    content : str
        CSS selector for the parts of a page that are read.
    links : str
        CSS selector, within those parts, for the links that count. They need an ``href``.
    title : str
        The attribute of a link that holds the title of its target. If a link does not have the attribute, the title is
        taken from the URL.
    namespaces : tuple of str
        Prefixes before a colon that mark the titles of pages that are not articles. Case does not matter; a blank
        equals ``_``.
    delay : float or None
        Seconds between two fetches.
    """

    base: str
    content: str = "body"
    links: str = "a[href]"
    title: str = "title"
    namespaces: tuple[str, ...] = ()
    delay: float | None = None

    def start(self, title: str) -> str:
        """Return the URL of an article, given its title or its URL.

        Examples
        --------
        >>> Preset("https://example.org/wiki/").start("Erdős number")
        'https://example.org/wiki/Erd%C5%91s_number'

        Raises
        ------
        inlink.errors.ParameterError
            If ``title`` does not name an article.
        """
        text = title.strip()
        if not text.startswith(("http://", "https://")):
            text = self.base + quote(
                unquote(text).replace(" ", "_"), safe="/:@!$&'()*+,;=~", errors="replace"
            )
        url = canonical(text)
        if url is None or not self.is_article(url):
            raise ParameterError(f"--start {title!r} is not an article below {self.base}")
        return url

    def is_article(self, url: str) -> bool:
        """Return whether a canonical URL lies below the base and is not in one of the namespaces."""
        if not url.startswith(self.base) or len(url) == len(self.base):
            return False
        space, colon, _ = _plain(url[len(self.base) :]).partition(":")
        return not colon or _folded(space) not in _spaces(self.namespaces)

    def title_of(self, url: str) -> str:
        """Return the title of an article, derived from its URL."""
        return _plain(url[len(self.base) :].partition("?")[0])[:_MAX_TITLE]

    def articles(self, page: Reading) -> list[Article]:
        """Return the target of each link of a page to an article, in the order of the links; omit nofollow links.

        An article that a page links to twice occurs twice.

        A page that is not HTML, or was not read, has no links. The URL of the page must be canonical.
        """
        tree = page.tree
        if tree is None:
            return []
        node_with_base = tree.css_first("base[href]")
        base = Base(page.url, node_with_base.attributes["href"] if node_with_base else None)
        seen: set[int] = set()
        found: list[Article] = []
        for part in tree.css(self.content):
            for node in part.css(self.links):
                # A node is found twice if the content selector matches nested parts.
                if node.mem_id in seen:
                    continue
                seen.add(node.mem_id)
                attributes = node.attributes
                target = base.canonical(attributes.get("href") or "")
                if target is None or no_follow(attributes.get("rel")):
                    continue
                if self.is_article(target):
                    title = " ".join((attributes.get(self.title) or "").split())[:_MAX_TITLE]
                    found.append(Article(target, title or self.title_of(target)))
        return found


def _plain(rest: str) -> str:
    return unquote(rest, errors="replace").replace("_", " ").strip()


def _folded(space: str) -> str:
    return " ".join(space.replace("_", " ").casefold().split())


@lru_cache(maxsize=16)
def _spaces(namespaces: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_folded(name) for name in namespaces)


def names() -> list[str]:
    """Return the names of the presets that come with inlink."""
    return sorted(
        file.name.removesuffix(".toml") for file in _PRESETS.iterdir() if file.name.endswith(".toml")
    )


def load(given: str) -> Preset:
    """Load a preset by its name or from a file.

    Parameters
    ----------
    given : str
        One of :func:`names`, or a path that ends with ``.toml``.

    Raises
    ------
    inlink.errors.ParameterError
        If no preset has that name.
    inlink.errors.InputError
        If the file cannot be read or is not a valid preset.
    """
    if not given.endswith(".toml"):
        if given not in names():
            raise ParameterError(
                f"no preset has the name {given!r}: choose {', '.join(names())}, or give a file that ends with .toml"
            )
        return _preset((_PRESETS / f"{given}.toml").read_bytes(), given)
    try:
        with Path(given).open("rb") as file:
            raw = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise InputError(f"{given}: cannot be read ({error.strerror})") from None
    return _preset(raw, given)


def _preset(raw: bytes, place: str) -> Preset:
    if len(raw) > _MAX_FILE:
        raise InputError(f"{place} is larger than {_MAX_FILE:,} bytes, so it is not a preset")
    try:
        found = converted(tomllib.loads(raw.decode()), Preset)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"{place} is not a preset: {error}") from None
    form = canonical(found.base)
    if form is None or not form.endswith("/") or "?" in form:
        raise InputError(f"{place}: base = {found.base!r} is not an http URL that ends with a slash")
    for name in ("content", "links"):
        try:
            LexborHTMLParser("").css(getattr(found, name))
        except SelectolaxError:
            raise InputError(f"{place}: {name} = {getattr(found, name)!r} is not a CSS selector") from None
    for space in found.namespaces:
        if not re.fullmatch(r"[^:/?#]{1,200}", space):
            raise InputError(f"{place}: {space!r} is not a namespace: give it without its colon")
    if found.delay is not None:
        try:
            parameters_of(Politeness)["delay"].check(found.delay, "delay")
        except ParameterError as error:
            raise InputError(f"{place}: {error}") from None
    return msgspec.structs.replace(found, base=form)
