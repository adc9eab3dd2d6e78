"""Tests find a PostgreSQL and a broker: `-p devstack.pytest_plugin`, nothing to install or to configure.

DATABASE_URL and KAFKA_BOOTSTRAP_SERVERS, when set, are used instead. With `--real-kafka` the broker is an
Apache Kafka. Two markers choose what such a run is for:

- `kafka`: holds for a real Apache Kafka alone; left out without `--real-kafka`.
- `broker`: runs against whatever broker there is, and is worth repeating against the real one:
  `pytest --real-kafka -m "kafka or broker"`.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devstack import stack
from devstack.errors import DevstackError

# The tests' own cluster is thrown away: nothing in it needs to survive a power cut.
_POSTGRES_OPTIONS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_NOWHERE = {
    stack.DATABASE: "postgres://nobody@127.0.0.1:1/none",
    stack.BROKER: "127.0.0.1:1",
    "SECRET_KEY": "no-server-runs",
    "PINPROMO_ENV_FILE": "",
}
# Settings of the shell one happens to work in; a test that needs one sets it itself.
_LEAKS = (
    "EXPIRE_PROMOTIONS_",
    "OUTBOX_",
    "JWT_",
    "OPS_PORT",
    "DEBUG",
    "ALLOWED_HOSTS",
    "SECURE_SSL_REDIRECT",
)
_running = pytest.StashKey[stack.Stack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--real-kafka`."""
    group = parser.getgroup("devstack", "embedded servers")
    group.addoption(
        "--real-kafka",
        action="store_true",
        help="start Apache Kafka (needs Java and Maven) instead of the small broker",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Start the servers before pytest-django reads the settings, which need their addresses."""
    for name in list(os.environ):
        if name.startswith(_LEAKS):
            del os.environ[name]
    if _runs_no_test(early_config):
        for name, nowhere in _NOWHERE.items():
            os.environ.setdefault(name, nowhere)
    else:
        _start(early_config)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known to `--strict-markers`."""
    config.addinivalue_line("markers", "kafka: needs a real Apache Kafka (make test-kafka)")
    config.addinivalue_line("markers", "broker: needs a broker; make test-kafka repeats it with Apache Kafka")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say which servers the tests use."""
    if _running not in config.stash:
        return []
    servers = config.stash[_running]
    return [f"postgresql: {servers.database}", f"broker: {servers.broker}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that need a real Apache Kafka, unless there is one."""
    if config.getoption("--real-kafka"):
        return
    left_out = [item for item in items if item.get_closest_marker("kafka")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _runs_no_test(config: pytest.Config) -> bool:
    options = config.known_args_namespace
    names = ("help", "version", "collectonly", "markers", "show_fixtures", "show_fixtures_per_test")
    return any(getattr(options, name, False) for name in names)


def _start(config: pytest.Config) -> None:
    servers = ExitStack()
    config.add_cleanup(servers.close)  # runs last of all, after the test database is gone
    real_kafka = bool(config.known_args_namespace.real_kafka)
    try:
        started = servers.enter_context(stack.running(real_kafka=real_kafka, postgres_options=_POSTGRES_OPTIONS))
    except DevstackError as error:
        raise pytest.UsageError(str(error)) from error
    os.environ.update(started.variables)
    config.stash[_running] = started
