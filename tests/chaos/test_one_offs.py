"""How a command beside the loops may end."""

import pytest

from chaos.ledger import BOTH, Ledger
from chaos.one_offs import Run, check
from chaos.verdict import Verdict

LOG = '{"event": "database_failed"}\n'
VERIFIED = Run("verify_outbox --json", 50, 51, 0, "{}")


def broken(*runs):
    ledger, verdict = Ledger(), Verdict()
    ledger.disturb(100, 110, BOTH, "postgres-fast")
    check([*runs], ledger, verdict)
    return [promise.split(",")[0] for promise in verdict.broken]


@pytest.mark.parametrize(
    ("start", "code", "output", "good"),
    [
        (10, 0, "expired 3", True),
        (10, 1, "CommandError: the database failed", False),  # nothing had happened
        (95, 1, LOG + "CommandError: the database failed", True),
        (95, 1, LOG, False),  # no line that says why
        (95, 1, "Traceback (most recent call last):\nKeyError", False),
        (95, 2, "usage", False),
        (95, None, "", False),  # had to be ended
    ],
)
def test_it_ends_with_0_or_says_in_one_line_why_not(start, code, output, good):
    assert broken(VERIFIED, Run("expire_promotions --json", start, start + 10, code, output)) == (
        [] if good else ["a command beside the loops ends by itself"]
    )


def test_messages_that_others_record_are_no_fault_of_the_relay():
    assert broken(VERIFIED, Run("relay_outbox --json", 10, 12, 1, "CommandError: 3 messages are still pending")) == []


def test_a_difference_is_a_breach_and_so_is_never_having_looked():
    difference = Run("verify_outbox --json", 100, 101, 1, "{}\nCommandError: the outbox and the topic differ")
    assert broken(VERIFIED, difference) == ["the outbox and the topic agree"]
    assert broken() == ["the outbox and the topic agree"]
