"""Names of topics, and what counts as a position."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core import Naming, ReplicationPolicy, SyncsLocation, check_positions
from airflow_mm2_offsets.core.positions import MAX_OFFSET, TopicPartition, check_position
from airflow_mm2_offsets.errors import PositionError


@pytest.mark.parametrize(
    ("policy", "separator", "name"),
    [
        (ReplicationPolicy.IDENTITY, ".", "orders"),
        (ReplicationPolicy.IDENTITY, "_", "orders"),
        (ReplicationPolicy.DEFAULT, ".", "east.orders"),
        (ReplicationPolicy.DEFAULT, "_", "east_orders"),
    ],
)
def test_the_target_topic(policy: ReplicationPolicy, separator: str, name: str) -> None:
    """The default policy puts the source's alias before the name; identity leaves it."""
    naming = Naming(source_alias="east", target_alias="west", policy=policy, separator=separator)
    assert naming.target_topic("orders") == name


@pytest.mark.parametrize("topic", ["heartbeats", "device-heartbeats"])
def test_identity_renames_what_looks_like_heartbeats(topic: str) -> None:
    """``IdentityReplicationPolicy.looksLikeHeartbeat``: the name ends in ``heartbeats``."""
    naming = Naming(
        source_alias="east", target_alias="west", policy=ReplicationPolicy.IDENTITY, separator="_"
    )
    assert naming.target_topic(topic) == f"east_{topic}"
    assert naming.exchanged().target_topic(f"east_{topic}") == topic


@pytest.mark.parametrize(
    ("location", "separator", "internal", "name"),
    [
        (SyncsLocation.SOURCE, ".", True, "mm2-offset-syncs.west.internal"),
        (SyncsLocation.TARGET, ".", True, "mm2-offset-syncs.east.internal"),
        (SyncsLocation.SOURCE, "_", True, "mm2-offset-syncs_west_internal"),
        (SyncsLocation.TARGET, "_", False, "mm2-offset-syncs.east.internal"),
    ],
)
def test_the_syncs_topic(
    location: SyncsLocation, separator: str, *, internal: bool, name: str
) -> None:
    """It bears the other cluster's alias, and the separator where internal topics use it."""
    naming = Naming(
        source_alias="east",
        target_alias="west",
        separator=separator,
        internal_separator=internal,
    )
    assert naming.syncs_topic(location) == name


@given(st.integers(0, MAX_OFFSET))
def test_a_position_may_be_text(position: int) -> None:
    """XCom and JSON carry large numbers as text: both are the same position."""
    assert check_position("orders", 0, position) == check_position("orders", 0, str(position))


@pytest.mark.parametrize(
    "position",
    [-1, -2, 2**63, "-1", str(2**63), "", " 1", "1.0", "\u0661", "1_0", 1.0, True, None, [1]],
)
def test_no_position(position: object) -> None:
    """Negative, beyond int64, fractional, or no number: an error that names the place."""
    with pytest.raises(PositionError, match=r"orders\[7\]"):
        check_position("orders", 7, position)


def test_positions_are_sorted_numbers() -> None:
    """Text of JSON becomes numbers; topics and partitions come in order."""
    given_positions = {"b": {"10": "3", 9: 4}, "a": {0: 2**60}}
    checked = check_positions(given_positions)
    assert checked == {"a": {0: 2**60}, "b": {9: 4, 10: 3}}
    assert [*checked] == ["a", "b"]
    assert [*checked["b"]] == [9, 10]


@pytest.mark.parametrize(
    "given_positions",
    [
        None,
        [],
        "orders",
        {},
        {"orders": {}},
        {"orders": 5},
        {"orders": [5]},
        {5: {0: 1}},
        {"": {0: 1}},
        {"orders": {"zero": 1}},
        {"orders": {-1: 1}},
        {"orders": {"-1": 1}},
        {"orders": {2**31: 1}},
        {"orders": {"2147483648": 1}},
        {"orders": {True: 1}},
        {"orders": {0: None}},
        {"orders": {0: -2}},
        {"orders": {0: 2**63}},
    ],
)
def test_no_positions(given_positions: object) -> None:
    """Whatever is no map of topics to partitions to offsets is refused."""
    with pytest.raises(PositionError):
        check_positions(given_positions)


def test_a_partition_given_twice_is_refused() -> None:
    """A number and its text are one partition: two positions for it contradict each other."""
    with pytest.raises(PositionError, match="orders"):
        check_positions({"orders": {0: 5, "0": 9}})


@pytest.mark.parametrize("digits", ["9" * 5000, "1" * 4301])
def test_digits_without_end_are_refused(digits: str) -> None:
    """More digits than Python turns into a number are a PositionError as well."""
    with pytest.raises(PositionError):
        check_positions({"orders": {0: digits}})
    with pytest.raises(PositionError):
        check_positions({"orders": {digits: 0}})


def test_a_topic_partition_prints_as_messages_name_it() -> None:
    """As text and in a format, also padded; it equals, hashes and sorts as the plain tuple."""
    orders = TopicPartition("orders", 3)
    assert (str(orders), f"{orders}", f"{orders!s:>10}") == ("orders[3]", "orders[3]", " orders[3]")
    by_tuple: dict[tuple[str, int], int] = {orders: 1}
    assert by_tuple["orders", 3] == 1
    assert pickle.loads(pickle.dumps(orders)) == ("orders", 3)  # noqa: S301 - our own bytes
