"""The rules of Grafana's dashboard linter, as far as they apply, and what this dashboard promises beyond.

https://github.com/grafana/dashboard-linter/tree/main/docs/rules
"""

import json
import re

import pytest

from tests.contract.telemetry import DASHBOARD, METRIC, OPERATIONS, panels, quoted, section, table

BOARD = json.loads(DASHBOARD.read_text())
PANELS = panels()
TARGETS = [
    pytest.param(target["expr"], id=f"{panel['title']}-{target['refId']}")
    for panel in PANELS.values()
    for target in panel["targets"]
]


def test_dashboard_is_found_by_its_name_and_not_editable_in_place():
    assert (DASHBOARD.parent.name, BOARD["uid"], BOARD["title"]) == (
        "pin-promotion",
        "promotion-overview",
        "promotion-overview",
    )
    assert [panel["title"] for panel in BOARD["panels"] if panel["type"] == "row"] == ["Background jobs"]
    assert BOARD["editable"] is False
    assert BOARD["timezone"] == "utc"


def test_templates_choose_source_job_and_instance():
    templates = {template["name"]: template for template in BOARD["templating"]["list"]}

    assert (templates["datasource"]["type"], templates["datasource"]["query"]) == ("datasource", "prometheus")
    for name in ("job", "instance"):
        template = templates[name]
        assert template["type"] == "query"
        assert template["datasource"]["uid"] == "${datasource}"
        assert template["label"] == name.capitalize()
        assert template["multi"]
        assert template["allValue"] == ".+"
        assert template["refresh"] == 2  # at each change of the time range


@pytest.mark.parametrize("panel", PANELS.values(), ids=lambda panel: panel["title"])
def test_panel_explains_itself(panel):
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["datasource"]["uid"] == "${datasource}"
    assert panel["links"]
    assert all(link["url"].startswith("${docs_url}/runbooks/") for link in panel["links"])
    assert panel["targets"]


def test_panels_do_not_overlap():
    taken = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


@pytest.mark.parametrize("expression", TARGETS)
def test_expression_follows_the_rules(expression):
    for selector in re.findall(r"\{([^}]*)\}", expression):
        assert 'job=~"$job"' in selector
        assert 'instance=~"$instance"' in selector
    for window in re.findall(r"\[([^\]]*)\]", expression):
        assert window == "$__rate_interval"
    for name in METRIC.findall(expression):
        if name.endswith(("_total", "_bucket")):
            assert re.search(rf"(rate|increase)\({name}\{{", expression)


def test_every_metric_of_the_code_is_shown_and_no_other():
    shown = {re.sub("_bucket$", "", name) for target in TARGETS for name in METRIC.findall(target.values[0])}
    documented = {quoted(row[0])[0] for row in table(section(OPERATIONS, "Metrics"))}

    assert shown == documented
