"""The mock cluster's C functions, as methods that raise."""

import ctypes
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from devstack.errors import DevstackError, MissingToolError

_PRODUCER = 0  # RD_KAFKA_PRODUCER
_TOPIC_ALREADY_EXISTS = 36
_PATTERNS = ("confluent_kafka.libs/librdkafka*", "confluent_kafka/.dylibs/librdkafka*")


class MockBrokers:
    """Brokers inside this process, numbered from 1."""

    def __init__(self, count: int) -> None:
        self._library = _load()
        reason = ctypes.create_string_buffer(512)
        configuration = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        client = self._library.rd_kafka_new(_PRODUCER, configuration, reason, ctypes.c_size_t(len(reason)))
        if not client:
            raise DevstackError(reason.value.decode())
        self._cluster = ctypes.c_void_p(
            self._library.rd_kafka_mock_cluster_new(ctypes.c_void_p(client), ctypes.c_int(count))
        )

    def bootstrap(self) -> str:
        """The brokers' addresses."""
        addresses: bytes = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        return addresses.decode()

    def push_errors(self, *, api_key: int, codes: Sequence[int]) -> None:
        """Queue errors for a kind of request."""
        errors = (ctypes.c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(api_key), ctypes.c_size_t(len(codes)), errors
        )

    def clear_errors(self, *, api_key: int) -> None:
        """Empty that queue."""
        self._library.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(api_key))

    def set_down(self, *, broker_id: int) -> None:
        """Take a broker down."""
        self._check(self._library.rd_kafka_mock_broker_set_down(self._cluster, ctypes.c_int32(broker_id)))

    def set_up(self, *, broker_id: int) -> None:
        """Bring it back."""
        self._check(self._library.rd_kafka_mock_broker_set_up(self._cluster, ctypes.c_int32(broker_id)))

    def set_rtt(self, *, broker_id: int, ms: int) -> None:
        """Delay its answers."""
        self._check(
            self._library.rd_kafka_mock_broker_set_rtt(self._cluster, ctypes.c_int32(broker_id), ctypes.c_int(ms))
        )

    def create_topic(self, *, name: str, partitions: int) -> None:
        """Create a topic with one replica, unless it is there."""
        code = self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)
        self._check(0 if code == _TOPIC_ALREADY_EXISTS else code)

    def topic_error(self, *, name: str, code: int) -> None:
        """Set what metadata says of a topic."""
        self._library.rd_kafka_mock_topic_set_error(self._cluster, name.encode(), ctypes.c_int(code))

    def set_leader(self, *, name: str, partition: int, broker_id: int) -> None:
        """Choose a partition's leader."""
        self._check(
            self._library.rd_kafka_mock_partition_set_leader(
                self._cluster, name.encode(), ctypes.c_int32(partition), ctypes.c_int32(broker_id)
            )
        )

    def _check(self, code: int) -> None:
        if code:
            reason: bytes = self._library.rd_kafka_err2str(ctypes.c_int(code))
            message = f"the mock cluster refuses: {reason.decode()} ({code})"
            raise DevstackError(message)


def _load() -> ctypes.CDLL:
    package = importlib.util.find_spec("confluent_kafka")
    if package is None or package.origin is None:
        message = "the package confluent-kafka is not installed; `make venv` installs it"
        raise MissingToolError(message)
    site_packages = Path(package.origin).parent.parent
    found = [path for pattern in _PATTERNS for path in site_packages.glob(pattern)]
    if not found:
        message = "confluent-kafka has brought no librdkafka of its own here, so there is no mock cluster"
        raise MissingToolError(message)
    library = ctypes.CDLL(str(found[0]))
    for pointer in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, pointer).restype = ctypes.c_void_p
    for text in ("rd_kafka_mock_cluster_bootstraps", "rd_kafka_err2str"):
        getattr(library, text).restype = ctypes.c_char_p
    return library
