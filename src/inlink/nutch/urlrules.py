r"""Nutch's rules for URLs: ``regex-normalize.xml`` and ``regex-urlfilter.txt``.

The rules of the first file change URLs: each replaces all places where its expression matches, in the order of the
file. The rules of the second keep or drop URLs. The first rule that matches decides; without one, the URL is dropped.
A line ``> example.org`` limits the following rules, up to a line ``<``, to that host or domain.

Nutch uses Java's engine. inlink uses RE2, which takes linear time. RE2 does not know two rules of Nutch's own files, so
they are applied by functions: the rule against loops, :data:`inlink.urls.patterns.NUTCH_LOOPS`, and the rule against
double slashes, :data:`DOUBLE_SLASHES`. Other rules that RE2 does not know, or reads differently from Java, are refused.

Source: RegexURLNormalizer and RegexURLFilterBase of Nutch 1.23. Its other plugins, such as urlnormalizer-basic and
urlfilter-validator, are not applied.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inlink.base.strings import Strings
from inlink.errors import InputError, ParameterError
from inlink.nutch.entries import read_entries, read_whole
from inlink.nutch.fetches import Fetches, offsets_of
from inlink.rank.nutch_sites import site_names
from inlink.urls.patterns import Pattern, compiled

DOUBLE_SLASHES = "(?<!:)/{2,}"
"""Nutch's rule against double slashes, except after a colon."""

_SLASHES = re.compile(DOUBLE_SLASHES.encode())
_LEFT_OUT = "Write it in another way, or leave it out of a copy of the file."


@dataclass(frozen=True)
class _Replacement:
    """Replaces the matches of an expression. The parts of the new text are bytes and numbers of groups."""

    pattern: Any
    parts: tuple[bytes | int, ...]

    def __call__(self, url: bytes) -> bytes:
        pieces, at = [], 0
        for match in self.pattern.finditer(url):
            pieces.append(url[at : match.start()])
            pieces += [part if isinstance(part, bytes) else match.group(part) or b"" for part in self.parts]
            at = match.end()
        return b"".join([*pieces, url[at:]])


@dataclass(frozen=True)
class _Filter:
    """A rule of a filter, for one host or domain, or for all if `site` is None."""

    accepts: bool
    pattern: Pattern
    site: bytes | None


class NutchUrlRules:
    """Rules that change URLs, and rules that drop them.

    Parameters
    ----------
    normalize : path-like or None
        A ``regex-normalize.xml``. None: URLs stay as they are.
    filter : path-like or None
        A ``regex-urlfilter.txt``. None: all URLs are kept.

    Attributes
    ----------
    changed, dropped : int
        The number of URLs that were changed and dropped so far; a URL counts each time that it occurs.

    Raises
    ------
    inlink.errors.InputError
        If a file cannot be read, or has rules that cannot be used. The message has the line of each.
    """

    def __init__(
        self, *, normalize: str | os.PathLike[str] | None = None, filter: str | os.PathLike[str] | None = None
    ) -> None:
        self.files = [os.fspath(path) for path in (normalize, filter) if path is not None]
        self._replacements = [] if normalize is None else _read_normalizer(Path(normalize))
        self._filters = None if filter is None else _read_filter(Path(filter))
        self._by_site = any(rule.site is not None for rule in self._filters or ())
        self.changed = self.dropped = 0

    def __call__(self, url: str | bytes) -> bytes | None:
        """Return a URL after the rules were applied; None if they drop it."""
        raw = url if isinstance(url, bytes) else url.encode("utf-8", "surrogateescape")
        if self._replacements:
            for replace in self._replacements:
                raw = replace(raw)
            raw = raw.strip(_BLANKS)
        return raw if raw and self._keeps(raw) else None

    def _keeps(self, url: bytes) -> bool:
        if self._filters is None:
            return True
        sites: tuple[bytes | None, ...] = ()
        if self._by_site:
            sites = tuple(site_names([url], part)[0] for part in ("host", "domain"))
        text = url.decode("utf-8", "replace")
        for rule in self._filters:
            if (rule.site is None or rule.site in sites) and rule.pattern.found_in(text):
                return rule.accepts
        return False

    def apply(self, fetches: Fetches) -> Fetches:
        """Return a block of fetches after the rules were applied, without the URLs that they drop."""
        sources, targets = (self._column(names) for names in (fetches.sources, fetches.targets))
        pages, links = sources.is_valid(), targets.is_valid()
        counts = np.diff(fetches.offsets)
        row_of = np.repeat(np.arange(len(counts)), counts)
        links = links & pages[row_of]
        kept = np.bincount(row_of[links], minlength=len(counts))[pages]
        return Fetches(sources.filter(pages), fetches.times[pages], offsets_of(kept), targets.filter(links))

    def _column(self, names: Strings) -> Strings:
        kept = names.by_value(self)
        self.dropped += int(np.count_nonzero(~kept.is_valid()))
        pairs = zip(names.to_pylist(), kept.to_pylist(), strict=True)
        self.changed += sum(new is not None and new != old for old, new in pairs)
        return kept


