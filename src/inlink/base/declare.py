"""Parameters, declared once: type, range, unit, default and meaning stand in the annotation of a name.

Fields of dataclasses and structs, keys of a ``TypedDict`` and parameters of functions are declared alike:
``delay: Annotated[Seconds, Parameter("Seconds between two fetches.", option="--delay")] = 1.0``. :func:`parameters_of`
returns these declarations. Checks, the reading of text, options of commands and tables of the docs come from them.
"""

import inspect
import math
import numbers
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from inlink.base.settings import LONGEST
from inlink.errors import ParameterError

P = ParamSpec("P")
T = TypeVar("T")

_REST = inspect.Parameter.VAR_KEYWORD

_PLAIN = {bool: "True or False", int: "a whole number", float: "a number", str: "text"}
# Parameters of NetworkX, igraph, SciPy and pandas, and their names here.
_ELSEWHERE = {
    **dict.fromkeys(("G", "g", "adjacency"), "graph"),
    "alpha": "damping",
    **dict.fromkeys(("weight", "weights"), "weighted"),
    **dict.fromkeys(("nstart", "init"), "start"),
    **dict.fromkeys(("max_iterations", "maxiter", "niter", "iterations"), "max_iter"),
    **dict.fromkeys(("eps", "epsilon", "tolerance", "rtol", "atol"), "tol"),
    **dict.fromkeys(("reset", "reset_vertices", "teleport"), "personalization"),
    **dict.fromkeys(("implementation", "solver"), "method"),
    "mode": "direction",
    **dict.fromkeys(("n_jobs", "num_threads"), "threads"),
    **dict.fromkeys(("sep", "delimiter"), "separator"),
}
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class Parameter(msgspec.Struct, frozen=True, eq=False):
    """A declaration in an annotation. Name, kind, default and choices come from the annotated name.

    Attributes
    ----------
    help : str
        The meaning, in one line.
    unit : str
        The unit of a number, such as ``"seconds"``.
    at_least, above, at_most, below : float or None
        The range of a number.
    choices : tuple of str
        The allowed texts; empty if any text is allowed. A ``Literal`` gives them too.
    old_names : dict of str to str
        Former names of choices, and their present names. They are allowed for one version, with a warning.
    other : str
        Description of further texts that are allowed, besides the choices.
    none : str or None
        The meaning of None; None if None is refused.
    fixed : bool
        Whether a setting cannot change after the crawl was made.
    commas : bool
        Whether commas separate several values in a text; otherwise a text is one value.
    option : str
        The option of commands, such as ``"--delay"``; empty if there is none.
    default : object
        The default value. Only a key of a ``TypedDict`` gives it here.
    name : str
        The name in messages. Only a declaration that wants another one gives it.
    kind : type
        The type of the values: ``bool``, ``int``, ``float``, ``str``, ``tuple`` for several strings, ``object`` for
        any value, or the class of a group.
    """

    help: str = ""
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
    default: Any = None
    name: str = ""
    kind: type = object

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
            words = [repr(choice) for choice in self.choices] + [self.other] * bool(self.other)
            meaning = " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
        elif self.kind is tuple:
            meaning = "a list of texts that are not empty"
        else:
            meaning = _PLAIN.get(self.kind) or f"a {self.kind.__name__}, or a dict of its fields"
        meaning += f" of {self.unit}" * bool(self.unit) + f" {self.interval}" * bool(self.interval)
        return meaning + (f", or None ({self.none})" if self.none else "")

    def check(self, value: Any, place: str = "") -> Any:
        """Check a value and return it in the parameter's own type.

        Parameters
        ----------
        value : object
            The value. A number or boolean of NumPy counts as one of Python.
        place : str
            Name of the parameter in the message; its own name if empty.

        Raises
        ------
        inlink.errors.ParameterError
            If the value is outside the range or of another type.
        """
        converted = self._converted(value)
        if converted is MISSING:
            converted = self._converted(plain(value))
        if converted is MISSING or (converted is None and self.none is None and self.kind is not object):
            raise ParameterError(f"{place or self.name} must be {self.meaning}; got {value!r}")
        return converted

    def parse(self, text: str, place: str = "") -> Any:
        """Parse a value from a text, such as ``2.5``, ``true`` or ``none``. The text of a group is JSON.

        Raises
        ------
        inlink.errors.ParameterError
            If the text is not an allowed value.
        """
        parsed: Any = text
        if self.none is not None and text.strip().lower() == "none":
            return None
        if self.kind is bool:
            parsed = _BOOLEANS.get(text.strip().lower(), text)
        elif self.kind in (int, float):
            # A text that is no number stays a text, which is refused below.
            with suppress(ValueError, OverflowError):
                parsed = self.kind(text)
        elif self.kind is tuple:
            parsed = [part.strip() for part in text.split(",") if part.strip()] if self.commas else [text]
        elif self.kind is not str and text.lstrip().startswith("{"):
            try:
                parsed = msgspec.json.decode(text)
            except msgspec.DecodeError as error:
                raise ParameterError(
                    f"{place or self.name} cannot be read as JSON ({error}); got {text!r}"
                ) from None
        value = self._converted(parsed)
        if value is MISSING:
            raise ParameterError(f"{place or self.name} must be {self.meaning}; got {text!r}")
        return value

    def _converted(self, value: Any) -> Any:
        """Convert a value to the parameter's own type; MISSING if that is not possible."""
        if value is None or self.kind is object:
            return value
        if self.kind is int or self.kind is float:
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                return MISSING
            try:
                number: Any = operator.index(value) if self.kind is int else float(value)  # type: ignore[arg-type]
            except (TypeError, OverflowError):
                return MISSING
            inside = (
                math.isfinite(number)
                and (self.at_least is None or number >= self.at_least)
                and (self.above is None or number > self.above)
                and (self.at_most is None or number <= self.at_most)
                and (self.below is None or number < self.below)
            )
            return number if inside else MISSING
        if self.kind is bool:
            return value if isinstance(value, bool) else MISSING
        if self.kind is str:
            value = present_name(value, self.old_names) if isinstance(value, str) else value
            # Other texts are import paths, `module:Class`.
            allowed = not self.choices or value in self.choices or (self.other and _is_import_path(value))
            return value if isinstance(value, str) and allowed else MISSING
        if self.kind is tuple:
            if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
                return MISSING
            texts = tuple(value)
            return texts if all(isinstance(text, str) and text for text in texts) else MISSING
        return value if isinstance(value, self.kind | Mapping) else MISSING


