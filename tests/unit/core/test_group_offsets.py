"""The rules by which offsets are committed for consumer groups."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.group_offsets import (
    CommitStatus,
    GroupCommit,
    GroupDecision,
    GroupPosition,
    GroupRules,
)
from airflow_mm2_offsets.core.group_rules import decide_group, refuse_shared

KEY, OTHER_KEY = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOG = Watermarks(low=10, high=100)
FOLLOW = GroupRules(allow_rewind=True)
OTHERS = GroupRules(overwrite_others=True)
OFFSETS = st.integers(0, 120)


def _position(
    offset: int | None = 50, *, source: int = 70, group: str = "billing"
) -> GroupPosition:
    return GroupPosition(
        group=group,
        topic_partition=KEY,
        origin=f"group {group} of eu",
        source_offset=source,
        offset=offset,
        reason="is the sync 70 -> 50",
        max_reread=3,
    )


def _decide(
    current: GroupCommit | None,
    *,
    position: GroupPosition | None = None,
    members: int = 0,
    log: Watermarks | None = LOG,
    rules: GroupRules | None = None,
) -> GroupDecision:
    (decision,) = decide_group(
        [position or _position()],
        {} if current is None else {KEY: current},
        {} if log is None else {KEY: log},
        members=members,
        rules=rules or GroupRules(),
    )
    return decision


def _ours(offset: int, *, source: int = 70) -> GroupCommit:
    return _position(offset, source=source).marked()


def test_a_first_commit_has_our_marker() -> None:
    """A later run knows it as ours, by origin and offsets."""
    decision = _decide(None)
    assert decision.status is CommitStatus.COMMITTED
    assert decision.commit == GroupCommit(
        offset=50, metadata="airflow-mm2-offsets/1 source=70 offset=50 origin=group billing of eu"
    )
    assert decision.max_reread == 3


def test_a_commit_of_minus_one_is_none() -> None:
    """Kafka answers -1 where a group has committed nothing."""
    assert _decide(GroupCommit(offset=-1)).status is CommitStatus.COMMITTED


@pytest.mark.parametrize(
    ("position", "log", "members", "reason"),
    [
        (_position(None), LOG, 0, "is the sync 70 -> 50"),
        (_position(), None, 0, "does not exist on the cluster of the group"),
        (_position(9), LOG, 0, "offset 9 is below the first offset 10"),
        (_position(101), LOG, 0, "offset 101 is beyond the end offset 100"),
        (_position(), LOG, 2, "the group has 2 members"),
    ],
)
@pytest.mark.parametrize("rules", [GroupRules(), FOLLOW, OTHERS])
def test_refused(
    position: GroupPosition, log: Watermarks | None, members: int, reason: str, rules: GroupRules
) -> None:
    """Whatever the user allows, and whatever somebody else has committed."""
    others = replace(_position(20), origin="group billing of asia").marked()
    for current in (None, others, GroupCommit(offset=20)):
        decision = _decide(current, position=position, members=members, log=log, rules=rules)
        assert decision.status is CommitStatus.REFUSED
        assert decision.commit is None
        assert reason in decision.reason


@pytest.mark.parametrize("position", [_position(None), _position(9), _position(101)])
@pytest.mark.parametrize("offset", [10, 20, 100])
def test_a_refusal_keeps_our_earlier_commit_alive(position: GroupPosition, offset: int) -> None:
    """It is written again: Kafka would expire it (KIP-211), and the group would lose its place."""
    decision = _decide(_ours(offset), position=position)
    assert decision.status is CommitStatus.REFUSED
    assert decision.commit == _ours(offset)
    assert f"our earlier commit {offset} stays" in decision.reason
    assert decision.max_reread is None


@pytest.mark.parametrize(
    ("offset", "log", "members"), [(9, LOG, 0), (101, LOG, 0), (20, None, 0), (20, LOG, 1)]
)
def test_a_refusal_writes_nothing_that_is_not_valid(
    offset: int, log: Watermarks | None, members: int
) -> None:
    """Our earlier commit is outside of the log, its topic is gone, or the group has members."""
    decision = _decide(_ours(offset), position=_position(None), log=log, members=members)
    assert decision.status is CommitStatus.REFUSED
    assert decision.commit is None


def test_a_consumers_commit_is_kept_until_the_user_says_so() -> None:
    """The group may have moved over: a commit without our marker is somebody else's."""
    consumers = GroupCommit(offset=20, metadata="")
    assert _decide(consumers).status is CommitStatus.KEPT
    assert "overwrite_others" in _decide(consumers).reason
    assert _decide(consumers, rules=OTHERS).status is CommitStatus.COMMITTED
    ahead = GroupCommit(offset=60)
    assert _decide(ahead, rules=OTHERS).status is CommitStatus.KEPT


