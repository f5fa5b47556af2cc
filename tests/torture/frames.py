"""Crafted frames: a log whose checksums all hold, in which one number of one frame is wild."""

import shutil
import struct
import zlib
from pathlib import Path
from random import Random

from goldencrawl import GOLDEN, SALT
from inlink.store import format as layout
from inlink.store.format import CHECKED, HEAD_SIZE, Head, struct_of
from inlink.store.log import EVENTS
from torture.trial import command, verdict, warm

__all__ = ["crafted_frame"]

PAGE = "http://a.example/"
COMMANDS = [
    ("page", "{}", PAGE),
    ("why", "{}", PAGE),
    ("links", "{}", PAGE),
    ("dump", "pages", "{}"),
    ("dump", "links", "{}"),
    ("crawl-info", "{}"),
    ("next", "{}", "--peek"),
    ("next", "{}", "-n", "3"),
    ("build", "{}", "-o", "{}/../built"),
]
WILD = [0, 1, 2, 5, 6, 1 << 16, 10**9, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1]
WILD_FLOATS = [0.0, -1.0, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), 2.6e37]
_warm: list[Path] = []

SKIPPED = ("marker", "length", "place", "text_place", "payload_check", "text_check", "head_check")
"""Fields of a head that are left alone: a wild one is found like a flipped bit."""


def crafted_frame(random: Random, place: Path) -> list[str]:
    """One wild number in the golden crawl, and one command."""
    copy = place / "crafted"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.rmtree(place / "built", ignore_errors=True)
    shutil.copytree(GOLDEN, copy)
    raw = bytearray((copy / EVENTS).read_bytes())
    if not _warm:
        for arguments in COMMANDS:
            warm(*[argument.replace("{}", str(copy)) for argument in arguments])
        _warm.append(copy)
        return crafted_frame(random, place)
    did = _wild(raw, random)
    (copy / EVENTS).write_bytes(raw)
    arguments = random.choice(COMMANDS)
    ended = command(*[argument.replace("{}", str(copy)) for argument in arguments])
    outcome = verdict(ended, None)
    return [outcome if outcome in ("right", "refused") else f"{' '.join(arguments)}, {did}: {outcome}"]


def _wild(raw: bytearray, random: Random) -> str:
    """Put a wild number into one frame, make its checksums right again, and say what was done."""
    places, at = [], 0
    while at < len(raw):
        places.append(at)
        at += Head._make(struct_of(Head).unpack_from(raw, at)).length
    at = random.choice(places)
    head = Head._make(struct_of(Head).unpack_from(raw, at))
    payload = raw[at + HEAD_SIZE : at + head.length]
    if payload and random.random() < 0.6:
        width = random.choice([1, 2, 4, 8])
        where = random.randrange(max(len(payload) - width + 1, 1))
        value = random.choice(WILD) % (1 << 8 * width)
        if width == 8 and random.random() < 0.4:
            piece = struct.pack("<d", random.choice(WILD_FLOATS))
        else:
            piece = value.to_bytes(width, "little")
        payload[where : where + width] = piece[: len(payload) - where]
        did = f"{piece.hex()} at byte {where} of the payload of a {layout.KINDS[head.kind]}"
    else:
        name = random.choice([field for field in Head._fields if field not in SKIPPED])
        head, did = _with(head, name, random), f"a wild {name} in the head of a {layout.KINDS[head.kind]}"
    return did if _write(raw, at, head, bytes(payload)) else f"{did} (which does not fit, and was left)"


def _with(head: Head, name: str, random: Random) -> Head:
    """A head with a wild number in one field."""
    old = getattr(head, name)
    return head._replace(**{name: random.choice(WILD_FLOATS if isinstance(old, float) else WILD)})


def _write(raw: bytearray, at: int, head: Head, payload: bytes) -> bool:
    """Write a frame with right checksums; False if a number does not fit into its field."""
    values = head._replace(payload_check=zlib.crc32(payload))[:-1]
    try:
        checked = CHECKED.pack(*values)
    except (struct.error, OverflowError):
        return False
    raw[at : at + HEAD_SIZE] = checked + layout.head_check(checked, SALT)
    raw[at + HEAD_SIZE : at + HEAD_SIZE + len(payload)] = payload
    return True
