"""A preview and a report as plain text and Markdown: for XCom, the approval and the file."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_mm2_offsets.core.summary import table

_PREVIEW = ("job", "wave", "exact", "bounded", "refused", "not copied yet", "read again", "at risk")
_REPORT = ("job", "wave", "outcome", "seconds", "read again", "at risk")


def summarize_preview(preview: Mapping[str, Any]) -> str:
    """Return a preview as a sentence, a table of its jobs, and what can't be said."""
    totals = preview["totals"]
    moved = f" {totals['moved_before']} were moved before." if totals["moved_before"] else ""
    notes = [
        f"{job['name']}: {job['moved'] or job['problem']}"
        for job in preview["jobs"]
        if job["moved"] or job["problem"]
    ]
    sentence = (
        f"{totals['jobs']} jobs with {totals['partitions']} partitions: {totals['exact']} exact, "
        f"{totals['bounded']} bounded, {_number(totals['refused'])} refused, "
        f"{totals['not_copied_yet']} not copied yet; {_at_most(totals['read_again'])} records "
        f"read again, {_at_most(totals['at_risk'])} at risk.{moved}"
    )
    parts = [
        sentence,
        table(_PREVIEW, [_preview_row(job) for job in preview["jobs"]]),
        "\n".join(notes),
    ]
    return "\n\n".join(filter(None, parts))


def fleet_markdown(report: Mapping[str, Any]) -> str:
    """Return the report of a fleet failover as Markdown."""
    totals, run = report["totals"], report["run"]
    rows = [f"| {' | '.join(map(str, _report_row(job)))} |" for job in report["jobs"]]
    parts = [
        f"# Fleet failover: {totals['moved']} of {totals['jobs']} jobs moved",
        f"Run {run.get('run_id')} of DAG {run.get('dag_id')}, manifest {report['manifest']}.",
        "\n".join([f"| {' | '.join(_REPORT)} |", "|---|---:|---|---:|---:|---:|", *rows]),
        "\n".join(f"- {job['name']}: {job['next']}" for job in report["jobs"] if job["next"]),
        "\n".join(f"- {remark}" for remark in report["remarks"]),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _preview_row(job: Mapping[str, Any]) -> Sequence[object]:
    names = ("name", "wave", "exact", "bounded", "refused", "not_copied_yet")
    costs = (_number(job[name]) for name in ("read_again", "at_risk"))
    return (*(_number(job[name]) for name in names), *costs)


def _report_row(job: Mapping[str, Any]) -> Sequence[object]:
    seconds = "-" if job["seconds"] is None else f"{job['seconds']:.0f}"
    costs = (_number(job[name]) for name in ("read_again", "at_risk"))
    return (job["name"], job["wave"], job["outcome"], seconds, *costs)


def _number(value: object) -> object:
    return "?" if value is None else value


def _at_most(value: int | None) -> str:
    return "an unknown number of" if value is None else f"at most {value}"
