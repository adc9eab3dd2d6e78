"""The user's cache: what is expensive to make is made once, also when two start at the same time."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from devstack.errors import DevstackError


def cache_directory() -> Path:
    """`~/.cache/pinpromo`, or below XDG_CACHE_HOME."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pinpromo"


def build_once(name: str, build: Callable[[Path], None]) -> Path:
    """The cached folder `name`; the first caller has `build` fill it, others wait for that.

    The folder appears by one rename when it is complete. The lock is the kernel's, so a builder that is
    killed frees it; what it left half made is cleared by the next one.
    """
    target = cache_directory() / name
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (target.parent / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                _build(target, build)
    except OSError as error:
        message = f"cannot write the cache {target}: {error}; set XDG_CACHE_HOME to a folder that can be written"
        raise DevstackError(message) from error
    return target


def _build(target: Path, build: Callable[[Path], None]) -> None:
    for leftover in target.parent.glob(f"{target.name}.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{target.name}.new-", dir=target.parent))
    try:
        build(fresh)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
