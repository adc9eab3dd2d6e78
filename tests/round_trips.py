"""Counts how often the database is asked, whatever the way: a performance regression shows here, not on a clock."""

import contextlib

import psycopg
from psycopg.pq import PipelineStatus


@contextlib.contextmanager
def round_trips():
    """Yield a list that gets one entry for each wait for the server."""
    waits = []
    wait = psycopg.Connection.wait

    def counted(self, generator, *arguments, **options):
        name, in_pipeline = generator.__name__, self.pgconn.pipeline_status != PipelineStatus.OFF
        if name == "_exit_gen" or not (in_pipeline or name == "_enter_gen"):  # a pipeline waits only when it ends
            waits.append(1)
        return wait(self, generator, *arguments, **options)

    psycopg.Connection.wait = counted
    try:
        yield waits
    finally:
        psycopg.Connection.wait = wait
