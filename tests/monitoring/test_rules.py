"""promtool and amtool: the files are valid, and each alert fires when it should and not when it should not."""

import subprocess

import pytest
import yaml

from devstack.monitoring import DEPLOY, find, shorten_rules
from tests.contract.telemetry import alerts

pytestmark = pytest.mark.prometheus

RULES = sorted((DEPLOY / "prometheus/rules").glob("*.yml"))
TESTS = sorted((DEPLOY / "prometheus/tests").glob("*.yml"))


def check(*command):
    finished = subprocess.run(command, capture_output=True, text=True, cwd=DEPLOY, timeout=60)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.fixture(scope="module")
def promtool():
    return find("promtool", package="prometheus")


def test_files_are_valid(promtool):
    check(promtool, "check", "rules", "--lint-fatal", *RULES)
    check(promtool, "check", "config", "prometheus/prometheus.yml")
    check(find("amtool", package="prometheus-alertmanager"), "check-config", "alertmanager/alertmanager.yml")


def test_shortened_rules_are_valid(promtool, tmp_path):
    for path in RULES:
        shortened = tmp_path / path.name
        shortened.write_text(shorten_rules(path.read_text(), 20))
        check(promtool, "check", "rules", shortened)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_when_they_should(promtool, path):
    check(promtool, "test", "rules", path)


def test_every_alert_is_tested_to_fire_and_not_to_fire():
    fires, silent = set(), set()
    for path in TESTS:
        for case in yaml.safe_load(path.read_text())["tests"]:
            for expected in case["alert_rule_test"]:
                (fires if expected["exp_alerts"] else silent).add(expected["alertname"])

    assert fires == silent == set(alerts())
