"""Access tokens of a server. Only their SHA-256 is on disk.

Each role includes the roles before it: a *reader* looks, a *spider* works, an *admin* steers. A token gives access to
all crawls of a server, or to one.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from inlink.base.checked import user_folder
from inlink.base.decoding import decoded
from inlink.base.folder import atomic_file
from inlink.errors import InputError, ParameterError

Role = Literal["reader", "spider", "admin"]
ROLES: tuple[Role, ...] = ("reader", "spider", "admin")

MOST_BYTES = 1 << 20
"""Maximum number of bytes of a file of tokens."""


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token, as it is kept.

    Parameters
    ----------
    name : str
        Name of its holder.
    role : {"reader", "spider", "admin"}
    crawl : str or None
        The only crawl that it opens; None is all.
    sha256 : str
        SHA-256 of the token's text, in hexadecimal.
    """

    name: str
    role: Role
    crawl: str | None
    sha256: str

    def opens(self, role: Role, crawl: str | None) -> bool:
        """Return whether this token grants a role for a crawl. None as ``crawl`` means the whole server."""
        return ROLES.index(self.role) >= ROLES.index(role) and self.crawl in (None, crawl)


class _Kept(msgspec.Struct, forbid_unknown_fields=True):
    tokens: list[Token] = []


def default_file() -> Path:
    """The default file of tokens: ``$XDG_CONFIG_HOME/inlink/tokens.json``, or below ``~/.config``."""
    return (user_folder("XDG_CONFIG_HOME", ".config") or Path()) / "tokens.json"


class Tokens:
    """The tokens in a file, which is read again when it has changed.

    Parameters
    ----------
    file : Path
        The file, which need not exist.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._stamp: tuple[int, int, int] | None = None
        self._by_digest: dict[str, Token] = {}
        self.refresh()

    def __len__(self) -> int:
        return len(self._by_digest)

    def all(self) -> list[Token]:
        """All tokens, in the order in which they were made."""
        return list(self._by_digest.values())

    def refresh(self) -> None:
        """Read the file if it has changed since it was read."""
        try:
            found = self.file.stat()
        except FileNotFoundError:
            self._stamp, self._by_digest = None, {}
            return
        except OSError as error:
            raise InputError(f"{self.file}: {error.strerror}: tokens cannot be read") from None
        stamp = found.st_mtime_ns, found.st_size, found.st_ino
        if stamp == self._stamp:
            return
        try:
            if found.st_size > MOST_BYTES:
                raise ValueError(f"it has {found.st_size:,} bytes")
            kept = decoded(self.file.read_bytes(), _Kept)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise InputError(
                f"{self.file} is no file of tokens ({error}): remove it, and make new tokens by inlink token add"
            ) from None
        self._by_digest = {token.sha256: token for token in kept.tokens}
        self._stamp = stamp

    def with_text(self, text: str) -> Token | None:
        """The token with this text; None if there is none."""
        return self._by_digest.get(digest(text))

    def with_digest(self, sha256: str) -> Token | None:
        """The token whose text has this SHA-256; None if there is none."""
        return self._by_digest.get(sha256)

    def add(self, name: str, role: Role, crawl: str | None = None) -> str:
        """Make a token of 256 bits and keep its SHA-256; return its text, which is not stored.

        Raises
        ------
        inlink.errors.ParameterError
            If the name is in use, or is not one short word.
        """
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,79}", name):
            raise ParameterError(
                f"a token's name must have 1 to 80 letters, digits, '.', '_', '@' or '-', a letter or digit first; "
                f"got {name!r}"
            )
        text = secrets.token_urlsafe(32)
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._alone():
            if any(token.name == name for token in self._by_digest.values()):
                raise ParameterError(
                    f"{self.file} has a token {name!r} already: choose another name, or remove that token"
                )
            self._keep([*self._by_digest.values(), Token(name, role, crawl, digest(text))])
        return text

    def remove(self, name: str) -> None:
        """Remove a token.

        Raises
        ------
        inlink.errors.ParameterError
            If no token has this name.
        """
        self.refresh()
        self._without(name)
        with self._alone():
            self._keep(self._without(name))

    def _without(self, name: str) -> list[Token]:
        left = [token for token in self._by_digest.values() if token.name != name]
        if len(left) == len(self._by_digest):
            raise ParameterError(f"there is no token {name!r} in {self.file}")
        return left

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other process changes the file, and read it again."""
        # The file itself cannot carry the lock: each change puts a new file in its place.
        folder = os.open(self.file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.refresh()
            yield
        finally:
            os.close(folder)

    def _keep(self, tokens: list[Token]) -> None:
        with atomic_file(self.file, secret=True) as part:
            part.write_bytes(msgspec.json.format(msgspec.json.encode(_Kept(tokens)), indent=1))
        self.refresh()


def digest(text: str) -> str:
    """The SHA-256 of a secret, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
