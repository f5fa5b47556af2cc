"""Read XML files of Hadoop and Nutch in which a root holds entries, and an entry holds texts by name."""

from pathlib import Path
from xml.parsers import expat

from inlink.base.opening import Stream
from inlink.errors import InputError

# The largest size of a file in bytes.
_LARGEST = 1 << 24


def read_whole(path: Path, what: str) -> bytes:
    """Return the bytes of a small file. ``what`` is its kind in the message of an error.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, or is too large.
    """
    with Stream(path) as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise InputError(f"{path}: {what} must be shorter than {_LARGEST >> 20} MB. Give another file.")
    return data


def read_entries(path: Path, what: str, root: str, entry: str) -> list[tuple[int, dict[str, str]]]:
    """Return the line and the texts of each ``<entry>`` in ``<root>``, in their order.

    Parameters
    ----------
    path : Path
        The file.
    what : str
        The kind of the file, as in "a configuration".
    root, entry : str
        The tags. The tags inside an entry are the keys of its texts. If a tag is repeated, the last text counts.

    Raises
    ------
    inlink.errors.InputError
        If the file cannot be read, is too large, is not well-formed, declares an entity, or has another root.
    """
    entries: list[tuple[int, dict[str, str]]] = []
    inside: list[str] = []
    parser = expat.ParserCreate()

    def start(tag: str, _: object) -> None:
        inside.append(tag)
        if inside[0] != root:
            raise InputError(f"{path} is not {what}: it begins with <{tag[:50]}> and not with <{root}>")
        if inside[1:] == [entry]:
            entries.append((parser.CurrentLineNumber, {}))
        elif in_entry():
            entries[-1][1][tag] = ""

    def end(_: str) -> None:
        inside.pop()

    def text(data: str) -> None:
        if in_entry():
            entries[-1][1][inside[2]] += data

    def in_entry() -> bool:
        return len(inside) == 3 and inside[1] == entry

    def refuse(*_: object) -> None:
        raise InputError(f"{path}: the file declares an entity. Remove the declaration.")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(read_whole(path, what), True)
    except expat.ExpatError as error:
        fault = expat.errors.messages[error.code]
        raise InputError(
            f"{path}, line {error.lineno:,}: not well-formed XML ({fault}). Correct this line."
        ) from None
    except (LookupError, ValueError) as error:
        # Python does not know the encoding.
        raise InputError(f"{path}: cannot be read ({error}). Convert it to UTF-8.") from None
    return entries
