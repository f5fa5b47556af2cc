"""Pictures as files: the same bytes each time, whole or not at all."""

import os
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inlink.base.folder import atomic_file
from inlink.errors import OutputError

__all__ = ["check", "save"]

FORMATS = {".png": "png", ".svg": "svg"}
# no date, no version: equal pictures are equal files
METADATA: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def check(path: str | os.PathLike[str]) -> str:
    """The format that a file's name asks for: ``"png"`` or ``"svg"``.

    Raises
    ------
    inlink.errors.OutputError
        If it asks for neither.
    """
    found = FORMATS.get(Path(path).suffix.lower())
    if found is None:
        raise OutputError(f"{path}: a picture is a .png or a .svg file")
    return found


def save(picture: Axes | Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture as PNG or SVG, as the file's extension says; one of that name is replaced when it is whole.

    Parameters
    ----------
    picture : matplotlib.axes.Axes or matplotlib.figure.Figure
        What a function of :mod:`inlink.plot` returned, or the whole figure.
    path : path-like

    Raises
    ------
    inlink.errors.OutputError
        If the extension is another, or nothing can be written there.
    """
    wanted = check(path)
    part = picture.figure if isinstance(picture, Axes) else picture
    figure = None if part is None else part.figure  # of a subfigure the whole one
    if not isinstance(figure, Figure):
        raise OutputError(f"{path}: these axes are in no figure any more")
    with atomic_file(path) as work:
        try:
            with matplotlib.rc_context({"svg.hashsalt": "inlink", "svg.fonttype": "path"}):
                figure.savefig(work, format=wanted, metadata=METADATA[wanted])
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error.strerror or error})") from None
