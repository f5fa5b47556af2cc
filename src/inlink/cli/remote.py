"""The crawl that a command names: its folder, its URL on a server, or the crawl as it was (``--as-of``)."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inlink.errors import ParameterError

if TYPE_CHECKING:
    from inlink.client.remote import RemoteCrawl
    from inlink.client.shards import RemoteShards
    from inlink.crawl.asof import AsOf
    from inlink.crawl.view import CrawlView


OWNER = "command"
"""The owner of the session that all calls of ``inlink next`` share."""

SILENT_AFTER = 7 * 86400.0
"""Seconds without a call after which a server ends that session. Its tasks are lost when their leases expire."""


def is_url(where: object) -> bool:
    """Return whether an argument names a server rather than a folder or file."""
    return isinstance(where, str) and "://" in where


def is_crawl(url: str) -> bool:
    """Return whether a URL names a crawl on a server, as ``inlink serve`` prints it."""
    return re.search(r"^https?://[^?#]*/v1/crawls/[^/?#]+/?$", url) is not None


def refuse_url(where: object, instead: str) -> None:
    """Refuse the URL of a server, with advice.

    Raises
    ------
    inlink.errors.ParameterError
        If ``where`` is the URL of a server.
    """
    if is_url(where):
        raise ParameterError(f"{where}: {instead}")


class FolderOrUrl(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A folder as a :class:`~pathlib.Path`, or the URL of a crawl on a server as text.

    Parameters
    ----------
    instead : str
        If given, URLs are refused, and the message ends with this advice.
    """

    name = "path"

    def __init__(self, instead: str = "") -> None:
        self.instead = instead

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the place.

        Raises
        ------
        inlink.errors.ParameterError
            If the value is a URL, and the command needs a folder.
        """
        if not is_url(value):
            return Path(value)
        if self.instead:
            refuse_url(value, self.instead)
        return value


class Ranks(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A ranking: a file or folder as a :class:`~pathlib.Path`, or the URL of a file as text."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the place.

        Raises
        ------
        inlink.errors.ParameterError
            If the value is the URL of a crawl on a server, or of a kind that cannot be read.
        """
        from inlink.base.remote import is_remote

        if not is_url(value):
            return Path(value)
        if is_crawl(value) or not is_remote(value):
            refuse_url(
                value,
                "name a file or folder on this machine, or the https:// or s3:// URL of a file of ranks",
            )
        return value


def are_shards(where: object) -> bool:
    """Return whether an argument names the servers of several shards, separated by commas."""
    return is_url(where) and "," in str(where)


def remote(url: str) -> "RemoteCrawl | RemoteShards":
    """A crawl on a server, or all shards of a crawl. The connections end with the command."""
    if are_shards(url):
        from inlink.cli.show import note
        from inlink.client.shards import RemoteShards

        whole = RemoteShards(url.split(","), patience=0.0, note=note)
        click.get_current_context().call_on_close(whole.leave)
        return whole
    return spider(url)


def spider(url: str) -> "RemoteCrawl":
    """A crawl on a server, with the session of ``inlink next``.

    Raises
    ------
    inlink.errors.ParameterError
        If several shards are named.
    """
    from inlink.client.remote import RemoteCrawl

    if are_shards(url):
        raise ParameterError(f"{url}: a task belongs to one shard: name the URL of one shard")
    crawl = RemoteCrawl(url, OWNER, 0.0, silent_after=SILENT_AFTER, rejoin=True, renewing=False)
    click.get_current_context().call_on_close(crawl.leave)
    return crawl


def view_of(
    where: Path | str, given: Mapping[str, Any] | None = None, moment: str | None = None
) -> "CrawlView | RemoteCrawl | RemoteShards":
    """A read-only view of a crawl in a folder or on a server.

    Parameters
    ----------
    where : Path or str
    given : mapping or None
        Settings that were given to the command. Only the policy's name is allowed, and only for a folder.
    moment : str or None
        Take the crawl as it was then, as :func:`then` does. None is now.
    """
    given = given or {}
    if isinstance(where, str) and moment is None:
        refuse_settings(where, given)
        return remote(where)
    from inlink.crawl.view import CrawlView

    policy = policy_given(given)
    if moment is None:
        return CrawlView.open(Path(where), policy=policy)
    was = then(where, moment, order=True)
    return CrawlView.open(was.folder, lambda: was.time, policy)


def policy_given(given: Mapping[str, Any]) -> str | None:
    """The policy among the settings that were given to a read-only command.

    Raises
    ------
    inlink.errors.ParameterError
        If there is another setting, because the command changes nothing.
    """
    others = [name for name in given if name != "policy"]
    if others:
        raise ParameterError(
            f"this command is read-only, so --set takes only policy=MODULE:CLASS; got {', '.join(others)}"
        )
    return given.get("policy")


def refuse_settings(url: str, given: Mapping[str, Any]) -> None:
    """Refuse settings for a crawl on a server.

    Raises
    ------
    inlink.errors.ParameterError
        If there is a setting.
    """
    if given:
        raise ParameterError(
            f"{url}: the server decides {', '.join(sorted(given))}: leave --set out, or give it to `inlink serve`"
        )


def then(folder: Path | str, moment: str | None, *, order: bool = False) -> "AsOf":
    """A crawl's folder as it was, in a temporary copy that is removed when the command ends.

    A message on standard error names what is approximate.

    Parameters
    ----------
    folder : Path or str
    moment : str or None
        None is now.
    order : bool
        Whether the order of waiting pages is needed.

    Raises
    ------
    inlink.errors.ParameterError
        If the crawl is on a server, or its log has no such moment.
    inlink.errors.FolderError
        If there is no crawl.
    """
    from inlink.crawl.asof import as_of, moment_of
    from inlink.replaying.play import memory_folder

    when = math.inf if moment is None else moment_of(moment)
    if isinstance(folder, str):
        raise ParameterError(f"{folder}: --as-of reads the crawl's log: run the command where the folder is")
    temporary = memory_folder(sum(file.stat().st_size for file in folder.glob("*.*")))
    found = click.get_current_context().with_resource(as_of(folder, when, temporary, order=order))
    if found.approximate:
        click.echo(f"inlink: approximate: {found.approximate}", err=True)
    return found
