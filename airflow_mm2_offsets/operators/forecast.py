"""The step that tells what a failover costs, before anything is started."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.common.compat.sdk import BaseOperator, Context

from airflow_mm2_offsets.archive import SyncArchive
from airflow_mm2_offsets.clusters import ClusterPair
from airflow_mm2_offsets.core import FailoverPlan
from airflow_mm2_offsets.core.brief import brief_forecast
from airflow_mm2_offsets.core.forecast import ForecastRequest
from airflow_mm2_offsets.core.policy import DISASTER, parse_policy
from airflow_mm2_offsets.errors import ConfigurationError, PlanError
from airflow_mm2_offsets.hooks.mm2 import Mm2OffsetHook
from airflow_mm2_offsets.hooks.storage import storage_path
from airflow_mm2_offsets.observability import emit_forecast
from airflow_mm2_offsets.operators.failing import fails_at_once
from airflow_mm2_offsets.operators.links import page_links
from airflow_mm2_offsets.operators.long_results import LongResults
from airflow_mm2_offsets.operators.plan_xcoms import forecast_texts
from airflow_mm2_offsets.operators.settings import given, is_true
from airflow_mm2_offsets.planning.forecast import parse_lost_at
from airflow_mm2_offsets.planning.forecast_file import forecast_once
from airflow_mm2_offsets.planning.lost_parts import quick
from airflow_mm2_offsets.planning.stored_plan import whole_plan


class ForecastFailoverOperator(BaseOperator):
    """Tells how many records a failover loses and reads again, as ranges; changes nothing.

    Args:
        plan: What ``TranslateOffsetsOperator`` returned.
        policy: ``planned``, ``disaster`` or ``drill``.
        archive: Location of the archive that ``ArchiveSyncsOperator`` keeps: its watermarks bound
            the end of a source that is lost.
        skip_damaged: Go on without the archive's damaged or missing files.
        lost_at: When the source was lost, as ISO 8601 with a time zone; None: by the time of the
            first forecast.
        max_rate: How many records per second each partition was written at, at most, after the
            archive's last run; with transactions, their markers count too. None: twice the highest
            rate between two of its runs.
        positions_as_of: When the positions were read, as ISO 8601, if the job may have gone on
            since: ``as_of`` of ``ReadSparkCheckpointOperator``.
        forecast_path: A file to keep the forecast in, so that a retry says the same.
        exchanged: See ``TranslateOffsetsOperator``. May be a templated string.
        mm2_conn_id: Id of a connection of type ``mm2``.

    Returns:
        The forecast (``core.forecast``); of a long one its brief (``core.brief``), and the whole
        forecast lies in ``forecast_path``. Beside it the XComs ``summary`` (one paragraph) and
        ``table`` (a list of lines).

    Raises:
        PlanError: The plan was changed, or a cluster or topic has another id than in it.
        ConfigurationError: A time, the rate or the policy is wrong.
        Mm2OffsetsError: See ``planning.forecast.forecast_failover``.
    """

    operator_extra_links = page_links("run")
    template_fields: Sequence[str] = (
        "plan",
        "policy",
        "archive",
        "lost_at",
        "max_rate",
        "positions_as_of",
        "forecast_path",
        "exchanged",
        "mm2_conn_id",
    )

    def __init__(
        self,
        *,
        plan: Mapping[str, Any],
        policy: str = DISASTER.name,
        archive: str | None = None,
        skip_damaged: bool = False,
        lost_at: str | None = None,
        max_rate: float | str | None = None,
        positions_as_of: str | None = None,
        forecast_path: str | None = None,
        exchanged: bool | str = False,
        mm2_conn_id: str = Mm2OffsetHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        """Keep the settings."""
        super().__init__(**kwargs)
        self.plan = plan
        self.policy = policy
        self.archive = archive
        self.skip_damaged = skip_damaged
        self.lost_at = lost_at
        self.max_rate = max_rate
        self.positions_as_of = positions_as_of
        self.forecast_path = forecast_path
        self.exchanged = exchanged
        self.mm2_conn_id = mm2_conn_id

    @fails_at_once()
    def execute(self, context: Context) -> dict[str, Any]:
        """Make the forecast, or take the one that an earlier try made."""
        plan = self._plan()
        archive, path = given(self.archive), given(self.forecast_path)
        forecast = forecast_once(
            self._pair(),
            plan,
            self._request(plan.to_json()["digest"]),
            archive=SyncArchive(storage_path(archive), skip_damaged=is_true(self, "skip_damaged"))
            if archive
            else None,
            path=storage_path(path) if path else None,
        )
        content = LongResults.of(context).keep(
            forecast.to_json(), "forecast", brief_forecast, kept_at=path
        )
        texts = forecast_texts(forecast, content)
        texts.push(context["ti"].xcom_push)
        self.log.info("%s", texts.whole)
        emit_forecast(content)
        return content

    def _pair(self) -> ClusterPair:
        pair = Mm2OffsetHook(self.mm2_conn_id, exchanged=is_true(self, "exchanged")).get_conn()
        return quick(pair) if parse_policy(self.policy).source_may_be_lost else pair

    def _plan(self) -> FailoverPlan:
        try:
            return FailoverPlan.from_json(whole_plan(self.plan, storage_path))
        except PlanError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise PlanError(
                f"task {self.task_id}: plan is not what TranslateOffsetsOperator returned: {error}"
            ) from error

    def parse_settings(self) -> None:
        """Raise ConfigurationError where a time or the rate is invalid."""
        parse_lost_at(self._request(plan_digest=""))

    def _request(self, plan_digest: str) -> ForecastRequest:
        return ForecastRequest(
            policy=parse_policy(self.policy),
            plan_digest=plan_digest,
            lost_at=given(self.lost_at),
            max_rate=parse_rate(given(self.max_rate)),
            positions_as_of=given(self.positions_as_of),
        )


def parse_rate(text: str | None) -> float | None:
    """Return a rate as a number.

    Raises:
        ConfigurationError: It is not a number from 0.
    """
    if text is None:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise ConfigurationError(
            f"{text!r} is not a number of records per second, from 0", setting="max_rate"
        )
    return rate
