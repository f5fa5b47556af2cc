"""Read Nutch's properties from ``nutch-site.xml`` and ``-D name=value``."""

from collections.abc import Iterable
from pathlib import Path
from xml.parsers import expat

from inlink.base.opening import Stream
from inlink.errors import InputError, ParameterError

__all__ = ["PROPERTIES", "read_properties"]

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
# Bytes of a configuration at most.
_LARGEST = 1 << 24


def read_properties(files: Iterable[Path], given: Iterable[str]) -> dict[str, bool | int | float | str]:
    """Return the properties of :data:`PROPERTIES` that are set. A later value replaces an earlier one.

    Parameters
    ----------
    files : iterable of Path
        Hadoop configurations, such as nutch-site.xml. Other properties in them are ignored.
    given : iterable of str
        ``name=value``. They take precedence over the files.

    Raises
    ------
    inlink.errors.InputError
        If a file cannot be read or is not a configuration.
    inlink.errors.ParameterError
        If a value does not fit its property, or a name that begins with ``link.`` is unknown.
    """
    found: dict[str, bool | int | float | str] = {}
    for file in files:
        for name, value in _configuration(file):
            if name in PROPERTIES:
                found[name] = _value(name, value, f"{file}: ")
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals:
            raise ParameterError(f"-D {entry}: expected name=value")
        if name.startswith("link.") and name not in PROPERTIES and name not in _INTERNAL:
            raise ParameterError(f"-D {name}: unknown property; choose from {', '.join(PROPERTIES)}")
        if name in PROPERTIES:
            found[name] = _value(name, value, "-D ")
    return found


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


def _configuration(path: Path) -> list[tuple[str, str]]:
    """Return the names and values of ``<configuration><property><name/><value/></property></configuration>``."""
    entries: list[tuple[str, str]] = []
    inside: list[str] = []
    texts = {"name": "", "value": ""}

    def start(tag: str, _: object) -> None:
        inside.append(tag)
        if len(inside) == 1 and tag != "configuration":
            raise InputError(f"{path} is not a Hadoop configuration: it begins with <{tag[:50]}>")
        if inside == ["configuration", "property"]:
            texts.update(name="", value="")

    def end(_: str) -> None:
        if inside == ["configuration", "property"] and texts["name"]:
            entries.append((texts["name"].strip(), texts["value"]))
        inside.pop()

    def text(data: str) -> None:
        if inside[:2] == ["configuration", "property"] and len(inside) == 3 and inside[2] in texts:
            texts[inside[2]] += data

    def refuse(*_: object) -> None:
        raise InputError(f"{path}: the file declares an entity. Remove the declaration.")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.EntityDeclHandler = refuse
    with Stream(path) as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise InputError(f"{path}: a configuration must be shorter than {_LARGEST >> 20} MB")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        what = expat.errors.messages[error.code]
        raise InputError(f"{path}, line {error.lineno:,}: not well-formed XML ({what})") from None
    except (LookupError, ValueError) as error:
        # Python does not know the encoding.
        raise InputError(f"{path}: cannot be read ({error}). Convert it to UTF-8.") from None
    return entries
