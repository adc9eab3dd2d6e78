"""Real processes under a real Prometheus and Alertmanager, with the files of `deploy/`, twenty times faster."""

import os
import re
import subprocess
import urllib.request

import pytest

from devstack.broker import create_topic
from devstack.monitored import MonitoredSystem
from devstack.monitoring import find
from promotion.events import TOPIC
from tests.contract.telemetry import alerts, panels
from tests.factories import PurchaseFactory, TargetFactory
from tests.programs import database_url, eventually

pytestmark = [pytest.mark.prometheus, pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]

FACTOR = 20.0
WINDOW = "10s"
CAUSED = {"PromotionExpireNotRunning", "PromotionExpireStuck", "PromotionTargetDown", "OutboxLate"}


@pytest.fixture
def system(transactional_db):
    create_topic(os.environ["KAFKA_BOOTSTRAP_SERVERS"], TOPIC)
    environ = {
        "DATABASE_URL": database_url(),
        "SECRET_KEY": "x" * 50,
        "PINPROMO_ENV_FILE": "",
        "SECURE_SSL_REDIRECT": "false",
    }
    with MonitoredSystem(environ, factor=FACTOR) as system:
        yield system


def expressions():
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        .replace("$job", ".+")
        .replace("$instance", ".+")
        .replace("$__rate_interval", WINDOW)
        for panel in panels().values()
        for target in panel["targets"]
    }


def without_data(prometheus):
    return [name for name, expression in expressions().items() if not prometheus.query(expression)]


def check_metrics(address):
    """Ask promtool what it thinks of our names, types and help texts."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    ours = [line for line in lines if re.match(r"(# \w+ )?(promotion|outbox)_", line)]
    assert ours
    command = [find("promtool", package="prometheus"), "check", "metrics"]
    finished = subprocess.run(command, input="\n".join(ours) + "\n", capture_output=True, text=True, timeout=60)
    assert (finished.returncode, finished.stdout + finished.stderr) == (0, "")


def test_dashboard_has_data_alerts_reach_the_webhook_and_are_resolved(system):
    prometheus, webhook = system.prometheus, system.webhook
    PurchaseFactory.create_batch(3)

    # All is well: every panel shows something, no alert fires.
    eventually(lambda: not without_data(prometheus))
    eventually(lambda: prometheus.query("sum(outbox_published_total)")[0]["value"][1] == "3")
    eventually(lambda: not prometheus.firing())
    for target in prometheus.query("up"):
        check_metrics(target["metric"]["instance"])

    # A stuck purchase, a dead worker, a hung relay.
    poison = PurchaseFactory(targets=0)
    eventually(lambda: prometheus.query("promotion_expire_stuck_purchases")[0]["value"][1] == "1")
    system.suspend_relay()
    PurchaseFactory()
    eventually(lambda: prometheus.query("outbox_pending_messages")[0]["value"][1] == "1")
    system.kill_worker()
    eventually(lambda: {name for name, status in webhook.received if status == "firing"} >= CAUSED)

    # Repaired: all of them are resolved.
    TargetFactory(purchase=poison)
    system.resume_relay()
    system.start_worker()
    eventually(lambda: not prometheus.firing())
    eventually(lambda: {name for name, status in webhook.received if status == "resolved"} >= CAUSED)
    for alert in webhook.alerts:
        assert alert["annotations"]["runbook_url"].startswith("https://git.example.com/"), alert
        assert "docs_url" not in alert["labels"]
        assert alert["labels"]["severity"] == alerts()[alert["labels"]["alertname"]]["labels"]["severity"]