def test_a_commit_at_the_same_offset_is_taken_over() -> None:
    """With ``overwrite_others`` once, the whole group is ours, its quiet partitions too."""
    decision = _decide(GroupCommit(offset=50), rules=OTHERS)
    assert decision.status is CommitStatus.COMMITTED
    assert decision.commit == _position().marked()


def _beside(
    other: GroupCommit, current: GroupCommit | None, rules: GroupRules | None = None
) -> GroupDecision:
    """Decide about a position while the group has another commit elsewhere."""
    commits = {OTHER_KEY: other} | ({} if current is None else {KEY: current})
    (decision,) = decide_group(
        [_position()], commits, {KEY: LOG}, members=0, rules=rules or GroupRules()
    )
    return decision


@pytest.mark.parametrize("current", [None, _ours(40), GroupCommit(offset=40)])
def test_one_commit_of_a_consumer_shows_that_the_group_has_moved(
    current: GroupCommit | None,
) -> None:
    """It commits only the partitions that it has read: the others would be moved under it."""
    decision = _beside(GroupCommit(offset=5), current)
    assert decision.status is CommitStatus.KEPT
    assert ("on orders[1]" if current != GroupCommit(offset=40) else "on orders[0]") in (
        decision.reason
    )
    assert _beside(GroupCommit(offset=5), current, OTHERS).status is CommitStatus.COMMITTED


def test_our_commit_of_a_moved_group_does_not_expire() -> None:
    """It is written again where it is: its consumer would skip records without it (KIP-211)."""
    assert _beside(GroupCommit(offset=5), _ours(40)).commit == _ours(40)
    assert _beside(GroupCommit(offset=5), None).commit is None


def test_another_source_may_commit_for_other_partitions() -> None:
    """A group that reads the copies of two clusters is synced from both."""
    asia = replace(_position(5), origin="group billing of asia", topic_partition=OTHER_KEY)
    assert _beside(asia.marked(), _ours(40)).status is CommitStatus.COMMITTED


def test_what_is_there_after_the_commit_is_told() -> None:
    """Kafka knows no conditional commit: a consumer's or another run's may come at once."""
    decision = _decide(None)
    assert decision.read_back(_ours(50)) == decision
    replaced = decision.read_back(GroupCommit(offset=60))
    assert (replaced.status, replaced.commit) == (CommitStatus.KEPT, None)
    assert "50 was committed, and 60 is there now" in replaced.reason
    assert decision.read_back(None).status is CommitStatus.FAILED
    refused = _decide(None, members=1)
    assert refused.read_back(GroupCommit(offset=60)) == refused


def test_a_copied_marker_is_not_ours() -> None:
    """MirrorMaker 2 copies the metadata of a source's commit: its offset is another one."""
    copied = GroupCommit(offset=20, metadata=_ours(70).metadata)
    assert _decide(copied).status is CommitStatus.KEPT


def test_another_origin_is_refused() -> None:
    """Two sources, two groups or two checkpoints would overwrite each other in turns."""
    other = replace(_position(20), origin="group billing of asia").marked()
    decision = _decide(other)
    assert decision.status is CommitStatus.REFUSED
    assert "group billing of asia" in decision.reason


