"""Files behind ``https://``, ``http://`` and ``s3://``, as streams that go on after a cut connection.

Nothing is kept on disk. :mod:`inlink.base.httpstream` reads ``https://`` and ``http://``.
"""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from inlink.errors import InputError, MissingExtraError, OutputError

__all__ = [
    "Stamp",
    "UnreachableError",
    "download",
    "is_remote",
    "open_remote",
    "remove_remote",
    "stamp_of",
    "upload",
]

_BLOCK = 1 << 20


class UnreachableError(InputError):
    """A server does not answer, or refuses for now. The file may be there: trying again later may help."""


class Stamp(NamedTuple):
    """The version of a remote file: its size in bytes, -1 if unknown, and an ETag or a time."""

    size: int
    version: str


# A path has one slash where a URL has two.
_URL = re.compile(r"(https?|s3):/+", re.I)


def is_remote(path: object) -> bool:
    """Return whether a source is a URL that :func:`open_remote` opens, as text or as a path made of it."""
    return isinstance(path, str | os.PathLike) and _URL.match(os.fspath(path)) is not None


def open_remote(url: str) -> io.BufferedReader:
    """Open a URL for reading from front to back.

    Raises
    ------
    inlink.errors.InputError
        If there is no such file. :class:`UnreachableError` if the server does not answer.
    inlink.errors.MissingExtraError
        If S3 is not supported here.
    """
    url = _URL.sub(r"\1://", url, count=1)
    if url.lower().startswith("s3://"):
        return _s3_stream(url)
    # Most sources are files, and the modules for HTTP and TLS take 25 ms.
    from inlink.base.httpstream import HttpStream

    return io.BufferedReader(HttpStream(url), _BLOCK)


def stamp_of(url: str) -> Stamp:
    """Return the stamp of a remote file, which differs between versions of the file.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.MissingExtraError
        As :func:`open_remote`.
    """
    if url.lower().startswith("s3://"):
        return _s3_stamp(url)
    from inlink.base.httpstream import HttpStream

    with HttpStream(url) as stream:
        return stream.stamp


def _s3(url: str) -> tuple[Any, str]:
    """Return the file system of S3, and the path of a file in it.

    The usual variables hold: ``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL``, ``AWS_REGION``, and credentials. Without
    credentials, requests are anonymous.
    """
    try:
        from pyarrow.fs import S3FileSystem
    except ImportError:
        raise MissingExtraError("s3:// needs pyarrow with S3: pip install 'inlink[s3]'") from None
    parts = urlsplit(url)
    if not parts.netloc or not parts.path.strip("/"):
        raise InputError(f"{url}: expected s3://BUCKET/KEY")
    known = any(os.environ.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ROLE_ARN"))
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    system = S3FileSystem(anonymous=not known, endpoint_override=endpoint or None, region=region)
    return system, parts.netloc + url[url.index(parts.netloc) + len(parts.netloc) :]


def upload(path: Path, url: str) -> None:
    """Copy a file to ``s3://``. It appears there when it is complete.

    Raises
    ------
    inlink.errors.OutputError
        If it cannot be written.
    inlink.errors.MissingExtraError
        If S3 is not supported here.
    """
    system, key = _s3(url)
    import shutil

    try:
        with path.open("rb") as source, system.open_output_stream(key) as target:
            shutil.copyfileobj(source, target, _BLOCK)
    except OSError as error:
        raise OutputError(f"{url}: cannot be written ({error})") from None


def download(url: str, path: Path) -> None:
    """Copy a remote file to a path.

    Raises
    ------
    inlink.errors.InputError, inlink.errors.MissingExtraError
        As :func:`open_remote`.
    """
    import shutil

    with open_remote(url) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target, _BLOCK)


def remove_remote(url: str) -> None:
    """Remove a file on ``s3://``, if that is allowed."""
    system, key = _s3(url)
    with contextlib.suppress(OSError):
        system.delete_file(key)


class _S3Stream(io.RawIOBase):
    """The bytes of a file on S3. A failure while it is read is not taken for damage of the file."""

    def __init__(self, url: str, file: Any) -> None:
        self.name, self._file = url, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count: int = self._file.readinto(buffer)
        except OSError as error:
            raise UnreachableError(f"{self.name}: cannot be read ({error})") from None
        return count

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _s3_stream(url: str) -> io.BufferedReader:
    system, key = _s3(url)
    try:
        # Arrow would unpack a file called .gz. At the first damaged member, the rest of the file would be lost.
        return io.BufferedReader(_S3Stream(url, system.open_input_stream(key, compression=None)), _BLOCK)
    except FileNotFoundError:
        raise InputError(f"{url} does not exist") from None
    except OSError as error:
        raise UnreachableError(f"{url}: cannot be read ({error})") from None


def _s3_stamp(url: str) -> Stamp:
    system, key = _s3(url)
    try:
        info = system.get_file_info(key)
    except OSError as error:
        raise UnreachableError(f"{url}: cannot be read ({error})") from None
    if info.size is None:
        raise InputError(f"{url} does not exist")
    return Stamp(info.size, str(info.mtime_ns))
