"""A proxy that delays the replies of a server, so that it seems to be far away."""

import asyncio
from contextlib import suppress

__all__ = ["serve"]


def serve(port: int, to: int, seconds: float) -> None:
    """Forward connections from one port on loopback to another, and delay the replies by ``seconds``."""
    asyncio.run(_serve(port, to, seconds))


async def _serve(port: int, to: int, seconds: float) -> None:
    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            replies, requests = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_forward(reader, requests, 0.0), _forward(replies, writer, seconds))

    server = await asyncio.start_server(join, "127.0.0.1", port)
    await server.serve_forever()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Forward data until the connection ends, each part ``seconds`` after it was received."""
    loop, last = asyncio.get_running_loop(), 0.0
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            last = loop.time() + seconds
            loop.call_at(last, writer.write, data) if seconds else writer.write(data)
    await asyncio.sleep(max(last - loop.time(), 0.0))
    writer.close()
