"""Changes the offsets of a stopped MirrorSourceConnector, with a backup, and says what that means.

Connect keeps the LAST copied source offset of a topic-partition (``MirrorUtils``, KIP-875). Lower
it, and MirrorMaker 2 copies records a second time, behind what the target holds. Raise it, and
MirrorMaker 2 skips records. Both are seen in the offset syncs, and a translation takes care of
them; but it needs more evidence then, and its ranges are wider.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.connect.admin import ConnectorAdmin, TargetState
from airflow_mm2_offsets.connect.client import ConnectClient
from airflow_mm2_offsets.connectors.apply import connect_of
from airflow_mm2_offsets.connectors.entries import Entries, SourcePartition, by_partition, keyed
from airflow_mm2_offsets.core import TopicPartition, Watermarks
from airflow_mm2_offsets.core.positions import MAX_OFFSET
from airflow_mm2_offsets.errors import ConfigurationError, ConnectError, PositionError

_MOST_SHOWN = 10
"""Changes that a message names one by one."""


class Effect(StrEnum):
    """What MirrorMaker 2 does after a change of offsets."""

    COPIES_AGAIN = "copies again"
    SKIPS_RECORDS = "skips records"


_MEANING: Mapping[Effect, str] = {
    Effect.COPIES_AGAIN: (
        "MirrorMaker 2 copies these records a second time, behind those that the target holds. "
        "Every reader of the target reads them twice. Until the new copies have come as far as "
        "the old ones, positions are translated to wide ranges (basis copying-again)"
    ),
    Effect.SKIPS_RECORDS: (
        "MirrorMaker 2 does not copy the records in between. Those that were not copied before "
        "never reach the target, and no plan can tell. Where they were, older copies count"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    """The change of one partition's last copied offset; None: there is none."""

    partition: TopicPartition
    before: int | None
    after: int | None
    other_alias: str | None = None
    """The source's alias, if it is not the pair's: of before it was renamed."""

    @property
    def subject(self) -> str:
        """The partition, with its alias if that is not the pair's."""
        alias = f" of alias {self.other_alias}" if self.other_alias is not None else ""
        return f"{self.partition}{alias}"

    @property
    def effect(self) -> Effect | None:
        """What MirrorMaker 2 then does; None: nothing changes."""
        before, after = self.before, self.after
        if before == after:
            return None
        is_lower = before is not None and (after is None or after < before)
        return Effect.COPIES_AGAIN if is_lower else Effect.SKIPS_RECORDS

    def __str__(self) -> str:
        """Show both numbers."""
        return f"{self.subject}: {_shown(self.before)} -> {_shown(self.after)}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON; offsets are text."""
        return {
            "partition": self.subject,
            "before": None if self.before is None else str(self.before),
            "after": None if self.after is None else str(self.after),
            "effect": self.effect,
        }


def read_stopped_offsets(connect: ConnectClient, connector: str) -> list[dict[str, Any]]:
    """Return all offsets of a stopped connector, as a backup that can be put back.

    Raises:
        ConnectError: It is not STOPPED: its offsets would change under the reader.
        ClusterUnreachableError: Connect did not answer.
    """
    state = connect.status(connector).state
    if state != TargetState.STOPPED:
        raise ConnectError(
            f"Connect at {connect.url}, connector {connector} is {state}: its offsets go on while "
            f"they are read. Stop it first (SetConnectorStateOperator)"
        )
    return [dict(entry) for entry in connect.offset_entries(connector)]


def find_changes(
    pair: ClusterPair, connector: str, backup: Entries, after: Entries
) -> list[OffsetChange]:
    """Return what changes from a backup to ``after``, by partition.

    Raises:
        ConfigurationError: ``after`` only changes partitions of other source aliases.
        PositionError: An offset is not one of the source's partition, or the partition does not
            exist: MirrorMaker 2 would skip records that are yet to come, or fail.
        ClusterUnreachableError: The source did not answer.
    """
    # Connect also keeps offsets of topics that were deleted: those that stay are not checked.
    _check_on_source(pair, connector, [each for each in after if each not in backup])
    old, new = by_partition(backup), by_partition(after)
    changes = [
        OffsetChange(
            partition=key.partition,
            before=old.get(key),
            after=new.get(key),
            other_alias=None if _is_of(pair, key) else key.alias,
        )
        for key in sorted(old.keys() | new.keys())
    ]
    return [change for change in changes if change.effect]


