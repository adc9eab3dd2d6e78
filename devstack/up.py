"""`make up` and `make down`: the demonstration's stack, kept running in the background."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from devstack import dataset, stack
from devstack.boosts import TOPIC
from devstack.broker import create_topic
from devstack.demo import PARTITIONS, SEED
from devstack.errors import DevstackError
from devstack.ports import HOST, free_port, wait_until
from devstack.program import ROOT, Program, manage, manage_to_end

FOLDER = ROOT / ".devstack"
STATE = FOLDER / "state.json"
LOG = FOLDER / "log"
ENV_FILE = ROOT / ".env"
ENV_MARK = "# Written by `make up`; `make down` removes it."
PATIENCE = 60.0  # seconds


def up() -> int:
    """Start the stack in the background and say how to use it."""
    if _running():
        print("The stack is running already:\n")
    else:
        _refuse_foreign_env_file()
        FOLDER.mkdir(exist_ok=True)
        STATE.unlink(missing_ok=True)
        print("Starting PostgreSQL, a broker, the worker, the relay and the web process ...", flush=True)
        with LOG.open("wb") as log:
            command = [sys.executable, "-m", "devstack", "serve"]
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(lambda: STATE.exists() or process.poll() is not None, seconds=PATIENCE)
        if not STATE.exists():
            process.terminate()
            message = f"the stack did not start; the end of its log:\n{_tail()}"
            raise DevstackError(message)
    print(_manual(json.loads(STATE.read_text())))
    return 0


def down() -> int:
    """End the stack and wait until it is gone."""
    pid = _running()
    if not pid:
        print("The stack is not running.")
        return 0
    os.kill(pid, signal.SIGTERM)
    if not wait_until(lambda: not _running(), seconds=PATIENCE):
        message = f"the stack (process {pid}) does not end; see {LOG}"
        raise DevstackError(message)
    print("The stack has ended; its data is gone.")
    return 0


def serve() -> int:
    """Be the stack, until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ExitStack() as running:
        running.callback(STATE.unlink, missing_ok=True)
        servers = running.enter_context(stack.running())
        environ = {**servers.variables, "DEBUG": "true"}
        whole = {**os.environ, **environ}
        manage_to_end("migrate", environ=environ)
        create_topic(whole[stack.BROKER], TOPIC, PARTITIONS)
        if not os.environ.get(stack.DATABASE):
            dataset.load(whole[stack.DATABASE], dataset.make(seed=SEED, now=datetime.now(UTC)))
        login = {"username": "admin", "password": secrets.token_urlsafe(9)}
        _create_login(login, environ)
        port = free_port()
        programs = [
            running.enter_context(program)
            for program in (
                manage("worker", "expire_promotions", "--loop", environ=environ),
                manage("relay", "relay_outbox", "--loop", environ=environ),
                _web(port, environ),
            )
        ]
        wait_until(lambda: _answers(port), seconds=PATIENCE)
        for program in programs:
            program.check()
        _write_env_file(running, whole)
        _write_state({"pid": os.getpid(), "port": port, **login})
        while True:
            wait_until(lambda: False, seconds=2)
            for program in programs:
                program.check()


def _web(port: int, environ: Mapping[str, str]) -> Program:
    gunicorn = Path(sys.executable).parent / "gunicorn"
    options = (f"--bind={HOST}:{port}", "--threads=4", f"--chdir={ROOT}", f"--config={ROOT / 'gunicorn.conf.py'}")
    return Program("web", gunicorn, "pinpromo.wsgi", *options, environ=environ)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False


def _create_login(login: Mapping[str, str], environ: Mapping[str, str]) -> None:
    values = {f"DJANGO_SUPERUSER_{name.upper()}": text for name, text in login.items()}
    # In a given database the login may be there already: then its password stays as it is.
    with contextlib.suppress(DevstackError):
        manage_to_end("createsuperuser", "--noinput", "--email=admin@localhost", environ={**environ, **values})


def _write_env_file(running: ExitStack, whole: Mapping[str, str]) -> None:
    names = (stack.DATABASE, stack.BROKER, "SECRET_KEY", "DEBUG")
    lines = [ENV_MARK, *(f"{name}={whole[name]}" for name in names), ""]
    with open(ENV_FILE, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write("\n".join(lines))
    running.callback(ENV_FILE.unlink, missing_ok=True)


def _write_state(state: Mapping[str, Any]) -> None:
    fresh = STATE.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(state))
    fresh.rename(STATE)


def _refuse_foreign_env_file() -> None:
    if ENV_FILE.exists() and not ENV_FILE.read_text().startswith(ENV_MARK):
        message = f"{ENV_FILE.name} is there already and `make up` would overwrite it: move it away first"
        raise DevstackError(message)


def _running() -> int:
    """Return the process id of the running stack; 0 if there is none."""
    try:
        pid = int(json.loads(STATE.read_text())["pid"])
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError):
        return 0
    return pid


def _tail() -> str:
    return "\n".join(f"  {line}" for line in LOG.read_text(errors="replace").splitlines()[-12:])


def _manual(state: Mapping[str, Any]) -> str:
    return f"""\
  Admin     http://{HOST}:{state["port"]}/admin/   login {state["username"]}, password {state["password"]}
  Settings  .env (so `python manage.py expire_promotions --loop` works in another terminal:
            `source .venv/bin/activate` first)
  End       make down"""
