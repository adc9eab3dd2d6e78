"""What the faults tell the ledger."""

import contextlib
import time

from chaos.faults import Faults
from chaos.ledger import DELIVERY, Ledger
from chaos.plan import KINDS, Fault


def test_each_kind_of_fault_can_be_committed():
    assert [kind for kind in KINDS if not hasattr(Faults, kind.replace("-", "_"))] == []


def test_a_fault_that_another_one_ends_early_has_disturbed_all_the_same():
    """Its lock was held until then: without the note, what waited for it would count as late."""
    ledger, before = Ledger(), time.time()
    fault = Fault(1.0, "lock-outbox", "outbox", 5.0, 0)
    with contextlib.suppress(OSError), Faults(None, ledger)._disturbing(fault, DELIVERY, settling=100.0):
        raise OSError("cut off")
    (noted,) = ledger.disturbances
    assert (noted.scope, noted.reason) == (DELIVERY, "lock-outbox outbox for 5.0 s")
    assert before <= noted.start <= time.time() < noted.end
