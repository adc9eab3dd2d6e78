"""Signals: the first lets the work in hand end, the second hurries it; nothing is raised into the main thread."""

import os
import queue
import signal
import threading
import time

import pytest

from pinpromo.stop import Stop

LONG = 60.0


def kill(number):
    os.kill(os.getpid(), number)


def to_main_thread(number):
    signal.pthread_kill(threading.main_thread().ident, number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_long_wait_at_once(number):
    began = time.monotonic()
    with Stop() as stop:
        threading.Timer(0.1, kill, [number]).start()
        assert stop.wait(LONG)
        assert (stop.requested, stop.hurried) == (True, False)
        assert stop.wait(LONG)  # and every later wait
    assert time.monotonic() - began < LONG / 2


def test_a_wait_without_a_signal_takes_its_time():
    with Stop() as stop:
        assert not stop.wait(0.01)
        assert not stop.wait(-1)
        assert not stop.requested


def test_a_reader_with_input_ends_the_wait():
    reader, writer = os.pipe()
    os.write(writer, b"!")
    with Stop() as stop:
        assert not stop.wait(LONG, reader)
    os.close(reader)
    os.close(writer)


def test_the_first_signal_hurries_nobody():
    attempts = queue.Queue()
    with Stop(attempts.put) as stop:
        kill(signal.SIGTERM)
        stop.wait(LONG)
        time.sleep(0.2)
        assert attempts.empty()


def test_the_second_signal_hurries_again_and_again():
    attempts = queue.Queue()
    with Stop(attempts.put) as stop:
        kill(signal.SIGTERM)
        stop.wait(LONG)
        kill(signal.SIGINT)
        assert [attempts.get(timeout=LONG) for _ in range(2)] == [0, 1]
        assert stop.hurried


def test_the_end_of_the_grace_hurries_too():
    attempts = queue.Queue()
    with Stop(attempts.put, grace=0.1) as stop:
        kill(signal.SIGTERM)
        assert attempts.get(timeout=LONG) == 0
        assert stop.hurried


def test_a_signal_does_not_break_into_the_main_thread():
    with Stop():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            kill(number)
        assert sum(range(100_000)) == 4999950000


def test_a_closed_terminal_is_no_reason_to_stop():
    with Stop() as stop:
        kill(signal.SIGHUP)
        assert not stop.wait(0.2)


def test_everything_is_as_before_afterwards():
    watched = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def state():
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        return [signal.getsignal(number) for number in watched], mask, threading.active_count()

    before = state()
    with Stop() as stop:
        kill(signal.SIGTERM)
        stop.wait(LONG)
    assert state() == before


def test_a_signal_that_came_too_early_has_waited():
    """manage.py blocks the signals until this block is entered."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        to_main_thread(signal.SIGTERM)
        with Stop() as stop:
            assert stop.wait(LONG)
        to_main_thread(signal.SIGTERM)  # too late: blocked again, and taken here
        assert signal.sigtimedwait([signal.SIGTERM], LONG)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
