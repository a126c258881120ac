"""Configurations of admin clients and consumers, from librdkafka properties.

``clients`` makes its clients with them. The properties come from an Airflow ``kafka`` connection
or a settings file; librdkafka's ``CONFIGURATION.md`` lists them.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from airflow_mm2_offsets.errors import ConfigurationError

Scalar: TypeAlias = str | int | float | bool
Setting: TypeAlias = Scalar | Callable[..., Any]
"""A property's value; a callback is a function, such as ``oauth_cb``, which fetches a token."""

BOOTSTRAP_SERVERS = "bootstrap.servers"

NEVER_JOINED_GROUP = "airflow-mm2-offsets-never-joined"
"""librdkafka requires a group id. Partitions are assigned, so no consumer joins the group."""

CONSUMER_ONLY = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.poll.interval.ms",
        "on_commit",
        "partition.assignment.strategy",
        "session.timeout.ms",
    }
)
"""Where and how a consumer group reads: of no effect here, for this package joins none.

Connections often hold them. An admin client would log a warning for each.
"""


def admin_config(cluster: str, properties: Mapping[str, object]) -> dict[str, Setting]:
    """Return the configuration of an admin client.

    Args:
        cluster: The name of the cluster or its connection in error messages.
        properties: librdkafka properties. They are not modified.

    Raises:
        ConfigurationError: ``bootstrap.servers`` is missing or a value is neither a scalar
            nor a callback.
    """
    config = _validated(cluster, properties)
    return {key: value for key, value in config.items() if key not in CONSUMER_ONLY}


def consumer_config(
    cluster: str, properties: Mapping[str, object], isolation: str, *, prefetch: int
) -> dict[str, Setting]:
    """Return the configuration of a consumer that reads fast, joins no group and commits nothing.

    Args:
        cluster: See ``admin_config``, which raises the same errors.
        properties: See ``admin_config``.
        isolation: ``read_committed`` or ``read_uncommitted``.
        prefetch: The most records of one partition that the caller reads, from 1.
    """
    return _validated(cluster, properties) | {
        "group.id": NEVER_JOINED_GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "allow.auto.create.topics": False,
        "isolation.level": isolation,
        # A deleted offset is an error to report, not a reason to start elsewhere.
        "auto.offset.reset": "error",
        # Measured: a million small records are read twice as fast with these two as without.
        "queued.min.messages": min(prefetch, 1_000_000),
        "check.crcs": False,
        # Measured: the default of 1 MiB a partition fetches some 5 MB for 100 records of 1 kB.
        "max.partition.fetch.bytes": 1024 * min(max(prefetch, 16), 1024),
        # A queue that was full for a moment would pause the reading for 1 s.
        "fetch.queue.backoff.ms": 10,
        # The broker says "end of partition" only when this has passed.
        "fetch.wait.max.ms": 100,
    }


def settings_of(cluster: str, properties: Mapping[str, object]) -> dict[str, Setting]:
    """Return properties whose values a client can take.

    Raises:
        ConfigurationError: A value is neither a scalar nor a callback.
    """
    config: dict[str, Setting] = {}
    for key, value in properties.items():
        # The value stays out of the message: it may be a secret.
        if not isinstance(value, Scalar) and not callable(value):
            raise ConfigurationError(
                f"{cluster}: {key} is a {type(value).__name__}; give a text, a number or a "
                "boolean, as librdkafka's CONFIGURATION.md lists it"
            )
        config[key] = value
    return config


def _validated(cluster: str, properties: Mapping[str, object]) -> dict[str, Setting]:
    config = settings_of(cluster, properties)
    servers = config.get(BOOTSTRAP_SERVERS)
    problem = "is not a text" if servers else "is missing"
    if not servers or not isinstance(servers, str):
        raise ConfigurationError(
            f"{cluster}: {BOOTSTRAP_SERVERS} {problem}; put it into "
            'the extra of the kafka connection, for example {"bootstrap.servers": "broker-1:9092"}'
        )
    return config
