"""What every test may rely on: an empty schema `promotion`, with its 64 lanes."""

import pytest

from tests.emptying import empty_schema

pytest_plugins = ["tests.brokers"]


@pytest.fixture(autouse=True)
def _empty_schema_after_commits(request, django_db_blocker):
    """Django's flush does not see tables outside the search_path, so what was committed is emptied here."""
    yield
    marker = request.node.get_closest_marker("django_db")
    committed = (marker and marker.kwargs.get("transaction")) or "transactional_db" in request.fixturenames
    if committed:
        with django_db_blocker.unblock():
            empty_schema()
