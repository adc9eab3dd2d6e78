"""The work of one task: one purchase, or one message."""

from __future__ import annotations

import os
from functools import cache

import django_tasks
from confluent_kafka import Producer
from django.db import transaction
from django.utils import timezone
from jaiminho.send import save_to_outbox
from procrastinate.contrib.django import app

from bench.floors import expire_row
from promotion.models import PromotionPurchase


@app.task
def expire_by_procrastinate(purchase_id: str) -> None:
    _expire(purchase_id)


@django_tasks.task()
def expire_by_django_tasks(purchase_id: str) -> None:
    _expire(purchase_id)


def _expire(purchase_id: str) -> None:
    with transaction.atomic():
        purchase = PromotionPurchase.objects.select_for_update().get(pk=purchase_id)
        expire_row(purchase, timezone.now(), purchase.pk)


@save_to_outbox
def publish_by_jaiminho(topic: str, key: str, payload: str, headers: dict[str, str]) -> None:
    """Returns when the broker has acknowledged: after that jaiminho marks the event as sent."""
    failures = []

    def report(error: object, _record: object) -> None:
        if error:
            failures.append(error)

    producer = _producer()
    producer.produce(topic, payload.encode(), key.encode(), headers=list(headers.items()), on_delivery=report)
    if producer.flush(10) or failures:
        raise RuntimeError(f"not published: {failures}")


@cache
def _producer() -> Producer:
    """Without lingering: it sends one message at a time."""
    broker = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
    return Producer({"bootstrap.servers": broker, "acks": "all", "enable.idempotence": True, "linger.ms": 0})
