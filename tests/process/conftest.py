"""A database server for the tests of outages: one for all of them, put in order again after each."""

import pytest

from tests.programs import manage
from tests.servers import Server


@pytest.fixture(scope="session")
def the_server():
    with Server(options={"fsync": "off", "max_connections": "20"}) as server:
        assert manage("migrate", DATABASE_URL=server.url).returncode == 0
        yield server


@pytest.fixture
def server(the_server):
    yield the_server
    the_server.execute("DROP FUNCTION IF EXISTS public.gate CASCADE")
    the_server.execute("TRUNCATE promotion.promotion_purchases, promotion.outbox CASCADE")
