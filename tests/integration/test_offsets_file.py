"""Starting offsets that are too long for an argument of a program, on Linux."""

import errno
import json
import subprocess
import sys

import pytest

from airflow_mm2_offsets.spark.offsets import format_offsets
from airflow_mm2_offsets.spark.offsets_file import MAX_ARGUMENT_BYTES

OFFSETS = format_offsets({"orders": {number: 7_381_000_000 + number for number in range(10_000)}})
LINUX_LIMIT = 131_072
JVM_OPTIONS = 1_400
"""Bytes of Spark's own, for its modules."""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other limits")
def test_linux_takes_the_longest_offsets_as_an_argument() -> None:
    """The limit passes with the option's name before it; what Linux refuses is longer."""
    subprocess.run(["/bin/true", f"--starting-offsets={'7' * MAX_ARGUMENT_BYTES}"], check=True)
    for refused in ("7" * LINUX_LIMIT, OFFSETS):
        with pytest.raises(OSError, match="Argument list too long") as caught:
            subprocess.run(["/bin/true", refused], check=True)
        assert caught.value.errno == errno.E2BIG


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other limits")
@pytest.mark.parametrize(("topics", "partitions"), [(1, 5_500), (470, 12)])
def test_yarn_takes_the_longest_offsets_in_its_command(topics: int, partitions: int) -> None:
    """It starts a driver by one argument of ``bash -c``, with each quotation mark escaped."""
    start = {number: 7_381_000_000 + number for number in range(partitions)}
    text = format_offsets({f"payments.orders.v1-{topic:05}": start for topic in range(topics)})
    assert MAX_ARGUMENT_BYTES * 0.9 < len(text) <= MAX_ARGUMENT_BYTES
    names, escaped = ",".join(json.loads(text)), text.replace('"', r"\"")
    command = f"/bin/true {'-' * JVM_OPTIONS} --topic '{names}' --starting-offsets '{escaped}'"
    subprocess.run(["/bin/bash", "-c", command], check=True)
