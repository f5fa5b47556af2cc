"""The addresses that the spider of a crawl may connect to, and a check that a run does not throw its queue away.

``inlink crawl`` connects to public addresses, and to those that its command line permits. A later run must have the
same permissions, or it would exclude the pages that wait. So the folder keeps them, in ``addresses.json``.

A folder may come from anybody. A stranger could put pages of a private host into the queue, permit that host, and let
you go on with the crawl, in order to read the pages. So a permission holds only in the folder in which you gave it.
When permissions are written, an empty file is made in ``$XDG_STATE_HOME/inlink/permitted`` or
``~/.local/state/inlink/permitted``. Its name is a hash of the user's number, the crawl's uuid, the content of
``addresses.json``, and that file's inode and ctime. An archive cannot bring such a file along, and no program can set a
ctime. So permissions do not hold

- in an unpacked archive, a copy or a restored backup, because their files have other inodes and ctimes;
- for another user than the owner of the folder and of the file, also not for root;
- after a hard link, ``chmod`` or ``chown`` of the file, because these set its ctime.

They hold after the folder was moved within its file system. The number of the device is not part of the hash, because a
restart may change it. So a snapshot of a whole file system counts as the same folder. Denied addresses hold everywhere.
"""

import logging
import os
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import numpy as np

from inlink.base.checked import is_noted, note, user_folder
from inlink.base.decoding import decoded
from inlink.base.folder import atomic_file
from inlink.crawl.settings import Chosen
from inlink.errors import FolderError, ParameterError
from inlink.store.format import CRAWLED
from inlink.store.life import OPEN
from inlink.store.reader import crawl_folder, known_pages
from inlink.urls.addresses import AddressRules, parsed

log = logging.getLogger("inlink.addresses")

FILE = "addresses.json"

_JUDGED = 10_000
"""The largest number of waiting pages that are judged."""

_MOST = 0.1
"""The share of them that a run may refuse."""


class Permissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The addresses that a spider may connect to, besides public ones.

    Parameters
    ----------
    private : bool
        All addresses are permitted.
    hosts : dict of str to str
        Hosts whose URLs the user typed, and the address of each, which is not public. The address is empty until the
        host is looked up.
    allow, deny : tuple of str
        Addresses and networks. Those in ``deny`` are refused in any case.
    """

    private: bool = False
    hosts: dict[str, str] = {}
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    @property
    def rules(self) -> AddressRules:
        """The rules for addresses, without the permitted hosts."""
        return AddressRules(private=self.private, allow=self.allow, deny=self.deny)

    def covers(self, other: "Permissions") -> bool:
        """Return whether all that `other` permits is permitted here too."""
        wider = self.private or (
            not other.private and other.hosts.keys() <= self.hosts.keys() and {*other.allow} <= {*self.allow}
        )
        return wider and {*self.deny} <= {*other.deny}

    def permitted(self) -> list[str]:
        """Return the permitted hosts, addresses and networks as texts."""
        return ["all addresses"] if self.private else [*sorted(self.hosts), *self.allow]


class Kept(msgspec.Struct, frozen=True):
    """The permissions in a crawl's folder, and whether they hold for this user in this folder."""

    permissions: Permissions
    hold: bool

    def __str__(self) -> str:
        said = ", ".join(["public", *self.permissions.permitted()])
        denied = f"; never {', '.join(self.permissions.deny)}" if self.permissions.deny else ""
        copied = "; in this folder only public ones" if self.permissions.permitted() and not self.hold else ""
        return said + denied + copied


def kept(folder: Path) -> Kept | None:
    """Return the permissions in a crawl's folder; None if it has none.

    Raises
    ------
    inlink.errors.FolderError
        If they cannot be read.
    """
    try:
        with (folder / FILE).open("rb") as file:
            stamp, raw = os.fstat(file.fileno()), file.read()
    except FileNotFoundError:
        return None
    try:
        found = decoded(raw, Permissions)
        _ = found.rules
    except (msgspec.MsgspecError, ValueError, RecursionError, ParameterError) as error:
        raise FolderError(
            f"{folder / FILE} cannot be read ({error}): remove it, and permit addresses again that are not public"
        ) from None
    place = _place()
    own = folder.stat().st_uid == stamp.st_uid == os.geteuid()
    return Kept(found, own and place is not None and is_noted(place, _parts(folder, stamp, raw)))


