"""Packages of extras: imported when a call needs them, with one line on how to install them if they are missing."""

from importlib import import_module
from typing import Any

from inlink.errors import MissingExtraError


def load(module: str, extra: str | None, purpose: str) -> Any:
    """Import and return a module of an extra.

    Parameters
    ----------
    module : str
        Such as ``pyarrow.parquet``.
    extra : str or None
        The extra that installs it. None: no extra does, so the message names the package itself.
    purpose : str
        Beginning of the message: the call or format that needs the package.

    Raises
    ------
    inlink.errors.MissingExtraError
        If the package is not installed. The message has the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        wanted = f"'inlink[{extra}]'" if extra else package
        raise MissingExtraError(f"{purpose} needs {package}: pip install {wanted}") from None
