"""The plans of the statements over the purchases, as they were really carried out."""

import contextlib

import psycopg


@contextlib.contextmanager
def explained():
    """Yield a list that gets the plan of each statement over the purchases, with the rows it really looked at."""
    plans, execute = [], psycopg.Cursor.execute

    def explain(self, statement, parameters=None, **options):
        if "SELECT" in statement and "promotion_purchases" in statement:
            told = execute(self, f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {statement}", parameters)
            plans.append("\n".join(line for (line,) in told.fetchall()))
        return execute(self, statement, parameters, **options)

    psycopg.Cursor.execute = explain
    try:
        yield plans
    finally:
        psycopg.Cursor.execute = execute
