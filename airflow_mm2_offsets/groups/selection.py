"""Which consumer groups are meant, as in MirrorMaker 2's ``groups``, and who translates."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from airflow_mm2_offsets.errors import ConfigurationError

DEFAULT_EXCLUDE = "console-consumer-.*|connect-.*|__.*"
"""MirrorMaker 2's default of ``groups.exclude`` (``DefaultGroupFilter``)."""


class OffsetsFrom(StrEnum):
    """Who translates a group's offsets."""

    TRANSLATION = "translation"
    """This package, by the offset syncs: it needs both clusters."""
    CHECKPOINTS = "checkpoints"
    """MirrorMaker 2, in its checkpoints topic: it needs the target alone. Where the offset syncs
    can be read, they confirm or contradict each checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSelection:
    """The groups whose whole name matches ``include`` and not ``exclude``."""

    include: re.Pattern[str]
    exclude: re.Pattern[str]

    def of(self, names: Iterable[str]) -> list[str]:
        """Return the selected names, sorted."""
        return sorted(
            name
            for name in set(names)
            if self.include.fullmatch(name) and not self.exclude.fullmatch(name)
        )


def parse_selection(include: str, exclude: str = DEFAULT_EXCLUDE) -> GroupSelection:
    """Return the selection of two regular expressions; an empty ``exclude`` leaves nothing out.

    Raises:
        ConfigurationError: One is no regular expression, or ``include`` is empty.
    """
    if not include:
        raise ConfigurationError(
            "no group is named; give a regular expression of whole names, .* for all",
            setting="include",
        )
    return GroupSelection(
        include=_compile("include", include), exclude=_compile("exclude", exclude or r"(?!)")
    )


def _compile(setting: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(
            f"{pattern!r} is not a regular expression: {error}; a name with such characters is "
            f"written with a backslash before each",
            setting=setting,
        ) from error
