"""Settings from the environment: every bad value is one clear line that names the variable."""

import os
import runpy

import pytest
from django.core.exceptions import ImproperlyConfigured

from pinpromo import env
from tests.programs import ROOT

SETTINGS = str(ROOT / "pinpromo" / "settings.py")
GOOD = "postgres://pin:secret@127.0.0.1:5432/pin"


@pytest.fixture
def settings(monkeypatch):
    """Run the settings module with some variables changed, and return its names."""
    monkeypatch.setattr("pinpromo.logs.configure", lambda **_options: None)

    def run(**changes):
        for name, value in changes.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        return runpy.run_path(SETTINGS)

    return run


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("DATABASE_URL", None, "DATABASE_URL is not set. Set it to the database's address"),
        ("DATABASE_URL", "", "DATABASE_URL is not set. Set it to the database's address"),
        ("DATABASE_URL", "sqlite:///db.sqlite3", "DATABASE_URL names no PostgreSQL database"),
        ("DATABASE_URL", "mysql://u@h/d", "DATABASE_URL names no PostgreSQL database"),
        ("DATABASE_URL", "localhost:5432", "DATABASE_URL names no PostgreSQL database"),
        ("DATABASE_URL", "postgres://u@h:port/d", "DATABASE_URL cannot be read"),
        ("DATABASE_URL", "postgres://u@h:5432/", "DATABASE_URL names no database"),
        ("SECRET_KEY", None, "SECRET_KEY is not set. Set it to a long random text, or DEBUG=true"),
        ("DEBUG", "maybe", "DEBUG is 'maybe': set it to true or false."),
        ("SECURE_SSL_REDIRECT", "2", "SECURE_SSL_REDIRECT is '2': set it to true or false."),
        ("EXPIRE_PROMOTIONS_INTERVAL", "59", "EXPIRE_PROMOTIONS_INTERVAL is '59': set it to a number from 60 to 300."),
        ("EXPIRE_PROMOTIONS_INTERVAL", "301", "EXPIRE_PROMOTIONS_INTERVAL is '301'"),
        ("EXPIRE_PROMOTIONS_INTERVAL", "nan", "EXPIRE_PROMOTIONS_INTERVAL is 'nan'"),
        ("EXPIRE_PROMOTIONS_INTERVAL", "1m", "EXPIRE_PROMOTIONS_INTERVAL is '1m'"),
        ("EXPIRE_PROMOTIONS_MIN_INTERVAL", "0", "EXPIRE_PROMOTIONS_MIN_INTERVAL is '0'"),
        ("EXPIRE_PROMOTIONS_BATCH_SIZE", "0", "EXPIRE_PROMOTIONS_BATCH_SIZE is '0': set it to a whole number from 1"),
        ("EXPIRE_PROMOTIONS_BATCH_SIZE", "10001", "EXPIRE_PROMOTIONS_BATCH_SIZE is '10001'"),
        ("EXPIRE_PROMOTIONS_BATCH_SIZE", "2.5", "EXPIRE_PROMOTIONS_BATCH_SIZE is '2.5'"),
        ("EXPIRE_PROMOTIONS_BATCH_SIZE", "9" * 5000, "EXPIRE_PROMOTIONS_BATCH_SIZE is '999"),
        ("EXPIRE_PROMOTIONS_TICK_BUDGET", "0", "EXPIRE_PROMOTIONS_TICK_BUDGET is '0'"),
        ("EXPIRE_PROMOTIONS_TICK_BUDGET", "inf", "EXPIRE_PROMOTIONS_TICK_BUDGET is 'inf'"),
        ("OUTBOX_BATCH_SIZE", "-1", "OUTBOX_BATCH_SIZE is '-1'"),
        ("OUTBOX_POLL_INTERVAL", "0", "OUTBOX_POLL_INTERVAL is '0'"),
        ("OUTBOX_MAX_ATTEMPTS", "0", "OUTBOX_MAX_ATTEMPTS is '0'"),
        ("OUTBOX_RETENTION_DAYS", "-1", "OUTBOX_RETENTION_DAYS is '-1'"),
        ("OPS_PORT", "65536", "OPS_PORT is '65536': set it to a whole number from 0 to 65535."),
        ("OPS_PORT", "http", "OPS_PORT is 'http'"),
        ("KAFKA_ACKS", "1", "KAFKA_ACKS cannot be changed (every in-sync replica must acknowledge): unset it."),
        ("KAFKA_ENABLE_IDEMPOTENCE", "false", "KAFKA_ENABLE_IDEMPOTENCE cannot be changed"),
    ],
)
def test_a_bad_value_is_one_clear_line(settings, name, value, words):
    with pytest.raises(ImproperlyConfigured) as caught:
        settings(**{name: value})
    (line,) = str(caught.value).splitlines()
    assert line.startswith(words)


def test_a_database_address_that_cannot_be_read_is_not_repeated(settings):
    with pytest.raises(ImproperlyConfigured) as caught:
        settings(DATABASE_URL="postgres://pin:secret@h:port/d")
    assert "secret" not in str(caught.value)


def test_the_defaults(settings):
    found = settings(DATABASE_URL=GOOD)
    names = ("INTERVAL", "BATCH_SIZE", "TICK_BUDGET")
    assert [found[f"EXPIRE_PROMOTIONS_{name}"] for name in names] == [60, 200, 30]
    names = ("BATCH_SIZE", "POLL_INTERVAL", "MAX_ATTEMPTS", "RETENTION_DAYS")
    assert [found[f"OUTBOX_{name}"] for name in names] == [500, 1, 10, 7]
    assert (found["OPS_PORT"], found["DEBUG"], found["SECURE_SSL_REDIRECT"]) == (0, False, True)


def test_an_empty_value_counts_as_unset(settings):
    found = settings(EXPIRE_PROMOTIONS_INTERVAL="", OPS_PORT="", DEBUG="")
    assert (found["EXPIRE_PROMOTIONS_INTERVAL"], found["OPS_PORT"], found["DEBUG"]) == (60, 0, False)


def test_the_floor_of_the_interval_can_be_lowered(settings):
    found = settings(EXPIRE_PROMOTIONS_MIN_INTERVAL="0.5", EXPIRE_PROMOTIONS_INTERVAL="0.5")
    assert found["EXPIRE_PROMOTIONS_INTERVAL"] == 0.5


def test_an_env_file_gives_what_the_environment_does_not(settings, tmp_path, monkeypatch):
    path = tmp_path / "env"
    path.write_text("OPS_PORT=8001\nEXPIRE_PROMOTIONS_BATCH_SIZE=7\n")
    monkeypatch.setenv("EXPIRE_PROMOTIONS_BATCH_SIZE", "9")
    monkeypatch.delenv("OPS_PORT", raising=False)
    found = settings(PINPROMO_ENV_FILE=str(path))
    assert (found["OPS_PORT"], found["EXPIRE_PROMOTIONS_BATCH_SIZE"]) == (8001, 9)
    del os.environ["OPS_PORT"]


def test_librdkafka_s_properties_are_passed_on():
    variables = {"KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_BOOTSTRAP_SERVERS": "x:1", "KAFKA_EMPTY": "", "OTHER": "1"}
    assert env.kafka_properties(variables) == {"sasl.mechanism": "PLAIN"}
