"""Settings, declared once: name, type, range, default and meaning of each setting.

A group of settings is a dataclass whose fields are made by :func:`setting`. Everything else comes from these
declarations: the checks of the values, the reading of text (an environment, a command line), and the tables of the
documentation. The groups of a crawl are in :mod:`inlink.frontier.settings`.
"""

import math
import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, field, fields
from functools import cache
from importlib import import_module
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from inlink.errors import ParameterError

__all__ = [
    "LONGEST",
    "NO_LIMIT",
    "Setting",
    "check",
    "check_fields",
    "from_text",
    "imported",
    "plain",
    "present_name",
    "rows_of",
    "setting",
]

LONGEST = 1e9
"""The longest wait that can be set, in seconds: 31 years."""

NO_LIMIT = 0xFFFFFFFF
"""The largest number of leases or pages. As a limit it means no limit."""

_PLAIN = {bool: "True or False", int: "a whole number", float: "a number", str: "text"}
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

_tables: dict[type, dict[str, "Setting"]] = {}


class Setting(msgspec.Struct, frozen=True):
    """One setting.

    Attributes
    ----------
    name : str
        The name of the field.
    kind : type
        The type of the values: ``bool``, ``int``, ``float``, ``str``, ``tuple`` for several strings, ``object`` for
        any value, or the class of a group.
    default : object
        The default value.
    help : str
        The meaning of the setting, in one line.
    unit : str
        The unit of a number, such as ``"seconds"``.
    at_least, above, at_most, below : float or None
        The range of a number.
    choices : tuple of str
        The allowed texts; empty if any text is allowed.
    old_names : dict of str to str
        Former names of choices, and their present names. They are allowed for one version, with a warning.
    other : str
        Description of further texts that are allowed, besides the choices.
    none : str or None
        The meaning of None; None if None is refused.
    fixed : bool
        Whether the setting cannot change after the crawl was made.
    commas : bool
        Whether commas separate several values in a text; otherwise a text is one value.
    option : str
        The option of ``inlink crawl`` that sets it, such as ``"--delay"``; empty if only ``--set`` sets it.
    """

    name: str
    kind: type
    default: Any
    help: str
    unit: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    old_names: Mapping[str, str] = {}
    other: str = ""
    none: str | None = None
    fixed: bool = False
    commas: bool = False
    option: str = ""

    @property
    def interval(self) -> str:
        """The range of a number, such as ``"in [0, 1)"``; empty without a range."""
        low = self.at_least if self.above is None else self.above
        high = self.at_most if self.below is None else self.below
        if low is None:
            return ""
        if high is None:
            return f"above {_short(low)}" if self.above is not None else f"of at least {_short(low)}"
        opening, closing = "[" if self.above is None else "(", "]" if self.below is None else ")"
        return f"in {opening}{_short(low)}, {_short(high)}{closing}"

    @property
    def meaning(self) -> str:
        """Description of the allowed values."""
        if self.choices:
            said = _listed([repr(choice) for choice in self.choices] + ([self.other] if self.other else []))
        elif self.kind is tuple:
            said = "a list of texts that are not empty"
        elif self.kind in _PLAIN:
            said = _PLAIN[self.kind]
        else:
            said = f"a {self.kind.__name__}, or a dict of its fields"
        said += f" of {self.unit}" * bool(self.unit) + f" {self.interval}" * bool(self.interval)
        return said + (f", or None ({self.none})" if self.none else "")


def setting(default: Any, help: str, **more: Any) -> Any:
    """Declare a field of a dataclass as a setting.

    Parameters
    ----------
    default : object
        The default. If it is a class, the default is an instance that is made without arguments.
    help : str
        The meaning of the setting, in one line.
    **more
        The other attributes of :class:`Setting`, except name and kind, which come from the field.
    """
    metadata = {"setting": {"help": help, **more}}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def rows_of(group: Any) -> dict[str, Setting]:
    """The settings of a group by name, in the order of its fields."""
    if group not in _tables:
        hints = get_type_hints(group)
        _tables[group] = {
            declared.name: Setting(
                declared.name, _kind(hints[declared.name]), _default(declared), **declared.metadata["setting"]
            )
            for declared in fields(group)
            if "setting" in declared.metadata
        }
    return _tables[group]


def check_fields(group: object, prefix: str = "") -> None:
    """Check the fields of a group's instance, and convert each to its own type.

    Raises
    ------
    inlink.errors.ParameterError
        If a value is outside its range or of another type.
    """
    for row in rows_of(type(group)).values():
        object.__setattr__(group, row.name, check(row, getattr(group, row.name), prefix + row.name))


