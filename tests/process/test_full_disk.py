"""A disk that is really full under the outbox: `make test-system` (a tmpfs is mounted, which is for root)."""

import pytest

from chaos.disk import SmallDisk
from tests.servers import DUE, running

pytestmark = pytest.mark.system
BACK = "ALTER TABLE promotion.outbox SET TABLESPACE pg_default; DROP TABLESPACE small"


@pytest.fixture
def disk(server):
    with SmallDisk() as disk:
        if disk.lacks:
            pytest.skip(disk.lacks)
        with server.session() as session:
            disk.put_outbox_there(session)
        yield disk
        with server.session() as session:
            for statement in BACK.split(";"):
                session.execute(statement)


def test_nothing_is_marked_and_the_loop_comes_back(server, disk):
    with running(server) as loop:
        with disk.full():
            server.execute(DUE)
            assert "53100" in loop.wait_for("database_failed")
            assert server.value("SELECT count(*) FROM promotion.promotion_purchases WHERE status = 'Active'") == 5
            assert server.value("SELECT count(*) FROM promotion.expiration_failures") == 0
        loop.wait_for("database_recovered")
        server.settle()
        assert loop.count("item_failed") == 0
