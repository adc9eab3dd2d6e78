"""Tells the failures of the infrastructure from those of a single row, by SQLSTATE.

https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

import psycopg
from django import db

# SQLSTATEs, or their beginnings, that say nothing about the row at hand: roll everything back, try again later.
INFRASTRUCTURE = {
    "08": "connection failure",
    "25006": "read-only transaction (a standby after a failover)",
    "25P": "idle in transaction for too long",
    "40": "serialization failure, deadlock, or a rollback forced by the server",
    "53": "out of disk, memory, connections or another resource",
    "55P03": "lock timeout",
    "57014": "statement timeout, or the query was cancelled",
    "57P": "the server is shutting down or starting up",
    "58": "system error outside PostgreSQL, such as a failed read of a file",
    "72000": "snapshot too old",
}


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE that PostgreSQL gave; None if the error did not come from the server."""
    for candidate in (error, error.__cause__):
        if isinstance(candidate, psycopg.Error) and candidate.sqlstate:
            return candidate.sqlstate
    return None


def is_infrastructure(error: BaseException) -> bool:
    """Whether the database itself failed, as opposed to refusing a row or a mistaken query."""
    state = sqlstate(error)
    if state is None:  # no word from the server: the connection is gone, or was never made
        return isinstance(error, db.OperationalError | db.InterfaceError)
    return state.startswith(tuple(INFRASTRUCTURE))


def describe(error: BaseException) -> str:
    """Say what went wrong in one line without any value of a row.

    The server's own text is left out, and that of foreign errors: it may quote the row.
    """
    cause = error.__cause__ if isinstance(error.__cause__, psycopg.Error) else error
    if isinstance(cause, OSError) and cause.strerror:
        return f"{type(cause).__name__}: {cause.strerror}"
    if not isinstance(cause, psycopg.Error):
        return f"{type(error).__name__}: {error}" if _is_ours(error) else type(error).__name__
    if is_infrastructure(error) and not cause.sqlstate:  # libpq's words on the connection, never a row's
        return f"{type(cause).__name__}: {(str(cause).strip() or 'connection lost').splitlines()[0]}"
    if not cause.sqlstate:
        return type(cause).__name__
    where = cause.diag.constraint_name or cause.diag.table_name
    return f"{type(cause).__name__}: SQLSTATE {cause.sqlstate}" + (f", {where}" if where else "")


def _is_ours(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in {"pinpromo", "promotion", "outbox"}


def advise(error: BaseException) -> str:
    """Say in one line what went wrong and what an operator can do about it."""
    state = sqlstate(error)
    if state in {"3F000", "42P01", "42703"}:
        return f"the database is not migrated ({describe(error)}): run manage.py migrate"
    if state == "42501":
        return f"the database role lacks a permission ({describe(error)}): grant it"
    if is_infrastructure(error):
        return f"the database failed ({describe(error)}): the batch in hand was rolled back, run again when it is back"
    return f"the database refused a statement ({describe(error)})"
