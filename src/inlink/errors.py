"""Every exception that inlink raises on purpose, on one screen.

Each message says what happened, where, and what to do about it. The command line prints the message as one
line and leaves with exit code 2.

::

    InlinkError
    ├── InputError           input cannot be read; the message names file, place and remedy
    │   ├── FormatError      no known format, or not the format that the caller named
    │   └── DamageError      a known format, but cut or damaged (raised only where it cannot be skipped)
    ├── OutputError          output cannot be written (a name the format cannot hold, a folder in the way)
    ├── FolderError          an inlink folder is missing, damaged, of another kind or of a newer version
    │   └── InUseError       another process is writing it; the message names it
    ├── StoreError           a crawl cannot be written (a full disk); all earlier events are kept
    ├── ServerError          a server of crawls cannot be reached, or does not take the request
    ├── SessionError         a spider's session has ended, or it sent a request that is older than its last
    ├── ParameterError       a parameter has an invalid value (also a ValueError)
    ├── UnknownNodeError     no node has that name or number (also a KeyError)
    └── MissingExtraError    an optional part is not installed; the message says how to install it (also an ImportError)
"""

__all__ = [
    "DamageError",
    "FolderError",
    "FormatError",
    "InUseError",
    "InlinkError",
    "InputError",
    "MissingExtraError",
    "OutputError",
    "ParameterError",
    "ServerError",
    "SessionError",
    "StoreError",
    "UnknownNodeError",
]


class InlinkError(Exception):
    """The base class of all errors that inlink raises on purpose."""


class InputError(InlinkError):
    """Input cannot be read."""


class FormatError(InputError):
    """A file is in no known format, or not in the format that the caller named."""


class DamageError(InputError):
    """A file is in a known format, but cut or damaged at a place that the message names."""


class OutputError(InlinkError):
    """Output cannot be written."""


class FolderError(InlinkError):
    """An inlink folder is missing, damaged, of another kind, or of a newer version."""


class InUseError(FolderError):
    """An inlink folder is being written by another process."""


class StoreError(InlinkError):
    """A crawl cannot be written. All earlier events are kept."""


class ServerError(InlinkError):
    """A server of crawls cannot be reached, or does not take the request."""


class SessionError(InlinkError):
    """A spider's session has ended, or a request is older than the last one of its session."""


class ParameterError(InlinkError, ValueError):
    """A parameter has an invalid value."""


class UnknownNodeError(InlinkError, KeyError):
    """No node has that name or number."""

    # KeyError would print the repr of the message.
    __str__ = Exception.__str__


class MissingExtraError(InlinkError, ImportError):
    """An optional part of inlink is not installed."""
