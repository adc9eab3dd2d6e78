"""The whole system on throw-away servers: the product's programs behind proxies, and consumers of its events."""

import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg

from chaos import operators, poison
from chaos.clock import Clock
from chaos.disk import SmallDisk
from chaos.parts import Part
from chaos.plan import CLOCKED, CONSUMERS, PROGRAMS, RELAYS, WORKERS
from chaos.proxy import Proxy
from chaos.telling import TOPIC
from devstack import kafka
from devstack.broker import EmbeddedBroker, create_topic
from devstack.guarded import GuardedFolder
from devstack.kafka import EmbeddedKafka
from devstack.ports import HOST, free_port
from devstack.postgres import EmbeddedPostgres
from devstack.program import ROOT

INTERVAL = 1.0  # seconds between two ticks of a worker; in production it is 60
TICK_BUDGET = 5.0
BATCH_SIZE = 100
PARTITIONS = 4
MAX_CONNECTIONS = 60
MAX_ATTEMPTS = 3  # of a message, before it is parked
KINDS = {"catalog": "CatalogItem", "news": "NewsPost"}  # of targets, by consumer


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run: the product's tree, and whether the broker is Apache Kafka (None: if it can be)."""

    product: Path = ROOT
    real_kafka: bool | None = None


class System:
    """Started by `with`; everything is gone afterwards, whatever ends it."""

    def __init__(self, choice: Choice) -> None:
        self._product = choice.product
        self._running = ExitStack()
        self.to_postgres, self.to_broker = Proxy(), Proxy()
        self.disk = SmallDisk()
        self.postgres = EmbeddedPostgres(options={"max_connections": str(MAX_CONNECTIONS)})
        self.lacks = kafka.missing()
        self.lasting_broker = choice.real_kafka if choice.real_kafka is not None else self.lacks is None
        self.broker: EmbeddedKafka | EmbeddedBroker
        if self.lasting_broker:
            self.broker = EmbeddedKafka(
                advertised=self.to_broker.address, properties={"auto.create.topics.enable": "false"}
            )
        else:
            self.broker = EmbeddedBroker(advertised=self.to_broker.address)
        self.jwt_secret = secrets.token_urlsafe(48)
        self.operators_password = secrets.token_urlsafe(24)
        self.ports = {name: free_port() for name in PROGRAMS}
        self.parts: dict[str, Part] = {}

    def __enter__(self) -> Self:
        with ExitStack() as running:
            for server in (self.to_postgres, self.to_broker, self.disk, self.postgres, self.broker):
                running.enter_context(server)
            self.to_postgres.upstream, self.to_broker.upstream = self.postgres.port, self.broker.port
            create_topic(self.bootstrap, TOPIC, PARTITIONS)
            self._migrate()
            for name, command in self._commands().items():
                self.parts[name] = part = Part(name, command, self.environ)
                running.callback(part.close)
            self.clock = Clock(self.parts[CLOCKED].folder)
            self.parts[CLOCKED].environ |= self.clock.environ
            for name in CONSUMERS:
                self.parts[name] = part = Part(name, (), {**os.environ})
                running.callback(part.close)
                part.command = self._consumer(part, name)
            for part in self.parts.values():
                part.start()
            self._running = running.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._running.close()

    @property
    def url(self) -> str:
        """The database past the proxy: for the campaign itself."""
        return self.postgres.url

    @property
    def bootstrap(self) -> str:
        """The broker by the proxy, the only way that it tells clients."""
        return self.to_broker.address

    def save_logs(self, folder: Path) -> None:
        """Write what each part, PostgreSQL and the broker have printed."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, part in self.parts.items():
            (folder / f"{name}.log").write_text(part.output())
        for server in (self.postgres, self.broker):
            (folder / f"{server.name}.log").write_text(server.log.read_text(errors="replace"))

    @property
    def programs(self) -> dict[str, Part]:
        """The product's parts."""
        return {name: self.parts[name] for name in PROGRAMS}

    def store(self, consumer: str) -> Path:
        """Return the file in which a consumer keeps its boosts."""
        return self.parts[consumer].folder / "boosts.sqlite"

    @property
    def manage(self) -> Path:
        """The product's `manage.py`."""
        return self._product / "manage.py"

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables of the product's programs."""
        return {
            **os.environ,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "PINPROMO_ENV_FILE": "",
            "SECRET_KEY": self.jwt_secret,
            "DATABASE_URL": self.url.replace(self.postgres.address, self.to_postgres.address),
            "KAFKA_BOOTSTRAP_SERVERS": self.bootstrap,
            "EXPIRE_PROMOTIONS_MIN_INTERVAL": str(INTERVAL),
            "EXPIRE_PROMOTIONS_INTERVAL": str(INTERVAL),
            "EXPIRE_PROMOTIONS_TICK_BUDGET": str(TICK_BUDGET),
            "EXPIRE_PROMOTIONS_BATCH_SIZE": str(BATCH_SIZE),
            "OUTBOX_MAX_ATTEMPTS": str(MAX_ATTEMPTS),
            "ALLOWED_HOSTS": HOST,
            "SECURE_SSL_REDIRECT": "false",
            "JWT_ALGORITHMS": "HS256",
            "JWT_KEY": self.jwt_secret,
        }

    def _commands(self) -> dict[str, list[str | Path]]:
        python, manage = sys.executable, self.manage

        def ops(name: str) -> tuple[str, str]:
            return "--ops-port", str(self.ports[name])

        folder = (f"--chdir={self._product}", f"--config={self._product / 'gunicorn.conf.py'}")
        web = (f"--bind={HOST}:{self.ports['web']}", "--workers=1", "--threads=8", *folder)
        return {
            **{name: [python, manage, "expire_promotions", "--loop", "--json", *ops(name)] for name in WORKERS},
            **{name: [python, manage, "relay_outbox", "--loop", *ops(name)] for name in RELAYS},
            "web": [Path(python).parent / "gunicorn", "pinpromo.wsgi", *web],
        }

    def _consumer(self, part: Part, name: str) -> list[str | Path]:
        # By its path: the working directory is the part's folder.
        script = Path(__file__).with_name("consumer.py")
        return [sys.executable, script, self.bootstrap, KINDS[name], part.folder / "boosts.sqlite"]

    def _migrate(self) -> None:
        folder = GuardedFolder("migrate")
        try:
            folder.run([sys.executable, self.manage, "migrate"], environ=self.environ)
            operator = {"USERNAME": operators.NAME, "EMAIL": "", "PASSWORD": self.operators_password}
            environ = {**self.environ, **{f"DJANGO_SUPERUSER_{name}": value for name, value in operator.items()}}
            folder.run([sys.executable, self.manage, "createsuperuser", "--noinput"], environ=environ)
        finally:
            folder.close()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(poison.SCHEMA)
            if not self.disk.lacks:
                self.disk.put_outbox_there(connection)
