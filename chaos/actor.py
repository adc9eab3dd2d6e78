"""A thread of the campaign that does something again and again until it is told to stop."""

import random
import threading
import time
import traceback
from collections.abc import Callable


class Actor(threading.Thread):
    """Calls `act` with its own dice about every `pause` seconds. An error ends it and is kept for the report."""

    def __init__(self, name: str, act: Callable[[random.Random], None], *, pause: float, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self._act = act
        self._pause = pause
        self._dice = random.Random(f"{seed} {name}")
        self._stopping = threading.Event()
        self.error = ""

    def run(self) -> None:
        try:
            while not self._stopping.wait(self._pause):
                self._act(self._dice)
        except Exception:  # noqa: BLE001 - a fault of the campaign itself: reported as such
            self.error = traceback.format_exc()

    def stop(self) -> None:
        """Tell it to stop and wait for the act in hand."""
        self._stopping.set()
        self.join()


def patiently(act: Callable[[], None], errors: tuple[type[Exception], ...], *, seconds: float = 120.0) -> None:
    """Call `act` until it raises none of `errors`; after `seconds` let the error out."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            act()
            return
        except errors:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
