"""Collects errors of a configuration, for rooms that read many settings at once."""

from collections.abc import Callable
from typing import TypeVar, Unpack

from airflow_mm2_offsets.errors import ConfigurationError, ErrorFields

ResultT = TypeVar("ResultT")


class Problems:
    """Collects errors of a configuration, so that its user sees all of them at once."""

    def __init__(self) -> None:
        """Start without one."""
        self._errors: list[ConfigurationError] = []

    def add(self, *errors: ConfigurationError) -> None:
        """Keep errors."""
        self._errors += errors

    def attempt(self, step: Callable[[], ResultT]) -> ResultT | None:
        """Return the step's result; None if it raises a ConfigurationError, which is kept."""
        try:
            return step()
        except ConfigurationError as error:
            self.add(error)
            return None

    def raise_all(self, **place: Unpack[ErrorFields]) -> None:
        """Raise what was kept, if anything was, as one error in a place that the steps don't know.

        Raises:
            ConfigurationError: Its message has those of all; a single one keeps its fields.
        """
        if not self._errors:
            return
        problem = "; ".join(map(str, self._errors))
        if len(self._errors) > 1:
            problem = f"{len(self._errors)} settings are wrong: {problem}"
        error = ConfigurationError(problem, **place)
        if len(self._errors) == 1:
            error.fields = {**place, **self._errors[0].fields}
        raise error from None  # the causes of those kept may quote a secret
