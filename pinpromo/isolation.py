"""Bulk writes of which the database may refuse single rows.

Note [Isolation]: all rows are written at once inside one savepoint. Only if the database refuses something are the
refused rows looked for, by halving. Every probe is rolled back, because a transaction with more than 64 *released*
savepoints that wrote slows every session down (its snapshot overflows); rolled-back ones do not count.
Refused rows that could not be told from the others in time count as refused together: the transaction ends, and
whoever tries again takes fewer at once.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from django.db import Error, transaction

from pinpromo.failures import is_infrastructure

Item = TypeVar("Item", bound=Hashable)


class Refused(Exception):  # noqa: N818
    """The database wrote less than it was told to, without an error: a trigger or rule swallowed rows."""


class Unfit(Refused):
    """Some of the items cannot be written, and it is known which: `errors` says why."""

    def __init__(self, errors: Mapping[Any, Exception]) -> None:
        super().__init__(f"{len(errors)} cannot be written")
        self.errors = errors


Write = Callable[[Sequence[Item]], None]


def write_all_but_refused(items: Sequence[Item], write: Write[Item], *, probe_until: float) -> dict[Item, Exception]:
    """Write all `items` but those that the database refuses; return the refused ones with their errors.

    The refused are looked for until the monotonic instant `probe_until`. Must stand inside a transaction.
    `write` raises Refused or a database error if there is something among the items that cannot be written, and Unfit
    rather than these if it knows what.
    A failure of the infrastructure is raised, never taken for a refusal.
    """
    errors: dict[Item, Exception] = {}
    remaining = items
    while remaining and (refusal := _attempt(remaining, write, keep=True)):
        errors |= refusal.errors if isinstance(refusal, Unfit) else _find_refused(remaining, write, probe_until)
        remaining = [item for item in remaining if item not in errors]
    return errors


def _find_refused(items: Sequence[Item], write: Write[Item], probe_until: float) -> dict[Item, Exception]:
    error = _attempt(items, write, keep=False)
    if error is None:
        return {}
    if len(items) == 1 or time.monotonic() > probe_until:
        return dict.fromkeys(items, error)
    middle = len(items) // 2
    first, second = items[:middle], items[middle:]
    # Rows that are refused together but not apart: the later half waits, so that the earlier gets through.
    found = _find_refused(first, write, probe_until) | _find_refused(second, write, probe_until)
    return found or dict.fromkeys(second, error)


def _attempt(items: Sequence[Item], write: Write[Item], *, keep: bool) -> Exception | None:
    savepoint = transaction.savepoint()  # that of what is kept ends with the transaction
    try:
        write(items)
    except (Error, Refused) as error:
        if is_infrastructure(error):
            raise
        transaction.savepoint_rollback(savepoint)
        return error
    if not keep:
        transaction.savepoint_rollback(savepoint)
    return None
