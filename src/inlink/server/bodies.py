"""The bodies of requests. Their size, their inflated size and the time to receive them are limited."""

import asyncio
import zlib

from starlette.types import Receive, Scope

from inlink.server.guard import StatusError, header

MOST_BYTES = 8 << 20
MOST_INFLATED = 32 << 20

MOST_OF_STRANGERS = 4096
"""Maximum number of bytes of a body that needs no token. It must be announced."""

SECONDS = 30.0
"""Seconds within which a whole body must arrive."""


class BodyError(StatusError):
    """A body that is refused."""


async def read_body(scope: Scope, receive: Receive, most: int = MOST_BYTES) -> bytes:
    """The body of a request, inflated if it is gzip; at most ``most`` bytes before.

    Raises
    ------
    BodyError
        If the body is too large, too slow, cut, or in another encoding. It is refused as soon as it is too large.
    """
    encoding = (header(scope, b"content-encoding") or b"identity").strip().lower()
    if encoding not in (b"identity", b"gzip"):
        raise BodyError(415, "the body has an unknown Content-Encoding: send it as it is, or as gzip")
    length = header(scope, b"content-length")
    if length is None and most < MOST_BYTES:
        raise BodyError(411, "send this body with a Content-Length")
    if length is not None and length.isdigit() and int(length) > most:
        raise BodyError(413, f"the body has {int(length):,} bytes, above {most:,}: send it in parts")
    try:
        async with asyncio.timeout(SECONDS):
            return await _read(receive, encoding == b"gzip")
    except TimeoutError:
        raise BodyError(
            408, f"the body did not arrive within {SECONDS:.0f} seconds: send it in parts"
        ) from None


async def _read(receive: Receive, gzipped: bool) -> bytes:
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS) if gzipped else None
    parts, came, size, more = [], 0, 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyError(400, "the body was cut off: send it again")
        part, more = message.get("body", b""), message.get("more_body", False)
        came += len(part)
        if came > MOST_BYTES:
            raise BodyError(413, f"the body has more than {MOST_BYTES:,} bytes: send it in parts")
        if inflate is not None:
            part = _inflated(inflate, part, MOST_INFLATED - size)
        size += len(part)
        parts.append(part)
    if inflate is not None and not inflate.eof:
        raise BodyError(400, "the body is not a complete gzip file: send it again")
    return b"".join(parts) if len(parts) > 1 else parts[0]


def _inflated(inflate: "zlib._Decompress", part: bytes, room: int) -> bytes:
    try:
        text = inflate.decompress(part, room + 1)
    except zlib.error as error:
        raise BodyError(400, f"the body is not a gzip file ({error}): send it as it is, or as gzip") from None
    if len(text) > room:
        raise BodyError(413, f"the body inflates to more than {MOST_INFLATED:,} bytes: send it in parts")
    if inflate.unused_data:
        raise BodyError(400, "the body has bytes after the end of its gzip file: send one gzip file")
    return text
