"""Ports of this machine, and whether something answers on them."""

import contextlib
import random
import socket
import struct
import time
from collections.abc import Callable

HOST = "127.0.0.1"
# Below the range from which systems take the ports of outgoing connections (32768 up on Linux, 49152
# elsewhere): a server that restarts must find its port still free.
_FIRST, _LAST = 20000, 32000
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)  # length, key, version, correlation id, no client id


def free_port() -> int:
    """A port nobody listens on at this moment; whoever uses it must still expect to lose a race for it."""
    for port in random.sample(range(_FIRST, _LAST), 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def speaks_kafka(port: int) -> bool:
    """Whether a broker answers Kafka's ApiVersions request on this port."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=2) as connection:
        connection.sendall(_API_VERSIONS)
        return len(connection.recv(4)) == 4
    return False


def wait_until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Ask again and again, at first quickly, until the condition holds or the time is up."""
    deadline, pause = time.monotonic() + seconds, 0.005
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
    return True