def keep(folder: Path, permissions: Permissions, *, hold: bool = True) -> None:
    """Write permissions into a crawl's folder. With ``hold`` they hold for this user in this folder."""
    if kept(folder) == Kept(permissions, hold):
        return
    raw = msgspec.json.format(msgspec.json.encode(permissions), indent=1) + b"\n"
    with atomic_file(folder / FILE, sync=False) as work:
        work.write_bytes(raw)
    if not hold:
        return
    place = _place()
    try:
        if place is None:
            raise FileNotFoundError(2, "this user has no home folder")
        # The ctime is that of the renaming.
        note(place, _parts(folder, (folder / FILE).stat(), raw))
    except OSError as error:
        if permissions.permitted():
            log.warning(
                "the next run must be permitted again to fetch %s, because %s cannot be written (%s)",
                ", ".join(permissions.permitted()),
                place or "~/.local/state",
                error.strerror,
            )


def _place() -> Path | None:
    state = user_folder("XDG_STATE_HOME", ".local/state")
    return None if state is None else state / "permitted"


def _parts(folder: Path, stamp: os.stat_result, raw: bytes) -> list[object]:
    return [os.geteuid(), crawl_folder(folder).header.uuid, stamp.st_ino, stamp.st_ctime_ns, raw]


def refuse_losses(folder: Path, chosen: Chosen, permissions: Permissions, *, project: bool = False) -> None:
    """Refuse a run whose rules or permissions exclude more than a tenth of the waiting pages.

    At most 10,000 waiting pages are judged, drawn at random with a fixed seed. Only pages count that the last run would
    have fetched. The folder is only read, and only if rules or permissions are stricter than in the last run.

    Parameters
    ----------
    folder : Path
        The crawl's folder.
    chosen : Chosen
        Its settings, before and after.
    permissions : Permissions
        The permissions of the run.
    project : bool
        Whether to name the settings of a Scrapy project, in place of options.

    Raises
    ------
    inlink.errors.ParameterError
        If more pages are refused; the message has the number, the reasons and the remedies.
    """
    if chosen.before is None:
        return
    had = kept(folder)
    old = Permissions(private=True) if had is None else had.permissions
    rules, rules_before = chosen.settings.rules, chosen.before.rules
    if rules == rules_before and permissions.covers(old):
        return
    states = (*OPEN, CRAWLED) if chosen.settings.revisits else OPEN
    reasons: Counter[str] = Counter()
    lost: set[str] = set()
    pages = known_pages(folder)
    try:
        waiting = np.flatnonzero(np.isin(pages.states[: pages.num_pages], states))
        judged = waiting.astype(np.uint32)
        if len(waiting) > _JUDGED:
            judged = np.sort(np.random.default_rng(1).choice(judged, _JUDGED, replace=False))
        for url, depth in zip(pages.urls(judged), pages.depths[judged].tolist(), strict=True):
            reason = rules.verdict(url, depth) if rules else None
            if reason is not None and not (rules_before and rules_before.verdict(url, depth)):
                reasons[reason] += 1
            elif reason is None:
                host = urlsplit(url).hostname or ""
                address = host if parsed(host) else old.hosts.get(host, "")
                refusal = _refusal(permissions, host, address)
                if refusal is not None and _refusal(old, host, address) is None:
                    reasons[refusal] += 1
                    lost.add(host)
    finally:
        pages.close()
    refused = reasons.total()
    if refused <= _MOST * len(judged):
        return
    share = f"{refused:,} of {len(waiting):,} waiting pages"
    if len(judged) < len(waiting):
        share = f"about {refused / len(judged):.1%} of {len(waiting):,} waiting pages"
    why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(3))
    remedy = ""
    if lost:
        if had is not None and not had.hold and lost & {*old.hosts, *old.allow}:
            remedy = (
                "What was permitted in this crawl does not hold here, because the folder is a copy, a restored backup "
                "or another user's. "
            )
        permit = (
            "INLINK_ALLOW_ADDRESSES or INLINK_ALLOW_PRIVATE"
            if project
            else "its URL, --allow-address or --allow-private"
        )
        remedy += f"If you trust the crawl, permit {min(lost)} by {permit}. "
    apply = "set INLINK_APPLY_RULES = True" if project else "give --apply-rules"
    raise ParameterError(
        f"{folder}: this run would exclude {share}: {why}{', …' if len(reasons) > 3 else ''}. "
        f"Nothing was fetched or changed. {remedy}To exclude these pages, {apply}"
    )


def _refusal(permissions: Permissions, host: str, address: str) -> str | None:
    """The reason why a host's address is refused; None if it is permitted or not known."""
    if not address:
        return None
    rules = permissions.rules
    rules.private = rules.private or host in permissions.hosts
    return rules.refusal(address)
