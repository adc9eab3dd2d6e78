"""Whether a loop is alive, and the watchdog that ends a hung one."""

import os
import signal
import subprocess
import sys
import time

from pinpromo import pulse
from tests.programs import ROOT

PROGRAM = """
import time
from pinpromo import logs, pulse
logs.configure()
pulse.SLACK = 2
loop = pulse.Pulse()
loop.watch()
print("ready", flush=True)
for _ in range({moves}):
    loop.expect_within(0.5)
    spent = time.process_time() + {work}
    while time.process_time() < spent:  # of the processor: after a suspension it is not over at once
        pass
{end}
"""


def start(moves, end, work=0.1):
    program = PROGRAM.format(moves=moves, end=end, work=work)
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"SECRET_KEY": "x", "PINPROMO_ENV_FILE": ""},
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    return process


def test_alive_until_it_is_late(monkeypatch):
    monkeypatch.setattr(pulse, "SLACK", 0.0)
    loop = pulse.Pulse()
    loop.expect_within(60)
    assert loop.alive
    loop.expect_within(-1)
    assert not loop.alive
    loop.expect_within(60)
    assert loop.alive


def test_a_hung_loop_ends_the_process_and_says_where_it_hung():
    with start(moves=1, end="time.sleep(60)") as process:
        _output, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert '"event":"loop_hung"' in errors
    assert 'File "<string>", line' in errors


def test_a_process_that_was_suspended_is_not_hung():
    with start(moves=3, work=0.4, end="print('moved', flush=True)") as process:
        process.send_signal(signal.SIGSTOP)
        time.sleep(4.5)
        process.send_signal(signal.SIGCONT)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "moved\n"), errors
