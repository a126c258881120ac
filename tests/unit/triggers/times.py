"""The deadline and the interval of the triggers in these tests."""

from typing import TypedDict


class Times(TypedDict):
    deadline: float
    poll_interval: float


TIMES: Times = {"deadline": 1795254056.2735019, "poll_interval": 0.25}
