"""What the code, the rules, the dashboard and the pages say of telemetry, read from the files themselves."""

import ast
import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("pinpromo", "outbox", "promotion")
DASHBOARD = ROOT / "deploy/grafana/dashboards/pin-promotion/promotion-overview.json"
RULES = sorted((ROOT / "deploy/prometheus/rules").glob("*.yml"))
RUNBOOKS = {path.name: path.read_text() for path in sorted((ROOT / "docs/runbooks").glob("*.md"))}
OPERATIONS = (ROOT / "docs/operations.md").read_text()
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()

METRIC = re.compile(r"\b(?:promotion_expire|outbox)_\w+")


def alerts():
    """Every alerting rule, by name."""
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def panels():
    """Every panel of the dashboard that is not a row, by id."""
    board = json.loads(DASHBOARD.read_text())
    return {panel["id"]: panel for panel in board["panels"] if panel["type"] != "row"}


def section(page, title):
    """The text under the heading `title`, up to the next heading of its level or a higher one."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,2}} |\Z)", page, re.M | re.S)
    assert found, f"no section {title!r}"
    text = found[2]
    return text if found[1] == "##" else re.split(rf"^{found[1]} ", text, flags=re.M)[0]


def table(text):
    """The rows of the tables in `text`, as lists of cells; headings left out."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    rules = [number for number, row in enumerate(rows) if set(row[0]) <= {"-"} and row[0]]
    headings = {number - 1 for number in rules}
    return [row for number, row in enumerate(rows) if number not in headings and number not in rules]


def quoted(cell):
    """What stands between backticks in `cell`."""
    return re.findall(r"`([^`]+)`", cell)


def sources():
    """The syntax tree of every module of the product."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield ast.parse(path.read_text())


def texts_of(node):
    """The texts that an expression can be: a constant, or a choice between two."""
    if isinstance(node, ast.IfExp):
        return texts_of(node.body) | texts_of(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()
