"""A wall clock of its own for one program, so that it can jump."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
JUMPS = (-86_400 * 30, -3_600, -61, 61, 3_600, 86_400 * 400)  # seconds


def missing() -> str | None:
    """Say what is missing, if so."""
    return None if shutil.which("cc") else "no C compiler; install one (Debian: apt-get install gcc libc6-dev)"


class Clock:
    """Programs with `environ` see the machine's time plus what was set last, at once; their monotonic clock stays.

    Its files lie in `folder`. Raises subprocess.CalledProcessError if the C compiler fails.
    """

    def __init__(self, folder: Path) -> None:
        self._file, library = folder / "clock", folder / "clock.so"
        self.environ: Mapping[str, str] = {}
        self.set(0)
        if not missing():
            subprocess.run(["cc", "-shared", "-fPIC", "-O", "-o", library, SOURCE], check=True)
            self.environ = {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(self._file)}

    def set(self, seconds: int) -> None:
        """Put the clock `seconds` ahead of the machine's, or behind."""
        with self._file.open("r+b" if self._file.exists() else "wb", buffering=0) as file:
            file.write(seconds.to_bytes(8, "little", signed=True))
