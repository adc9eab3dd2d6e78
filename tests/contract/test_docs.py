"""Every variable, flag, metric and log event of the code stands in the docs, and none there that is not in the code."""

import ast
import json
import subprocess
import sys

import pytest
from django.core.management import BaseCommand, load_command_class
from django.utils import timezone

import outbox.gauges
import promotion.gauges
from promotion.expiration import CycleResult
from tests.contract.telemetry import CONFIGURATION, OPERATIONS, PACKAGES, quoted, section, sources, table, texts_of
from tests.programs import ROOT, environment

LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}
NOT_OURS = {"FORWARDED_ALLOW_IPS"}  # read by gunicorn
PREFIX = "KAFKA_*"


def calls():
    for tree in sources():
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def variables_in_code():
    readers = {f"env.{kind}" for kind in ("text", "flag", "number", "whole", "names", "postgres")} | {"os.environ.get"}
    for call in calls():
        if call.args and ast.unparse(call.func) in readers:
            yield from texts_of(call.args[0])


def test_environment_variables():
    documented = {
        name
        for row in table(CONFIGURATION.split("\n## Flags\n")[0])
        for name in quoted(row[0])
        if name.replace("_", "").replace("*", "").isupper()
    }

    assert documented - NOT_OURS - {PREFIX} == set(variables_in_code())
    assert documented >= NOT_OURS | {PREFIX}


COMMANDS = {
    path.stem: path.parts[-4]
    for path in sorted(ROOT.glob("*/management/commands/*.py"))
    if path.stem != "__init__" and path.parts[-4] in PACKAGES
}


@pytest.mark.parametrize("command", COMMANDS)
def test_arguments(command):
    def arguments(parser):
        return {
            name
            for action in parser._actions
            for name in action.option_strings or [action.metavar]
            if name.startswith("--") or not action.option_strings
        }

    rows = table(section(CONFIGURATION, command))
    ours = arguments(load_command_class(COMMANDS[command], command).create_parser("manage.py", command))
    django_s = arguments(BaseCommand().create_parser("manage.py", "x"))

    assert {quoted(row[0])[0].split()[0] for row in rows} == ours - django_s


COLLECT = """
import django, json
django.setup()
import promotion.metrics, outbox.metrics
from prometheus_client import REGISTRY
found = {}
for metric in REGISTRY.collect():
    name = metric.name + ("_total" if metric.type == "counter" else "")
    if name.startswith(("promotion_", "outbox_")):
        labels = found.setdefault(name, {})
        for sample in metric.samples:
            for label in sample.labels.keys() - {"le"}:
                labels.setdefault(label, set()).add(sample.labels[label])
print(json.dumps({name: {l: sorted(v) for l, v in labels.items()} for name, labels in found.items()}))
"""


def workers_metrics():
    finished = subprocess.run(
        [sys.executable, "-c", COLLECT],
        cwd=ROOT,
        env=environment(DJANGO_SETTINGS_MODULE="pinpromo.settings"),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(finished.stdout)


def web_metrics():
    for prefix, read in (("promotion_expire", promotion.gauges.read), ("outbox", outbox.gauges.read)):
        for metric in read(timezone.now()):
            yield metric.name, {label: [] for sample in metric.samples for label in sample.labels}
        yield f"{prefix}_collector_success", {}


@pytest.mark.django_db
def test_metrics_and_their_labels():
    in_code = workers_metrics() | dict(web_metrics())
    rows = {quoted(row[0])[0]: quoted(row[1]) for row in table(section(OPERATIONS, "Metrics"))}

    assert rows.keys() == in_code.keys()
    for name, labels in in_code.items():
        values = {value for label in labels if label != "topic" for value in labels[label]}
        assert set(rows[name]) == {*labels, *values}, name


def log_events_in_code():
    """Every event with the sets of keys it is logged with."""
    for call in calls():
        function = ast.unparse(call.func)
        keys = {keyword.arg for keyword in call.keywords if keyword.arg} - {"exc_info"}
        if function == "OutageLog":
            (thing,) = texts_of(call.args[0])
            yield f"{thing}_failed", {"reason", "outage_seconds"}
            yield f"{thing}_recovered", {"outage_seconds"}
        elif function == "write" or (isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS):
            if any(keyword.arg is None for keyword in call.keywords):  # **result.as_dict()
                keys |= CycleResult(run_id=None, as_of=timezone.now()).as_dict().keys() - {"run_id"}
            for event in texts_of(call.args[0]) if call.args else ():
                yield event, keys


def test_log_events_and_their_keys():
    in_code = {}
    for event, keys in log_events_in_code():
        if " " not in event and "%" not in event:
            in_code.setdefault(event, set()).update(keys)
    documented = {}
    for row in table(section(OPERATIONS, "Logs")):
        for event in quoted(row[0]):
            documented[event] = set(quoted(row[2]))

    assert documented.keys() == in_code.keys()
    in_code["crashed"] = {"exception"}  # made from exc_info
    for event in documented:
        if event.endswith("_recovered"):  # shares its row with _failed
            documented[event].discard("reason")
    assert {event: keys for event, keys in documented.items() if keys != in_code[event]} == {}
