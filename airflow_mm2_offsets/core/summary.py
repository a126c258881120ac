"""Plans and tables as plain text: for XCom, the page and the command line."""

from collections.abc import Iterable, Sequence

from airflow_mm2_offsets.core.partition_plan import PartitionPlan
from airflow_mm2_offsets.core.plan import FailoverPlan
from airflow_mm2_offsets.core.result import Status

_HEADER = ("partition", "source position", "target position", "status", "shift", "read again")
WHAT_TO_DO = "What to do"
"""What begins the last part of a readiness report."""
MOST_NAMED = 5
"""How many partitions one paragraph can name."""


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table as text: the first column is aligned left, the others right."""
    lines = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def fold(text: str) -> str:
    """Return a text of a headline, a table and what to do as one paragraph, without the table.

    Airflow's page folds the lines of a text; the XCom ``table`` has them.
    """
    headline, *blocks = text.split("\n\n")
    steps = [each for each in blocks if each.startswith(WHAT_TO_DO)]
    todo = [f"{WHAT_TO_DO}: {'; '.join(each.splitlines()[1:])}." for each in steps]
    rest = ["The XCom table has all lines."] if blocks else []
    return paragraph([f"{headline.rstrip('.')}.", *todo, *rest])


def paragraph(sentences: Iterable[str]) -> str:
    """Return sentences as one paragraph, whatever line breaks are in them."""
    return " ".join(" ".join(sentences).split())


def summarize(
    plan: FailoverPlan, shown: Sequence[PartitionPlan] | None = None, rest: str = ""
) -> str:
    """Return the plan as one sentence, a table, and the reason of each answer.

    Args:
        plan: The plan.
        shown: The partitions of the table; None: all.
        rest: Where the others are, as a sentence.
    """
    lines = plan.partitions if shown is None else shown
    reasons = "\n".join(
        f"{line.translation.topic_partition} at {line.translation.position}: "
        + line.translation.reason
        + (f"; FALLBACK {line.fallback.kind}: {line.fallback.reason}" if line.fallback else "")
        for line in lines
    )
    parts = [f"{_verdict(plan)}{_left_out(plan)}", table(_HEADER, list(map(_row, lines))), reasons]
    return "\n\n".join([*parts, *([rest] if rest else [])])


def summarize_folded(plan: FailoverPlan, shown: Sequence[PartitionPlan], rest: str = "") -> str:
    """Return the plan as one paragraph, for a page that folds lines: the verdict, and the worst.

    Args:
        plan: The plan.
        shown: Its worst partitions, the worst first.
        rest: Where the others are, as a sentence.
    """
    worst = [_sentence(line) for line in shown[:MOST_NAMED] if _is_worth_a_word(line)]
    sentences = [
        _verdict(plan),
        *(f"Made without {each.part}: {each.reason}." for each in plan.left_out),
        *([f"Worst: {'; '.join(worst)}."] if worst else []),
        f"{rest}." if rest else "The XCom table has each partition.",
    ]
    return paragraph(sentences)


def _verdict(plan: FailoverPlan) -> str:
    again = "an unknown number of" if plan.max_reread is None else f"at most {plan.max_reread}"
    counts = ", ".join(f"{count} {_words(status)}" for status, count in plan.counts().items())
    if plan.fallbacks:
        counts += f"; {plan.fallbacks} start by a chosen fallback, with no proof"
    if plan.given_up:
        counts += f"; GIVES UP at most {plan.given_up} records that were never copied"
    archived = plan.syncs_as_of
    alone = f" Known from the archive alone, as of {archived}." if archived else ""
    count = len(plan.partitions)
    partitions = "1 partition" if count == 1 else f"{count} partitions"
    return (
        f"{_words(plan.verdict).upper()}: {partitions} ({counts}), "
        f"{again} records processed again.{_danger(plan)}{alone}{_evidence(plan)}"
    )


def _words(value: str) -> str:
    return value.replace("_", " ")


def _is_worth_a_word(line: PartitionPlan) -> bool:
    may_lose = line.translation.max_lost > 0 or line.given_up > 0
    return line.start is None or line.fallback is not None or may_lose or line.max_reread != 0


def _sentence(line: PartitionPlan) -> str:
    answer = line.translation
    place = f"{answer.topic_partition} at {answer.position}"
    if line.start is None:
        return f"{place} is refused, because {answer.reason}"
    if line.fallback:
        return f"{place} starts at {line.start} by {line.fallback.kind}, with no proof"
    again = "an unknown number of" if line.max_reread is None else f"at most {line.max_reread}"
    lost = f", may lose {answer.max_lost}," if answer.max_lost else ""
    lost += f", gives up {line.given_up} never copied," if line.given_up else ""
    return f"{place} starts at {line.start}{lost} and reads {again} records again"


def _danger(plan: FailoverPlan) -> str:
    lost = sum(answer.max_lost for answer in plan.not_safe)
    if not lost:
        return ""
    return f" By strategy {plan.strategy} up to {lost} may be lost; strategy safe loses none."


def _evidence(plan: FailoverPlan) -> str:
    source, target = plan.source_records_read, plan.target_records_read
    if not source and not target:
        return ""
    return f" As evidence {source} records of the source and {target} of the target were read."


def _left_out(plan: FailoverPlan) -> str:
    if not plan.left_out:
        return ""
    parts = "".join(f"\n  {each.part}: {each.reason}" for each in plan.left_out)
    return f"\n\nMade without what does not answer:{parts}"


def _row(partition: PartitionPlan) -> tuple[object, ...]:
    answer = partition.translation
    shift = "-" if partition.shift is None else f"{partition.shift:+d}"
    again = "?" if partition.max_reread is None else f"<= {partition.max_reread}"
    return (
        answer.topic_partition,
        answer.position,
        "-" if partition.start is None else partition.start,
        f"by {partition.fallback.kind}" if partition.fallback else _words(answer.status),
        shift,
        "-" if answer.status is Status.REFUSED else again,
    )
