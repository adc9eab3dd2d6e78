"""Purchases, cancels, cycles, poison, healing, crashes and acknowledgements in any order, beside a plain model.

FUZZ_EXAMPLES says how many histories are played (`make fuzz`: many); in the suite a few.
"""

import json
import os
import uuid
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)

from outbox.models import Outbox
from promotion.cancellation import cancel
from promotion.expiration import run_cycle
from promotion.models import ExpirationFailure, InvalidTransition, PromotionPurchase
from tests import poison
from tests.emptying import empty_schema
from tests.factories import NOW, PurchaseFactory, TargetFactory
from tests.readings import messages, rows

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))
CRASH = """
CREATE FUNCTION public.test_crash() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'crash' USING ERRCODE = 'crash_shutdown'; END $$;
CREATE TRIGGER test_crash BEFORE INSERT ON promotion.outbox
FOR EACH STATEMENT EXECUTE FUNCTION public.test_crash()
"""


class Promotions(RuleBasedStateMachine):
    purchases = Bundle("purchases")
    stuck = Bundle("stuck")

    def __init__(self):
        super().__init__()
        empty_schema()
        self.now = NOW
        self.model = {}  # id -> [status, version, ends_at, poisoned]
        self.told = {}  # id -> the events that were recorded: (status, version)

    @rule(target=purchases, minutes=st.integers(-3, 3))
    def buy(self, minutes):
        return self._add(PurchaseFactory(ends_at=self.now + timedelta(minutes=minutes)), poisoned=False)

    @rule(target=stuck, kind=st.sampled_from(["no targets", "unknown package kind", "version exhausted"]))
    def buy_poison(self, kind):
        (purchase,) = poison.create(kind, ends_at=self.now - timedelta(minutes=1))
        return self._add(purchase, poisoned=True)

    def _add(self, purchase, *, poisoned):
        self.model[purchase.pk] = ["Active", purchase.version, purchase.ends_at, poisoned]
        self.told[purchase.pk] = []
        return purchase.pk

    @rule(target=purchases, purchase=consumes(stuck))
    def heal(self, purchase):
        version = 1 if self.model[purchase][1] > 1 else self.model[purchase][1]
        PromotionPurchase.objects.filter(pk=purchase, status="Active").update(package_kind="Top", version=version)
        TargetFactory(purchase_id=purchase)
        if self.model[purchase][0] == "Active":
            self.model[purchase][1], self.model[purchase][3] = version, False
        return purchase

    @rule(purchase=purchases)
    def cancel(self, purchase):
        expected = self.model[purchase][0] == "Active"
        try:
            cancel(purchase, tenant_id=None, at=self.now, correlation_id=uuid.uuid4())
        except InvalidTransition:
            assert not expected
        else:
            assert expected
            self._end(purchase, "Cancelled")

    @rule(minutes=st.integers(0, 4))
    def time_passes(self, minutes):
        self.now += timedelta(minutes=minutes)

    @rule(batch_size=st.integers(1, 5))
    def cycle(self, batch_size):
        due = self._due()
        known = set(ExpirationFailure.objects.values_list("pk", flat=True))
        result = run_cycle(as_of=self.now, batch_size=batch_size, budget=30)
        ended = {pk for pk in due if rows()[pk]["status"] == "Expired"}
        assert len(ended) == result.expired <= min(batch_size, len(due))
        assert result.expired >= min(batch_size, len(set(due) - known))  # a healed one may have to wait a cycle
        assert result.skipped_locked == 0
        for purchase in ended:
            assert rows()[purchase]["updated_at"] == self.now
            self._end(purchase, "Expired")

    @rule(batch_size=st.integers(1, 5))
    def crash(self, batch_size):
        """The server goes down while the events are written."""
        with connection.cursor() as cursor:
            cursor.execute(CRASH)
        try:
            if self._due():
                with pytest.raises(OperationalError):
                    run_cycle(as_of=self.now, batch_size=batch_size, budget=30)
        except pytest.fail.Exception:
            assert ExpirationFailure.objects.exists()  # the stuck failed in a batch of their own, and were counted
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP FUNCTION public.test_crash CASCADE")

    @rule()
    def acknowledge(self):
        Outbox.objects.pending().update(published_at=Now())

    def _due(self):
        return [
            pk for pk, (status, _, ends_at, poisoned) in self.model.items()
            if status == "Active" and ends_at <= self.now and not poisoned
        ]  # fmt: skip

    def _end(self, purchase, status):
        self.model[purchase][0] = status
        self.model[purchase][1] += 1
        self.told[purchase].append((status, self.model[purchase][1]))

    @invariant()
    def the_database_is_as_the_model_says(self):
        found = {pk: [values["status"], values["version"], values["ends_at"]] for pk, values in rows().items()}
        assert found == {pk: expected[:3] for pk, expected in self.model.items()}

    @invariant()
    def every_end_was_told_once(self):
        told = {pk: [] for pk in self.model}
        for message in messages():
            event = json.loads(message.payload)
            told[message.aggregate_id].append((event["status"], event["version"]))
        assert told == self.told


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(0)
def test_any_history():
    run_state_machine_as_test(
        Promotions,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=25, deadline=None,
            suppress_health_check=list(HealthCheck), database=None,
        ),
    )  # fmt: skip
