"""The one type of all options that are numbers: each names its limits, and no other text passes."""

import math
from typing import TYPE_CHECKING, Any

from click import Context, Parameter, ParamType

if TYPE_CHECKING:  # Click's classes take a type from 8.2 and 8.5 on
    AnyParamType = ParamType[Any]
else:
    AnyParamType = ParamType

MOST_SECONDS = 86_400
"""The most that ``--timeout`` takes: a day. Clients add it to other times; more would overflow."""
MOST = 2**63 - 1
"""The most of what has no limit of its own: Kafka's greatest offset."""


class Number(AnyParamType):
    """A number from ``low`` to ``high``, whole if ``kind`` is ``int``.

    ``nan``, an infinity, a negative number where none makes sense, and one that is absurdly large
    are refused with the value and what is allowed; Click names the option.
    """

    name = "number"

    def __init__(self, kind: type[float], low: float = 0, high: float = MOST) -> None:
        """Keep the limits, which are allowed themselves."""
        self.kind = kind
        self.low = low
        self.high = high

    def explain(self, text: str) -> str:
        """Return an option's help with what is allowed, unless every number from 0 is allowed."""
        if (self.low, self.high) == (0, MOST):
            return text
        high = "" if self.high == MOST else f" to {self.high}"
        return f"{text.rstrip('.')}; from {self.low}{high}."

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:  # noqa: ANN401 - Click's
        """Return the number of a text."""
        try:
            number = self.kind(value)
        except (ValueError, OverflowError):
            number = math.nan
        if not self.low <= number <= self.high:
            what = "a whole number" if self.kind is int else "a number"
            self.fail(f"{value!r} is not {what} from {self.low} to {self.high}", param, ctx)
        return number
