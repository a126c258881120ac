"""What is wrong with one property; a translation lists all of them in one error."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.kafka.config import Setting

Config: TypeAlias = dict[str, Setting]
"""Properties while they are translated: each step takes Java's out, and puts librdkafka's in."""


class PropertyError(Exception):
    """A property that is wrong or has no counterpart; never raised to callers of the package."""

    def __init__(self, setting: str, problem: str) -> None:
        """Keep both; ``problem`` never shows a secret."""
        super().__init__(f"{setting}: {problem}")
        self.setting = setting
        self.problem = problem


@contextmanager
def collected(problems: list[PropertyError]) -> Iterator[None]:
    """Add a problem of the block to ``problems``, so that the next step runs all the same."""
    try:
        yield
    except PropertyError as problem:
        problems.append(problem)


def raise_problems(cluster: str, problems: Sequence[PropertyError]) -> None:
    """Raise one error for all problems, if there are any.

    Raises:
        ConfigurationError: Its field ``setting`` names the property, if it is the only one.
    """
    if not problems:
        return
    # The problems themselves, and what caused them, may quote a secret: no chain.
    if len(problems) == 1:
        raise ConfigurationError(
            problems[0].problem, cluster=cluster, setting=problems[0].setting
        ) from None
    listed = "; ".join(str(problem) for problem in problems)
    raise ConfigurationError(
        f"{len(problems)} properties are wrong: {listed}", cluster=cluster
    ) from None


def as_text(value: Setting) -> str:
    """Return a value as a properties file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def take(config: Config, name: str) -> str | None:
    """Remove a property and return its text; None if it is absent or empty."""
    value = config.pop(name, None)
    return None if value is None or value == "" else as_text(value)
