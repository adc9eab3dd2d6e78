"""The peers' own virtual environment, `.venv-peers`: made when it is needed, again when a version changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
FOLDER = Path(__file__).parents[2] / ".venv-peers"
INSTALLED = FOLDER / "installed.txt"


class NotInstalled(Exception):  # noqa: N818
    """The peers cannot be installed here; the text says why."""


def python() -> str:
    """Return the interpreter that has the peers. Raises NotInstalled."""
    program = FOLDER / "bin" / "python"
    wanted = REQUIREMENTS.read_text()
    if not INSTALLED.exists() or INSTALLED.read_text() != wanted:
        _run(sys.executable, "-m", "venv", "--clear", str(FOLDER))
        _run(str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS))
        INSTALLED.write_text(wanted)
    return str(program)


def version(package: str) -> str:
    """Return the pinned version of a package."""
    lines = REQUIREMENTS.read_text().splitlines()
    (found,) = {
        line.partition("==")[2].split()[0] for line in lines if line.partition("==")[0].split("[")[0] == package
    }
    return found


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(f"the peers cannot be installed: {done.stderr.strip().splitlines()[-1]}")
