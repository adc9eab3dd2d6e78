"""The web process as a real process."""

import json
import re
import subprocess
import sys
import uuid

import pytest

from devstack.ports import free_port
from tests.programs import ROOT, environment
from tests.web import gunicorn, send

pytestmark = pytest.mark.django_db(transaction=True)

CANCEL = f"/promotions/{uuid.UUID(int=1)}/cancel"
OVER_TLS = {"X-Forwarded-Proto": "https"}


def test_only_a_known_proxy_is_believed_that_tls_was_used():
    with gunicorn(FORWARDED_ALLOW_IPS="192.0.2.0/24") as port:
        assert send(port, "POST", CANCEL, **OVER_TLS) == 301
    with gunicorn(FORWARDED_ALLOW_IPS="127.0.0.0/8") as port:
        assert send(port, "POST", CANCEL) == 301
        assert send(port, "POST", CANCEL, **OVER_TLS) == 401
        assert send(port, "GET", "/readyz", Host="10.0.0.7:8000") == 200
        assert send(port, "GET", "/metrics", Host="10.0.0.7:8000") == 200


def test_the_operators_pages_say_that_the_database_is_away_without_a_traceback(tmp_path):
    logged_in = {"Cookie": "sessionid=of-some-operator", **OVER_TLS}
    variables = {"DATABASE_URL": f"postgres://nobody@127.0.0.1:{free_port()}/none", "FORWARDED_ALLOW_IPS": "127.0.0.1"}
    with (tmp_path / "log").open("wb") as log, gunicorn(log, **variables) as port:
        assert send(port, "GET", "/admin/login/", **OVER_TLS) == 200  # does not need the database
        assert send(port, "GET", "/admin/", **logged_in) == 503
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    (failed,) = [line for line in lines if line["event"] == "page_failed"]
    assert (failed["level"], failed["path"]) == ("error", "/admin/")
    assert "Connection refused" in failed["reason"]
    assert not any("exception" in line for line in lines)


def test_counters_of_the_workers_are_not_imported():
    # They would be exported as zeros: a dead worker's counter would look alive.
    code = "import sys, pinpromo.wsgi, pinpromo.urls; print({'promotion.metrics', 'outbox.metrics'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    result = subprocess.run(
        command, cwd=ROOT, env=environment(PYTHONWARNINGS=None), capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


def test_all_that_is_logged_has_one_form_and_nothing_is_left_in_the_home_folder(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    variables = {"HOME": home, "GUNICORN_CMD_ARGS": "--access-logfile=-"}
    with (tmp_path / "log").open("wb") as log, gunicorn(log, **variables) as port:
        assert send(port, "POST", f"{CANCEL}?card=4111") == 301
    events = [json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines()]
    assert any(event.startswith("Starting gunicorn") for event in events)
    assert any(event.startswith("Shutting down") for event in events)
    (access,) = (event for event in events if "/" in event and " in " in event)  # probes are not worth a line
    assert re.fullmatch(rf"POST {CANCEL} 301 in \d+ ms", access)  # no address, no query string
    assert list(home.iterdir()) == []
