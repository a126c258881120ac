"""Decides about positions by what the groups' cluster says right before the commit, and commits."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.group_offsets import (
    CommitStatus,
    GroupDecision,
    GroupPosition,
    GroupRules,
)
from airflow_mm2_offsets.core.group_rules import decide_group, refuse_shared
from airflow_mm2_offsets.kafka.cluster import KafkaCluster
from airflow_mm2_offsets.kafka.group_commits import CommitErrors
from airflow_mm2_offsets.kafka.group_requests import batched
from airflow_mm2_offsets.kafka.groups import GroupsRead, GroupStates

_AT_A_TIME = 100
"""Groups that are checked and committed together: the fewer, the less can change in between."""
_PATIENCE = 1.0
"""Seconds until the groups without a stable answer are put off, until all others are committed."""

_PENDING = (
    "a transaction that commits for the group has not ended: an exactly-once consumer may have "
    "moved here; run again later, or see kafka-transactions.sh find-hanging"
)


def commit_positions(
    cluster: KafkaCluster,
    positions: Iterable[GroupPosition],
    rules: GroupRules,
) -> tuple[GroupDecision, ...]:
    """Decide about each position, and commit what is to be committed.

    Some groups at a time are checked and committed at once. A group that gets members in between is
    refused by the broker; the others go on. A group with an open transaction is waited for at last.

    Raises:
        ClusterRefusedError: A right is missing.
        ClusterUnreachableError: The cluster does not answer; run it again, nothing is done twice.
    """
    by_group: dict[str, list[GroupPosition]] = defaultdict(list)
    for each in refuse_shared(positions):
        by_group[each.group].append(each)
    watermarks = existing_watermarks(cluster, chain.from_iterable(by_group.values()))
    commits = _GroupCommits(cluster, by_group, watermarks, rules)
    pending = commits.commit(by_group, patience=_PATIENCE)
    for group in commits.commit(pending, patience=math.inf):
        commits.refuse_pending(group)
    return tuple(chain.from_iterable(commits.decisions[group] for group in sorted(by_group)))


def existing_watermarks(
    cluster: KafkaCluster, positions: Iterable[GroupPosition]
) -> dict[TopicPartition, Watermarks]:
    """Return the watermarks of the positions' topic-partitions that exist."""
    keys = {each.topic_partition for each in positions}
    topics = cluster.topics({each.topic for each in keys})
    return cluster.watermarks(
        each
        for each in keys
        if each.topic in topics and each.partition < topics[each.topic].partitions
    )


class _GroupCommits:
    """Checks and commits groups, some at a time, and keeps what was decided about each."""

    def __init__(
        self,
        cluster: KafkaCluster,
        positions: Mapping[str, list[GroupPosition]],
        watermarks: Mapping[TopicPartition, Watermarks],
        rules: GroupRules,
    ) -> None:
        self._cluster = cluster
        self._positions = positions
        self._watermarks = watermarks
        self._rules = rules
        self.decisions: dict[str, list[GroupDecision]] = {}

    def commit(self, groups: Iterable[str], *, patience: float) -> list[str]:
        """Decide about groups and commit for them; return those that are pending.

        A check that had to wait for one group is old for all others: it is made again without it.
        """
        pending: list[str] = []
        for some in batched(sorted(groups), _AT_A_TIME):
            left = {group: self._partitions(group) for group in some}
            while left:
                states = self._cluster.group_states(left, patience=patience)
                if not states.pending:
                    self._commit(left, states)
                    break
                pending += sorted(states.pending)
                left = {group: left[group] for group in left.keys() - states.pending}
        return pending

    def refuse_pending(self, group: str) -> None:
        """Decide that nothing is committed for a group that may get a transaction's commit."""
        self.decisions[group] = [
            GroupDecision(position=each, status=CommitStatus.REFUSED, reason=_PENDING)
            for each in self._positions[group]
        ]

    def _partitions(self, group: str) -> set[TopicPartition]:
        """Return which of a group's topic-partitions exist: a broker refuses others."""
        return {each.topic_partition for each in self._positions[group]} & self._watermarks.keys()

    def _commit(self, groups: Iterable[str], states: GroupStates) -> None:
        decided = {group: self._decide(group, states) for group in groups}
        self.decisions |= decided if self._rules.dry_run else _write(self._cluster, decided)

    def _decide(self, group: str, states: GroupStates) -> list[GroupDecision]:
        positions = self._positions[group]
        if (refusal := states.refusals.get(group)) is not None:
            reason = f"the broker does not tell what the group has committed: {refusal}"
            return [
                GroupDecision(position=each, status=CommitStatus.FAILED, reason=reason)
                for each in positions
            ]
        return decide_group(
            positions,
            states.offsets.get(group, {}),
            self._watermarks,
            members=states.members[group],
            rules=self._rules,
        )


def _write(
    cluster: KafkaCluster, decided: Mapping[str, list[GroupDecision]]
) -> dict[str, list[GroupDecision]]:
    """Commit, and return what is true afterwards: another commit may have come at once."""
    commits = {
        group: {each.position.topic_partition: each.commit for each in decisions if each.commit}
        for group, decisions in decided.items()
    }
    commits = {group: some for group, some in commits.items() if some}
    errors = cluster.commit_group_offsets(commits)
    found = cluster.group_offsets(commits)
    return {
        group: [_after_commit(each, errors, found) for each in decisions]
        for group, decisions in decided.items()
    }


def _after_commit(
    decision: GroupDecision, errors: CommitErrors, found: GroupsRead
) -> GroupDecision:
    group, key = decision.position.group, decision.position.topic_partition
    if decision.commit is None:
        return decision
    if (error := errors.get((group, key))) is not None:
        return decision.failed(error)
    if (refusal := found.refusals.get(group)) is not None:
        return decision.failed(f"it was committed, and the broker does not tell it: {refusal}")
    return decision.read_back(found.offsets.get(group, {}).get(key))
