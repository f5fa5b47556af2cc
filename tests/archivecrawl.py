"""Eight archives that link to each other, and the bytes of a graph's folder."""

import json
from pathlib import Path

from archives import response, write

__all__ = ["bytes_of", "write_crawl"]


def bytes_of(folder: Path) -> dict[str, object]:
    """All of a graph's folder, but for its uuid."""
    header = json.loads((folder / "header.json").read_bytes())
    for name in ("uuid", "generation", "check"):
        header.pop(name, None)
    return {"header": header} | {path.name: path.read_bytes() for path in sorted(folder.rglob("*.bin"))}


def write_crawl() -> list[Path]:
    """Write the archives to the current folder, and return their names."""
    paths = []
    for k in range(8):
        pages = [
            response(
                f"http://h{(k * 5 + j) % 11}.example.org/{j}",
                "".join(f'<a href="http://h{(k + j * i) % 13}.example.com/{i}">x</a>' for i in range(j + 3)),
            )
            for j in range(6)
        ]
        paths.append(write(Path(f"{k}.warc.gz"), pages))
    return paths
