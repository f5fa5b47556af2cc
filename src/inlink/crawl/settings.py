"""The settings of one crawl: those that its folder keeps, and those that are given now.

The table itself is :mod:`inlink.frontier.settings`. A setting that is not given stays as the folder has it. A dict for
a group changes the fields that it names; an instance replaces the group.
"""

import difflib
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from inlink.base.declare import Parameter, Seconds, parameters_of
from inlink.base.folder import atomic_file
from inlink.errors import FolderError, ParameterError
from inlink.factors.table import HOST_FACTORS
from inlink.frontier.revisit import (
    REMOVED,
    StoredSchedule,
    removed,
    revisit_as_data,
    revisit_of,
    rules_in_file,
)
from inlink.frontier.rules import Rules
from inlink.frontier.settings import GROUPS, TABLE, Settings
from inlink.store.format import SETTINGS
from inlink.store.pages import Pages
from inlink.store.prior import DISTRUST, PRIOR, kept_checksum
from inlink.store.reader import crawl_folder, known_pages, url_rules_of
from inlink.urls.canonical import UrlRules

if TYPE_CHECKING:
    from inlink.frontier.policies import Policy

FILE, _CHECK = "settings.json", "check"


@dataclass(frozen=True)
class SpiderSettings:
    """Settings of a spider. They are not kept in the crawl's folder."""

    crawl: Annotated[
        str | None,
        Parameter(
            "The crawl's folder, its URL on a [server](server.md), or the URLs of all its [shards](shards.md), "
            "separated by commas.",
            none="no crawl",
        ),
    ] = None
    owner: Annotated[
        str | None,
        Parameter(
            "Name of the spider. A new session under this name ends the previous session, whose tasks are lost.",
            none="`spider` in a folder; on a server the names of spider and machine, and the process id",
        ),
    ] = None
    seeds: Annotated[
        str | None,
        Parameter(
            "A file of URLs to begin at: one URL a line, optionally followed by a tab and a score.",
            none="no file",
        ),
    ] = None
    content_scorer: Annotated[
        object, Parameter("How good a page is: a name, a dict or an object.", none="no scorer")
    ] = None
    link_scorer: Annotated[
        object, Parameter("How promising a link is: a dict or an object.", none="no scorer")
    ] = None
    allow_private: Annotated[
        bool,
        Parameter(
            "Whether addresses that are not public may be fetched: loopback, private, link-local, reserved."
        ),
    ] = True
    allow_addresses: Annotated[
        Sequence[str],
        Parameter(
            "Addresses and networks (`10.1.0.0/16`) that may be fetched although they are not public.",
            commas=True,
        ),
    ] = ()
    deny_addresses: Annotated[
        Sequence[str], Parameter("Addresses and networks that must not be fetched.", commas=True)
    ] = ()
    apply_rules: Annotated[
        bool,
        Parameter(
            "Begin also if the rules or the allowed addresses of this run exclude more than a tenth of the waiting "
            "pages."
        ),
    ] = False
    items: Annotated[
        bool,
        Parameter(
            "Keep the items of each page in the crawl's log, together with the page: see "
            "[Items exactly once](scrapy.md#items-exactly-once)."
        ),
    ] = False
    max_wait: Annotated[
        Seconds | None,
        Parameter(
            "A spider ends if no page is due within this time. Pages that are due later are left for the next run.",
            none="for ever",
        ),
    ] = 60.0


class Chosen(NamedTuple):
    """The settings that a crawl is opened with.

    ``before`` are the settings in its folder, None if there is no crawl yet. ``policy`` is the policy that was given,
    or the class that the policy's name stands for.
    """

    settings: Settings
    before: Settings | None
    policy: "type[Policy] | Policy"

    @property
    def told(self) -> str:
        """The end of a log line: the settings that were kept from the folder, and those that were changed."""
        if self.before is None:
            return ""
        old, new, usual = _flat(self.before), _flat(self.settings), _flat(Settings())
        kept = [f"{name} {_brief(new[name])}" for name in new if new[name] == old[name] != usual[name]]
        changes = differences(self.before, self.settings)
        return (f"; kept from the folder: {', '.join(kept)}" if kept else "") + (
            f"; changed: {', '.join(changes)}" if changes else ""
        )


