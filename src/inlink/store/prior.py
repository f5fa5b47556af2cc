"""Lists of hosts that a crawl's folder keeps: the data of the settings ``prior`` and ``distrust``."""

import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from inlink.base.arrays import Float32Array, Int64Array, UInt32Array
from inlink.base.folder import Folder, building, new_folder
from inlink.base.strings import Strings
from inlink.errors import FolderError, ParameterError
from inlink.graph.checks import check_names
from inlink.graph.names import Names, encode
from inlink.urls.hosts import registered_domain

PRIOR, VERSION = "prior", 1
"""Name and kind of the folder in a crawl's folder, and its format version."""

DISTRUST = "distrust"
"""Name and kind of the folder of hosts that are known as spam. Its format is the same, and places do not matter."""

LISTS = "lists"
"""Folder in a crawl's folder of the lists that were replaced, as ``NAME-CHECKSUM``. Time travel reads them."""


@dataclass(frozen=True, eq=False)
class HostPlaces:
    """Hosts and their places in a ranking.

    Attributes
    ----------
    names : Names
        The hosts or domains, not reversed, in byte order.
    places : uint32[n]
        Their places, from 1. Hosts with the same value share the best place.
    """

    names: Names
    places: UInt32Array

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Self:
        """Return the places of hosts by their values; the largest value has place 1."""
        pairs = sorted((encode(name), value) for name, value in values.items())
        given = np.array([value for _, value in pairs], np.float64)
        larger = len(given) - np.searchsorted(np.sort(given), given, "right")
        return cls(Names.of(name for name, _ in pairs), (larger + 1).astype(np.uint32))

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def checksum(self) -> int:
        """CRC-32 of the hosts and their places; at least 1, so that 0 can stand for no list."""
        found = 0
        for part in (self.names.text, self.names.offsets, self.places):
            found = zlib.crc32(part.tobytes(), found)
        return max(found, 1)

    def priors(self, rows: Int64Array) -> Float32Array:
        """Return (1 + log₂(n ÷ place)) ÷ (1 + log₂ n) of rows of the list, float32[k]; 0 for row −1.

        It is 1 at place 1. Row −1 stands for a host without a place.
        """
        found = np.zeros(len(rows), np.float32)
        listed = rows >= 0
        found[listed] = (1 + np.log2(len(self) / self.places[rows[listed]])) / (1 + np.log2(len(self)))
        return found

    def find(self, hosts: Sequence[str]) -> Int64Array:
        """Find the rows of hosts: int64[k], −1 for a host without a place.

        The first name that the list has counts: the host with its port, the host, its registered domain.
        """
        found = self._search(hosts)
        for shorter in (_without_port, registered_domain):
            missing = np.flatnonzero(found < 0)
            names = [shorter(_without_port(hosts[row])) or "" for row in missing.tolist()]
            found[missing] = self._search(names)
        return found

    def _search(self, names: Sequence[str]) -> Int64Array:
        return self.names.find_all(Strings.of(names))


def _without_port(host: str) -> str:
    return host if host.startswith("[") else host.partition(":")[0]


def keep_places(folder: Path, places: HostPlaces, source: str, name: str = PRIOR) -> None:
    """Keep places of hosts in a crawl's folder, instead of those that it has, which move to :data:`LISTS`.

    Raises
    ------
    inlink.errors.OutputError
        If they cannot be written. The folder then has the places from before.
    """
    before = kept_checksum(folder, name)
    earlier = folder / LISTS / _earlier(name, before)
    if before and not earlier.exists():
        with new_folder(earlier) as work:
            _copy(folder / name, work)
    with building(folder / name, name, VERSION) as writer:
        writer.write("names.text", places.names.text)
        writer.write("names.offsets", places.names.offsets)
        writer.write("places", places.places)
        writer.header.meta = {"source": source, "checksum": places.checksum}


def _copy(source: Path, target: Path) -> None:
    """Copy the files of a folder and of the folders in it.

    ``shutil.copytree`` goes on after an error. The error that it raises at the end does not say that a disk is full.
    """
    for entry in source.iterdir():
        if entry.is_dir():
            (target / entry.name).mkdir()
            _copy(entry, target / entry.name)
        else:
            shutil.copyfile(entry, target / entry.name)


def kept_checksum(folder: Path, name: str) -> int:
    """Return the checksum of the hosts that a crawl's folder keeps for a setting; 0 if it keeps none."""
    try:
        found = Folder(folder / name, name, VERSION).header.meta.get("checksum", 0)
    except FolderError:
        return 0
    return found if isinstance(found, int) else 0


def kept_folder(folder: Path, name: str, checksum: int) -> Path | None:
    """Return the folder of the hosts with this checksum, kept now or before for a setting; None if it is not there."""
    if checksum and kept_checksum(folder, name) == checksum:
        return folder / name
    earlier = folder / LISTS / _earlier(name, checksum)
    return earlier if checksum and earlier.exists() else None


def _earlier(name: str, checksum: int) -> str:
    return f"{name}-{checksum:08x}"


def kept_places(folder: Path, name: str = PRIOR) -> HostPlaces:
    """Return the places of hosts that a crawl's folder keeps for a setting. Checksums and names are checked.

    Raises
    ------
    inlink.errors.FolderError
        If the folder keeps none, or they are damaged.
    """
    try:
        kept = Folder(folder / name, name, VERSION)
        kept.verify()
        text, offsets, places = (kept.array(name) for name in ("names.text", "names.offsets", "places"))
        check_names(Names(text, offsets), len(places))
        if (
            not len(places)
            or places.dtype != np.uint32
            or int(places.min()) < 1
            or int(places.max()) > len(places)
        ):
            raise ParameterError("places must be from 1 to their number")
    except (FolderError, ParameterError, KeyError) as error:
        raise FolderError(
            f"{folder}: the hosts that this crawl keeps in {name}/ cannot be used ({error}): give {name}=FILE again, "
            f"or {name}=None"
        ) from None
    return HostPlaces(Names(text, offsets), places)
