"""Random histories of purchases on the real database and a real topic, with a plain model beside them."""

import json
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from django.db import Error, OperationalError, connection
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from outbox import relay
from outbox.models import Outbox
from pinpromo.isolation import Refused
from promotion.cancellation import cancel
from promotion.expiration import run_cycle
from promotion.models import ExpirationFailure, InvalidTransition, PromotionPurchase, PromotionPurchaseTarget
from promotion.outlook import LowMark
from tests import poison
from tests.emptying import empty_schema
from tests.factories import NOW, PurchaseFactory, TargetFactory
from tests.gates import session
from tests.readings import messages, rows

REFUSED_BY_THE_DATABASE = ("version exhausted", "row refused")
KINDS = st.sampled_from(["no targets", "unknown package kind", "unknown target type", *REFUSED_BY_THE_DATABASE])
# The exact instant, and a microsecond around it, as often as anything else.
AROUND = st.sampled_from([timedelta(microseconds=microseconds) for microseconds in (-1, 0, 1)])
LATER = st.integers(0, 4).map(lambda minutes: timedelta(minutes=minutes))
SIZES = st.integers(1, 5)
CRASH = """
CREATE FUNCTION public.test_crash() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'crash' USING ERRCODE = 'crash_shutdown'; END $$;
CREATE TRIGGER test_crash BEFORE {event} ON promotion.outbox
FOR EACH STATEMENT EXECUTE FUNCTION public.test_crash()
"""


