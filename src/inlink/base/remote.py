"""URLs as names of files: :mod:`inlink.base.urlfiles` opens them.

Most sources are files on this machine. So this module does not import those for HTTP and TLS, which take 25 ms.
"""

import os
import re
from typing import NamedTuple

from inlink.errors import InputError


class UnreachableError(InputError):
    """A server does not answer, or refuses for now. The file may be there: trying again later may help."""


class Stamp(NamedTuple):
    """The version of a remote file: its size in bytes, -1 if unknown, and an ETag or a time."""

    size: int
    version: str


# A path has one slash where a URL has two.
_URL = re.compile(r"(https?|s3):/+", re.I)


def is_remote(path: object) -> bool:
    """Return whether a source is a URL of a file, as text or as a path made of it."""
    return isinstance(path, str | os.PathLike) and _URL.match(os.fspath(path)) is not None


def restored(url: str) -> str:
    """Return a URL with the slash that it lost if it was made into a path."""
    return _URL.sub(r"\1://", url, count=1)
