"""Threads with database connections of their own."""

from concurrent.futures import ThreadPoolExecutor

from django.db import connections


class Threads(ThreadPoolExecutor):
    """A pool whose calls close their connection when they are done."""

    def submit(self, function, /, *arguments, **options):
        def call():
            try:
                return function(*arguments, **options)
            finally:
                connections.close_all()

        return super().submit(call)
