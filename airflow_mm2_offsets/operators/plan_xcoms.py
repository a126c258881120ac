"""What XCom gets of a plan and of a forecast: whole or in brief, as a paragraph and as lines."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from airflow_mm2_offsets.core import FailoverPlan, Verdict, summarize
from airflow_mm2_offsets.core.brief import (
    brief_plan,
    rest_of,
    riskiest_partitions,
    rows_of,
    worst_partitions,
)
from airflow_mm2_offsets.core.forecast import FailoverForecast, PartitionForecast
from airflow_mm2_offsets.core.forecast_summary import (
    summarize_forecast,
    summarize_forecast_folded,
)
from airflow_mm2_offsets.core.partition_plan import partition_from_json
from airflow_mm2_offsets.core.summary import summarize_folded
from airflow_mm2_offsets.operators.long_results import LongResults


def keep_plan(results: LongResults, plan: FailoverPlan, path: str | None) -> dict[str, Any]:
    """Return what XCom gets of a plan; one that is not ready must not lie where a retry looks.

    Args:
        results: What is done with long results.
        plan: The plan.
        path: The file that it is kept in if it is ready; None: it is not kept.
    """
    is_ready = plan.verdict is Verdict.READY
    refused = f"{path.removesuffix('.json')}.refused.json" if path and not is_ready else None
    return results.keep(
        plan.to_json(),
        "plan",
        brief_plan,
        kept_at=path if is_ready else None,
        beside=refused,
    )


class Texts(NamedTuple):
    """A plan or a forecast as text."""

    whole: str
    """Line by line; of a long one the worst topic-partitions."""
    folded: str
    """One paragraph."""

    def push(self, push: Callable[..., None], beginning: str = "") -> None:
        """Push both as XComs, ``summary`` and ``table``, whose names begin with ``beginning``."""
        push(key=f"{beginning}summary", value=self.folded)
        # Airflow's page shows a text as one paragraph, and a list line by line.
        push(key=f"{beginning}table", value=self.whole.splitlines())


def plan_texts(plan: FailoverPlan, content: Mapping[str, Any]) -> Texts:
    """Return a plan as text; ``content`` is what XCom gets of it."""
    rest = rest_of(content)
    shown = tuple(map(partition_from_json, rows_of(content))) if rest else None
    worst = [*map(partition_from_json, worst_partitions(content))]
    return Texts(summarize(plan, shown, rest), summarize_folded(plan, worst, rest))


def numbers_of(plan: FailoverPlan, forecast: FailoverForecast) -> dict[str, int | None]:
    """Return what decides about a move; None where a number is not known."""
    totals = forecast.to_json()["totals"]
    return {
        "refused": plan.to_json()["totals"]["refused"],
        "read_again_at_most": _whole(totals["read_again"]["at_most"]),
        "lost_at_most": _whole(totals["at_risk"]["at_most"]),
    }


def _whole(value: str | int | None) -> int | None:
    return None if value is None else int(value)


def forecast_texts(forecast: FailoverForecast, content: Mapping[str, Any]) -> Texts:
    """Return a forecast as text; see ``plan_texts``."""
    rest = rest_of(content)
    of_content = PartitionForecast.from_json
    shown = tuple(map(of_content, rows_of(content))) if rest else None
    worst = [*map(of_content, riskiest_partitions(content))]
    return Texts(
        summarize_forecast(forecast, shown, rest),
        summarize_forecast_folded(forecast, worst, rest),
    )
