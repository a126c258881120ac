"""What a change of a connector's offsets means; MirrorUtils.wrapPartition: cluster, topic, number.

Connect keeps the offsets of an earlier ``source.cluster.alias`` beside those of today's.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_mm2_offsets.connectors.offsets import find_changes, require_words
from airflow_mm2_offsets.errors import ConfigurationError
from airflow_mm2_offsets.testing.simulation import Mm2Simulation, simulated_mm2


@pytest.fixture
def mm2() -> Iterator[Mm2Simulation]:
    """A source, now of alias source, with 100 records."""
    with simulated_mm2() as simulation:
        simulation.source.create_topic("orders", partitions=1)
        simulation.source.produce("orders", 0, [b"x"] * 100)
        yield simulation


def entry(last: int, alias: str = "source") -> dict[str, Any]:
    """Return an offset as Connect tells it."""
    partition = {"cluster": alias, "topic": "orders", "partition": 0}
    return {"partition": partition, "offset": {"offset": last}}


def changes(mm2: Mm2Simulation, backup: object, after: object) -> list[str]:
    """Return the changes as messages show them."""
    return [str(each) for each in find_changes(mm2.pair, "c", backup, after)]  # type: ignore[arg-type]


@pytest.mark.parametrize("old_first", [True, False])
@pytest.mark.parametrize(("last", "word"), [(10, "copies again"), (90, "skips records")])
def test_an_earlier_alias_hides_no_change(
    mm2: Mm2Simulation, last: int, word: str, *, old_first: bool
) -> None:
    """Whichever entry comes last, the change is told and needs its word."""
    kept = entry(99, "eu")
    backup = [kept, entry(49)] if old_first else [entry(49), kept]
    after = [kept, entry(last)] if old_first else [entry(last), kept]
    found = find_changes(mm2.pair, "c", backup, after)
    assert [str(each) for each in found] == [f"orders[0]: 49 -> {last}"]
    with pytest.raises(ConfigurationError, match=word):
        require_words(found, [])


def test_a_backup_with_an_earlier_alias_can_be_put_back(mm2: Mm2Simulation) -> None:
    """A reset takes the offsets of both aliases; each is named, and both may come back."""
    backup = [entry(49), entry(999, "eu")]
    assert changes(mm2, backup, []) == [
        "orders[0] of alias eu: 999 -> none",
        "orders[0]: 49 -> none",
    ]
    assert changes(mm2, [], backup) == [
        "orders[0] of alias eu: none -> 999",
        "orders[0]: none -> 49",
    ]


def test_offsets_of_other_aliases_alone_are_another_connectors(mm2: Mm2Simulation) -> None:
    """Nothing of them would count."""
    with pytest.raises(ConfigurationError, match="are of eu, us, and the connector copies from so"):
        changes(mm2, [entry(49)], [entry(49), entry(5, "us"), entry(5, "eu")])
