"""Which settings of a connector may be shown: those that Kafka documents, and that hold no secret.

``redaction`` goes by it. A transform, a filter or a converter may have any setting, so that no list
of secret names is ever whole. The names are those of Kafka's ``MirrorConnectorConfig`` and its
subclasses, ``ConnectorConfig``, ``SourceConnectorConfig``, and of its clients.
"""

import re

from airflow_mm2_offsets.kafka.client_properties import is_secret
from airflow_mm2_offsets.kafka.client_properties.names import KNOWN

_CONNECT = frozenset(
    {
        *("name", "connector.class", "connector.plugin.version", "tasks.max", "tasks.max.enforce"),
        *("config.action.reload", "exactly.once.support", "offsets.storage.topic"),
        *("errors.log.enable", "errors.log.include.messages", "errors.retry.delay.max.ms"),
        *("errors.retry.timeout", "errors.tolerance", "predicates", "topic.creation.groups"),
        *("transaction.boundary", "transaction.boundary.interval.ms", "transforms"),
    }
)
_MIRROR_MAKER = frozenset(
    {
        *("admin.timeout.ms", "checkpoints.topic.replication.factor", "config.properties.exclude"),
        *("config.property.filter.class", "consumer.poll.timeout.ms", "emit.checkpoints.enabled"),
        *("emit.checkpoints.interval.seconds", "emit.heartbeats.enabled"),
        *("emit.heartbeats.interval.seconds", "emit.offset-syncs.enabled", "enabled"),
        *("forwarding.admin.class", "group.filter.class", "groups", "groups.exclude"),
        *("heartbeats.replication.enabled", "heartbeats.topic.replication.factor"),
        *("metric.names.formats", "offset-syncs.topic.location"),
        *("offset-syncs.topic.replication.factor", "offset.lag.max", "refresh.groups.enabled"),
        *("refresh.groups.interval.seconds", "refresh.topics.enabled"),
        *("refresh.topics.interval.seconds", "replication.factor", "replication.policy.class"),
        *("replication.policy.internal.topic.separator.enabled", "replication.policy.separator"),
        *("source.cluster.alias", "sync.group.offsets.enabled"),
        *("sync.group.offsets.interval.seconds", "sync.topic.acls.enabled"),
        *("sync.topic.acls.interval.seconds", "sync.topic.configs.enabled"),
        *("sync.topic.configs.interval.seconds", "target.cluster.alias", "topic.filter.class"),
        *("topics", "topics.exclude", "use.defaults.from", "use.incremental.alter.configs"),
    }
)
_MORE_OF_CLIENTS = frozenset(
    {
        *("compression.gzip.level", "compression.lz4.level", "compression.type"),
        *("compression.zstd.level", "metrics.num.samples", "metrics.recording.level"),
        *("metrics.sample.window.ms", "partitioner.adaptive.partitioning.enable"),
        *("partitioner.availability.timeout.ms", "partitioner.class", "partitioner.ignore.keys"),
    }
)
_TEXTS_OF_ANY_KIND = frozenset(
    {
        *("sasl.kerberos.kinit.cmd", "sasl.oauthbearer.extensions", "ssl.ca.pem"),
        *("ssl.certificate.pem", "ssl.keystore.certificate.chain", "ssl.truststore.certificates"),
    }
)
"""A command, values for the broker, and what Kafka itself hides (``ConfigDef.Type.PASSWORD``)."""
_CLIENT = (
    frozenset(name for name in KNOWN if not is_secret(name)) | _MORE_OF_CLIENTS
) - _TEXTS_OF_ANY_KIND
_CLIENT_PREFIX = re.compile(
    r"(?:(?:source|target)\.cluster\.|(?:source\.|target\.)?(?=(?:consumer|producer|admin)\.))?"
    r"(?:(?:consumer|producer|admin)\.(?:override\.)?)?"
)
_PARTS = re.compile(
    r"(?:key|value|header)\.converter(?:\.plugin\.version|\.schemas\.(?:enable|cache\.size))?"
    r"|transforms\.[^.]+\.(?:type|predicate|negate)|predicates\.[^.]+\.type"
    r"|topic\.creation\.[^.]+\.(?:include|exclude|replication\.factor|partitions)"
)


def is_public(name: str) -> bool:
    """Tell whether the value of a connector's setting may be shown."""
    if name in _CONNECT or name in _MIRROR_MAKER or _PARTS.fullmatch(name):
        return True
    prefix = _CLIENT_PREFIX.match(name)
    return name[prefix.end() if prefix else 0 :] in _CLIENT
