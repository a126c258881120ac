"""The names of a failover's steps, and what is told of each; ``failover`` builds the tasks."""

from datetime import timedelta

from airflow_mm2_offsets.core.mode import FailoverMode

PLANNED, DISASTER, DRILL, FAILBACK = FailoverMode
MOVING = frozenset({PLANNED, DISASTER, FAILBACK})
"""The modes in which the job itself is moved."""
COPYING = frozenset({PLANNED, DRILL, FAILBACK})
"""The modes in which both clusters are up."""

OPERATORS = (
    *("check", "stop_source", "read_positions", "wait_replicated", "translate", "forecast"),
    *("approve", "submit_target", "start_drill", "wait_started", "verify", "tear_down"),
    *("roll_back", "report"),
)
"""The tasks that take arguments, without the group's prefix."""
OF_STOP, OF_SUBMIT = "cancel_source", "hand_over"
"""The further tasks of a group that is given ``stop``, or ``submit``."""
QUIET_PERIOD = 60.0
"""Seconds that ``stop_source`` waits after a platform's cancel, unless it is told otherwise."""
READING = frozenset({"check", "read_positions", "translate", "forecast"})
"""The tasks that read clusters and storage, and wait for nothing else."""
AFTER_FAILURE = frozenset({"tear_down", "roll_back", "report"})
"""The tasks that run although a step before them has failed."""
READ_TIMEOUT = timedelta(minutes=15)
"""For a storage that takes requests and never answers: the job may have stopped meanwhile."""
JOB_FIELDS = frozenset({"checkpoint", "control", "target_checkpoint", "moved_to", "source_is_gone"})
"""The shared arguments that name the source job."""
INTENTS = {
    "cancel_source": "run {operator}, which cancels the job",
    "stop_source": "raise a fence in {control}, ask the job there to stop, and wait for the proof",
    "approve": "ask a person where the numbers are above the thresholds",
    "submit_target": "mark the job as moved to {moved_to} and trigger {trigger_dag_id}",
    "hand_over": "mark the job as moved to {moved_to}",
    "start_drill": "trigger {trigger_dag_id} with the throw-away folder {folder}",
    "wait_started": "wait for the first batch in {checkpoint}",
    "verify": "compare both clusters and the outputs, and report to {report}",
    "tear_down": "stop the job of the drill and remove {folder}",
    "roll_back": "take back what this run has done to the job in {checkpoint}",
}
"""What each task that changes something would do, for a dry run."""
PLATFORM_INTENTS = {
    "stop_source": "wait until {checkpoint} stands still",
    "submit_target": "run {operator}, which submits the job",
}
"""The same of tasks that differ where the group is given ``stop`` or ``submit``."""

REPORTED = {
    "stopped": "stop_source",
    "plan": "translate",
    "forecast": "forecast",
    "approval": "approve",
    "started": "wait_started",
    "verified": "verify",
    "drill": "tear_down",
    "rollback": "roll_back",
}
"""The task whose result each part of the report holds."""
