"""Rules about what is left of the offset syncs, and what Connect can tell, when they are needed."""

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_mm2_offsets.doctor.finding import Hit, Rule, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSyncs:
    """Where the syncs of a flow are, and who can be asked about them."""

    name: str
    """Of the connector or the pair."""
    on_target: bool
    has_archive: bool
    has_connect: bool | None = None
    """None: no connection was given that could name a Connect URL."""


def _lost_with_source(kept: KeptSyncs) -> Iterator[Hit]:
    if not kept.on_target and not kept.has_archive:
        yield Hit(f"offset-syncs.topic.location = source in {kept.name}, and no archive is given")


def _no_archive(kept: KeptSyncs) -> Iterator[Hit]:
    if kept.on_target and not kept.has_archive:
        yield Hit(f"no archive is given for {kept.name}")


def _no_connect(kept: KeptSyncs) -> Iterator[Hit]:
    if kept.has_connect is False:
        yield Hit(f"no Connect URL is given for {kept.name}")


KEPT_SYNCS_RULES: tuple[Rule[KeptSyncs], ...] = (
    Rule(
        check="syncs_lost_with_source",
        severity=Severity.ERROR,
        why=(
            "A disaster takes the offset-syncs topic together with the source: then no position "
            "can be translated."
        ),
        remedy=(
            "archive the syncs on storage that outlives the source (docs/archive.md) and give "
            "--archive, or offset-syncs.topic.location = target (for both flows where two run, or "
            "their syncs mix; MirrorMaker 2 then begins a new topic)"
        ),
        find=_lost_with_source,
    ),
    Rule(
        check="no_archive",
        severity=Severity.WARNING,
        why=(
            "The offset-syncs topic is compacted and keeps one sync of each partition for sure: "
            "a job that lags behind it reads much again, or is refused."
        ),
        remedy="archive the syncs (docs/archive.md), and give --archive",
        find=_no_archive,
    ),
    Rule(
        check="no_connect_url",
        severity=Severity.WARNING,
        why=(
            "Kafka Connect can't be asked: its settings are not compared, a connector that does "
            "not run is not seen, and positions after the last sync are not proven."
        ),
        remedy="connect.url = http://connect:8083 (in a connection: the field connect_url)",
        find=_no_connect,
    ),
)
