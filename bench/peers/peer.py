"""`python -m bench.peers.peer NAME`: one peer, which does all that there is to do in the database of DATABASE_URL."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

import django
from django.core.management import call_command

from bench.race import timed_by_owner


def procrastinate() -> None:
    """One task a purchase, deferred in one go; a worker for 4 at a time: of 1, 4 and 10 the fastest."""
    from procrastinate.contrib.django import app

    from bench.peers.tasks import expire_by_procrastinate

    worker = app.with_connector(app.connector.get_worker_connector())
    with timed_by_owner():
        expire_by_procrastinate.batch_defer(*({"purchase_id": key} for key in _due()))
        worker.run_worker(wait=False, concurrency=4, install_signal_handlers=False)


def django_tasks_db() -> None:
    """One task a purchase, and its worker, which does not wait between two tasks."""
    from bench.peers.tasks import expire_by_django_tasks

    with timed_by_owner():
        for key in _due():
            expire_by_django_tasks.enqueue(key)
        call_command("db_worker", interval=0, batch=True, startup_delay=False, verbosity=0)


def periodic() -> None:
    """What a periodic task of Celery mostly looks like: a loop with a transaction and a save() for each purchase."""
    from django.db import transaction
    from django.utils import timezone

    from bench.floors import expire_row
    from promotion.models import PromotionPurchase

    with timed_by_owner():
        now = timezone.now()
        for purchase in PromotionPurchase.objects.filter(status="Active", ends_at__lte=now).order_by("ends_at"):
            with transaction.atomic():
                expire_row(purchase, now, purchase.pk)


def jaiminho() -> None:
    """Its relay over what is pending in our outbox, recorded in its own beforehand."""
    from django.db import transaction
    from jaiminho.models import Event
    from jaiminho.relayer import EventRelayer

    from bench.peers.tasks import _producer, publish_by_jaiminho
    from outbox.models import Outbox

    with transaction.atomic():
        for message in Outbox.objects.pending().values_list("topic", "key", "payload", "headers"):
            publish_by_jaiminho(*message)
    _producer().list_topics(timeout=10)
    time.sleep(1.5)  # until an idempotent producer has its id
    with timed_by_owner():
        EventRelayer().relay()
    assert not Event.objects.filter(sent_at__isnull=True).exists()


def _due() -> list[str]:
    from django.utils import timezone

    from promotion.models import PromotionPurchase

    due = PromotionPurchase.objects.due(timezone.now()).oldest_first()
    return [str(key) for key in due.values_list("pk", flat=True)]


PEERS: dict[str, Callable[[], None]] = {
    "Procrastinate": procrastinate,
    "django-tasks-db": django_tasks_db,
    "a Celery-style loop": periodic,
    "django-jaiminho": jaiminho,
}

if __name__ == "__main__":
    django.setup()
    logging.disable(logging.INFO)  # they write up to two lines for each purchase or message; ours logs as ever
    PEERS[sys.argv[1]]()
