"""Read Nutch's properties from ``nutch-site.xml`` and ``-D name=value``."""

from collections.abc import Iterable
from pathlib import Path

from inlink.errors import ParameterError
from inlink.nutch.entries import read_entries

PROPERTIES: dict[str, type] = {
    "link.ignore.internal.host": bool,
    "link.ignore.internal.domain": bool,
    "link.ignore.limit.page": bool,
    "link.ignore.limit.domain": bool,
    "link.delete.gone": bool,
    "link.loops.depth": int,
    "link.analyze.num.iterations": int,
    "link.analyze.initial.score": float,
    "link.analyze.damping.factor": float,
    "link.score.updater.clear.score": float,
    "urlnormalizer.regex.file": str,
    "urlfilter.regex.file": str,
}
"""The known properties and their types."""

# Nutch sets these itself and ignores the files.
_INTERNAL = ("link.analyze.iteration", "link.analyze.rank.one")


def read_properties(files: Iterable[Path], entries: Iterable[str]) -> dict[str, bool | int | float | str]:
    """Return the properties of :data:`PROPERTIES` that are set. A later value replaces an earlier one.

    Parameters
    ----------
    files : iterable of Path
        Hadoop configurations, such as nutch-site.xml. Other properties in them are ignored.
    entries : iterable of str
        ``name=value``. They take precedence over the files.

    Raises
    ------
    inlink.errors.InputError
        If a file cannot be read or is not a configuration.
    inlink.errors.ParameterError
        If a value does not fit its property, or a name that begins with ``link.`` is unknown.
    """
    values: dict[str, bool | int | float | str] = {}
    for file in files:
        for _, texts in read_entries(file, "a Hadoop configuration", "configuration", "property"):
            name = texts.get("name", "").strip()
            if name in PROPERTIES:
                values[name] = _value(name, texts.get("value", ""), f"{file}: ")
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals:
            raise ParameterError(f"-D {entry}: expected name=value")
        if name.startswith("link.") and name not in PROPERTIES and name not in _INTERNAL:
            raise ParameterError(f"-D {name}: unknown property; choose from {', '.join(PROPERTIES)}")
        if name in PROPERTIES:
            values[name] = _value(name, value, "-D ")
    return values


def _value(name: str, text: str, place: str) -> bool | int | float | str:
    text = text.strip()
    kind = PROPERTIES[name]
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind is int:
            return int(text)
        if kind is str:
            return text
        # Java also writes 0.85f.
        return float(text[:-1] if text[-1:] in "fFdD" else text)
    except (KeyError, ValueError):
        what = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise ParameterError(f"{place}{name} must be {what}; got {text[:100]!r}") from None
