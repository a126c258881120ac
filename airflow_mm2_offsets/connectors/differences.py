"""The difference between a connector's settings as they are and as they should be.

Secrets are hidden: a difference goes to log and XCom.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_mm2_offsets.kafka.client_properties import is_secret
from airflow_mm2_offsets.kafka.redaction import Redactor
from airflow_mm2_offsets.logins import without_login

_STARS = "***"
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
"""To a config provider (KIP-297)."""
_MORE_WORDS = ("token", "credential", "access.key", "apikey", "api.key")
"""Words of secrets in the settings of converters, transforms and filters of other vendors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDifference:
    """A setting that differs; a secret's values are hidden."""

    name: str
    before: str | None
    """None: it is not set."""
    after: str | None
    """None: it is taken out, and Kafka's default counts."""

    def __str__(self) -> str:
        """Show it in one line."""
        if self.before is None:
            return f"+ {self.name} = {self.after}"
        if self.after is None:
            return f"- {self.name} = {self.before}"
        return f"~ {self.name} = {self.after} (was {self.before})"

    def to_json(self) -> dict[str, str | None]:
        """Return plain JSON."""
        return {"name": self.name, "before": self.before, "after": self.after}


def find_setting_differences(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[SettingDifference, ...]:
    """Return each setting that differs, by name. Connect adds ``name``, which is left out."""
    names = sorted((before.keys() | after.keys()) - {"name"})
    return tuple(
        SettingDifference(
            name=name,
            before=_shown(name, before.get(name)),
            after=_shown(name, after.get(name)),
        )
        for name in names
        if before.get(name) != after.get(name)
    )


def redactor_of(config: Mapping[str, str]) -> Redactor:
    """Return what hides a connector's secrets in messages, which may quote its settings."""
    secrets = {f"{name}.password": value for name, value in config.items() if _is_hidden(name)}
    return Redactor(
        {name: value for name, value in secrets.items() if not _REFERENCE.fullmatch(value)}
    )


def _shown(name: str, value: str | None) -> str | None:
    if value is None or _REFERENCE.fullmatch(value):
        return value  # a reference is no secret
    return _STARS if _is_hidden(name) else without_login(value)


def _is_hidden(name: str) -> bool:
    """Tell whether a setting holds a secret, with or without a prefix such as ``source.cluster``.

    Some of Kafka's secrets are known by their whole names only.
    """
    parts = name.lower().split(".")
    ends = (".".join(parts[start:]) for start in range(len(parts)))
    return any(is_secret(end) for end in ends) or any(word in name.lower() for word in _MORE_WORDS)
