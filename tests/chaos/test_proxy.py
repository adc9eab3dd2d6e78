"""The proxy takes the network away in the ways that it says."""

import contextlib
import socket
import threading
import time

import pytest

from chaos.proxy import Proxy

SILENCE = 0.3  # seconds


@pytest.fixture
def proxy():
    """A proxy in front of a server that sends back what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(client):
        with client, contextlib.suppress(OSError):
            while chunk := client.recv(4096):
                client.sendall(chunk)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listener, Proxy() as proxy:
        proxy.upstream = listener.getsockname()[1]
        yield proxy
        listener.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def client(proxy):
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
        yield connection


def ask(connection, text=b"hello"):
    connection.sendall(text)
    return connection.recv(4096)


def says_nothing(connection):
    connection.settimeout(SILENCE)
    try:
        return connection.recv(4096) is None
    except TimeoutError:
        connection.settimeout(10)
        return True


def test_cut_resets_what_is_open_and_lets_new_connections_in(proxy):
    with client(proxy) as before:
        assert ask(before) == b"hello"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            before.recv(1)
    with client(proxy) as after:
        assert ask(after) == b"hello"


def test_what_was_on_the_way_while_frozen_arrives_after_the_thaw(proxy):
    with client(proxy) as before:
        assert ask(before) == b"hello"
        proxy.freeze()
        time.sleep(SILENCE)
        before.sendall(b"late")
        with client(proxy) as during:
            during.sendall(b"new")
            assert says_nothing(before)
            assert says_nothing(during)
            proxy.thaw()
            assert before.recv(4096) == b"late"
            assert during.recv(4096) == b"new"


def test_a_forgotten_connection_stays_open_and_silent_and_new_ones_work(proxy):
    with client(proxy) as before:
        assert ask(before) == b"hello"
        proxy.forget()
        time.sleep(SILENCE)
        before.sendall(b"anybody?")
        assert says_nothing(before)
        with client(proxy) as after:
            assert ask(after) == b"hello"


def test_delay_holds_back(proxy):
    with client(proxy) as connection:
        assert ask(connection) == b"hello"
        proxy.delay(SILENCE)
        began = time.monotonic()
        assert ask(connection) == b"hello"
        assert time.monotonic() - began >= SILENCE


def test_nobody_behind_the_proxy_ends_the_connection(proxy):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        proxy.upstream = unused.getsockname()[1]
    with client(proxy) as connection, contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""
