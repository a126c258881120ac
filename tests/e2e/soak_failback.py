"""A job goes to the target and home twice under writes; ``make soak NAME=failback``."""

from collections import Counter
from pathlib import Path

import pytest

from demo.environment import Demo
from tests.e2e.journey import Journey
from tests.soaks import LONGEST, add_figures

pytestmark = pytest.mark.timeout(LONGEST)

ROUND_TRIPS = 2


def _add_figures(journey: Journey, delivered: Counter[int], produced: int) -> None:
    add_figures(
        moves=len(journey.folders) - 1,
        numbers=produced,
        lost=produced - len(delivered),
        read_again=delivered.total() - len(delivered),
    )


def test_there_and_home_again_and_again(tmp_path: Path) -> None:
    """Moved with the producer on the source: each number is delivered once."""
    with Demo(tmp_path, print) as demo:
        journey = Journey(demo)
        journey.start()
        for _ in range(ROUND_TRIPS):
            journey.move()
            journey.move()
        journey.end()
        delivered, produced = journey.numbers(), demo.producer.produced
    _add_figures(journey, delivered, produced)

    assert delivered == Counter(range(produced))


def test_home_by_a_mirror_that_was_turned_round(tmp_path: Path) -> None:
    """The producer has moved too, and MirrorMaker 2 copies back: each number is delivered once."""
    with Demo(tmp_path, print) as demo:
        journey = Journey(demo)
        journey.start()
        journey.move()
        journey.turn_round()
        journey.move(to="source")
        journey.end()
        delivered, produced = journey.numbers(), demo.producer.produced
    _add_figures(journey, delivered, produced)

    assert delivered == Counter(range(produced))
