"""The folder of the crawls that clients make and delete."""

import re
from pathlib import Path

from inlink.base.disk import DescribedErrors, remove_folder, sync_path
from inlink.errors import InlinkError, OutputError, ParameterError

MOST_CRAWLS = 100
"""Maximum number of crawls that clients can have at a time. Each crawl has a thread and about five open files."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")

# Unusual enough that the server removes no hidden folder of somebody else.
_DELETED = ".inlink-deleted"


class TooManyCrawlsError(InlinkError):
    """Clients already have the maximum number of crawls."""


class ClientCrawls:
    """The folder of the crawls that clients make and delete; each subfolder with a crawl is named like the crawl.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.

    Attributes
    ----------
    names : set of str
        The crawls that exist.

    Raises
    ------
    inlink.errors.OutputError
        If the folder cannot be made or read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with DescribedErrors(folder, OutputError):
            folder.mkdir(parents=True, exist_ok=True)
            for gone in folder.glob(f".*{_DELETED}"):
                # The server died while it deleted this crawl.
                remove_folder(gone)
            self.names = {
                entry.name
                for entry in folder.iterdir()
                if _NAME.fullmatch(entry.name) and (entry / "header.json").exists()
            }

    def place(self, name: str) -> Path:
        """The folder of a crawl that exists or can be made.

        Raises
        ------
        inlink.errors.ParameterError
            If a crawl cannot have this name.
        TooManyCrawlsError
            If there are too many crawls.
        """
        if not _NAME.fullmatch(name):
            raise ParameterError(
                f"a crawl's name must have 1 to 100 letters, digits, '.', '_' or '-', and not begin with '.' or '-'; "
                f"got {name!r:.120}"
            )
        if name not in self.names and len(self.names) >= MOST_CRAWLS:
            raise TooManyCrawlsError(
                f"clients already have {MOST_CRAWLS} crawls, which is the maximum: delete one with DeleteCrawl"
            )
        return self._folder / name

    def remove(self, name: str) -> None:
        """Remove the folder of a crawl that is closed.

        Raises
        ------
        inlink.errors.OutputError
            If the system does not allow it. Then the crawl stays as it is.
        """
        folder, gone = self._folder / name, self._folder / f".{name}{_DELETED}"
        with DescribedErrors(folder, OutputError):
            # A kill leaves either the whole crawl, or a hidden folder that the next start removes.
            remove_folder(gone)
            folder.rename(gone)
            sync_path(self._folder)
        self.names.discard(name)
        remove_folder(gone)
