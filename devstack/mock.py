"""librdkafka's mock cluster in a process of its own: a broker that fails as it is told.

The library that confluent_kafka brings along contains it; `python -m devstack.mock` drives it through ctypes and
is itself driven by JSON lines. It is exact where the small broker is not, and knows nothing of creating topics
over the network: `create_topic` does that, and an unknown topic appears by itself with 4 partitions.
"""

import json
import signal
import sys
from typing import Any, Self

from devstack.companion import Companion
from devstack.errors import DevstackError
from devstack.librdkafka import MockBrokers

PRODUCE = 0
METADATA = 3
INIT_PRODUCER_ID = 22


class MockCluster:
    """The owner's end. `api_key` is the Kafka protocol's (0 is Produce), `code` its error codes."""

    def __init__(self, brokers: int = 1) -> None:
        self._brokers = brokers
        self._companion: Companion | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        """The value of KAFKA_BOOTSTRAP_SERVERS."""
        return str(self._ask("bootstrap"))

    def start(self) -> None:
        """Start the process and its brokers, numbered from 1."""
        if self._companion is None:
            self._companion = Companion([sys.executable, "-m", "devstack.mock", str(self._brokers)])

    def stop(self) -> None:
        """End it; the messages are gone."""
        if self._companion is not None:
            self._companion.close()
            self._companion = None

    def push_errors(self, api_key: int, *codes: int) -> None:
        """The next requests of this kind get these errors, in turn; -195 (_TRANSPORT) drops the connection."""
        self._ask("push_errors", api_key=api_key, codes=codes)

    def clear_errors(self, api_key: int) -> None:
        """Forget what `push_errors` has left."""
        self._ask("clear_errors", api_key=api_key)

    def set_down(self, broker_id: int = 1) -> None:
        """The broker drops its connections and refuses new ones."""
        self._ask("set_down", broker_id=broker_id)

    def set_up(self, broker_id: int = 1) -> None:
        """The end of `set_down`."""
        self._ask("set_up", broker_id=broker_id)

    def set_rtt(self, broker_id: int, ms: int) -> None:
        """The broker takes its time for every answer."""
        self._ask("set_rtt", broker_id=broker_id, ms=ms)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic; one that exists is left as it is."""
        self._ask("create_topic", name=name, partitions=partitions)

    def topic_error(self, name: str, code: int) -> None:
        """Metadata reports this error for the topic; 0 ends it."""
        self._ask("topic_error", name=name, code=code)

    def set_leader(self, name: str, partition: int, broker_id: int) -> None:
        """Move a partition to another broker; -1 leaves it without one.

        The mock dies when a client that does not know yet sends to a partition without a leader.
        """
        self._ask("set_leader", name=name, partition=partition, broker_id=broker_id)

    def _ask(self, do: str, **arguments: Any) -> Any:
        if self._companion is None:
            message = "the mock cluster has not been started"
            raise DevstackError(message)
        return self._companion.ask(do, **arguments)


def main() -> None:
    """Serve until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    brokers = MockBrokers(int(sys.argv[1]))
    print(json.dumps({"id": 0, "result": brokers.bootstrap()}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        number, name = request.pop("id"), request.pop("do")
        try:
            reply = {"id": number, "result": getattr(brokers, name)(**request)}
        except DevstackError as error:
            reply = {"id": number, "error": str(error)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
