"""What XCom gets of a plan and of a forecast: whole or in brief, as a paragraph and as lines."""

from collections.abc import Callable, Mapping
from typing import Any

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


def push_plan_summary(push: Callable[..., None], plan: FailoverPlan, content: Mapping[str, Any]) -> str:
    """Push a plan as text, and return the text for the log; of a long plan the worst partitions.

    Args:
        push: Pushes an XCom.
        plan: The plan.
        content: What XCom gets of it.
    """
    rest = rest_of(content)
    shown = tuple(map(partition_from_json, rows_of(content))) if rest else None
    text = summarize(plan, shown, rest)
    worst = [*map(partition_from_json, worst_partitions(content))]
    push(key="summary", value=summarize_folded(plan, worst, rest))
    # Airflow's page shows a text as one paragraph, and a list line by line.
    push(key="table", value=text.splitlines())
    return text


def push_forecast_summary(
    push: Callable[..., None], forecast: FailoverForecast, content: Mapping[str, Any]
) -> str:
    """Push a forecast as text, and return the text for the log; see ``push_plan_summary``."""
    rest = rest_of(content)
    of_content = PartitionForecast.from_json
    shown = tuple(map(of_content, rows_of(content))) if rest else None
    text = summarize_forecast(forecast, shown, rest)
    worst = [*map(of_content, riskiest_partitions(content))]
    push(key="summary", value=summarize_forecast_folded(forecast, worst, rest))
    push(key="table", value=text.splitlines())
    return text
