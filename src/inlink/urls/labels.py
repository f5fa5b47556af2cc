"""Short labels of pages and hosts for pictures."""

import os
import re
from collections import Counter
from collections.abc import Sequence

# Where a section may end: after a folder, after a word of the last part of a path, or of a reversed host.
_ENDS = {True: re.compile("/|[_-](?=[^/]*$)"), False: re.compile("[.]")}
_ESCAPES = re.compile(r"(?:%[0-9a-fA-F]{2})+")


def short_labels(names: Sequence[str], most: int = 34) -> tuple[list[str], str]:
    """Return a label of at most ``most`` characters for each name, and the beginning that was left out.

    Percent escapes of printable text are decoded. A URL's scheme is left out. If at least half of the
    names are on one host, their labels have only the path, without the folders that all of these names share. From a
    label that is still too long, the middle is left out.

    Returns
    -------
    list of str
        The labels, in the order of the names. They need not differ.
    str
        The host and the shared folders that are left out; empty if nothing is.
    """
    parts = [_split(name) for name in names]
    hosts = Counter(host for host, _ in parts if host)
    host, times = hosts.most_common(1)[0] if hosts else ("", 0)
    shared = ""
    if times < 2 or 2 * times < len(names):
        host = ""
    else:
        paths = [path for other, path in parts if other == host]
        # Folders end at the last slash below.
        shared = os.path.commonprefix(paths)  # noqa: RUF071
        shared = shared[: shared.rfind("/") + 1]
    labels = []
    for other, path in parts:
        if host and other == host:
            text = path.removeprefix(shared) or path.rstrip("/").rpartition("/")[2] or host
        else:
            text = other + path
        labels.append(_cut(text, len(other) if text.startswith(other) else 0, most))
    return labels, host + shared if host else ""


def sections(names: Sequence[str], most: int = 12, least: int = 4) -> list[str]:
    """Return the section of each name: a host, a folder, or another beginning that at least ``least`` names share.

    A section is split if more than a quarter of the names begin with it: at the next ``/``, then at ``-`` and ``_`` (at
    the next ``.`` if the names are no URLs). The largest new section is made first, up to ``most`` sections. Names
    without a section of their own keep the section that was split.
    """
    texts = [name.partition("://")[2] or name for name in names]
    # The first end in a URL is that of the host.
    ends = [
        [place.end() for place in _ENDS["/" in text].finditer(text, max(text.find("/"), 0))] for text in texts
    ]
    chosen = [""] * len(texts)
    while True:
        sizes = Counter(chosen)
        large = {part for part in sizes if 4 * sum(text.startswith(part) for text in texts) > len(texts)}
        steps = [
            (part, text[: next((end for end in places if end > len(part)), 0)] if part in large else "")
            for part, text, places in zip(chosen, texts, ends, strict=True)
        ]
        step = next(
            (
                (part, new)
                for (part, new), size in Counter(steps).most_common()
                if new and size >= least and len(sizes) + (size < sizes[part]) <= most
            ),
            None,
        )
        if step is None:
            return chosen
        chosen = [new if (part, new) == step else part for part, new in steps]


def _split(name: str) -> tuple[str, str]:
    """Return the host and the path of a URL, decoded; of another name nothing and the name."""
    _, scheme, rest = name.partition("://")
    if not scheme:
        return "", _decoded(name)
    host, slash, path = rest.partition("/")
    return host, slash + _decoded(path)


def _decoded(text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        raw = bytes.fromhex(found[0].replace("%", ""))
        try:
            decoded = raw.decode()
        except UnicodeDecodeError:
            return found[0]
        return decoded if decoded.isprintable() else found[0]

    return _ESCAPES.sub(replaced, text)


def _cut(text: str, host: int, most: int) -> str:
    """Leave out the middle of a label: the end of its host and the beginning of its path, up to a slash if possible."""
    if len(text) <= most:
        return text
    begin = min(host, most * 2 // 3)
    end = text[len(text) - (most - begin - 1) :]
    _, slash, whole = end.partition("/")
    if slash and len(whole) > most // 3:
        end = slash + whole
    return f"{text[:begin]}…{end}"