def require_words(changes: Collection[OffsetChange], confirm: Collection[str]) -> list[str]:
    """Return what the changes mean, one sentence for each effect.

    Raises:
        ConfigurationError: An effect is not confirmed by its word.
    """
    effects = {effect: _of(changes, effect) for effect in Effect if _of(changes, effect)}
    sentences = [
        f"{_MEANING[effect]}: {', '.join(map(str, some[:_MOST_SHOWN]))}"
        f"{f' and {len(some) - _MOST_SHOWN} more' if len(some) > _MOST_SHOWN else ''}"
        for effect, some in effects.items()
    ]
    if missing := [effect.value for effect in effects if effect.value not in confirm]:
        raise ConfigurationError(
            f"nothing was changed, since it was not confirmed. {'. '.join(sentences)}. "
            f"If that is wanted, give confirm={missing!r}",
            setting="confirm",
        )
    return sentences


def change_offsets(pair: ClusterPair, connector: str, *, backup: Entries, after: Entries) -> bool:
    """Let a stopped connector have the offsets ``after`` and no others; False: it has them already.

    A repetition finds what an earlier try has done. Offsets that neither are those of the backup
    nor ``after`` were changed by somebody else meanwhile, and stay.

    Raises:
        ConnectError: The connector is not STOPPED, has other offsets than the backup, or refuses.
        ClusterUnreachableError: Connect did not answer.
    """
    connect = connect_of(pair)
    admin = ConnectorAdmin(connect=connect, name=connector)
    old, new = keyed(backup), keyed(after)
    now = keyed(read_stopped_offsets(connect, connector))
    if now == new:
        return False
    # Connect has no transaction over an alteration: a worker that dies may leave a part of it.
    if any(now.get(key) not in {old.get(key), new.get(key)} for key in now.keys() | old.keys()):
        raise ConnectError(
            f"Connect at {connect.url}, connector {connector}: its offsets are not those of the "
            f"backup any more; nothing was changed. See who has run or altered it, and clear the "
            f"task that reads the backup"
        )
    if not new:
        admin.reset_offsets()
        return True
    wanted = {**dict.fromkeys(now.keys() - new.keys()), **new}
    admin.alter_offsets(
        [
            {"partition": json.loads(key), "offset": text and json.loads(text)}
            for key, text in wanted.items()
            if now.get(key) != text
        ]
    )
    return True


def _of(changes: Collection[OffsetChange], effect: Effect) -> list[OffsetChange]:
    return [change for change in changes if change.effect is effect]


def _shown(last: int | None) -> str:
    return "none" if last is None else str(last)


def _is_of(pair: ClusterPair, key: SourcePartition) -> bool:
    return key.alias == pair.naming.source_alias


def _check_on_source(pair: ClusterPair, connector: str, after: Entries) -> None:
    entries = by_partition(after)
    # A backup of before the source was renamed has both aliases, and can be put back.
    if entries and not any(_is_of(pair, key) for key in entries):
        others = sorted({key.alias for key in entries})
        raise ConfigurationError(
            f"connector {connector}: the offsets are of {', '.join(others)}, and the "
            f"connector copies from {pair.naming.source_alias}; they are another connector's"
        )
    offsets = {
        key.partition: last
        for key, last in entries.items()
        if last is not None and _is_of(pair, key)
    }
    infos = pair.source.topics({key.topic for key in offsets})
    for key in offsets:
        count = infos[key.topic].partitions if key.topic in infos else 0
        if not 0 <= key.partition < count:
            raise PositionError(
                f"the partition does not exist (the topic has {count}); nothing was changed",
                cluster=pair.source.name,
                topic=key.topic,
                partition=key.partition,
            )
    watermarks = pair.source.watermarks(offsets)
    for key, last in offsets.items():
        _check_offset(pair, key, last, watermarks[key])


def _check_offset(
    pair: ClusterPair, key: TopicPartition, last: int, watermarks: Watermarks
) -> None:
    if 0 <= last <= MAX_OFFSET and last < watermarks.high:
        return
    raise PositionError(
        f"the last copied offset {last} is not before the source's end {watermarks.high}; nothing "
        f"was changed. Give an offset from 0 to {watermarks.high - 1}, or None to forget it",
        cluster=pair.source.name,
        topic=key.topic,
        partition=key.partition,
    )
