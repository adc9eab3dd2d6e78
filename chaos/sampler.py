"""Looks at the system twice a second, for the progress line and the timeline."""

import random
import time
from dataclasses import dataclass

import psycopg

from chaos.telling import TOPIC

_PENDING = f"published_at IS NULL AND parked_at IS NULL AND topic = '{TOPIC}'"  # others may not exist yet
_LOOK = f"""
SELECT (SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Active' AND ends_at < now()),
       (SELECT count(*) FROM promotion.outbox WHERE {_PENDING}),
       (SELECT coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8
          FROM promotion.outbox WHERE {_PENDING}),
       (SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Expired'),
       (SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Cancelled'),
       (SELECT count(*) FROM promotion.outbox WHERE published_at IS NOT NULL)
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """The numbers at one moment (wall clock)."""

    at: float
    backlog: int
    pending: int
    lag: float
    expired: int
    cancelled: int
    published: int


class Sampler:
    """Keeps the samples; while the database is away there are none."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None
        self.samples: list[Sample] = []

    def act(self, _dice: random.Random) -> None:
        """Take one sample, if the database lets us."""
        try:
            if self._connection is None:
                self._connection = psycopg.connect(
                    self._url, connect_timeout=2, application_name="chaos-sampler", autocommit=True
                )
            row = self._connection.execute(_LOOK).fetchone()
        except psycopg.Error:
            self.close()
        else:
            self.samples.append(Sample(time.time(), *(row or (0, 0, 0.0, 0, 0, 0))))

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
