"""Logs of real processes: one form for all loggers, and no value of a row in any of them."""

import json
import os
import pty
import subprocess
import sys

from django.db import connection

SECRET = "4111-1111-1111-1111"

PREPARE = """
import django, logging, structlog
django.setup()
log = structlog.get_logger("promotion.expiration")
secret = "4111-" + "1111-1111-1111"
"""


def run(script: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "pinpromo.settings"}
    return subprocess.run(
        [sys.executable, "-c", PREPARE + script],
        env=environment,
        text=True,
        timeout=60,
        **{"capture_output": True, **options},
    )


def lines_of(script: str) -> list[dict[str, object]]:
    finished = run(script)
    assert SECRET not in finished.stdout + finished.stderr
    assert finished.stdout == ""
    return [json.loads(line) for line in finished.stderr.splitlines()]


def test_every_logger_speaks_in_one_form_with_the_ids_of_the_cycle():
    lines = lines_of("""
with structlog.contextvars.bound_contextvars(run_id="R", correlation_id="C"):
    log.info("promotion_expired", purchase_id="P", targets_count=2)
    for name in ("django.request", "psycopg", "librdkafka", "gunicorn.error"):
        logging.getLogger(name).warning("no %s", "way", extra={"code": 7, "request": secret})
    logging.getLogger("librdkafka").info("two\\nlines")
log.info("later")
log.debug("unheard")
""")

    own, *foreign, two_lines, later = lines
    stamp = own.pop("timestamp")
    assert own == {
        "level": "info",
        "event": "promotion_expired",
        "logger": "promotion.expiration",
        "run_id": "R",
        "correlation_id": "C",
        "purchase_id": "P",
        "targets_count": 2,
    }
    assert stamp.endswith("Z")
    assert len(stamp) == len("2026-01-31T09:30:00.000000Z")
    assert [line["logger"] for line in foreign] == ["django.request", "psycopg", "librdkafka", "gunicorn.error"]
    for line in foreign:
        del line["timestamp"], line["logger"]
        assert line == {"level": "warning", "event": "no way", "run_id": "R", "correlation_id": "C", "code": 7}
    assert two_lines["event"] == "two\nlines"
    assert later.keys() == {"timestamp", "level", "event", "logger"}


def test_tracebacks_say_where_but_quote_nothing():
    logged, own, crashed = lines_of("""
def outer(card):
    try:
        int(card)
    except ValueError as error:
        raise KeyError(card) from error
try:
    outer(secret)
except KeyError as error:
    logging.getLogger("django.request").error("Internal Server Error", exc_info=True)
    log.error("own", exc_info=error)
raise RuntimeError(secret)
""")

    assert logged["exception"] == own["exception"]
    described = own["exception"].splitlines()
    assert described[0] == "KeyError"
    assert described[2].endswith("in outer")
    assert described[3] == "caused by ValueError"
    assert crashed["event"] == "crashed"
    assert crashed["level"] == "critical"
    assert crashed["exception"].startswith("RuntimeError\n  ")


def test_database_errors_are_a_state_and_a_constraint(transactional_db):
    name = connection.settings_dict["NAME"]
    (line,) = lines_of(f"""
from django.conf import settings
settings.DATABASES["default"]["NAME"] = {name!r}
from django.contrib.auth.models import User
User.objects.create(username=secret)
try:
    User.objects.create(username=secret)
except Exception:
    log.exception("refused")
finally:
    User.objects.all().delete()
""")

    assert line["exception"].startswith("UniqueViolation: SQLSTATE 23505, auth_user_username_key\n  ")


def test_statements_are_not_logged_with_their_values_even_in_debug(transactional_db, monkeypatch):
    monkeypatch.setenv("DEBUG", "true")
    lines = lines_of("""
from django.db import connection
connection.cursor().execute("SELECT %s", [secret])
log.debug("heard")
""")

    assert [line["event"] for line in lines] == ["heard"]


def test_terminal_gets_readable_text():
    ours, theirs = pty.openpty()
    run('log.warning("clock_ahead", seconds=3)', stderr=theirs, stdout=theirs, capture_output=False)
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)

    assert "clock_ahead" in text
    assert not text.startswith("{")


def test_reader_that_is_gone_does_no_harm():
    reading, writing = os.pipe()
    os.close(reading)
    finished = run(
        "for _ in range(3): log.error('x'); logging.getLogger('y').error('z')\nprint('done')",
        stderr=writing,
        stdout=subprocess.PIPE,
        capture_output=False,
    )
    os.close(writing)

    assert finished.stdout == "done\n"


def test_an_answer_of_500_and_more_has_its_line_from_whoever_gave_it():
    lines = lines_of("""
request = logging.getLogger("django.request")
request.error("Service Unavailable", extra={"status_code": 503})
request.warning("Not Found", extra={"status_code": 404})
try:
    {}["x"]
except KeyError:
    request.error("Internal Server Error", exc_info=True, extra={"status_code": 500})
""")
    assert [line["event"] for line in lines] == ["Not Found", "Internal Server Error"]


def test_lines_held_back_are_lost_unless_they_are_written():
    finished = run("""
import contextlib, os, threading
from pinpromo.logs import held_back, write
with contextlib.suppress(ZeroDivisionError), held_back() as lost:
    log.info("lost")
    1 / 0
with held_back() as lines:
    log.info("first")
    log.info("second")
    other = threading.Thread(target=log.info, args=["not ours"])
    other.start()
    other.join()
log.info("after")
write(lines)
write([])
""")

    assert [json.loads(line)["event"] for line in finished.stderr.splitlines()] == [
        "not ours",
        "after",
        "first",
        "second",
    ]
