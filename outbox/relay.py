"""The relay's cycle: claim messages, publish them, and mark what was acknowledged, in one bounded transaction."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.conf import settings

from outbox import tracing
from outbox.claiming import claim
from outbox.models import Outbox
from outbox.outcomes import Failure, Outcome, Refusal
from outbox.publisher import PUBLISH_SECONDS, Publisher
from pinpromo.stop import Stop
from pinpromo.transactions import bounded

log = structlog.get_logger("outbox.relay")

# A transaction's worst case: three statements of 2 s and the publishing make 13 s, of the 15 s that are allowed.
STATEMENT_SECONDS = 2.0
IDLE_SECONDS = PUBLISH_SECONDS + 1
LONGEST_BACK_OFF = 30.0  # seconds
BLAMELESS_BACK_OFF = 5.0  # seconds
IDS_LOGGED = 10


@dataclass(slots=True, kw_only=True)
class CycleResult:
    """What one cycle did."""

    claimed: int = 0
    published: int = 0
    failed: int = 0
    parked: int = 0
    outage: str = ""
    duration_ms: float = 0.0
    topics: set[str] = field(default_factory=set)
    delays: Sequence[tuple[str, float]] = ()  # topic, and seconds from recorded to acknowledged
    failures: list[tuple[str, Failure]] = field(default_factory=list)


def run_cycle(publisher: Publisher, *, at: datetime, batch_size: int, stop: Stop) -> CycleResult:
    """Publish up to `batch_size` of the messages that are publishable at `at`.

    Raises Django's database errors; what was published by then is marked later, without publishing it again if it is
    this process that gets to it.
    """
    started = time.monotonic()
    result = CycleResult()
    with bounded(seconds=STATEMENT_SECONDS, idle_seconds=IDLE_SECONDS):
        messages = claim(batch_size, at=at)
        outcome = _publish(messages, publisher, stop=stop) if messages else Outcome()
        result.delays = Outbox.objects.mark_published(outcome.acknowledged)
        refused = [message for message in messages if message.pk in outcome.refused]
        refused_at = at + timedelta(seconds=time.monotonic() - started)  # a slow broker's time is no back-off
        for message in refused:
            _note_refusal(message, outcome.refused[message.pk], at=refused_at)
        Outbox.objects.bulk_update(refused, ["attempts", "last_error", "next_attempt_at", "parked_at"])
    publisher.unmarked.clear()
    _settle(result, messages, outcome)
    result.duration_ms = round((time.monotonic() - started) * 1000, 3)
    return result


def _publish(messages: Sequence[Outbox], publisher: Publisher, *, stop: Stop) -> Outcome:
    """Publish those that are not known to be in the topic; the others only have to be marked.

    A full disk or a lock on the table can keep the marks out for hours, and every commit wakes the relay: each time the
    whole batch would go to the topic again.
    """
    unmarked = publisher.unmarked
    fresh = [message for message in messages if message.event_id not in unmarked]
    outcome = Outcome()
    if fresh:
        began = time.time_ns()
        outcome = publisher.publish(fresh, stop=stop)
        tracing.sent(fresh, outcome, began=began)
    for message in messages:
        if message.event_id in unmarked:
            outcome.acknowledged[message.pk] = unmarked[message.event_id]
        elif message.pk in outcome.acknowledged:
            unmarked[message.event_id] = outcome.acknowledged[message.pk]
    return outcome


def _note_refusal(message: Outbox, refusal: Refusal, *, at: datetime) -> None:
    """Decide when the message is tried again, if ever."""
    message.last_error = refusal.reason
    if not refusal.failure.spends_attempt:
        message.next_attempt_at = at + timedelta(seconds=BLAMELESS_BACK_OFF)
        return
    message.attempts += 1
    if message.attempts >= settings.OUTBOX_MAX_ATTEMPTS:
        message.parked_at, message.next_attempt_at = at, None
    else:
        back_off = min(LONGEST_BACK_OFF, 2.0 ** (message.attempts - 1))
        message.next_attempt_at = at + timedelta(seconds=back_off)


def _settle(result: CycleResult, messages: Sequence[Outbox], outcome: Outcome) -> None:
    """After the commit: count and log."""
    result.claimed = len(messages)
    result.published = len(outcome.acknowledged)
    result.outage = outcome.outage
    result.topics = {message.topic for message in messages}
    waiting: dict[tuple[str, str], list[int]] = defaultdict(list)
    for message in messages:
        if refusal := outcome.refused.get(message.pk):
            result.failures.append((message.topic, refusal.failure))
            if message.parked_at:
                result.parked += 1
                _log_parked(message, refusal)
            else:
                waiting[message.topic, refusal.reason].append(message.pk)
    result.failed = len(result.failures)
    for (topic, reason), ids in waiting.items():  # not a line for each: a whole topic can be refused
        log.warning("messages_failed", topic=topic, reason=reason, count=len(ids), message_ids=ids[:IDS_LOGGED])


def _log_parked(message: Outbox, refusal: Refusal) -> None:
    log.error(
        "message_parked",
        message_id=message.pk,
        event_id=str(message.event_id),
        aggregate_id=str(message.aggregate_id),
        topic=message.topic,
        attempts=message.attempts,
        reason=refusal.reason,
    )
