"""The difference between a connector's settings as they are and as they should be.

A difference goes to log and XCom. So only values of Kafka's own settings are shown that hold no
secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_mm2_offsets.connect.redaction import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingDifference:
    """A setting that differs; values that may be secrets are hidden."""

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
            before=shown(name, before.get(name)),
            after=shown(name, after.get(name)),
        )
        for name in names
        if before.get(name) != after.get(name)
    )
