"""Properties of Kafka clients, with secrets that must never be seen."""

from collections.abc import Mapping
from typing import Any

NOWHERE = "kafka.invalid:9092"
SECRET = "hunter2"  # noqa: S105 - to see that it is never shown
KAFKA: Mapping[str, Any] = {
    "bootstrap.servers": NOWHERE,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "airflow",
    "sasl.password": SECRET,
    "ssl.key.pem": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
}
