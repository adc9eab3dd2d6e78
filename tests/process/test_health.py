"""`/healthz` and `/readyz` of the looping commands while what they depend on really hangs."""

import urllib.error
import urllib.request

import pytest
from django.db import connection

from devstack.broker import EmbeddedBroker, create_topic
from devstack.ports import free_port
from promotion.events import TOPIC
from tests.factories import PurchaseFactory
from tests.messages import record, states
from tests.programs import Program, database_url, eventually
from tests.proxy import Proxy
from tests.readings import statuses

pytestmark = pytest.mark.django_db(transaction=True)


def status(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def test_worker_is_alive_but_not_ready_while_the_database_says_nothing():
    port = free_port()
    settings = connection.settings_dict
    with (
        Proxy(settings["HOST"], int(settings["PORT"])) as proxy,
        Program(
            *("expire_promotions", "--loop", "--interval", 0.3, "--ops-port", port),
            DATABASE_URL=database_url(host="127.0.0.1", port=proxy.port),
            EXPIRE_PROMOTIONS_TICK_BUDGET=1,
        ) as program,
    ):
        eventually(lambda: status(port, "/readyz") == 200)
        proxy.freeze()
        eventually(lambda: status(port, "/readyz") == 503)
        assert status(port, "/healthz") == 200
        purchase = PurchaseFactory()
        proxy.thaw()
        eventually(lambda: status(port, "/readyz") == 200)
        eventually(lambda: statuses([purchase]) == ["Expired"])
        assert program.stop() == 0
        assert program.count("database_failed") == program.count("database_recovered") == 1


def test_relay_is_alive_but_not_ready_while_the_broker_says_nothing():
    port = free_port()
    with EmbeddedBroker() as broker:
        create_topic(broker.bootstrap, TOPIC)
        with Program(
            *("relay_outbox", "--loop", "--ops-port", port),
            KAFKA_BOOTSTRAP_SERVERS=broker.bootstrap,
            OUTBOX_POLL_INTERVAL=0.2,
        ) as program:
            eventually(lambda: status(port, "/readyz") == 200)
            broker.suspend()
            ids = record("a", topic=TOPIC)
            eventually(lambda: status(port, "/readyz") == 503)
            assert status(port, "/healthz") == 200
            broker.resume()
            eventually(lambda: status(port, "/readyz") == 200)
            eventually(lambda: states(*ids) == ["published"])
            assert program.stop() == 0
            assert program.count("broker_failed") == program.count("broker_recovered") == 1