def choose(folder: Path, given: Mapping[str, Any]) -> Chosen:
    """Return the settings that a crawl has after the given settings are applied. No file is written.

    Parameters
    ----------
    folder : Path
        The folder of a crawl, which need not exist yet.
    given : mapping
        Values by name, as :class:`inlink.Crawl` takes them.

    Raises
    ------
    inlink.errors.ParameterError
        If a value is outside its range, or a fixed setting changes.
    inlink.errors.FolderError
        If the folder's settings cannot be read.
    """
    from inlink.frontier.policies import policy_found, policy_name, policy_of

    before = stored(folder) if is_there(folder) else None
    base = Settings() if before is None else before
    policy = given.get("policy", base.policy)
    values = dict(given) | ({"policy": policy_name(policy)} if "policy" in given else {})
    settings = changed(base, values)
    if before is not None:
        before = _with_code(folder, before, settings)
    for name, row in parameters_of(Settings).items():
        if row.fixed and before is not None and getattr(settings, name) != getattr(before, name):
            raise ParameterError(
                f"`{name}` cannot change after a crawl was made: {folder} has {getattr(before, name)!r}; "
                f"got {getattr(settings, name)!r}. Leave `{name}` out, or begin another crawl"
            )
    if before is not None:
        keep_shard(before, settings)
    found = policy_found(policy) if "policy" in given else policy_of(folder, base.policy, None)
    check_together(settings, found)
    return Chosen(settings, before, found)


def shard_of(settings: Settings) -> str | None:
    """The shard of a crawl that the rules name; None if the crawl has no shards."""
    return None if settings.rules is None else settings.rules.shard


def check_together(settings: Settings, policy: "type[Policy] | Policy") -> None:
    """Check settings that depend on each other.

    Raises
    ------
    inlink.errors.ParameterError
        If ``trust``, ``distrust`` or ``prior`` does not apply to the policy, ``trust`` is combined with ``use_scores``,
        or a factor lacks the setting that it needs.
    """
    for name, value, applies in (
        ("trust", settings.trust, policy.takes_trust),
        ("distrust", settings.distrust, policy.takes_distrust),
        ("prior", settings.prior, policy.takes_prior),
    ):
        if value is not None and not applies:
            raise ParameterError(
                f"`{name}` does not apply to policy {settings.policy!r}: choose pagerank or host-diverse, "
                f"or give {name}=None"
            )
    if settings.trust is not None and settings.use_scores:
        raise ParameterError(
            "`trust` and `use_scores` cannot be combined, because each sets the teleport of PageRank: give one of them"
        )
    for kind in HOST_FACTORS:
        kind.check(settings)


def changed(base: Settings, given: Mapping[str, Any]) -> Settings:
    """Return settings with the given values. A mapping for a group changes only the fields that it names.

    Raises
    ------
    inlink.errors.ParameterError
        If there is no such setting, or a value is outside its range.
    """
    values: dict[str, Any] = {}
    for name, given_value in given.items():
        value = checked(name, given_value)
        if name in GROUPS and isinstance(value, Mapping):
            value = replace(getattr(base, name) or GROUPS[name](), **value)
        values[name] = value
    rules, shard = values.get("rules", base.rules), shard_of(base)
    if "rules" in values and shard is not None and (rules is None or rules.shard is None):
        # Other rules for the same shard.
        values["rules"] = replace(rules or Rules(), shard=shard)
    return replace(base, **values)


def keep_shard(before: Settings, after: Settings) -> None:
    """Refuse settings that would make a crawl another shard: the cursors of all shards would be wrong."""
    if shard_of(before) != shard_of(after):
        raise ParameterError(
            f"`rules.shard` cannot change after a crawl was made: it is {shard_of(before)!r}; got "
            f"{shard_of(after)!r}. Leave it out, or make other shards by inlink reshard"
        )


def differences(before: Settings, after: Settings) -> list[str]:
    """The settings that differ, in words."""
    old, new = _flat(before), _flat(after)
    return [
        f"{name} from {_brief(old[name])} to {_brief(new[name])}" for name in new if new[name] != old[name]
    ]


