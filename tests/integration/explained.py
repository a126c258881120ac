"""A wrong set-up, and the test that its error explains it; docs/security.md has tables of them."""

import re
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import pytest

from airflow_mm2_offsets.core import TopicPartition
from airflow_mm2_offsets.errors import Mm2OffsetsError
from airflow_mm2_offsets.kafka.cluster import KafkaCluster

TIMEOUTS = (3.0, 30.0)
"""Seconds for an answer; a busy broker needs the longer time before it says what is wrong."""
SLACK = 30.0
"""Seconds that a busy machine is late; without a deadline librdkafka goes on for ever."""
_PAGE = Path(__file__).parents[2] / "docs" / "security.md"
_HEADER = "| what is wrong | the error says | property |\n|---|---|---|\n"
_ROW = re.compile(r"^\| ([^|`]+) \| `([^`]+)` \| `?([^|`]*)`? \|$", re.MULTILINE)

GroundT = TypeVar("GroundT")


class WrongSetup(NamedTuple, Generic[GroundT]):
    """A wrong set-up, and what the error must say."""

    name: str
    properties: Callable[[GroundT], Mapping[str, object]]
    setting: str
    """The property that the error's field ``setting`` names; empty if it is not one."""
    cause: str
    """In the message, as it stands."""
    step: str
    """In the message, as it stands."""

    @property
    def row(self) -> tuple[str, str, str]:
        """Its row of the page's table."""
        return self.name, self.cause, self.setting


def assert_explained(
    wrong: WrongSetup[GroundT], ground: GroundT, topic: str, secrets: Iterable[str]
) -> None:
    """Cause, property and next step are named in finite time; no secret is, in no traceback."""
    for timeout in TIMEOUTS:
        started = time.monotonic()
        with pytest.raises(Mm2OffsetsError) as caught:
            _ask(wrong.properties(ground), topic, timeout)
        assert time.monotonic() - started < timeout + SLACK
        error = caught.value
        if wrong.cause in str(error):
            break
    assert wrong.cause in str(error)
    assert wrong.step in str(error)
    if wrong.setting:
        assert error.fields.get("setting") == wrong.setting
    shown = "".join(traceback.format_exception(error))
    shown = re.sub(r"^ .*$", "", shown, flags=re.MULTILINE)  # lines of the source
    assert not [secret for secret in secrets if secret in shown]


def _ask(config: Mapping[str, object], topic: str, timeout: float) -> None:
    cluster = KafkaCluster(name="source", config=config, timeout=timeout)
    cluster.describe()
    # The address that a broker advertises is used by requests about its partitions.
    cluster.watermarks([TopicPartition(topic, 0)])


def documented(heading: str) -> list[tuple[str, str, str]]:
    """Return the rows of the page's table under a heading."""
    _, _, section = _PAGE.read_text().partition(f"\n{heading}\n")
    _, _, table = section.partition(_HEADER)
    rows, _, _ = table.partition("\n\n")
    return [(name, cause, setting.strip()) for name, cause, setting in _ROW.findall(rows)]
