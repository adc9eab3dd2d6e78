"""The cluster that every embedded PostgreSQL starts from: made once by initdb, then copied."""

import os
import secrets
import shutil
from pathlib import Path

from devstack import postgres_install
from devstack.cache import build_once
from devstack.guarded import GuardedFolder, plain_environment

NAME = "pinpromo"  # of the database, and of its superuser
_RECIPE = 1  # raise it when the template is made differently

_INITDB = [
    *("--username", NAME, "--pwfile", "password"),
    *(
        "--auth",
        "scram-sha-256",
        "--set",
        "scram_iterations=1",
    ),  # the password is random: no need to make it slow
    *("--encoding", "UTF8", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"),
    *("--no-sync", "--pgdata", "data"),
]


def copy_template(cluster: Path) -> None:
    """Make `cluster` (a folder with `data` and `password`), owned by the user that PostgreSQL runs as."""
    template = build_once(f"postgres-{postgres_install.version()}-{_RECIPE}", _make)
    cluster.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copy2(template / "password", cluster / "password")
    unfinished = cluster / "data.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(template / "data", unfinished)
    hand_over(cluster)
    unfinished.rename(cluster / "data")


def hand_over(folder: Path) -> None:
    """Give a folder and all that is in it to the user that PostgreSQL runs as."""
    if owner := postgres_install.owner():
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, *owner)


def _make(target: Path) -> None:
    guarded = GuardedFolder(
        "PostgreSQL template",
        parent=postgres_install.temporary_parent(),
        owner=postgres_install.owner(),
    )
    try:
        _initialise(guarded)
        shutil.copy2(guarded.path / "password", target / "password")
        shutil.copytree(guarded.path / "data", target / "data")
    finally:
        guarded.close()


def _initialise(guarded: GuardedFolder) -> None:
    (guarded.path / "password").write_text(secrets.token_urlsafe(24))
    (guarded.path / "password").chmod(0o600)
    (guarded.path / "create.sql").write_text(f"CREATE DATABASE {NAME}\n")
    programs = postgres_install.programs(guarded.path)
    hand_over(guarded.path)
    guarded.run([programs / "initdb", *_INITDB], environ=plain_environment())
    guarded.run(
        [programs / "postgres", "--single", "-D", "data", "postgres"],
        environ=plain_environment(),
        stdin=guarded.path / "create.sql",
    )