# Characters that String.trim() of Java removes.
_BLANKS = bytes(range(33))


class _Refused:
    """The rules of a file that cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reasons: list[str] = []

    def add(self, line: int, why: str) -> None:
        """Record a rule that cannot be used."""
        self.reasons.append(f"line {line:,}: {why}")

    def compiled(self, line: int, text: str) -> Pattern | None:
        """Compile an expression of Java's; None if it cannot be used, which is recorded."""
        other = _meant_otherwise(text)
        if other:
            self.add(line, f"{text[:200]!r} has {other}, which RE2 reads differently from Java")
            return None
        try:
            return compiled(text)
        except ParameterError as error:
            self.add(line, str(error).partition("; ")[0])
            return None

    def end(self) -> None:
        """Raise an InputError that lists the rules, if there are any."""
        if self.reasons:
            many = "rule" if len(self.reasons) == 1 else "rules"
            listed = ". ".join(self.reasons)
            raise InputError(
                f"{self.path}: {len(self.reasons):,} {many} cannot be used. {listed}. {_LEFT_OUT}"
            )


_ITEM = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\(\?[A-Za-z-]+|.", re.S)


def _meant_otherwise(text: str) -> str | None:
    """Return the part of an expression that RE2 and Java read differently; None if there is none."""
    # Whether the item is in a class, and whether the class has just begun.
    inside, begins, last = False, False, ""
    for match in _ITEM.finditer(text):
        item = match[0]
        if inside:
            if item == "[":
                return "a class within a class"
            if item == last == "&":
                return "an intersection of classes"
            if item == "]" and not begins:
                inside = False
            begins = begins and item == "^" and last == "["
        elif item == "[":
            inside = begins = True
        elif item.startswith("(?") and "U" in item:
            return "the flag U"
        last = item
    return None


# -- regex-urlfilter.txt ---------------------------------------------------------------------------------------------


def _read_filter(path: Path) -> list[_Filter]:
    rules: list[_Filter] = []
    refused = _Refused(path)
    site: bytes | None = None
    lines = read_whole(path, "a file of rules").removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, raw in enumerate(lines, 1):
        line = raw.decode("utf-8", "replace").rstrip("\r")
        first = line[:1]
        if first in ("", " ", "#"):
            continue
        if first == ">":
            site = line[1:].strip().encode()
        elif first == "<":
            site = None
        elif first in "+-":
            pattern = refused.compiled(number, line[1:])
            if pattern is not None:
                rules.append(_Filter(first == "+", pattern, site))
        else:
            refused.add(number, f"a rule begins with +, -, >, < or #; got {line[:100]!r}")
    refused.end()
    return rules


# -- regex-normalize.xml ---------------------------------------------------------------------------------------------


def _read_normalizer(path: Path) -> list[_Replacement]:
    rules: list[_Replacement] = []
    refused = _Refused(path)
    for line, texts in read_entries(path, "a file of rules", "regex-normalize", "regex"):
        text, substitution = texts.get("pattern"), texts.get("substitution")
        if not text or substitution is None:
            refused.add(line, "a regex needs a pattern and a substitution")
            continue
        if text == DOUBLE_SLASHES:
            program, groups = _SLASHES, 0
        else:
            pattern = refused.compiled(line, text)
            if pattern is None:
                continue
            if pattern.program is None:
                refused.add(line, f"{text[:200]!r} is known in filters only")
                continue
            program, groups = pattern.program, pattern.program.groups
        try:
            rules.append(_Replacement(program, tuple(_parts(substitution, groups))))
        except ValueError as error:
            refused.add(line, f"the substitution {substitution[:200]!r} {error}")
    refused.end()
    return rules


def _parts(substitution: str, groups: int) -> Iterator[bytes | int]:
    r"""Cut a substitution of Java's into text and groups: ``$1`` is a group, ``\?`` is ``?``."""
    at = 0
    while at < len(substitution):
        char = substitution[at]
        if char == "$":
            digits = re.match(r"[0-9]+", substitution[at + 1 :])
            if digits is None:
                raise ValueError("has a $ without the number of a group")
            # As many digits as make the number of a group, but at least one.
            size = max(k for k in range(1, len(digits[0]) + 1) if k == 1 or int(digits[0][:k]) <= groups)
            if int(digits[0][:size]) > groups:
                raise ValueError(f"names group {digits[0][:size]}, and the pattern has {groups}")
            yield int(digits[0][:size])
            at += 1 + size
            continue
        if char == "\\":
            at += 1
            if at == len(substitution):
                raise ValueError("ends in a backslash")
        yield substitution[at].encode("utf-8", "surrogateescape")
        at += 1
