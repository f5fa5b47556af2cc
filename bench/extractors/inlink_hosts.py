"""inlink, pairs of hosts."""

from pathlib import Path

from inlink.graph.graph import Level

NAME = "inlink, hosts"
COMPUTES = "reversed hosts, damage noticed, public suffixes and IP addresses checked"
LARGEST = 1 << 62
LEVEL: Level = "host"


def available() -> str | None:
    return None


def run(path: Path, folder: Path, level: Level = LEVEL) -> int:
    from inlink.sources.archives import archive_batches

    return sum(len(batch.sources) for batch in archive_batches(path, level=level, links="all"))