@dataclass
class Expected:
    """What must stand in the database of one purchase, and what the company must have been told."""

    ends_at: datetime
    version: int
    poison: str | None = None
    status: str = "Active"
    told: list = field(default_factory=list)

    def end(self, status, at):
        self.status = status
        self.version += 1
        self.told.append((status, self.version, at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")))


class Promotions(RuleBasedStateMachine):
    """Set `publisher` and `stop` before it is run; `published` then holds what the topic must hold, by key."""

    publisher, stop, published = None, None, {}

    purchases = Bundle("purchases")
    stuck = Bundle("stuck")

    def __init__(self):
        super().__init__()
        empty_schema()
        self.now = NOW
        self.model = {}

    @rule(target=purchases, ends_in=AROUND | LATER, number=st.integers(1, 3))
    def buy(self, ends_in, number):
        return multiple(*map(self._add, PurchaseFactory.create_batch(number, ends_at=self.now + ends_in)))

    @rule(target=stuck, kind=KINDS)
    def buy_poison(self, kind):
        (purchase,) = poison.create(kind, ends_at=self.now - timedelta(minutes=1))
        return self._add(purchase, poison=kind)

    def _add(self, purchase, poison=None):
        self.model[purchase.pk] = Expected(purchase.ends_at, purchase.version, poison)
        return purchase.pk

    @rule(target=purchases, purchase=consumes(stuck))
    def heal(self, purchase):
        expected = self.model[purchase]
        if expected.status == "Active":
            expected.poison = None
            expected.version = 1
            cured = {"package_kind": "Top", "version": 1, "tenant_id": uuid.uuid4()}
            PromotionPurchase.objects.filter(pk=purchase).update(**cured)
            PromotionPurchaseTarget.objects.filter(purchase=purchase).update(target_type="NewsPost")
            TargetFactory(purchase_id=purchase)
        return purchase

    @rule(target=purchases, kind=KINDS)
    def a_stuck_one_is_healed(self, kind):
        purchase = self.buy_poison(kind)
        self._cycle(5, self._due())
        return self.heal(purchase)

    @rule(purchase=purchases)
    def cancel(self, purchase):
        self._cancel(purchase)

    @rule(purchase=stuck)
    def cancel_poison(self, purchase):
        if self.model[purchase].poison in REFUSED_BY_THE_DATABASE:
            with pytest.raises((Error, Refused)):
                self._cancel(purchase)
        else:
            self._cancel(purchase)

    def _cancel(self, purchase):
        expected = self.model[purchase]
        if expected.status == "Active":
            cancel(purchase, tenant_id=None, at=self.now, correlation_id=uuid.uuid4())
            expected.end("Cancelled", self.now)
        else:
            with pytest.raises(InvalidTransition):
                cancel(purchase, tenant_id=None, at=self.now, correlation_id=uuid.uuid4())

    @rule(span=LATER)
    def time_passes(self, span):
        self.now += span

    @rule(offset=AROUND)
    def time_comes_to_the_next_end(self, offset):
        ends = [expected.ends_at for expected in self.model.values() if expected.status == "Active"]
        self.now = max(self.now, min((end for end in ends if end > self.now), default=self.now) + offset)

    @rule(batch_size=SIZES)
    def cycle(self, batch_size):
        assert self._cycle(batch_size, self._due()).skipped_locked == 0

    @rule(batch_size=SIZES, held=purchases)
    def cycle_beside_a_lock(self, batch_size, held):
        due = self._due()
        with session() as other:
            other.execute("SELECT FROM promotion.promotion_purchases WHERE id = %s FOR UPDATE", [held])
            result = self._cycle(batch_size, due - {held})
        if held not in due:
            assert result.skipped_locked == 0
        elif result.expired < batch_size and not ExpirationFailure.objects.filter(pk=held).exists():
            assert result.skipped_locked == 1

    @rule(batch_size=SIZES)
    def drain(self, batch_size):
        """Cycles without a pause share a mark; a purchase that comes late with an early end is not passed over."""
        mark = LowMark()
        for purchase in PurchaseFactory.create_batch(batch_size, ends_at=self.now):
            self._add(purchase)
        full = self._cycle(batch_size, self._due(), mark=mark).expired == batch_size
        self._add(PurchaseFactory(ends_at=self.now - timedelta(days=1)))
        while full:
            free = self._due() - self._stuck()
            full = self._cycle(batch_size, free, mark=mark, retry_stuck=False).expired == batch_size

    def _cycle(self, batch_size, free, **options):
        known = self._stuck()
        result = run_cycle(as_of=self.now, batch_size=batch_size, budget=30, **options)
        found = rows()
        ended = [pk for pk, expected in self.model.items() if expected.status != found[pk]["status"] == "Expired"]
        assert set(ended) <= free
        assert len(ended) == result.expired == min(batch_size, len(free))
        assert {pk for pk in self._stuck() - known if not self.model[pk].poison} == set()
        if result.expired < batch_size:  # nothing was left for a later cycle
            assert self._due(poisoned=True) <= self._stuck()
        for pk in ended:
            assert found[pk]["updated_at"] == self.now
            self.model[pk].end("Expired", self.now)
        return result

    @rule(batch_size=SIZES)
    def crash(self, batch_size):
        """The server goes down while the events are written: nothing changes."""
        with self._crashing("INSERT"):
            try:
                errors = run_cycle(as_of=self.now, batch_size=batch_size, budget=30).infrastructure_errors
            except OperationalError:
                errors = 1
        if self._due():
            assert errors
        elif not any(self.model[pk].poison in REFUSED_BY_THE_DATABASE for pk in self._due(poisoned=True)):
            assert not errors

    @rule(batch_size=SIZES)
    def relay(self, batch_size):
        pending = Outbox.objects.pending().count()
        assert min(1, pending) <= self._relay(batch_size).published <= batch_size

    @rule(batch_size=SIZES)
    def relay_dies_before_it_marks(self, batch_size):
        with self._crashing("UPDATE"):
            if Outbox.objects.pending().exists():
                with pytest.raises(OperationalError):
                    self._relay(batch_size)
        self.publisher.unmarked.clear()  # another one takes over

    def _relay(self, batch_size):
        return relay.run_cycle(self.publisher, at=timezone.now(), batch_size=batch_size, stop=self.stop)

    @contextmanager
    def _crashing(self, event):
        with connection.cursor() as cursor:
            cursor.execute(CRASH.format(event=event))
        try:
            yield
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP FUNCTION public.test_crash CASCADE")

    def _due(self, *, poisoned=False):
        return {
            pk
            for pk, expected in self.model.items()
            if expected.status == "Active" and expected.ends_at <= self.now and bool(expected.poison) == poisoned
        }

    def _stuck(self):
        return set(ExpirationFailure.objects.values_list("pk", flat=True))

    @invariant()
    def the_database_is_as_the_model_says(self):
        found = {pk: (values["status"], values["version"], values["ends_at"]) for pk, values in rows().items()}
        assert found == {
            pk: (expected.status, expected.version, expected.ends_at) for pk, expected in self.model.items()
        }

    @invariant()
    def every_end_was_told_once(self):
        told = {pk: [] for pk in self.model}
        for message in messages():
            told[message.aggregate_id].append(told_by(message.payload))
        assert told == {pk: expected.told for pk, expected in self.model.items()}

    def teardown(self):
        for _ in range(20):  # a cycle need not take them all
            self._relay(1_000)
        assert not Outbox.objects.pending().exists()
        self.published.update({str(pk): expected.told for pk, expected in self.model.items() if expected.told})


def told_by(payload):
    """What of an event the model knows."""
    event = json.loads(payload)
    return event["status"], event["version"], event["occurredAt"]