Seconds = Annotated[float, Parameter(unit="seconds", at_least=0, at_most=LONGEST)]
PositiveSeconds = Annotated[float, Parameter(unit="seconds", above=0, at_most=LONGEST)]


@cache
def parameters_of(declaring: Any) -> dict[str, Parameter]:
    """The declared parameters by name, in their order, of a dataclass, struct, ``TypedDict`` or function."""
    hints = get_type_hints(declaring, include_extras=True)
    defaults = _defaults(declaring)
    found = {name: _merged(name, hint, defaults) for name, hint in hints.items()}
    return {name: parameter for name, parameter in found.items() if parameter is not None}


def _defaults(declaring: Any) -> dict[str, Any]:
    """The defaults of those names that have one outside their annotation."""
    if is_dataclass(declaring):
        return {
            field.name: field.default if field.default_factory is MISSING else field.default_factory()
            for field in fields(declaring)
        }
    if isinstance(declaring, type):
        return {}
    return {name: parameter.default for name, parameter in inspect.signature(declaring).parameters.items()}


def _merged(name: str, hint: Any, defaults: Mapping[str, Any]) -> Parameter | None:
    """Join the declarations of an annotation; outer ones take precedence. None if there are none."""
    kinds, declarations = _parts(hint)
    if not declarations:
        return None
    # The function that takes a value of several types checks it.
    kind = kinds[0] if len(kinds) == 1 else object
    values: dict[str, Any] = {"choices": get_args(kind)} if get_origin(kind) is Literal else {}
    for declaration in declarations:
        for field in msgspec.structs.fields(Parameter):
            value = getattr(declaration, field.name)
            if value != field.default:
                values[field.name] = value
    origin: Any = get_origin(kind) or kind
    values["kind"] = {Literal: str, Sequence: tuple, Iterable: object}.get(origin, origin)
    values["default"] = defaults.get(name, values.get("default"))
    return Parameter(**{"name": name} | values)


