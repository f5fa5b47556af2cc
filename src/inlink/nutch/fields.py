"""Read serialised Java objects, field by field, as Hadoop's Writables do.

Source: org.apache.hadoop.io.Writable, DataInput and WritableUtils, Hadoop 3.4.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")


class Fields:
    """Read fields as Hadoop's DataInput does, one after the other. Raise ValueError if the bytes end too early.

    Parameters
    ----------
    data : bytes
        A serialised object.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        """Read the next ``size`` bytes."""
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise ValueError("cut short")
        data = self.data[self.at : end]
        self.at = end
        return data

    def byte(self) -> int:
        """Read a signed byte."""
        return int.from_bytes(self.take(1), "big", signed=True)

    def int32(self) -> int:
        """Read a signed 32-bit integer."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        """Read a signed 64-bit integer."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def float32(self) -> float:
        """Read a 32-bit float."""
        return float(struct.unpack(">f", self.take(4))[0])

    def vint(self) -> int:
        """Read an integer of 1 to 9 bytes. The first byte is the number (-112 to 127), or gives length and sign."""
        first = self.byte()
        if first >= -112:
            return first
        size = -112 - first if first >= -120 else -120 - first
        value = int.from_bytes(self.take(size), "big")
        return value if first >= -120 else ~value

    def text(self) -> bytes:
        """Read a Text: its length as a vint, then UTF-8."""
        return self.take(self.vint())

    def utf(self) -> bytes:
        """Read a string written by Java's writeUTF: the length in two bytes, then modified UTF-8."""
        return self.take(int.from_bytes(self.take(2), "big"))

    def string(self) -> bytes | None:
        """Read a string written by WritableUtils.writeString: the length in four bytes, -1 for null, then UTF-8."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def strings(self) -> list[bytes | None] | None:
        """Read strings written by WritableUtils.writeStringArray: the number in 4 bytes, -1 for null, then strings."""
        count = self.int32()
        return None if count == -1 else [self.string() for _ in range(count)]


@dataclass(frozen=True)
class Writable(Generic[V]):
    """A Java class of keys or values.

    Parameters
    ----------
    name : str
        The name of the class, with its package.
    decode : callable
        Reads an object field by field. Raises ValueError if the bytes are not an object of this class.
    """

    name: str
    decode: Callable[[Fields], V]

    def read(self, data: bytes) -> V:
        """Read the object that fills ``data`` exactly.

        Raises
        ------
        ValueError
            If the bytes are not an object of this class, or the object does not end with ``data``.
        """
        fields = Fields(data)
        try:
            value = self.decode(fields)
            if fields.at < len(data):
                raise ValueError("shorter than its record says")
        except ValueError as error:
            raise ValueError(f"a {self.name.split('.')[-1]} that cannot be read ({error})") from None
        return value


TEXT = Writable("org.apache.hadoop.io.Text", Fields.text)
