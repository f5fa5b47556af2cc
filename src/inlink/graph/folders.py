"""Folders of graphs: their kind and format versions, and how they are recognised."""

import os

from inlink.base.folder import Folder, is_kind
from inlink.errors import FolderError
from inlink.graph.rows import COMPRESSED

__all__ = ["FORMAT", "KIND", "graph_folder", "is_graph"]

KIND = "graph"
FORMAT = 2
"""The format version of a folder with plain rows."""


def graph_folder(path: str | os.PathLike[str]) -> Folder:
    """A graph's folder, if this program can read it.

    Raises
    ------
    inlink.errors.FolderError
        If there is no graph, or it has another format version.
    """
    folder = Folder(path, KIND, COMPRESSED)
    if folder.header.version < FORMAT:
        raise FolderError(
            f"{folder.path} holds a graph of format version {folder.header.version}, and this inlink reads only "
            f"versions {FORMAT} and {COMPRESSED}: build {folder.path} again"
        )
    return folder


def is_graph(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a graph's, of any format version."""
    return is_kind(path, KIND)