@pytest.mark.parametrize("second_topic", ["orders", "clicks"])
def test_origins_that_share_a_group_are_refused(second_topic: str) -> None:
    """All of them, whether they share a topic-partition or not, and nobody else."""
    first, other = _position(), _position(group="other")
    second = replace(
        first,
        origin="group billing-eu of eu",
        topic_partition=TopicPartition(second_topic, 0),
    )
    refused = refuse_shared([first, second, other])
    assert [each.offset for each in refused] == [None, None, 50]
    assert "group billing of eu, group billing-eu of eu" in refused[0].reason


def test_ours_moves_forward() -> None:
    """To a higher offset, whatever the origin's position was."""
    for source in (60, 70, 80):
        decision = _decide(_ours(40, source=source))
        assert decision.status is CommitStatus.COMMITTED
        assert decision.commit == _position().marked()


def test_ours_is_written_again() -> None:
    """Kafka expires the offsets of an empty group (KIP-211)."""
    decision = _decide(_ours(50, source=65))
    assert decision.status is CommitStatus.UNCHANGED
    assert decision.commit == _position().marked()


@pytest.mark.parametrize("rules", [GroupRules(), FOLLOW])
def test_less_knowledge_moves_nothing_back(rules: GroupRules) -> None:
    """An earlier answer for an earlier position lost nothing: it still loses nothing."""
    decision = _decide(_ours(60, source=70), rules=rules)
    assert decision.status is CommitStatus.UNCHANGED
    assert decision.commit == _ours(60, source=70)
    assert decision.max_reread is None


def test_a_rewound_origin_is_followed_if_the_user_says_so() -> None:
    """An older state of the group looks the same: by default nothing moves back."""
    before = _ours(60, source=80)
    decision = _decide(before)
    assert decision.status is CommitStatus.UNCHANGED
    assert "allow_rewind" in decision.reason
    assert decision.commit == before
    followed = _decide(before, rules=FOLLOW)
    assert followed.status is CommitStatus.COMMITTED
    assert followed.commit == _position().marked()


def test_a_commit_beyond_the_end_is_a_recreated_topics() -> None:
    """A consumer that starts there would be sent to the end."""
    decision = _decide(_ours(101))
    assert decision.status is CommitStatus.REFUSED
    assert "recreated" in decision.reason


@given(
    st.none() | st.builds(_ours, OFFSETS, source=OFFSETS) | st.builds(GroupCommit, offset=OFFSETS),
    st.builds(_position, OFFSETS, source=OFFSETS),
    st.integers(0, 2),
    st.builds(GroupRules, overwrite_others=st.booleans()),
)
def test_nothing_moves_back(
    current: GroupCommit | None, position: GroupPosition, members: int, rules: GroupRules
) -> None:
    """Without allow_rewind no commit is below the one before, and none is outside of the log."""
    decision = _decide(current, position=position, members=members, rules=rules)
    if decision.commit is not None:
        assert members == 0
        assert current is None or decision.commit.offset >= current.offset
        assert decision.commit.offset <= LOG.high


@given(
    st.dictionaries(
        st.sampled_from([KEY, OTHER_KEY, TopicPartition("local", 0)]),
        st.builds(_ours, OFFSETS, source=OFFSETS) | st.builds(GroupCommit, offset=OFFSETS),
    ),
    st.builds(_position, st.none() | OFFSETS, source=OFFSETS),
    st.integers(0, 1),
    st.builds(GroupRules, allow_rewind=st.booleans()),
)
def test_a_group_with_a_commit_of_somebody_else_is_not_moved(
    commits: dict[TopicPartition, GroupCommit],
    position: GroupPosition,
    members: int,
    rules: GroupRules,
) -> None:
    """Whatever else is committed: at most our own commit is written again as it is."""
    (decision,) = decide_group([position], commits, {KEY: LOG}, members=members, rules=rules)
    if any(not each.metadata for each in commits.values()):
        assert decision.status in {CommitStatus.KEPT, CommitStatus.REFUSED}
        assert decision.commit is None or (
            decision.commit == commits[KEY] and commits[KEY].metadata
        )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_name_of_a_group_is_read_back(group: str) -> None:
    """Kafka takes every character in a group's name, line breaks too."""
    position = _position(group=group)
    assert _decide(position.marked(), position=position).status is CommitStatus.UNCHANGED
