"""Several real processes at once, and the looping command's own server."""

import json
import urllib.error
import urllib.request

import pytest

from devstack.ports import free_port
from tests.bulk import insert_due
from tests.concurrency.workers import Threads
from tests.factories import PurchaseFactory
from tests.gates import session
from tests.programs import Program, eventually, manage
from tests.readings import events, rows, statuses

pytestmark = pytest.mark.django_db(transaction=True)


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_four_drains_at_once_handle_every_purchase_once():
    insert_due(2000)
    with Threads(4) as threads:
        runs = [threads.submit(manage, "expire_promotions", "--drain", "--json") for _ in range(4)]
    results = [json.loads(line) for run in runs for line in run.result().stdout.splitlines()]
    assert sum(result["expired"] for result in results) == 2000
    assert sorted(event["purchaseId"] for event in events()) == sorted(map(str, rows()))
    assert {values["version"] for values in rows().values()} == {2}


def test_a_loop_with_its_server_and_a_one_off_beside_it():
    port = free_port()
    with Program("expire_promotions", "--loop", "--interval", "300", "--ops-port", port) as loop:
        loop.wait_for("cycle_completed")
        purchase = PurchaseFactory()
        assert manage("expire_promotions", OPS_PORT=port).returncode == 0
        assert statuses([purchase]) == ["Expired"]
        assert [get(port, path)[0] for path in ("/healthz", "/readyz", "/metrics", "/", "/metrics/x")] == [
            200, 200, 200, 404, 404,
        ]  # fmt: skip
        metrics = get(port, "/metrics")[1].splitlines()
        assert "promotion_expire_run_total 1.0" in metrics
        assert 'promotion_expire_errors_total{reason="infrastructure"} 0.0' in metrics
        assert loop.stop() == 0
    assert len(events()) == 1


def test_a_port_in_use_is_one_clear_line_and_exit_1():
    port = free_port()
    with Program("expire_promotions", "--loop", "--interval", "300", "--ops-port", port) as loop:
        eventually(lambda: loop.count("cycle_completed"))
        second = manage("expire_promotions", "--loop", "--ops-port", port)
        assert second.returncode == 1
        assert second.stderr.splitlines()[-1] == (
            f"CommandError: port {port} cannot be served (Address already in use); choose another with --ops-port"
        )
        assert "Traceback" not in second.stderr
        assert loop.process.poll() is None


def test_a_purchase_expires_within_an_interval_and_a_cycle_of_its_end():
    """R-26, with an interval of one second; never early."""
    with Program("expire_promotions", "--loop", "--json", "--interval", "1") as loop:
        loop.wait_for("cycle_completed")
        with session() as other:
            other.execute(
                "INSERT INTO promotion.promotion_purchases (tenant_id, package_kind, status, starts_at, ends_at)"
                " SELECT gen_random_uuid(), 'Top', 'Active', now(), now() + number * interval '0.1 s'"
                " FROM generate_series(1, 20) AS number"
            )
            other.execute(
                "INSERT INTO promotion.promotion_purchase_targets (purchase_id, target_type, target_id)"
                " SELECT id, 'NewsPost', gen_random_uuid() FROM promotion.promotion_purchases"
            )
        eventually(lambda: {values["status"] for values in rows().values()} == {"Expired"})
        loop.stop()
    results = [json.loads(line) for line in loop.lines if line.startswith('{"run_id"')]
    longest = max(result["duration_ms"] for result in results) / 1000
    for values in rows().values():
        lateness = (values["updated_at"] - values["ends_at"]).total_seconds()
        assert 0 <= lateness <= 1 + longest + 0.5  # half a second for a machine that is busy otherwise
