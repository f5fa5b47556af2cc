"""Mutated inputs: samples of every format that inlink reads, cut, flipped, repeated and spliced, and then built."""

import functools
import shutil
from pathlib import Path
from random import Random

from torture.trial import command, verdict, warm

__all__ = ["mutated_input"]

TESTS = Path(__file__).parents[1]
NASTY = [
    b"\0",
    b"\xff\xfe",
    b"\n" * 40,
    b"9" * 40,
    b"-1",
    b"\t\t\t",
    b'"',
    b"<",
    b"{" * 50,
    b"1e999",
    b"nan",
    b"\r",
    b"\x80",
]

_warm: set[Path] = set()


@functools.cache
def samples() -> list[Path]:
    """Files and folders of the project's own making, in every format that it has a sample of."""
    data = [
        path
        for path in sorted((TESTS / "data").iterdir())
        if path.suffix != ".py" and path.name[0] not in "._"
    ]
    return [path for path in data if path.stat().st_size or path.is_dir()] + [TESTS / "golden" / "graph-2"]


def mutated_input(random: Random, place: Path) -> list[str]:
    """One mutated input, built; a build that fails leaves nothing."""
    sample = random.choice(samples())
    source, out = place / sample.name, place / "built-input"
    for path in (source, out):
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
    (shutil.copytree if sample.is_dir() else shutil.copy)(sample, source)
    parts = [path for path in sorted(source.rglob("*")) if path.is_file()] if source.is_dir() else [source]
    # The other halves of a sample in two files, such as a graph and its properties, stand beside it.
    for other in sample.parent.glob(f"{sample.stem}.*"):
        if other != sample and other.is_file() and not (place / other.name).exists():
            shutil.copy(other, place / other.name)
            parts.append(place / other.name)
    target = random.choice([part for part in parts if part.stat().st_size])
    raw = bytearray(target.read_bytes())
    arguments = random.choice([[], [], ["--strict"], ["--count"], ["--level", "host"]])
    if sample not in _warm:
        _warm.add(sample)
        warm("build", source, "-o", place / "warm", *arguments)
        shutil.rmtree(place / "warm", ignore_errors=True)
    did = mutate(raw, random)
    target.write_bytes(raw)
    ended = command("build", source, "-o", out, *arguments)
    outcome = verdict(ended, None)
    if outcome == "refused" and out.exists():
        outcome = "refused, but something was left"
    for path in {source, *parts}:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
    return [outcome if outcome in ("right", "refused") else f"{target.name}, {did}: {outcome}"]


def mutate(raw: bytearray, random: Random) -> str:
    """Change some bytes in place; say how."""
    done = []
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        at = random.randrange(len(raw) + 1)
        what = random.randrange(6)
        if what == 0 and at < len(raw):
            raw[at] ^= 1 << random.randrange(8)
            done.append(f"bit of byte {at} flipped")
        elif what == 1:
            piece = random.choice(NASTY)
            raw[at:at] = piece
            done.append(f"{piece[:9]!r} put in at {at}")
        elif what == 2:
            end = at + random.randrange(1, 200)
            del raw[at:end]
            done.append(f"{at} to {end} cut out")
        elif what == 3:
            begin = random.randrange(len(raw) + 1)
            raw[at:at] = raw[begin : begin + 300]
            done.append(f"{begin} to {begin + 300} repeated at {at}")
        elif what == 4:
            del raw[at:]
            done.append(f"cut to {at}")
        else:
            raw[at : at + 8] = random.randbytes(8)
            done.append(f"noise at {at}")
        if not raw:
            break
    return ", ".join(done)