def check(row: Setting, value: Any, place: str = "") -> Any:
    """Check the value of a setting and return it in the setting's own type.

    Parameters
    ----------
    row : Setting
        The declaration of the setting.
    value : object
        The value to check.
    place : str
        Name of the setting in the message; its own name if empty.

    Raises
    ------
    inlink.errors.ParameterError
        If the value is outside the setting's range or of another type.
    """
    converted = _converted(row, value)
    if converted is MISSING or (converted is None and row.none is None):
        raise ParameterError(f"{place or row.name} must be {row.meaning}; got {value!r}")
    return converted


def from_text(row: Setting, text: str, place: str = "") -> Any:
    """Parse the value of a setting from a text, such as ``2.5``, ``true`` or ``none``. The text of a group is JSON.

    Raises
    ------
    inlink.errors.ParameterError
        If the text is not an allowed value of the setting.
    """
    parsed: Any = text
    if row.none is not None and text.strip().lower() == "none":
        return None
    if row.kind is bool:
        parsed = _BOOLEANS.get(text.strip().lower(), text)
    elif row.kind in (int, float):
        # A text that is no number stays a text, which is refused below.
        with suppress(ValueError, OverflowError):
            parsed = row.kind(text)
    elif row.kind is tuple:
        parsed = [part.strip() for part in text.split(",") if part.strip()] if row.commas else [text]
    elif row.kind is not str:
        parsed = _json(text, place or row.name) if text.lstrip().startswith("{") else text
    value = _converted(row, parsed)
    if value is MISSING:
        raise ParameterError(f"{place or row.name} must be {row.meaning}; got {text!r}")
    return value


def present_name(name: str, old_names: Mapping[str, str]) -> str:
    """Return the present name for a former name, and log a warning; return any other name unchanged."""
    if name not in old_names:
        return name
    _warn_of_old_name(name, old_names[name])
    return old_names[name]


@cache
def _warn_of_old_name(old: str, new: str) -> None:
    # The cache lets each warning be logged once in a process.
    import logging

    message = "%s is now called %s: use this name, the next version will not know %s"
    logging.getLogger("inlink.settings").warning(message, old, new, old)


def plain(value: Any) -> Any:
    """Convert a NumPy number to a Python number; return any other value unchanged."""
    # NumPy is not imported for this.
    return value.item() if type(value).__module__ == "numpy" and value.shape == () else value


def imported(place: str, what: str) -> Any:
    """Import the object at an import path, ``module:Class``.

    Raises
    ------
    inlink.errors.ParameterError
        If it cannot be imported here. ``what`` is its name in the message.
    """
    module, _, name = place.partition(":")
    try:
        imported: Any = import_module(module)
        for part in name.split("."):
            imported = getattr(imported, part)
    except Exception as error:
        # A module may raise anything.
        raise ParameterError(
            f"{what} {place!r} cannot be imported here ({error}): put its module where Python finds it (PYTHONPATH), "
            "or give another one"
        ) from error
    return imported


def _converted(row: Setting, value: Any) -> Any:
    """Convert a value to the setting's own type; MISSING if that is not possible."""
    if value is None:
        return None
    if row.kind is bool:
        return value if isinstance(value, bool) else MISSING
    if row.kind in (int, float):
        return _number(row, value)
    if row.kind is object:
        return value
    if row.kind is str:
        value = present_name(value, row.old_names) if isinstance(value, str) else value
        ours = isinstance(value, str) and (not row.choices or value in row.choices or _other(row, value))
        return value if ours else MISSING
    if row.kind is tuple:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return MISSING
        texts = tuple(value)
        return texts if all(isinstance(text, str) and text for text in texts) else MISSING
    return value if isinstance(value, row.kind | Mapping) else MISSING


def _number(row: Setting, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return MISSING
    try:
        number: Any = operator.index(value) if row.kind is int else float(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return MISSING
    inside = (
        math.isfinite(number)
        and (row.at_least is None or number >= row.at_least)
        and (row.above is None or number > row.above)
        and (row.at_most is None or number <= row.at_most)
        and (row.below is None or number < row.below)
    )
    return number if inside else MISSING


def _other(row: Setting, value: str) -> bool:
    """Return whether a text is allowed although it is not a choice, because it is an import path, ``module:Class``."""
    module, colon, name = value.partition(":")
    return bool(row.other and colon and module and name)


def _json(text: str, place: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ParameterError(f"{place} cannot be read as JSON ({error}); got {text!r}") from None


def _default(declared: "Field[Any]") -> Any:
    return declared.default_factory() if callable(declared.default_factory) else declared.default


def _kind(hint: Any) -> type:
    """The type of a setting's values, without None."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = [kind for kind in get_args(hint) if kind is not type(None)]
    origin: Any = get_origin(hint) or hint
    return str if origin is Literal else tuple if origin is Sequence else origin


def _short(number: float) -> str:
    return f"{number:g}".replace("e+0", "e") if number in (1e6, LONGEST) else f"{number:.15g}"


def _listed(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
