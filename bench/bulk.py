"""Filling big tables fast: rows first, then what each of them would have had to be entered into or checked against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_INDEXES = """
SELECT format('DROP INDEX %%s', indexrelid::regclass), pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = ANY(%(tables)s::regclass[])
    AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""
# Foreign keys go first and come last, also those of other tables.
_CONSTRAINTS = """
SELECT format('ALTER TABLE %%s DROP CONSTRAINT %%I', conrelid::regclass, conname),
       format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint
WHERE contype IN ('p', 'u', 'f') AND %(tables)s::regclass[] && ARRAY[conrelid, confrelid]::regclass[]
ORDER BY contype <> 'f'
"""


@contextmanager
def without_indexes(*tables: str) -> Iterator[None]:
    """Inside the block, the tables have neither indexes nor keys; they are built again at its end."""
    with connection.cursor() as cursor:
        found = []
        for statement in (_CONSTRAINTS, _INDEXES):
            cursor.execute(statement, {"tables": list(tables)})
            found += cursor.fetchall()
        for drop, _ in found:
            cursor.execute(drop)
        yield
        cursor.execute("SET maintenance_work_mem = '1GB'")
        for _, build in reversed(found):
            cursor.execute(build)
        cursor.execute("RESET maintenance_work_mem")
