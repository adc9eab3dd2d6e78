"""Draw docs/images/promotion-overview.png: the dashboard's own queries, on a live Prometheus, during three incidents.

Grafana is not needed: each panel of the JSON file is queried and drawn by matplotlib. All durations are divided by
FACTOR, as in `devstack.monitoring`, so the three minutes of the run stand for an hour. Run by `make dashboard-image`.
"""

import json
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import matplotlib
import numpy as np
import psycopg

from devstack import stack
from devstack.broker import create_topic
from devstack.monitored import MonitoredSystem
from devstack.monitoring import DEPLOY
from devstack.program import ROOT, manage_to_end

matplotlib.use("Agg")
from matplotlib import pyplot as plt

FACTOR = 20.0
STEP = 1.0  # seconds between two points
WINDOW = "10s"  # of rates: more than two ticks
TOPIC = "pin.promotion.purchase-changed.v1"
BOARD = DEPLOY / "grafana/dashboards/pin-promotion/promotion-overview.json"
IMAGE = ROOT / "docs/images/promotion-overview.png"

ADD = """
WITH added AS (
    INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, payment_status, starts_at, ends_at)
    SELECT gen_random_uuid(), 'Boost', 'Active', 'Paid', now() - interval '30 days', now()
    FROM generate_series(1, %s) RETURNING id)
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, 'CatalogItem', gen_random_uuid() FROM added
"""
POISON = """
INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)
VALUES (gen_random_uuid(), 'Boost', 'Active', now() - interval '30 days', now())
"""
HEAL = """
INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)
SELECT id, 'CatalogItem', gen_random_uuid() FROM promotion.promotion_purchases p
WHERE NOT EXISTS (SELECT FROM promotion.promotion_purchase_targets t WHERE t.purchase_id = p.id)
"""


def main() -> None:
    with ExitStack() as running:
        servers = running.enter_context(stack.running())
        environ = {**servers.variables, "SECURE_SSL_REDIRECT": "false"}
        manage_to_end("migrate", environ=environ)
        create_topic(servers.variables[stack.BROKER], TOPIC)
        database = running.enter_context(psycopg.connect(servers.variables[stack.DATABASE], autocommit=True))
        system = running.enter_context(MonitoredSystem(environ, factor=FACTOR))
        began = time.time()
        tell_story(system, database)
        draw(system, began, time.time())


def tell_story(system: MonitoredSystem, database: psycopg.Connection) -> None:
    """Purchases end all the time; the worker dies, a purchase is poison, the relay hangs; each is repaired."""
    acts: list[tuple[float, Callable[[], object]]] = [
        (40, system.kill_worker),
        (65, system.start_worker),
        (85, lambda: database.execute(POISON)),
        (115, lambda: database.execute(HEAL)),
        (130, system.suspend_relay),
        (155, system.resume_relay),
    ]
    began = time.monotonic()
    while (passed := time.monotonic() - began) < 185:
        while acts and passed > acts[0][0]:
            acts.pop(0)[1]()
        database.execute(ADD, [8])
        time.sleep(0.5)


def draw(system: MonitoredSystem, began: float, ended: float) -> None:
    board = json.loads(BOARD.read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    plt.rcParams.update({"font.size": 8, "axes.grid": True, "grid.alpha": 0.3})
    figure, axes = plt.subplots(4, 4, figsize=(19, 11), constrained_layout=True)
    figure.suptitle(
        f"{board['title']} · Background jobs: a dead worker (40-65 s), a stuck purchase (85-115 s), a hung relay "
        f"(130-155 s). Live data; all durations and their limits divided by {FACTOR:g}",
        fontsize=11,
    )
    for panel in panels:
        place = panel["gridPos"]
        axis = axes[(place["y"] - 1) // 7][place["x"] // 6]
        axis.set_title(panel["title"], loc="left", fontweight="bold")
        (heat if panel["type"] == "heatmap" else lines)(axis, panel, system, began, ended)
        axis.set_xlim(0, ended - began)
    figure.savefig(IMAGE, dpi=75)


def ask(system: MonitoredSystem, target: dict[str, Any], began: float, ended: float) -> list[dict[str, Any]]:
    expression = target["expr"].replace("$job", ".+").replace("$instance", ".+").replace("$__rate_interval", WINDOW)
    return system.prometheus.query_range(expression, start=began, end=ended, step=STEP)


def points(series: dict[str, Any], began: float) -> tuple[list[float], list[float]]:
    """The series with gaps where it has no value."""
    found = {round(float(instant) - began): float(value) for instant, value in series["values"]}
    instants = range(max(found) + 1)
    return [float(instant) for instant in instants], [found.get(instant, float("nan")) for instant in instants]


def lines(axis: Any, panel: dict[str, Any], system: MonitoredSystem, began: float, ended: float) -> None:
    for target in panel["targets"]:
        for series in ask(system, target, began, ended):
            axis.plot(*points(series, began), linewidth=1.2, label=legend(target, series))
    limit = panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"]
    seconds = panel["fieldConfig"]["defaults"]["unit"] == "s"
    if limit is not None:
        axis.axhline(limit / FACTOR if seconds else limit, color="tab:red", linestyle="--", linewidth=1)
    axis.set_ylim(0, max(1.0, axis.get_ylim()[1]))
    axis.set_ylabel({"s": "seconds", "cpm": "per minute"}.get(panel["fieldConfig"]["defaults"]["unit"], ""))
    axis.legend(loc="upper left", fontsize=6)


def legend(target: dict[str, Any], series: dict[str, Any]) -> str:
    labels: dict[str, str] = {**series["metric"], "topic": "purchase-changed.v1"}
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), target["legendFormat"])


def heat(axis: Any, panel: dict[str, Any], system: MonitoredSystem, began: float, ended: float) -> None:
    found = ask(system, panel["targets"][0], began, ended)
    buckets = sorted(found, key=lambda series: float(series["metric"]["le"]))
    grid = np.zeros((len(buckets), int(ended - began) + 2))
    for row, series in enumerate(buckets):
        for instant, value in series["values"]:
            grid[row, round(float(instant) - began)] = float(value)
    counts = np.diff(grid, axis=0, prepend=0)
    axis.pcolormesh(np.ma.masked_less_equal(counts, 0.01), cmap="Oranges", vmin=0)
    bounds = [series["metric"]["le"] for series in buckets]
    axis.set_yticks(range(1, len(bounds) + 1), bounds, fontsize=6)
    axis.set_ylabel("seconds, at most")


if __name__ == "__main__":
    main()
