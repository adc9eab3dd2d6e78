"""The servers that PinPromo needs, as environment variables: what is given wins, the rest is started."""

import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from devstack import postgres_install
from devstack.broker import EmbeddedBroker
from devstack.postgres import EmbeddedPostgres

DATABASE = "DATABASE_URL"
BROKER = "KAFKA_BOOTSTRAP_SERVERS"


@dataclass(frozen=True)
class Stack:
    """What to add to the environment, and one sentence on each server."""

    variables: Mapping[str, str]
    database: str
    broker: str


@contextmanager
def running(
    *,
    environ: Mapping[str, str] = os.environ,
    real_kafka: bool = False,
    postgres_options: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Stack]:
    """Run what the environment does not name, for the length of the block."""
    with ExitStack() as servers:
        variables = {
            # The programs run from their own virtual environment, and never read a developer's `.env`.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)]),
            "PINPROMO_ENV_FILE": "",
        }
        if not environ.get("SECRET_KEY"):
            variables["SECRET_KEY"] = secrets.token_urlsafe(50)
        database = _database(servers, environ, variables, postgres_options)
        broker = _broker(servers, environ, variables, real_kafka)
        yield Stack(variables=variables, database=database, broker=broker)


def _database(
    servers: ExitStack, environ: Mapping[str, str], variables: dict[str, str], options: Mapping[str, str]
) -> str:
    if environ.get(DATABASE):
        return f"given by {DATABASE}"
    server = servers.enter_context(EmbeddedPostgres(options=options))
    variables[DATABASE] = server.url
    return f"embedded {postgres_install.version()} on {server.address}"


def _broker(servers: ExitStack, environ: Mapping[str, str], variables: dict[str, str], real_kafka: bool) -> str:
    if environ.get(BROKER):
        return f"given by {BROKER}"
    if real_kafka:
        from devstack.kafka import EmbeddedKafka  # Java and Maven are asked for only when they are needed

        kafka = servers.enter_context(EmbeddedKafka())
        variables[BROKER] = kafka.bootstrap
        return f"Apache Kafka {kafka.version} on {kafka.address}"
    tansu = servers.enter_context(EmbeddedBroker())
    variables[BROKER] = tansu.bootstrap
    return f"embedded Tansu on {tansu.address}"
