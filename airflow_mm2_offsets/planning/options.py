"""What a user decides about a plan.

Operators, REST and the command line offer these options under these names, with these defaults,
limits and explanations.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import datetime
from functools import partial
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from airflow_mm2_offsets.core import OnUnmapped, Strategy
from airflow_mm2_offsets.core.times import parse_zoned
from airflow_mm2_offsets.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow_mm2_offsets.archive import SyncArchive
    from airflow_mm2_offsets.core import FailoverPlan
    from airflow_mm2_offsets.planning.source_ends import SourceEnds

EXAMPLE_TIME = "2026-11-21T09:10:00+00:00"
_A_TIME = f"a time with its zone, such as {EXAMPLE_TIME}"


def _metadata(explanation: str, **limits: float) -> Mapping[str, Any]:
    return {"explanation": explanation, **limits}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What the user decides about a plan; see ``PLAN_OPTIONS`` for the explanations."""

    strategy: Strategy = field(
        default=Strategy.SAFE,
        metadata=_metadata(
            "Which target position to take: only safe loses nothing; linear is the formula of "
            "older tools, kafka what MirrorMaker 2 answers."
        ),
    )
    read_source: bool = field(
        default=True,
        metadata=_metadata(
            "Ask the source too: positions are checked, records matched by content."
        ),
    )
    sole_writer: bool = field(
        default=False,
        metadata=_metadata(
            "Your word that only MirrorMaker 2 writes to the target's topics, in order, that they "
            "are not compacted, and that no transform makes two copies of one record differ: then "
            "records may be counted. With mapping identity: positions that can't be compared count."
        ),
    )
    changed_records: bool = field(
        default=False,
        metadata=_metadata(
            "A transform changes records on the way, so that a record may differ from its copy. "
            "Needless where Connect can be asked."
        ),
    )
    max_evidence_bytes: int = field(
        default=256 * 2**20,
        metadata=_metadata(
            "How much of each cluster's records may be read as evidence; 0 reads none.", minimum=0
        ),
    )
    on_unmapped: OnUnmapped = field(
        default=OnUnmapped.FAIL,
        metadata=_metadata(
            "A partition with no answer: fail, or start it at the target's earliest or latest "
            "offset, or by timestamp. The plan names each that took it."
        ),
    )
    unmapped_time: datetime | None = field(
        default=None,
        metadata=_metadata(
            f"For timestamp: how old the position is, with a time zone, such as {EXAMPLE_TIME}; "
            f"else the time of the source's record there."
        ),
    )
    unmapped_margin: float = field(
        default=300.0,
        metadata=_metadata(
            "For timestamp: seconds to start earlier, for clocks that disagree and late records.",
            minimum=0,
            maximum=10**7,
        ),
    )
    give_up: int = field(
        default=0,
        metadata=_metadata(
            "How many records may be lost that MirrorMaker 2 passed over without copying them: "
            "the number that the refusals name, for all topic-partitions together.",
            minimum=0,
        ),
    )
    archive: "SyncArchive | None" = None
    """Holds syncs that the topic has no more. Without ``read_source`` it stands in for a syncs
    topic that lies on the source."""
    read_syncs_topic: bool | None = None
    """Whether the offset-syncs topic is read beside the archive; None: unless it lies on a source
    that is not to be asked."""
    source_ends: "SourceEnds | None" = None
    """What an earlier look saw of the source's ends: see ``planning.source_ends``."""
    first_plan: "FailoverPlan | None" = None
    """On the way home by the same syncs: the plan that the job was moved away with."""

    def __post_init__(self) -> None:
        """Refuse a time without a zone: it means different moments on different machines."""
        if self.unmapped_time is not None and self.unmapped_time.tzinfo is None:
            raise ConfigurationError(
                f"{self.unmapped_time.isoformat()!r} is not {_A_TIME}", setting="unmapped_time"
            )


DEFAULT_OPTIONS = PlanOptions()

PLAN_OPTIONS: Mapping[str, Field[Any]] = MappingProxyType(
    {option.name: option for option in fields(PlanOptions) if option.metadata}
)
"""The options that a user gives as text or numbers, by name: not the archive and the plan."""


def parse_plan_options(values: Mapping[str, object]) -> PlanOptions:
    """Return options from the values that a user wrote; texts are parsed.

    Args:
        values: Values by the names of ``PLAN_OPTIONS``; an absent one has its default.

    Raises:
        ConfigurationError: A value is invalid. The field ``setting`` names the option.
    """
    return PlanOptions(
        **{name: _parse(PLAN_OPTIONS[name], value) for name, value in values.items()}
    )


def _parse(option: Field[Any], value: object) -> Any:  # noqa: ANN401 - the option's type
    parse, expected = _parser(option)
    try:
        return parse(value)
    except (ValueError, KeyError) as error:
        raise ConfigurationError(f"{value!r} is not {expected}", setting=option.name) from error


def _parser(option: Field[Any]) -> tuple[Callable[[Any], Any], str]:
    """Return the parser of an option's values, and a description of valid values for messages."""
    kind: Any = option.type
    if kind is bool:
        return lambda value: _TRUTH[str(value).lower()], "True or False"
    if kind in {int, float}:
        lowest, highest = option.metadata["minimum"], option.metadata.get("maximum", inf)
        limit = "" if highest == inf else f" to {highest}"
        return partial(_number, kind, lowest, highest), f"a number from {lowest}{limit}"
    if kind in {Strategy, OnUnmapped}:
        return kind, f"one of {', '.join(kind)}"
    return _time, _A_TIME


_TRUTH = {"true": True, "false": False}


def _number(kind: Callable[[str], float], lowest: float, highest: float, value: object) -> float:
    number = kind(str(value))
    if not lowest <= number <= highest:
        raise ValueError(number)
    return number


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    time = parse_zoned(text)
    if time is None:
        raise ValueError(text)
    return time
