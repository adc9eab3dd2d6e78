"""Every alert leads to a metric that exists, a panel, and a section of a runbook whose commands run as printed."""

import re
import shlex

import pytest
from django.db import connection, transaction

from tests.contract.telemetry import METRIC, OPERATIONS, RUNBOOKS, alerts, panels, quoted, section, table
from tests.programs import manage

ALERTS = alerts()
PARTS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "Verification", "Escalation"]
DOCS, GRAFANA = "{{ $externalLabels.docs_url }}/", "{{ $externalLabels.grafana_url }}/d/promotion-overview?viewPanel="


def metrics_of(text):
    """The metrics that an expression uses, histograms by their base name."""
    return {re.sub("_bucket$", "", name) for name in METRIC.findall(text)}


def documented_metrics():
    return {quoted(row[0])[0] for row in table(section(OPERATIONS, "Metrics"))}


def headings(page):
    return re.findall(r"^## (\w+)$", page, re.M)


def test_runbooks_have_one_section_per_alert_and_no_other():
    sections = sorted(name for page in RUNBOOKS.values() for name in headings(page))

    assert sections == sorted(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_alert_says_what_why_and_where_to_go(name):
    rule = ALERTS[name]
    notes = rule["annotations"]
    page, anchor = notes["runbook_url"].removeprefix(DOCS + "runbooks/").split("#")

    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert notes.keys() == {"summary", "description", "runbook_url", "dashboard_url"}
    assert anchor == name.lower()
    assert name in headings(RUNBOOKS[page])
    assert re.findall(r"^\*\*(\w+)\.\*\*", section(RUNBOOKS[page], name), re.M) == PARTS


@pytest.mark.parametrize("name", ALERTS)
def test_alert_looks_at_metrics_that_exist_and_that_its_panel_shows(name):
    rule = ALERTS[name]
    panel = panels()[int(rule["annotations"]["dashboard_url"].removeprefix(GRAFANA))]
    used = metrics_of(rule["expr"])
    shown = {metric for target in panel["targets"] for metric in metrics_of(target["expr"])}

    assert used <= documented_metrics()
    if not used & shown:  # alerts on the absence of everything lead to where something should be
        assert name in {"PromotionTargetDown", "PromotionStateUnknown"}
    assert f"Runbook: {name}" in {link["title"] for link in panel["links"]}


def test_thresholds_of_the_alerts_are_drawn_into_their_panels():
    for name, rule in ALERTS.items():
        panel = panels()[int(rule["annotations"]["dashboard_url"].removeprefix(GRAFANA))]
        limit = re.search(r"> (\d+)$", rule["expr"].strip())
        if limit:
            steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            assert [step["value"] for step in steps] == [None, int(limit[1])], name
            assert panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"] != "off", name


def test_operations_page_lists_the_alerts_with_their_severity():
    rows = table(section(OPERATIONS, "Alerts"))
    listed = {re.match(r"\[(\w+)\]\((.*)\)", row[0]).groups(): row[1] for row in rows}

    assert {name: severity for (name, _), severity in listed.items()} == {
        name: rule["labels"]["severity"] for name, rule in ALERTS.items()
    }
    for name, link in listed:
        assert ALERTS[name]["annotations"]["runbook_url"] == DOCS + link


def blocks(language):
    fence = re.compile(rf"^```{language}\n(.*?)^```", re.M | re.S)
    return [
        pytest.param(text, id=f"{name}-{number}")
        for name, page in RUNBOOKS.items()
        for number, text in enumerate(fence.findall(page))
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("statement", blocks("sql"))
def test_statement_of_a_runbook_runs_and_changes_nothing(statement):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute(statement)
        assert cursor.description
        transaction.set_rollback(True)


@pytest.mark.django_db(transaction=True)
def test_commands_of_the_runbooks_run():
    lines = {line for block in blocks("console") for line in block.values[0].splitlines()}

    for line in lines:
        words = shlex.split(line)
        assert words[:2] == ["python", "manage.py"], line
        finished = manage(*words[2:])
        assert finished.returncode == 0, (line, finished.stderr)


def test_metrics_events_and_panels_named_in_the_runbooks_exist():
    events = {event for row in table(section(OPERATIONS, "Logs")) for event in quoted(row[0])}
    titles = {panel["title"] for panel in panels().values()}
    for page in RUNBOOKS.values():
        for panel in re.findall(r"panel \*([^*]+)\*", page):
            assert any(title.startswith(panel) for title in titles), panel
        for word in quoted(page):
            if re.fullmatch(r"[a-z]+_(failed|hung|ahead|parked|skipped)", word):
                assert word in events, word
        for metric in METRIC.findall(" ".join(quoted(page))):
            assert metric in documented_metrics() | {"outbox_lanes"}, metric