def _parts(hint: Any) -> tuple[list[Any], list[Parameter]]:
    """The types in an annotation but None, and the declarations, inner ones first."""
    kinds: list[Any] = []
    declarations: list[Parameter] = []
    # Parts of parts are appended while the list is read: a function that calls itself takes longer than the rest of a
    # call of a ranking.
    parts = [hint]
    for part in parts:
        if get_origin(part) is Annotated:
            declarations[:0] = [note for note in part.__metadata__ if isinstance(note, Parameter)]
            parts.append(part.__origin__)
        elif get_origin(part) in (Union, UnionType):
            parts += get_args(part)
        elif part is not NoneType:
            kinds.append(part)
    return kinds, declarations


def check_fields(group: object, prefix: str = "") -> None:
    """Check the fields of a dataclass's instance, and convert each to its own type.

    Raises
    ------
    inlink.errors.ParameterError
        If a value is outside its range or of another type.
    """
    declaring: Any = type(group)
    for name, parameter in parameters_of(declaring).items():
        object.__setattr__(group, name, parameter.check(getattr(group, name), prefix + name))


def _unknown(function: Callable[..., Any], name: str, accepted: Collection[str]) -> TypeError:
    remedy = f": it is `{_ELSEWHERE[name]}` here" if _ELSEWHERE.get(name) in accepted else ""
    return TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}{remedy}")


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Check the declared keyword arguments of a function before each call, and convert them to their own types.

    An unknown keyword is a TypeError, which gives our name of a parameter that other libraries have.
    """
    accepted = inspect.signature(function).parameters

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        for name in options:
            if name not in accepted:
                raise _unknown(function, name, accepted)
        # Without options nothing is checked, and the declarations need not be made.
        declared = parameters_of(function) if options else {}
        values: Any = {
            name: declared[name].check(value, f"`{name}`") if name in declared else value
            for name, value in options.items()
        }
        return function(*arguments, **values)

    return call


def keywords(
    declaring: Any, shown: Mapping[str, Any] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Give a function that ends in ``**options: Unpack[declaring]`` a signature with all keywords.

    The function gets each keyword: one that is not given has its default, which is None unless it is declared. With
    ``shown``, it gets only the keywords that are given, and the signature shows these defaults, or ``...``. An unknown
    keyword is a TypeError, as in :func:`checked`.
    """
    hints, declared = get_type_hints(declaring), parameters_of(declaring)
    if shown is None:
        defaults = {name: declared[name].default if name in declared else None for name in hints}
    else:
        defaults = {name: shown.get(name, ...) for name in hints}

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        plainly = inspect.signature(function)
        own = {
            name: parameter for name, parameter in plainly.parameters.items() if parameter.kind is not _REST
        }
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
            for name, default in defaults.items()
        ]

        @wraps(function)
        def call(*arguments: P.args, **options: P.kwargs) -> T:
            for name in options:
                if name not in defaults and name not in own:
                    raise _unknown(function, name, defaults)
            values: Any = defaults | options if shown is None else options
            return function(*arguments, **values)

        call.__signature__ = plainly.replace(parameters=[*own.values(), *added])  # type: ignore[attr-defined]
        return call

    return decorate


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


def _is_import_path(value: object) -> bool:
    module, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    return bool(module and colon and name)


def _short(number: float) -> str:
    return f"{number:g}".replace("e+0", "e") if number in (1e6, LONGEST) else f"{number:.15g}"
