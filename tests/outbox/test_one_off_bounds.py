"""A command that people run gives a silent database up: nobody watches it as an orchestrator watches a loop."""

import pytest
from django.core.management import CommandError, call_command

from outbox import verification
from outbox.management.commands import relay_outbox, requeue_outbox
from promotion import preview
from tests.gates import session

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


@pytest.mark.parametrize(
    ("module", "limit", "command"),
    [
        (relay_outbox, "QUERY_SECONDS", ["relay_outbox"]),
        (requeue_outbox, "SECONDS", ["requeue_outbox", "--all"]),
        (requeue_outbox, "SECONDS", ["requeue_outbox", "1"]),
        (preview, "QUERY_SECONDS", ["expire_promotions", "--dry-run"]),
    ],
)
def test_a_look_that_does_not_come_back_is_given_up(module, limit, command, monkeypatch, settings):
    settings.KAFKA_BOOTSTRAP_SERVERS = "127.0.0.1:1"
    monkeypatch.setattr(module, limit, 0.3)
    with session() as other:
        other.execute("LOCK TABLE promotion.outbox, promotion.promotion_purchases")
        with pytest.raises(CommandError, match="the database failed"):
            call_command(*command)


@pytest.mark.broker
def test_a_comparison_that_does_not_come_back_is_given_up(topic, monkeypatch):
    monkeypatch.setattr(verification, "QUERY_SECONDS", 0.3)
    with session() as other:
        other.execute("LOCK TABLE promotion.outbox")
        with pytest.raises(CommandError, match="the database failed"):
            call_command("verify_outbox", "--topic", topic)
