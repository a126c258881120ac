"""What errors say, and what machines read in them."""

import json
from copy import copy

from airflow_mm2_offsets.errors import (
    CheckpointError,
    ConfigurationError,
    Mm2OffsetsError,
    PositionError,
    as_class,
    error_from_json,
)
from airflow_mm2_offsets.operators.failing import final

BEYOND = PositionError(
    "position 7381 is beyond the end offset 7000; check the topic",
    cluster="source",
    topic="orders",
    partition=2,
    position=7381,
)


def test_the_message_begins_with_the_place() -> None:
    """Cluster, file or setting, then the topic-partition."""
    assert str(BEYOND) == (
        "source: orders[2]: position 7381 is beyond the end offset 7000; check the topic"
    )
    assert str(CheckpointError("is empty", file="s3://b/offsets/3")) == "s3://b/offsets/3: is empty"
    assert str(ConfigurationError("give a number")) == "give a number"


def test_machines_read_the_fields() -> None:
    """A position is text, for it may pass 2**53."""
    assert BEYOND.to_json() == {
        "kind": "PositionError",
        "message": str(BEYOND),
        "cluster": "source",
        "topic": "orders",
        "partition": 2,
        "position": "7381",
    }


def test_an_error_comes_back_from_json() -> None:
    """A task raises again what its trigger raised, with its class and its fields."""
    again = error_from_json(json.loads(json.dumps(BEYOND.to_json())))
    assert type(again) is PositionError
    assert (str(again), again.fields) == (str(BEYOND), BEYOND.fields)
    for unknown in ("Any", "ErrorFields", "Later"):
        assert type(error_from_json({"kind": unknown, "message": "no"})) is Mm2OffsetsError


def test_the_fields_survive_another_class_and_a_copy() -> None:
    """Also in Airflow's class for final errors, and in a copy, which pickle makes likewise."""
    for same in (
        as_class(CheckpointError, BEYOND, str(BEYOND)),
        final(BEYOND),
        copy(BEYOND),
    ):
        assert (str(same), same.fields) == (str(BEYOND), BEYOND.fields)
