"""From librdkafka's properties to Kafka's Java client, for the same cluster, login and TLS.

``ReconcileOperator`` calls it for the consumers of its Spark job.
"""

from collections.abc import Mapping
from functools import partial

import javaproperties

from airflow_mm2_offsets.collected_errors import Problems
from airflow_mm2_offsets.kafka.client_properties import java_login
from airflow_mm2_offsets.kafka.client_properties.java_tls import tls_properties
from airflow_mm2_offsets.kafka.client_properties.problem import (
    GIVE_JAVA_FILE,
    PropertyError,
    as_text,
)
from airflow_mm2_offsets.kafka.client_properties.tls import HOST_NAME_CHECK
from airflow_mm2_offsets.kafka.config import BOOTSTRAP_SERVERS, admin_config

_SAME_IN_BOTH = frozenset({BOOTSTRAP_SERVERS, "client.id", "client.dns.lookup"})
_SECURITY_PREFIXES = ("sasl.", "ssl.", "oauth", "https.", "enable.ssl.", "enable.sasl.")
_DEFAULTS: Mapping[str, frozenset[str]] = {
    "enable.sasl.oauthbearer.unsecure.jwt": frozenset({"false"}),
    "enable.ssl.certificate.verification": frozenset({"true"}),
}
"""Properties that Java has not, and the values that say what it does anyway."""
_NO_COUNTERPART = f"has no counterpart in Kafka's Java client; {GIVE_JAVA_FILE}"
_TRANSLATED = java_login.TRANSLATED | {
    *("ssl.cipher.suites", "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password"),
    *(
        f"ssl.{part}.{form}"
        for part in ("ca", "certificate", "key")
        for form in ("location", "pem")
    ),
    HOST_NAME_CHECK,
}


def to_java(cluster: str, librdkafka_config: Mapping[str, object]) -> dict[str, str]:
    """Return properties of Kafka's Java client for the same cluster and login.

    Files of keys and certificates are read here: Spark may run where they do not exist. A keytab
    is named: it must lie under the same path wherever Spark runs. Properties that do not decide
    about address, login or TLS are left out.

    Raises:
        ConfigurationError: Properties that decide about security have no counterpart, or a file
            can't be read. One error names all of them.
    """
    settings = admin_config(cluster, librdkafka_config)
    callback = settings.pop("oauth_cb", None)
    config = {key: as_text(value) for key, value in settings.items() if not callable(value)}
    problems = Problems()
    problems.add(
        *(
            PropertyError(key, _NO_COUNTERPART)
            for key in config
            if _is_only_librdkafkas(key, config)
        )
    )
    properties = {key: value for key, value in config.items() if key in _SAME_IN_BOTH}
    if "security.protocol" in config:
        properties["security.protocol"] = config["security.protocol"].upper()
    for translate in (tls_properties, partial(java_login.login_properties, callback=callback)):
        properties |= problems.attempt(partial(translate, config)) or {}
    problems.raise_all(cluster=cluster)
    return properties


def format_properties(properties: Mapping[str, str]) -> str:
    """Return properties as the text of a file that ``java.util.Properties`` reads."""
    return javaproperties.dumps(properties, timestamp=None, sort_keys=True)


def _is_only_librdkafkas(name: str, config: Mapping[str, str]) -> bool:
    return (
        name.startswith(_SECURITY_PREFIXES)
        and name not in _TRANSLATED
        and config[name].lower() not in _DEFAULTS.get(name, frozenset())
    )
