"""The kinds of failover: operators, the task group and reports name them."""

from enum import StrEnum


class FailoverMode(StrEnum):
    """Why a job is moved, which decides what must be there and what is done."""

    PLANNED = "planned"
    """Both clusters are up: the job is stopped with proof and moved to the target."""
    DISASTER = "disaster"
    """The source, or a part of it, is lost: the job is started on the target from what is left."""
    DRILL = "drill"
    """A rehearsal: a second job starts on the target in a throw-away folder, and is removed."""
    FAILBACK = "failback"
    """The way home: a job that was moved returns to the source cluster."""
