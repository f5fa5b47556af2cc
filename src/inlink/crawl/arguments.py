"""The arguments of a crawl's methods, checked before anything changes. :mod:`.intake` checks links and answers.

Each function raises :class:`inlink.errors.ParameterError` for a value out of range. The message names the argument, its
range and the value.
"""

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict, cast

from inlink.base.declare import Parameter, PositiveSeconds, Seconds, parameters_of
from inlink.base.settings import LONGEST, NO_LIMIT
from inlink.errors import ParameterError
from inlink.frontier.survey import BEST
from inlink.protocol import LARGEST_SCORE
from inlink.store.format import STATES
from inlink.store.life import RELOADABLE
from inlink.urls.canonical import canonical

_PORT = re.compile(r":[0-9]+\Z")

MOST_ROWS = BEST
"""Maximum number of rows that a call of a view returns."""

MOST_PLACES = 100
"""Maximum number of places of the order that a call of a view returns."""

RELOADED = tuple(STATES[state] for state in RELOADABLE)
"""States of pages that can wait again by a reload."""

LATEST = 1e11
"""Upper limit of Unix times, in the year 5138."""

LARGEST_ID = (1 << 63) - 1
"""The largest number of a lease, a session or a request."""

Identifier = Annotated[int, Parameter(at_least=0, at_most=LARGEST_ID)]


class HostLimits(TypedDict, total=False):
    """The values that an operator sets for a host: see :meth:`inlink.Crawl.set_host`."""

    block: Seconds
    delay: Annotated[Seconds | None, Parameter(none="that of the crawl and of robots.txt")]
    budget: Annotated[int | None, Parameter(at_least=0, below=NO_LIMIT, none="no limit")]


class Arguments(HostLimits):
    """Numbers that methods of :class:`inlink.Crawl` and its desk take. Some have another name in messages."""

    count: Annotated[int, Parameter(at_least=0, at_most=NO_LIMIT)]
    seconds: Seconds
    ahead: Annotated[Seconds, Parameter(name="seconds")]
    due: Annotated[float, Parameter(name="seconds", unit="seconds", at_least=-LONGEST, at_most=LONGEST)]
    older_than: Annotated[Seconds | None, Parameter(none="all")]
    silent_after: Annotated[PositiveSeconds | None, Parameter(none="never")]
    session: Identifier
    lease: Identifier
    request: Identifier
    lastmod: Annotated[
        float | None, Parameter(unit="seconds", at_least=-LATEST, at_most=LATEST, none="unknown")
    ]
    retry_after: Annotated[Seconds | None, Parameter(none="none was sent")]
    rows: Annotated[int, Parameter(name="count", at_least=1, at_most=MOST_ROWS)]
    within: Annotated[float, Parameter(at_least=0, at_most=1)]
    places: Annotated[int, Parameter(name="count", at_least=1, at_most=MOST_PLACES)]
    hosts: Annotated[int, Parameter(at_least=0, at_most=MOST_ROWS)]
    wait: Seconds
    cpu_seconds: Annotated[Seconds, Parameter(name="seconds")]
    time: Annotated[float, Parameter(unit="seconds", at_least=-LATEST, at_most=LATEST)]
    score: Annotated[float, Parameter(above=-LARGEST_SCORE, below=LARGEST_SCORE)]
    status: Annotated[int, Parameter(at_least=0, at_most=999)]
    priority: Annotated[float | None, Parameter(at_least=0, at_most=1, none="0.5")]


ARGUMENTS = parameters_of(Arguments)


def argument(name: str, value: Any) -> Any:
    """Return a number in its own type, checked against :data:`ARGUMENTS`."""
    return ARGUMENTS[name].check(value)


def checked_ahead(name: str, value: Any) -> float:
    """Return a number of seconds from now, which may be infinite."""
    if isinstance(value, float) and value == math.inf:
        return value
    try:
        return float(argument(name, value))
    except ParameterError as error:
        said, got = str(error).rsplit("; got", 1)
        raise ParameterError(f"{said}, or math.inf for ever; got{got}") from None


def checked_limits(limits: HostLimits) -> HostLimits:
    """Return the limits of a host, checked. A block may be infinite."""
    checked: Any = {
        name: (checked_ahead if name == "block" else argument)(name, value) for name, value in limits.items()
    }
    return cast(HostLimits, checked)


def moment(value: Any) -> float:
    """Return the time that a clock gave, in Unix seconds."""
    return float(ARGUMENTS["time"].check(value, "the Unix time that `clock` returns"))


def check_flags(**flags: Any) -> None:
    """Refuse a value that is neither True nor False."""
    for name, value in flags.items():
        if value is not True and value is not False:
            raise ParameterError(f"{name} must be True or False; got {value!r}")


def check_text(name: str, value: Any) -> None:
    """Refuse a value that is not a string."""
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be text; got {value!r:.200}")


def check_texts(**texts: Any) -> None:
    """Refuse a value that is neither a string nor None."""
    for name, value in texts.items():
        if value is not None and not isinstance(value, str):
            raise ParameterError(f"{name} must be text or None; got {value!r:.200}")


def checked_states(states: Sequence[Any]) -> Sequence[str]:
    """Return the states whose pages are reloaded: those that are given, else ``"failed"``."""
    for state in states:
        if state not in RELOADED:
            raise ParameterError(f"`states` must be among {', '.join(RELOADED)}; got {state!r:.100}")
    return states or RELOADED[:1]


def host_name(host: Any) -> str:
    """The name of a host in canonical form, from any form of it or from a URL."""
    form = None
    if isinstance(host, str) and (text := host.strip()):
        form = canonical(text if "://" in text else f"http://{text}/")
    if form is None:
        raise ParameterError(f"`host` must be a host's name or a URL; got {host!r:.200}")
    return _PORT.sub("", form.split("/", 3)[2])


def position_of(cursor: Any, most: int) -> int:
    """Return the number in a cursor; 0 without a cursor."""
    if cursor is None:
        return 0
    sound = isinstance(cursor, str) and cursor.isascii() and cursor.isdigit() and len(cursor) < 20
    if not sound or int(cursor) > most:
        raise ParameterError(f"`cursor` must come from the result of the same call; got {cursor!r}")
    return int(cursor)
