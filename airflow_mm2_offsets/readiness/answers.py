"""Makes the values of checks; every family calls it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from airflow_mm2_offsets.core.readiness import CheckStatus, ReadinessCheck
from airflow_mm2_offsets.core.readiness_names import CheckName
from airflow_mm2_offsets.errors import Mm2OffsetsError

MAX_LISTED = 10
"""The most topic-partitions that a check names one by one."""
NO_TOPIC = "no topic is known"
GIVE_CHECKPOINT = "give the job's checkpoint location"
NO_POSITIONS = "the job's positions are not known"
GIVE_POSITIONS = "give a checkpoint that can be read, or the positions themselves"
"""What ends it."""


def ok(
    name: CheckName, value: str, *, threshold: str | None = None, number: float | None = None
) -> ReadinessCheck:
    """Return a check that found nothing wrong."""
    return ReadinessCheck(
        name=name, status=CheckStatus.OK, value=value, threshold=threshold, number=number
    )


def _found(
    status: CheckStatus,
    name: CheckName,
    value: str,
    remedy: str = "",
    *,
    threshold: str | None = None,
    number: float | None = None,
    subject: str = "",
) -> ReadinessCheck:
    return ReadinessCheck(
        name=name,
        status=status,
        value=value,
        remedy=remedy,
        threshold=threshold,
        number=number,
        subject=subject,
    )


warning = partial(_found, CheckStatus.WARNING)
"""Makes a check that somebody should look at."""
failed = partial(_found, CheckStatus.FAILED)
"""Makes a check that a failover would fail by."""


def unknown(name: CheckName, value: str, remedy: str = "") -> ReadinessCheck:
    """Return a check that could not be asked."""
    return ReadinessCheck(name=name, status=CheckStatus.UNKNOWN, value=value, remedy=remedy)


blocked = partial(unknown, remedy="mend what kept it from being asked, and check again")
"""Makes a check that could not be asked because of something else, which the value names."""


def not_asked(name: CheckName, value: str, remedy: str = "") -> ReadinessCheck:
    """Return a check that the policy or the settings do not need."""
    return ReadinessCheck(name=name, status=CheckStatus.NOT_ASKED, value=value, remedy=remedy)


def of_sentences(
    name: CheckName, sentences: Iterable[str], *, otherwise: str
) -> list[ReadinessCheck]:
    """Return a failed check for each problem; a sentence names its next step itself."""
    return [failed(name, sentence) for sentence in sentences] or [ok(name, otherwise)]


def asked(
    name: CheckName, find: Callable[[], Iterable[str]], *, otherwise: str, may_be_lost: bool = False
) -> list[ReadinessCheck]:
    """Return what ``find`` finds; its error is a problem, or unknown where it ``may_be_lost``."""
    try:
        return of_sentences(name, find(), otherwise=otherwise)
    except Mm2OffsetsError as error:
        return [unknown(name, str(error)) if may_be_lost else failed(name, str(error))]


def worst_first(
    name: CheckName, found: Sequence[ReadinessCheck], *, otherwise: ReadinessCheck
) -> Iterator[ReadinessCheck]:
    """Yield at most ``MAX_LISTED`` checks, and how many more there are; else ``otherwise``."""
    yield from found[:MAX_LISTED]
    if rest := found[MAX_LISTED:]:
        make = failed if any(each.status is CheckStatus.FAILED for each in rest) else warning
        yield make(name, f"the same of {len(rest)} more topic-partitions")
    if not found:
        yield otherwise


def seconds(number: float) -> str:
    """Return a duration as people read it."""
    minute, hour, day = 60, 3600, 86_400
    if number < 2 * minute:
        return f"{number:.0f} s"
    if number < 2 * hour:
        return f"{number / minute:.0f} min"
    return f"{number / hour:.0f} h" if number < 2 * day else f"{number / day:.0f} days"
