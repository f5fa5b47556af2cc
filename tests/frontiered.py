"""A server that speaks URLFrontier, in this process, and a client of it that knows only the ``.proto``."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

import inlink.server
from inlink.server.clientcrawls import ClientCrawls
from inlink.server.site import Site, named
from inlink.server.tokens import Tokens
from inlink.server.urlfrontier.door import Door
from patience import PATIENCE, wait_until

PROTO = Path(inlink.server.__file__).parent / "urlfrontier" / "urlfrontier.proto"


def compiled(folder: Path) -> descriptor_pb2.FileDescriptorProto:
    """The ``.proto`` as the compiler of protobuf reads it."""
    out = folder / "descriptors"
    assert protoc.main(["protoc", f"-I{PROTO.parent}", f"--descriptor_set_out={out}", str(PROTO)]) == 0
    (file,) = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    return file


class Client:
    """Calls and messages, made from the compiled ``.proto`` alone."""

    def __init__(self, channel: grpc.Channel, folder: Path) -> None:
        pool, file = descriptor_pool.DescriptorPool(), compiled(folder)
        pool.AddSerializedFile(file.SerializeToString())
        self.messages = {
            one.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"urlfrontier.{one.name}"))
            for one in file.message_type
        }
        (self.service,) = file.service
        self.calls: dict[str, Any] = {}
        for method in self.service.method:
            kind = "_".join(
                "stream" if yes else "unary" for yes in (method.client_streaming, method.server_streaming)
            )
            reply = self.messages[method.output_type.rpartition(".")[2]]
            self.calls[method.name] = getattr(channel, kind)(
                f"/urlfrontier.URLFrontier/{method.name}",
                request_serializer=lambda one: one if isinstance(one, bytes) else one.SerializeToString(),
                response_deserializer=reply.FromString,
            )
        self.sent = {one.name: one.input_type.rpartition(".")[2] for one in self.service.method}
        self.metadata: list[tuple[str, str]] = []

    def make(self, name: str, **fields: Any) -> Any:
        """A message."""
        return self.messages[name](**fields)

    def ask(self, call: str, **fields: Any) -> Any:
        """Send one message; return the reply, or all replies of a stream."""
        reply = self.calls[call](
            self.make(self.sent[call], **fields), metadata=self.metadata, timeout=PATIENCE
        )
        return list(reply) if hasattr(reply, "__next__") else reply

    def info(self, url: str, key: str = "", crawl: str = "", **metadata: list[str]) -> Any:
        """A URLInfo; a name of the metadata has ``_`` for ``.`` but in front."""
        info = self.make("URLInfo", url=url, key=key, crawlID=crawl)
        for name, values in metadata.items():
            info.metadata[name[0] + name[1:].replace("_", ".")].values.extend(values)
        return info

    def discovered(self, url: str, **given: Any) -> Any:
        """An item of PutURLs."""
        return self.make("URLItem", discovered={"info": self.info(url, **given)}, ID="")

    def known(self, url: str, date: int = 0, **given: Any) -> Any:
        """An item of PutURLs."""
        return self.make("URLItem", known={"info": self.info(url, **given), "refetchable_from_date": date})

    def put(self, *items: Any) -> list[tuple[str, int]]:
        """Put items on a stream of their own; return ID and status of each."""
        acks = self.calls["PutURLs"](iter(items), metadata=self.metadata, timeout=PATIENCE)
        return [(ack.ID, ack.status) for ack in acks]

    def put_batch(self, *infos: Any) -> list[int]:
        """Put a batch of discovered URLs; return their statuses."""
        batch = self.make("DiscoveredBatch", ID="b", items=infos)
        (ack,) = self.calls["PutDiscovered"](iter([batch]), metadata=self.metadata, timeout=PATIENCE)
        assert ack.ID == "b"
        return list(ack.statuses)


class Frontier(Client):
    """A client, and the server that it asks."""

    site: Site
    door: Door
    loop: asyncio.AbstractEventLoop
    where: str


@contextlib.contextmanager
def frontier(
    *folders: Path,
    needs_token: bool = False,
    tls: tuple[Path, Path] | None = None,
    clients: Path | None = None,
    **settings: Any,
) -> Iterator[Frontier]:
    """Serve crawls, and those of clients in ``clients``; ``settings`` are those of :class:`inlink.Crawl`."""
    home = folders[0].parent if clients is None else clients.parent
    settings = {"politeness": {"delay": 0.0, "in_flight": 100}} | settings
    ready: list[tuple[Site, Door, str, asyncio.AbstractEventLoop, asyncio.Event]] = []
    faults: list[BaseException] = []

    async def run() -> None:
        taken = None if clients is None else ClientCrawls(clients)
        site = Site(Tokens(home / "tokens.json"), not needs_token, taken)
        await site.open(named(list(folders)), settings)
        try:
            door, over = Door(site), asyncio.Event()
            where = await door.open("127.0.0.1", 0, *(tls or (None, None)))
            ready.append((site, door, where, asyncio.get_running_loop(), over))
            await over.wait()
        finally:
            await site.close()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: faults or ready, "the server to listen")
        if faults:
            raise faults[0]
        site, door, where, loop, _ = ready[0]
        options = [("grpc.max_send_message_length", -1)]
        if tls is None:
            channel = grpc.insecure_channel(where, options)
        else:
            channel = grpc.secure_channel(where, grpc.ssl_channel_credentials(tls[0].read_bytes()), options)
        with channel:
            client = Frontier(channel, home)
            client.site, client.door, client.loop, client.where = site, door, loop, where
            yield client
    finally:
        if ready:
            ready[0][3].call_soon_threadsafe(ready[0][4].set)
        thread.join()
    if faults:
        raise faults[0]
