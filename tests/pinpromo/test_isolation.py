"""Bulk writes of which the database refuses some rows: all others are written, and none of the refused."""

import math
import time

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from pinpromo.isolation import Refused, Unfit, write_all_but_refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def table():
    """A table that takes positive numbers, each once."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE numbers (number integer UNIQUE CHECK (number > 0)) ON COMMIT DROP")

        def write(numbers):
            write.calls += 1
            cursor.execute("INSERT INTO numbers SELECT unnest(%s)", [list(numbers)])

        def written():
            cursor.execute("SELECT number FROM numbers ORDER BY number")
            return [number for (number,) in cursor.fetchall()]

        write.calls = 0
        yield write, written


def isolate(items, write, probe_until=math.inf):
    with transaction.atomic():
        return write_all_but_refused(items, write, probe_until=probe_until)


@pytest.mark.parametrize("refused", [[], [-1], [-3, -2, -1], list(range(-40, 0))], ids=len)
@pytest.mark.parametrize("good", [[], [1], list(range(1, 41))], ids=len)
def test_finds_exactly_the_refused(table, good, refused):
    write, written = table
    mixed = sorted([*good, *refused], key=lambda number: number * 7919 % 97)
    errors = isolate(mixed, write)
    assert written() == good
    assert sorted(errors) == refused
    assert all(isinstance(error, IntegrityError) for error in errors.values())


def test_all_good_is_one_write(table):
    write, _written = table
    isolate(list(range(1, 1001)), write)
    assert write.calls == 1


def test_what_is_known_to_be_unfit_is_not_looked_for(table):
    """One write finds them, one writes the rest; what the database refuses besides is found as ever."""
    write, written = table
    calls = []

    def write_fit(numbers):
        calls.append(list(numbers))
        if errors := {number: ValueError("odd") for number in numbers if number % 2}:
            raise Unfit(errors)
        write(numbers)

    errors = isolate([1, 2, 3, 4], write_fit)
    assert calls == [[1, 2, 3, 4], [2, 4]]
    assert written() == [2, 4]
    assert {number: str(error) for number, error in errors.items()} == {1: "odd", 3: "odd"}
    errors = isolate([5, -6, 8], write_fit)
    assert {number: type(error) for number, error in errors.items()} == {5: ValueError, -6: IntegrityError}
    assert written() == [2, 4, 8]


def test_one_among_a_thousand_costs_the_logarithm(table):
    write, written = table
    assert list(isolate([*range(1, 1000), -1], write)) == [-1]
    assert write.calls <= 2 * math.log2(1000) + 4
    assert len(written()) == 999


def test_of_two_that_exclude_each_other_one_gets_through():
    """The database takes either, not both: the later one waits, and is not lost."""

    class Item:
        """Two of these hold the same number."""

    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE numbers (number integer UNIQUE) ON COMMIT DROP")
        earlier, later = Item(), Item()

        def write(items):
            cursor.executemany("INSERT INTO numbers VALUES (%s)", [(1,) for _ in items])

        assert list(isolate([earlier, later], write)) == [later]
        cursor.execute("SELECT count(*) FROM numbers")
        assert cursor.fetchone() == (1,)


def test_rows_that_were_swallowed_without_an_error_are_refused_too(table):
    write, written = table

    def write_or_swallow(numbers):
        numbers = list(numbers)
        write([number for number in numbers if number != 13])
        if 13 in numbers:
            raise Refused("one was swallowed")

    assert list(isolate(list(range(1, 21)), write_or_swallow)) == [13]
    assert written() == [number for number in range(1, 21) if number != 13]


def test_what_cannot_be_told_apart_in_time_is_refused_together(table):
    write, written = table
    errors = isolate([1, 2, -3, 4], write, probe_until=time.monotonic() - 1)
    assert set(errors) == {1, 2, -3, 4}
    assert written() == []
    assert write.calls == 2


def test_a_failure_of_the_infrastructure_is_never_a_refusal(table):
    write, _written = table

    def write_or_fail(numbers):
        numbers = list(numbers)
        if -1 in numbers and len(numbers) == 1:
            raise OperationalError("connection lost")
        write(numbers)

    with pytest.raises(OperationalError):
        isolate([1, 2, 3, -1], write_or_fail)


def test_leaves_no_released_savepoint_behind_for_a_probe(table):
    """More than 64 subtransactions that committed would slow every session down."""
    write, _written = table
    subtransactions = []

    def watched(numbers):
        write(numbers)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(DISTINCT xmin::text) FROM numbers")
            subtransactions.append(cursor.fetchone()[0])

    isolate([*range(1, 500), *range(-100, 0)], watched)
    assert max(subtransactions) == 1
