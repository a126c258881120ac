"""A preview and a report as plain text and Markdown: for XCom, the approval and the file."""

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_mm2_offsets.core.summary import table

_PREVIEW = {
    "job": "name",
    "wave": "wave",
    "exact": "exact",
    "bounded": "bounded",
    "refused": "refused",
    "not copied yet": "not_copied_yet",
    "read again": "read_again_at_most",
    "lost": "lost_at_most",
}
_REPORT = {
    "job": "name",
    "wave": "wave",
    "outcome": "outcome",
    "down for (s)": "down_seconds",
    "read again": "read_again_at_most",
    "lost": "lost_at_most",
}
"""The columns of each table, with the fields that they show."""


def summarize_preview(preview: Mapping[str, Any]) -> str:
    """Return a preview as a sentence, a table of its jobs, and what can't be said."""
    totals = preview["totals"]
    there = totals["there_already"]
    notes = [
        f"{job['name']}: {job['problem']}" if job["problem"] else f"There already: {job['where']}"
        for job in preview["jobs"]
        if job["problem"] or job["is_there"]
    ]
    sentence = (
        f"{totals['jobs']} jobs with {totals['partitions']} partitions: {totals['exact']} exact, "
        f"{totals['bounded']} bounded, {_shown(totals['refused'])} refused, "
        f"{totals['not_copied_yet']} not copied yet; {_at_most(totals['read_again_at_most'])} "
        f"records read again, {_at_most(totals['lost_at_most'])} lost."
        f"{f' {there} are there already, and stay.' if there else ''}"
    )
    rows = [_row(job, _PREVIEW) for job in preview["jobs"]]
    return "\n\n".join(filter(None, [sentence, table([*_PREVIEW], rows), "\n".join(notes)]))


def fleet_markdown(report: Mapping[str, Any]) -> str:
    """Return the report of a fleet as Markdown."""
    totals, run = report["totals"], report["run"]
    rows = [f"| {' | '.join(map(str, _row(job, _REPORT)))} |" for job in report["jobs"]]
    parts = [
        f"# Fleet: {totals['there']} of {totals['jobs']} jobs are at {report['to']}",
        f"Run {run.get('run_id')} of DAG {run.get('dag_id')}, policy {report['policy']}.",
        "\n".join([f"| {' | '.join(_REPORT)} |", "|---|---:|---|---:|---:|---:|", *rows]),
        "\n".join(f"- {job['name']}: {job['next']}" for job in report["jobs"] if job["next"]),
        "\n".join(f"- {remark}" for remark in report["remarks"]),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _row(job: Mapping[str, Any], columns: Mapping[str, str]) -> Sequence[object]:
    return [_shown(job[name]) for name in columns.values()]


def _shown(value: object) -> object:
    return "?" if value is None else value


def _at_most(value: int | None) -> str:
    return "an unknown number of" if value is None else f"at most {value}"
