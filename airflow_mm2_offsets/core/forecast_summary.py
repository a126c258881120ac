"""A forecast as plain text: for XCom, the approval, the report and the command line."""

from collections.abc import Sequence

from airflow_mm2_offsets.core.forecast import CountRange, FailoverForecast, PartitionForecast
from airflow_mm2_offsets.core.summary import MOST_NAMED, paragraph, table

_HEADER = ("partition", "position", "at risk", "seconds", "read again", "seconds")


def summarize_forecast(
    forecast: FailoverForecast, shown: Sequence[PartitionForecast] | None = None, rest: str = ""
) -> str:
    """Return a forecast as two sentences, a table, the bases, the ages and the assumptions.

    Args:
        forecast: The forecast.
        shown: The partitions of the table; None: all.
        rest: Where the others are, as a sentence.
    """
    lines = [*forecast.partitions] if shown is None else [*shown]
    parts = [
        _verdict(forecast),
        table(_HEADER, list(map(_row, lines))),
        "\n".join(
            f"{line.topic_partition}: at risk: {line.at_risk_basis}; "
            f"read again: {line.read_again_basis}"
            for line in lines
        ),
        *([rest] if rest else []),
    ]
    if forecast.left_out:
        reasons = "".join(f"\n  {each.part}: {each.reason}" for each in forecast.left_out)
        parts.append(f"Does not answer:{reasons}")
    if forecast.ages:
        ages = "".join(
            f"\n  {each.fact}: {each.as_of}, {each.seconds:.0f} s old" for each in forecast.ages
        )
        parts.append(f"Rests on:{ages}")
    if forecast.assumptions:
        assumed = "".join(f"\n  {each}" for each in forecast.assumptions)
        parts.append(f"No range is exceeded as long as:{assumed}")
    return "\n\n".join(parts)


def summarize_forecast_folded(
    forecast: FailoverForecast, shown: Sequence[PartitionForecast], rest: str = ""
) -> str:
    """Return a forecast as one paragraph, for a page that folds lines: the totals, and the worst.

    Args:
        forecast: The forecast.
        shown: Its worst partitions, the worst first.
        rest: Where the others are, as a sentence.
    """
    worst = [
        f"{line.topic_partition} at {line.position} with {line.at_risk} at risk and "
        f"{line.read_again} read again"
        for line in shown[:MOST_NAMED]
        if not line.at_risk.at_most == line.read_again.at_most == 0
    ]
    sentences = [
        _verdict(forecast),
        *(f"{each.part} does not answer: {each.reason}." for each in forecast.left_out),
        *([f"Worst: {'; '.join(worst)}."] if worst else []),
        f"{rest}." if rest else "The XCom table has each partition, and what it rests on.",
    ]
    text = paragraph(sentences)
    return f"{text[:1].upper()}{text[1:]}"


def _verdict(forecast: FailoverForecast) -> str:
    state = (
        f"The source counts as lost at {forecast.lost_at}."
        if forecast.lost_at
        else "The source answers for every partition."
    )
    at_risk = _sentence("at risk", forecast.at_risk, forecast.at_risk_seconds)
    read_again = _sentence("read again", forecast.read_again, forecast.read_again_seconds)
    return f"{at_risk}, {read_again}. {state}"


def _sentence(what: str, records: CountRange, seconds: float | None) -> str:
    """Return a total, such as ``at risk: at most 12 records (at most 3 s of data)``."""
    if records.at_most is None:
        return f"{what}: an unknown number of records, at least {records.at_least}"
    span = "" if seconds is None else f" (at most {seconds:.0f} s of data)"
    least = f"at least {records.at_least} and " if records.at_least else ""
    return f"{what}: {least}at most {records.at_most} records{span}"


def _row(line: PartitionForecast) -> tuple[object, ...]:
    return (
        line.topic_partition,
        line.position,
        line.at_risk,
        _seconds(line.at_risk_seconds),
        line.read_again,
        _seconds(line.read_again_seconds),
    )


def _seconds(seconds: float | None) -> str:
    return "?" if seconds is None else f"<= {seconds:.0f}"