def _with_code(folder: Path, before: Settings, settings: Settings) -> Settings:
    """Return the folder's settings, with the given schedule if the folder names the same schedule."""
    if isinstance(settings.revisit, StoredSchedule):
        place = settings.revisit.place
        if place in REMOVED:
            raise removed(place, str(folder))
        raise ParameterError(
            f"{folder}: this crawl's schedule {place!r} is code from outside inlink: if you trust it, allow its "
            f"import with revisit={revisit_as_data(settings.revisit)!r}"
        )
    if isinstance(before.revisit, StoredSchedule) and revisit_as_data(before.revisit) == revisit_as_data(
        settings.revisit
    ):
        return replace(before, revisit=settings.revisit)
    return before


def checked(name: str, value: Any, place: str = "", *, texts: bool = False) -> Any:
    """Check a setting's value and return it in the setting's type.

    Parameters
    ----------
    name : str
        Name of a field of :class:`~inlink.frontier.settings.Settings`.
    value : object
        The value. A mapping for a group holds the fields to change.
    place : str
        Name of the setting in messages.
    texts : bool
        Whether the value, or the mapping's values, may be strings to be parsed, as from a command line. A string for
        ``revisit_rules`` names a file.

    Returns
    -------
    object
        The value. For a mapping it is a mapping, except for ``revisit``.

    Raises
    ------
    inlink.errors.ParameterError
        If there is no such setting, or the value is outside its range.
    """
    row, place = _row(name, parameters_of(Settings)), place or name
    if row.kind is str and isinstance(value, os.PathLike):
        value = os.fspath(value)
    if texts and isinstance(value, str) and name == "revisit_rules":
        value = rules_in_file(value, place)
    elif texts and isinstance(value, str) and (row.kind is not str or row.none is not None):
        value = row.parse(value, place)
    if isinstance(value, Mapping) and name in GROUPS:
        found: dict[str, Any] = {}
        for key, given in value.items():
            field = _row(str(key), parameters_of(GROUPS[name]), place)
            if texts and isinstance(given, str) and field.kind not in (str, tuple):
                given = field.parse(given, f"{place}.{key}")
            if field.kind is tuple and isinstance(given, str) and name == "rules":
                given = (given,)
            found[field.name] = field.check(given, f"{place}.{key}")
        return found
    if isinstance(value, Mapping) and name == "revisit":
        return revisit_of(dict(value), place)
    return row.check(value, place)


def from_name(name: str, text: str, place: str = "") -> tuple[str, Any]:
    """Parse the text value of a setting, or of a field of a group.

    Parameters
    ----------
    name : str
        A name such as ``damping`` or ``politeness.delay``.
    text : str
    place : str
        Name of the setting in messages.

    Returns
    -------
    str
        Name of the setting or of the group.
    object
        The value. For a field of a group, a mapping of the field to its value.

    Raises
    ------
    inlink.errors.ParameterError
        If there is no such setting, or the text is not a value in its range.
    """
    row, place = _row(name, TABLE), place or name
    group, dot, field = name.partition(".")
    if dot:
        return group, {field: row.parse(text, place)}
    return name, checked(name, text, place, texts=True)


def lay_over(found: dict[str, Any], name: str, value: Any) -> None:
    """Replace the value of a setting in ``found`` by a checked value. A mapping changes only the fields it names."""
    before = found.get(name)
    if isinstance(value, Mapping) and before is not None:
        value = {**before, **value} if isinstance(before, Mapping) else replace(before, **value)
    found[name] = value


def is_there(folder: Path) -> bool:
    """Return whether a folder already holds a crawl, or other data of inlink."""
    return (folder / "header.json").exists()


