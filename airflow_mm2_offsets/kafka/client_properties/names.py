"""Which properties exist: the same in both clients, renamed, without effect here, or refused.

Java's names are those of ``ConsumerConfig``, ``AdminClientConfig``, ``ProducerConfig`` and their
shared ``CommonClientConfigs``, ``SslConfigs`` and ``SaslConfigs`` (Kafka 3.4 to 4.1); librdkafka's
are those of its ``CONFIGURATION.md``. ``librdkafka`` reads these tables, ``acceptance`` suggests
names of them.
"""

from collections.abc import Mapping

from airflow_mm2_offsets.kafka.config import CONSUMER_ONLY

RENAMED: Mapping[str, str] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    # librdkafka's request.timeout.ms is the broker's wait for acknowledgements of a produce.
    "request.timeout.ms": "socket.timeout.ms",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
"""Java's name, and librdkafka's for the same thing. The latter wins where both are set."""

_PRODUCER_ONLY = frozenset(
    {
        "acks",
        "batch.size",
        "buffer.memory",
        "delivery.timeout.ms",
        "enable.idempotence",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "metadata.max.idle.ms",
        "retries",
        "transaction.timeout.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id",
    }
)
_JAVA_ONLY = frozenset(
    {
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "exclude.internal.topics",
        "interceptor.classes",
        "internal.leave.group.on.close",
        "internal.throw.on.fetch.stable.offset.unsupported",
        "max.poll.records",
        "metric.reporters",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        # A broker validates tokens with these; librdkafka leaves that to the broker.
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
        "share.acknowledgement.mode",
        "socket.connection.setup.timeout.max.ms",
        "ssl.keymanager.algorithm",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)
IGNORED = _PRODUCER_ONLY | _JAVA_ONLY | CONSUMER_ONLY
"""Of no effect here: this package writes nothing, joins no group, and sets where it reads."""
_IGNORED_PREFIXES = (
    *("basic.auth.", "compression.", "metrics.", "partitioner.", "schema.registry."),
    *("key.deserializer", "key.serializer", "value.deserializer", "value.serializer"),
)
"""Of producers, metrics, and (de)serialisers: this package compares bytes."""

REFUSED: Mapping[str, str] = {
    "bootstrap.controllers": "this package asks brokers: give bootstrap.servers",
    # librdkafka connects to whichever of the two it gets last; messages would name the other.
    "metadata.broker.list": "it is another name of bootstrap.servers: give that alone",
    "sasl.login.class": (
        "librdkafka can't run a Java class: give sasl.jaas.config, or a callback as oauth_cb"
    ),
    "security.providers": (
        "librdkafka uses OpenSSL: remove it, or name OpenSSL's providers in ssl.providers"
    ),
    "ssl.engine.factory.class": (
        "librdkafka can't run a Java class: give the certificates as PEM "
        "(ssl.truststore.certificates, ssl.keystore.certificate.chain, ssl.keystore.key)"
    ),
}
"""What changes security or the cluster, can't be translated, and what to give instead."""

TRANSLATED = frozenset(
    {
        "sasl.client.callback.handler.class",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwt.retriever.class",
        "ssl.enabled.protocols",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.protocol",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""Java's names that ``login``, ``oauth``, ``stores`` and ``tls`` turn into other properties."""

CALLBACKS = frozenset(
    {"error_cb", "log_cb", "logger", "oauth_cb", "on_commit", "stats_cb", "throttle_cb"}
)
"""Of confluent-kafka's Python client. Airflow takes them as dotted paths, and imports them."""

LIBRDKAFKA = frozenset(
    {
        *("api.version.request", "api.version.request.timeout.ms", "bootstrap.servers"),
        *("broker.address.family", "broker.address.ttl", "broker.version.fallback", "check.crcs"),
        *("client.dns.lookup", "client.id", "client.rack", "connections.max.idle.ms", "debug"),
        *("enable.metrics.push", "enable.sasl.oauthbearer.unsecure.jwt"),
        *("enable.ssl.certificate.verification", "fetch.error.backoff.ms", "fetch.max.bytes"),
        *("fetch.message.max.bytes", "fetch.min.bytes", "fetch.queue.backoff.ms"),
        *("fetch.wait.max.ms", "log.connection.close", "log.thread.name", "log_level"),
        *("max.partition.fetch.bytes", "message.max.bytes", "metadata.broker.list"),
        *("metadata.max.age.ms", "queued.max.messages.kbytes"),
        *("queued.min.messages", "receive.message.max.bytes", "reconnect.backoff.max.ms"),
        *("reconnect.backoff.ms", "retry.backoff.max.ms", "retry.backoff.ms"),
        *("sasl.kerberos.keytab", "sasl.kerberos.kinit.cmd", "sasl.kerberos.principal"),
        *("sasl.kerberos.min.time.before.relogin", "sasl.kerberos.service.name"),
        *("sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.client.id"),
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.config"),
        *("sasl.oauthbearer.extensions", "sasl.oauthbearer.method", "sasl.oauthbearer.scope"),
        *("sasl.oauthbearer.token.endpoint.url", "sasl.password", "sasl.username"),
        *("security.protocol", "socket.connection.setup.timeout.ms", "socket.keepalive.enable"),
        *("socket.max.fails", "socket.nagle.disable", "socket.receive.buffer.bytes"),
        *("socket.send.buffer.bytes", "socket.timeout.ms", "ssl.ca.location", "ssl.ca.pem"),
        *("ssl.certificate.location", "ssl.certificate.pem", "ssl.cipher.suites"),
        *("ssl.crl.location", "ssl.curves.list", "ssl.endpoint.identification.algorithm"),
        *("ssl.key.location", "ssl.key.password", "ssl.key.pem", "ssl.keystore.location"),
        *("ssl.keystore.password", "ssl.providers", "ssl.sigalgs.list", "statistics.interval.ms"),
        *("topic.metadata.refresh.interval.ms", "topic.metadata.refresh.sparse"),
    }
)
"""librdkafka's names to suggest; which names it takes, librdkafka itself decides."""
TUNING_OF_NEWER = frozenset(
    {
        "enable.metrics.push",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
    }
)
"""Left out where the installed librdkafka is too old for them: they only tune."""
NEEDS_NEWER = (
    "https.ca.",
    "sasl.oauthbearer.assertion.",
    "sasl.oauthbearer.grant.type",
    "sasl.oauthbearer.metadata.",
    "sasl.oauthbearer.sub.claim.name",
)
"""How properties begin that older librdkafkas lack, and that a login needs."""

KNOWN = LIBRDKAFKA | TUNING_OF_NEWER | RENAMED.keys() | IGNORED | REFUSED.keys() | TRANSLATED


def is_ignored(name: str) -> bool:
    """Tell whether a property has no effect on what this package does."""
    return name in IGNORED or name.startswith(_IGNORED_PREFIXES)
