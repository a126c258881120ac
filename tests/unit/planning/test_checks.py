"""What stands in the way of a failover, one sentence each."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from airflow_mm2_offsets.planning.checks import find_problems
from tests.support.pairs import Pair, connect

RESTART = (
    "mend what its trace names (GET /connectors/mirror/status) and restart it (POST "
    "/connectors/mirror/restart?includeTasks=true)"
)
LOOK = "see whether the workers run or are rebalancing, and check again"
CORRECT = "its topics setting matches no topic of the source: correct it"


@pytest.fixture
def copied(clusters: Pair) -> Pair:
    """Return clusters where all of orders was copied."""
    for partition in range(4):
        clusters.write("orders", range(10), partition)
        clusters.copy("orders", range(10), partition)
        clusters.sync("orders", (0, 0), (9, 9), partition=partition)
    return clusters


POSITIONS = {"orders": dict.fromkeys(range(4), 5)}


@pytest.mark.parametrize(
    ("state", "tasks", "sentence"),
    [
        ("RUNNING", [{"id": 0, "state": "RUNNING"}], None),
        (
            "PAUSED",
            [{"id": 0, "state": "PAUSED"}],
            "connector mirror is PAUSED; resume it (PUT /connectors/mirror/resume)",
        ),
        (
            "FAILED",
            [],
            f"connector mirror is FAILED; {RESTART}",
        ),
        (
            "RUNNING",
            [
                {"id": 0, "state": "RUNNING"},
                {"id": 1, "state": "FAILED", "trace": "E: too large\n\tat x"},
            ],
            f"task 1 of connector mirror is FAILED (E: too large); {RESTART}",
        ),
        (
            "RUNNING",
            [{"id": 2, "state": "UNASSIGNED"}],
            f"task 2 of connector mirror is UNASSIGNED; {LOOK}",
        ),
        (
            "RUNNING",
            [],
            f"connector mirror runs without a task; {CORRECT}",
        ),
    ],
)
def test_the_state_of_the_connector(
    copied: Pair, state: str, tasks: list[Mapping[str, Any]], sentence: str | None
) -> None:
    """What does not run is named with its state, its reason, and what makes it run."""
    pair = replace(copied.pair, connect=connect(state=state, tasks=tasks))
    wanted = [f"Connect at http://connect:8083: {sentence}"] if sentence else []
    assert find_problems(pair, POSITIONS) == wanted


def test_every_partition_without_an_answer_is_named(copied: Pair) -> None:
    """Each refused partition gives a sentence with its numbers and the next step."""
    positions = {"orders": {**POSITIONS["orders"], 3: 11}}
    (beyond,) = find_problems(copied.pair, positions)
    assert beyond == (
        "orders[3] at 11: position 11 lies beyond the source's end 10: it is of another cluster "
        "or topic, or the topic was recreated; check the checkpoint location and the source's "
        "connection"
    )


def test_a_topic_that_target_or_source_lacks(copied: Pair) -> None:
    """A topic is named where it is missing, and nothing else is asked about it."""
    copied.write("only-here", range(3))
    (problem,) = find_problems(copied.pair, {"only-here": dict.fromkeys(range(4), 0)})
    assert problem.startswith("target has no topic only-here: see that the topics setting")


def test_a_partition_that_was_never_copied(copied: Pair) -> None:
    """A partition with records and without a sync is a problem while the job still runs."""
    copied.write("unsynced", range(3))
    copied.copy("unsynced", range(1))
    (problem,) = find_problems(copied.pair, {"unsynced": {0: 3, 1: 0, 2: 0, 3: 0}})
    assert problem.startswith("unsynced[0] at 3: no offset sync is known")
    assert problem.endswith("if its first record is new, check again in a minute")