def stored(folder: Path) -> Settings:
    """The settings that a crawl's folder keeps.

    Each change of the settings is an event of the log. ``settings.json`` holds the last settings, so the log need not
    be read for them. If that file is missing, the log is read.

    Raises
    ------
    inlink.errors.FolderError
        If there is no crawl, or its settings cannot be read.
    """
    crawl_folder(folder)
    path = folder / FILE
    try:
        return _decoded(path.read_bytes(), url_rules_of(folder))
    except FileNotFoundError:
        return _last_in_log(folder)
    except (OSError, TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise FolderError(
            f"{path} cannot be read ({said}): restore it from a copy, or remove it: the log also holds the settings"
        ) from None


def _last_in_log(folder: Path) -> Settings:
    pages = known_pages(folder, with_urls=False)
    try:
        places = pages.frames.of_kind(SETTINGS)
        if not places:
            raise FolderError(
                f"{folder} has no {FILE}, and no settings in its log: "
                "write {} into that file to go on with the defaults"
            )
        return _decoded(pages.frames.frame(places[-1]).payload, url_rules_of(folder))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise FolderError(
            f"{folder}: the settings in the log cannot be read ({error}): "
            f"restore {FILE} from a copy, or write {{}} into it to go on with the defaults"
        ) from None
    finally:
        pages.close()


def _decoded(raw: bytes, url_rules: UrlRules | None) -> Settings:
    data = msgspec.json.decode(raw, type=dict[str, Any])
    # A file of an earlier version, or of a person, has no checksum.
    if data.pop(_CHECK, None) not in (None, _check_of(data)):
        raise ValueError("its checksum differs")
    return replace(from_data(data), url_rules=url_rules)


def _check_of(data: Mapping[str, Any]) -> int:
    return zlib.crc32(msgspec.json.encode(data))


def from_data(data: Mapping[str, Any]) -> Settings:
    """Return the settings that :func:`as_data` turned into data for JSON. No code that they name is imported.

    Raises
    ------
    TypeError, ValueError
        If the data are not settings.
    """
    found = dict(data)
    found.pop("lists", None)
    for name, group in GROUPS.items():
        if found.get(name) is not None:
            found[name] = group(**found[name])
    found["revisit"] = revisit_of(found.get("revisit"), "revisit", from_folder=True)
    return Settings(**found)


def as_data(settings: Settings) -> dict[str, Any]:
    """Return settings as data for JSON. They include the fixed settings, which the folder's header also holds."""
    data = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return data | {"revisit": revisit_as_data(settings.revisit)}


def event_of(folder: Path, settings: Settings) -> bytes:
    """Return the payload of the event of new settings.

    Besides the settings it has ``lists``: the checksums of the lists of hosts that the crawl's folder keeps, by the
    names of the settings.
    """
    return msgspec.json.encode(as_data(settings) | {"lists": _lists(folder, settings)})


def _lists(folder: Path, settings: Settings) -> dict[str, int]:
    return {
        name: kept_checksum(folder, name) for name in (DISTRUST, PRIOR) if getattr(settings, name) is not None
    }


def names_lists(pages: Pages, settings: Settings) -> bool:
    """Return whether the log's last event of settings names the lists of hosts that the crawl's folder keeps."""
    lists = _lists(pages.folder, settings)
    if not lists:
        return True
    places = pages.frames.of_kind(SETTINGS)
    data = msgspec.json.decode(pages.frames.frame(places[-1]).payload) if places else {}
    return bool(data.get("lists") == lists)


def encoded(settings: Settings) -> bytes:
    """Return the content of ``settings.json``: all settings but the fixed ones, which the folder's header keeps, and a
    checksum.
    """
    fixed = [name for name, row in parameters_of(Settings).items() if row.fixed]
    data = {name: value for name, value in as_data(settings).items() if name not in fixed}
    return msgspec.json.format(msgspec.json.encode({**data, _CHECK: _check_of(data)}), indent=1)


def save(folder: Path, settings: Settings) -> None:
    """Write settings into a crawl's folder."""
    with atomic_file(folder / FILE, sync=False) as file:
        file.write_bytes(encoded(settings))


def _row(name: str, rows: Mapping[str, Parameter], place: str = "") -> Parameter:
    if name in rows:
        return rows[name]
    near = difflib.get_close_matches(name, rows, 1) or [
        known for known in TABLE if rows is TABLE and known.endswith(f".{name}")
    ]
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(rows)}"
    raise ParameterError(f"{place + ': ' if place else ''}no setting is called {name!r}; {hint}")


def _flat(settings: Settings) -> dict[str, Any]:
    """The values of settings by name. The fields of a group have names such as ``politeness.delay``."""
    found: dict[str, Any] = {}
    for name in parameters_of(Settings):
        value = getattr(settings, name)
        if name in GROUPS:
            group = value or GROUPS[name]()
            found |= {f"{name}.{field}": getattr(group, field) for field in parameters_of(GROUPS[name])}
        else:
            found[name] = value
    return found


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
