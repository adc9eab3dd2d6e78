import sys

import pytest

from bench.race import race

PROGRAM = "import time; from bench.race import timed_by_owner\nwith timed_by_owner(): time.sleep(0.3)"


def test_the_start_is_common_and_not_timed():
    """A program that is slow to start holds the others up, and nobody pays for it."""
    slow_to_start = [sys.executable, "-c", f"import time; time.sleep(2)\n{PROGRAM}"]

    assert 0.3 <= race([sys.executable, "-c", PROGRAM], slow_to_start) < 2.0


def test_a_program_that_ends_early_is_an_error():
    with pytest.raises(RuntimeError, match="ended with 3"):
        race([sys.executable, "-c", "raise SystemExit(3)"])
