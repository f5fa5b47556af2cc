"""Write pictures to files: the same bytes each time, and always complete files."""

import os
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inlink.base.disk import unwritable
from inlink.base.folder import atomic_file
from inlink.errors import OutputError

# Without dates and versions, equal pictures are equal files.
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def check(path: str | os.PathLike[str]) -> str:
    """Return the format of a file by its extension: ``"png"``, ``"svg"`` or ``"pdf"``.

    Raises
    ------
    inlink.errors.OutputError
        If the file has another extension.
    """
    format = Path(path).suffix.lower().removeprefix(".")
    if format not in METADATA:
        raise OutputError(f"{path}: unknown extension: name a .png, .svg or .pdf file")
    return format


def save(picture: Axes | Figure, path: str | os.PathLike[str]) -> None:
    """Write a picture as PNG, SVG or PDF, by the extension. An existing file is replaced when the new one is complete.

    Parameters
    ----------
    picture : matplotlib.axes.Axes or matplotlib.figure.Figure
        The result of a function of :mod:`inlink.plot`, or the whole figure.
    path : path-like
        The file, with the extension .png, .svg or .pdf.

    Raises
    ------
    inlink.errors.OutputError
        If the file has another extension, or cannot be written.
    """
    wanted = check(path)
    part = picture.figure if isinstance(picture, Axes) else picture
    # A subfigure belongs to a whole figure.
    figure = None if part is None else part.figure
    if not isinstance(figure, Figure):
        raise OutputError(f"{path}: these axes are in no figure any more")
    with atomic_file(path) as work:
        try:
            with matplotlib.rc_context(
                {"svg.hashsalt": "inlink", "svg.fonttype": "path", "pdf.fonttype": 42}
            ):
                figure.savefig(work, format=wanted, metadata=METADATA[wanted])
        except OSError as error:
            raise unwritable(Path(path), error) from None
