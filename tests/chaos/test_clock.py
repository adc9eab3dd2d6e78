"""A program's own wall clock jumps; the monotonic one, and sleeping, do not notice."""

import os
import subprocess
import sys
import time

import pytest

from chaos import clock

PROGRAM = """
import time
from datetime import UTC, datetime
for line in iter(input, "end"):
    before = time.monotonic()
    time.sleep(0.01)
    print(datetime.now(UTC).timestamp(), time.monotonic() - before, flush=True)
"""


@pytest.mark.skipif(clock.missing() is not None, reason=str(clock.missing()))
def test_the_wall_clock_jumps_and_the_monotonic_one_goes_on(tmp_path):
    own = clock.Clock(tmp_path)
    command, environ = [sys.executable, "-c", PROGRAM], {**os.environ, **own.environ}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        for jump in (0, *clock.JUMPS, 0):
            own.set(jump)
            print("now", file=program.stdin, flush=True)
            wall, passed = map(float, program.stdout.readline().split())
            assert wall - time.time() == pytest.approx(jump, abs=20)
            assert 0.01 <= passed < 20
        print("end", file=program.stdin, flush=True)
