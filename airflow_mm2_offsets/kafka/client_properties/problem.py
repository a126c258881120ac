"""What a translation of properties works on, and its error about one property."""

from typing import TypeAlias

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import Setting

Config: TypeAlias = dict[str, Setting]
"""Properties while they are translated: each step takes Java's out, and puts librdkafka's in."""


GIVE_JAVA_FILE = (
    "give a file of Java client properties for this cluster instead (source_properties, "
    "target_properties)"
)
"""The next step where a property has no counterpart in Kafka's Java client."""


class PropertyError(ConfigurationError):
    """A property that is wrong or has no counterpart; ``Problems`` adds the cluster."""

    def __init__(self, setting: str, problem: str) -> None:
        """Put the property before the problem, which never shows a secret."""
        super().__init__(problem, setting=setting)


def as_text(value: Setting) -> str:
    """Return a value as a properties file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def take(config: Config, name: str) -> str | None:
    """Remove a property and return its text; None if it is absent or empty."""
    value = config.pop(name, None)
    return None if value is None or value == "" else as_text(value)
