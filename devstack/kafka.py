"""A real Apache Kafka of one node, broker and controller in one (KRaft)."""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from devstack import kafka_install
from devstack.kafka_install import missing
from devstack.ports import HOST
from devstack.server import EmbeddedServer

__all__ = ["EmbeddedKafka", "missing"]

_STARTED = "Kafka Server started"
_JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_LOG4J = """\
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %m (%c)%n
"""


class EmbeddedKafka(EmbeddedServer):
    """Three listeners: CLIENT (`bootstrap`), and two in plain text: INTERNAL (`internal`) and CONTROLLER.

    `protocol` is CLIENT's: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. `properties` go into server.properties
    as they are and win over ours. `users` (name to password) can log in with SCRAM-SHA-256 and -512. Topics
    appear by themselves, as Kafka's default is. CLIENT tells clients to come to `advertised`, if given (a proxy).
    """

    name = "Apache Kafka"
    version = kafka_install.VERSION
    port_count = 3
    start_seconds = 90.0
    stop_signals = (("SIGTERM", 15.0),)

    def __init__(
        self,
        *,
        protocol: str = "PLAINTEXT",
        properties: Mapping[str, str] = MappingProxyType({}),
        users: Mapping[str, str] = MappingProxyType({}),
        advertised: str = "",
        java_options: Sequence[str] = _JAVA_OPTIONS,
    ) -> None:
        super().__init__()
        self._protocol = protocol
        self._properties = properties
        self._users = users
        self._advertised = advertised
        self._java_options = java_options
        self._log_start = 0

    @property
    def bootstrap(self) -> str:
        """The value of KAFKA_BOOTSTRAP_SERVERS."""
        return self.address

    @property
    def internal(self) -> str:
        """The plain-text listener: a way in that needs no login, whatever `protocol` is."""
        return f"{HOST}:{self._ports[1]}"

    def _prepare(self) -> None:
        kafka_install.libraries()
        (self.guarded.path / "log4j2.properties").write_text(_LOG4J)
        # Formatting wants a complete configuration, and forgets the ports.
        self._ports = [1, 2, 3]
        self._write_properties()
        self._ports = []
        scram = [
            f"--add-scram={mechanism}=[name={name},password={password}]"
            for name, password in self._users.items()
            for mechanism in _SCRAM
        ]
        command = ["kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", "server.properties", *scram]
        self.guarded.run([*self._java(), *command], environ=self._environment())

    def _command(self) -> Sequence[str | Path]:
        self._write_properties()
        self._log_start = self.guarded.log_size()
        return [*self._java(), "kafka.Kafka", "server.properties"]

    def _answers(self) -> bool:
        """Its own word: whether it answers on CLIENT is hard to ask where that wants TLS."""
        return _STARTED in self.guarded.log_since(self._log_start)

    def _java(self) -> list[str]:
        classes = str(kafka_install.libraries() / "*")
        logging = "-Dlog4j2.configurationFile=log4j2.properties"
        return [kafka_install.java(), *self._java_options, logging, "-cp", classes]

    def _write_properties(self) -> None:
        client, internal, controller = self._ports
        others = f"INTERNAL://{HOST}:{internal}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listeners": f"CLIENT://{HOST}:{client},{others},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"CLIENT://{self._advertised or f'{HOST}:{client}'},{others}",
            "listener.security.protocol.map": f"CLIENT:{self._protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": "data",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            # After a SIGKILL the controller waits this long before it lets the broker back in.
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "3000",
            **self._sasl(),
            **self._properties,
        }
        text = "".join(f"{name}={setting}\n" for name, setting in properties.items())
        (self.guarded.path / "server.properties").write_text(text)

    def _sasl(self) -> dict[str, str]:
        if not self._users:
            return {}
        logins = {f"listener.name.client.{name.lower()}.sasl.jaas.config": _SCRAM_LOGIN for name in _SCRAM}
        return {"sasl.enabled.mechanisms": ",".join(_SCRAM), **logins}


def _cluster_id() -> str:
    """16 random bytes as Kafka writes them; it refuses a leading dash."""
    return "P" + secrets.token_urlsafe(16)[1:]
