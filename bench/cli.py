"""What the commands of the benchmarks share: their options, and lines on standard error."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import results, webgraph

__all__ = ["note", "parser"]


def parser(
    name: str, about: str, *, rounds: int | None = None, peers: Sequence[str] = (), limit: float | None = None
) -> argparse.ArgumentParser:
    """Return a parser with the options that commands share; those without a default here are left out."""
    result = argparse.ArgumentParser(prog=f"python -m bench {name}", description=about.splitlines()[0])
    if rounds is not None:
        result.add_argument("--rounds", type=int, default=rounds)
    if peers:
        result.add_argument("--peers", nargs="+", default=list(peers), choices=peers)
    if limit is not None:
        help = "seconds after which a run is given up"
        result.add_argument("--limit", type=float, default=limit, help=help)
    result.add_argument(
        "--data",
        type=webgraph.data_folder,
        default="",
        help="folder for large files (default: $INLINK_BENCH_DATA, else temporary)",
    )
    result.add_argument("--results", type=Path, default=results.FOLDER, help="folder for the figures")
    return result


def note(*words: object) -> None:
    """Write a line on standard error."""
    print(*words, file=sys.stderr, flush=True)
