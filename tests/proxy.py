"""A TCP proxy in front of a server, to take the network away from real connections."""

import contextlib
import select
import socket
import threading


class Proxy:
    """Passes bytes to `host:port`, until it is told to `freeze`: then it keeps connections open and says nothing."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._frozen = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_error: object) -> None:
        self._frozen.set()
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    @property
    def accepted(self) -> int:
        """How many connections have been made so far."""
        return len([end for end in self._open if end.fileno() >= 0 and end is not self._listener])

    def freeze(self) -> None:
        self._frozen.set()

    def thaw(self) -> None:
        self._frozen.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            server = socket.create_connection(self._upstream)
            self._open.append(server)
            other = {client: server, server: client}
            while True:
                if self._frozen.is_set():
                    threading.Event().wait(0.05)
                    continue
                for end in select.select([client, server], [], [], 0.1)[0]:
                    if not (received := end.recv(65536)):
                        other[end].shutdown(socket.SHUT_RDWR)
                        return
                    other[end].sendall(received)
