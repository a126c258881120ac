"""What a failover costs, as values: records at risk, records read again, the age of the facts.

``planning`` makes forecasts. XCom, approval, report and command line show them as ``to_json``
writes them. ``forecast_rules`` and ``reread_rules`` have the rules.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_mm2_offsets.core.brief import check_whole
from airflow_mm2_offsets.core.plan import LeftOut, digest_of
from airflow_mm2_offsets.core.policy import Policy, parse_policy
from airflow_mm2_offsets.core.positions import TopicPartition

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRange:
    """A number of records that lies in a range."""

    at_least: int = 0
    at_most: int | None
    """None: nothing bounds it."""

    def to_json(self) -> dict[str, int | None]:
        """Return plain JSON."""
        return {"at_least": self.at_least, "at_most": self.at_most}

    def __str__(self) -> str:
        """Return the form that tables use."""
        if self.at_most is None:
            return f">= {self.at_least}, unknown"
        if self.at_least == self.at_most:
            return str(self.at_most)
        return f"{self.at_least} to {self.at_most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionForecast:
    """What the failover of one partition costs."""

    topic: str
    """By the source's name."""
    partition: int
    position: int
    """The job's position on the source."""
    at_risk: CountRange
    """Records that the job had not read and that are not on the target: those are lost."""
    at_risk_seconds: float | None
    """The most seconds of data that they span; None: not known."""
    at_risk_basis: str
    """What the numbers rest on, or what would bound them."""
    read_again: CountRange
    """Records that the target job reads although the source job may have processed them."""
    read_again_seconds: float | None
    read_again_basis: str

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition, by the source's name."""
        return TopicPartition(self.topic, self.partition)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON; offsets are text."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "position": str(self.position),
            "at_risk": self.at_risk.to_json(),
            "at_risk_seconds": self.at_risk_seconds,
            "at_risk_basis": self.at_risk_basis,
            "read_again": self.read_again.to_json(),
            "read_again_seconds": self.read_again_seconds,
            "read_again_basis": self.read_again_basis,
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "PartitionForecast":
        """Return the partition that ``to_json`` wrote."""
        ranges = {name: CountRange(**line[name]) for name in ("at_risk", "read_again")}
        return cls(**{**line, **ranges, "position": int(line["position"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class FactAge:
    """How old a fact is that a forecast rests on."""

    fact: str
    """Such as ``archive`` or ``newest sync``."""
    as_of: str
    """ISO 8601, UTC."""
    seconds: float
    """Its age when the forecast was made."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"fact": self.fact, "as_of": self.as_of, "seconds": self.seconds}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRequest:
    """What a forecast was asked for: a kept forecast counts only for the same request."""

    policy: Policy
    plan_digest: str
    lost_at: str | None = None
    """The user's word when the source was lost: ISO 8601."""
    max_rate: float | None = None
    """The user's word: records per second that each partition was written at, at most."""
    positions_as_of: str | None = None
    """When the positions were read, if the job may have gone on since: ISO 8601."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "policy": self.policy.name,
            "plan_digest": self.plan_digest,
            "lost_at": self.lost_at,
            "max_rate": self.max_rate,
            "positions_as_of": self.positions_as_of,
        }

    @classmethod
    def from_json(cls, request: Mapping[str, Any]) -> "ForecastRequest":
        """Return the request that ``to_json`` wrote."""
        return cls(**{**request, "policy": parse_policy(request["policy"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverForecast:
    """What a failover costs, per partition and in total, before anything is started."""

    created_at: str
    """ISO 8601, UTC."""
    request: ForecastRequest
    lost_at: str | None
    """When the source counts as lost; None: it answers for every partition."""
    partitions: tuple[PartitionForecast, ...]
    ages: tuple[FactAge, ...] = ()
    assumptions: tuple[str, ...] = ()
    """Sentences: only while they hold is no range exceeded."""
    left_out: tuple[LeftOut, ...] = ()
    """What did not answer."""

    @property
    def at_risk(self) -> CountRange:
        """The records at risk of all partitions."""
        return _total(each.at_risk for each in self.partitions)

    @property
    def read_again(self) -> CountRange:
        """The records read again of all partitions."""
        return _total(each.read_again for each in self.partitions)

    @property
    def at_risk_seconds(self) -> float | None:
        """The seconds of data at risk of the worst partition; None: not known of one."""
        return _worst(each.at_risk_seconds for each in self.partitions)

    @property
    def read_again_seconds(self) -> float | None:
        """The seconds of data read again of the worst partition; None: not known of one."""
        return _worst(each.read_again_seconds for each in self.partitions)

    def to_json(self) -> dict[str, Any]:
        """Return the forecast as plain JSON."""
        forecast = {
            "schema_version": SCHEMA_VERSION,
            "created_at": self.created_at,
            "request": self.request.to_json(),
            "lost_at": self.lost_at,
            "totals": {
                "partitions": len(self.partitions),
                "at_risk": self.at_risk.to_json(),
                "at_risk_seconds": self.at_risk_seconds,
                "read_again": self.read_again.to_json(),
                "read_again_seconds": self.read_again_seconds,
            },
            "ages": [each.to_json() for each in self.ages],
            "assumptions": [*self.assumptions],
            "left_out": [each.to_json() for each in self.left_out],
            "partitions": [each.to_json() for each in self.partitions],
        }
        return forecast | {"digest": digest_of(forecast)}

    @classmethod
    def from_json(cls, forecast: Mapping[str, Any]) -> "FailoverForecast":
        """Return the forecast that ``to_json`` wrote.

        Raises:
            ValueError: It is not an object, has another schema version, is a brief, or was changed
                since.
        """
        if not isinstance(forecast, Mapping):
            raise ValueError(f"a forecast is a JSON object, not {forecast!r}")  # noqa: TRY004 - bad input
        if forecast.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(
                f"a forecast of schema version {forecast.get('schema_version')!r} can't be read; "
                f"this release reads version {SCHEMA_VERSION}"
            )
        check_whole(forecast)
        if forecast["digest"] != (digest := digest_of(forecast)):
            raise ValueError(
                f"digest is {forecast['digest']!r}, and that of its content is {digest!r}: the "
                f"forecast was changed since it was made"
            )
        return cls(
            created_at=forecast["created_at"],
            request=ForecastRequest.from_json(forecast["request"]),
            lost_at=forecast["lost_at"],
            partitions=tuple(map(PartitionForecast.from_json, forecast["partitions"])),
            ages=tuple(FactAge(**each) for each in forecast["ages"]),
            assumptions=tuple(forecast["assumptions"]),
            left_out=tuple(LeftOut(**each) for each in forecast["left_out"]),
        )


def _total(ranges: Iterable[CountRange]) -> CountRange:
    several = list(ranges)
    most = [each.at_most for each in several]
    return CountRange(
        at_least=sum(each.at_least for each in several),
        at_most=None if None in most else sum(count for count in most if count),
    )


def _worst(seconds: Iterable[float | None]) -> float | None:
    several = list(seconds)
    return None if None in several else max((each for each in several if each), default=0.0)
