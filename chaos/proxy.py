"""A TCP proxy in front of a server, to take the network away from real connections in several ways."""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from typing import Self

from devstack.ports import HOST

_CHUNK = 65_536
_RESET = struct.pack("ii", 1, 0)  # a lingering time of 0 sends RST


class Proxy:
    """Passes bytes to `upstream` (a port of this machine, set before the first client comes)."""

    def __init__(self) -> None:
        self.upstream = 0
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._latency = 0.0
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`, for clients."""
        return f"{HOST}:{self.port}"

    def cut(self) -> None:
        """Reset every connection."""
        self._loop.call_soon_threadsafe(self._cut)

    def forget(self) -> None:
        """Say nothing more on the connections of now, as a firewall that has lost its table: servers see them end."""
        self._loop.call_soon_threadsafe(self._forget)

    def freeze(self) -> None:
        """Keep all connections, also new ones, open and silent until `thaw`."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def thaw(self) -> None:
        """End `freeze`: nothing of what was on the way is lost."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    def delay(self, seconds: float) -> None:
        """Hold every piece back for so long, on some connections for up to three times as long; 0 ends it."""
        self._latency = seconds

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._listener))
        self._loop.run_forever()
        server.close()
        self._cut()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def _cut(self) -> None:
        for link in list(self._links):
            link.end()

    def _forget(self) -> None:
        for link in self._links:
            link.forgotten = True
            link.server.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError, OSError):  # the end, ours or theirs: asyncio would complain
            await self._connect(reader, writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._flowing.wait()
            server_reader, server_writer = await asyncio.open_connection(HOST, self.upstream)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, server_writer)
        self._links.add(link)
        try:
            await asyncio.gather(
                self._pump(link, reader, server_writer), self._pump(link, server_reader, writer), return_exceptions=True
            )
            if link.forgotten:
                await reader.read()  # until the client gives up
        finally:
            self._links.discard(link)
            link.end()

    async def _pump(self, link: "_Link", source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while chunk := await source.read(_CHUNK):
                if self._latency:
                    await asyncio.sleep(self._latency * link.slowness)
                await self._flowing.wait()
                if not link.forgotten:
                    sink.write(chunk)
                    await sink.drain()
        finally:
            if not link.forgotten:
                await self._flowing.wait()
                sink.close()


class _Link:
    """A client's connection and its continuation to the server."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.forgotten = False
        self.slowness = random.uniform(1, 3)

    def end(self) -> None:
        """Reset both ends."""
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.transport.abort()
