"""Nutch's properties: from ``nutch-site.xml`` and ``-D name=value``."""

from collections.abc import Iterable
from pathlib import Path
from xml.parsers import expat

from inlink.errors import InputError, ParameterError
from inlink.sources.opening import Stream

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
}
"""What is known, and its type."""

_INTERNAL = (
    "link.analyze.iteration",
    "link.analyze.rank.one",
)  # Nutch sets them itself, whatever a file says
_LARGEST = 1 << 24  # bytes of a configuration


def read_properties(files: Iterable[Path], given: Iterable[str]) -> dict[str, bool | int | float]:
    """The properties of :data:`PROPERTIES` that are set, those given last winning.

    Parameters
    ----------
    files : iterable of Path
        Hadoop's configurations, such as nutch-site.xml. What else they set is for others.
    given : iterable of str
        ``name=value``, which win over the files.

    Raises
    ------
    inlink.errors.InputError
        If a file cannot be read or is no configuration.
    inlink.errors.ParameterError
        If a value is none of its property's, or a name that begins with ``link.`` is not known.
    """
    found: dict[str, bool | int | float] = {}
    for file in files:
        for name, value in _configuration(file):
            if name in PROPERTIES:
                found[name] = _value(name, value, f"{file}: ")
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals:
            raise ParameterError(f"-D {entry}: expected name=value")
        if name.startswith("link.") and name not in PROPERTIES and name not in _INTERNAL:
            raise ParameterError(f"-D {name} is not known: choose from {', '.join(PROPERTIES)}")
        if name in PROPERTIES:
            found[name] = _value(name, value, "-D ")
    return found


def _value(name: str, text: str, place: str) -> bool | int | float:
    text = text.strip()
    kind = PROPERTIES[name]
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind is int:
            return int(text)
        return float(text[:-1] if text[-1:] in "fFdD" else text)  # Java's 0.85f
    except (KeyError, ValueError):
        what = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise ParameterError(f"{place}{name}={text[:100]}: expected {what}") from None


def _configuration(path: Path) -> list[tuple[str, str]]:
    """The names and values of ``<configuration><property><name/><value/></property></configuration>``."""
    entries: list[tuple[str, str]] = []
    inside: list[str] = []
    texts = {"name": "", "value": ""}

    def start(tag: str, _: object) -> None:
        inside.append(tag)
        if len(inside) == 1 and tag != "configuration":
            raise InputError(f"{path} is no configuration of Hadoop's: it begins with <{tag[:50]}>")
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
        raise InputError(f"{path}: declares an entity, which no configuration needs: remove it")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.EntityDeclHandler = refuse
    with Stream(path) as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise InputError(f"{path}: longer than {_LARGEST >> 20} MB: no configuration is")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        what = expat.errors.messages[error.code]
        raise InputError(f"{path}, line {error.lineno:,}: no well-formed XML ({what})") from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not know
        raise InputError(f"{path}: cannot be read ({error}): convert it to UTF-8") from None
    return entries
