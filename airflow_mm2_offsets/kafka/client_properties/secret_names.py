"""Which properties hold a secret; logs, errors and Airflow's masker go by it."""

_WORDS = ("password", "secret", "passphrase", "jaas", "private.key.pem", "user.info")
_NAMES = frozenset({"ssl.key.pem", "ssl.keystore.key", "sasl.oauthbearer.config"})


def is_secret(name: str) -> bool:
    """Tell whether the value of a Kafka client property is never to be shown."""
    return name in _NAMES or any(word in name for word in _WORDS)
