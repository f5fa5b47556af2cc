"""inlink, pairs of hosts."""

from pathlib import Path

from inlink.graph.batches import Level

NAME = "inlink, hosts"
COMPUTES = "reversed hosts, damage noticed, public suffixes and IP addresses checked"
LARGEST = 1 << 62
LEVEL: Level = "host"


def available() -> str | None:
    return None


def run(path: Path, folder: Path, level: Level = LEVEL) -> int:
    from inlink.archives.batches import archive_batches

    with path.open("rb") as file:
        return sum(
            len(batch.sources)
            for batch in archive_batches(file, level=level, links="all", self_links=True, repeats=False)
        )
