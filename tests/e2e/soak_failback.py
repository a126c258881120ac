"""A job goes to the target and home five times under writes; ``make soak-failback``."""

from collections import Counter
from pathlib import Path

import pytest

from demo.environment import Demo
from tests.e2e.journey import Journey

pytestmark = pytest.mark.timeout(3600)

ROUND_TRIPS = 5


def test_five_times_there_and_home_again(tmp_path: Path) -> None:
    """Moved ten times with the producer on the source: each number is delivered once."""
    with Demo(tmp_path, print) as demo:
        journey = Journey(demo)
        journey.start()
        for _ in range(ROUND_TRIPS):
            journey.move("planned")
            journey.come_home()
        journey.end()
        delivered, produced = journey.numbers(), demo.producer.produced

    assert delivered == Counter(range(produced))


def test_home_by_a_mirror_that_was_turned_round(tmp_path: Path) -> None:
    """The producer has moved too, and MirrorMaker 2 copies back: each number is delivered once."""
    with Demo(tmp_path, print) as demo:
        journey = Journey(demo)
        journey.start()
        journey.move("planned")
        journey.turn_round()
        journey.move("failback", **journey.home)
        journey.end()
        delivered, produced = journey.numbers(), demo.producer.produced

    assert delivered == Counter(range(produced))
