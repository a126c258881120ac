"""A job goes to the target and comes home, while records are written."""

from collections import Counter
from pathlib import Path

import pytest

from demo.environment import Demo
from tests.e2e.drivers import DriverWatch
from tests.e2e.journey import Journey, stay

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_there_and_home_again(tmp_path: Path) -> None:
    """The producer stays on the source: by the same syncs with sides exchanged, none is lost.

    Each number is delivered once, and never do two jobs run at a time.
    """
    demo = Demo(tmp_path, print)
    with demo, DriverWatch(demo, stay(demo, 1), stay(demo, 2)) as watch:
        journey = Journey(demo)
        journey.start()
        journey.move("planned")
        journey.come_home()
        journey.end()
        delivered, produced = journey.numbers(), demo.producer.produced

    assert delivered == Counter(range(produced))
    assert watch.most == Counter({"source": 1, "stay-1": 1, "stay-2": 1, "together": 1})
